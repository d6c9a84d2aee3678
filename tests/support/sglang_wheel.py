"""SGLang's published wheels that tests read, pinned by hash."""

import hashlib
import subprocess
import sys

from runners.core import paths

WHEELS = {
    "0.5.9": "8a936c4d25fea605f44254e533cff2144c73ceffbc1f8738aba393461bbb64d1",
    "0.5.10": "ac8855a5d57dac8831fee526bca5212f1ae451f378e2ab08b3baecbc4deb4076",
}


def wheel(version):
    """The pinned wheel, fetched once into the cache."""
    place = paths.cache() / "wheels" / f"sglang-{version}-py3-none-any.whl"
    if not place.is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        argv = ["-m", "pip", "download", "-q", "--no-deps", "--no-input", f"sglang=={version}", "-d", str(place.parent)]
        subprocess.run([sys.executable, *argv], check=True)
    assert hashlib.sha256(place.read_bytes()).hexdigest() == WHEELS[version]
    return place

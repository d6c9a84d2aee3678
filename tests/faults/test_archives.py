"""Archives of strangers: looked at before anything is written, and bounded in files, sizes, names and headers."""

import gzip
import io
import tarfile

import matrix
import pytest

from runners.core import paths
from runners.core.errors import UserError
from runners.report import archive

SCRIPT = "<script>alert(1)</script>"
NAMES = {
    "a name with ESC": "p/\x1b[31mred/cells.jsonl",
    "a name with a line end": "p/a\nb/cells.jsonl",
    "a name with a script": f"p/{SCRIPT}/cells.jsonl",
    "a hidden name": "p/.ssh/cells.jsonl",
    "a deep folder": "p/" + "a/" * 20 + "cells.jsonl",
    "a path out of it": "../../cells.jsonl",
}


def member(name, size=0, kind=tarfile.REGTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info


def pack(place, name):
    """Write the archive that a row of the matrix names. Headers are written by hand where the file would be large."""
    if name == "large file":
        place.write_bytes(gzip.compress(member("p/server.log", 3_000_000_000).tobuf(tarfile.GNU_FORMAT)))
        return
    if name == "a long header":
        header = member("x", 2_000_000, tarfile.XHDTYPE).tobuf(tarfile.GNU_FORMAT)
        place.write_bytes(gzip.compress(header + b"x" * 2_000_384))
        return
    with tarfile.open(place, "w:gz") as packed:
        if name == "many files":
            for i in range(archive.MOST_FILES + 1):
                packed.addfile(member(f"p/{i}.json"))
        elif name == "a link":
            link = member("p/cells.jsonl", kind=tarfile.SYMTYPE)
            link.linkname = "/etc/passwd"
            packed.addfile(link)
        else:
            packed.addfile(member(NAMES[name], 2), io.BytesIO(b"{}"))


@pytest.mark.parametrize("fault", matrix.ARCHIVES, ids=lambda f: f.name)
def test_an_archive_that_holds_what_no_runs_hold_is_not_unpacked(tmp_path, monkeypatch, fault):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    place = tmp_path / "odd.tar.gz"
    pack(place, fault.name)
    with pytest.raises(UserError) as error:
        archive.unpack(place)
    said = str(error.value)
    assert fault.said in said and said.isprintable() and len(said) < 300
    assert not [p for p in (tmp_path / "build").rglob("*") if p.is_file()], "nothing is left behind"

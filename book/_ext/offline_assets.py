"""Sphinx extension: everything a page needs lies beside it, so the built book reads with the network closed.

Altair writes each chart as a small script that fetches Vega from a CDN unless the global `VEGA_DEBUG` already
names the versions it wants. One asset therefore carries Vega, Vega-Lite and Vega-Embed *and* that object;
every page loads it, and the browser caches it. (`inline=True` would cost the same 0.9 MB once per chart.)
"""

import json
from pathlib import Path

import altair
import vl_convert
from sphinx.application import Sphinx
from sphinx.util import logging

ASSET = "vega-offline.js"
# The global `define` of require.js would send altair's script down another path, which fetches from the CDN.
AMD = ("require.min.js", "require.js")
UNUSED = (".map", ".po", ".mo", ".ttf")  # source maps, translations, fonts beside their .woff2
log = logging.getLogger(__name__)


def bundle() -> str:
    """The script: Vega's libraries as globals, then the version object altair's script looks for.

    Raises ValueError when vl-convert does not carry altair's Vega-Lite (pin the two together).
    """
    wanted = ".".join(altair.VEGALITE_VERSION.split(".")[:2])
    if wanted not in vl_convert.get_vegalite_versions():
        raise ValueError(f"vl-convert lacks Vega-Lite {wanted}, which altair {altair.__version__} asks for")
    versions = {
        "vega_version": altair.VEGA_VERSION,
        "vegalite_version": altair.VEGALITE_VERSION,
        "vegaembed_version": altair.VEGAEMBED_VERSION,
    }
    libraries = vl_convert.javascript_bundle(vl_version=wanted)
    known = f"window.VEGA_DEBUG = Object.assign(window.VEGA_DEBUG || {{}}, {json.dumps(versions)});"
    return f"{libraries}\n{known}\n"


def write_asset(app: Sphinx) -> None:
    """Write the script where Sphinx copies static files from."""
    if app.builder.format != "html":
        return
    folder = Path(app.doctreedir) / "offline_assets"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ASSET).write_text(bundle(), encoding="utf-8")
    app.config.html_static_path.append(str(folder))
    # Not deferred: a chart's script runs while the page is parsed and needs the libraries by then.
    app.add_js_file(ASSET, priority=100)


def slim(app: Sphinx, failure: Exception | None) -> None:
    """Take out what no page loads.

    Of MathJax (24 MB: other input languages, other outputs, speech) one script stays, its fonts, and the TeX packages
    that it fetches when asked. Of the theme go source maps, other languages, and the old format of its icon fonts.
    """
    static = Path(app.outdir) / "_static"
    if failure is not None or not static.is_dir():
        return
    mathjax = static / "mathjax"
    kept = (Path(app.config.mathjax_path).name, "output/chtml/fonts", "input/tex/extensions")
    for path in sorted(static.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.is_relative_to(mathjax):
            if not path.relative_to(mathjax).as_posix().startswith(kept):
                path.unlink()
        elif path.suffix in UNUSED:
            path.unlink()


def refuse_amd(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Warn when something put require.js on a page: its charts would stay empty without a network."""
    for script in context.get("script_files", []):
        name = str(getattr(script, "filename", script) or "")
        if name.endswith(AMD):
            log.warning("require.js on page %s: charts there would load from a CDN", pagename)


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", write_asset)
    app.connect("html-page-context", refuse_amd, priority=900)
    app.connect("build-finished", slim, priority=900)  # after the files were copied
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""`specverdict audit-sglang`: what each SGLang release does, read from the syntax trees of its published wheel.

Methods of Kimi-K2.5, layer ids, the formula of the accept rate and the default cap go to
data/reported/sglang_releases.csv. Nothing is installed or imported: a wheel is downloaded, parsed and deleted.
Comments do not count.
"""

import argparse
import ast
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd

from runners.core.errors import UserError
from runners.core.paths import DATA
from runners.engines import environments, sglang_patch

TABLE = DATA / "reported" / "sglang_releases.csv"
RELEASES = (
    *("0.5.7", "0.5.8", "0.5.8.post1", "0.5.9", "0.5.10", "0.5.10.post1", "0.5.11", "0.5.12", "0.5.12.post1"),
    *("0.5.13", "0.5.13.post1", "0.5.14", "0.5.15", "0.5.15.post1", "0.5.16", "0.5.17", "0.5.18", "0.5.19"),
    *("0.5.20", "0.5.21", "0.5.22", "0.5.23"),
)
ABSENT = "absent"


def write(say: Callable[[str], None] = print) -> int:
    """Read every release and write the table; `say` gets one line a release."""
    rows = []
    for version in RELEASES:
        rows.append(audit_release(version))
        say(f"SGLang {version}: {rows[-1]}")
    pd.DataFrame(rows).to_csv(TABLE, index=False)
    say(f"{len(rows)} releases in {TABLE.relative_to(DATA.parent)}")
    return 0


def audit_release(version: str) -> dict[str, str]:
    """One release's row; UserError when its wheel cannot be downloaded."""
    with tempfile.TemporaryDirectory() as scratch:
        argv = ["-m", "pip", "download", "-q", "--no-deps", "--no-input", "--no-color", f"sglang=={version}"]
        done = subprocess.run([sys.executable, *argv, "-d", scratch], capture_output=True, text=True)
        wheels = list(Path(scratch).glob("*.whl"))
        if done.returncode != 0 or not wheels:
            raise UserError(environments.explain(f"sglang {version}", done.stderr, Path(scratch)))
        with zipfile.ZipFile(wheels[0]) as wheel:
            sources = {n: wheel.read(n).decode() for n in wheel.namelist() if n.startswith("sglang/srt/")
                       and n.endswith(".py")}  # fmt: skip
    return {"release": version} | audit(sources)


def audit(sources: dict[str, str]) -> dict[str, str]:
    """One row of words. sources: path in the wheel -> text. "absent" marks what a release does not have."""
    kimi = sources.get("sglang/srt/models/kimi_k25.py")
    methods = sglang_patch.delegations(kimi) if kimi else None
    row = {"kimi_k25": "present" if kimi else ABSENT}
    for name in sglang_patch.METHODS:
        row[name] = _words(methods[name]) if methods else ABSENT
    row["patch"] = "no model" if not methods else "needed" if any(not m.present for m in methods.values()) else "no"
    row["plus_one_deepseek_v2"] = plus_one(sources.get("sglang/srt/models/deepseek_v2.py", ""))
    row["plus_one_llama"] = plus_one(sources.get("sglang/srt/models/llama.py", ""))
    row["accept_rate"] = next(filter(None, map(accept_rate, _with(sources, "spec_accept_rate"))), ABSENT)
    caps = sorted({c for text in _with(sources, "max_running_requests") for c in default_caps(text)})
    row["default_cap"] = ", ".join(map(str, caps)) or ABSENT
    return row


def _words(method: sglang_patch.Delegation) -> str:
    if not method.present:
        return ABSENT
    return ("delegates" if method.delegates else "own") + (", guarded" if method.guarded else "")


def _with(sources: dict[str, str], word: str) -> Iterator[str]:
    """The sources that hold the word: parsing the whole package takes minutes."""
    return (text for _, text in sorted(sources.items()) if word in text)


def plus_one(source: str) -> str:
    """When `set_eagle3_layers_to_capture` adds one to the layer ids: always, "first id is 1", never, or absent."""
    for function in _functions(source, "set_eagle3_layers_to_capture"):
        added = [n for n in ast.walk(function) if isinstance(n, ast.ListComp) and "+ 1" in ast.unparse(n.elt)]
        if not added:
            return "never"
        tests = [n for n in ast.walk(function) if isinstance(n, ast.If) and "[0] == 1" in ast.unparse(n.test)]
        return "first id is 1" if tests else "always"
    return ABSENT


def accept_rate(source: str) -> str | None:
    """The formula of the decode line's accept rate: over D (bonus token counted) or D - 1; None where it has none.

    AL: accept length; D: `speculative_num_draft_tokens`, the bonus token included.
    """
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        formulas = [
            n.value for n in ast.walk(function)
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
            and n.targets[0].id == "spec_accept_rate" and not isinstance(n.value, ast.Constant)
        ]  # fmt: skip
        if formulas:
            text = ast.unparse(function)
            return "(AL - 1) / (D - 1)" if "num_draft_tokens - 1" in text or "draft_tokens - 1" in text else "AL / D"
    return None


def default_caps(source: str) -> set[int]:
    """Numbers assigned to max_running_requests that a warning in the same file names as speculation's cap."""
    tree = ast.parse(source)
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    announced = {int(m[1]) for t in texts if (m := re.search(r"reset to (\d+) for speculative decoding", t))}
    found = set()
    for n in ast.walk(tree):
        if isinstance(n, ast.Assign) and any(ast.unparse(t).endswith("max_running_requests") for t in n.targets):
            values = [n.value]
        elif isinstance(n, ast.Call):
            values = [k.value for k in n.keywords if k.arg == "max_running_requests"]
            names = [a.value if isinstance(a, ast.Constant) else None for a in n.args]
            if "max_running_requests" in names:  # set by name, as newer releases do
                values += n.args[names.index("max_running_requests") + 1 :]
        else:
            continue
        found |= {v.value for v in values if isinstance(v, ast.Constant) and type(v.value) is int}
    return found & announced


def _functions(source: str, name: str) -> Iterator[ast.FunctionDef]:
    return (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == name)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None: every release is read."""


def main(args: argparse.Namespace) -> int:
    """Write the table."""
    return write()

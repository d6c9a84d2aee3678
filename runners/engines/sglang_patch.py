"""`specverdict patch check|apply|revert`: three delegating methods that Kimi-K2.5 lacks in SGLang 0.5.9.

SGLang's EAGLE-3 worker calls three methods of the outer model: one that sets which layers are captured, one that gets
the embedding and the head, one that sets them. In 0.5.9 the multimodal wrapper of Kimi-K2.5 has none of the three
(book, chapter The patch). Later releases have them, and the program `patch` would still apply a text patch there, at a
wrong line; so this works on the syntax tree, and only on a file whose hash is known.
"""

import ast
import hashlib
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from runners.core.errors import UserError
from runners.core.files import write_atomic

FILE = Path("srt") / "models" / "kimi_k25.py"
CLASS = "KimiK25ForConditionalGeneration"
METHODS = ("set_eagle3_layers_to_capture", "get_embed_and_head", "set_embed_and_head")
BACKUP = ".before-specverdict"
# SHA-256 of kimi_k25.py in the published wheels that need the patch.
NEEDS = {"0.5.9": "e80e1823f0a9104a11e49460d02df773547399359f6dd9a4de5cda86bfa18e0a"}
ADDED = """
    # EAGLE-3: the model runner and the draft worker look these up on the outer model.
    def set_eagle3_layers_to_capture(self, layer_ids: Optional[List[int]] = None):
        self.language_model.set_eagle3_layers_to_capture(layer_ids)

    def get_embed_and_head(self) -> Tuple[torch.Tensor, torch.Tensor]:
        return self.language_model.get_embed_and_head()

    def set_embed_and_head(self, embed: torch.Tensor, head: torch.Tensor) -> None:
        self.language_model.set_embed_and_head(embed, head)
"""


@dataclass(frozen=True)
class Delegation:
    """One method of the wrapper: whether it is there, whether it calls the same method of `self.language_model`, and
    whether it first looks if that method exists (guarded).
    """

    present: bool
    delegates: bool = False
    guarded: bool = False


@dataclass(frozen=True)
class Installed:
    """An installed SGLang: package folder, version, and the model's file (None before Kimi-K2.5 was known)."""

    package: Path
    version: str
    file: Path | None


def delegations(source: str) -> dict[str, Delegation] | None:
    """Each of the three methods in the class, read from the syntax tree; None when there is no such class."""
    classes = [n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == CLASS]
    if not classes:
        return None
    found = {m.name: m for m in classes[-1].body if isinstance(m, ast.FunctionDef)}
    return {name: _delegation(found.get(name), name) for name in METHODS}


def _delegation(method: ast.FunctionDef | None, name: str) -> Delegation:
    if method is None:
        return Delegation(present=False)
    calls = [n for n in ast.walk(method) if isinstance(n, ast.Call)]
    delegates = any(ast.unparse(c.func) == f"self.language_model.{name}" for c in calls)
    guarded = any(
        isinstance(c.func, ast.Name) and c.func.id in ("hasattr", "getattr") and name in ast.unparse(c) for c in calls
    )
    return Delegation(True, delegates, guarded)


def find(package: Path | None = None, python: str | None = None) -> Installed:
    """The SGLang in a folder (.../site-packages/sglang), or the one that a Python would import; UserError if none."""
    if package is None:
        ask = "import importlib.util as u, json; s = u.find_spec('sglang'); print(json.dumps(s and s.origin))"
        try:
            done = subprocess.run([python or "python3", "-c", ask], capture_output=True, text=True, timeout=60)
            origin = json.loads(done.stdout or "null")
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise UserError(f"{python} could not look for SGLang ({error}); give --sglang FOLDER.") from error
        if not origin:
            raise UserError(
                f"{python or 'python3'} has no SGLang; give --python, or --sglang .../site-packages/sglang."
            )
        package = Path(origin).parent
    if not (package / "srt").is_dir():
        raise UserError(f"{package} must be SGLang's package folder (it has no srt); give .../site-packages/sglang.")
    versions = {
        m[1] for p in package.parent.glob("sglang-*.dist-info") if (m := re.match(r"sglang-(.+)\.dist", p.name))
    }
    if len(versions) != 1:
        known = ", ".join(sorted(versions)) or "none"
        raise UserError(f"{package.parent} must hold one version of SGLang (found: {known}); install it with pip.")
    file = package / FILE
    return Installed(package, versions.pop(), file if file.is_file() else None)


def check(found: Installed) -> tuple[str, str]:
    """(state, sentence); state is one of: absent, whole, patched, needed, unknown."""
    if found.file is None:
        return "absent", f"SGLang {found.version} has no Kimi-K2.5 model: nothing to patch, and it cannot serve it."
    source = found.file.read_bytes()
    methods = delegations(source.decode())
    if methods is None:
        return "unknown", f"SGLang {found.version}: {found.file} has no class {CLASS}; look at it by hand."
    missing = [name for name, d in methods.items() if not d.present]
    if not missing:
        patched = found.file.with_name(found.file.name + BACKUP).is_file()
        return ("patched", f"SGLang {found.version} is patched.") if patched else (
            "whole", f"SGLang {found.version} has all three methods: no patch is needed."
        )  # fmt: skip
    if hashlib.sha256(source).hexdigest() != NEEDS.get(found.version):
        return "unknown", (
            f"SGLang {found.version} lacks {', '.join(missing)}, but this patch was not made for its file; "
            "compare it with release 0.5.9 and add the methods by hand."
        )
    return "needed", f"SGLang {found.version} lacks {', '.join(missing)}: the patch is needed for EAGLE-3."


def patched_source(source: str) -> str:
    """The source with the methods added at the end of the class; UserError when they are not in it afterwards."""
    node = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == CLASS)
    lines = source.splitlines(keepends=True)
    result = "".join([*lines[: node.end_lineno], ADDED, *lines[node.end_lineno :]])
    methods = delegations(result)
    if methods is None or not all(d.present and d.delegates for d in methods.values()):
        raise UserError("The patched file would not have the three methods in its class; nothing was written.")
    return result


def apply(found: Installed) -> str:
    """Add the methods and return a sentence. Idempotent: a release that has them is left alone. UserError on a file of
    unknown content.
    """
    state, sentence = check(found)
    if state == "unknown":
        raise UserError(sentence)
    if state != "needed" or found.file is None:
        return sentence
    source = found.file.read_bytes()
    write_atomic(found.file.with_name(found.file.name + BACKUP), source)
    write_atomic(found.file, patched_source(source.decode()).encode())
    return f"SGLang {found.version} is patched; the original file is {found.file.name}{BACKUP} beside it."


def revert(found: Installed) -> str:
    """Put back the file that `apply` kept; UserError when the patched file was changed since."""
    if found.file is None:
        return check(found)[1]
    backup = found.file.with_name(found.file.name + BACKUP)
    if not backup.is_file():
        return f"SGLang {found.version} was not patched here: nothing to revert."
    before = backup.read_bytes()
    if found.file.read_text() != patched_source(before.decode()):
        raise UserError(f"{found.file} was changed since it was patched; compare it with {backup.name} by hand.")
    write_atomic(found.file, before)
    backup.unlink()
    return f"SGLang {found.version} is the original again."

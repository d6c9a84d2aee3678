"""The drafters of a profile as files: published or on the box, untrained, or derived from another by one fault.

A drafter has up to two forms, a Hugging Face folder (vLLM, SGLang) and a GGUF file (llama.cpp). What is made here is
kept in the cache, under a name that holds a hash of all it was made from.
"""

import ast
import functools
import hashlib
from pathlib import Path

from runners.core import hashes, paths
from runners.core.errors import UserError
from runners.core.paths import SCRIPTS
from runners.core.progress import Progress
from runners.engines import environments
from runners.engines.registry import engine
from runners.profiles.profile import Profile
from runners.profiles.schema import Drafter
from runners.serve import made_folder, target_files

Forms = tuple[Path | None, Path | None]  # folder, GGUF file
HEAD_BYTES = 16 << 20  # of a GGUF file: its tokenizer and its shapes, which an export takes from it


def resolved(path: str) -> Path:
    """A drafter's path as the profile names it; a relative one begins at the checkout (data/drafters/...)."""
    return paths.ROOT / path


def digest(profile: Profile, name: str) -> str:
    """12 hex digits over all that determines the drafter's weights; "absent" for one that is not on this machine.

    It is part of a cell's key: another drafter under the same name is another cell.
    """
    chosen, target = profile.drafters[name], profile.target
    facts = [target.file_sha256 or "", chosen.made or "", str(chosen.seed)]
    if chosen.path is not None:
        files = [resolved(chosen.path)] if chosen.path.endswith(".gguf") else _weights(resolved(chosen.path))
        files += [resolved(chosen.gguf)] if chosen.gguf is not None else []
        if not all(f.is_file() for f in files):
            return "absent"
        facts = [hashes.noted_sha256(f) for f in files]
    elif chosen.made == "untrained":
        facts += _scripts("untrained_drafter", "drafter_to_gguf")
    else:
        facts += [digest(profile, chosen.source or ""), *_recipe(chosen.fault or "")]
    return hashlib.sha256(" ".join(facts).encode()).hexdigest()[:12]


def _weights(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    return [folder / "config.json", index if index.is_file() else folder / "model.safetensors"]


def _scripts(*names: str) -> list[str]:
    return [hashes.sha256(SCRIPTS / f"{n}.py") for n in names]


def _recipe(fault: str) -> list[str]:
    """The parts of scripts/derive_drafter.py that put in one fault: its entry, the functions that it calls, and `main`.

    Not the whole file: a new fault added to it would make every published cell of the others unfindable.
    """
    functions, entries = _parsed((SCRIPTS / "derive_drafter.py").read_text())
    found, looking = {}, [entries.get(fault), functions["main"]]
    while looking:
        node = looking.pop()
        if node is None or id(node) in found:
            continue
        found[id(node)] = ast.unparse(node)
        looking += [functions.get(n.id) for n in ast.walk(node) if isinstance(n, ast.Name)]
    return [fault, *found.values()]


@functools.cache
def _parsed(source: str) -> tuple[dict[str, ast.FunctionDef], dict[str, ast.expr]]:
    """A script's functions by name, and its table CHANGES, as syntax trees."""
    tree = ast.parse(source)
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    table = next(n.value for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == "CHANGES")
    assert isinstance(table, ast.Dict), "CHANGES is a dict of name -> function"
    names = [ast.literal_eval(key) for key in table.keys if key is not None]
    return functions, dict(zip(names, table.values, strict=True))


def planned(profile: Profile, name: str) -> Forms:
    """Where the two forms are or will be. Makes and checks nothing."""
    chosen = profile.drafters[name]
    made = _made(profile, name)
    if chosen.made == "untrained":
        return made / "hf", made / "drafter.gguf"
    if chosen.made == "derived":
        return made / "hf", _exported(made, profile)
    assert chosen.path is not None, "a drafter that is not made has a path (profiles/schema.py)"
    if chosen.path.endswith(".gguf"):
        return None, resolved(chosen.path)
    if chosen.gguf is not None:
        return resolved(chosen.path), resolved(chosen.gguf)
    return resolved(chosen.path), _exported(made, profile) if _is_exported(profile, name) else None


def _made(profile: Profile, name: str) -> Path:
    chosen = profile.drafters[name]
    return paths.cache() / "drafters" / f"{chosen.fault or chosen.made or name}-{digest(profile, name)}"


def _is_exported(profile: Profile, name: str) -> bool:
    """Is a GGUF form made of a drafter's folder? Only an EAGLE-3 drafter's can be (scripts/drafter_to_gguf.py), and it
    takes the target's GGUF file.
    """
    uses = [c for c in profile.configurations.values() if c.drafter == name]
    if profile.target.package is not None:
        return not uses or any(c.method == "eagle3" for c in uses)
    served = any(c.method == "eagle3" and engine(c.engine).serves == "gguf" for c in uses)
    return served and target_files.forms(profile.target)[0] is not None


def _exported(made: Path, profile: Profile) -> Path:
    """Where it is or will be: another one for another version of the script, and for another target of one's own (a
    packaged one is in the drafter's digest, or has no other beside it).
    """
    own = "" if profile.target.package else f"-{_vocabulary(target_files.forms(profile.target)[0])}"
    return made / f"export-{hashes.sha256(SCRIPTS / 'drafter_to_gguf.py')[:6]}{own}" / "drafter.gguf"


def _vocabulary(gguf: Path | None) -> str:
    """6 hex digits over what an export takes from the target: the head of its GGUF file, with its size."""
    if gguf is None or not gguf.is_file():
        return "absent"
    with open(gguf, "rb") as handle:
        facts = handle.read(HEAD_BYTES) + str(gguf.stat().st_size).encode()
    return hashlib.sha256(facts).hexdigest()[:6]


def ensure(profile: Profile, name: str, gguf: Path | None, folder: Path | None, say: Progress) -> Forms:
    """`planned`, made if missing. gguf, folder: the two forms of the target, where there are such.

    UserError when a path is missing or the drafter cannot be made.
    """
    chosen = profile.drafters[name]
    forms = planned(profile, name)
    if chosen.path is not None:
        made_folder.must_exist(resolved(chosen.path), f"drafter {name}", profile)
        if chosen.gguf is not None:
            made_folder.must_exist(resolved(chosen.gguf), f"GGUF form of drafter {name}", profile)
        elif forms[0] is not None and forms[1] is not None:
            _export(forms[0], forms[1].parent, gguf, name, say)
        return forms
    if gguf is None or folder is None:
        raise UserError(f"Drafter {name} is made here from a packaged target with `dequantised: true`; give a `path`.")
    made = _made(profile, name)
    if not made.is_dir():
        say(f"drafter {name}: {'random weights' if chosen.made == 'untrained' else f'with the fault {chosen.fault}'}")
        made_folder.make_once(made, lambda out: _command(profile, chosen, gguf, folder, out, say), f"Drafter {name}")
    if chosen.made == "derived":
        _export(made / "hf", _exported(made, profile).parent, gguf, name, say)
    return forms


def _command(profile: Profile, chosen: Drafter, gguf: Path, folder: Path, out: Path, say: Progress) -> list[str]:
    """The command line that makes a drafter in the folder `out`."""
    python = environments.ensure("reference", say)
    if chosen.made == "untrained":
        script = str(SCRIPTS / "untrained_drafter.py")
        return [str(python), script, str(folder), str(gguf), str(out), str(chosen.seed)]
    source, _ = ensure(profile, chosen.source or "", gguf, folder, say)
    script = str(SCRIPTS / "derive_drafter.py")
    return [str(python), script, chosen.fault or "", str(source), str(out / "hf"), str(chosen.seed)]


def _export(folder: Path, out: Path, gguf: Path | None, name: str, say: Progress) -> None:
    """The GGUF form of a folder, in `out`/drafter.gguf."""
    if gguf is None or out.is_dir():
        return
    python = environments.ensure("reference", say)
    script = str(SCRIPTS / "drafter_to_gguf.py")

    def argv(scratch: Path) -> list[str]:
        scratch.mkdir(parents=True)
        return [str(python), script, str(gguf), str(folder), str(scratch / "drafter.gguf")]

    made_folder.make_once(out, argv, f"The GGUF form of drafter {name}")

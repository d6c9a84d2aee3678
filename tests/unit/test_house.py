"""The plan of the house, held by a machine: layers, rooms, sizes, engine names, commands, notebooks without outputs."""

import ast
import functools
import importlib
import json
import shlex
import tomllib

import pytest
from importlinter.cli import lint_imports

from runners.__main__ import BY_NAME, parse
from runners.core.paths import ROOT
from runners.engines import registry

SOURCES = sorted((ROOT / "runners").rglob("*.py"))
ROOMS = sorted(p for p in (ROOT / "runners").iterdir() if p.is_dir() and any(p.glob("*.py")))
# Typed throughout, without an exception (pyproject.toml).
STRICT_ROOMS = ("core", "readers", "profiles", "engines", "serve", "measure")
MODULE_LINES, FUNCTION_LINES = 300, 60
# A function may be longer when cutting it costs more than it explains: path and name -> why.
LONG_FUNCTIONS = {
    ("readers/vllm/log.py", "read_log"): "one pass over millions of lines; a call a line would double its time",
    ("readers/llamacpp.py", "read_log"): "one pass over millions of lines; a call a line would double its time",
    ("readers/sglang/log.py", "read_log"): "one pass over millions of lines; a call a line would double its time",
    ("scripts/train_drafter.py", "main"): "the training loop, read from top to bottom",
    ("standins/engine.py", "handler"): "one HTTP handler class, which closes over the stand-in's state",
}
# Rooms that may name an engine: they are about engines, or run in an engine's own environment.
ENGINE_ROOMS = ("engines", "readers", "profiles", "scripts", "standins")
# A module elsewhere that is about one engine alone, or about the case's two engines.
ENGINE_MODULES = {"report/chapters/comparison.py": "the reported case compares these two engines"}


def short(path):
    return path.relative_to(ROOT / "runners").as_posix()


@functools.cache
def tree(path):
    return ast.parse(path.read_text())


def functions(path):
    return (n for n in ast.walk(tree(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))


def test_imports_go_downward_only():
    assert lint_imports(config_filename=str(ROOT / ".importlinter"), no_cache=True) == 0


@pytest.mark.parametrize("room", ROOMS, ids=lambda p: p.name)
def test_a_room_says_what_lives_there_and_only_hands_on(room):
    if room.name in ("scripts", "standins") and not (room / "__init__.py").is_file():
        return  # run by path in another environment, imported by nobody
    for path in room.rglob("__init__.py"):
        body = tree(path).body
        assert ast.get_docstring(ast.Module(body, [])), f"{short(path)} has no docstring"
        for node in body[1:]:
            exported = isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]
            assert exported or isinstance(node, ast.Import | ast.ImportFrom), f"{short(path)}:{node.lineno} is code"


def test_modules_and_functions_are_short():
    exceptions = dict(LONG_FUNCTIONS)
    long = [f"{short(p)}: {n} lines" for p in SOURCES if (n := len(p.read_text().splitlines())) > MODULE_LINES]
    for path in SOURCES:
        for f in functions(path):
            lines = f.end_lineno - f.lineno + 1
            if lines > FUNCTION_LINES and not exceptions.pop((short(path), f.name), None):
                long.append(f"{short(path)}:{f.lineno} {f.name}: {lines} lines")
    assert not long, "cut these: " + "; ".join(long)
    assert not exceptions, f"these are short now, take them off the list: {list(exceptions)}"


def test_engines_are_named_in_their_own_rooms_only():
    names = set(registry.names())
    found = [
        f"{short(path)}:{node.lineno} {node.value}"
        for path in SOURCES
        if path.relative_to(ROOT / "runners").parts[0] not in ENGINE_ROOMS and short(path) not in ENGINE_MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    ]
    assert not found, "make these a capability of the engine (engines/registry.py): " + "; ".join(found)


@pytest.mark.parametrize("name", BY_NAME)
def test_a_command_has_a_module_a_sentence_of_use_and_an_example_that_parses(name):
    command = BY_NAME[name]
    module = importlib.import_module(f"runners.commands.{command.module}")
    assert callable(module.add_arguments) and callable(module.main)
    assert command.use.endswith(".") and len(command.use) < 90
    args, found = parse(name, shlex.split(command.example))
    assert found == module.__name__ and args is not None


def test_nothing_is_left_to_do_in_a_docstring_or_comment():
    words = ("TO" + "DO", "FIX" + "ME", "XX" + "X")
    found = [
        f"{short(path)}:{number}"
        for path in SOURCES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if any(word in line for word in words)
    ]
    assert not found


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda p: p.name)
def test_a_notebook_source_carries_no_outputs(path):
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs") and cell.get("execution_count") is None


def test_nothing_is_left_out_of_the_type_check_in_the_strict_rooms():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["strict"]
    left_out = [module for o in settings["overrides"] if len(o) > 2 or "ignore_errors" in o for module in o["module"]]
    assert not [module for module in left_out if module.split(".")[1] in STRICT_ROOMS]
    ignored = [short(p) for p in SOURCES if short(p).split("/")[0] in STRICT_ROOMS and "# type: " in p.read_text()]
    assert not ignored


# One module a chapter and a subject: the map names the folders.
UNLISTED_FOLDERS = ("report/chapters", "report/charts")


def test_every_module_is_on_the_map():
    page = (ROOT / "CONTRIBUTING.md").read_text()
    for path in SOURCES:
        if path.stem != "__init__" and not short(path).startswith(UNLISTED_FOLDERS):
            named = f"`{path.stem}" in page or f"{path.stem}`" in page or f"/{path.name}`" in page
            assert named, f"{short(path)} must have a line in CONTRIBUTING.md, section The map"

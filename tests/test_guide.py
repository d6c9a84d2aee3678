"""The guide and the README name what there is: commands, their options, make targets, transcripts, files."""

import importlib.util
import re
import shlex

import pytest
from transcripts import FOLDER, TRANSCRIPTS

from runners.__main__ import BY_NAME, COMMANDS, parse
from runners.core import paths

GUIDE = paths.ROOT / "book" / "run-it-yourself.md"
PAGES = [GUIDE, paths.ROOT / "README.md"]
CODE = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)
TYPED = re.compile(r"specverdict ([a-z][a-z-]*)([^`\n]*)")
OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][A-Za-z-]*")


def code(page):
    """Each piece of code of a page."""
    return CODE.findall(page.read_text(encoding="utf-8"))


@pytest.fixture
def help_of(capsys):
    """A command's help."""

    def show(name):
        with pytest.raises(SystemExit):
            parse(name, ["--help"])
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_command_is_one_and_has_the_options_that_are_named(page, help_of):
    typed = [found for piece in code(page) for found in TYPED.findall(piece)]
    assert typed
    for name, rest in typed:
        assert name in BY_NAME, f"{page.name}: `specverdict {name}` is no command"
        known = help_of(name)
        for option in OPTION.findall(rest):
            named = re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", known)
            assert named, f"{page.name}: `specverdict {name}` has no option {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_make_target_is_one(page):
    makefile = (paths.ROOT / "Makefile").read_text()
    known = {word for line in re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE) for word in shlex.split(line)}
    named = {target for piece in code(page) for target in re.findall(r"\bmake ([a-z]+)", piece)}
    assert named and named <= known, named - known


def test_each_transcript_is_shown_once_and_each_file_shown_is_there():
    shown = re.findall(r"\{literalinclude\} transcripts/(\S+)", GUIDE.read_text(encoding="utf-8"))
    assert {name.removesuffix(".txt") for name in shown if name.endswith(".txt")} == set(TRANSCRIPTS)
    assert all((FOLDER / name).is_file() for name in shown)


def test_the_table_of_commands_is_that_of_the_help():
    source = paths.ROOT / "book" / "_ext" / "command_table.py"
    spec = importlib.util.spec_from_file_location("command_table", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for group in COMMANDS.values():
        text = module.table(group).astext()
        for name, one in group.items():
            assert name in text and one.use in text and f"specverdict {name} {one.example}".strip() in text

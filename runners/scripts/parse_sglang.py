"""Parse command lines with the real argument parser of an SGLang release, from its source alone: no GPU, no torch.

Standard library only. `sglang.srt.server_args` is executed as it is; what it imports besides is read from the same
source by syntax tree (literal constants, mappings' keys, plain functions) and stands in as nothing otherwise.

    python parse_sglang.py REQUEST.json RESULT.json
REQUEST: {"source": folder or wheel that holds sglang/, "commands": {name: [words after launch_server]}}
RESULT: {name: "" or the parser's own message}
"""

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import types
import zipfile
from pathlib import Path
from unittest.mock import MagicMock

REAL = "sglang.srt.server_args"


class Source:
    """Files below sglang/ in a folder or a wheel."""

    def __init__(self, place: Path):
        self.wheel = zipfile.ZipFile(place) if place.is_file() else None
        self.place = place

    def text(self, module: str) -> str | None:
        for ending in (".py", "/__init__.py"):
            name = module.replace(".", "/") + ending
            try:
                return (self.wheel.read(name) if self.wheel else (self.place / name).read_bytes()).decode()
            except (KeyError, OSError):
                continue
        return None


class StandIn(types.ModuleType):
    """A module that was not imported: constants, mappings and plain functions from its source, else a mock."""

    __path__: list = []

    def __init__(self, name: str, text: str | None):
        super().__init__(name)
        self._nodes = {}
        for node in ast.parse(text).body if text else ():
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self._nodes[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._nodes[node.targets[0].id] = node.value

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._value(self._nodes.get(name), name)
        setattr(self, name, value)
        return value

    def _value(self, node: ast.AST | None, name: str):
        if isinstance(node, ast.ClassDef):
            held = {
                t.id: {k.value: None for k in n.value.keys if isinstance(k, ast.Constant)}
                for n in node.body
                if isinstance(n, ast.Assign | ast.AnnAssign) and isinstance(n.value, ast.Dict)
                for t in (n.targets if isinstance(n, ast.Assign) else [n.target])
                if isinstance(t, ast.Name)
            }
            mock = MagicMock(name=name)
            for key, value in held.items():
                setattr(mock, key, value)
            return mock
        if isinstance(node, ast.FunctionDef) and not node.decorator_list:
            space = {"json": json, "argparse": argparse, "re": re, "os": os, "sys": sys}
            plain = ast.FunctionDef(**{f: getattr(node, f, None) for f in node._fields} | {"returns": None})
            for argument in [*plain.args.args, *plain.args.kwonlyargs]:
                argument.annotation = None
            tree = ast.fix_missing_locations(ast.Module([plain], []))
            try:
                exec(compile(tree, self.__name__, "exec"), space)  # noqa: S102 - the release's own code, as it is
            except Exception:
                return MagicMock(name=name)
            return _or_nothing(space[name])
        try:
            return ast.literal_eval(node) if node is not None else MagicMock(name=name)
        except ValueError:
            return MagicMock(name=name)


def _or_nothing(function):
    """A function that needs more than its own module gives: nothing then stands in for what it returns."""

    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except NameError:
            return None

    return call


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Every module of sglang but one, and every library that is not installed, is a stand-in."""

    def __init__(self, source: Source):
        self.source = source

    def find_spec(self, fullname, path=None, target=None):
        ours = fullname.split(".")[0] == "sglang"
        if fullname.split(".")[0] in sys.builtin_module_names:
            return None
        if not ours and importlib.machinery.PathFinder.find_spec(fullname.split(".")[0]) is not None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        if spec.name == REAL:
            return types.ModuleType(REAL)
        return StandIn(spec.name, self.source.text(spec.name) if spec.name.startswith("sglang") else None)

    def exec_module(self, module):
        if module.__name__ == REAL:
            text = self.source.text(REAL)
            if text is None:
                raise ImportError(f"{self.source.place} holds no {REAL}")
            exec(compile(text, "server_args.py", "exec"), module.__dict__)  # noqa: S102


class Refused(Exception):
    pass


def refuse(message: str):
    raise Refused(message)


def main(request_file: Path, result_file: Path) -> None:
    request = json.loads(request_file.read_text())
    sys.meta_path.insert(0, Finder(Source(Path(request["source"]))))
    server_args = importlib.import_module(REAL)
    result = {}
    for name, words in request["commands"].items():
        # Abbreviated flags would pass today and mean something else in the next release.
        parser = argparse.ArgumentParser(allow_abbrev=False)
        server_args.ServerArgs.add_cli_args(parser)
        parser.error = refuse
        try:
            parser.parse_args(words)
            result[name] = ""
        except Refused as refused:
            result[name] = str(refused)
    result_file.write_text(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

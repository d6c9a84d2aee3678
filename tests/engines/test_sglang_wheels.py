"""The patch on SGLang's real source, from two published wheels pinned by hash: one needs it, one does not."""

import ast
import zipfile

import pytest
from sglang_wheel import WHEELS, wheel

from runners.engines import sglang_patch

pytestmark = pytest.mark.slow


def installed(version, tmp_path):
    with zipfile.ZipFile(wheel(version)) as archive:
        names = [n for n in archive.namelist() if n.endswith("models/kimi_k25.py") or ".dist-info/METADATA" in n]
        archive.extractall(tmp_path, names)
    return sglang_patch.find(tmp_path / "sglang")


class StandIn:
    """A language model that notes what it was asked."""

    def __init__(self):
        self.layer_ids, self.pair = None, ("embedding", "head")

    def set_eagle3_layers_to_capture(self, layer_ids):
        self.layer_ids = layer_ids

    def get_embed_and_head(self):
        return self.pair

    def set_embed_and_head(self, embed, head):
        self.pair = (embed, head)


def wrapper_of(source):
    """The patched methods alone, on a class that needs none of SGLang's imports."""
    node = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == sglang_patch.CLASS)
    node.body = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name in sglang_patch.METHODS]
    for method in node.body:
        method.returns = None
        for argument in method.args.args:
            argument.annotation = None
    node.bases, node.decorator_list = [], []
    space = {}
    exec(compile(ast.fix_missing_locations(ast.Module([node], [])), "patched", "exec"), space)
    return space[sglang_patch.CLASS]()


def test_the_release_that_needs_it_delegates_after_the_patch(tmp_path):
    found = installed("0.5.9", tmp_path)
    before = found.file.read_text()
    assert sglang_patch.check(found)[0] == "needed"
    sglang_patch.apply(found)
    wrapper = wrapper_of(found.file.read_text())
    wrapper.language_model = StandIn()
    wrapper.set_eagle3_layers_to_capture([2, 30, 58])
    assert wrapper.language_model.layer_ids == [2, 30, 58]
    assert wrapper.get_embed_and_head() == ("embedding", "head")
    wrapper.set_embed_and_head("e", "h")
    assert wrapper.language_model.pair == ("e", "h")
    sglang_patch.revert(found)
    assert found.file.read_text() == before


def test_the_release_that_has_the_methods_is_left_alone(tmp_path):
    found = installed("0.5.10", tmp_path)
    before = found.file.read_text()
    assert sglang_patch.check(found)[0] == "whole" and "no patch is needed" in sglang_patch.apply(found)
    assert found.file.read_text() == before
    assert all(d.delegates and d.guarded for d in sglang_patch.delegations(before).values())


@pytest.mark.parametrize("version", WHEELS)
def test_the_file_of_a_wheel_is_read_without_importing_sglang(version, tmp_path):
    assert set(sglang_patch.delegations(installed(version, tmp_path).file.read_text())) == set(sglang_patch.METHODS)

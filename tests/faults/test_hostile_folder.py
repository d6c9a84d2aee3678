"""Model folders that hold code: a pickle runs what its author wrote when it is loaded, so nothing of ours loads one."""

import ast
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import small_models
from safetensors.numpy import save_file

from runners.core import checkpoint, paths
from runners.core.errors import UserError
from runners.drafter import compatibility, layouts, replay_folders
from runners.profiles import load
from runners.serve import drafter_files, made_folder

LAB = load.load("lab-cpu")


class Bomb:
    """What leaves a file behind when it is unpickled."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self):
        return Path.touch, (self.mark,)


@pytest.fixture
def hostile(tmp_path):
    """(a drafter's folder whose weights are such a pickle, the file that it would leave)."""
    folder, mark = tmp_path / "drafter", tmp_path / "it-ran"
    small_models.head(folder)
    (folder / "model.safetensors").unlink()
    for name in ("pytorch_model.bin", "model.pt", "weights.pkl"):
        (folder / name).write_bytes(pickle.dumps(Bomb(mark)))
    yield folder, mark
    assert not mark.exists()
    pickle.loads((folder / "pytorch_model.bin").read_bytes())
    assert mark.exists(), "the bomb itself works"


def test_a_folder_of_pickles_is_looked_at_by_its_config_alone(hostile):
    folder, _ = hostile
    found = checkpoint.read(folder)
    assert found.pickles == ("model.pt", "pytorch_model.bin", "weights.pkl") and not found.tensors
    texts = [f.text for f in compatibility.check(found, small_models.TARGET, None)]
    assert any("pickles" in text for text in texts)


def test_no_replay_of_a_folder_of_pickles(hostile):
    folder, _ = hostile
    target = checkpoint.read(folder)
    assert "not safetensors" in replay_folders.machine_reason(target)
    assert "not safetensors" in replay_folders.head_reason(layouts.of(target), small_models.TARGET)


def test_no_engine_is_given_a_folder_of_pickles(hostile):
    folder, _ = hostile
    with pytest.raises(UserError, match="target x in .* are pickles .*convert them to safetensors"):
        made_folder.must_exist(folder, "target x", LAB)
    content = LAB.model_dump()
    content["drafters"]["bad"] = {"path": str(folder)}
    with pytest.raises(UserError, match="drafter bad in .* are pickles"):
        drafter_files.ensure(type(LAB).model_validate(content), "bad", None, None, print)


def test_safetensors_that_nobody_loads_hide_no_pickle(hostile):
    folder, _ = hostile
    save_file({"a": np.zeros(1, np.float32)}, folder / "other.safetensors")
    with pytest.raises(UserError, match="are pickles"):
        checkpoint.refuse_pickles(folder, "drafter")
    save_file({"a": np.zeros(1, np.float32)}, folder / "model.safetensors")
    checkpoint.refuse_pickles(folder, "drafter")


@pytest.mark.parametrize("name", ["x.bin", "x.ckpt", "x.pickle"])
def test_a_file_is_refused_as_a_folder_is(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(UserError, match="are pickles"):
        checkpoint.refuse_pickles(tmp_path / name, "target")
    (tmp_path / "x.gguf").write_bytes(b"")
    checkpoint.refuse_pickles(tmp_path / "x.gguf", "target")


# Calls that may unpickle a file, and the modules that may make one: of this process's own objects, never of a file.
UNPICKLE = ("pickle.load", "pickle.loads", "torch.load", "np.load", "numpy.load", "joblib.load", "pd.read_pickle")
UNPICKLE += (
    "shelve.open",
    "marshal.load",
    "marshal.loads",
    "cloudpickle.loads",
    "dill.load",
    "yaml.load",
    "np.fromfile",
)
ALLOWED = {("runners/core/remember.py", "pickle.loads"), ("runners/core/files.py", "yaml.load")}


def test_nothing_of_ours_loads_a_pickle():
    found = set()
    for path in [*(paths.ROOT / "runners").rglob("*.py"), *(paths.ROOT / "book" / "_ext").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in UNPICKLE:
                found.add((path.relative_to(paths.ROOT).as_posix(), ast.unparse(node.func)))
            words = {k.arg for k in node.keywords} if isinstance(node, ast.Call) else set()
            assert not words & {"allow_pickle", "trust_remote_code"}, path
    assert found <= ALLOWED


def test_the_notebooks_load_none_either():
    for path in (paths.ROOT / "notebooks").glob("*.ipynb"):
        text = "".join(line for cell in json.loads(path.read_text())["cells"] for line in cell["source"])
        assert "pickle" not in text and "torch.load" not in text, path.name

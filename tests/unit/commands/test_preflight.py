"""The pre-flight: what it finds in model folders, on machines with and without GPUs, and in a configuration."""

import json
import struct
import types

import pytest

from runners.commands.preflight import all_checks, target
from runners.core import gpus
from runners.profiles.load import load
from runners.profiles.profile import Profile


def shard(path, size=400, cut=0):
    header = json.dumps({"w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(size - cut))


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "model"
    place.mkdir()
    config = {"text_config": {"num_hidden_layers": 61, "hidden_size": 7168, "vocab_size": 163840}}
    (place / "config.json").write_text(json.dumps(config))
    (place / "tokenizer_config.json").write_text("{}")
    for i in (1, 2):
        shard(place / f"model-{i}.safetensors")
    weights = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    (place / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    return place


def words(findings, level="blocker"):
    return " | ".join(f.text for f in findings if f.level == level)


def test_a_whole_folder_has_no_blocker(folder):
    size = sum(p.stat().st_size for p in folder.glob("*.safetensors"))
    found = list(target.model_folder(folder, size))
    assert not words(found) and "2 shards" in words(found, "note")


@pytest.mark.parametrize(
    "harm, said",
    [
        (lambda f: (f / "model-2.safetensors").unlink(), "1 of 2 shards of the index are missing, first model-2"),
        (lambda f: shard(f / "model-1.safetensors", cut=100), "cut off or still being written"),
        (lambda f: (f / "model-1.safetensors").write_bytes(b"nothing"), "is not a safetensors file"),
        (lambda f: (f / "config.json").unlink(), "has no config.json"),
        (lambda f: (f / "model.safetensors.index.json").write_text("{"), "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_folder_is_a_blocker(folder, harm, said):
    harm(folder)
    assert said in words(target.model_folder(folder))


def kimi(folder, **changes):
    content = load("kimi-k2.5-8x-rtx-pro-6000").model_dump()
    content["target"] |= {"path": str(folder)} | changes
    return Profile.model_validate(content)


@pytest.mark.slow
def test_another_model_than_the_profiles_is_a_blocker(folder):
    found = all_checks.check(kimi(folder, layers=60), ["vllm-base"])["target"]
    assert "config.json says num_hidden_layers 61, the profile 60" in words(found)


@pytest.mark.slow
def test_without_a_gpu_it_says_what_it_could_not_look_at(folder, monkeypatch):
    monkeypatch.setattr(gpus, "_library", lambda: None)
    found = all_checks.check(kimi(folder), ["vllm-base"])["machine"]
    assert "no GPU can be looked at here; the profile expects 8" in words(found)


class Nvml(types.ModuleType):
    """A driver with two GPUs of 96 GiB on different CPU sockets."""

    NVMLError, NVML_CLOCK_SM = RuntimeError, 1
    NVML_P2P_CAPS_INDEX_READ, NVML_P2P_STATUS_OK = 0, 0

    def __init__(self, name=b"NVIDIA RTX PRO 6000", free=90, peer=0):
        super().__init__("pynvml")
        self.name, self.free, self.peer = name, free, peer

    def nvmlSystemGetDriverVersion(self):
        return "580.1"

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, i):
        return i

    def nvmlDeviceGetName(self, _):
        return self.name

    def nvmlDeviceGetMemoryInfo(self, _):
        return types.SimpleNamespace(total=96 * 2**30, free=self.free * 2**30, used=(96 - self.free) * 2**30)

    def nvmlDeviceGetTopologyCommonAncestor(self, a, b):
        return 50

    def nvmlDeviceGetP2PStatus(self, a, b, _):
        return self.peer

    def nvmlDeviceGetPowerUsage(self, _):
        return 300_000

    def nvmlDeviceGetClockInfo(self, *_):
        return 2400


@pytest.mark.parametrize(
    "nvml, level, said",
    [
        (Nvml(), "blocker", "2 GPUs, the profile expects 8"),
        (Nvml(), "blocker", "GiB, 2 GPUs have 192"),
        (Nvml(name="Other"), "warning", "the GPUs are Other, the profile expects RTX PRO 6000"),
        (Nvml(peer=3), "warning", "no peer access"),
        (Nvml(), "note", "between CPU sockets, peer access"),
    ],
)
@pytest.mark.slow
def test_gpus_are_held_against_the_profile(folder, monkeypatch, nvml, level, said):
    monkeypatch.setattr(gpus, "_library", lambda: nvml)
    assert said in words(all_checks.check(kimi(folder), ["vllm-base"])["machine"], level)


def test_gpus_are_sampled_during_a_cell(monkeypatch):
    monkeypatch.setattr(gpus, "_library", lambda: Nvml())
    sampler = gpus.Sampler(period_s=0.01)
    sampler.start()
    import time

    time.sleep(0.2)
    assert sampler.stop() == {"power_w": 600.0, "memory_gib": 12.0, "sm_clock_mhz": 2400.0}
    monkeypatch.setattr(gpus, "_library", lambda: None)
    quiet = gpus.Sampler()
    quiet.start()
    assert quiet.stop() is None


@pytest.mark.slow
def test_a_missing_engine_drafter_and_target_are_blockers(tmp_path):
    profile = kimi(tmp_path / "nowhere")
    found = all_checks.check(profile, ["sglang-eagle3-own"])
    assert "the target is not at" in words(found["target"])
    assert "drafter own-k2.5 is not at" in words(found["sglang-eagle3-own"])
    assert "has no sglang" in words(found["sglang-eagle3-own"])


@pytest.mark.slow
def test_a_draft_model_of_another_vocabulary_is_a_blocker(tmp_path):
    content = load("single-gpu").model_dump()
    for place, size in (("target", 128256), ("small", 32000)):
        (tmp_path / place).mkdir()
        (tmp_path / place / "config.json").write_text(json.dumps({"vocab_size": size}))
    content["target"]["path"] = str(tmp_path / "target")
    content["drafters"]["small"]["path"] = str(tmp_path / "small")
    profile = Profile.model_validate(content)
    found = all_checks.check(profile, ["vllm-draft-model"])["vllm-draft-model"]
    assert "draft model small knows 32000 tokens, the target 128256" in words(found)
    (tmp_path / "small" / "config.json").write_text(json.dumps({"vocab_size": 128256}))
    assert "knows" not in words(all_checks.check(profile, ["vllm-draft-model"])["vllm-draft-model"])
    (tmp_path / "small" / "config.json").unlink()
    (tmp_path / "small").rmdir()
    assert "draft model small is not at" in words(all_checks.check(profile, ["vllm-draft-model"])["vllm-draft-model"])


@pytest.mark.slow
def test_the_lab_is_ready_or_says_what_will_be_made():
    found = all_checks.check(load("lab-cpu"))
    assert not [f.text for place in found.values() for f in place if f.level == "blocker" and "memory" not in f.text]

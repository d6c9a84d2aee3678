"""What a machine is: the same facts must give the same identity in every release, or no published cell is found."""

from runners.core import gpus, provenance


def test_gpus_are_written_as_nvidia_smi_does(monkeypatch):
    found = [gpus.Gpu("NVIDIA H200", 143771 / 1024, 140.0, "580.1")] * 2
    monkeypatch.setattr(gpus, "found", lambda: found)
    assert provenance.hardware()["gpus"] == ["NVIDIA H200, 143771 MiB"] * 2
    assert provenance.collect()["gpu_drivers"] == ["580.1"]
    monkeypatch.setattr(gpus, "found", lambda: None)
    assert provenance.hardware()["gpus"] == [] == provenance.collect()["gpu_drivers"]


def test_an_identity_leaves_the_memory_out():
    facts = {"cpu": "x", "cores": 2, "memory_gib": 7.8}
    assert provenance.identity(facts) == provenance.identity(facts | {"memory_gib": 7.9})
    assert provenance.identity(facts) != provenance.identity(facts | {"cores": 4})
    assert provenance.identity(facts) == "727b44c9"

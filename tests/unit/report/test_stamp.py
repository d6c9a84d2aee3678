"""Where a verdict comes from, in a sentence."""

import json

import pytest
import synthetic_runs

from runners.report.chapters.verdict import stamp

PROFILE = synthetic_runs.PROFILE


@pytest.mark.parametrize(
    "gpus, said",
    [
        ([], "16 cores of Some CPU;"),
        (
            ["NVIDIA H200, 143771 MiB"] * 2,
            "16 cores of Some CPU, 2 x NVIDIA H200, 143771 MiB;",
        ),  # as provenance has it
        ([{"name": "NVIDIA A100"}], "16 cores of Some CPU, 1 x NVIDIA A100;"),
    ],
)
def test_the_machine_is_named_with_its_gpus(tmp_path, gpus, said):
    folder = synthetic_runs.write(tmp_path, repeats=1, prompts=2) / PROFILE / "llamacpp-base"
    hardware = {"cpu": "Some CPU", "cores": 16, "gpus": gpus}
    (folder / "environment.json").write_text(json.dumps({"hardware": hardware}))
    assert f"Measured on {said}" in stamp.sentence(tmp_path, PROFILE)

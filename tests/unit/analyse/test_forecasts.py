"""Forecasts: made only for what is not measured, kept with their time, and scored only if they came first."""

import json

import numpy as np
import pandas as pd
import pytest
import synthetic_runs

from runners.analyse import forecast_models, forecast_sources, forecasts, machines
from runners.claims import measured_values
from runners.commands import forecast
from runners.core import paths, provenance
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.report.chapters.payoff import forecasts as forecasts_chapter
from runners.serve import drafter_files, model_files

PROFILE = synthetic_runs.PROFILE
LATE = "llamacpp-eagle3-untrained"


@pytest.fixture(autouse=True)
def a_machine_that_measured_nothing(monkeypatch):
    """The published runs may be of the very machine that runs this test."""
    monkeypatch.setattr(provenance, "machine_id", lambda: "00000000")


@pytest.fixture
def runs(tmp_path):
    missing = ("vllm-eagle3-untrained", LATE)
    return synthetic_runs.write(tmp_path, repeats=2, prompts=8, missing=missing)


def test_survival_goes_on_with_the_last_known_share():
    assert forecast_sources.extended([0.5, 0.3, 0.2], 2) == [0.5, 0.3]
    assert forecast_sources.extended([0.5, 0.25], 4) == pytest.approx([0.5, 0.25, 0.125, 0.0625])
    assert forecast_sources.extended([0.4], 3) == pytest.approx([0.4, 0.16, 0.064])
    assert forecast_sources.extended([], 2) == [0.0, 0.0] == forecast_sources.extended([0.0], 2)


@pytest.mark.slow
def test_forecasts_are_for_what_is_not_measured_and_scored_only_if_they_came_first(runs):
    profile = load(PROFILE)
    count = forecasts.write(profile, "full", runs)
    made = forecasts.read(runs, PROFILE)
    assert count == len(made) and LATE in set(made.configuration)
    assert set(made[made.configuration == LATE].concurrency) == {1, 4, 16}
    assert set(made.model) == {forecast_models.MEAN}
    # The cells name no machine, so nothing says that they are this one's: no interval.
    assert made.speed_up_lo.isna().all() and made.speed_up_hi.isna().all()
    assert forecasts.scored(runs, PROFILE).empty  # nothing was measured since
    assert forecasts.write(profile, "full", runs) == 0  # a report that goes on does not tell the same again
    assert len(forecasts.read(runs, PROFILE)) == count

    synthetic_runs.write(runs, repeats=2, prompts=8, missing=("vllm-eagle3-untrained",))
    assert forecasts.scored(runs, PROFILE).empty  # cells that began before the forecast prove nothing
    place = runs / PROFILE / forecasts.FILE
    made.assign(made_at="2025-12-31T23:59:59+00:00").to_csv(place, index=False)
    scores = forecasts.scored(runs, PROFILE)
    assert set(scores.configuration) == {LATE} and len(scores) == 6
    assert scores.error.astype(float).notna().all() and scores.within.isna().all()
    assert len(forecasts.of_latest_form(scores)) == 6 and forecasts.of_latest_form(scores.iloc[:0]).empty
    assert "none has an interval" in forecasts_chapter.ahead_sentence(scores)
    assert len(forecasts_chapter.ahead_table(scores)) == 6
    assert LATE not in set(forecasts.make(profile, "full", runs).configuration)


@pytest.mark.slow
def test_a_synthetic_accept_length_is_known_and_another_k_follows_from_positions():
    sweeps = load("lab-cpu-sweeps")
    made = forecasts.make(sweeps, "full", paths.LOCAL_RUNS / "nowhere")
    chat = made[(made.workload == "chat") & (made.concurrency == 1)].set_index("configuration")
    if "llamacpp-forced-2.0" in chat.index:  # until the sweeps themselves are published they are all to come
        assert chat.loc["llamacpp-forced-2.0", "tokens_per_step"] == 2.0
    lab = forecast_sources.Source(paths.PUBLISHED_RUNS, PROFILE)
    digest = drafter_files.digest(load(PROFILE), "aligned")
    lengths = [lab.length("vllm", digest, "chat@256", k) for k in (1, 2, 3, 5)]
    assert 1 < lengths[0][0] < lengths[1][0] < lengths[2][0] < lengths[3][0] < 4
    assert lengths[0][1] == "positions of vllm-eagle3-aligned"
    assert lab.length("vllm", "another drafter", "chat", 3) is None


@pytest.mark.slow
def test_a_longer_context_is_guessed_until_it_is_measured_and_a_point_seen_under_another_name_is_seen(monkeypatch):
    lab = forecast_sources.Source(paths.PUBLISHED_RUNS, PROFILE)
    assert forecast_sources.prompt_tokens("chat@640", [lab]) == lab.prompt("chat") + 640
    assert forecast_sources.prompt_tokens("nothing@640", [lab]) is None
    monkeypatch.setattr(forecasts, "sources", lambda profile, runs: [lab])
    made = forecasts.make(load("lab-cpu-sweeps"), "full", paths.LOCAL_RUNS / "nowhere")
    seen = made.set_index(forecasts.POINT).seen
    assert seen["vllm-eagle3-k3", "chat", 4]  # lab-cpu calls it vllm-eagle3-aligned
    assert not seen["vllm-eagle3-k2", "chat", 4] and not seen["llamacpp-eagle3-k3", "chat@640", 1]


def test_forecasts_of_the_first_form_stay_as_they_were_made():
    """The published ones of the first sweeps name no terms: the model that made them knew no prompts and no context."""
    made = forecasts.read(paths.PUBLISHED_RUNS, "lab-cpu-sweeps")
    first = made[made.terms == forecasts.FIRST_TERMS]
    assert len(first) and first.speed_up.notna().all() and first.prompt.isna().all()
    assert set(made.model) == {forecasts.FIRST_MODEL}  # files without that column hold the step model's alone


@pytest.mark.slow
def test_cells_served_with_another_drafter_say_nothing_of_this_one(runs):
    """The record beside the cells says which drafter they were served with; the profile names today's."""
    folder, profile = runs / PROFILE / "vllm-eagle3-aligned", load(PROFILE)
    now = drafter_files.digest(profile, "aligned")
    folder.mkdir(exist_ok=True)
    weights = model_files.provenance(model_files.planned_files(profile, "aligned"))["drafter_folder"]
    for record, told in [
        ({"drafter": "0123456789ab"}, "0123456789ab"),
        ({"argv": ["--model", "$CACHE/drafters/untrained-303c61b36dcc/hf"]}, "303c61b36dcc"),
        ({"checksums": {"drafter_folder": weights}}, now),
        ({"checksums": {"drafter_folder": "another"}}, None),
        ({}, None),
    ]:
        (folder / "environment.json").write_text(json.dumps(record))
        assert forecast_sources.Source(runs, PROFILE).drafter_of["vllm-eagle3-aligned"] == told
    (folder / "environment.json").unlink()
    assert forecast_sources.Source(runs, PROFILE).drafter_of["vllm-eagle3-aligned"] == now


@pytest.mark.slow
def test_an_interval_is_made_of_this_machines_kept_out_cells(monkeypatch):
    lab = forecast_sources.Source(paths.PUBLISHED_RUNS, PROFILE)
    assert np.isnan(lab.half_width("vllm", length_known=False))  # not the machine that runs this test
    monkeypatch.setattr(provenance, "machine_id", lambda: lab.machine.split()[0])
    synthetic, forecast_too = (lab.half_width("vllm", length_known=known) for known in (True, False))
    assert 0 < synthetic < forecast_too < 0.5
    errors = lab.errors("vllm")
    assert errors.log_cost.notna().all()
    assert (errors.log_speed_up.isna() == errors.configuration.str.contains("headless")).sum() >= len(errors) - 6
    if len(lab.errors("llamacpp")) < 19:
        assert np.isnan(lab.half_width("llamacpp", length_known=True))


@pytest.mark.slow
def test_the_command_prints_what_would_be_forecast_and_how_it_is_scored(runs, capsys):
    profile = load(PROFILE)
    assert forecast.show(profile, "full", runs, dry_run=True) == 0
    said = capsys.readouterr().out
    assert LATE in said and "not stored" in said and "How they are scored" in said and "not measured here" in said
    assert forecasts.read(runs, PROFILE).empty
    forecast.show(profile, "full", runs)
    assert "stored in forecasts.csv" in capsys.readouterr().out and len(forecasts.read(runs, PROFILE))


@pytest.mark.slow
def test_a_forecast_from_another_machines_cells_says_so_and_stands_apart(runs):
    def note(**hardware):
        for folder in (runs / PROFILE).iterdir():
            if folder.is_dir():
                (folder / "environment.json").write_text(json.dumps({"hardware": {"cores": 2, **hardware}}))

    note(cpu="one")
    forecasts.write(load(PROFILE), "full", runs)
    place = runs / PROFILE / forecasts.FILE
    # A hash of digits alone, or one that reads as a number, stays the text that it is.
    for told in ("62620662", "1234e567"):
        frame = pd.read_csv(place, dtype=str).assign(machine=told, made_at="2025-12-31T23:59:59+00:00")
        frame.to_csv(place, index=False)
        assert set(forecasts.read(runs, PROFILE).machine) == {told}
    synthetic_runs.write(runs, repeats=2, prompts=8, missing=("vllm-eagle3-untrained",))
    note(cpu="one")
    scores = forecasts.scored(runs, PROFILE)
    assert len(scores) and scores.elsewhere.astype(bool).all()
    assert "another machine's" in forecasts_chapter.ahead_sentence(scores)
    assert set(forecasts_chapter.ahead_table(scores)["fitted to"]) == {"another machine"}
    assert measured_values.of_forecasts(runs, PROFILE) == {}  # no claim about this machine rests on them
    here = machines.identities(runs, PROFILE).pop()
    for own in (here, ""):  # files from before machines were named hold one machine's forecasts
        frame.assign(machine=own).to_csv(place, index=False)
        assert not forecasts.scored(runs, PROFILE).elsewhere.astype(bool).any()


@pytest.mark.slow
def test_this_machines_cells_come_before_another_machines_nearer_ones(runs, monkeypatch, tmp_path):
    sweeps = load("lab-cpu-sweeps")
    far = tmp_path / "published"
    monkeypatch.setattr(paths, "PUBLISHED_RUNS", far)
    synthetic_runs.write(far, repeats=1, prompts=8)
    (far / PROFILE).rename(far / sweeps.name)
    for home, cpu in ((far / sweeps.name, "theirs"), (runs / PROFILE, "ours")):
        record = {"hardware": {"cores": 2, "cpu": cpu}}
        (home / "vllm-base" / "environment.json").write_text(json.dumps(record))
    names = {}
    for machine in ("ours", "theirs"):
        here = provenance.identity({"cores": 2, "cpu": machine})
        monkeypatch.setattr(provenance, "machine_id", lambda here=here: here)
        names[machine] = [s.name for s in forecast_sources.sources(sweeps, runs)]
    assert names["ours"] == ["lab-cpu, this machine", "lab-cpu-sweeps, published"]
    assert names["theirs"] == ["lab-cpu-sweeps, published", "lab-cpu, this machine"]


def test_without_forecasts_it_says_so_and_a_torn_file_is_named(tmp_path):
    assert "not measured here" in forecasts_chapter.ahead_sentence(forecasts.scored(tmp_path, PROFILE))
    place = tmp_path / PROFILE / forecasts.FILE
    place.parent.mkdir(parents=True)
    place.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="forecasts.csv has no column"):
        forecasts.read(tmp_path, PROFILE)
    pd.DataFrame(columns=forecasts.COLUMNS).to_csv(place, index=False)
    assert forecasts.read(tmp_path, PROFILE).empty

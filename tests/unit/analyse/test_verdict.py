"""The verdict: what to serve, whether speculation pays and why, the file, and what the prose may quote."""

import json
import math

import pandas as pd
import pytest
import synthetic_runs
from scipy import stats

from runners.analyse import inference, results, step_cost
from runners.analyse.verdict import decide, explain, next_hour, store
from runners.analyse.verdict.answers import USES
from runners.analyse.verdict.to_serve import to_serve
from runners.core import format
from runners.core.errors import UserError
from runners.profiles.load import load
from runners.report.chapters.verdict import pays as pays_chapter
from runners.report.chapters.verdict import summary, what_to_serve

PROFILE = synthetic_runs.PROFILE


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return synthetic_runs.write(tmp_path_factory.mktemp("runs"), repeats=5, prompts=16)


@pytest.fixture(scope="module")
def found(runs):
    return decide.of(runs, PROFILE)


def _row(**changed):
    row = dict(method="eagle3", tokens_per_step=1.4, step_cost=1.7, ceiling=4, drafted=300, accepted=40, pays="no")
    return row | {"capped_at": math.nan, "running": 16, "base_running": 16} | changed


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (_row(), "tokens per step 1.40 below break-even 1.70"),
        (_row(accepted=0, tokens_per_step=1.0), "nothing accepted (0 of 300 drafted)"),
        (_row(accepted=1, tokens_per_step=1.0), "next to nothing accepted (1 of 300 drafted)"),
        (_row(drafted=0, accepted=0), "nothing was drafted"),
        (_row(method="ngram", tokens_per_step=2.0, pays="yes"), "tokens per step 2.00 above break-even 1.70"),
        (_row(tokens_per_step=2.0), "prefill and queueing"),
        (_row(capped_at=48), "capped at 48"),
        (_row(running=9), "9 requests ran at once, 16 without speculation"),
        (_row(step_cost=math.nan), format.NOT_MEASURED),
    ],
)
def test_cause(row, said):
    assert said in explain.cause(row)


@pytest.mark.parametrize(
    ("row", "eager", "kind"),
    [
        (_row(), False, "acceptance"),
        (_row(step_cost=3.6), False, "step cost"),  # no drafter we know has 3.6 of 4
        (_row(step_cost=4.2), False, "step cost"),
        (_row(capped_at=48), False, "cap"),
        (_row(running=9), False, "capacity lost"),
        (_row(), True, "eager fallback"),
        (_row(tokens_per_step=2.0), False, "outside decoding"),
        (_row(pays="undecided"), False, ""),
        (_row(step_cost=math.nan), False, ""),
    ],
)
def test_kind_of_loss(row, eager, kind):
    assert explain.kind(row, eager) == kind
    assert explain.cause(row, eager).startswith(f"{kind}: " if kind else ("tokens", format.NOT_MEASURED))


def test_graphs_lost_to_speculation_are_seen_in_the_load_phases(tmp_path):
    for name, phases in (("vllm-base", ["loading weights", "capturing graphs"]), ("vllm-ngram", ["loading weights"])):
        folder = tmp_path / PROFILE / name
        folder.mkdir(parents=True)
        (folder / "status.json").write_text("{}")
        starts = [{"ready_seconds": 1.0, "phases": [{"name": phase} for phase in phases]}]
        (folder / "timeline.json").write_text(json.dumps(starts))
    assert results.eager(tmp_path, PROFILE) == {"vllm-ngram"}
    assert results.eager("published", "lab-cpu") == set()  # eager on both sides is no fallback


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (_row(), "accept length 1.40 → 1.70"),
        (_row(), "drafting and verifying 43% cheaper"),
        (_row(step_cost=4.2), "even a perfect drafter yields 4 tokens"),
        (_row(method="ngram"), "text that repeats more: tokens per step 1.40 → 1.70"),
        (_row(tokens_per_step=2.0, pays="yes"), "fewer than 1.70 tokens per step"),
        (_row(tokens_per_step=2.0), "less time outside decoding"),
        (_row(tokens_per_step=2.0, pays="undecided"), "more starts"),
    ],
)
def test_flip(row, said):
    assert said in explain.flip(row)


def answer(found, use, workload):
    return next(a for a in found["answers"] if (a["use"], a["workload"]) == (use, workload))


def test_one_answer_for_each_use_and_workload_and_none_for_a_pool(found):
    assert [(a["use"], a["workload"]) for a in found["answers"]] == [(u, w) for u in USES for w in ("chat", "edit")]
    single, many = answer(found, "single_stream", "edit"), answer(found, "throughput", "edit")
    assert single["serve"].startswith("llamacpp") and single["concurrency"] == 1
    assert (many["serve"], many["concurrency"], many["clear"]) == ("vllm-ngram", 16, True)
    assert many["base"] == "vllm-base" and many["over_base"][1] > 1 and many["ratio"][1] > 1
    assert [c["configuration"] for c in many["among"]] == ["vllm-ngram"]
    assert many["value"] == many["end_to_end"] > many["decode"]


def test_each_engine_and_precision_has_its_own_answer(found):
    engines = {e["engine"]: e for e in answer(found, "throughput", "chat")["engines"]}
    assert {(e["engine"], e["precision"]) for e in engines.values()} == {("llamacpp", "Q4_1"), ("vllm", "float32")}
    assert engines["llamacpp"]["serve"] == "llamacpp-base"
    assert {(t["engine"], t["to_reference"]) for t in found["text"]} == {("llamacpp", 0.97), ("vllm", 0.97)}


def test_points_answer_and_reason(found):
    points = {(p["configuration"], p["workload"], p["concurrency"]): p for p in found["points"]}
    assert points["llamacpp-eagle3-untrained", "chat", 1]["pays"] == inference.NO
    assert "nothing accepted" in points["llamacpp-eagle3-untrained", "chat", 1]["cause"]
    assert points["vllm-ngram", "edit", 1]["pays"] == inference.YES
    assert points["llamacpp-ngram", "chat", 1]["pays"] == inference.NO


def test_what_is_missing_is_said(found):
    measured = {c["configuration"] for c in found["points"]} | {"llamacpp-base", "vllm-base"}
    assert {r["configuration"] for r in found["not_measured"]} == set(load(PROFILE).configurations) - measured
    assert found["void_cells"] == 1
    assert "`vllm-eagle3-untrained`: not measured here" in summary.section(found)


def test_a_mix_weighs_what_was_measured_in_every_workload(runs):
    cells, requests = results.cells(runs, PROFILE), results.requests(runs, PROFILE)
    cells.loc[(cells.configuration == "vllm-ngram") & (cells.workload == "chat"), "status"] = "void"
    mix = {"chat": 0.5, "edit": 0.5}
    found = decide.decide(cells, requests, results.statuses(runs, PROFILE), PROFILE, mix=mix)
    assert answer(found, "throughput", "edit")["serve"] == "vllm-ngram"
    mixed = answer(found, "throughput", "mix")
    assert mixed["serve"] != "vllm-ngram" and mixed["mix"] == mix
    assert (mixed["serve"], mixed["concurrency"]) == ("llamacpp-base", 16)
    own = cells[(cells.configuration == "llamacpp-base") & (cells.concurrency == 16)]
    speeds = own.groupby("workload").output_tokens_per_second.mean()
    assert mixed["value"] == pytest.approx(stats.hmean(speeds), rel=1e-4)
    assert "For the mix (chat 50%, edit 50%), many requests at once: " in what_to_serve.answer_sentence(mixed)
    assert to_serve(found, "throughput") == ("llamacpp-base", "It is the choice for the profile's mix of workloads.")


def test_an_open_loop_is_no_speed(runs):
    cells, requests = results.cells(runs, PROFILE), results.requests(runs, PROFILE)
    given = cells[cells.configuration == "vllm-base"].assign(
        configuration="open", load="open", output_tokens_per_second=1e6
    )
    both = pd.concat([cells.assign(load=None), given], ignore_index=True)
    found = decide.decide(both, requests, results.statuses(runs, PROFILE), PROFILE)
    assert "open" not in {c["configuration"] for a in found["answers"] for c in a["among"]}


@pytest.mark.slow
def test_write_and_load(runs, found):
    store.write(runs, PROFILE, found)
    assert store.load(runs, PROFILE) == found
    path = runs / PROFILE / "verdict.json"
    text = path.read_text()
    assert "NaN" not in text and json.loads(text)["schema_version"] == 2
    store.write(runs, PROFILE, decide.of(runs, PROFILE))
    assert path.read_text() == text


def test_load_says_what_to_do(tmp_path):
    with pytest.raises(UserError, match=f"make report PROFILE={PROFILE}"):
        store.load(tmp_path, PROFILE)
    folder = tmp_path / PROFILE
    folder.mkdir()
    (folder / "verdict.json").write_text("{")
    with pytest.raises(UserError, match="not JSON"):
        store.load(tmp_path, PROFILE)


def test_a_verdict_of_an_earlier_version_is_decided_again(runs, found, tmp_path):
    old = {"schema_version": 1, "uses": {}, "points": []}
    path = tmp_path / PROFILE / "verdict.json"
    path.parent.mkdir()
    path.write_text(json.dumps(old))
    with pytest.raises(UserError, match="must have schema_version 2, and it has 1; run: make report"):
        store.load(tmp_path, PROFILE)
    assert decide.stored(tmp_path, PROFILE)["answers"] == []
    path.write_text(json.dumps(old | {"schema_version": 2}))
    with pytest.raises(UserError, match="must have `answers` and `points`"):
        decide.stored(tmp_path, PROFILE)


def test_tables(found):
    table = what_to_serve.answers_table(found)
    assert table.serve.notna().all() and set(table.workload) == {"chat", "edit"}
    assert len(what_to_serve.engines_table(found)) == 2 * len(table)
    assert len(pays_chapter.points_table(found)) == len(found["points"]) == 18
    assert pays_chapter.pays_table(found).drop(columns="configuration").to_numpy().sum() == 18
    assert summary.section(found).startswith("**Single stream**\n\n- For chat, one request at a time: ")
    assert decide.costs(found).columns.tolist() == step_cost.COLUMNS


def test_sentences_of_the_answers(found):
    clear = what_to_serve.answer_sentence(answer(found, "throughput", "edit"))
    assert clear.startswith("For edit, many requests at once: serve vllm-ngram at C=16 (")
    assert "times vllm-base)" in clear and "clearly ahead" in clear
    assert "llama.cpp serves Q4_1, whose answers equal the first 97%" in what_to_serve.text_sentence(found)
    assert "`make serve` starts `llamacpp-base`, the choice for many" in what_to_serve.serve_sentence(found)


def test_nothing_measured(tmp_path):
    found = decide.of(tmp_path, PROFILE)
    assert found["answers"] == found["points"] == found["text"] == []
    assert len(found["not_measured"]) == len(load(PROFILE).configurations)
    assert what_to_serve.answers_table(found).empty and what_to_serve.engines_table(found).empty
    for text in (
        what_to_serve.use_sentences(found, "throughput"),
        what_to_serve.text_sentence(found),
        what_to_serve.serve_sentence(found),
        pays_chapter.pays_sentence(found),
        summary.section(found),
    ):
        assert format.NOT_MEASURED in text
    assert decide.costs(found).empty


def test_what_more_time_would_decide(found):
    more, answers = found["more"], [p["pays"] for p in found["points"]]
    assert (more["points"], more["open"]) == (len(answers), answers.count("undecided"))
    assert (more["minutes"] is None) == (more["decidable"] + more["unknown"] == 0)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((9, 3, 0, 2, 25.0), "3 of 9 points are open; about 25 min more would decide 2 of them, if"),
        ((9, 2, 0, 2, 25.0), "2 of 9 points are open; about 25 min more would decide them, if"),
        ((9, 1, 0, 1, 1.0), "1 of 9 points is open; about 60 s more would decide it, if"),
        ((9, 3, 0, 0, None), "3 of 9 points are open; their ratios are too near a bound"),
        (
            (9, 9, 9, 0, 17.0),
            "9 of 9 points are open, 9 of them without a known error: one more start of each takes about",
        ),
        ((9, 0, 0, 0, None), "No point is open: all 9 are decided."),
        ((0, 0, 0, 0, None), format.NOT_MEASURED),
    ],
)
def test_a_sentence_says_what_more_time_would_decide(counts, said):
    more = dict(zip(("points", "open", "unknown", "decidable", "minutes"), counts, strict=True))
    assert said in pays_chapter.open_sentence({"more": more})


def test_an_open_point_costs_its_starts_and_its_blocks_on_both_sides():
    same = dict(profile="made-up", engine="vllm", workload="chat", concurrency=1, status="ok", seconds=10.0)
    same |= dict(stream_tokens_per_second_p50=1.0, ttft_ms_p50=1.0, tpot_ms_p50=1.0, forced_accept_length=math.nan)
    same |= dict(k=5, steps=40, drafted=200, accepted=30, accepted_per_position=[30], output_tokens=100, requests=1)
    rows = [
        same | dict(configuration=name, method=method, key=f"{name}{start}", round=start, repeat=start)
        | dict(output_tokens_per_second=speed)
        for start in range(3)
        for name, method, speed in (("plain", "none", 100.0), ("drafts", "ngram", 102.0 + 6 * start))
    ]  # fmt: skip
    more = next_hour.next_hour(pd.DataFrame(rows), 0.03, {"plain": 60.0, "drafts": 30.0})
    assert (more["points"], more["open"], more["decidable"]) == (1, 1, 1)
    starts = more["minutes"] * 60 / (60 + 30 + 10 + 10)
    assert starts >= 1 and starts == pytest.approx(round(starts))

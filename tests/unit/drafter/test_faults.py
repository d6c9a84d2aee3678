"""The table of faults: what was served beside what was replayed, and what explains exactly 1.00."""

import json

import pandas as pd
import pytest

from runners.core import acceptance_math, hashes
from runners.core.format import NOT_MEASURED
from runners.drafter import experiments, fault_injection, faults, published_results, serve_and_count
from runners.drafter import replay as drafter_replay
from runners.engines.engine import Files
from runners.profiles import load
from runners.report.chapters import alignment as alignment_chapter
from runners.report.chapters import drafter as drafter_chapter
from runners.report.charts import alignment as alignment_charts
from runners.report.charts import drafter as drafter_charts
from runners.serve import model_files

LAB = load.load("lab-cpu")


def row(fault, accepted, per_position, replayed):
    served = {"steps": 100, "accepted": accepted, "accepted_per_position": per_position}
    served["accept_length"] = 1 + accepted / 100
    return {"configuration": "c", "fault": fault, "served": served, "replayed": {"accept_length": replayed}}


ROWS = [row("as-trained", 90, [55, 25, 10], 1.91), row("random-head", 0, [0, 0, 0], 1.0)]


def test_a_fault_reads_one_by_two_decimals():
    table = published_results.fault_table(ROWS)
    assert list(table["reads_one"]) == [False, True]
    assert table["survival"][0] == [0.55, 0.25, 0.10]
    shown = alignment_chapter.faults_table(table)
    # Served: a zero drafted beyond a limit, accepted where the text ended; a wrong map's lucky words.
    for steps, accepted, one in ((1007, 1, True), (987, 5, False), (1000, 4, True), (0, 0, False)):
        assert acceptance_math.reads_one(steps, accepted) == one
    assert list(shown["reads 1.00"]) == ["no", "yes"] and shown["served"][0] == 1.9


def test_a_fault_that_reads_one_in_one_engine_alone_says_in_which():
    other = row("random-head", 40, [40, 0, 0], 1.4) | {"configuration": "d"}
    in_one = alignment_chapter.faults_sentence(published_results.fault_table([*ROWS, other]))
    assert f"Read 1.00: {faults.what('random-head')} (in c alone)." in in_one
    assert f"Did not: {faults.what('as-trained')}." in in_one
    in_all = alignment_chapter.faults_sentence(published_results.fault_table(ROWS))
    assert f"Read 1.00: {faults.what('random-head')}." in in_all


def test_each_fault_becomes_a_configuration_of_its_own():
    for fault in ("random-head", "boundary+1"):
        changed, name = fault_injection.with_fault(LAB, "vllm-eagle3-aligned", fault)
        assert changed.configuration(name).drafter == fault
        assert changed.drafters[fault].source == "aligned" and changed.drafters[fault].fault == fault
    assert fault_injection.with_fault(LAB, "vllm-eagle3-aligned", "as-trained") == (LAB, "vllm-eagle3-aligned")


def test_nothing_measured_gives_chapters_that_say_so(tmp_path):
    table = published_results.faults(str(tmp_path), "lab-cpu")
    replay = published_results.replay(str(tmp_path), "lab-cpu")
    slots = published_results.llamacpp_slots(str(tmp_path), "lab-cpu")
    drift = published_results.csv(str(tmp_path), "lab-cpu", "drift.csv", ["source", "boundary", "drift", "to_next"])
    aim = published_results.aim(str(tmp_path), "lab-cpu")
    assert table.empty and replay.empty and slots.empty and drift.empty
    sentences = [
        drafter_chapter.text_sentence(pd.DataFrame()),
        drafter_chapter.training_sentence({}, []),
        drafter_chapter.scaling_sentence(pd.DataFrame()),
        drafter_chapter.replay_sentence(replay),
        drafter_chapter.slots_sentence(slots),
        drafter_chapter.aim_sentence(aim),
        alignment_chapter.faults_sentence(table),
        alignment_chapter.drift_sentence(drift),
    ]
    assert all(NOT_MEASURED in sentence for sentence in sentences)
    for chart in (alignment_charts.faults(table), drafter_charts.replay(replay), drafter_charts.training([])):
        assert NOT_MEASURED in str(chart.to_dict())


def test_faults_stand_in_one_order_whichever_was_served_last():
    later = [ROWS[1], row("from an older version", 1, [1, 0, 0], 1.0), ROWS[0]]
    assert list(published_results.fault_table(later)["fault"]) == ["as-trained", "random-head", "from an older version"]
    other = [r | {"configuration": "b"} for r in ROWS]
    assert list(published_results.fault_table([*ROWS, *other])["configuration"]) == ["b", "b", "c", "c"]


def test_only_vllm_stops_drafting_at_the_drafters_own_limit(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 64}))
    limits = {engine: drafter_replay.position_limit(engine, tmp_path) for engine in ("vllm", "llamacpp", "sglang")}
    assert limits == {"vllm": 64, "llamacpp": None, "sglang": None}


def test_rows_written_by_align_are_read_back(tmp_path):
    place = tmp_path / "lab-cpu" / "alignment"
    place.mkdir(parents=True)
    (place / fault_injection.FILE).write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    (place / "replay.jsonl").write_text(json.dumps(ROWS[0] | {"workload": "chat", "concurrency": 4}) + "\n")
    assert len(published_results.faults(str(tmp_path), "lab-cpu")) == 2
    assert published_results.replay(str(tmp_path), "lab-cpu")["difference"][0] == pytest.approx(1.9 / 1.91 - 1)


def test_charts_are_drawn_from_rows():
    table = published_results.fault_table(ROWS)
    assert "accept_length_served" in str(alignment_charts.faults(table).to_dict())
    drifted = pd.DataFrame({"drift": [0.0, 0.5], "same_text_accept_length": [2.0, 1.5], "accept_length": [1.6, 1.7]})
    assert "same text" in str(alignment_charts.target_drift(drifted).to_dict())
    scaling = pd.DataFrame({"train_tokens": [1000, 2000], "seconds": [60, 120], "accept_length": [1.5, 1.6]})
    assert "2 min" in str(drafter_charts.scaling(scaling).to_dict())
    history = [{"seconds": 60, "top1": [0.5, 0.4], "accept_length": 1.6}]
    assert "top1" in str(drafter_charts.training(history).to_dict())


def test_what_was_made_from_something_else_is_made_again(tmp_path):
    facts = {"text": "a", "drafter": "b"}
    assert not experiments._made(tmp_path, "target_drift.csv", facts)
    experiments._note(tmp_path, "target_drift.csv", facts, "2026-12-01T05:00:00+00:00")
    assert not experiments._made(tmp_path, "target_drift.csv", facts)  # the file itself is not there
    (tmp_path / "target_drift.csv").write_text("noise\n")
    assert experiments._made(tmp_path, "target_drift.csv", facts)
    assert not experiments._made(tmp_path, "target_drift.csv", facts | {"drafter": "another"})


def test_a_new_drafters_row_takes_the_place_of_the_old_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(drafter_replay, "compare", lambda *a: [{"served": {}, "replayed": {}}])
    digests = iter("abcd")
    monkeypatch.setattr(model_files, "files", lambda *a: Files(drafter_folder=tmp_path))
    monkeypatch.setattr(hashes, "noted_sha256", lambda path: next(digests))
    for _ in range(2):
        spec = serve_and_count.ServeSpec(LAB, "vllm-eagle3-aligned", [], 8, [4])
        rows = fault_injection.measure_faults(spec, tmp_path, tmp_path, lambda _: None, ["as-trained"])
    assert [r["digest"] for r in rows] == ["cd"]

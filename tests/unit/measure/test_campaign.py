"""A campaign end to end, against the small stand-in program: blocks, gates, voids, deaths, resuming."""

import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from canned_server import canned
from slowness import WAIT_S, slowness

from runners.core import locks
from runners.core.errors import UserError
from runners.measure import block, campaign, campaign_record, gates
from runners.measure.campaign_run import Open
from runners.measure.ledger import Ledger
from runners.profiles import load
from runners.profiles.attach import Attach
from runners.profiles.points import Load
from runners.serve import from_profile

pytestmark = pytest.mark.slow  # starts servers

FAKE = Path(__file__).parents[2] / "support" / "fake_server.py"


def made(tmp_path, flags=None, **changes):
    """A profile of one base and one speculative configuration on the stand-in."""
    content = {
        "name": "fake",
        "title": "a stand-in",
        "hardware": {"description": "any", "servers_at_once": 2},
        "target": {
            **{"name": "toy", "precision": "none", "layers": 1, "hidden_size": 1, "vocab_size": 1},
            **{"context_length": 64, "bytes_on_disk": 1, "path": str(tmp_path)},
        },
        "drafters": {"toy": {"path": str(tmp_path)}},
        "engines": {"vllm": {"version": "0", "command": [sys.executable, str(FAKE)]}},
        "configurations": {
            "base": {"engine": "vllm", "title": "base", "max_running_requests": 4, "flags": flags or {}},
            "drafting": {
                **{"engine": "vllm", "title": "drafting", "method": "eagle3", "k": 3, "drafter": "toy"},
                **{"max_running_requests": 4, "flags": flags or {}},
            },
        },
        "workload": {
            **{"prompt_sets": ["chat"], "output_tokens": 24, "concurrencies": [1, 4], "default_preset": "quick"},
            "presets": {"quick": {"repeats": {1: 1, 4: 2}, "requests": {1: 2, 4: 4}, "rounds": 3}},
        },
        "budgets": {"vllm": {"default": WAIT_S}},
        "request_timeout_seconds": WAIT_S,
        # The stand-in's words repeat and a test machine is never quiet: those gates have their own tests.
        "gates": {"check_neighbours": False, "distinct_bigram_floor": 0.1},
    }
    for path, value in changes.items():
        section = content
        *parts, last = path.split("__")
        for part in parts:
            section = section[part]
        section[last] = value
    file = tmp_path / "fake.yaml"
    file.write_text(yaml.safe_dump(content))
    return load.load(str(file))


SLOW = {"token-s": 0.03}  # slow enough for the gauge to be polled while requests run


@pytest.fixture(autouse=True)
def no_headroom_needed(monkeypatch):
    """A cell of a second is mostly our own polls: the client's gate has a test of its own (test_gates.py)."""
    monkeypatch.setattr(gates, "HEADROOM", 1)


def nothing_open():
    """A judge that finds every point decided."""
    return [], 2


def run(p, runs, *names, judge=nothing_open, **more):
    return campaign.run(p, None, runs, judge, names=list(names) or None, **more)


def rows_of(runs, name):
    return Ledger(runs / "fake" / name).rows()


def test_both_sides_of_a_block_are_measured_side_by_side_and_never_again(tmp_path):
    p = made(tmp_path, SLOW)
    done = run(p, tmp_path)
    assert done.finished and [v.configurations for v in done.visits] == [["base", "drafting"]]
    base, drafting = rows_of(tmp_path, "base"), rows_of(tmp_path, "drafting")
    assert [r["status"] for r in base + drafting] == ["ok"] * 6, [r["reasons"] for r in base + drafting]
    for mine, other in zip(base, drafting, strict=True):
        same = ["campaign", "start", "block", "workload", "concurrency", "repeat"]
        assert [mine[n] for n in same] == [other[n] for n in same] and {mine["order"], other["order"]} == {0, 1}
        assert mine["key"] != other["key"] and mine["occupancy"] > 0.95
    assert sorted((r["concurrency"], r["repeat"]) for r in base) == [(1, 0), (4, 0), (4, 1)]
    one = next(r for r in base if r["concurrency"] == 1)
    assert one["output_tokens"] == 2 * 24 and one["count_source"] == "usage" and one["machine_gflops"] > 0
    assert 20 / slowness() < one["stream_tokens_per_second_p50"] < 34, "a token every 0.03 s, never sooner"
    folder = tmp_path / "fake" / "base"
    requests = pd.read_parquet(folder / "requests.parquet")
    assert set(requests.role) == {"ramp", "timed", "cut"}
    timed = requests[requests.role == "timed"]
    assert (timed.output_tokens == 24).all() and all(len(s) == 24 for s in timed.token_s)
    assert not set(timed.prompt_id) & set(requests[requests.role == "ramp"].prompt_id)
    assert str(tmp_path.home()) not in json.dumps(json.loads((folder / "environment.json").read_text())["argv"])
    starts = len(Ledger(folder).starts())
    run(p, tmp_path)
    assert rows_of(tmp_path, "base") == base and len(Ledger(folder).starts()) == starts, "no start for nothing"
    again = run(p, tmp_path, more=True)
    assert again.id != done.id and len(rows_of(tmp_path, "base")) == 6, "another campaign stands beside the first"


def test_time_goes_where_the_answer_is_open_until_it_is_decided(tmp_path):
    p = made(tmp_path, SLOW, workload__concurrencies=[1, 4])
    answers = [[Open("drafting", Load("chat", 1), 2)], [Open("drafting", Load("chat", 1), 1)], []]
    done = run(p, tmp_path, judge=lambda: (answers.pop(0), 2))
    points = [{tuple(x) for x in v.points} for v in done.visits]
    assert points == [{("chat", 1), ("chat", 4)}, {("chat", 1)}, {("chat", 1)}]
    assert [v.start for v in done.visits] == [0, 1, 2] and done.most_starts == 3
    rows = [r for r in rows_of(tmp_path, "base") if r["concurrency"] == 1]
    assert [r["start"] for r in rows] == [0, 1, 2] and [r["repeat"] for r in rows] == [0, 1, 2]
    assert len(Ledger(tmp_path / "fake" / "base").starts()) == 3, "a server that has met a comparison is started anew"


def test_no_start_is_made_for_what_no_number_of_starts_decides_or_beyond_the_most(tmp_path):
    p = made(tmp_path, SLOW, workload__concurrencies=[1])
    assert len(run(p, tmp_path, judge=lambda: ([Open("drafting", Load("chat", 1), None)], 1)).visits) == 1
    p = made(tmp_path, SLOW, workload__concurrencies=[1])
    always = lambda: ([Open("drafting", Load("chat", 1), 9)], 1)  # noqa: E731
    assert len(run(p, tmp_path / "b", judge=always).visits) == 3


def test_a_budget_ends_a_campaign_and_voids_nothing(tmp_path):
    p = made(tmp_path, SLOW, timing={"start_seconds": {"vllm": 1.0}, "stream_tokens_per_second": {"vllm": 30.0}})
    always = lambda: ([Open("drafting", Load("chat", 1), 9)], 2)  # noqa: E731
    done = run(p, tmp_path, judge=always, seconds=0.5)
    assert done.finished and not done.visits and not rows_of(tmp_path, "base")


def test_an_interrupted_campaign_goes_on_with_what_is_missing(tmp_path, monkeypatch):
    p, measured, stops = made(tmp_path, SLOW), block.measure, [2]

    def interrupted(*args):
        stops[0] -= 1
        if stops[0] < 0:
            raise KeyboardInterrupt
        return measured(*args)

    monkeypatch.setattr(block, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(p, tmp_path)
    (before,) = campaign_record.load(tmp_path / "fake")
    assert not before.finished and len(before.visits[0].points) == 2 and before.spent_s > 0
    monkeypatch.setattr(block, "measure", measured)
    after = run(p, tmp_path)
    assert after.id == before.id and after.finished and after.seed == before.seed
    rows = rows_of(tmp_path, "base")
    assert {(r["workload"], r["concurrency"]) for r in rows} == {("chat", 1), ("chat", 4)}
    assert len({r["key"] for r in rows}) == len(rows), "no cell twice"


def test_where_one_server_fits_a_start_is_a_round_and_its_sides_share_their_blocks(tmp_path):
    p = made(tmp_path, SLOW, hardware__servers_at_once=1)
    answers = [[Open("drafting", Load("chat", 4), 1)], []]
    done = run(p, tmp_path, judge=lambda: (answers.pop(0), 2))
    assert sorted((v.start, *v.configurations) for v in done.visits) == [
        (0, "base"), (0, "drafting"), (1, "base"), (1, "drafting"),
    ]  # fmt: skip
    blocks = [{(r["start"], r["block"], r["concurrency"]) for r in rows_of(tmp_path, n)} for n in ("base", "drafting")]
    assert blocks[0] == blocks[1] and {c for s, _, c in blocks[0] if s == 1} == {4}


def test_speculation_counts_are_kept_raw(tmp_path):
    p = made(tmp_path, SLOW, workload__concurrencies=[1])
    run(p, tmp_path)
    for row in rows_of(tmp_path, "drafting"):
        assert row["status"] == "ok", row["reasons"]
        assert row["steps"] > 0 and row["drafted"] == 3 * row["steps"] and row["accepted"] == 0
        assert row["equal_prefix_share"] == 1.0


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ({"stop-at": 20}, "not 24 tokens long"),
        ({"no-usage": True}, "no token count"),
        ({"loop": True}, "repeat themselves"),
    ],
)
def test_a_failed_gate_voids_the_cell_and_keeps_it(tmp_path, flags, reason):
    p = made(tmp_path, SLOW | flags, workload__concurrencies=[1], request_timeout_seconds=5)
    run(p, tmp_path, "base")
    (row,) = rows_of(tmp_path, "base")
    assert row["status"] == "void" and reason in " ".join(row["reasons"])


def test_rows_of_other_settings_are_set_aside(tmp_path):
    run(made(tmp_path, SLOW, workload__concurrencies=[1]), tmp_path, "base")
    changed = made(tmp_path, SLOW | {"token-s": 0.031}, workload__concurrencies=[1])
    run(changed, tmp_path, "base", more=True)
    folder = tmp_path / "fake" / "base"
    assert len(rows_of(tmp_path, "base")) == 1 and len((folder / "cells.old.jsonl").read_text().splitlines()) == 1


def test_a_server_capped_below_the_concurrency_is_marked(tmp_path):
    p = made(tmp_path, SLOW, configurations__base__max_running_requests=2)
    run(p, tmp_path, "base")
    assert sorted((r["concurrency"], r["capped_at"]) for r in rows_of(tmp_path, "base")) == [(1, None), (4, 2), (4, 2)]


def test_a_server_that_dies_voids_its_cells_and_never_the_campaign(tmp_path):
    p = made(tmp_path, SLOW | {"die-after-requests": 8}, workload__concurrencies=[4])
    done = run(p, tmp_path, "base")
    rows = rows_of(tmp_path, "base")
    assert done.finished and rows and all(r["status"] == "void" for r in rows)
    assert any("the engine core broke" in " ".join(r["reasons"]) for r in rows)
    status = json.loads((tmp_path / "fake" / "base" / "status.json").read_text())
    assert status["status"] == "not measured here" and "the engine core broke" in status["reason"]


def test_a_drafter_that_cannot_start_leaves_its_base_measured(tmp_path):
    p = made(tmp_path, SLOW, workload__concurrencies=[1])
    broken = {"die": "traceback"}
    p = made(tmp_path, SLOW, workload__concurrencies=[1], configurations__drafting__flags=SLOW | broken)
    run(p, tmp_path)
    assert [r["status"] for r in rows_of(tmp_path, "base")] == ["ok"] and not rows_of(tmp_path, "drafting")
    status = json.loads((tmp_path / "fake" / "drafting" / "status.json").read_text())
    assert status["status"] == "not measured here" and "the drafter has no lm_head" in status["reason"]
    with pytest.raises(UserError, match="the drafter has no lm_head"):
        run(p, tmp_path / "b", "drafting", strict=True)


def test_attached_servers_are_measured_the_same_way(tmp_path):
    with from_profile.running(made(tmp_path, SLOW), "base", tmp_path / "log") as server:
        p = made(tmp_path, configurations__base__attach={"url": server.base_url})
        run(p, tmp_path, "base")
        assert server.alive()
    rows = rows_of(tmp_path, "base")
    assert [r["status"] for r in rows] == ["ok"] * 3 and {r["machine_gflops"] for r in rows} == {None}


def test_a_server_that_runs_already_is_visited_again_and_not_started_anew(tmp_path):
    with from_profile.running(made(tmp_path, SLOW), "base", tmp_path / "log") as server:
        address = {"url": f"{server.base_url}/v1"}
        p = made(tmp_path, configurations__base__attach=address, workload__concurrencies=[1])
        p = p.model_copy(update={"configurations": {"base": p.configurations["base"], "drafting": _at(p, address)}})
        answers = [[Open("drafting", Load("chat", 1), 1)], []]
        done = run(p, tmp_path, judge=lambda: (answers.pop(0), 1))
    assert [v.start for v in done.visits] == [0, 1]
    for name in ("base", "drafting"):
        assert [(r["start"], r["status"]) for r in rows_of(tmp_path, name)] == [(0, "ok"), (1, "ok")]
        assert len(Ledger(tmp_path / "fake" / name).starts()) == 1


def _at(p, address):
    return p.configurations["drafting"].model_copy(update={"attach": Attach(**address)})


def test_a_server_elsewhere_that_refuses_every_request_did_not_die(tmp_path):
    with canned({"/health": "", "/metrics": "vllm:num_requests_running 0\n"}) as url:
        p = made(tmp_path, configurations__base__attach={"url": url}, workload__concurrencies=[1])
        run(p, tmp_path, "base")
    status = json.loads((tmp_path / "fake" / "base" / "status.json").read_text())
    assert status["reason"].startswith("given up after it failed 2 times, last: no answer at C=1: HTTP 501: ")
    assert not any("died" in reason for row in rows_of(tmp_path, "base") for reason in row["reasons"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["measure", "--configuration", "nothing"], "has no configuration 'nothing'; it has: llamacpp-base"),
        (["plan", "--profile", "nothing"], "No profile 'nothing'; give one of kimi"),
        (["plan", "--preset", "deep"], "has no preset 'deep'; it has: quick, standard, full"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words, sentence):
    done = subprocess.run([sys.executable, "-m", "runners", *words], capture_output=True, text=True)
    assert done.returncode == 2 and sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr


def test_a_port_in_use_is_an_error_before_anything_starts(tmp_path):
    with from_profile.running(made(tmp_path), "base", tmp_path / "log") as server:
        port = int(server.base_url.rsplit(":", 1)[1])
        p = made(tmp_path, engines__vllm__port=port)
        with pytest.raises(UserError, match=f"Port {port} on 127.0.0.1 is in use"):
            run(p, tmp_path, "base", strict=True)


def test_a_second_run_into_the_same_folder_is_refused(tmp_path):
    p = made(tmp_path)
    with locks.alone(tmp_path / "fake"), pytest.raises(UserError, match="Another run is measuring into"):
        run(p, tmp_path, "base")


def test_a_program_that_is_not_there_never_ends_a_campaign(tmp_path):
    p = made(tmp_path, engines__vllm__command=["/nowhere/python"])
    assert run(p, tmp_path).finished
    for name in ("base", "drafting"):
        status = json.loads((tmp_path / "fake" / name / "status.json").read_text())
        assert status["status"] == "not measured here" and "/nowhere/python: No such file" in status["reason"]


def test_a_server_without_answers_is_given_up_after_two_starts(tmp_path):
    p = made(tmp_path, {"hang": True}, workload__concurrencies=[1, 4], request_timeout_seconds=1)
    run(p, tmp_path, "base")
    rows = rows_of(tmp_path, "base")
    assert all(r["status"] == "void" for r in rows) and "stall: no token" in " ".join(rows[0]["reasons"])
    assert {r["concurrency"] for r in rows} == {1, 4}, "what it did not come to is void with the reason"
    status = json.loads((tmp_path / "fake" / "base" / "status.json").read_text())
    assert status["status"] == "not measured here" and "no byte for 1 s" in status["reason"]

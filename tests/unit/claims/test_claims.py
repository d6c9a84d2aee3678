"""Claims: expressions, figures and statuses; the file in the repository holds together."""

import datetime
import functools
import json
import math

import pandas as pd
import pytest
import synthetic_runs

from runners.claims import check as claims_check
from runners.claims import claim as claims_claim
from runners.claims import (
    drafter_values,
    expressions,
    measured_values,
    named_values,
    next_steps,
    order_tests,
    value_names,
)
from runners.core import paths
from runners.core.errors import UserError
from runners.core.format import NOT_MEASURED
from runners.report.chapters import claims as claims_chapter

FIGURES = named_values.NamedValues(
    {
        "run.a.chat.c1.speed_up": 1.25,
        "run.a.chat.c1.speed_up_lo": 1.15,
        "run.a.chat.c1.speed_up_hi": 1.35,
        "run.a.chat.c4.speed_up": 1.25,
        "case.x.c1": 60.0,
        "case.x.c128": 90.0,
    },
    {"run.b.chat.c1"},
)
NEVER = named_values.NamedValues({})
DAY = datetime.datetime(2026, 11, 30, tzinfo=datetime.UTC)
WRITTEN = {"date": "2026-11-30T00:00:00+00:00", "commit": "5e70918"}
LAB = {"scope": {"profile": "lab-cpu"}}


def one(**fields):
    return claims_claim.Claim.model_validate({"id": "a", "statement": "it is so", "kind": "definition"} | fields)


def finding(check, **fields):
    return one(**LAB, kind="finding", check=check, written=WRITTEN, **fields)


def status(claim, profile="lab-cpu", later=FIGURES):
    """Its status where `later` is what was measured after it was written, and FIGURES is everything."""
    return claims_check.check([claim], profile, lambda date, names: FIGURES if date is None else later)[0]


@pytest.mark.parametrize(
    "text, value, working",
    [
        ("case.x.c128 / case.x.c1", 1.5, "90 / 60"),
        ("(case.x.c1 + 1) * 2", 122, "(60 + 1) × 2"),
        ("1 < run.a.chat.c1.speed_up <= 2 and not case.x.c1 == 1", True, "1 < 1.25 ≤ 2 and not 60 = 1"),
        ("abs(case.x.c1 - 70) == 10 or max(1, 2) > 3", True, "abs(60 − 70) = 10 or max(1, 2) > 3"),
        ("-case.x.c1 ** 2", -3600, "−60^2"),
    ],
)
def test_an_expression_has_a_value_and_its_working(text, value, working):
    assert expressions.evaluate(text, FIGURES) == (value, working)


@pytest.mark.parametrize(
    "text", ["__import__('os')", "case.x['c1']", "1 +", "lambda: 1", "[1]", "case.x.c1.__class__()"]
)
def test_nothing_else_is_evaluated(text):
    with pytest.raises(expressions.NotAnExpression):
        expressions.evaluate(text, FIGURES)


def test_names_are_found_without_figures():
    assert expressions.names("a.b / c.d > 1 and a.b < e.f") == ["a.b", "c.d", "e.f"]


@pytest.mark.parametrize(
    ("text", "answer", "working"),
    [
        ("above(run.a.chat.c1.speed_up, 1.1)", True, "above(1.25 [1.15, 1.35], 1.1)"),
        ("above(run.a.chat.c1.speed_up, 1.2)", None, "above(1.25 [1.15, 1.35], 1.2)"),
        ("above(run.a.chat.c1.speed_up, 1.4)", False, "above(1.25 [1.15, 1.35], 1.4)"),
        ("below(run.a.chat.c1.speed_up, 1.4)", True, "below(1.25 [1.15, 1.35], 1.4)"),
        ("above(run.a.chat.c4.speed_up, 1.1)", None, "above(1.25, 1.1)"),  # no interval is known
        ("equal(run.a.chat.c1.speed_up, 1.25, 0.1)", True, "equal(1.25 [1.15, 1.35], 1.25, 0.1)"),
        ("equal(run.a.chat.c1.speed_up, 1.25, 0.05)", None, "equal(1.25 [1.15, 1.35], 1.25, 0.05)"),
        ("equal(run.a.chat.c1.speed_up, 1.25, 2, 0.1)", False, "equal(1.25 [1.15, 1.35], 1.25, 2, 0.1)"),
    ],
)
def test_order_and_equality_are_decided_by_whole_intervals(text, answer, working):
    assert expressions.evaluate(text, FIGURES) == (answer, working)


def test_two_intervals_are_put_together_on_the_logarithmic_scale():
    x = order_tests.Measured(2.0, 2.0 / 1.1, 2.0 * 1.1)
    low, high = order_tests.ratio_interval(x, x)
    assert (low, high) == pytest.approx((1.1 ** -math.sqrt(2), 1.1 ** math.sqrt(2)))
    assert (
        order_tests.above(order_tests.Measured(2.2, 2.0, 2.4), x) is None
    )  # each alone would lie outside of the other


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("above(run.a.chat.c1.speed_up, 1.2) and 1 > 2", False),
        ("above(run.a.chat.c1.speed_up, 1.2) and 2 > 1", None),
        ("above(run.a.chat.c1.speed_up, 1.2) or 2 > 1", True),
        ("above(run.a.chat.c1.speed_up, 1.2) or 1 > 2", None),
        ("not above(run.a.chat.c1.speed_up, 1.2)", None),
    ],
)
def test_an_undecided_part_decides_nothing(text, answer):
    assert expressions.evaluate(text, FIGURES)[0] is answer


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("above(run.a.chat.c1.speed_up, 1.2) > 0", "answers, not figures"),
        ("above(run.a.chat.c1.speed_up * 2, 1)", "take names and numbers"),
        ("above(case.x.c1)", "above"),
        ("equal(case.x.c1, 0.1)", "two figures or more"),
        ("below(case.x.c1, 0)", "figures above 0"),
    ],
)
def test_a_test_that_is_written_wrongly_is_refused(text, words):
    with pytest.raises(expressions.NotAnExpression, match=words):
        expressions.evaluate(text, FIGURES)


@pytest.mark.parametrize(
    ("check", "profile", "later", "wanted"),
    [
        ("above(run.a.chat.c1.speed_up, 1.1)", "lab-cpu", FIGURES, claims_claim.REPRODUCED),
        ("above(run.a.chat.c1.speed_up, 1.4)", "lab-cpu", FIGURES, claims_claim.NOT_REPRODUCED),
        ("above(run.a.chat.c1.speed_up, 1.2)", "lab-cpu", FIGURES, claims_claim.UNDECIDED),
        ("above(run.a.chat.c1.speed_up, 1.1)", "lab-cpu", NEVER, claims_claim.NOT_TESTED),
        ("above(run.b.chat.c1.speed_up, 1.1)", "lab-cpu", FIGURES, claims_claim.VOID),
        ("above(run.c.chat.c1.speed_up, 1.1)", "lab-cpu", FIGURES, NOT_MEASURED),
        ("above(run.a.chat.c1.speed_up, 1.1)", "other-box", FIGURES, NOT_MEASURED),
    ],
)
def test_a_finding_is_tested_only_by_what_was_measured_later(check, profile, later, wanted):
    assert status(finding(check), profile, later).status == wanted


def test_invariants_and_definitions_are_checked_on_everything_and_counted_apart():
    claims = [
        one(**LAB, id="b", kind="invariant", check="run.a.chat.c1.speed_up > 1"),
        one(**LAB, id="c", check="run.a.chat.c1.speed_up > 2"),
        finding("above(run.a.chat.c1.speed_up, 1.1)"),
    ]
    checked = [status(claim, later=NEVER) for claim in claims]
    counts = claims_check.counts(checked, "lab-cpu")
    assert counts["invariant"]["held"] == counts["definition"]["broken"] == counts["finding"]["not tested yet"] == 1
    assert claims_chapter.claims_sentence(counts) == (
        "1 finding, each tested only by what was measured after it was written down: 1 not tested yet. "
        "1 of 1 invariants of the tool held. 0 of 1 definitions held."
    )


def test_a_reported_claim_says_what_follows_from_its_figures():
    reported = {"reported": {"value": "1.5", "source": "case"}, "says": "corrected"}
    assert status(one(**reported, check="case.x.c1 < case.x.c128")).status == "corrected"
    assert status(one(**reported, check="case.x.c1 > case.x.c128")).status == claims_claim.DOES_NOT_FOLLOW
    assert status(one(kind="finding", reported={"value": "a", "source": "b"})).status == NOT_MEASURED
    with pytest.raises(UserError, match="case.y.c1, which no file in data/reported holds"):
        status(one(**reported, check="case.y.c1 > 1"))


OURS = "id: a, statement: b, scope: {profile: x}"
FOUND = f"{OURS}, kind: finding, check: 'above(run.a.chat.c1.speed_up, 1)'"
NOW = "written: {date: '2026-12-01T00:00:00+00:00', commit: abcdef0}"
BEFORE = "commit: abcdef0, why: w, check: 1 > 0"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{id: a, statement: b, kind: finding}", "exactly one of `reported` and `scope`"),
        (f"{{{OURS}, kind: finding}}", "needs a `check`"),
        (f"{{{OURS}, check: 1 > 0}}", "kind` is missing"),
        (f"{{{OURS}, kind: opinion, check: 1 > 0}}", "kind` must be 'definition', 'invariant' or 'finding'"),
        (f"{{{FOUND}}}", "a finding needs `written`"),
        (f"{{{FOUND}, written: {{date: yesterday, commit: abcdef0}}}}", "written.date"),
        (f"{{{FOUND}, written: {{date: '2026-12-01T00:00:00', commit: abcdef0}}}}", "written.date"),
        (f"{{{FOUND}, written: {{date: '2026-12-01T00:00:00+00:00', commit: later}}}}", "written.commit"),
        (f"{{{OURS}, kind: finding, check: run.a.chat.c1.step_cost_lo > 1, {NOW}}}", "compare it by its interval"),
        (f"{{{FOUND}, {NOW}, history: [{{date: '2026-12-01T00:00:00Z', change: failed, {BEFORE}}}]}}", "must be later"),
        (
            f"{{{FOUND}, {NOW}, history: [{{date: '2026-11-02T00:00:00Z', change: failed, {BEFORE}}},"
            f" {{date: '2026-11-01T00:00:00Z', change: failed, {BEFORE}}}]}}",
            "begin with the oldest",
        ),
        (
            f"{{{FOUND}, {NOW}, history: [{{date: '2026-11-01T00:00:00Z', change: failed, commit: abcdef0, why: w}}]}}",
            "its `statement`, its `check` or both",
        ),
        (
            "{id: a, statement: b, kind: invariant, reported: {value: c, source: d}, says: consistent, check: 1 > 0}",
            "is arithmetic on reported figures",
        ),
        (f"{{{FOUND}, {NOW}, twin: [c]}}", "twin `c` is not the id of a claim"),
    ],
)
def test_a_fault_of_a_claim_is_one_sentence(tmp_path, text, words):
    place = tmp_path / "claims.yaml"
    place.write_text(f"schema_version: 2\nclaims: [{text}]")
    with pytest.raises(UserError, match="claims.yaml") as caught:
        claims_claim.load(place)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"), [("schema_version: 1\nclaims: []", "schema_version"), ("claims: [", "not valid YAML")]
)
def test_a_fault_in_the_file_is_one_sentence(tmp_path, text, words):
    place = tmp_path / "claims.yaml"
    place.write_text(text)
    with pytest.raises(UserError, match="claims.yaml") as caught:
        claims_claim.load(place)
    assert words in str(caught.value)


def test_every_claim_of_the_case_follows_from_the_reported_figures():
    checked = claims_check.of("published", "no-such-profile")
    reported = [c for c in checked if c.claim.reported]
    assert reported and not [c.claim.id for c in reported if c.status == claims_claim.DOES_NOT_FOLLOW]
    assert {c.claim.finding for c in reported} == {1, 2, 3, 4, 5, 6}
    assert all(c.claim.check or c.claim.settles for c in reported)
    assert {c.status for c in checked if c.claim.scope} == {NOT_MEASURED}


def test_every_source_of_a_claim_is_there():
    entries = (paths.ROOT / "book" / "references.bib").read_text()
    for claim in claims_claim.load():
        if claim.reported and claim.reported.source != "the case team":
            source = claim.reported.source
            assert (paths.ROOT / source).is_file() or f"{{{source}," in entries, source


@pytest.mark.slow
def test_published_claims_are_judged_not_missing():
    """Every claim asks for figures that exist: a mistyped name would read "not measured here" for ever."""
    checked = claims_check.of("published", "lab-cpu")
    missing = [c.claim.id for c in checked if c.claim.scope and c.status == NOT_MEASURED]
    assert not missing


def test_a_name_has_dashes_and_dots_as_underscores_and_plus_in_words():
    assert value_names.word("boundary+1") == "boundaryplus1" and value_names.word(0.2) == "0_2"
    assert value_names.point("run", "vllm-eagle3-k1", "chat", 4) == "run.vllm_eagle3_k1.chat.c4"


def test_a_value_is_void_with_its_point_and_missing_otherwise():
    assert FIGURES("case.x.c1") == (60.0, "60")
    with pytest.raises(named_values.Void):
        FIGURES("run.b.chat.c1.speed_up")
    with pytest.raises(named_values.Missing):
        FIGURES("run.a.chat.c1.step_cost")


def test_a_void_base_takes_its_engine_with_it_and_any_void_workload_the_pool():
    rows = [
        ("vllm-base", "vllm", "none", "void"),
        ("vllm-ngram", "vllm", "ngram", "ok"),
        ("llamacpp-base", "llamacpp", "none", "ok"),
    ]
    cells = pd.DataFrame(rows, columns=["configuration", "engine", "method", "status"])
    cells = cells.assign(workload="chat", concurrency=1)
    points = {f"run.{name}.{workload}.c1" for name in ("vllm_base", "vllm_ngram") for workload in ("chat", "all")}
    assert measured_values.void_points(cells, "run") == points


def test_reported_figures_have_the_names_that_the_table_promises():
    families = {name.partition(".")[0] for name in named_values.reported()}
    assert families == {"case", "k25", "k26", "audit"}


def test_published_alignment_has_a_value_of_each_family():
    found = drafter_values.of_alignment("published", "lab-cpu")
    for family in ("slots", "replay", "drift", "offset", "fault", "target_drift"):
        assert any(name.startswith(f"run.{family}.") for name in found), family
    assert found["run.fault.llamacpp_eagle3_aligned.random_head.served"] == 1.0
    assert drafter_values.of_alignment("published", "no-such-profile") == {}


def test_alignment_without_a_date_tests_no_finding():
    assert drafter_values.of_alignment("published", "lab-cpu", DAY) == {}


def test_values_of_later_cells_come_from_later_cells_alone(tmp_path):
    runs = synthetic_runs.write(tmp_path, repeats=3, prompts=8)
    name = "run.vllm_ngram.edit.c1.speed_up"
    found = named_values.Runs(runs, synthetic_runs.PROFILE)
    everything = found.since(None, [name])
    last = everything.last_measured([name])
    assert everything(name)[0] > 0 and last is not None
    assert found.since(DAY.replace(year=2000), [name]).figures == everything.figures
    with pytest.raises(named_values.Missing):
        found.since(last + datetime.timedelta(days=1), [name])(name)


def test_only_dated_rows_of_an_alignment_test_a_finding(tmp_path):
    folder = tmp_path / "lab-cpu" / "alignment"
    folder.mkdir(parents=True)
    counts = {"steps": 10, "accepted": 5, "accept_length": 1.5}
    row = {"configuration": "a", "workload": "chat", "concurrency": 1, "served": counts, "replayed": counts}
    late = row | {"measured_at": "2026-12-01T00:00:00+00:00"}
    (folder / "replay.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(late)}\n")
    (folder / "slots.csv").write_text("slot,boundary,distance,source\n2,2,0.0,vllm\n2,3,1.0,vllm\n")
    (folder / "made_from.json").write_text(json.dumps({"drift.csv": {"measured_at": "2026-12-01T00:00:00+00:00"}}))
    found = functools.partial(drafter_values.of_alignment, tmp_path, "lab-cpu")
    assert found() == found(DAY) == {"run.replay.worst": 0.0, "run.offset.worst": 0.0}
    assert found(DAY + datetime.timedelta(days=2)) == {}
    assert drafter_values.dates(tmp_path, "lab-cpu")["run.replay"] == DAY + datetime.timedelta(days=1)


def test_a_bound_that_is_a_comparison_is_refused():
    assert next_steps.bound("run.a.chat.c1.speed_up * 2", FIGURES) == (2.5, "1.25 × 2")
    for text in ("run.a.chat.c1.speed_up > 1", "above(run.a.chat.c4.speed_up, 1)"):
        with pytest.raises(UserError, match="a bound is a figure"):
            next_steps.bound(text, FIGURES)

"""Claims: expressions, figures and statuses; the file in the repository holds together."""

import pandas as pd
import pytest

from runners.claims import check as claims_check
from runners.claims import claim as claims_claim
from runners.claims import drafter_values, expressions, measured_values, named_values, value_names
from runners.core import paths
from runners.core.errors import UserError
from runners.core.format import NOT_MEASURED

FIGURES = named_values.NamedValues(
    {"run.a.chat.c1.speed_up": 1.25, "case.x.c1": 60.0, "case.x.c128": 90.0}, {"run.b.chat.c1"}
)


def one(**fields):
    return claims_claim.Claim.model_validate({"id": "a", "statement": "it is so"} | fields)


def status(claim, profile="lab-cpu"):
    return claims_check.check([claim], profile, FIGURES)[0]


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


LAB = {"scope": {"profile": "lab-cpu"}}


@pytest.mark.parametrize(
    "check, profile, wanted",
    [
        ("run.a.chat.c1.speed_up > 1.2", "lab-cpu", claims_claim.REPRODUCED),
        ("run.a.chat.c1.speed_up > 1.3", "lab-cpu", claims_claim.NOT_REPRODUCED),
        ("run.b.chat.c1.speed_up > 1.3", "lab-cpu", claims_claim.VOID),
        ("run.c.chat.c1.speed_up > 1.3", "lab-cpu", NOT_MEASURED),
        ("run.a.chat.c1.speed_up > 1.2", "other-box", NOT_MEASURED),
    ],
)
def test_a_measured_claim_has_one_of_four_statuses(check, profile, wanted):
    assert status(one(**LAB, check=check), profile).status == wanted


def test_a_reported_claim_says_what_follows_from_its_figures():
    reported = {"reported": {"value": "1.5", "source": "case"}, "says": "corrected"}
    assert status(one(**reported, check="case.x.c1 < case.x.c128")).status == "corrected"
    assert status(one(**reported, check="case.x.c1 > case.x.c128")).status == claims_claim.DOES_NOT_FOLLOW
    assert status(one(reported={"value": "a", "source": "b"})).status == NOT_MEASURED
    with pytest.raises(UserError, match="case.y.c1, which no file in data/reported holds"):
        status(one(**reported, check="case.y.c1 > 1"))


@pytest.mark.parametrize(
    "text, words",
    [
        ("schema_version: 1\nclaims: [{id: a, statement: b}]", "exactly one of `reported` and `scope`"),
        ("schema_version: 1\nclaims: [{id: a, statement: b, scope: {profile: x}}]", "needs a `check`"),
        ("schema_version: 2\nclaims: []", "schema_version"),
        ("claims: [", "not valid YAML"),
        (
            "schema_version: 1\nclaims: [{id: a, statement: b, scope: {profile: x}, check: '1 > 0', twin: [c]}]",
            "twin `c` is not the id of a claim",
        ),
    ],
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
    """Every measured claim asks for figures that exist: a mistyped name would read "not measured here" for ever."""
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

"""The chapter on claims: each finding with its tests by date, and what was said before."""

import datetime

import pandas as pd

from runners.claims import claim
from runners.claims.claim import Checked
from runners.report.chapters import claims as chapter

DAY = datetime.datetime(2026, 12, 2, tzinfo=datetime.UTC)
WRITTEN = {"date": "2026-12-01T00:00:00+00:00", "commit": "abcdef0"}
EARLIER = {"date": "2026-11-01T00:00:00+00:00", "commit": "abcdef1"}
COMMON = {"scope": {"profile": "box"}, "check": "above(run.a.chat.c1.speed_up, 1)", "written": WRITTEN}
FAILED = EARLIER | {"change": "failed", "why": "it was not", "statement": "never"}
STRICTER = WRITTEN | {"change": "stricter", "why": "intervals", "check": "run.a.chat.c1.speed_up > 1"}
REPLACED = EARLIER | {"outcome": "not reproduced", "figures": "0.9"}


def made(id_, **fields):
    content = COMMON | {"id": id_, "kind": "finding", "statement": f"claim {id_}"} | fields
    return claim.Claim.model_validate(content)


TESTED = made("tested", history=[FAILED, STRICTER], replaced_runs=[REPLACED])
NEW, GATE = made("new"), made("gate", kind="invariant")
HERE = [
    Checked(TESTED, claim.REPRODUCED, "above(1.2 [1.1, 1.3], 1)", DAY),
    Checked(NEW, claim.NOT_TESTED),
    Checked(GATE, claim.HELD, "0 = 0"),
]
THERE = [Checked(TESTED, claim.UNDECIDED, "", DAY - datetime.timedelta(days=1)), *HERE[1:]]
DATA = chapter.Data("box", HERE, {"other-box": THERE}, {}, pd.DataFrame())


def test_a_finding_has_its_tests_by_date_with_their_outcomes():
    first, second = chapter.findings_table(DATA).to_dict("records")
    assert first["tests since"] == (
        "2026-11-01 runs since replaced: not reproduced; 2026-12-01 other-box: undecided; 2026-12-02 this report: "
        "reproduced"
    )
    assert (first["written (UTC)"], first["these runs"]) == ("2026-12-01 00:00", "reproduced")
    assert second["tests since"] == second["these runs"] == "not tested yet"


def test_what_failed_stays_and_what_only_became_stricter_is_not_shown():
    table = chapter.history_table(DATA)
    assert table.to_dict("records") == [
        {
            "earlier": "never",
            "written (UTC)": "2026-11-01 00:00",
            "what happened": "failed: it was not",
            "now": "claim tested",
        }
    ]


def test_invariants_have_a_table_of_their_own():
    assert chapter.others_table(DATA, "invariant").to_dict("records") == [
        {"invariant": "claim gate", "with figures": "0 = 0", "status": "held"}
    ]
    assert chapter.others_table(DATA, "definition").empty


def test_what_could_not_be_checked_is_not_counted_as_broken():
    none = {kind: dict.fromkeys(statuses, 0) for kind, statuses in claim.STATUSES.items()}
    counts = none | {"invariant": none["invariant"] | {"not measured here": 4}}
    sentence = chapter.claims_sentence(counts)
    assert sentence.endswith("Of the invariants of the tool none could be checked here.") and "0 of" not in sentence
    counts = none | {"invariant": none["invariant"] | {"not measured here": 3, "held": 1}}
    assert chapter.claims_sentence(counts).endswith("1 of 1 invariants of the tool held.")


def test_without_a_claim_about_the_profile_the_sentence_says_so():
    assert chapter.claims_sentence({kind: {} for kind in claim.STATUSES}) == "No claim is about this machine's profile."

"""campaign.json: written and read back, and which campaign is measured now."""

import json

import pytest

from runners.core.errors import UserError
from runners.measure import campaign_record
from runners.measure.campaign_record import Campaign, Visit


def made(name="first", preset="quick", finished=True, **more):
    return Campaign(name, 7, preset, "2026-12-01T12:00:00Z", 3, finished=finished, **more)


def current(folder, preset="quick", seconds=60.0, more=False):
    return campaign_record.current(folder, preset, 6, seconds, more)


def test_campaigns_come_back_as_they_were_saved(tmp_path):
    visits = [Visit(0, ["base", "drafting"], [["chat", 1], ["chat", 4]], 12.5), Visit(1, ["base"])]
    saved = [made(visits=visits, spent_s=31.0), made("second", finished=False, seconds=1200.0)]
    campaign_record.save(tmp_path, saved)
    assert campaign_record.load(tmp_path) == saved
    assert not list(tmp_path.glob("*.part")), "written atomically"


def test_without_a_file_there_is_no_campaign(tmp_path):
    assert campaign_record.load(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{", "is not JSON"),
        ('{"id": "x"}', "campaign.json"),
        ('[{"id": "x"}]', "holds something else than campaigns"),
        ("[3]", "holds something else than campaigns"),
        ('[{"id": "x", "visits": [{"begin": 1}]}]', "holds something else than campaigns"),
    ],
)
def test_a_bad_file_is_one_sentence_with_what_to_do(tmp_path, text, words):
    (tmp_path / "campaign.json").write_text(text)
    with pytest.raises(UserError) as raised:
        campaign_record.load(tmp_path)
    message = str(raised.value)
    assert words in message and "restore it from a copy" in message and "\n" not in message, message


def test_the_first_campaign_of_a_folder_is_new(tmp_path):
    (new,) = current(tmp_path)
    assert not new.finished and not new.visits and (new.preset, new.most_starts, new.seconds) == ("quick", 6, 60.0)
    assert not list(tmp_path.iterdir()), "it is written when it is measured"


def test_an_unfinished_campaign_goes_on_with_the_limits_of_now(tmp_path):
    begun = made(finished=False, visits=[Visit(0, ["base"], [["chat", 1]])], spent_s=5.0)
    campaign_record.save(tmp_path, [begun, made("other", preset="full")])
    *others, now = current(tmp_path, seconds=90.0)
    assert now.id == "first" and now.seed == 7 and now.visits == begun.visits and now.spent_s == 5.0
    assert (now.most_starts, now.seconds) == (6, 90.0)
    assert [c.id for c in others] == ["other"], "it is the last one now, and none is lost"
    assert current(tmp_path, more=True)[-1].id == "first", "more begins nothing before this one has ended"


def test_a_finished_campaign_stays_as_it_is(tmp_path):
    saved = [made(), made("other", preset="full", finished=False)]
    campaign_record.save(tmp_path, saved)
    *others, now = current(tmp_path)
    assert now == saved[0] and others == [saved[1]]


def test_more_adds_a_campaign_beside_a_finished_one(tmp_path):
    campaign_record.save(tmp_path, [made()])
    before, now = current(tmp_path, more=True)
    assert before == made() and now.id != before.id and not now.finished
    assert json.loads((tmp_path / "campaign.json").read_text())[0]["id"] == "first"


def test_a_preset_has_campaigns_of_its_own(tmp_path):
    campaign_record.save(tmp_path, [made()])
    before, now = current(tmp_path, preset="full", seconds=None)
    assert before == made() and (now.preset, now.seconds, now.finished) == ("full", None, False)


def test_a_finished_campaign_stands_for_what_it_was_asked_for_and_no_more(tmp_path):
    def now(names, **more):
        return campaign_record.current(tmp_path, "quick", 6, 60.0, names=names, **more)

    campaign_record.save(tmp_path, [made(configurations=["drafting"])])
    assert now(["drafting"])[-1].id == "first"
    *before, new = now(["ngram"])
    assert before == [made(configurations=["drafting"])] and not new.finished and new.configurations == ["ngram"]
    assert now(["drafting", "ngram"])[-1].id != "first", "a report of all is not done because one of them is"
    campaign_record.save(tmp_path, [made()])
    assert now(["anything"])[-1].id == "first", "one of an earlier release was asked for all"


def test_an_interrupted_campaign_takes_on_what_is_asked_for_later_and_ends_with_all_of_it(tmp_path):
    campaign_record.save(tmp_path, [made(finished=False, configurations=["drafting"], spent_s=50.0, seconds=60.0)])
    (now,) = campaign_record.current(tmp_path, "quick", 6, 30.0, names=["ngram"])
    assert now.configurations == ["drafting", "ngram"] and now.seconds == 80.0, "time of its own"
    now.ends(["ngram"], preset=["drafting", "ngram", "base"])
    assert now.is_over(["ngram"]) and not now.is_over(["drafting"]) and not now.finished
    now.ends(["drafting"], preset=["drafting", "ngram", "base"])
    assert now.finished

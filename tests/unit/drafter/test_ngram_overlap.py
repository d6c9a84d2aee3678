"""What prompt lookup finds to copy: counted on texts, and on a ledger."""

import pytest

from runners.core import paths
from runners.drafter import diagnose, ngram_overlap
from runners.profiles.load import load


def test_a_copied_answer_is_looked_up_rightly_until_it_ends_otherwise():
    found = ngram_overlap.overlap_of([("a b c d e", "a b c d e f")])
    assert found == ngram_overlap.Overlap(words=6, proposed=3, right=2, in_prompt=0.75)


def test_an_answer_that_repeats_itself_is_looked_up_in_itself():
    found = ngram_overlap.overlap_of([("x", "a b c d a b c d")])
    assert (found.proposed, found.right, found.in_prompt) == (1, 1, 0)


def test_an_answer_of_new_words_finds_nothing_and_no_answer_is_no_overlap():
    found = ngram_overlap.overlap_of([("a b c", "k l m n")])
    assert (found.words, found.proposed) == (4, 0)
    assert ngram_overlap.overlap_of([]) is None and ngram_overlap.overlap_of([("a", " ")]) is None


@pytest.mark.slow
def test_edited_prompts_are_copied_more_than_chats_in_the_published_runs():
    folder = paths.PUBLISHED_RUNS / "lab-cpu" / "llamacpp-ngram"
    found = dict(ngram_overlap.by_prompts(folder))
    assert found["edit"].in_prompt > found["chat"].in_prompt
    assert found["edit"].right / found["edit"].words > found["chat"].right / found["chat"].words


def test_a_ledger_without_answers_says_so(tmp_path):
    (note,) = ngram_overlap.check(tmp_path)
    assert note.level == "note" and "measure the configuration first" in note.text


@pytest.mark.slow
def test_an_ngram_configuration_is_diagnosed_by_its_ledger():
    found = diagnose.diagnose(load("lab-cpu"), "llamacpp-ngram", paths.PUBLISHED_RUNS)
    assert any(f.text.startswith("edit: ") for f in found.findings) and found.measured and not found.likely
    assert "nothing to replay" in found.not_replayed

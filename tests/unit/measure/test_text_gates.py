"""Is a cell's text language, and the base's? On made-up answers, good ones, cut ones and garbage."""

import pytest

from runners.measure import text_gates
from runners.measure.base_answers import Text
from runners.measure.client import Result
from runners.measure.text_gates import Compared, compare, compare_all


def result(text, prompt="p", **changes):
    return Result(
        prompt, 0, 0, 0.1, 0.2, 3, 4, **({"count_source": "usage", "finish_reason": "length"} | changes), text=text
    )


def test_language():
    assert text_gates.distinct_bigrams(["a b a b a b a b a b"]) < 0.25
    assert text_gates.distinct_bigrams(["one two three four five six"]) == 1
    assert text_gates.distinct_bigrams(["too few words"]) is None
    assert text_gates.distinct_bigrams(["海辺の石の塔は灰色で、夜の灯は遠くの船からも見える。"]) > 0.9, "no spaces"
    assert text_gates.distinct_bigrams(["潮風" * 20]) < 0.1
    assert text_gates.distinct_bigrams(['lamp{"colour":"green","level":7}']) > 0.8, "the call of a tool"
    assert text_gates.distinct_bigrams(["one two one two one two", "潮風" * 20]) == 0.4, "words where there are words"
    assert text_gates.language(0.1, 0.2) and text_gates.language(None, 0.2) and text_gates.language(0.5, 0.2) is None


@pytest.mark.parametrize(
    ("answer", "base", "equal", "of"),
    [
        ("abcd", "abcd", 4, 4),
        ("abxx", "abcd", 2, 4),
        ("ab", "abcd", 2, 2),  # cut: as far as it goes
        ("abcdef", "abcd", 4, 4),
        ("", "", 0, 0),
        ("", "abcd", 0, 4),  # no text at all is not the beginning of one
    ],
)
def test_texts_are_compared_up_to_where_the_shorter_one_ends(answer, base, equal, of):
    assert compare("p", Text(answer), Text(base)) == Compared("p", equal, of)


def test_an_answer_that_ended_by_itself_must_not_be_shorter():
    assert not compare("p", Text("Yes.", ended=True), Text("Yes.", ended=True)).differs
    assert compare("p", Text("Yes.", ended=True), Text("Yes. And more")).of == len("Yes. And more")
    assert compare("p", Text("Yes. And more"), Text("Yes.", ended=True)).differs
    assert not compare("p", Text("Yes. And more"), Text("Yes.")).differs


def test_the_nearest_of_the_bases_own_answers_counts():
    texts = {"p": [Text("abxx"), Text("abcd")]}
    assert compare_all([result("abcd")], texts) == [Compared("p", 4, 4)]
    assert compare_all([result("abcd")], {}) == [] == compare_all([result("a", error="x")], texts)


def test_a_cut_answer_counts_where_it_tells_something():
    long = "a good answer of some length"
    texts = {"p": [Text(long)]}
    assert compare_all([result(long[:25], role="cut")], texts) == [Compared("p", 25, 25)]
    assert compare_all([result(long[:25] + "\ufffd", role="cut")], texts) == [Compared("p", 25, 25)], "half a character"
    assert compare_all([result(long[:4], role="cut"), result("", role="cut")], texts) == [], (
        "too short to tell anything"
    )
    (other,) = compare_all([result("garbage", role="ramp")], texts)
    assert other.early


def test_shares_are_of_the_first_characters_whatever_the_length():
    late = Compared("p", equal=300, of=600)
    assert late.share == 1.0 and late.differs and not late.early
    assert Compared("p", equal=64, of=600).share == 0.25
    assert Compared("p", 0, 0).share == 1.0


GOOD, TIE, GARBAGE = Compared("good", 250, 250), Compared("tie", 100, 250), Compared("garbage", 4, 250)


def test_exact_text():
    assert text_gates.exact_text([GOOD] * 16, "base's") is None and text_gates.exact_text([], "base's") is None
    found = text_gates.exact_text([GOOD, TIE, GARBAGE], "base's")
    assert found.startswith("2 of 3 answers differ from base's") and found.endswith("first garbage, at character 5")


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([GOOD] * 16, None),
        ([GOOD] * 10 + [TIE] * 6, None),
        ([TIE] * 16, "equal prefix 0.40 over 16 answers, floor 0.50"),
        ([GARBAGE] * 16, "16 of 16 answers differ from base's within the first 20 characters"),
        # Each cell on its own: the mean of a whole start let 32 garbage answers pass after 44 good ones.
        ([GARBAGE] * 8, "8 of 8 answers differ"),
        # A part of the answers, from one broken slot: their mean is 0.51.
        ([GOOD] * 8 + [GARBAGE] * 8, "8 of 16 answers differ from base's within the first 20 characters"),
        ([GARBAGE] * 3, "equal prefix 0.02 over 3 answers, floor 0.22"),
        ([GOOD, GOOD, GARBAGE], None),
        ([TIE, TIE, TIE], None),
        ([GARBAGE, GARBAGE], None),  # two early ties prove nothing
        ([], None),
    ],
)
def test_same_text(answers, reason):
    found = text_gates.same_text(answers, 0.5, "base's")
    assert found is None if reason is None else reason in found


def test_few_answers_are_held_to_less():
    assert [round(text_gates.floor_of(n, 0.5), 2) for n in (1, 4, 16, 64)] == [0.12, 0.25, 0.5, 0.5]
    assert [text_gates.early_limit(n, 0.5) for n in (3, 4, 8, 16, 64)] == [3, 3, 5, 7, 17]
    assert text_gates.early_limit(16, 1.0) == 0

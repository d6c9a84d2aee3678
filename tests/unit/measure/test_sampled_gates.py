"""At a temperature above 0 distributions are compared, on made-up answers."""

import random

import pytest

from runners.measure import sampled_gates
from runners.measure.base_answers import Sample
from runners.measure.client import Result


def answers(lengths, **changes):
    return [Result("p", 0, 0, output_tokens=n, text=text(n), **changes) for n in lengths]


def text(n, words=1000):
    choose = random.Random(n)
    return " ".join(f"w{choose.randrange(words)}" for _ in range(n))


def samples(lengths, prompt="p", words=1000):
    return [Sample(prompt, text(n, words), n) for n in lengths]


@pytest.mark.parametrize(
    ("steps", "accepted", "k", "reason"),
    [
        (10, 0, 3, None),
        (10, 30, 3, None),
        (10, 31, 3, "the counters show an accept length of 4.10, which K = 3 cannot give"),
        (0, 0, 3, None),
        (None, None, 3, None),
        (10, 31, None, None),
    ],
)
def test_an_accept_length_is_possible(steps, accepted, k, reason):
    assert sampled_gates.possible_accept_length(steps, accepted, k) == reason


def test_lengths():
    long, short = range(50, 66), range(10, 26)
    assert sampled_gates.same_lengths(answers(long), samples(long), "base's") is None
    found = sampled_gates.same_lengths(answers(short), samples(long), "base's")
    assert found.startswith("answer lengths differ from base's: mean 17.5 tokens over 16 answers, 57.5 there (p = ")


def test_lengths_prove_nothing_where_they_are_few_or_of_other_prompts_or_not_whole():
    long, short = range(50, 66), range(10, 26)
    assert sampled_gates.same_lengths(answers(short[:3]), samples(long[:3]), "") is None
    assert sampled_gates.same_lengths(answers(short), samples(long, prompt="other"), "") is None
    assert sampled_gates.same_lengths(answers(short, role="cut"), samples(long), "") is None
    assert sampled_gates.same_lengths(answers(short), [], "") is None


def test_language():
    lengths = range(50, 66)
    assert sampled_gates.same_language(answers(lengths), samples(lengths), "base's") is None
    found = sampled_gates.same_language(answers(lengths), samples(lengths, words=3), "base's")
    assert found.startswith("answers repeat themselves otherwise than base's: mean 1 distinct bigrams over 16 answers")


def test_good_cells_pass_as_often_as_the_level_says():
    draw = random.Random(0)
    failed = 0
    for _ in range(300):
        mine, theirs = ([draw.randint(1, 64) for _ in range(16)] for _ in range(2))
        failed += sampled_gates.same_lengths(answers(mine), samples(theirs), "") is not None
    assert failed <= 3

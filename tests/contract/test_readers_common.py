"""What all readers share: counters and their differences, Prometheus text, the accept-rate definitions."""

import random
import re
import sys
from pathlib import Path

import pytest

from runners.core.errors import UserError
from runners.readers import accept_rates, prometheus
from runners.readers.records import Counters
from runners.readers.registry import reader

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = ["PHASES", "phase_of", "first_error", "read_counters", "read_log", "acceptance_of", "tracker"]


@pytest.mark.parametrize("engine", ["llamacpp", "vllm", "sglang"])
def test_every_engine_has_the_same_functions(engine):
    module = reader(engine)
    assert [name for name in NAMES if not hasattr(module, name)] == []
    assert module.PHASES[-1][0] == "ready"
    assert all(isinstance(name, str) and hasattr(pattern, "search") for name, pattern in module.PHASES)


@pytest.mark.parametrize("engine", ["llamacpp", "vllm", "sglang"])
def test_an_empty_log_and_foreign_text_are_no_crash(engine):
    module = reader(engine)
    empty = module.read_log([])
    assert (empty.outcome, empty.lines, empty.cause) == ("not in this text", 0, None)
    odd = module.read_log(["\x1b[31mhello\n", "\n", "[", "(", "slot ", "Lorem ipsum: dolor sit amet, 42%\n", "[2"])
    assert odd.outcome == "not in this text" and odd.unknown_lines >= 1
    assert 1 <= len(odd.unknown_examples) <= 5
    assert module.first_error(["all is well\n"]) is None


@pytest.mark.parametrize("name", sorted(p.name for p in FIXTURES.glob("*.log")))
def test_no_mangled_log_breaks_a_reader(name):
    module, text, dice = reader(name.partition("_")[0]), (FIXTURES / name).read_text(), random.Random(name)
    for _ in range(20):
        mangled = list(text)
        for _ in range(60):
            mangled[dice.randrange(len(text))] = dice.choice("\r\n[]():,.|0ax \0é")
        lines = "".join(mangled).split("\n")
        reading = module.read_log(lines)
        assert reading.lines == len(lines)
        assert [r for line in lines if (r := module.acceptance_of(line)) and r.line != line.rstrip()] == []


@pytest.mark.parametrize("name", sorted(p.name for p in FIXTURES.glob("*.log")))
def test_usual_lines_read_in_one_scan_read_as_any_other(name, monkeypatch):
    module, text, dice = reader(name.partition("_")[0]), (FIXTURES / name).read_text(), random.Random(name)
    texts = [text]
    for _ in range(20):
        mangled = list(text)
        for _ in range(12):
            mangled[dice.randrange(len(text))] = dice.choice("\r\n[]():,.|0ax \0é")
        texts.append("".join(mangled))
    quick = [module.read_log(text.split("\n")) for text in texts]
    monkeypatch.setattr(sys.modules[module.read_log.__module__], "USUAL", re.compile("(?!)"))
    assert quick == [module.read_log(text.split("\n")) for text in texts]


def test_an_unknown_engine_names_those_known():
    with pytest.raises(UserError, match="'tgi'.*llamacpp, sglang, vllm"):
        reader("tgi")


def test_since_subtracts_counters_and_keeps_gauges():
    before = Counters(steps=50, drafted=150, accepted=60, accepted_per_position=[30, 20], running=1.0)
    after = Counters(
        steps=80, drafted=240, accepted=80, accepted_per_position=[40, 30, 5], output_tokens=9, running=3.0
    )
    done = after.since(before)
    assert (done.steps, done.drafted, done.accepted, done.output_tokens) == (30, 90, 20, 9)
    assert done.accepted_per_position == [10, 10, 5]
    assert done.running == 3.0


def test_absent_before_counts_as_zero_and_absent_in_both_stays_absent():
    done = Counters(steps=12, accepted_per_position=[5]).since(Counters())
    assert (done.steps, done.drafted, done.accepted_per_position) == (12, None, [5])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Counters(steps=9), Counters(steps=8)),
        (Counters(accepted=9), Counters()),
        (Counters(accepted_per_position=[3, 2]), Counters(accepted_per_position=[4, 1])),
        (Counters(accepted_per_position=[3, 2]), Counters(accepted_per_position=[4])),
    ],
)
def test_a_counter_that_goes_backwards_is_a_restart(before, after):
    with pytest.raises(ValueError, match="the engine restarted during the interval"):
        after.since(before)


def test_samples_drop_created_and_nan_and_other_names():
    text = 'a_total{x="1"} 2\na_created{x="1"} 1.79e+09\na_rate NaN\nb_total 7\na_total{x="2"} 3 1700000000\n'
    found = prometheus.samples(text, ["a_"])
    assert [(s.name, s.labels, s.value) for s in found] == [
        ("a_total", {"x": "1"}, 2.0),
        ("a_total", {"x": "2"}, 3.0),
    ]
    assert prometheus.total(found, "a_total") == 5
    assert prometheus.total(found, "a_total", x="2") == 3
    assert prometheus.total(found, "a_rate") is None
    assert prometheus.samples("") == []


@pytest.mark.parametrize("text", ["<html><body>404</body></html>", '{"detail":"Not Found"}', "a_total{ 3"])
def test_what_is_no_metrics_text_is_said_in_a_sentence(text):
    with pytest.raises(UserError, match="metrics"):
        prometheus.samples(text)


@pytest.mark.parametrize(
    ("pairs", "number", "expected"),
    [
        ([(1.00, 0.25)], None, (accept_rates.BONUS_COUNTED, 4)),  # the floor: nothing accepted
        ([(1.65, 0.41)], None, (accept_rates.BONUS_COUNTED, 4)),
        ([(1.00, 0.00)], None, (accept_rates.LENGTH_LESS_ONE, None)),
        ([(2.50, 0.50)], 4, (accept_rates.LENGTH_LESS_ONE, 4)),
        ([(2.00, 0.50)], None, (accept_rates.UNKNOWN_DEFINITION, None)),  # 4 old or 3 new
        ([(2.00, 0.50), (1.65, 0.41)], None, (accept_rates.BONUS_COUNTED, 4)),
        ([(4.00, 1.00)], 4, (accept_rates.UNKNOWN_DEFINITION, 4)),  # all accepted: one in both
        ([(1.65, 0.41)], 9, (accept_rates.UNKNOWN_DEFINITION, None)),  # not this server's number
        ([], 4, (accept_rates.UNKNOWN_DEFINITION, 4)),
    ],
)
def test_the_definition_is_inferred_only_when_unambiguous(pairs, number, expected):
    assert accept_rates.infer(pairs, number) == expected


@pytest.mark.parametrize("d", [2, 3, 4, 5, 8, 16])
def test_inference_survives_rounding_to_two_decimals(d):
    lengths = [1 + i * (d - 1) / 37 for i in range(1, 37)]
    old = [(round(x, 2), round(x / d, 2)) for x in lengths]
    new = [(round(x, 2), round((x - 1) / (d - 1), 2)) for x in lengths]
    assert accept_rates.infer(old)[0] == accept_rates.BONUS_COUNTED
    assert accept_rates.infer(new)[0] == accept_rates.LENGTH_LESS_ONE
    assert accept_rates.infer(old, d) == (accept_rates.BONUS_COUNTED, d)
    assert accept_rates.infer(new, d) == (accept_rates.LENGTH_LESS_ONE, d)

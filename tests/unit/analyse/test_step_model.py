"""The step model finds its own coefficients again, forecasts what it has not seen, and the chapter's tables follow."""

import numpy as np
import pandas as pd
import pytest

from runners.analyse import (
    crossover,
    forecast_models,
    kept_out,
    load_simulation,
    multiple_comparisons,
    step_model,
    step_points,
)
from runners.claims import named_values, next_steps
from runners.core.errors import UserError
from runners.measure import gates
from runners.profiles import filler, prompts
from runners.profiles.load import load
from runners.profiles.profile import Profile
from runners.report.chapters.payoff import crossover as crossover_chapter
from runners.report.chapters.payoff import forecasts as forecasts_chapter
from runners.report.chapters.payoff import next_steps as next_steps_chapter
from runners.serve import model_files
from runners.serve.command import command

TRUE = np.array([8.0, 1.5, 0.002, 0.8, 0.3, 0.001, 0.7, 1.2, 0.9])  # a b c p q f s, then d e
OUTPUT, REQUESTS = 40, {1: 3, 4: 8, 16: 16}


def made(noise=0.0, ks=(0, 1, 3), levels=(1, 4, 16), contexts=(60, 400)):
    """Points of an engine that is the model itself, under a simulated load."""
    truth = step_model.Coefficients.from_vector(TRUE, ["d"])
    rng = np.random.default_rng(1)
    rows = []
    for k in ks:
        for c in levels:
            for n, context in enumerate(contexts):
                load = load_simulation.LoadShape(REQUESTS[c], c, context - OUTPUT / 2, OUTPUT)
                seen = truth.simulate(k, "d", context, load, 1.0 + 0.4 * k)
                step = float(truth.step_ms(k, seen.batch, context, "d", prefill=seen.prefill))
                step *= np.exp(noise * rng.standard_normal())
                names = ("base" if not k else f"k{k}", "vllm", "none" if not k else "eagle3", k, f"w{n}", c)
                shape = [REQUESTS[c], c, load.prompt, OUTPUT, float(context), seen.batch, seen.prefill]
                rows.append([*names, "d" if k else "", *shape, step, np.nan, 1.0 if not k else 1.0 + 0.4 * k, 0.02])
    points = pd.DataFrame(rows, columns=step_points.COLUMNS)
    plain = points[points.k == 0].set_index(["workload", "concurrency"]).step_ms
    return points.assign(plain_ms=plain.reindex(list(zip(points.workload, points.concurrency, strict=True))).to_numpy())


def test_the_model_finds_the_coefficients_it_was_made_of():
    found = step_model.fit(made())
    assert found.coefficients.vector() == pytest.approx(TRUE, rel=0.02)
    truth = step_model.Coefficients.from_vector(TRUE, ["d"])
    assert float(found.break_even(3, 4, 60, "d")) == pytest.approx(float(truth.break_even(3, 4, 60, "d")), rel=1e-3)


def test_a_step_by_hand():
    # 8 + 1.5 x 4 + 0.002 x 4 x 60 + 0.8 x 10, and with K = 3: 0.7 + 0.3 x 10 + 3 (1.2 + 0.9 x 4 + 0.001 x 4 x 60) more.
    step = step_model.Coefficients.from_vector(TRUE, ["d"]).step_ms(np.array([0, 3]), 4, 60, "d", 10)
    assert step == pytest.approx([22.48, 22.48 + 18.82])


def test_the_letters_of_a_stored_forecast_stay_as_they_are():
    assert " ".join(step_model.SYMBOLS) == "a b c p q f s d e"
    two = step_model.Coefficients.from_vector(np.arange(11.0), ["one", "two"])
    assert two.of("two") == dict(zip("abcpqfsde", [0, 1, 2, 3, 4, 5, 6, 9, 10], strict=True))
    assert two.vector().tolist() == list(range(11))


def test_it_says_what_a_step_costs_at_a_concurrency_it_has_not_seen():
    scores = kept_out.costs(made(noise=0.02), (kept_out.CONCURRENCY,))
    middle = scores[scores.concurrency == 4]
    errors = (middle.r / middle[forecast_models.STEP_MODEL] - 1).abs()
    assert len(middle) == 4 and errors.median() < 0.05 and errors.max() < 0.1


def test_each_drafter_has_its_own_cost():
    cheap, dear = made(ks=(0, 3)), made(ks=(3,)).assign(drafter="dear", configuration="k3-dear")
    dear["step_ms"] += 3 * 2.0  # its pass takes two milliseconds more
    found = step_model.fit(pd.concat([cheap, dear], ignore_index=True))
    assert found.drafters == ("d", "dear")
    assert found.coefficients.of("dear")["d"] - found.coefficients.of("d")["d"] == pytest.approx(2.0, rel=0.02)
    alone = pd.concat([cheap, dear.head(1)], ignore_index=True)
    assert step_model.fit(alone).drafters == ("d",)


def test_what_one_context_cannot_separate_is_zero():
    found = step_model.fit(made(ks=(0, 3), contexts=(60,))).coefficients
    assert found.attention == 0 == found.draft_attention
    rows = made(ks=(0, 3))
    found = step_model.fit(rows[(rows.k == 0) | (rows.workload == "w0")]).coefficients
    assert found.attention > 0 == found.draft_attention  # only plain steps were measured at two contexts
    # With one K what a speculative step costs whatever K is a part of the drafter's pass.
    assert found.speculative == 0 and found.draft_pass[0] == pytest.approx(1.2 + 0.7 / 3, rel=0.1)


def test_too_few_points_are_refused():
    with pytest.raises(UserError, match="at least two plain and two speculative"):
        step_model.fit(made(ks=(0,)))
    empty = pd.DataFrame(columns=["engine"])
    assert (
        step_model.models(crossover.points(empty, empty)) == {}
        and crossover.curves({}).empty
        and kept_out.of_engines({}).empty
    )
    assert "not measured here" in forecasts_chapter.kept_out_sentence(kept_out.of_engines({}).assign(runs=""))


def test_speculation_stops_paying_where_the_accept_length_meets_break_even():
    model = step_model.fit(made())
    r = model.break_even(3, crossover.GRID, 60.0, "d")
    middle = float((r[0] + r[-1]) / 2)
    at = crossover.crossover(model, 3, 60.0, middle, "d")
    assert at[0] and abs(float(model.break_even(3, at[0], 60.0, "d")) - middle) < 0.2
    assert (
        crossover.crossover(model, 3, 60.0, 50.0, "d")[0] is None
        and crossover.crossover(model, 3, 60.0, 1.0, "d")[0] == 0
    )
    table = crossover_chapter.crossovers_table({"vllm": (model, made())})
    assert set(table["configuration"]) == {"k1", "k3"}


@pytest.mark.parametrize(
    "steps, accepted, said", [(100, 100, None), (100, 0, "the counters show 1.00"), (0, 0, "show no step")]
)
def test_a_synthetic_accept_length_must_be_what_the_counters_show(steps, accepted, said):
    found = gates.synthetic_accept_length_held(2.0, steps, accepted)
    assert (found is None) == (said is None) and (said or "") in (found or "")
    assert gates.synthetic_accept_length_held(None, 0, 0) is None


def test_each_engine_has_its_own_flag_for_a_synthetic_accept_length():

    sweeps = load("lab-cpu-sweeps")
    files = model_files.planned_files(sweeps, "aligned")
    argv = command(sweeps, "llamacpp-forced-2.0", files, 1).argv
    assert argv[argv.index("--spec-synth-len") + 1] == "2.0"
    content = load("single-gpu").model_dump()
    for name in ("vllm-eagle3", "sglang-eagle3"):
        content["configurations"][name]["forced_accept_length"] = 2.5
    forced = Profile.model_validate(content)
    files = model_files.planned_files(forced, "eagle3-llama")
    assert '"synthetic_acceptance_length": 2.5' in " ".join(command(forced, "vllm-eagle3", files, 1).argv)
    assert command(forced, "sglang-eagle3", files, 1).env["SGLANG_SIMULATE_ACC_LEN"] == "2.5"
    content["configurations"]["vllm-eagle3"]["forced_accept_length"] = 9
    with pytest.raises(ValueError, match="between 1 and k"):
        Profile.model_validate(content)


def test_a_context_is_put_before_the_same_questions():
    plain, long = prompts.load("chat"), prompts.load("chat@256")
    assert len(plain) == len(long) and long.prompts[0].messages[-1]["content"].endswith(
        plain.prompts[0].messages[-1]["content"]
    )
    for asked, alone in zip(long.prompts, plain.prompts, strict=True):
        counts = [filler.about_tokens(p.messages[-1]["content"]) for p in (asked, alone)]
        assert 256 <= counts[0] - counts[1] <= 290  # the passages, and the words around them
    assert filler.about_tokens("12, ab abcdefg") == 6  # a table of numbers is longer than it looks
    assert long.prompts[0].messages[-1]["content"][:200] != long.prompts[1].messages[-1]["content"][:200]
    with pytest.raises(UserError, match="number of tokens"):
        prompts.load("chat@many")


def test_next_steps_are_ranked_by_what_they_can_bring():
    known = named_values.NamedValues(named_values.reported() | {"run.vllm_ngram.edit.c1.speed_up": 2.0})
    frame = next_steps.ranked(known)
    assert frame.option[0] == "n-gram speculation" and frame.lab.dropna().is_monotonic_decreasing
    shown = next_steps_chapter.menu_table(frame)
    assert "not measured here" in " ".join(shown["at most, here"])
    assert len(shown) == len(next_steps.load())


def test_p_values_are_corrected_together():
    q = multiple_comparisons.adjusted(pd.Series([0.01, 0.02, float("nan"), 0.9]))
    assert q.round(3).tolist()[:2] == [0.03, 0.03] and np.isnan(q[2])

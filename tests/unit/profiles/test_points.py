"""What is measured side by side, at which loads, and with which prompts."""

import pytest

from runners.profiles import load, points, prompts
from runners.profiles.points import Comparison, Load

LAB = load.load("lab-cpu")


def test_each_configuration_is_compared_with_its_base():
    found = points.comparisons(LAB, ["vllm-base", "vllm-ngram", "vllm-eagle3-aligned"])
    assert found == [Comparison("vllm-base", "vllm-ngram"), Comparison("vllm-base", "vllm-eagle3-aligned")]
    assert found[0].sides == ("vllm-base", "vllm-ngram")


def test_a_base_is_measured_although_nobody_named_it():
    assert points.comparisons(LAB, ["vllm-ngram"]) == [Comparison("vllm-base", "vllm-ngram")]


def test_the_first_base_is_compared_with_each_other_base():
    found = points.comparisons(LAB, ["llamacpp-base", "llamacpp-ngram", "vllm-base", "vllm-ngram"])
    assert found == [
        Comparison("llamacpp-base", "llamacpp-ngram"),
        Comparison("vllm-base", "vllm-ngram"),
        Comparison("llamacpp-base", "vllm-base"),
    ]


def test_a_lonely_configuration_stands_alone():
    (alone,) = points.comparisons(LAB, ["vllm-base"])
    assert alone == Comparison("vllm-base") and alone.sides == ("vllm-base",)
    content = LAB.model_dump()
    content["configurations"] = {
        name: c for name, c in content["configurations"].items() if name in ("vllm-ngram", "llamacpp-base")
    }
    content["training"] = content["workload"]["open_loop"] = None
    for preset in content["workload"]["presets"].values():
        preset["leave_out"] = []
    without_base = type(LAB).model_validate(content)
    found = points.comparisons(without_base, list(without_base.configurations))
    assert {name for c in found for name in c.sides} == {"vllm-ngram", "llamacpp-base"}


@pytest.mark.parametrize("name", load.names())
def test_every_configuration_of_a_shipped_profile_is_in_a_comparison(name):
    p = load.load(name)
    for preset in p.workload.presets:
        names = p.at_preset(preset)
        found = points.comparisons(p, names)
        assert {side for c in found for side in c.sides} >= set(names) and len(set(found)) == len(found)
        assert all(points.loads(p, c) for c in found), "a comparison without a point"


def with_sets(**sets):
    content = LAB.model_dump()
    for name, chosen in sets.items():
        content["configurations"][name.replace("_", "-")]["prompt_sets"] = chosen
    return type(LAB).model_validate(content)


def test_loads_are_those_that_all_sides_have():
    levels, pair = LAB.workload.concurrencies, Comparison("vllm-base", "vllm-ngram")
    assert points.loads(LAB, pair) == [Load(w, c) for w in LAB.workload.prompt_sets for c in levels]
    narrow = with_sets(vllm_ngram=["edit"])
    assert points.loads(narrow, pair) == [Load("edit", c) for c in levels]
    assert len(points.loads(narrow, Comparison("vllm-base"))) == len(LAB.workload.prompt_sets) * len(levels)
    assert points.loads(with_sets(vllm_ngram=["edit"], vllm_base=["chat"]), pair) == []


def test_a_configuration_may_be_measured_at_some_concurrencies_only():
    content = LAB.model_dump()
    content["configurations"]["vllm-ngram"]["concurrencies"] = [1]
    found = points.loads(type(LAB).model_validate(content), Comparison("vllm-base", "vllm-ngram"))
    assert found == [Load(w, 1) for w in LAB.workload.prompt_sets]


@pytest.mark.parametrize("name", load.names())
def test_no_prompt_is_timed_that_warmed_the_server_up(name):
    p = load.load(name)
    for workload in p.workload.prompt_sets:
        prompt_set = prompts.load(workload)
        for preset in p.workload.presets:
            timed = {x.id for x in points.timed_prompts(p, preset, prompt_set, 1)}
            assert timed <= {x.id for x in points.timed_pool(p, prompt_set)}
            for c in p.workload.concurrencies:
                ramp = points.ramp_prompts(prompt_set, c)
                assert len(ramp) == c, "the ramp fills every place"
                if c <= len(prompt_set) // 2:
                    assert not timed & {x.id for x in ramp}


def test_a_campaign_times_its_own_prompts_in_its_own_order_at_every_concurrency():
    prompt_set = prompts.load("chat")
    first, again, other = ([x.id for x in points.timed_prompts(LAB, "full", prompt_set, s)] for s in (1, 1, 2))
    assert first == again != other, "the order is the campaign's, and C is not asked for"
    few = LAB.model_copy(deep=True)
    few.workload.presets["quick"] = few.workload.presets["quick"].model_copy(update={"prompts": 3})
    assert [x.id for x in points.timed_prompts(few, "quick", prompt_set, 1)] == first[:3]

"""Request fields from a profile: they reach each request, they are part of a cell's key, and none is set twice."""

import datetime

import pytest

from runners.core.errors import UserError
from runners.core.validation import validated
from runners.measure import cell_context, cell_key
from runners.profiles import load
from runners.profiles.points import Point
from runners.profiles.profile import Profile

LAB = load.load("lab-cpu")
POINT = Point("chat", 4, 0, 0, 8)


def with_body(body, **workload):
    content = LAB.model_dump()
    content["workload"] |= {"body": body} | workload
    return validated(Profile, content, "Profile mine")


def test_fields_reach_every_request_beside_the_engines_own(tmp_path):
    profile = with_body({"top_p": 0.9, "seed": 7, "chat_template_kwargs": {"enable_thinking": False}})
    for name, own in (("vllm-base", "stream_options"), ("llamacpp-base", "cache_prompt")):
        context = cell_context.prepare(profile, name, "quick", tmp_path)
        for job in context.timed(POINT)[:2] + context.ramp(POINT)[:2]:
            assert job.body["top_p"] == 0.9 and job.body["seed"] == 7 and own in job.body
            assert job.body["chat_template_kwargs"] == {"enable_thinking": False} and job.body["temperature"] == 0


def test_the_reference_model_knows_no_request_fields():
    assert LAB.gates.equal_to_reference_floor is not None
    assert cell_context.reference_texts(with_body({"repetition_penalty": 1.1}), "quick", ["chat"]) == {}


def test_other_fields_are_another_cell_and_none_leave_the_key_as_it_was():
    plain, none, one, other = (
        cell_key.settings(p, "vllm-base", POINT, "quick")
        for p in (LAB, with_body({}), with_body({"seed": 1}), with_body({"seed": 2}))
    )
    assert plain == none and len({plain, one, other}) == 3


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"temperature": 0.7}, "workload.body: `temperature` is not set here: the workload's `temperature` sets it"),
        ({"max_tokens": 9}, "`max_tokens` is not set here: `output_tokens` sets it"),
        ({"ignore_eos": False}, "`ends` sets it"),
        ({"stream": False}, "answers are streamed"),
        ({"n": 2}, "a request has one answer"),
        ({"messages": []}, "`prompt_sets` says what is asked"),
        ({"day": datetime.date(2026, 12, 1)}, "must be what JSON can hold"),
        ({"top_p": float("nan")}, "must be what JSON can hold"),
        ({"stop": ["\n"]}, "`stop` in `body` ends answers before `output_tokens`; set `ends: natural`"),
    ],
)
def test_what_cannot_be_set_there_is_said_in_one_sentence(body, sentence):
    with pytest.raises(UserError, match=sentence):
        with_body(body)


def test_answers_that_end_by_themselves_may_have_a_stop():
    assert with_body({"stop": ["\n"]}, ends="natural").workload.body == {"stop": ["\n"]}

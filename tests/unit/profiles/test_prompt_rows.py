"""Rows of prompt files, as people have them: what is asked, and by which messages."""

from collections import Counter

import pytest

from runners.core.errors import UserError
from runners.profiles import prompt_rows

WHERE = "Prompts mine.jsonl, line 3"
HELLO = {"role": "user", "content": "Hello?"}


def prompt_of(row, column=None):
    return prompt_rows.prompt_of(row, WHERE, column, Counter())


def messages(row, column=None):
    return list(prompt_of(row, column).messages)


@pytest.mark.parametrize(
    "row",
    [
        "Hello?",
        [HELLO],
        {"messages": [HELLO]},
        {"prompt": "Hello?"},
        {"Question": "Hello?", "difficulty": "low"},
        {"instruction": "Hello?", "input": "", "output": "Hi."},
        {"text": "Hello?"},
        {"only": "Hello?"},
        {"prompt": [HELLO]},
        {"messages": '[{"role": "user", "content": "Hello?"}]'},
        {"role": "user", "content": "Hello?"},
        {"conversations": [{"from": "human", "value": "Hello?"}, {"from": "gpt", "value": "Hi."}]},
        {"conversation": [{"role": "user", "content": "Hello?"}, {"role": "assistant", "content": "Hi."}]},
        {"custom_id": "a", "body": {"model": "m", "max_tokens": 5, "messages": [HELLO]}},
        {"turns": ["Hello?", "And now?"]},
    ],
)
def test_forms_of_one_question(row):
    assert messages(row) == [HELLO]


def test_a_system_prompt_and_all_turns_are_kept_and_a_last_answer_is_what_is_asked_for():
    talk = [
        {"from": "system", "value": "Be brief."},
        {"from": "human", "value": "One?"},
        {"from": "gpt", "value": "1."},
        {"from": "human", "value": "Two?"},
        {"from": "gpt", "value": "2."},
    ]
    assert [(m["role"], m["content"]) for m in messages({"conversations": talk})] == [
        ("system", "Be brief."),
        ("user", "One?"),
        ("assistant", "1."),
        ("user", "Two?"),
    ]
    beside = {"system": "Be brief.", "conversations": talk[1:]}
    assert messages(beside) == messages({"conversations": talk})
    assert messages({"system": "Other.", "conversations": talk}) == messages({"conversations": talk})
    assert messages({"system_prompt": "Be brief.", "question": "One?"}) == messages({"conversations": talk})[:2]


def test_a_conversation_that_begins_with_an_answer_begins_with_the_first_question():
    talk = [{"role": "system", "content": "S"}, {"role": "assistant", "content": "Hi, I am here."}, HELLO]
    assert [m["role"] for m in messages(talk)] == ["system", "user"]


def test_a_tools_answer_is_answered_and_its_call_and_definition_are_kept():
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    talk = [
        HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    ]
    tools = [{"type": "function", "function": {"name": "add"}}]
    found = prompt_of({"messages": talk, "tools": tools, "temperature": 0.7, "max_tokens": 9})
    assert list(found.messages) == talk and not found.plain
    assert found.fields == {"tools": tools}, "how is sampled and how much is answered is the profile's"
    assert prompt_of(HELLO["content"]).plain


def test_a_content_of_several_parts_stays_as_it_is():
    parts = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    assert messages([{"role": "user", "content": parts}]) == [{"role": "user", "content": parts}]


def test_what_an_endpoint_does_not_take_is_left_out_of_a_message():
    assert messages([HELLO | {"weight": 1, "name": "ann"}]) == [HELLO | {"name": "ann"}]


def test_an_instruction_with_an_input():
    assert messages({"instruction": "Translate.", "input": "Guten Tag"})[0]["content"] == "Translate.\n\nGuten Tag"


def test_id_and_topic_are_the_rows_own_where_it_has_them():
    found = [prompt_of({"prompt": "x"} | more) for more in ({}, {"question_id": 81, "category": "math"}, {"id": 0})]
    assert [(p.id, p.topic) for p in found] == [("", ""), ("81", "math"), ("0", "")]


def test_the_named_column_counts_in_capitals_or_not():
    row = {"prompt": "no", "Customer asks": "Hello?"}
    assert messages(row, "customer asks") == [HELLO]
    with pytest.raises(UserError, match="line 3: there is no 'other'; there is prompt, customer asks"):
        messages(row, "other")


@pytest.mark.parametrize(
    "row",
    [
        "  ",
        {"prompt": ""},
        {"prompt": None},
        [],
        [{"role": "system", "content": "S"}],
        [{"role": "assistant", "content": "Hi"}],
        {"role": "assistant", "content": "Hi"},
        [{"role": "user", "content": "  "}],
        {"turns": []},
    ],
)
def test_a_row_in_which_nobody_asks_anything_is_counted_and_left_out(row):
    left_out = Counter()
    assert prompt_rows.prompt_of(row, WHERE, None, left_out) is None
    assert left_out[prompt_rows.UNASKED] == 1


def test_later_questions_without_the_answers_between_them_are_counted():
    left_out = Counter()
    prompt_rows.prompt_of({"turns": ["One?", "Two?", "Three?"]}, WHERE, None, left_out)
    assert left_out[prompt_rows.LATER] == 2


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (3, "a row must be a text, an object or a list of messages; it is 3"),
        ({"a": "x", "b": "y"}, "no prompt was found in a, b; name what holds it"),
        ({}, "no prompt was found in an empty row"),
        ({"prompt": 7}, "'prompt' must be a text or a list of messages; it is 7"),
        (["Hello", 5], "message 1 must be an object with a role and a content; it is 'Hello'"),
        ([HELLO, {"role": "robot", "content": "x"}], "message 2 must have a role .*; it has 'robot'"),
        ([{"content": "x"}], "message 1 must have a role .*; it has None"),
        ([{"role": ["user"], "content": "x"}], "message 1 must have a role"),
        ([{"role": "user"}], "message 1 must have a content"),
        ([{"role": "user", "content": 5}], "message 1 must have a text or a list of parts as its content; it is 5"),
    ],
)
def test_a_row_that_cannot_be_understood_is_named(row, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        prompt_of(row)
    assert str(caught.value).startswith(WHERE) and "\n" not in str(caught.value)


def test_a_digest_is_of_what_is_asked_alone():
    one, same = prompt_of({"id": "a", "prompt": "Hello?"}), prompt_of({"id": "b", "messages": [HELLO]})
    assert prompt_rows.digest(one) == prompt_rows.digest(same) != prompt_rows.digest(prompt_of("Hello!"))

"""The prompt loader, and the two sets that are shipped."""

import hashlib
import json
import re

import pytest

from runners.core.errors import UserError
from runners.profiles.prompts import FOLDER, Prompt, available, load

SHIPPED = ("chat", "edit")


def row(name="a", **changes):
    """A good row with some keys changed, or left out when changed to None."""
    made = {"id": name, "topic": "test", "messages": [{"role": "user", "content": f"Question {name}?"}]}
    made.update(changes)
    return {key: value for key, value in made.items() if value is not None}


def write(folder, *rows, name="mine"):
    path = folder / f"{name}.jsonl"
    lines = [r if isinstance(r, str) else json.dumps(r, ensure_ascii=False) for r in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def refused(folder, *parts):
    with pytest.raises(UserError) as caught:
        load("mine", folder)
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_reads_rows_in_file_order_with_the_checksum_of_the_bytes(tmp_path):
    path = write(tmp_path, row("b"), row("a", topic="other"))
    made = load("mine", tmp_path)
    assert made.id == "mine"
    assert [p.id for p in made.prompts] == ["b", "a"]
    assert made.prompts[1] == Prompt("a", "other", ({"role": "user", "content": "Question a?"},))
    assert made.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(made) == 2


def test_the_checksum_follows_the_file(tmp_path):
    write(tmp_path, row("a"))
    before = load("mine", tmp_path).sha256
    write(tmp_path, row("a"), "")
    after = load("mine", tmp_path)
    assert after.sha256 != before
    assert len(after.prompts) == 1


def test_messages_go_into_a_request_unchanged_and_a_prompt_is_hashable(tmp_path):
    talk = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "Bye"},
    ]
    write(tmp_path, row("a", messages=talk))
    prompt = load("mine", tmp_path).prompts[0]
    assert json.loads(json.dumps({"messages": prompt.messages})) == {"messages": talk}
    assert len({prompt, prompt}) == 1


def test_blank_lines_windows_ends_and_line_separators_inside_strings_are_fine(tmp_path):
    odd = row("b", messages=[{"role": "user", "content": "one\u2028two\u0085three"}])
    lines = [json.dumps(row("a")), "", json.dumps(odd, ensure_ascii=False), "  "]
    (tmp_path / "mine.jsonl").write_bytes("\r\n".join(lines).encode())
    made = load("mine", tmp_path)
    assert [p.id for p in made.prompts] == ["a", "b"]
    assert made.prompts[1].messages[0]["content"] == "one\u2028two\u0085three"


def test_unknown_set_names_those_that_exist(tmp_path):
    write(tmp_path, row(), name="second")
    write(tmp_path, row(), name="first")
    refused(tmp_path, "unknown prompt set 'mine'", "first, second")


def test_unknown_set_in_an_empty_or_absent_folder(tmp_path):
    refused(tmp_path, "there are none")
    refused(tmp_path / "absent", "there are none")
    assert available(tmp_path / "absent") == []


def test_a_set_id_is_never_a_path(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    write(tmp_path, row())
    with pytest.raises(UserError, match="unknown prompt set"):
        load("../mine", inner)


@pytest.mark.parametrize("bad", ['{"id": "b", ', "hello", '{"id": "b"} {"id": "c"}', "\ufeff{}"])
def test_bad_json_says_file_and_line(tmp_path, bad):
    path = write(tmp_path, row("a"), "", bad)
    refused(tmp_path, str(path), "line 3", "not valid JSON")


@pytest.mark.parametrize("bad", ["[1]", '"text"', "null", "3"])
def test_a_row_must_be_an_object(tmp_path, bad):
    write(tmp_path, bad)
    refused(tmp_path, "line 1", "JSON object")


@pytest.mark.parametrize("key", ["id", "topic", "messages"])
def test_missing_key_says_which_and_where(tmp_path, key):
    path = write(tmp_path, row("a"), row("b", **{key: None}))
    refused(tmp_path, str(path), "line 2", repr(key), "missing")


@pytest.mark.parametrize(("key", "value"), [("id", ""), ("id", 7), ("topic", "  "), ("topic", ["x"])])
def test_id_and_topic_must_be_text(tmp_path, key, value):
    write(tmp_path, row("a", **{key: value}))
    refused(tmp_path, "line 1", repr(key))


@pytest.mark.parametrize("messages", [[], "Hello", {"role": "user", "content": "x"}])
def test_messages_must_be_a_list_with_something_in_it(tmp_path, messages):
    write(tmp_path, row("a", messages=messages))
    refused(tmp_path, "line 1", "'messages' must be a list")


@pytest.mark.parametrize(
    "message",
    [
        "Hello",
        {"role": "user"},
        {"content": "Hello"},
        {"role": "robot", "content": "Hello"},
        {"role": ["user"], "content": "Hello"},
        {"role": "user", "content": " "},
        {"role": "user", "content": None},
        {"role": "user", "content": "Hello", "nmae": "x"},
    ],
)
def test_a_malformed_message_is_refused(tmp_path, message):
    write(tmp_path, row("a", messages=[{"role": "user", "content": "Hello"}, message]))
    refused(tmp_path, "line 1", "message 2")


def test_the_last_message_is_the_users(tmp_path):
    write(tmp_path, row("a", messages=[{"role": "assistant", "content": "Hello"}]))
    refused(tmp_path, "line 1", "last message")


def test_duplicate_id_says_both_lines(tmp_path):
    path = write(tmp_path, row("a"), row("b"), row("a"))
    refused(tmp_path, str(path), "line 3", "'a'", "line 1")


@pytest.mark.parametrize("rows", [(), ("", "  ")])
def test_a_set_without_prompts_is_refused(tmp_path, rows):
    path = write(tmp_path, *rows)
    refused(tmp_path, str(path), "must hold at least one prompt")


def test_a_file_that_cannot_be_read_as_text_is_refused(tmp_path):
    (tmp_path / "mine.jsonl").write_bytes(b'{"id": "\xff"}\n')
    refused(tmp_path, "UTF-8")
    (tmp_path / "mine.jsonl").unlink()
    (tmp_path / "mine.jsonl").mkdir()
    refused(tmp_path, "cannot read")


def ids(prompts):
    return [p.id for p in prompts]


def test_take_rotates_and_wraps(tmp_path):
    write(tmp_path, *(row(i) for i in "abcde"))
    made = load("mine", tmp_path)
    assert ids(made.take(3)) == ["a", "b", "c"]
    assert ids(made.take(3, 3)) == ["d", "e", "a"]
    assert ids(made.take(3, 5)) == ["a", "b", "c"]
    assert ids(made.take(2, 1_000_004)) == ["e", "a"]
    assert ids(made.take(7, 4)) == ["e", "a", "b", "c", "d", "e", "a"]
    assert made.take(0, 2) == []
    with pytest.raises(ValueError, match="-1"):
        made.take(-1)


def test_take_is_the_same_for_all_and_repeats_use_the_whole_set_evenly(tmp_path):
    write(tmp_path, *(row(i) for i in "abcdefg"))
    one, other = load("mine", tmp_path), load("mine", tmp_path)
    assert one.take(4, 12) == other.take(4, 12)
    used = [i for repeat in range(7) for i in ids(one.take(4, repeat * 4))]
    assert {i: used.count(i) for i in "abcdefg"} == dict.fromkeys("abcdefg", 4)


# ---- the shipped sets


def content(prompt):
    return prompt.messages[0]["content"]


def test_the_shipped_sets_are_found():
    assert set(SHIPPED) <= set(available())
    assert "CC0-1.0" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_set_has_enough_single_user_messages(name):
    made = load(name)
    assert len(made) >= 32
    for prompt in made.prompts:
        assert prompt.id.startswith(f"{name}-")
        assert [m["role"] for m in prompt.messages] == ["user"]
        assert content(prompt) == content(prompt).strip()
        # A text that only looks the same to a reader would not match an answer's plain characters.
        assert content(prompt).isascii()


def test_ids_and_texts_are_unique_over_the_shipped_sets():
    prompts = [p for name in SHIPPED for p in load(name).prompts]
    assert len({p.id for p in prompts}) == len(prompts)
    assert len({content(p) for p in prompts}) == len(prompts)
    given = [content(p).split("\n\n", 1)[1] for p in load("edit").prompts]
    assert len(set(given)) == len(given)


def test_chat_prompts_are_short_and_varied():
    prompts = load("chat").prompts
    for prompt in prompts:
        assert 8 <= len(content(prompt).split()) <= 60, prompt.id
        assert "\n" not in content(prompt)
    assert len({p.topic for p in prompts}) >= 30


def test_edit_prompts_give_a_text_long_enough_to_copy_and_short_enough_for_the_lab():
    # Words, digits and marks stand in for tokens: the lab's tokenizer is not at hand in a unit test,
    # which splits rare words and joins runs of marks; its own counts are 107 to 172.
    for prompt in load("edit").prompts:
        instruction, text = content(prompt).split("\n\n", 1)
        assert 20 <= len(instruction) <= 120, prompt.id
        assert 80 <= len(re.findall(r"\d|[A-Za-z]+|[^\w\s]", text)) <= 190, prompt.id


def test_edit_is_half_prose_and_half_code():
    topics = [p.topic for p in load("edit").prompts]
    prose = sum(topic.startswith("prose-") for topic in topics)
    assert 0.4 <= prose / len(topics) <= 0.6
    assert len({t.split("-")[0] for t in topics}) >= 8

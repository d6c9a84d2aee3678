"""Prompt files of all forms, their names in a profile, and the ids of their prompts."""

import gzip
import json

import pytest
import yaml

from runners.core import paths
from runners.core.errors import UserError
from runners.measure import cell_context, cell_key
from runners.profiles import load, points, prompt_files
from runners.profiles.points import Point

ROWS = [{"prompt": "One?"}, {"prompt": "Two?"}]
LAB = paths.PROFILES / "lab-cpu.yaml"


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def asked(found):
    return [p.messages[-1]["content"] for p in found.prompts]


JSONL = "\n".join(map(json.dumps, ROWS))
SHAREGPT = [{"id": "x_0", "conversations": [{"from": "human", "value": "One?"}, {"from": "gpt", "value": "1"}]}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mine.jsonl", JSONL),
        ("mine.jsonl", JSONL.replace("\n", "\r\n\r\n") + "\n"),
        ("mine.ndjson", JSONL),
        ("mine.jsonl.gz", gzip.compress(JSONL.encode())),
        ("mine.json", json.dumps(ROWS)),
        ("mine.json", json.dumps(ROWS, indent=2)),
        ("mine.json", json.dumps({"version": 1, "data": ROWS})),
        ("mine.json", json.dumps({"prompts": ["One?", "Two?"]})),
        ("mine.json", JSONL),
        ("mine.json", json.dumps([[{"role": "user", "content": "One?"}], [{"role": "user", "content": "Two?"}]])),
        ("mine", JSONL),
        ("mine.txt", JSONL),
        ("mine.txt", "One?\n\n  Two?  \n"),
        ("mine", "\ufeffOne?\r\nTwo?"),
        ("mine.csv", "id,question\n1,One?\n2,Two?\n"),
        ("mine.csv", "id;Question\n1;One?\n2;Two?\n"),
        ("mine.tsv", "prompt\tanswer\nOne?\t1, or so\nTwo?\t2\n"),
        ("mine.csv", "asked\nOne?\nTwo?\n"),
        ("mine.csv.gz", gzip.compress(b"prompt\nOne?\nTwo?\n")),
    ],
)
def test_forms(tmp_path, name, content):
    found = prompt_files.read(written(tmp_path, name, content))
    assert asked(found) == ["One?", "Two?"] and found.id == "mine" and not found.notes
    assert all(p.id.startswith("mine-") for p in found.prompts) and len({p.id for p in found.prompts}) == 2


def test_lines_of_plain_text_may_begin_with_a_bracket(tmp_path):
    lines = ["[1] What is a lamp?", "{name} asks for help", "[draft]"]
    assert asked(prompt_files.read(written(tmp_path, "mine.txt", "\n".join(lines)))) == lines


def test_one_conversation_and_one_object_are_one_prompt(tmp_path):
    talk = [{"role": "system", "content": "S"}, {"role": "user", "content": "One?"}]
    for content in (talk, {"messages": talk}, {"prompt": "One?"}):
        assert asked(prompt_files.read(written(tmp_path, "one.json", json.dumps(content)))) == ["One?"]


def test_sharegpt_keeps_its_ids(tmp_path):
    found = prompt_files.read(written(tmp_path, "share.json", json.dumps(SHAREGPT)))
    assert [p.id for p in found.prompts] == ["share-x_0"]


def test_cells_of_a_table_hold_commas_line_ends_and_long_contexts(tmp_path):
    long = "word " * 60_000
    path = written(tmp_path, "t.csv", f'name,what they ask\na,"One, or\ntwo?"\nb,"{long}end?"\n')
    found = prompt_files.read(f"{path}#What they ask")
    assert asked(found) == ["One, or\ntwo?", f"{long}end?"] and found.id == "t-What-they-ask"
    with pytest.raises(UserError, match="line 3: no prompt was found in name, what they ask; name what holds it"):
        prompt_files.read(path)


def test_ids_are_made_from_the_content_and_unique_over_all_sets(tmp_path):
    one = prompt_files.read(written(tmp_path, "one.txt", "A?\nB?"))
    other = prompt_files.read(written(tmp_path, "other.txt", "Z?\nA?"))
    again = prompt_files.read(written(tmp_path, "one.txt", "B?\nC?\nA?"))
    assert {p.id for p in one.prompts} < {p.id for p in again.prompts}, "the same prompt keeps its id"
    assert not {p.id for p in one.prompts} & {p.id for p in other.prompts}
    twice = [{"id": 1, "prompt": "A?"}, {"id": 1, "prompt": "B?"}, {"id": 2, "prompt": "C?"}]
    found = prompt_files.read(written(tmp_path, "ids.json", json.dumps(twice)))
    assert len({p.id for p in found.prompts}) == 3 and found.prompts[2].id == "ids-2"


def test_what_is_not_asked_is_said(tmp_path):
    rows = [*ROWS, ROWS[0], {"prompt": ""}, {"turns": ["Three?", "Four?"]}]
    found = prompt_files.read(written(tmp_path, "mine.json", json.dumps(rows)))
    assert asked(found) == ["One?", "Two?", "Three?"]
    assert found.notes == (
        "left out: 1 prompts that stand there twice",
        "left out: 1 rows in which nobody asks anything",
        "left out: 1 later turns of rows that hold questions alone (the answers between them are not in the file)",
    )


def test_of_very_many_prompts_some_are_taken_evenly(tmp_path, monkeypatch):
    monkeypatch.setattr(prompt_files, "MOST", 4)
    found = prompt_files.read(written(tmp_path, "many.txt", "\n".join(f"{i}?" for i in range(10))))
    assert asked(found) == ["0?", "2?", "5?", "7?"] and found.notes == ("4 of 10 prompts are asked, taken evenly",)


def test_the_checksum_is_of_what_is_asked(tmp_path):
    one = prompt_files.read(written(tmp_path, "mine.jsonl", JSONL))
    same = prompt_files.read(written(tmp_path, "mine.json", json.dumps(ROWS, indent=4)))
    other = prompt_files.read(written(tmp_path, "mine.jsonl", JSONL + '\n"Three?"'))
    assert one.sha256 == same.sha256 != other.sha256, "a changed file is read again"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("mine.jsonl", "", "must hold at least one prompt; it may be JSON Lines"),
        ("mine.json", "[]", "must hold at least one prompt"),
        ("mine.txt", " \n", "must hold at least one prompt"),
        ("mine.jsonl", JSONL + '\n{"prompt": ', r"mine.jsonl, line 3: not valid JSON \(.*\); correct it"),
        ("mine.json", '[\n{"prompt": "a"},\n{"prompt" "b"}\n]', r"mine.json, line 3: not valid JSON"),
        ("mine.jsonl", "Hello there", "line 1: not valid JSON .* name the file .txt if it is plain text"),
        ("mine.txt", b"\xff\xfe", r"must be UTF-8 text \(byte 0 is not\)"),
        ("mine.jsonl.gz", b"\x1f\x8bbroken", "cannot be read"),
        ("mine.csv", "a,b\n1,2\n", "line 2: no prompt was found in a, b"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_in_one_sentence(tmp_path, name, content, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        prompt_files.read(written(tmp_path, name, content))
    assert "\n" not in str(caught.value)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(UserError, match="absent.jsonl cannot be read"):
        prompt_files.read(str(tmp_path / "absent.jsonl"))
    with pytest.raises(UserError, match="it is a folder; name one file in it"):
        prompt_files.read(str(tmp_path))


def test_a_path_is_told_from_a_name():
    for path in ("mine.jsonl", "./mine", "a/b", "faq.csv#question", "mine.txt@512", "x.json.gz"):
        assert prompt_files.is_path(path), path
    for name in ("chat", "chat@512", "support.v2", "edit"):
        assert not prompt_files.is_path(name), name


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("/a/my file.jsonl", "my-file"),
        ("logs.jsonl.gz", "logs"),
        ("faq.csv#question", "faq-question"),
        ("edit.jsonl", "own-edit"),
        ("mine.txt@512", "mine"),
        ("???.txt", "prompts"),
    ],
)
def test_names(place, name):
    assert prompt_files.name_of(place) == name


def test_a_longer_context_before_own_prompts(tmp_path):
    path = written(tmp_path, "mine.jsonl", JSONL)
    plain, long = prompt_files.read(path), prompt_files.read(f"{path}@300")
    assert long.id == "mine@300" and [p.id for p in long.prompts] == [f"{p.id}@300" for p in plain.prompts]
    assert asked(long)[0].endswith("One?") and len(asked(long)[0].split()) > 150 and long.sha256 != plain.sha256
    parts = [{"role": "user", "content": [{"type": "text", "text": "x"}]}]
    with pytest.raises(UserError, match="must end in a plain question; leave @ out"):
        prompt_files.read(written(tmp_path, "parts.json", json.dumps([parts])) + "@300")


# ---- in a profile


def profile(folder, prompt_sets, **workload):
    content = yaml.safe_load(LAB.read_text())
    content["workload"] |= {"prompt_sets": prompt_sets} | workload
    file = folder / "own.yaml"
    file.write_text(yaml.safe_dump(content))
    return str(file)


def test_a_profile_names_files_beside_itself_and_keeps_names(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    written(tmp_path, "mine.jsonl", JSONL)
    found = load.load(profile(tmp_path, ["chat", "mine.jsonl", "mine.jsonl@64"], mix={"chat": 0.5, "mine.jsonl": 0.5}))
    assert found.workload.prompt_sets == ["chat", "mine", "mine@64"]
    assert found.workload.prompt_files == {"mine": str(tmp_path / "mine.jsonl")}
    assert found.workload.mix == {"chat": 0.5, "mine": 0.5}
    prompt_set = prompt_files.load("mine", found.workload.prompt_files)
    assert asked(prompt_set) == ["One?", "Two?"] and prompt_files.load("chat", {}).id == "chat"
    assert len(points.timed_pool(found, prompt_set)) == 1 and len(points.ramp_prompts(prompt_set, 4)) == 4
    back = tmp_path / "back.yaml"
    back.write_text(yaml.safe_dump(found.model_dump(mode="json") | {"name": "own"}))
    assert load.load(str(back)) == found


def test_a_path_under_the_home_folder_does_not_name_its_owner(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    written(tmp_path, "mine.jsonl", JSONL)
    found = load.load(profile(tmp_path, ["mine.jsonl"]))
    assert found.workload.prompt_files == {"mine": "~/mine.jsonl"}
    assert len(prompt_files.load("mine", found.workload.prompt_files)) == 2


def test_two_files_of_one_name_are_refused(tmp_path):
    with pytest.raises(UserError, match="have one name, mine; rename one of the files"):
        load.load(profile(tmp_path, ["a/mine.jsonl", "b/mine.jsonl"]))


def test_other_prompts_are_other_cells_and_a_cell_asks_them(tmp_path):
    written(tmp_path, "mine.jsonl", JSONL)
    found = load.load(profile(tmp_path, ["mine.jsonl"]))
    point = Point("mine", 1, 0, 0, 4)
    before = cell_key.settings(found, "vllm-base", point, "quick")
    assert str(tmp_path) not in json.dumps(cell_key.settings_facts(found, "vllm-base", point, "quick"), default=str)
    written(tmp_path, "mine.jsonl", JSONL.replace("One", "Another one"))
    assert cell_key.settings(found, "vllm-base", point, "quick") != before
    no_reference = found.model_copy(update={"gates": found.gates.model_copy(update={"equal_to_reference_floor": None})})
    context = cell_context.prepare(no_reference, "vllm-base", "quick", tmp_path)
    texts = {m["content"] for job in context.ramp(point) + context.timed(point) for m in job.body["messages"]}
    assert texts == {"Another one?", "Two?"}

"""The training text: composed prompts, the answers file, the packed sequences."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from safetensors.numpy import load_file

from runners.core import hashes
from runners.core.errors import UserError
from runners.drafter import card, corpus, generate_answers, packed_sequences, train
from runners.profiles import prompts
from runners.profiles.load import load
from runners.profiles.schema import Training

TRAINING = load("lab-cpu").training


def test_composed_prompts_are_seeded_different_and_split_by_subject():
    one, two = corpus.compose(400, 3), corpus.compose(400, 3)
    assert one == two and one != corpus.compose(400, 4)
    assert len({p.id for p in one}) == len({p.text for p in one}) == len(one) == 400
    parts = {part: {p.subject for p in one if p.part == part} for part in ("train", "held-out")}
    assert parts["train"] and parts["held-out"] and not parts["train"] & parts["held-out"]


def test_no_measured_prompt_is_trained_on():
    measured = {p.messages[-1]["content"] for s in prompts.available() for p in prompts.load(s).prompts}
    assert not measured & {p.text for p in corpus.compose(TRAINING.prompts, TRAINING.seed)}


@pytest.mark.slow
def test_too_many_prompts_or_no_source_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match="too few combinations"):
        corpus.compose(50_000)
    with pytest.raises(UserError, match="No .*missing.yaml"):
        corpus.compose(5, source=tmp_path / "missing.yaml")


class Server(BaseHTTPRequestHandler):
    """The three calls an answer takes, as llama.cpp's server has them."""

    asked: list[dict] = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/apply-template":
            told = {"prompt": f"<user>{body['messages'][0]['content']}"}
        elif self.path == "/tokenize":
            told = {"tokens": [7] * (1 + len(body["content"]) % 5)}
        else:
            self.asked.append(body)
            told = {"tokens": [1, 2, 3], "stop_type": "eos"}
        text = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    Server.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def test_only_missing_answers_are_asked_and_a_torn_line_is_asked_again(server, tmp_path):
    asked = corpus.compose(20)
    place = tmp_path / "answers.jsonl"
    assert generate_answers.generate(server, asked[:8], TRAINING, place, 4) == 8
    place.write_text(place.read_text()[:-9])
    assert generate_answers.generate(server, asked, TRAINING, place, 4) == 13
    rows = generate_answers.read(place)
    assert sorted({r["id"] for r in rows}) == sorted(p.id for p in asked)
    assert all(r["answer_tokens"] == [1, 2, 3] and r["ended"] for r in rows)
    assert {r["temperature"] for r in rows} == set(TRAINING.temperatures)
    assert all(b["cache_prompt"] is False and b["n_predict"] == TRAINING.answer_tokens for b in Server.asked)
    frame = generate_answers.table(rows)
    assert sorted(frame["id"]) == sorted(r["id"] for r in rows) and list(frame.columns) == generate_answers.COLUMNS
    assert list(generate_answers.table(rows[::-1])["id"]) == list(frame["id"])


def test_any_first_part_of_the_answers_is_a_fair_sample():
    fields = {c: None for c in generate_answers.COLUMNS}
    rows = [fields | {"id": p.id, "kind": p.kind} for p in corpus.compose(1000)]
    first = generate_answers.table(rows).head(200)["kind"].value_counts(normalize=True)
    assert set(first.index) == set(corpus.SHARES)
    assert all(abs(first[kind] - share) < 0.1 for kind, share in corpus.SHARES.items())


def test_a_server_that_went_away_is_a_sentence_and_keeps_what_was_answered(tmp_path):
    with pytest.raises(UserError, match="stopped answering .* run again to continue"):
        generate_answers.generate("http://127.0.0.1:9", corpus.compose(20), TRAINING, tmp_path / "a.jsonl", 2)


def test_packed_sequences_say_where_each_begins_and_where_its_answer_does(tmp_path):
    rows = [
        {"prompt_tokens": [1, 2], "answer_tokens": [3], "part": "train"},
        {"prompt_tokens": [4], "answer_tokens": [5, 6], "part": "held-out"},
    ]
    packed_sequences.pack(rows, tmp_path / "s.safetensors")
    packed = load_file(tmp_path / "s.safetensors")
    assert packed["ids"].tolist() == [1, 2, 3, 4, 5, 6] and packed["offsets"].tolist() == [0, 3, 6]
    assert packed["prompt"].tolist() == [2, 1] and packed["held_out"].tolist() == [0, 1]
    assert packed["ids"].dtype == np.int32


def test_a_drafters_card_says_what_it_was_made_from(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    facts = {"parameters": 10, "train_sequences": 5, "train_tokens": 1234, "held_out_sequences": 2}
    facts |= {"device": "cpu", "bfloat16": True}
    last = {"top1": [0.5, 0.4], "survival": [0.5, 0.2], "accept_length": 1.7, "seconds": 600, "step": 7, "positions": 9}
    text = card.card(load("lab-cpu"), TRAINING, {"facts": facts, "history": [last]}, tmp_path)
    for words in ("1,234 answer tokens", "50.0%, 40.0%", "input of layer 2", "bfloat16 products", "1.700"):
        assert words in text
    assert hashes.sha256(tmp_path / "model.safetensors") in text


def test_a_profile_without_training_makes_no_drafter():
    with pytest.raises(UserError, match="no `training` section"):
        train.make(load("kimi-k2.5-8x-rtx-pro-6000"), ["answers"])


def test_training_names_a_configuration_of_the_profile():
    content = load("lab-cpu").model_dump()
    content["training"]["configuration"] = "nobody"
    with pytest.raises(ValueError, match="`nobody` must be one of"):
        type(load("lab-cpu")).model_validate(content)
    assert isinstance(TRAINING, Training)

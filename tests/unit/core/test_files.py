"""Damaged files, written by a person or torn by an interruption: one sentence, exit code 2, no traceback."""

import json
import shutil

import pandas as pd
import pytest
import synthetic_runs
import yaml

from runners.__main__ import main
from runners.analyse import forecasts, machines, results
from runners.claims import claim, next_steps
from runners.commands import new_profile, profile_text, serve_winner
from runners.core import files, paths
from runners.core.errors import UserError
from runners.core.files import write_atomic
from runners.measure.ledger import Ledger
from runners.profiles import load as profiles_load
from runners.profiles import profile
from runners.profiles.schema import Fault
from runners.report import archive, book

PROFILE = synthetic_runs.PROFILE
LAB = (paths.PROFILES / "lab-cpu.yaml").read_text(encoding="utf-8")


def one_sentence(error) -> str:
    text = str(error.value)
    assert "\n" not in text and len(text) < 700
    return text


def changed(**at) -> str:
    """The lab's profile with values put at dotted places (two underscores)."""
    content = yaml.safe_load(LAB)
    for path, value in at.items():
        *way, last = path.split("__")
        inner = content
        for key in way:
            inner = inner[key]
        inner[last] = value
    return yaml.safe_dump(content)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\xff\xfetitle: x", "must be UTF-8 text"),
        ("title: 2020-13-45\n", "month must be in 1..12"),
        ("title: a\x00b\n", "not valid YAML"),
        ("title: a\ntitle: b\n", "line 2 is not valid YAML: key `title` is given twice"),
        ("- a\n", "must hold a mapping"),
        ("", "must hold a mapping"),
        ("extends: lab-cpu\nengines: []\n", "`engines` must be a mapping"),
        ("extends: lab-cpu\nworkload:\n", "`workload` must be a mapping"),
        (changed(name="../x"), "key `name`"),
        (changed(name=""), "key `name`"),
        (changed(configurations={}), "key `configurations`"),
        (changed(engines__vllm__port=99999), "engines.vllm.port"),
        (changed(timing__stream_tokens_per_second={"vllm": 0}), "timing"),
        (changed(stall_seconds=-1), "stall_seconds"),
        (changed(practical_margin=float("nan")), "practical_margin"),
        (changed(gates__equal_to_base_floor=7), "equal_to_base_floor"),
        (changed(target__layers=-1), "target.layers"),
        (changed(training__boundaries=[2, 15, 100]), "must be below the target's 30 layers"),
        (changed(workload__output_tokens=1_000_000), "do not fit into `context_length"),
        (changed(workload__prompt_sets=["chat@999999"]), "do not fit into `context_length"),
        (changed(engines__vllm__env={"A=B": "x"}), "engines.vllm.env"),
    ],
)
def test_a_damaged_profile_is_refused_in_one_sentence(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError) as error:
        profiles_load.load(str(path))
    assert message in one_sentence(error)


def test_a_configuration_is_not_named_like_a_folder_of_the_runs_and_attaches_to_an_address():
    for name, value, message in (
        ("alignment", {}, "none of alignment, notebooks"),
        ("x", {"attach": {"url": "notaurl"}}, "must be an address"),
        ("x", {"attach": {"url": "http://127.0.0.1:99999"}}, "range 0-65535"),
    ):
        content = profiles_load.load(PROFILE).model_dump()
        content["configurations"][name] = content["configurations"]["vllm-base"] | value
        with pytest.raises(ValueError, match=message):
            profile.Profile.model_validate(content)
    content["configurations"]["x"]["attach"] = {"url": "http://[::1]:8000/v1"}
    content["configurations"]["vllm-base"]["base"] = True  # x does not draft either: one of them is the base
    assert profile.Profile.model_validate(content)


def test_the_changes_a_profile_may_name_are_those_the_script_makes():
    script = (paths.ROOT / "runners" / "scripts" / "derive_drafter.py").read_text()
    table = script.split("CHANGES: dict", 1)[1].split("}\n", 1)[0]
    assert set(Fault.__args__) == {line.split('"')[1] for line in table.splitlines() if line.startswith('    "')}


@pytest.mark.parametrize("load", [claim.load, next_steps.load])
@pytest.mark.parametrize("text", [b"\xff", b"", b"- a\n", b"schema_version: 1\n", b"x: [\n", b"a: \x00\n"])
def test_a_damaged_list_of_claims_or_options_is_refused_in_one_sentence(tmp_path, load, text):
    path = tmp_path / "t.yaml"
    path.write_bytes(text)
    with pytest.raises(UserError) as error:
        load(path)
    assert "t.yaml" in one_sentence(error) and ": :" not in str(error.value)


@pytest.fixture(scope="module")
def whole_runs(tmp_path_factory):
    """Written once: forty tests damage a copy."""
    return synthetic_runs.write(tmp_path_factory.mktemp("whole") / "runs", repeats=1, prompts=4)


@pytest.fixture
def runs(whole_runs, tmp_path):
    return shutil.copytree(whole_runs, tmp_path / "runs")


BASE = "llamacpp-base"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"concurrency": "one"}, "`concurrency` must be a valid integer"),
        ({"concurrency": None}, "`concurrency` must be a valid integer"),
        ({"concurrency": 1.5}, "`concurrency` must be a valid integer"),
        ({"repeat": None}, "`repeat` must be a valid integer"),
        ({"key": [1]}, "`key` must be a valid string"),
        ({"status": 5}, "`status` must be 'ok' or 'void'"),
        ({"engine": None}, "`engine` must be a valid string"),
        ({"reasons": [1]}, "`reasons.0` must be a valid string"),
        ({"steps": "many"}, "`steps` must be a valid integer"),
        ({"seconds": -1}, "`seconds` must be greater than or equal to 0"),
        ({"tpot_ms_p50": float("nan")}, "`tpot_ms_p50` must be a finite number"),
        ({"drafted": 3, "accepted": 4}, "`accepted` (4) must be <= `drafted` (3)"),
        ({"accepted_per_position": [1, None]}, "`accepted_per_position.1` must be a valid integer"),
    ],
)
def test_a_cell_that_is_none_is_named_by_its_line(runs, change, message):
    path = runs / PROFILE / BASE / "cells.jsonl"
    first, *others = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(first) | change), *others]))
    with pytest.raises(UserError) as error:
        results.cells(runs, PROFILE)
    assert f"{BASE}/cells.jsonl, line 1" in one_sentence(error) and message in str(error.value)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"null", b"3", b"[{}]"])
def test_a_torn_timeline_is_refused_in_one_sentence(runs, text):
    (runs / PROFILE / BASE / "timeline.json").write_bytes(text)
    for read in (lambda: Ledger(runs / PROFILE / BASE).starts(), lambda: results.eager(runs, PROFILE)):
        with pytest.raises(UserError) as error:
            read()
        assert f"{BASE}/timeline.json" in one_sentence(error)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[]", b"null"])
def test_other_torn_records_are_refused_in_one_sentence(runs, text):
    home = runs / PROFILE
    (home / BASE / "environment.json").write_bytes(text)
    with pytest.raises(UserError) as error:
        machines.description(runs, PROFILE)
    assert "environment.json" in one_sentence(error)
    (home / BASE / "status.json").write_bytes(text)
    with pytest.raises(UserError) as error:
        results.statuses(runs, PROFILE)
    assert "status.json" in one_sentence(error)
    (home / "verdict.json").write_bytes(text)
    with pytest.raises(UserError) as error:  # not the published one in its place
        serve_winner.chosen_by_verdict(profiles_load.load(PROFILE), runs, "throughput")
    assert "verdict.json" in one_sentence(error)


def test_odd_but_whole_records_are_read(runs):
    odd = {"hardware": [], "recorded_at": None}
    (runs / PROFILE / BASE / "environment.json").write_text(json.dumps(odd))
    assert machines.description(runs, PROFILE) == ""
    (runs / PROFILE / "verdict.json").write_text('{"schema_version": 2}')
    with pytest.raises(UserError, match="must have `answers` and `points`"):
        serve_winner.chosen_by_verdict(profiles_load.load(PROFILE), runs, "throughput")


def test_requests_without_their_cells_and_of_another_kind(runs):
    folder = runs / PROFILE / BASE
    (folder / "cells.jsonl").unlink()
    assert BASE not in set(results.requests(runs, PROFILE).configuration)
    pd.DataFrame({"a": [1]}).to_parquet(folder / "requests.parquet")
    with pytest.raises(UserError, match="lacks the column `key`"):
        results.requests(runs, PROFILE)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("first_token_s", "soon", "has first_token_s = soon"),
        ("last_token_s", -1.0, "has last_token_s = -1.0"),
        ("output_tokens", float("inf"), "has output_tokens = inf"),
        ("sent_s", 1e9, "has its first_token_s before its sent_s"),
        ("first_token_s", 1e9, "has its last_token_s before its first_token_s"),
    ],
)
def test_a_request_that_cannot_have_been_is_named(runs, column, value, message):
    path = runs / PROFILE / BASE / "requests.parquet"
    frame = pd.read_parquet(path)
    frame[column] = frame[column].astype(object)
    frame.loc[0, column] = value
    if isinstance(value, str):
        frame[column] = frame[column].astype(str)
    frame.convert_dtypes().to_parquet(path)
    with pytest.raises(UserError) as error:
        results.requests(runs, PROFILE)
    assert f"{BASE}/requests.parquet: request " in one_sentence(error) and message in str(error.value)


@pytest.mark.parametrize(("column", "value"), [("made_at", "yesterday"), ("concurrency", "one"), ("speed_up", "fast")])
def test_forecasts_of_another_kind_are_refused_in_one_sentence(tmp_path, column, value):
    row = dict.fromkeys(forecasts.COLUMNS, 1) | {"made_at": "2026-01-01T00:00:00+00:00"}
    path = tmp_path / PROFILE / forecasts.FILE
    path.parent.mkdir()
    pd.DataFrame([row | {column: value}]).to_csv(path, index=False)
    with pytest.raises(UserError) as error:
        forecasts.read(tmp_path, PROFILE)
    assert "forecasts.csv cannot be read" in one_sentence(error)


def test_a_notebook_that_is_none_stops_the_book_in_one_sentence(tmp_path):
    folder = tmp_path / PROFILE / "notebooks"
    folder.mkdir(parents=True)
    for name in book.ANALYSES:
        (folder / f"{name}.ipynb").write_text("{}")
    with pytest.raises(UserError, match=r"\.ipynb is not a notebook"):
        book.stage(tmp_path, PROFILE, tmp_path / "build")


def test_places_that_cannot_be_written(runs, tmp_path, capsys):
    with pytest.raises(UserError, match="give another path with --out"):
        archive.share(profiles_load.load(PROFILE), runs, tmp_path / "nowhere" / "x.tar.gz")
    (tmp_path / "d.tar.gz").mkdir()
    with pytest.raises(UserError, match="give another path with --out"):
        archive.share(profiles_load.load(PROFILE), runs, tmp_path / "d.tar.gz")
    assert not list(tmp_path.glob("*.part"))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="could not be written"):
        write_atomic(tmp_path / "file" / "x.json", b"")
    assert main(["serve", "--port", "99999", "--configuration", BASE]) == 2
    assert "between 1 and 65535" in capsys.readouterr().err


def test_a_model_whose_config_holds_nulls_still_gives_a_profile(tmp_path):
    folder = tmp_path / 'a: "model'
    folder.mkdir()
    nulls = ("text_config", "quantization_config", "max_position_embeddings")
    sizes = {"num_hidden_layers": 2, "hidden_size": 8, "vocab_size": 16}
    (folder / "config.json").write_text(json.dumps(dict.fromkeys(nulls) | sizes))
    text = profile_text.text(new_profile.look("mine", [str(folder)]))
    assert yaml.safe_load(text)["target"]["path"] == str(folder)
    (folder / "config.json").write_text("[]")
    with pytest.raises(UserError, match="must hold a mapping"):
        new_profile.look("mine", [str(folder)])
    with pytest.raises(UserError, match="must be a drafter's folder"):
        new_profile.look("mine", drafter=[str(tmp_path / "/nope: x #")])
    shutil.rmtree(folder)


def test_merged_and_plain_keys_are_no_duplicates(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text("a: &a {k: 1, l: 2}\nb: {<<: *a, k: 3}\n")
    assert files.read_yaml(path, "t")["b"] == {"k": 3, "l": 2}

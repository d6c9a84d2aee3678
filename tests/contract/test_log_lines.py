"""A log that a collector gathered reads as the log itself, whoever the engine is and whoever collected."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from runners.readers.log_lines import LogLines
from runners.readers.read_text import read_text

FIXTURES = Path(__file__).parent / "fixtures"
LOGS = sorted(p.name for p in FIXTURES.glob("*.log"))
COLLECTED = "llamacpp_old.log"  # some of its lines begin with a container's time
COLLECTORS = {
    "docker compose": "vllm-1  | {}",
    "docker compose, another name": "[sglang]     | {}",
    "journald": "Mar 11 06:16:52 box vllm[1]: {}",
    "journald, ISO time": "2026-03-11T06:16:52+0100 box llama-server[812]: {}",
    "Kubernetes' files": "2026-03-11T06:16:52.123456789Z stdout F {}",
    "docker logs -t": "2026-03-11T06:16:52.123456789Z {}",
    "a time and a bar": "2026-04-19 17:30:01 | {}",
    "a time alone": "2026-04-19 17:30:01 {}",
    "Python's logging": "2026-04-19 17:30:01,123 - app.run - INFO - {}",
    "loguru": "2026-04-19 17:30:01.123 | INFO     | app.run:main:12 - {}",
    "Ray": "(RolloutEngine pid=7) {}",
    "Ray, coloured": "\x1b[36m(RolloutEngine pid=7, ip=10.0.0.2)\x1b[0m {}",
    "kubectl": "pod/name {}",
    "kubectl --prefix": "[pod/name/server] {}",
    "stern": "vllm-7d9f8b6c5-x2x9z server {}",
    "srun --label": "0: {}",
    "mpirun": "[1,0]<stdout>:{}",
    "Ray, of several processes": "(RolloutEngine pid=7) {} [repeated 3x across cluster]",
    "an issue": "> {}",
    "an indent": "    {}",
    "a journal of docker compose": "Mar 11 06:16:52 box docker[77]: vllm-1  | {}",
    "colours whose escape byte was lost": "[0;36m{}[0;0m",
    "colours whose escape byte is spelled out": "#033[36m{}#033[0m",
}


def lines_of(name):
    with open(FIXTURES / name, newline="\n") as log:
        return re.sub(r"\x1b\[\d*[A-Za-z]", "", log.read()).split("\n")


def without_times(reading):
    """The reading, but for the times of its phases."""
    phases = [dataclasses.replace(p, at=None) for p in reading.phases]
    return dataclasses.replace(reading, phases=phases)


@pytest.mark.parametrize("name", [name for name in LOGS if name != COLLECTED])
def test_a_log_without_a_collector_passes_unchanged(name):
    lines = lines_of(name)
    assert list(LogLines(lines)) == lines


@pytest.mark.parametrize("form", COLLECTORS.values(), ids=COLLECTORS)
@pytest.mark.parametrize("name", LOGS)
def test_a_collected_log_reads_as_the_log_itself(name, form):
    lines, engine = lines_of(name), name.partition("_")[0]
    found = read_text([form.replace("{}", line) + "\n" for line in lines], engine)
    assert without_times(found) == without_times(read_text(lines, engine))


@pytest.mark.parametrize("name", LOGS)
def test_a_logging_services_json_reads_as_the_log_itself(name):
    lines, engine = lines_of(name), name.partition("_")[0]
    wrapped = [json.dumps({"log": line + "\n", "time": "2026-03-11T06:16:52Z"}) + "\n" for line in lines]
    assert without_times(read_text(wrapped, engine)) == without_times(read_text(lines, engine))


@pytest.mark.parametrize("name", LOGS)
def test_the_engine_of_a_whole_log_is_certain(name):
    found = read_text([f"server-1  | {line}" for line in lines_of(name)])
    assert (found.engine, found.engine_certainty) == (name.partition("_")[0], "certain")


def test_the_collectors_time_stands_where_the_line_has_none():
    form = "Mar 11 06:16:52 box vllm[1]: {}"
    phases = read_text([form.replace("{}", line) for line in lines_of("vllm_cpu_ngram.log")]).phases
    assert phases[2].at == "11-29 16:23:13"  # the engine's own
    assert (phases[-1].name, phases[-1].at) == ("ready", "Mar 11 06:16:52")
    log = LogLines(['{"msg": "ready", "ts": 1773209812}\n'])
    assert next(iter(log)) == "ready" and log.at == "1773209812"


def test_processes_that_the_engine_names_itself_are_no_collectors_prefix():
    lines = ["(Worker_TP3 pid=9) ERROR 03-11 06:16:52 [x.py:1] no", "(EngineCore_DP0 pid=7) text", "(APIServer pid=1)"]
    assert list(LogLines(lines)) == lines


def test_lines_that_the_collector_did_not_write_pass_unchanged():
    lines = ["vllm-1  | INFO:     Started\n", "Loading: 50%\n", "\n", "vllm-1  | \n", "proxy | GET /\n"]
    assert list(LogLines(lines)) == ["INFO:     Started\n", "Loading: 50%\n", "\n", "\n", "GET /\n"]


def test_a_label_is_told_from_a_lines_own_first_word_by_many_lines():
    assert list(LogLines(["qwen2: unknown model"])) == ["qwen2: unknown model"]
    assert list(LogLines(["node01: a", "node02: b", "node01: c"])) == ["a", "b", "c"]


def test_a_time_in_brackets_is_taken_off_unless_the_engine_wrote_it():
    lines = ["[2026-03-11 06:16:52] (Worker_TP3 pid=9) x", "[2026-03-11 06:16:52] Load weight begin."]
    assert list(LogLines(lines)) == ["(Worker_TP3 pid=9) x", lines[1]]


def test_one_quoted_line_is_enough():
    assert list(LogLines(["> (APIServer pid=1) x"])) == ["(APIServer pid=1) x"]

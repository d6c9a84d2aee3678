"""What a base answered: the texts by prompt, the samples by point."""

import json

from runners.measure import base_answers
from runners.measure.base_answers import BaseAnswers, Sample, Text
from runners.measure.client import Result
from runners.measure.ledger import Ledger


def result(text, **changes):
    return Result("p", 0, 0, output_tokens=4, finish_reason="length", text=text, **changes)


def test_only_answers_in_full_are_texts_to_compare_with():
    found = BaseAnswers()
    found.add("chat", 4, [result("The whole", role="timed"), result("The", role="cut"), result("T", role="ramp")])
    found.add("chat", 16, [result("The whole"), result("", error="broke"), result("The other")])
    assert found.texts == {"p": [Text("The whole"), Text("The other")]}
    assert found.samples["chat", 4] == [Sample("p", "The whole", 4)]
    assert len(found.samples["chat", 16]) == 2


def test_a_ledgers_good_cells_are_read(tmp_path):
    ledger = Ledger(tmp_path)
    row = {"schema_version": 1, "configuration": "base", "engine": "vllm", "method": "none", "workload": "chat"}
    rows = [row | {"key": k, "concurrency": 4, "repeat": 0, "status": s} for k, s in (("a", "ok"), ("b", "void"))]
    ledger.cells_path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    ledger._append_requests("a", 0, [result("good"), result("go", role="cut"), result("", error="broke")])
    ledger._append_requests("b", 0, [result("garbage")])
    found = base_answers.of_ledger(ledger)
    assert found.texts == {"p": [Text("good")]} and dict(found.samples) == {("chat", 4): [Sample("p", "good", 4)]}


def test_published_rows_have_no_roles_and_are_in_full():
    found = base_answers.of_ledger(Ledger(base_answers_of_the_lab()))
    assert {len(texts) for texts in found.texts.values()} == {1}, "vLLM in fp32 has one answer to a prompt"
    assert set(found.samples) == {(w, c) for w in ("chat", "edit") for c in (1, 4, 16)}


def base_answers_of_the_lab():
    from runners.core.paths import ROOT

    return ROOT / "data" / "elsewhere" / "no-amx" / "lab-cpu" / "vllm-base"

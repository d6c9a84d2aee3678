"""Running a program to its end: its lines, its failure in one sentence, its time limit."""

import sys

import pytest

from runners.core.errors import UserError
from runners.serve import made_folder, scripts

COPY = "import sys, json; request = json.load(open(sys.argv[1])); json.dump({'got': request}, open(sys.argv[2], 'w'))"


def python(code):
    return [sys.executable, "-c", code]


def test_each_line_is_passed_on():
    lines = []
    scripts.run(
        python("import sys; print('out', flush=True); print('err', file=sys.stderr)"), "It failed.", lines.append
    )
    assert lines == ["out", "err"]


def test_a_failure_is_one_sentence_and_the_last_line():
    with pytest.raises(UserError, match=r"^It failed\. Its last line: ValueError: no such layer$"):
        scripts.run(python("print('1 of 2'); raise ValueError('no such layer')"), "It failed.")
    with pytest.raises(UserError, match="Its last line: no output"):
        scripts.run(python("import sys; sys.exit(3)"), "It failed.")


def test_one_that_takes_too_long_is_ended():
    with pytest.raises(UserError, match="It failed"):
        scripts.run(python("import time; time.sleep(600)"), "It failed.", seconds=0.5)


def test_a_request_is_answered_by_files_of_its_own(tmp_path):
    assert scripts.ask(python(COPY), {"k": 3}, "It failed.") == {"got": {"k": 3}}
    with pytest.raises(UserError, match="wrote no result"):
        scripts.ask(python("pass"), {}, "It failed.")


def test_a_folder_is_made_once_and_never_half(tmp_path):
    path, calls = tmp_path / "made", []

    def argv(folder, more=""):
        calls.append(folder)
        return python(
            f"from pathlib import Path; p = Path({str(folder)!r}); p.mkdir(); (p / 'a').write_text('b'){more}"
        )

    with pytest.raises(UserError, match="The folder could not be made in .*ZeroDivisionError"):
        made_folder.make_once(path, lambda folder: argv(folder, "; 1 / 0"), "The folder")
    assert not path.exists() and not calls[0].exists()
    assert made_folder.make_once(path, argv, "The folder") == path and (path / "a").read_text() == "b"
    assert made_folder.make_once(path, argv, "The folder") == path and len(calls) == 2

"""What is said before a report measures anything."""

from runners.commands import prepare
from runners.profiles import load


def test_what_of_a_prompt_file_is_not_asked_and_what_may_not_fit(tmp_path):
    (tmp_path / "mine.txt").write_text("Short?\nShort?\n" + "word " * 2000 + "\n")
    lab = load.load("lab-cpu")
    more = {"prompt_sets": ["chat", "mine"], "prompt_files": {"mine": str(tmp_path / "mine.txt")}}
    profile = lab.model_copy(update={"workload": lab.workload.model_copy(update=more)})
    said = []
    prepare._say_of_prompts(profile, "quick", said.append)
    assert said == [
        "prompts mine: left out: 1 prompts that stand there twice",
        "prompts mine: the longest has about 2,000 tokens; with 64 of the answer it may not fit into "
        "`context_length: 1024`, and the engine then refuses it",
    ]

"""Pre-flight of what is asked: are the prompts there, do they fit, is there a text to compare answers with?"""

from collections.abc import Iterator

from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.profiles import prompt_files
from runners.profiles.profile import Profile
from runners.serve import target_files


def check(profile: Profile) -> Iterator[Finding]:
    """Findings of the prompt sets and of the reference model's answers."""
    for prompt_set in profile.workload.prompt_sets:
        yield from _prompt_set(profile, prompt_set)
    if profile.gates.equal_to_reference_floor is not None and profile.workload.temperature == 0:
        own = profile.target.path is not None or profile.target.package is not None
        if own and target_files.forms(profile.target)[1] is None:
            words = "`equal_to_reference_floor` needs the target as a Hugging Face folder"
            yield Finding("blocker", words, "give the folder as the target's `path`, or leave the floor out")


def _prompt_set(profile: Profile, name: str) -> Iterator[Finding]:
    try:
        found = prompt_files.load(name, profile.workload.prompt_files)
    except UserError as error:
        yield Finding("blocker", str(error))
        return
    answer, limit = profile.workload.output_tokens, profile.target.context_length
    if limit and found.longest + answer > limit:
        words = f"the longest prompt of {name} has about {found.longest:,} tokens; with {answer:,} of the answer it "
        yield Finding(
            "warning", f"{words}may not fit into context_length {limit:,}", "raise it: a server refuses the rest"
        )


def base_of(profile: Profile, name: str) -> Iterator[Finding]:
    """Has a configuration that drafts something to be compared with? Each of its cells would be void without."""
    if profile.drafts(name) and profile.base_of(name) is None and profile.gates.equal_to_reference_floor is None:
        words = f"no configuration of {profile.configuration(name).engine} serves without drafting: there is no base"
        yield Finding("blocker", words, "add one without `method`, and `base: true` where there are several")

"""The README's verdict and its picture, made from the published verdict; a test compares them with it."""

from pathlib import Path

from runners.analyse.verdict import decide
from runners.claims import check
from runners.core import files, paths
from runners.core.errors import UserError
from runners.profiles.profile import Profile
from runners.report import pictures
from runners.report.chapters import claims as claims_chapter
from runners.report.chapters.verdict import summary

BEGIN, END = "<!-- verdict: made by `make publish` -->", "<!-- end of verdict -->"
README = paths.ROOT / "README.md"
PICTURE = paths.ROOT / "book" / "images" / "verdict.svg"


def section(profile: Profile, runs: Path) -> str:
    """What stands between the markers."""
    claims = claims_chapter.claims_sentence(check.counts(check.of(runs, profile.name), profile.name))
    return f"{BEGIN}\n\n{summary.section(decide.stored(runs, profile.name))}\n{claims}\n\n{END}"


def with_section(text: str, new: str) -> str:
    """The README's text with the new section between its markers; UserError when they are not there."""
    if BEGIN not in text or END not in text:
        raise UserError(f"README.md has no lines '{BEGIN}' and '{END}'; put them where the verdict belongs.")
    return text[: text.index(BEGIN)] + new + text[text.index(END) + len(END) :]


def write(profile: Profile, runs: Path) -> int:
    """Write README.md and its picture from a profile's verdict. Returns the command's exit status."""
    if profile.simulated:
        raise UserError(f"{profile.name} is a rehearsal: simulated figures never enter the README.")
    files.write_text(README, with_section(README.read_text(), section(profile, runs)))
    pictures.grid(runs, profile.name, PICTURE)
    print(f"README.md and {PICTURE.relative_to(paths.ROOT)} say what {profile.name}'s verdict says")
    return 0

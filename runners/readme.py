"""The README's verdict table and picture, made from the published verdict; a test holds them against it."""

from pathlib import Path

from runners import charts, claims, paths, statistics, tables, verdict
from runners.errors import UserError
from runners.profile import Profile

BEGIN, END = "<!-- verdict: made by `make publish` -->", "<!-- end of verdict -->"
README = paths.ROOT / "README.md"
PICTURE = paths.ROOT / "book" / "images" / "verdict.svg"


def section(profile: Profile, runs: Path) -> str:
    """What stands between the markers."""
    said = claims.said(claims.counts(claims.of(runs, profile.name), profile.name))
    return f"{BEGIN}\n\n{verdict.markdown(verdict.load(runs, profile.name))}\n{said}\n\n{END}"


def with_section(text: str, new: str) -> str:
    if BEGIN not in text or END not in text:
        raise UserError(f"README.md has no lines '{BEGIN}' and '{END}'; put them where the verdict belongs.")
    return text[: text.index(BEGIN)] + new + text[text.index(END) + len(END) :]


def write(profile: Profile, runs: Path) -> int:
    if profile.simulated:
        raise UserError(f"{profile.name} is a rehearsal: simulated figures never enter the README.")
    README.write_text(with_section(README.read_text(), section(profile, runs)))
    cells, requests = tables.cells(runs, profile.name), tables.requests(runs, profile.name)
    chart = charts.throughput(statistics.summarise(cells, requests), cells)
    chart.save(str(PICTURE))
    print(f"README.md and {PICTURE.relative_to(paths.ROOT)} say what {profile.name}'s verdict says")
    return 0

"""Pre-flight of the folder that is measured into: can what is there be read, and does nobody else write into it?"""

from collections.abc import Iterator
from pathlib import Path

from runners.analyse import results
from runners.core import locks
from runners.core.errors import UserError
from runners.core.finding import Finding
from runners.measure import campaign_record
from runners.measure.ledger import Ledger
from runners.profiles.profile import Profile


def check(profile: Profile, runs: Path) -> Iterator[Finding]:
    """Findings of <runs>/<profile>; nothing is written."""
    if locks.is_held(runs / profile.name):
        words = f"another run is measuring into {runs / profile.name}"
        yield Finding("blocker", words, "wait for it or stop it")
    try:
        campaigns = campaign_record.load(runs / profile.name)
        ledgers = [Ledger(folder) for folder in results.folders(runs, profile.name)]
        cells = sum(len(ledger.rows()) for ledger in ledgers)
        for ledger in ledgers:
            ledger.starts()
    except UserError as error:
        yield Finding("blocker", str(error))
        return
    if campaigns:
        yield Finding("note", f"{len(campaigns)} campaigns with {cells} cells are there and can be read")

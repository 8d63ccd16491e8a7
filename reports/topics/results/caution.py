"""What a reader must know before using the numbers."""

from typing import Final

from reports.display.html import Html, aside
from reports.sets.version import Version
from suite.files.wording import counted

MAX_SETS_SAID: Final = 2  # one by one


def caution(version: Version) -> Html:
    """What a reader must know before using the numbers; empty when there is nothing."""
    rows = [row for one in version.scaling for row in one.campaign.rows]
    notes = []
    if any(row.rounds_completed == 1 for row in rows):
        notes.append("Where only one round completed, nothing is known about the spread between rounds.")
    if drifting := version.totals.unsettled:
        shown = "has not shown that it is" if drifting == 1 else "have not shown that they are"
        notes.append(
            f"{drifting} of {counted(version.totals.runs, 'round')} {shown} steady: iterations were still getting"
            " faster or slower, or were too few to find the end of the warm-up. None is left out; the pages of the"
            " series name them."
        )
    labels = {place.environment.host_label for one in version.scaling for place in one.campaign.places}
    if len(labels) > 1:
        notes.append(
            "The results come from more than one environment. Cases are compared within a set only, and where one set"
            " has several environments a speed-up mixes them."
        )
    notes += _of_cores(version)
    return aside("Before you use these numbers", notes)


def _of_cores(version: Version) -> tuple[str, ...]:
    said = version.slowed_cores
    if len(said) <= MAX_SETS_SAID:
        return said
    shared = f"In {len(said)} of {version.totals.sets} sets cores were shared or slowed, which makes iterations longer"
    return (f"{shared}; the page Findings says how much in each.",)

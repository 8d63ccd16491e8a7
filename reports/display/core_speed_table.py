"""What slowed cores did, set by set."""

from collections.abc import Sequence
from typing import Final

from reports.display.html import MISSING, Html, html_table, paragraph, together
from reports.sets.version import ResultSet
from suite.statistics.core_speed import SLOWED

RULE: Final = (
    "After each marked iteration a fixed piece of Python's work is timed on the core that launches kernels. The core"
    f" counts as slowed where this takes over {SLOWED:g} times as long as at best."
)


def slowed_cores_table(sets: Sequence[ResultSet]) -> Html | None:
    """Show the sets whose cores were shared or slowed; None without any."""
    found = [(one.title or "This campaign", said) for one in sets if (said := one.campaign.slowed_cores)]
    if not found:
        return None
    table = html_table(
        ["Set", "Marked iterations", "After a slowed core", "At best", "The next iteration"],
        [
            [title, str(said.looks), str(said.slowed), said.fastest_in_words, said.cost_in_words or MISSING]
            for title, said in found
        ],
        label="Slowed cores",
    )
    return together([paragraph(RULE), table])

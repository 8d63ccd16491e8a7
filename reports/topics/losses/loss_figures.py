"""What scaling loses and to what, as pages say it besides figures.json. Pure."""

from collections.abc import Mapping

from reports.analysis.time_split import PARTS
from reports.display.topic import Figures
from reports.sets.version import Version
from reports.topics.losses.card import loses_most
from reports.topics.losses.losses import Loss, Lost, losses


def loss_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures, of every case on more GPUs than the fewest; and what is said of all of them."""
    found = {one.name: losses(one.campaign) for one in version.scaling}
    if not any(found.values()):
        return {}
    every = Lost.of([*found.values()])
    causes = {name: every.causes[part] for name, part in PARTS.items() if part in every.causes}
    most = loses_most(version)
    return {
        **{f"{name}: {loss.case_id}": _figures(loss) for name, those in found.items() for loss in those},
        "every curve": {
            "curves": every.curves,
            "lose_much": every.much,
            "largest_part_of_curves": causes,
            "loses_most": f"{most[0]}: {most[1].case_id}" if most else None,
        },
    }


def _figures(loss: Loss) -> Figures:
    return {
        "compared_with": loss.baseline_id,
        "lost": loss.lost,
        "lost_interval": loss.lost_interval and [*loss.lost_interval],
        "parts": {name: loss.parts[part] for name, part in PARTS.items() if part in loss.parts},
        "part_intervals": {
            name: [*loss.part_intervals[part]] for name, part in PARTS.items() if part in loss.part_intervals
        },
    }

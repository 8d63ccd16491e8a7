"""What the first page counts: what was measured, and how sure it is. Pure."""

from collections.abc import Mapping
from dataclasses import asdict

from reports.display.topic import Figures
from reports.sets.version import Version
from reports.topics.results.measured_before import Measured, asked_of_all_versions, beyond_newer, completed
from reports.topics.results.page import first_and_last, how_sure


def first_page_figures(version: Version) -> Mapping[str, Figures]:
    """Return ``all`` -> figures; nothing where no run completed."""
    records = completed(version)
    if not records:
        return {}
    found, days = Measured.by(records), first_and_last(records)
    everything = {
        "tasks": len(found.tasks),
        "libraries": len(found.libraries),
        "most_ranks_of_a_machine": found.most,
        "runs": version.totals.runs,
        "unsettled": version.totals.unsettled,
        "days": [day.isoformat() for day in days] if days else None,
        "speedups": asdict(how_sure(version.lines)),
    }
    return {"all": everything}


def before_figures(version: Version) -> Mapping[str, Figures]:
    """Return what of all versions is said to be missing, and what each older one has that no newer one has."""
    if not completed(version):
        return {}
    beyond = {f"only in {name}": asdict(more) for name, more in beyond_newer(version).items()}
    return {"all versions": asdict(asked_of_all_versions(version)), **beyond}

"""``page_figures.json``: what pages say besides ``figures.json``, computed again page by page."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from reports.verification.finding import Finding, Json, as_far_as_possible, differing, not_compared
from reports.verification.hashes import is_version
from reports.verification.pages.acceptance import judged_sets
from reports.verification.pages.cost import choosing
from reports.verification.pages.findings import every_section, losses
from reports.verification.pages.hardware import machines
from reports.verification.pages.history import history
from reports.verification.pages.others import clock, nodes, published_beside, stacks
from reports.verification.pages.overview import counts, explore, files, first_page, limits, measured_before, support
from reports.verification.pages.tasks import charts, remarks, scaling, starts
from reports.verification.pages.tuning import division, learning
from reports.verification.pages.ways_to_run import determinism, lerobot, pipelines, releases, shared_gpu, turns
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.shape import read_json
from reports.verification.samples.stored_version import (
    PAGE_FIGURES,
    StoredVersion,
    contributors_of,
    imported_of,
    roles_of,
    stored_version,
)

_BUILD_AGAIN: Final = "Write the file again with `python -m reports.site.figure_files`."
# Page -> what it is said of -> figures; of no thing where the page says nothing of this version.
PAGES: Final[Mapping[str, Callable[[StoredVersion], dict[str, Json]]]] = {
    "acceptance": judged_sets.figures,
    "charts": charts.figures,
    "choosing": choosing.figures,
    "clock": clock.figures,
    "counts": counts.figures,
    "data": files.figures,
    "determinism": determinism.figures,
    "division": division.figures,
    "explore": explore.figures,
    "findings": every_section.figures,
    "gpu-models": first_page.gpu_models,
    "hardware": machines.hardware_figures,
    "hardware-before": measured_before.of_models,
    "history": history.figures,
    "index": first_page.figures,
    "index-before": measured_before.figures,
    "learning": learning.figures,
    "lerobot": lerobot.figures,
    "limits": limits.figures,
    "losses": losses.figures,
    "machines": machines.figures,
    "nodes": nodes.figures,
    "pipeline": pipelines.figures,
    "published": published_beside.figures,
    "ray": pipelines.ray_figures,
    "releases": releases.figures,
    "remarks": remarks.figures,
    "scaling": scaling.figures,
    "shared-gpu": shared_gpu.figures,
    "stacks": stacks.figures,
    "starts": starts.figures,
    "support": support.figures,
    "turns": turns.figures,
}
_OF_SEVERAL_VERSIONS: Final = {"acceptance", "hardware-before", "history", "index-before", "support"}


def check_pages(
    folder: Path, sets: Sequence[StoredSet], *, root: Path, older: Sequence[StoredVersion] = ()
) -> list[Finding]:
    """Check the file of a folder of sets; return what differs, which is nothing if there is no such file.

    ``older``: the versions that stand beside it. Without any, what is said of older versions is not checked.
    """
    path = folder / PAGE_FIGURES
    where = path.relative_to(root).as_posix()
    if not path.is_file():
        return []
    needed = [*sets, *(one for version in older for one in version.sets)]
    rejected = [name for one in needed for name in one.rejected]
    return not_compared(where, rejected) or list(as_far_as_possible(where, _check(path, where, sets, older)))


def unchecked_pages(folder: Path, *, root: Path, older: Sequence[StoredVersion]) -> tuple[str, ...]:
    """Return a sentence if pages compare the version with others and none stands beside it."""
    path = folder / PAGE_FIGURES
    try:
        needed = list(map(str, read_json(path)["older"])) if path.is_file() and not older else []
    except (AttributeError, LookupError, TypeError, ValueError):  # a finding of ``check_pages``
        return ()
    if not needed:
        return ()
    pages, name = ", ".join(sorted(_OF_SEVERAL_VERSIONS)), folder.relative_to(root).as_posix()
    return (f"{name}: not checked, because {' and '.join(needed)} is not beside it: what its pages {pages} compare.",)


def _check(path: Path, where: str, sets: Sequence[StoredSet], older: Sequence[StoredVersion]) -> Iterator[Finding]:
    document = read_json(path)
    roles, stored = document["roles"], document["pages"]
    wanted = roles_of(path.parent)
    if is_version(path.parent):
        found = [list(map(list, each.items())) for each in (roles, wanted)]
        yield from differing(where, "roles", *found, next_step=_BUILD_AGAIN)
        whose = [document.get("contributors", {}), contributors_of(path.parent)]
        yield from differing(where, "contributors", *whose, next_step=_BUILD_AGAIN)
    is_alone = bool(document["older"]) and not older
    if not is_alone:
        names = [version.name for version in older]
        yield from differing(where, "older", document["older"], names, next_step=_BUILD_AGAIN)
    name = path.parent.resolve().name
    imported = imported_of(path.parent)
    version = stored_version(sets, roles, document.get("contributors"), name=name, imported=imported, older=older)
    yield from differing(where, "the list of pages", sorted({*stored} - {*PAGES}), [], next_step=_BUILD_AGAIN)
    for page, figures in PAGES.items():
        if not (is_alone and page in _OF_SEVERAL_VERSIONS):
            yield from check_page(where, page, stored.get(page, {}), figures(version))


def check_page(where: str, page: str, found: Json, expected: Json) -> Iterator[Finding]:
    """Compare what is published of a page with what was computed again."""
    ids = sorted(found), sorted(expected)
    yield from differing(where, f"{page}: the list of what it says", *ids, next_step=_BUILD_AGAIN)
    for of in sorted(found.keys() & expected.keys()):
        yield from differing(where, f"{page}: {of}", found[of], expected[of], next_step=_BUILD_AGAIN)

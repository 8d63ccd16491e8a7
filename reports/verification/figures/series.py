"""What a series varies, which cases train as shipped, and the speed-ups over one GPU that a set has. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from reports.verification import formulas
from reports.verification.figures.published import curve_of, ratio_of, scaling_curves
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import gpu_model, trainings, world_size
from reports.verification.samples.set_folder import StoredSet

MODES: Final[Mapping[str, str]] = {"weak": "own", "strong": "split"}  # how GPUs share the work


def trains(stored: StoredCase) -> bool:
    return bool(stored.case.get("workload", "train") == "train")


def short_task(stored: StoredCase) -> str:
    """Return the name by which pages call its task."""
    return str(stored.case["task"]).removeprefix("Isaac-").removesuffix("-Direct")


def series_of(cases: Sequence[StoredCase]) -> dict[str, list[StoredCase]]:
    """Return name -> cases of every series, ordered by case id."""
    found: dict[str, list[StoredCase]] = {}
    for stored in sorted(cases, key=lambda stored: stored.case_id):
        found.setdefault(stored.case["series"], []).append(stored)
    return found


def series_of_kind(one: StoredSet, kind: str, *, trained: bool = False) -> list[list[StoredCase]]:
    """Return the cases of each series of one kind; ``trained``: of those alone that train."""
    kept = [stored for stored in one.of_report if not trained or trains(stored)]
    return [cases for cases in series_of(kept).values() if kind_of(cases) == kind]


def with_cold_starts(cases: Iterable[StoredCase]) -> set[str]:
    """Return the names of the series of which a case gives each round an empty kernel cache."""
    return {stored.case["series"] for stored in cases if stored.case.get("kernel_cache") == "empty"}


def kind_of(cases: Sequence[StoredCase]) -> str:
    """Return what a series varies: starts, one change of settings (tuned for several), environments alone, or ranks."""
    if with_cold_starts(cases):
        return "start_up"
    changes = {change_of(stored.case) for stored in cases if stored.case.get("division") == "open"}
    if changes:
        return changes.pop() if len(changes) == 1 else "tuned"
    sizes, environments = ({size(stored) for stored in cases} for size in (_ranks, _environments))
    return "sweep" if len(sizes) == 1 and len(environments) > 1 else "scaling"


def change_of(case: Json) -> str:
    if case.get("deterministic"):
        return "deterministic"
    return "shared_gpu" if trainings(case) > 1 else "versions" if case.get("with_packages") else "tuned"


def _ranks(stored: StoredCase) -> int:
    return world_size(stored.case)


def _environments(stored: StoredCase) -> int:
    return int(stored.case["num_envs"])


class Line(NamedTuple):
    """One machine, one training: on one GPU and on several, fewest first."""

    mode: str
    points: list[StoredCase]

    @property
    def case(self) -> Json:
        return self.points[0].case

    def speedup(self, point: StoredCase) -> tuple[float, formulas.Interval | None]:
        return (1.0, None) if point is self.points[0] else ratio_of(self.points[0], point)


def lines_of(one: StoredSet) -> list[Line]:
    """Return those of series that vary ranks, with the settings as shipped, on GPUs."""
    curves = [curve for curve in scaling_curves(_shipped(one)) if len(curve) > 1 and world_size(curve[0].case) == 1]
    return [Line(mode=MODES[curve[0].case["scaling"]], points=curve) for curve in curves]


def curves_on_one_node(one: StoredSet) -> list[list[StoredCase]]:
    """Return the same cases as curves, fewest ranks first, without those on several nodes."""
    curves: dict[object, list[StoredCase]] = {}
    for stored in sorted(_shipped(one), key=lambda stored: (world_size(stored.case), stored.case_id)):
        if stored.case["nnodes"] == 1:
            curves.setdefault(curve_of(stored.case), []).append(stored)
    return [*curves.values()]


def _shipped(one: StoredSet) -> list[StoredCase]:
    return [stored for cases in series_of_kind(one, "scaling") for stored in cases if is_as_shipped(stored)]


def is_as_shipped(stored: StoredCase) -> bool:
    """Tell whether a case trains on GPUs as upstream ships it, and completed."""
    is_closed = stored.case.get("division", "closed") == "closed"
    return bool(stored.published_s) and trains(stored) and is_closed and stored.case["device"] == "cuda"


def gpu_of(line: Line) -> str:
    """Return the model of the GPUs on which most of its rounds ran."""
    ran = [record for point in line.points for record in point.rounds if record["outcome"] != "skipped"]
    number = Counter(repr(record["environment"]) for record in ran)
    most = max(ran, key=lambda record: number[repr(record["environment"])])
    return str(gpu_model(most["environment"])).removeprefix("NVIDIA ")

"""What a series varies, and the speed-ups over one GPU that a set has. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from reports.verification import formulas
from reports.verification.figures.published import ratio_of, scaling_curves
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import trainings, world_size
from reports.verification.samples.set_folder import StoredSet

MODES: Final[Mapping[str, str]] = {"weak": "own", "strong": "split"}  # how GPUs share the work


def trains(stored: StoredCase) -> bool:
    return bool(stored.case.get("workload", "train") == "train")


def series_of(cases: Sequence[StoredCase]) -> dict[str, list[StoredCase]]:
    """Return name -> cases of every series, ordered by case id."""
    found: dict[str, list[StoredCase]] = {}
    for stored in sorted(cases, key=lambda stored: stored.case_id):
        found.setdefault(stored.case["series"], []).append(stored)
    return found


def kind_of(cases: Sequence[StoredCase]) -> str:
    """Return what a series varies: starts, one change of settings (tuned for several), environments alone, or ranks."""
    if any(stored.case.get("kernel_cache") == "empty" for stored in cases):
        return "start_up"
    changes = {_change(stored.case) for stored in cases if stored.case.get("division") == "open"}
    if changes:
        return changes.pop() if len(changes) == 1 else "tuned"
    sizes, environments = ({size(stored) for stored in cases} for size in (_ranks, _environments))
    return "sweep" if len(sizes) == 1 and len(environments) > 1 else "scaling"


def _change(case: Json) -> str:
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
    kept = [cases for cases in series_of(one.of_report).values() if kind_of(cases) == "scaling"]
    shipped = [stored for cases in kept for stored in cases if _is_shipped(stored)]
    curves = [curve for curve in scaling_curves(shipped) if len(curve) > 1 and world_size(curve[0].case) == 1]
    return [Line(mode=MODES[curve[0].case["scaling"]], points=curve) for curve in curves]


def _is_shipped(stored: StoredCase) -> bool:
    is_closed = stored.case.get("division", "closed") == "closed"
    return bool(stored.published_s) and trains(stored) and is_closed and stored.case["device"] == "cuda"


def gpu_of(line: Line) -> str:
    """Return the model of the GPUs on which most of its rounds ran."""
    ran = [record for point in line.points for record in point.rounds if record["outcome"] != "skipped"]
    number = Counter(repr(record["environment"]) for record in ran)
    most = max(ran, key=lambda record: number[repr(record["environment"])])
    return str(most["environment"]["gpus"][0]["name"]).removeprefix("NVIDIA ")

"""The verifier's least squares find what scipy's do, also where a coefficient ends at 0."""

from collections.abc import Callable, Mapping

import pytest

from reports.analysis.scaling.scaling_groups import ScalingGroup, ScalingPoint
from reports.analysis.scaling.scaling_laws import Fit, Law, fit
from reports.verification.figures.scaling_laws import fitted
from reports.verification.samples.case_file import StoredCase
from suite.schema.record import Scaling
from suite.statistics.intervals import Estimate

FRAMES = 1000
SPREAD = (0.99, 1.0, 1.02)  # of three processes
# Seconds of an iteration on so many ranks.
CURVES: Mapping[str, tuple[Law, Scaling, Callable[[int], float]]] = {
    "serial part": ("amdahl", "strong", lambda ranks: 0.2 + 0.8 / ranks + 0.01 * (ranks == 4)),
    "no serial part": ("amdahl", "strong", lambda ranks: (1.01 if ranks < 4 else 1.0) / ranks),
    "no divided part": ("amdahl", "strong", lambda ranks: 1 + 0.02 * ranks),
    "constant part": ("gustafson", "weak", lambda ranks: ranks / (0.3 + 0.7 * ranks + 0.02 * (ranks == 2))),
    "every rank with every other": ("usl", "weak", lambda ranks: 1 + 0.05 * (ranks - 1) + 0.02 * ranks * (ranks - 1)),
    "contention alone": ("usl", "weak", lambda ranks: 1 + 0.2 * (ranks - 1) ** 0.8),
}


def both(name: str) -> tuple[Fit, list[StoredCase]]:
    law, scaling, time_s = CURVES[name]
    times_s = {ranks: {number: time_s(ranks) * by for number, by in enumerate(SPREAD)} for ranks in (1, 2, 4, 8)}
    frames = {ranks: FRAMES * (ranks if scaling == "weak" else 1) for ranks in times_s}
    points = tuple(
        ScalingPoint(world_size=ranks, frames_per_iteration=frames[ranks], times_s=of) for ranks, of in times_s.items()
    )
    found = fit(law, ScalingGroup(series="made-up", curve="", scaling=scaling, points=points))
    assert isinstance(found, Fit)
    stored = [
        StoredCase(
            where="",
            case={
                "nnodes": 1,
                "nproc_per_node": ranks,
                "num_envs_global": frames[ranks],
                "num_steps_per_env": 1,
                "scaling": scaling,
            },
            rounds=[],
            ended_because=None,
            rule="",
            published_s=of,
        )
        for ranks, of in times_s.items()
    ]
    return found, stored


def values(found: Estimate | tuple[float, tuple[float, float] | None]) -> list[float]:
    value, span = (found.value, found.interval) if isinstance(found, Estimate) else found
    return [value, *(span or ())]


@pytest.mark.parametrize("name", CURVES)
def test_both_fits_have_the_same_parameters_errors_and_predictions(name: str) -> None:
    found, stored = both(name)
    law = fitted(found.law, stored)
    assert law is not None
    assert law.worst_residual == pytest.approx(found.worst_residual, rel=1e-9)
    assert values(law.fps_at(16)) == pytest.approx(values(found.total_fps(16)), rel=1e-9)
    if found.law == "usl":
        assert values(law.kappa) == pytest.approx(values(found.parameters["kappa"]), rel=1e-9, abs=1e-12)
        assert law.peak_ranks == pytest.approx(found.parameters["peak_world_size"].value, rel=1e-9)
    else:
        fraction = values(found.parameters["serial_fraction"])
        assert values(law.serial_fraction) == pytest.approx(fraction, rel=1e-9, abs=1e-12)


def test_a_law_needs_its_kind_of_scaling_a_point_to_spare_and_none_better_than_ideal() -> None:
    _, stored = both("serial part")
    assert fitted("gustafson", stored) is None
    assert fitted("usl", stored[:3]) is None
    assert fitted("usl", stored[:3], beyond=0) is not None
    stored[-1].published_s.update(dict.fromkeys(range(len(SPREAD)), 0.01))
    assert fitted("amdahl", stored) is None

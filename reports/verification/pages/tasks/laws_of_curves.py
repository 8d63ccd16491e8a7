"""What laws say of one curve: what limits it, the serial fraction, and a prediction beside its error."""

import math
from collections.abc import Sequence
from typing import Final

from reports.verification.figures.estimates import Estimate
from reports.verification.figures.published import SUPERLINEAR, efficiency_of, ratio_of
from reports.verification.figures.rows import of_pair
from reports.verification.figures.scaling_laws import LAW_OF, Law, fitted
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size

DESCRIBES: Final = 0.10  # a law that misses a point by more describes something else

type Curve = Sequence[StoredCase]


def limit(curve: Curve) -> Json | None:
    """Return the law that says what limits: all ranks with each other where that is sure, else a serial part."""
    usl = fitted("usl", curve)
    if usl and usl.worst_residual <= DESCRIBES:
        span = usl.kappa[1]
        if span and span[0] > 0 and math.isfinite(span[1]):
            residual = usl.worst_residual
            return {
                "law": "usl",
                "worst_residual": residual,
                "peak_ranks": usl.peak_ranks,
                **of_pair("kappa", usl.kappa),
            }
    serial = fitted(LAW_OF[curve[0].case["scaling"]], curve)
    return {**_serial(serial), "peak_ranks": None} if serial else None


def law(curve: Curve) -> Json | None:
    """Return the law of its kind of scaling with a prediction; None where the points cannot support it."""
    found = fitted(LAW_OF[curve[0].case["scaling"]], curve)
    return {**_serial(found), "prediction": _prediction(found, curve)} if found else None


def _serial(fit: Law) -> Json:
    return {"law": fit.name, "worst_residual": fit.worst_residual, **of_pair("serial_fraction", fit.serial_fraction)}


def _prediction(fit: Law, curve: Curve) -> Json | None:
    """Return the frames per second on twice the most ranks, and how wrong the law is of the most without them."""
    most = fit.points[-1]
    ranks = world_size(most.case)
    without = fitted(fit.name, [one for one in curve if world_size(one.case) < ranks], beyond=0)
    if fit.worst_residual > DESCRIBES or without is None:
        return None
    return {
        "ranks": 2 * ranks,
        "frames_per_s": fit.fps_at(2 * ranks)[0],
        "held_out_ranks": ranks,
        "held_out_error": without.fps_at(ranks)[0] / most.frames_per_s - 1,
    }


def serial_fraction(base: StoredCase, other: StoredCase) -> Estimate | None:
    """Return the serial fraction that explains one number of ranks, by Karp and Flatt; None for more than ideal."""
    if not base.published_s or not other.published_s or efficiency_of(base, other)[0] > SUPERLINEAR:
        return None
    ranks = world_size(other.case) / world_size(base.case)
    speedup, span = ratio_of(base, other)

    def fraction(speedup: float) -> float:
        return (1 / speedup - 1 / ranks) / (1 - 1 / ranks)

    return fraction(speedup), span and (fraction(span[1]), fraction(span[0]))

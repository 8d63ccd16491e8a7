"""Which number of GPUs is soonest, which costs the fewest GPU-hours, and up to which one more is worth it."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from reports.verification import formulas
from reports.verification.figures.estimates import Estimate, estimate
from reports.verification.figures.published import ratio_of
from reports.verification.figures.rows import of_pair
from reports.verification.figures.wall_times import start_up_s
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size

WORTH: Final = 0.5  # of what a GPU gives where the fewest are used; an added one that gives less is not worth it
DECIDED, INCONCLUSIVE = "decided", "inconclusive"

type Curve = Sequence[StoredCase]
type Pick = tuple[int, str]  # a number of ranks, and how sure it is


def figures(curve: Curve, repeat: Curve | None) -> Json | None:
    """Return the figures of a curve; with its baseline's repeat as the baseline a pick has to be the same."""
    found = _figures(curve)
    has_repeat = repeat is not None and len(repeat[0].published_s) >= formulas.MIN_PROCESSES
    other = _figures(repeat) if repeat is not None and has_repeat else None
    if found is None:
        return None
    picks = {
        name: _by_both(found, other, name) if other else found[f"{name}_is"] for name in ("cheapest", "worth_adding")
    }
    return {**found, **{f"{name}_is": word for name, word in picks.items()}, "with_repeat": other}


def _by_both(found: Json, other: Json, name: str) -> str | None:
    own, of_other = ((row[f"{name}_ranks"], row[f"{name}_is"]) for row in (found, other))
    if None in (*own, *of_other):
        return None
    return DECIDED if own == of_other and own[1] == DECIDED else INCONCLUSIVE


def _figures(curve: Curve) -> Json | None:
    base, options = curve[0], [stored for stored in curve if stored.published_s]
    if not options:
        return None
    least = min(options, key=gpu_s_per_frame)
    over = {_ranks(one): _over(one, least) for one in options}
    steps = pairwise(options) if base.published_s else ()
    worth = {_ranks(after): _worth(base, before, after) for before, after in steps}
    cheapest = _cheapest(over, _ranks(least))
    knee = _knee(_ranks(options[0]), worth)
    return {
        "soonest_ranks": _ranks(max(options, key=lambda one: one.frames_per_s)),
        "cheapest_ranks": cheapest[0],
        "cheapest_is": cheapest[1],
        "worth_adding_ranks": knee and knee[0],
        "worth_adding_is": knee and knee[1],
        "options": {
            str(_ranks(one)): {
                **of_pair("gpu_hours_over_fewest", over[_ranks(one)]),
                **of_pair("worth_of_added", worth.get(_ranks(one))),
                "start_up_s": start_up_s(one),
            }
            for one in options
        },
    }


def _ranks(stored: StoredCase) -> int:
    return world_size(stored.case)


def gpu_s_per_frame(stored: StoredCase) -> float:
    return _ranks(stored) / stored.frames_per_s


def _over(one: StoredCase, least: StoredCase) -> Estimate:
    """Return the GPU-hours of a frame over the fewest: the ranks over those, divided by the throughput over that."""
    if one is least:
        return 1.0, None
    ratio, span = ratio_of(one, least)
    ranks = _ranks(one) / _ranks(least)
    return ranks * ratio, span and (ranks * span[0], ranks * span[1])


def _worth(base: StoredCase, before: StoredCase, after: StoredCase) -> Estimate:
    """Return what each added rank adds to the frames per second, over those of a rank of the baseline."""
    cases = [base, after] if before is base else [base, before, after]  # one sample once

    def gained(times_s: Sequence[float]) -> float:
        fps = [one.frames / time_s for one, time_s in zip(cases, times_s, strict=True)]
        return (fps[-1] - fps[-2]) / (_ranks(after) - _ranks(before)) / (fps[0] / _ranks(base))

    return estimate([one.published_s.values() for one in cases], gained, is_positive=False)


def _cheapest(over: dict[int, Estimate], least: int) -> Pick:
    """Return the fewest GPU-hours, decided if the whole interval of every other number is above them."""
    others = [span for ranks, (_, span) in over.items() if ranks != least]
    return least, DECIDED if all(span and span[0] > 1 for span in others) else INCONCLUSIVE


def _knee(fewest: int, worth: dict[int, Estimate]) -> Pick | None:
    """Return the last number before one that is not worth it, decided if each interval lies on one side on the way."""
    if not worth:
        return None
    reached, is_sure = fewest, True
    for ranks, (value, span) in worth.items():
        is_sure = is_sure and span is not None and not span[0] < WORTH <= span[1]
        if value < WORTH:
            break
        reached = ranks
    return reached, DECIDED if is_sure else INCONCLUSIVE

"""How precisely a case is known by its reason to end, which the page of its task shows as it stands. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.finding import OR_LIST, Finding, differing
from reports.verification.samples.case_file import TWIN_SUFFIX, StoredCase
from reports.verification.samples.round_facts import world_size

# Such as ``the ratio to the baseline is known to 8.0% after 6 rounds beside 6 of the baseline``.
_KNOWN: Final = re.compile(
    r"(the median|the ratio to the baseline) is known to (\d+\.\d%) after (\d+) rounds?(?: beside (\d+) of)?"
)
_SAME_WORK: Final = ("series", "workload", "rl_library", "minibatch_rule")  # in a case and its baseline


def check_said_precision(cases: Sequence[StoredCase]) -> Iterator[Finding]:
    """Check that half the interval over the figure is what the sentence says, and that as many rounds completed."""
    for one in cases:
        if match := _KNOWN.search(one.ended_because or ""):
            figure, said, rounds, of_baseline = match.groups()
            times_s = [*one.times_s.values()]
            yield from differing(
                one.where, "completed rounds, by ended_because", len(times_s), int(rounds), next_step=OR_LIST
            )
            if figure == "the median":
                wanted = [_share((formulas.median(times_s), formulas.interval(times_s)))] if times_s else []
            else:
                bases = [[*base.times_s.values()][: int(of_baseline or 0)] for base in _baselines(one, cases)]
                wanted = [_share(formulas.ratio(base_s, times_s, 1)) for base_s in bases if base_s and times_s]
            if said not in wanted:
                got, expected = said, " or ".join(wanted) or "nothing, without times"
                what = f"precision of {figure}, by ended_because"
                yield Finding(where=one.where, what=what, got=got, expected=expected, next_step=OR_LIST)


def _share(found: tuple[float, formulas.Interval | None]) -> str:
    """Return half the interval over the figure, as the sentence writes it."""
    value, span = found
    return f"{(span[1] - span[0]) / 2 / value:.1%}" if span else "no interval"


def _baselines(one: StoredCase, cases: Sequence[StoredCase]) -> list[StoredCase]:
    """Return the cases of the same work on the fewest ranks; of several the campaign took the first of its plan."""
    like = [
        other
        for other in cases
        if [other.case.get(name) for name in _SAME_WORK] == [one.case.get(name) for name in _SAME_WORK]
        and not other.case_id.endswith(TWIN_SUFFIX)
    ]
    fewest = min(world_size(other.case) for other in [*like, one])
    return [other for other in like if world_size(other.case) == fewest and other is not one]

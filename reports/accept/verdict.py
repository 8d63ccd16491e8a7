"""One paragraph that says whether a machine is as fast as others of its kind, and which part is slow. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from reports.accept.judgement import JudgedPart, Judgement
from suite.files.wording import are, counted

NO_CAUSE: Final = "GPU or its driver"  # neither a core, throttling nor the interconnect is beyond other machines
UNKNOWN_CAUSE: Final = "GPU, its driver or a CPU core"  # no probe tells how fast the cores are


def verdict(found: Judgement) -> str:
    """Begin with the answer: ``Accepted``, ``Slow`` or ``Cannot say``."""
    if found.answer == "cannot say":
        return f"Cannot say: {_nothing_comparable(found)}"
    every = f"every other published machine with {found.model}"
    compared = counted(len(found.with_word("slow", "within", "fast")), "comparable case")
    if found.answer == "accepted":
        return " ".join([f"Accepted: at equal core speed, none of {compared} is slower than {every}.", *_beside(found)])
    slow = found.with_word("slow")
    worst = max(slow, key=lambda one: one.time.over_slowest)
    said = (
        f"Slow: at equal core speed, {len(slow)} of {compared} {are(len(slow))} slower than {every}, at worst"
        f" {worst.time.over_slowest:.2f} times the slowest ({worst.name})."
    )
    most = max(len(one.time.others) for one in slow)
    chance = f"By chance, a machine as good as {counted(most, 'other')} is slower than all of them once in {most + 1}."
    return " ".join([said, f"The slow part is {slow_part(found)}.", *_beside(found), chance])


def slow_part(found: Judgement) -> str:
    """The hardware that makes a slow machine slow, with what shows it and where the time is lost.

    A slow core and a throttled GPU are causes by themselves. So is a slow all-reduce if most of the time is lost there;
    otherwise it may be slow because a slow core starts it. A cause whose interval still reaches into the range of other
    machines is only likely. Without any, it is what they leave.
    """
    grown, share = found.grown or (None, 0.0)
    causes = [
        one
        for one in found.parts
        if one.part.kind == "cause" or (one is grown and one.part.points_to == "interconnect")
    ]
    sure = [one for one in causes if one.word == "slow"]
    likely = [one for one in causes if one.is_mostly_above]
    if sure:
        said = f"the {_named(sure)}"
    elif likely:
        said = f"likely the {_named(likely)}, though not surely beyond other machines"
    else:
        is_probed = any(one.part.points_to == "CPU core" and one.decided for one in causes)
        said = f"likely the {NO_CAUSE if is_probed else UNKNOWN_CAUSE}"
    if grown is not None:
        said += f"; {min(share, 1.0):.0%} of the lost time is in its part {grown.part.name!r}"
    if found.has_new_driver:
        said += f"; no published machine has its driver {', '.join(found.drivers)}"
    return said


def _named(parts: Sequence[JudgedPart]) -> str:
    return " and the ".join(f"{one.part.points_to} ({_shown(one)})" for one in parts)


def _shown(one: JudgedPart) -> str:
    """The part's value where it is furthest off, beside the slowest machine's."""
    if one.worst is None:
        return one.part.name
    worst = one.worst[1]
    return f"{one.part.name} {worst.value.value:.3g} {one.part.unit}, elsewhere at most {worst.slowest:.3g}"


def _beside(found: Judgement) -> Iterator[str]:
    """Say which slow parts the answer does not name."""
    kinds = ("start",) if found.answer == "slow" else ("start", "cause", "time")
    slow = [one for one in found.parts if one.word == "slow" and one.part.kind in kinds]
    if slow:
        yield f"Slower than on every comparable machine: the {_named(slow)}."
    number = len(found.with_word("open"))
    if number:
        yield f"{counted(number, 'case')} could not be compared."


def _nothing_comparable(found: Judgement) -> str:
    if found.failed:
        return f"no run completed of {', '.join(found.failed)}."
    if not found.cases:
        return "cold and warm starts are not compared, and nothing else ran on a GPU."
    if not found.machines:
        return f"no other machine with {found.model} is published."
    reasons = dict.fromkeys(one.reason for one in found.cases)
    return f"no case can be compared ({'; '.join(reasons)})."

"""One paragraph that says whether a machine is as fast as others of its kind, and which part is slow. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from reports.accept.judgement import JudgedPart, Judgement
from suite.files.wording import are, counted

NO_CAUSE: Final = "GPU or its driver"  # neither a core, throttling nor the interconnect is beyond other machines
UNKNOWN_CAUSE: Final = "GPU, its driver or a CPU core"  # no probe tells how fast the cores are


def verdict(judgement: Judgement) -> str:
    """Begin with the answer: ``Accepted``, ``Slow`` or ``Cannot say``."""
    if judgement.answer == "cannot say":
        return f"Cannot say: {_nothing_comparable(judgement)}"
    every = f"every other published machine with {judgement.model}"
    compared = counted(len(judgement.with_word("slow", "within", "fast")), "comparable configuration")
    if judgement.answer == "accepted":
        return " ".join(
            [f"Accepted: at equal core speed, none of {compared} is slower than {every}.", *_beside(judgement)]
        )
    slow = judgement.with_word("slow")
    worst = max(slow, key=lambda case: case.time.over_slowest)
    sentence = (
        f"Slow: at equal core speed, {len(slow)} of {compared} {are(len(slow))} slower than {every}, at worst"
        f" {worst.time.over_slowest:.2f} times the slowest ({worst.name})."
    )
    most = max(len(case.time.others) for case in slow)
    chance = f"By chance, a machine as good as {counted(most, 'other')} is slower than all of them once in {most + 1}."
    return " ".join([sentence, f"The slow part is {slow_part(judgement)}.", *_beside(judgement), chance])


def slow_part(judgement: Judgement) -> str:
    """The hardware that makes a slow machine slow, with what shows it and where the time is lost.

    A slow core and a throttled GPU are causes by themselves. So is a slow all-reduce if most of the time is lost there;
    otherwise it may be slow because a slow core starts it. A cause whose interval still reaches into the range of other
    machines is only likely. Without any, it is what they leave.
    """
    grown, share = judgement.grown or (None, 0.0)
    causes = [
        judged
        for judged in judgement.parts
        if judged.part.kind == "cause" or (judged is grown and judged.part.points_to == "interconnect")
    ]
    sure = [judged for judged in causes if judged.word == "slow"]
    likely = [judged for judged in causes if judged.is_mostly_above]
    if sure:
        cause = f"the {_named(sure)}"
    elif likely:
        cause = f"likely the {_named(likely)}, though not surely beyond other machines"
    else:
        is_probed = any(judged.part.points_to == "CPU core" and judged.decided for judged in causes)
        cause = f"likely the {NO_CAUSE if is_probed else UNKNOWN_CAUSE}"
    if grown is not None:
        cause += f"; {min(share, 1.0):.0%} of the lost time is in its part {grown.part.name!r}"
    return cause


def _named(parts: Sequence[JudgedPart]) -> str:
    return " and the ".join(f"{judged.part.points_to} ({_shown(judged)})" for judged in parts)


def _shown(judged: JudgedPart) -> str:
    """The part's value where it is furthest off, beside the slowest machine's."""
    if judged.worst is None:
        return judged.part.name
    worst = judged.worst[1]
    return f"{judged.part.name} {worst.value.value:.3g} {judged.part.unit}, elsewhere at most {worst.slowest:.3g}"


def _beside(judgement: Judgement) -> Iterator[str]:
    """Say which slow parts the answer does not name."""
    kinds = ("start",) if judgement.answer == "slow" else ("start", "cause", "time")
    slow = [judged for judged in judgement.parts if judged.word == "slow" and judged.part.kind in kinds]
    if slow:
        yield f"Slower than on every comparable machine: the {_named(slow)}."
    number = len(judgement.with_word("open"))
    if number:
        yield f"{counted(number, 'configuration')} could not be compared."


def _nothing_comparable(judgement: Judgement) -> str:
    if judgement.failed:
        return f"no run completed of {', '.join(judgement.failed)}."
    if not judgement.cases:
        return "cold and warm starts are not compared, and nothing else ran on a GPU."
    if not judgement.machines:
        return f"no other machine with {judgement.model} is published."
    reasons = dict.fromkeys(case.reason for case in judgement.cases)
    return f"no configuration can be compared ({'; '.join(reasons)})."

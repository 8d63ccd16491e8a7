"""What *Accepting a machine* says besides figures.json. Pure."""

from collections.abc import Mapping

from reports.accept.judgement import JudgedPart, Judgement
from reports.display.topic import Figures
from reports.sets.version import Version
from reports.topics.acceptance.model import answers, judged_sets


def acceptance_figures(version: Version) -> Mapping[str, Figures]:
    """Return set -> figures, of the sets that the page judges, and ``every judged set`` of these together."""
    found = judged_sets(version)
    if not found:
        return {}
    number = answers(found)
    together = {"sets": len(found), "accepted": number["accepted"], "slow": number["slow"]}
    return {"every judged set": together, **{one.name: _figures(one.judgement) for one in found}}


def _figures(found: Judgement) -> Figures:
    slow = found.with_word("slow")
    grown, share = found.grown or (None, None)
    return {
        "machines": len(found.machines),
        "compared": len(found.with_word("slow", "within", "fast")),
        "slow": len(slow),
        "within": len(found.with_word("within")),
        "fast": len(found.with_word("fast")),
        "open": len(found.with_word("open")),
        "answer": found.answer,
        "times_slowest": max((one.time.over_slowest or 0.0 for one in slow), default=None),
        "most_others": found.most_others,
        "once_in": found.once_in,
        "lost_in": grown and grown.part.name,
        "lost_share": share,
        "parts": {part.part.name: row for part in found.parts if (row := _part(part))} if slow else None,
    }


def _part(part: JudgedPart) -> Figures | None:
    if part.worst is None:
        return None
    case_id, worst = part.worst
    return {
        "word": part.word,
        "case": case_id,
        "value": worst.value and worst.value.value,
        "slowest": worst.slowest,
    }

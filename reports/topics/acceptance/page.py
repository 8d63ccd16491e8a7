"""How `nox -s accept` judges the published machines: the answer, and a table of every set."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.accept.judgement import Answer, Judgement, judge
from reports.accept.published import measured, published
from reports.accept.verdict import verdict
from reports.display.html import Html, answer_of_page, bullets, heading, html_table, together
from reports.sets.version import Version
from suite.files.wording import are, counted


@dataclass(frozen=True, kw_only=True)
class JudgedSet:
    """``title``: of the set."""

    title: str
    judgement: Judgement


def answers(found: Sequence[JudgedSet]) -> Mapping[Answer, int]:
    """Return how many sets have each answer; 0 of one that none has."""
    return Counter(one.judgement.answer for one in found)


def has_shared_work(version: Version) -> bool:
    """Whether two machines with one GPU model ran the same work, one of them in this version. Quicker than to judge."""
    return str(version.folder) in published((version, *version.older)).shared


def judged_sets(version: Version) -> tuple[JudgedSet, ...]:
    """Judge every set whose machine ran nothing beside, and which shares a case with another machine.

    The other machines are those of this version and of older ones.
    """
    machines = published((version, *version.older))
    found = []
    for one in version.scaling:
        own = measured(version, [one])
        if len(own.models) != 1 or one.shared_machine != "no":
            continue
        judgement = judge(own, machines, own.models[0])
        if judgement.with_word("slow", "within", "fast"):
            found.append(JudgedSet(title=one.title, judgement=judgement))
    return tuple(found)


HEADINGS: Final = ("Set", "GPU", "Other machines", "Cases compared", "Slow", "Within", "Fast", "Answer")


def answer(found: Sequence[JudgedSet]) -> Html:
    """Say how many of the sets would be accepted, and how many are slow."""
    if not found:
        return answer_of_page("No other machine with the same GPUs ran a case with the same versions of packages.")
    number = answers(found)
    slow = number["slow"]
    return answer_of_page(
        f"Of {counted(len(found), 'set')} with a case that another machine with the same GPUs ran,"
        f" {number['accepted'] or 'none'} would be accepted and {slow or 'none'} {are(slow or 1)} slow."
    )


def sets(found: Sequence[JudgedSet]) -> Html:
    """A row for every set that can be judged, and what is said of each slow one."""
    table = html_table(
        HEADINGS,
        map(_row, found),
        label="Sets judged as `nox -s accept` does",
        num_text_columns=2,
        text_headings=("Answer",),
    )
    slow = [f"{one.title}. {verdict(one.judgement)}" for one in found if one.judgement.answer == "slow"]
    return together([table, *([heading("Why they are slow"), bullets(slow)] if slow else [])])


def _row(one: JudgedSet) -> list[str]:
    found = one.judgement
    words = [len(found.with_word(word)) for word in ("slow", "within", "fast")]
    model = found.model.removeprefix("NVIDIA ")
    return [one.title, model, str(len(found.machines)), str(sum(words)), *map(str, words), found.answer]

"""Other versions of packages: the answer, and of every set a chart and tables of speeds and of starts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.rows import case_times
from reports.analysis.same_work import work_of
from reports.analysis.start_ups import start_ups
from reports.display.charts.drawing import Texts
from reports.display.charts.forest import forest, row
from reports.display.figure import figure_of, source_of
from reports.display.html import (
    Displayed,
    Html,
    answer_of_page,
    estimated,
    html_table,
    ratio,
    rounds_text,
    seconds,
    together,
)
from reports.display.per_set import failures_in_words, under_titles
from reports.sets.version import ResultSet, Version
from suite.files.wording import are, counted, joined
from suite.schema.record import CaseResult
from suite.statistics.intervals import Estimate, mean_of, ratio_of
from suite.statistics.speed import Speed, speed_of
from suite.statistics.start_up import Start
from suite.statistics.twins import is_twin


@dataclass(frozen=True, kw_only=True)
class Release:
    """One case with other versions, and the same case with the pinned ones. None: a side has no such time."""

    other: CaseResult
    pinned: CaseResult
    packages: tuple[str, ...]  # that were asked for, such as ``newton==1.6.0``
    frames: Estimate | None  # frames per second over those with the pinned ones; None too where only starts were timed
    speed: Speed  # of ``frames``
    start: Start  # which starts the case has
    starts_s: tuple[Estimate | None, Estimate | None]  # a start with the pinned versions, and with the other ones [s]
    start_longer: Estimate | None  # the second of these over the first

    @property
    def pinned_versions(self) -> tuple[str, ...]:
        """What the pinned case ran with of the packages that were asked for: ``newton==1.6.1``."""
        names = (package.partition("==")[0] for package in self.packages)
        settings = [rank.settings for record in self.pinned.rounds for rank in record.ranks]
        found = [(name, {str(each.get(f"versions.{name}")) for each in settings} - {"None"}) for name in names]
        return tuple(f"{name}=={version}" for name, versions in found for version in sorted(versions))


def releases(campaign: Campaign) -> tuple[Release, ...]:
    """Return every case with other versions of packages beside the same case with the pinned ones, in their order."""
    every = [campaign.series(name) for name in campaign.series_names]
    return tuple(release for series in every for release in _of_series(series))


def frames_range(found: Sequence[Release]) -> tuple[float, float] | None:
    """Return the least and the most of the frames per second over those with the pinned versions."""
    known = [release.frames.value for release in found if release.frames]
    return (min(known), max(known)) if known else None


def _of_series(series: Campaign) -> Iterator[Release]:
    pinned = {work_of(one.case): one for one in series.results if not (one.case.with_packages or is_twin(one.case))}
    for other in series.results:
        work = work_of(replace(other.case, division="closed", with_packages=()))
        if other.case.with_packages and work in pinned:
            yield _release(other, pinned[work], series)


def _release(other: CaseResult, pinned: CaseResult, series: Campaign) -> Release:
    kind: Start = "cold" if other.case.kernel_cache == "empty" else "warm"
    before_s, after_s = _totals_s(pinned, kind), _totals_s(other, kind)
    frames = series.model.speedup(other.case, pinned.case) if series.kind != "start_up" else None
    return Release(
        other=other,
        pinned=pinned,
        packages=other.case.with_packages,
        frames=frames,
        speed=speed_of(frames),
        start=kind,
        starts_s=(mean_of(before_s) if before_s else None, mean_of(after_s) if after_s else None),
        start_longer=ratio_of(after_s, before_s) if before_s and after_s else None,
    )


def _totals_s(result: CaseResult, kind: Start) -> list[float]:
    return [start.total_s for start in start_ups(result).by_kind.get(kind, ())]


SPEEDS: Final = (
    "Case",
    "Versions",
    "Instead of",
    "Pinned, s/iteration",
    "Other, s/iteration",
    "Frames/s, over pinned",
)
SPEEDS_IN_WORDS: Final = ("Runs: pinned, other", "Verdict")
STARTS: Final = ("Case", "Versions", "Instead of", "Start", "Pinned, s", "Other, s", "Times as long")
WORDS: Final[Mapping[Speed, str]] = {
    "faster": "faster",
    "slower": "slower",
    "within noise": "within noise",
    "too few runs": "of too few runs",
}


def has_releases(version: Version) -> bool:
    return any(releases(one.campaign) for one in version.scaling)


def answer(version: Version) -> Html:
    """Say how many comparisons show a difference, and how large differences are."""
    found = [release for one in version.scaling for release in releases(one.campaign)]
    said = (_of_speeds([release for release in found if release.frames]), _of_starts(found))
    nothing = "No case completed both with another version and with the pinned one, so no difference is known."
    return answer_of_page(" ".join(filter(None, said)) or nothing)


def sets(version: Version) -> Html:
    """Of every set with other versions of packages a chart, tables, and what did not complete."""
    return under_titles(
        [one for one in version.scaling if releases(one.campaign)],
        lambda one: together(_shown(one, releases(one.campaign))),
        are_named=version.must_name_sets,
    )


def _of_speeds(timed: Sequence[Release]) -> str | None:
    ends = frames_range(timed)
    if ends is None:
        return None
    words = Counter(release.speed for release in timed)
    said = [f"{words[speed]} {are(words[speed])} {word}" for speed, word in WORDS.items() if words[speed]]
    is_sure = words["faster"] or words["slower"]
    begin = "Some other versions change the speed" if is_sure else "No other version is surely faster or slower"
    low, high = (ratio(end) for end in ends)
    times = f"{low} times" if low == high else f"{low} to {high} times"
    return (
        f"{begin}: of {counted(len(timed), 'comparison')} with the pinned one, {joined(said)}."
        f" Other versions make {times} the frames per second."
    )


def _of_starts(found: Sequence[Release]) -> str | None:
    """Say how many comparisons show a longer or a shorter start; None: none has an interval."""
    intervals = [release.start_longer.interval for release in found if release.start_longer]
    known = [interval for interval in intervals if interval]
    numbers = {"longer": sum(low > 1 for low, _ in known), "shorter": sum(high < 1 for _, high in known)}
    said = [
        f"{number} {'shows' if number == 1 else 'show'} a {word} start" for word, number in numbers.items() if number
    ]
    shown = joined(said) or "none shows a difference"
    return f"Of {counted(len(known), 'comparison')} of starts, {shown}." if known else None


def _shown(one: ResultSet, found: Sequence[Release]) -> list[Displayed]:
    timed = [release for release in found if release.frames]
    started = [release for release in found if any(release.starts_s)]
    parts: list[Displayed] = []
    if timed:
        table = html_table(
            [*SPEEDS, *SPEEDS_IN_WORDS],
            map(_speed, timed),
            label=f"Speeds with other versions, {one.title or one.name}",
            num_text_columns=3,
            text_headings=SPEEDS_IN_WORDS,
        )
        rows = [row(name, each.frames, each.other.case.case_id) for name, each in _named(timed).items() if each.frames]
        texts = Texts(
            title="Frames per second with other versions",
            note="Over those of the same case with the pinned version, which is 1.",
            source=source_of(one.campaign),
            x="Times the pinned version",
        )
        parts += [figure_of(one.campaign, forest(rows, texts), "releases", data=table), table]
    if started:
        label = f"Starts with other versions, {one.title or one.name}"
        parts.append(html_table(STARTS, map(_start, started), label=label, num_text_columns=4))
    return [*parts, *failures_in_words(release.other for release in found)]


def _named(found: Sequence[Release]) -> dict[str, Release]:
    """Return the cases by label: the packages, with the case where there are several."""
    several = len({release.pinned.case.case_id for release in found}) > 1
    return {
        (f"{release.pinned.case.case_id}, " if several else "") + _spoken(release.packages): release
        for release in found
    }


def _spoken(packages: Sequence[str]) -> str:
    """``newton 1.6.0, warp-lang 1.18.0``."""
    return ", ".join(package.replace("==", " ") for package in packages)


def _speed(release: Release) -> list[str]:
    both = (release.pinned, release.other)
    runs = rounds_text([len(each.completed) for each in both])
    times = (estimated(mean_of(case_times(each).values()), seconds) for each in both)
    return [*_first(release), *times, estimated(release.frames), runs, release.speed]


def _start(release: Release) -> list[str]:
    times = (estimated(start_s, seconds) for start_s in release.starts_s)
    return [*_first(release), release.start, *times, estimated(release.start_longer)]


def _first(release: Release) -> list[str]:
    return [release.other.case.case_id, _spoken(release.packages), _spoken(release.pinned_versions)]

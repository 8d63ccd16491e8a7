"""Cases with other versions of packages beside the same case with the pinned ones, of one campaign. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reports.analysis.analysed_set import Campaign
from reports.analysis.rows import case_times, speedup_of
from reports.analysis.same_work import work_of
from reports.analysis.start_ups import start_ups
from suite.schema.record import CaseResult
from suite.statistics.aa_noise import is_twin, noise_budget, twin_pairs
from suite.statistics.intervals import Estimate, median_of, ratio_of
from suite.statistics.noise import Speed, against_noise
from suite.statistics.start_up import Start


@dataclass(frozen=True, kw_only=True)
class Release:
    """One case with other versions, and the same case with the pinned ones. None: a side has no such time."""

    other: CaseResult
    pinned: CaseResult
    packages: tuple[str, ...]  # that were asked for, such as ``newton==1.6.0``
    frames: Estimate | None  # frames per second over those with the pinned ones; None too where only starts were timed
    speed: Speed  # of ``frames``, beside the measurement noise
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
    noise = noise_budget(twin_pairs(series.with_twins))
    for other in series.results:
        work = work_of(replace(other.case, division="closed", with_packages=()))
        if other.case.with_packages and work in pinned:
            yield _release(other, pinned[work], noise, is_timed=series.kind != "start_up")


def _release(other: CaseResult, pinned: CaseResult, noise: float | None, *, is_timed: bool) -> Release:
    kind: Start = "cold" if other.case.kernel_cache == "empty" else "warm"
    before_s, after_s = _totals_s(pinned, kind), _totals_s(other, kind)
    times_s, pinned_times_s = case_times(other).times_s, case_times(pinned).times_s
    frames = speedup_of(times_s, pinned_times_s, work=1) if is_timed and times_s and pinned_times_s else None
    return Release(
        other=other,
        pinned=pinned,
        packages=other.case.with_packages,
        frames=frames,
        speed=against_noise(frames, noise),
        start=kind,
        starts_s=(median_of(before_s) if before_s else None, median_of(after_s) if after_s else None),
        start_longer=ratio_of(after_s, before_s) if before_s and after_s else None,
    )


def _totals_s(result: CaseResult, kind: Start) -> list[float]:
    return [start.total_s for start in start_ups(result).by_kind.get(kind, ())]

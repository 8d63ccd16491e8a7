"""``bench --bisect NAME``: find between which two releases of a package a case became surely slower, by bisection.

Both ends are measured first. Unless the newer end is surely slower, the search ends: then it names no pair. Otherwise
the release in the middle is measured together with both ends, and the half with the larger surely slower change is
searched further. A release that cannot be run is passed over, and the next one to it is taken. If neither half is
surely slower, the search ends with the range that it has.

Each step compares releases that were measured together, since a machine changes within minutes.

Each step is a campaign of its own. The folder is the state: ``OUT/steps/OLDEST..NEWEST/`` has the runs of a step,
``OUT/tried/`` the first start of each release, which compiles its kernels and shows whether it trains at all.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, TypedDict

from packaging.specifiers import SpecifierSet
from packaging.version import Version
from pydantic import ConfigDict, with_config
from rich import box
from rich.table import Table

from suite.campaign import cases
from suite.campaign.folder import identity, opened
from suite.campaign.planning.plan import learn_tasks, make_plan
from suite.campaign.runs import warm_up
from suite.campaign.schedule import ended_records
from suite.campaign.state import Campaign
from suite.campaign.steps import check_environment, provision, run_all
from suite.errors import RunsFailed, UsageError, WorkerEnvironmentError
from suite.files.json_file import read_json, replace_json
from suite.files.toml_file import did_you_mean
from suite.files.wording import counted
from suite.install import pins
from suite.install.bundle_contents import is_bundled
from suite.install.worker_packages import installed_in
from suite.launch.registry import one_worker
from suite.matrix.own_worker import name_of, with_version
from suite.options.command_line import say
from suite.options.options import Options, Releases, refuse_unused
from suite.schema.record import CaseResult, PlannedCase
from suite.statistics.intervals import CONFIDENCE, MIN_ROUNDS_FOR_INTERVAL, Estimate
from suite.statistics.reduce import completed_times_s
from suite.statistics.series_model import SeriesModel, run_time
from suite.statistics.speed import Speed, speed_of
from suite.statistics.stopping_rule import Rule

RUNS: Final = 6  # of each release in each step, by default
STEPS, TRIED = "steps", "tried"
ANSWER_FILE: Final = "bisect.json"

type Verdict = Literal["found", "not slower", "unsure", "too few"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """The change from one release to a newer one."""

    older: str
    newer: str
    ratio: Estimate  # throughput of the newer one over that of the older one

    @property
    def speed(self) -> Speed:
        """Whether the newer one is surely faster or slower."""
        return speed_of(self.ratio)

    @property
    def interval_in_words(self) -> str:
        return "interval unknown" if self.ratio.interval is None else "{:.3f} to {:.3f}".format(*self.ratio.interval)


@dataclass(frozen=True, kw_only=True)
class Step:
    """Releases that were measured together: both ends, or both ends and one between them."""

    times_s: Mapping[str, Sequence[float]]  # of each release, the oldest first: per iteration, of each completed run
    changes: tuple[Change, ...]  # from each to the next


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the search found, and the change that shows it."""

    verdict: Verdict
    change: Change | None  # None if too few releases run
    skipped: tuple[str, ...] = ()  # releases between both that could not be run
    middle: str | None = None  # unsure: the release between both, with no sure change to it or from it


def of_bisect(options: Options) -> Options:
    """The options of a search, with ``RUNS`` runs of a release by default. Raises UsageError for what it cannot use."""
    wanted, asked = _wanted(options), options.rounds
    refuse_unused(options, "--bisect", wanted.package)
    if options.place.render_only:
        raise UsageError(f"--bisect {wanted.package} does not use --render-only; leave it out.")
    if asked.repeats is not None and asked.repeats < MIN_ROUNDS_FOR_INTERVAL:
        raise UsageError(
            f"--repeats is {asked.repeats}, allowed with --bisect is {MIN_ROUNDS_FOR_INTERVAL} or more: fewer runs "
            "have no interval, so nothing could be decided."
        )
    if wanted.package in map(name_of, options.setup.with_packages):
        raise UsageError(f"--with names {wanted.package}, whose releases --bisect changes. Leave it out of --with.")
    if is_bundled() and not wanted.listed:
        raise UsageError(
            f"--bisect {wanted.package} asks the package index for releases, and labscale runs from a bundle. Name "
            f"releases that the bundle has: --bisect {wanted.package}==VERSION,VERSION."
        )
    if why := one_worker(options):
        raise UsageError(f"--bisect needs an environment for each release, and {why}.")
    return replace(options, rounds=replace(asked, a_a=False, repeats=asked.repeats or RUNS))


def require_one_case(campaign: Campaign) -> Campaign:
    """Raise UsageError for a selection of several cases before anything is installed: each release would run them."""
    if len(campaign.planned) > 1:
        listed = "".join(f"\n  {item.case.case_id}" for item in campaign.planned)
        raise UsageError(
            f"--bisect measures one configuration, and {len(campaign.planned)} are chosen. Take one by --case:{listed}"
        )
    (item,) = campaign.planned
    if item.infeasible:
        raise UsageError(f"{item.case.case_id} cannot run here: {item.infeasible}.")
    return campaign


def find_change(campaign: Campaign) -> Campaign:
    """Search, store every step in ``bisect.json``, and print the answer. Runs of earlier commands are kept.

    Raises:
        UsageError: the worker does not have the package.
        WorkerEnvironmentError: the index does not answer.
        StoreError: ``bisect.json`` of an earlier command cannot be read.
        RunsFailed: fewer than two releases run.
    """
    (item,), wanted = campaign.planned, _wanted(campaign.options)
    releases = _releases(campaign, item, wanted)
    search = Search(campaign=campaign, item=item, package=wanted.package, releases=releases)
    with opened(campaign.out, identity(campaign)):
        say(campaign.console, f"Releases of {search.package}, the oldest first: {', '.join(search.releases)}")
        if not campaign.options.rounds.retry_failed:
            search.pass_over(read_skipped(campaign.out / ANSWER_FILE, search.case_id))
        while not isinstance(step := next_releases(search.releases, search.steps, search.skipped), Answer):
            search.advance(step)
            search.write(None)
        search.write(step)
    search.print(step)
    say(campaign.console, f"Steps and times: {campaign.out / ANSWER_FILE}. Runs: {campaign.out / STEPS}")
    if step.verdict == "too few":
        faults = "".join(f"\n  {release}: {fault}" for release, fault in search.skipped.items())
        raise RunsFailed(
            f"{search.in_words(step)}{faults}\n"
            "Take other releases, add what one needs with --with, or run failed ones again with --retry-failed."
        )
    return campaign


def _wanted(options: Options) -> Releases:
    if options.search.bisect is None:
        raise AssertionError("bench --bisect alone searches among releases")
    return options.search.bisect


def _releases(campaign: Campaign, item: PlannedCase, wanted: Releases) -> tuple[str, ...]:
    python = campaign.provided.worker_of(item.case).python
    _, installed = installed_in(python)
    if wanted.package not in installed:
        raise UsageError(
            f"--bisect {wanted.package}: the worker of {item.case.case_id} does not have this package. Name one that "
            f"it has, such as newton.{did_you_mean(wanted.package, installed)}"
        )
    if wanted.listed:
        return wanted.listed
    major = Version(installed[wanted.package][0]).major
    oldest, newest = wanted.ends or ("", "")
    within = SpecifierSet(f">={oldest},<={newest}" if wanted.ends else f"=={major}.*")
    return tuple(pins.releases(wanted.package, within, python))


@dataclass(kw_only=True)
class Search:
    """A search among the releases of a package, and what it knows so far."""

    campaign: Campaign
    item: PlannedCase
    package: str
    releases: tuple[str, ...]  # the oldest first
    steps: list[Step] = field(default_factory=list)
    tried: set[str] = field(default_factory=set)
    skipped: dict[str, str] = field(default_factory=dict)  # release -> why it cannot be run

    @property
    def case_id(self) -> str:
        return self.item.case.case_id

    def advance(self, releases: Sequence[str]) -> None:
        """Try the releases of the next step, and measure them if all of them run."""
        variants = {
            release: replace(self.item, case=with_version(self.item.case, f"{self.package}=={release}"))
            for release in releases
        }
        faults = {name: _fault(self.campaign, variants[name]) for name in releases if name not in self.tried}
        self.tried.update(releases)
        if failed := {release: fault for release, fault in faults.items() if fault is not None}:
            return self.pass_over(failed)
        say(self.campaign.console, f"Measuring {self.package} {', '.join(releases)} together", style="bold")
        measured = run_all(provision(_at(self.campaign, f"{STEPS}/{'..'.join(releases)}", [*variants.values()])))
        results = {result.case.case_id: result for result in measured.results}
        of_release = {release: results[variant.case.case_id] for release, variant in variants.items()}
        times_s = {release: completed_times_s(result.rounds) for release, result in of_release.items()}
        if few := [release for release in releases if len(times_s[release]) < MIN_ROUNDS_FOR_INTERVAL]:
            return self.pass_over({release: _failure(of_release[release]) for release in few})
        model = SeriesModel([run_time(record) for result in of_release.values() for record in result.completed])
        names = {release: result.case.case_id for release, result in of_release.items()}
        changes = (
            Change(older=older, newer=newer, ratio=model.ratio(names[older], names[newer]))
            for older, newer in pairwise(releases)
        )
        return self.steps.append(Step(times_s=times_s, changes=tuple(changes)))

    def pass_over(self, faults: Mapping[str, str]) -> None:
        """Leave out releases that cannot be run, and say why."""
        for release, fault in faults.items():
            say(self.campaign.console, f"{self.package} {release} is passed over: {fault}", style="yellow")
        whole = {**self.skipped, **faults}
        self.skipped = {release: whole[release] for release in self.releases if release in whole}

    def write(self, answer: Answer | None) -> None:
        """Write ``bisect.json``: every step with its times and ratios. Raises StoreError if it cannot be written."""
        document = {
            "package": self.package,
            "case_id": self.case_id,
            "releases": self.releases,
            "steps": [
                {"times_s": dict(step.times_s), "changes": [_change_json(change) for change in step.changes]}
                for step in self.steps
            ],
            "skipped": self.skipped,
            "answer": answer and {**asdict(answer), "change": answer.change and _change_json(answer.change)},
        }
        replace_json(document, self.campaign.out / ANSWER_FILE)

    def print(self, answer: Answer) -> None:
        """Print a line for each change that was measured, which releases were passed over, and the answer."""
        console = self.campaign.console
        console.print()
        if self.steps:
            console.print(self._table())
        if outside := [release for release in self.skipped if release not in answer.skipped]:
            say(console, f"Not measured, because they cannot be run (see above): {', '.join(outside)}", style="yellow")
        say(console, self.in_words(answer), style="bold")

    def _table(self) -> Table:
        table = Table(title=self.case_id, box=box.SIMPLE_HEAD, pad_edge=False)
        for name in (f"from {self.package}", "to"):
            table.add_column(name)
        for name in ("runs", "times as fast", f"{CONFIDENCE:.0%} interval"):
            table.add_column(name, justify="right")
        table.add_column("verdict")
        for step in self.steps:
            for change in step.changes:
                runs = f"{len(step.times_s[change.older])}, {len(step.times_s[change.newer])}"
                ratio = f"{change.ratio.value:.3f}"
                table.add_row(change.older, change.newer, runs, ratio, change.interval_in_words, change.speed)
            table.add_section()
        return table

    def in_words(self, answer: Answer) -> str:
        """The answer as one sentence, or two."""
        change = answer.change
        if change is None:
            return f"Fewer than two of these releases of {self.package} run here, so nothing was compared."
        numbers = f"{change.ratio.value:.3f} times as fast ({change.interval_in_words})"
        if answer.verdict == "not slower":
            return (
                f"{self.case_id} is not surely slower with {self.package} {change.newer} than with {change.older}: "
                f"{numbers}. More runs, with a larger --repeats, find smaller changes."
            )
        slower = f"{self.case_id} became slower between {self.package} {change.older} and {change.newer}: {numbers}."
        if answer.verdict == "unsure":
            return (
                f"{slower} {answer.middle} lies between them, and neither the change to it nor the change from it is "
                "sure. Give more runs, with a larger --repeats, to search on."
            )
        faults = "".join(f"\n  {release}: {self.skipped[release]}" for release in answer.skipped)
        return f"{slower} Between them could not be run:{faults}" if faults else slower


def _at(campaign: Campaign, where: str, planned: Sequence[PlannedCase]) -> Campaign:
    """The campaign of these cases, in a folder below that of the search."""
    results = replace(campaign.options.results, out=campaign.out / where)
    return replace(
        campaign, options=replace(campaign.options, results=results), planned=tuple(planned), warm_ups=(), results=()
    )


def _fault(campaign: Campaign, item: PlannedCase) -> str | None:
    """Install the release, start it once to compile its kernels, and return why it does not run; None if it does."""
    trial = replace(_at(campaign, TRIED, [replace(item, rounds=1)]), rule=Rule(rounds=1))
    try:
        trial = provision(trial)
    except WorkerEnvironmentError as error:
        return str(error)
    starts = warm_up.warm_ups([item.case])
    trial = replace(trial, warm_ups=tuple(replace(item, case=start, rounds=1) for start in starts))
    with opened(trial.out, identity(trial)) as folder:
        cases.set_failures_aside(trial, folder)
        warm_up.run_warm_ups(trial, folder)
        failed = [record for record in ended_records(folder, item.case) if not record.counts]
    return next((f"{record.outcome}: {record.reason}" for record in failed), None)


def _failure(result: CaseResult) -> str:
    failed = [record for record in result.rounds if not record.counts]
    of_all = f"{counted(len(failed), 'run')} of {len(result.rounds)} did not complete"
    return f"{of_all}, the first one {failed[0].outcome}: {failed[0].reason}"


def next_releases(
    releases: Sequence[str], steps: Collection[Step], skipped: Collection[str] = ()
) -> tuple[str, ...] | Answer:
    """Return the releases to measure together next, or the answer.

    ``releases``: the oldest first. ``steps``: what was measured so far. ``skipped``: releases that could not be run.
    """
    measured = {tuple(step.times_s): step for step in steps}
    usable = [release for release in releases if release not in skipped]
    if len(usable) <= 1:
        return Answer(verdict="too few", change=None)
    if (ends := measured.get((usable[0], usable[-1]))) is None:
        return usable[0], usable[-1]
    (change,) = ends.changes
    if change.speed != "slower":
        return Answer(verdict="not slower", change=change)
    while between := usable[usable.index(change.older) + 1 : usable.index(change.newer)]:
        together = (change.older, between[len(between) // 2], change.newer)
        if (step := measured.get(together)) is None:
            return together
        slower = [half for half in step.changes if half.speed == "slower"]
        if not slower:
            return Answer(verdict="unsure", change=change, middle=together[1])
        change = min(slower, key=lambda half: half.ratio.value)
    within = releases[releases.index(change.older) + 1 : releases.index(change.newer)]
    return Answer(verdict="found", change=change, skipped=tuple(within))


@with_config(ConfigDict(extra="allow"))
class _Stored(TypedDict):
    """The fields of ``bisect.json`` that are read."""

    case_id: str
    skipped: dict[str, str]


def read_skipped(path: Path, case_id: str) -> dict[str, str]:
    """Why releases could not be run when an earlier command tried them with this case.

    Raises:
        StoreError: the file cannot be read.
    """
    stored = read_json(path, _Stored, next_step="Move it away and run the same command again.")
    return stored["skipped"] if stored and stored["case_id"] == case_id else {}


def _change_json(change: Change) -> dict[str, object]:
    return {**asdict(change), "speed": change.speed}


BISECT: Final = (learn_tasks, make_plan, require_one_case, provision, check_environment, find_change)

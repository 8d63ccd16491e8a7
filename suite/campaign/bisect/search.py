"""``bench --bisect NAME``: measure the releases that ``bisect.rule`` asks for. Each step is a campaign of its own.

The folder is the state: ``OUT/steps/OLDEST..NEWEST/`` has the runs of a step, ``OUT/tried/`` the first start of each
release, which compiles its kernels and shows whether it trains at all.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from suite.campaign import cases
from suite.campaign.bisect.answer import ANSWER_FILE, Found, print_found, read_skipped, write_found
from suite.campaign.bisect.rule import Answer, Step, next_step
from suite.campaign.identity import identity, opened
from suite.campaign.planning.plan import learn_tasks, make_plan
from suite.campaign.runs import warm_up, warm_up_runs
from suite.campaign.state import Campaign
from suite.campaign.steps import check_environment, provision, run_all
from suite.errors import RunsFailed, UsageError, WorkerEnvironmentError
from suite.files.toml_file import did_you_mean
from suite.files.wording import counted
from suite.install.bundled_versions import is_bundled
from suite.install.other_versions import installed_in
from suite.install.releases import releases
from suite.launch.registry import one_worker
from suite.matrix.own_worker import name_of, with_version
from suite.options.command_line import say
from suite.options.options import Options, Releases, refuse_unused
from suite.schema.record import CaseResult, PlannedCase
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Estimate
from suite.statistics.reduce import completed_times_s
from suite.statistics.series_model import SetModel
from suite.statistics.stopping_rule import Rule

RUNS: Final = 6  # of each release in each step, by default
STEPS, TRIED = "steps", "tried"


def of_bisect(options: Options) -> Options:
    """The options of a search: each release has ``RUNS`` runs in a step, unless the user gives a number.

    Raises:
        UsageError: an option is given that the search does not use, or that leaves it nothing to measure.
    """
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
    """Refuse a selection of several cases before anything is installed: each release would run them all.

    Raises:
        UsageError: there is more than one case, or it cannot run here.
    """
    if len(campaign.planned) > 1:
        listed = "".join(f"\n  {item.case.case_id}" for item in campaign.planned)
        raise UsageError(
            f"--bisect measures one case, and {len(campaign.planned)} are chosen. Choose one with --case:{listed}"
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
    (item,) = campaign.planned
    wanted = _wanted(campaign.options)
    found = Found(package=wanted.package, case_id=item.case.case_id, releases=_releases(campaign, item, wanted))
    with opened(campaign.out, identity(campaign)) as folder:
        say(campaign.console, f"Releases of {found.package}, the oldest first: {', '.join(found.releases)}")
        if not campaign.options.rounds.retry_failed:
            found = _without(campaign, found, read_skipped(folder.root / ANSWER_FILE, found.case_id))
        while found.answer is None:
            step = next_step(found.releases, found.steps, found.skipped)
            found = replace(found, answer=step) if isinstance(step, Answer) else _advanced(campaign, item, found, step)
            write_found(found, folder.root / ANSWER_FILE)
    print_found(campaign.console, found)
    say(campaign.console, f"Steps and times: {campaign.out / ANSWER_FILE}. Runs: {campaign.out / STEPS}")
    if found.answer.verdict == "too few":
        faults = "".join(f"\n  {release}: {fault}" for release, fault in found.skipped.items())
        raise RunsFailed(
            f"Fewer than two of these releases of {found.package} run here, so nothing was compared.{faults}\n"
            "Take other releases, add what one needs with --with, or run failed ones again with --retry-failed."
        )
    return campaign


def _wanted(options: Options) -> Releases:
    if options.search.bisect is None:
        raise AssertionError("bench --bisect alone searches among releases")
    return options.search.bisect


def _releases(campaign: Campaign, item: PlannedCase, wanted: Releases) -> tuple[str, ...]:
    if campaign.runtime is None:
        raise AssertionError("provision comes before find_change")
    python = campaign.runtime.worker_of(item.case).python
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
    return tuple(releases(wanted.package, within, python))


def _advanced(campaign: Campaign, item: PlannedCase, found: Found, step: Sequence[str]) -> Found:
    """Try the releases of the next step, and measure them if all of them run."""
    variants = {release: replace(item, case=with_version(item.case, f"{found.package}=={release}")) for release in step}
    faults = {release: _fault(campaign, variants[release]) for release in step if release not in found.tried}
    found = replace(found, tried=found.tried | {*step})
    if skipped := {release: fault for release, fault in faults.items() if fault is not None}:
        return _without(campaign, found, skipped)
    say(campaign.console, f"Measuring {found.package} {', '.join(step)} together", style="bold")
    measured = run_all(provision(_at(campaign, f"{STEPS}/{'..'.join(step)}", [*variants.values()])))
    results = {result.case.case_id: result for result in measured.results}
    of_release = {release: results[variant.case.case_id] for release, variant in variants.items()}
    times_s = {release: completed_times_s(result.rounds) for release, result in of_release.items()}
    if few := [release for release in step if len(times_s[release]) < MIN_ROUNDS_FOR_INTERVAL]:
        return _without(campaign, found, {release: _failure(of_release[release]) for release in few})
    model = SetModel.of(measured.results)

    def ratio(older: str, newer: str) -> Estimate:
        speedup = model.speedup(variants[newer].case, variants[older].case)
        if speedup is None:
            raise AssertionError("both have completed runs")
        return speedup

    return replace(found, steps=(*found.steps, Step.of(times_s, ratio)))


def _without(campaign: Campaign, found: Found, skipped: dict[str, str]) -> Found:
    for release, fault in skipped.items():
        say(campaign.console, f"{found.package} {release} is passed over: {fault}", style="yellow")
    known = {**found.skipped, **skipped}
    return replace(found, skipped={release: known[release] for release in found.releases if release in known})


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
        if campaign.options.rounds.retry_failed:
            cases.set_failures_aside(trial, folder)
        warm_up_runs.run(trial, folder)
        failed = [record for record in cases.ended_records(folder, item.case) if not record.counts]
    return next((f"{record.outcome}: {record.reason}" for record in failed), None)


def _failure(result: CaseResult) -> str:
    failed = [record for record in result.rounds if not record.counts]
    of_all = f"{counted(len(failed), 'run')} of {len(result.rounds)} did not complete"
    return f"{of_all}, the first one {failed[0].outcome}: {failed[0].reason}"


BISECT: Final = (learn_tasks, make_plan, require_one_case, provision, check_environment, find_change)

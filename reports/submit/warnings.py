"""What a reader must know of how a campaign was measured: was the machine idle, did runs complete. Pure.

A warning refuses nothing: slow and failed runs are published too.
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from reports.figures.tables import runs_of
from reports.submit.source import Source
from suite.files.wording import are, counted
from suite.statistics.core_speed import slowed_cores
from suite.statistics.round_flags import MATTERS, OTHERS_PERCENT
from suite.statistics.stopping_rule import CUT_OFF

GPU_CHECK: Final = "other_processes"  # of env_check: processes on the GPUs before the first run


def warnings(source: Source) -> tuple[str, ...]:
    """Return a sentence for each."""
    return (*_of_cpu(source), *_of_gpus(source), *_of_runs(source))


def _of_cpu(source: Source) -> Iterator[str]:
    runs = runs_of(source.version).completed.filter(~pl.col("is_repeat"))
    most = runs.group_by("configuration").agg(pl.col("others_share", "stolen_share").max())
    yield from _over(most["others_share"], OTHERS_PERCENT / 100, "Other processes used", "the CPU time")
    yield from _over(most["stolen_share"], MATTERS, "A hypervisor gave others", "the CPU time in use here")
    campaign = source.one.campaign
    if slowed := slowed_cores(campaign.with_twins, campaign.fastest_probe_s):
        yield str(slowed)


def _over(shares: pl.Series, limit: float, who: str, what: str) -> Iterator[str]:
    """Speak of the configurations whose most is over the limit, and of those in which it was not measured."""
    known = shares.drop_nulls()
    above = [share for share in known if share > limit]
    if above:
        yield (
            f"{who} up to {max(above):.1%} of {what}; it was over {limit:.0%} in {len(above)} of"
            f" {counted(len(known), 'configuration')}."
        )
    if len(known) < len(shares):
        unknown = counted(len(shares) - len(known), "configuration")
        yield f"{who} an unknown share of {what} in {unknown}: it was not measured."


def _of_gpus(source: Source) -> Iterator[str]:
    checks = [[check for check in one.environment.checks if check.name == GPU_CHECK] for one in source.begun]
    found = sum(any(check.verdict in ("warning", "failure") for check in each) for each in checks)
    if found:
        yield f"Other processes were on the GPUs before {found} of {counted(len(checks), 'run')}."
    if not all(checks):
        number = sum(not each for each in checks)
        yield f"Whether other processes were on the GPUs is not known of {counted(number, 'run')}."


def _of_runs(source: Source) -> Iterator[str]:
    failed = [record for record in source.begun if record.outcome != "completed"]
    if failed:
        outcomes = ", ".join(sorted({record.outcome for record in failed}))
        yield f"{len(failed)} of {counted(len(source.begun), 'run')} did not complete ({outcomes})."
    cut = [result for result in source.results if (result.ended_because or "").startswith(CUT_OFF)]
    if cut:
        yield (
            f"{counted(len(cut), 'configuration')} {are(len(cut))} cut off: fewer runs are stored than were asked for."
        )

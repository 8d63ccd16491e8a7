"""``bench --profile RANKS``: after the counted rounds, run each case once more with some ranks under Nsight Systems.

A profiled round is slower. It has a folder of its own, ``OUT/profiles``, its record names the profiled ranks, and no
statistic counts it.
"""

import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from suite.campaign.folder import Folder
from suite.campaign.identity import identity, opened
from suite.campaign.runs.rounds import run_uncounted
from suite.campaign.runs.training import Run
from suite.campaign.state import Campaign
from suite.errors import UsageError
from suite.files.wording import counted
from suite.launch.registry import entry_of
from suite.options.command_line import say
from suite.options.options import Options
from suite.records import store
from suite.schema.record import Case, Launch, RunRecord

# tasks/rank/profiling.py reads both.
RANKS_VARIABLE: Final = "LABSCALE_PROFILE_RANKS"
NSYS_VARIABLE: Final = "LABSCALE_NSYS"


def check_profiler(campaign: Campaign) -> Campaign:
    """Check that the profiler is there before hours of rounds, not after them."""
    find_nsys(campaign.options)
    return campaign


def profile_all(campaign: Campaign) -> Campaign:
    """Run each case once more with the chosen ranks profiled; these rounds are not results."""
    nsys = find_nsys(campaign.options)
    if nsys is None or campaign.runtime is None:
        return campaign
    with opened(campaign.out, identity(campaign)) as folder:
        records = profile_cases(campaign, folder, nsys)
    say(campaign.console, f"{counted(len(records), 'profiled round')}: {campaign.out / 'profiles'}")
    return campaign


def find_nsys(options: Options) -> str | None:
    """Path of the nsys command; None without ``--profile``.

    Raises:
        UsageError: nsys is not installed, or the launcher cannot profile.
    """
    if not options.rounds.profile:
        return None
    if not entry_of(options).can_profile:
        raise UsageError(
            f"--profile starts ranks under the nsys of this machine, which --launcher {options.place.launcher} cannot "
            "reach. Profile with --launcher native, or leave --profile out."
        )
    nsys = shutil.which("nsys")
    if nsys is None:
        raise UsageError(
            "--profile needs nsys, the command line of NVIDIA Nsight Systems, which is not on PATH. Install "
            "nsight-systems-cli from NVIDIA's repository (it comes with the CUDA toolkit too) and put it on PATH, or "
            "leave --profile out."
        )
    return str(Path(nsys).absolute())


def ranks_of(case: Case, chosen: Collection[int]) -> tuple[int, ...]:
    """The chosen ranks that the case has; a case without any is not profiled."""
    return tuple(sorted({rank for rank in chosen if rank < case.world_size}))


def profiled_launch(launch: Launch, *, ranks: Collection[int], nsys: str) -> Launch:
    """Return the launch with these ranks under nsys. Its hang timeout is longer: nsys writes its report for minutes."""
    told: Mapping[str, str] = {RANKS_VARIABLE: ",".join(map(str, sorted(ranks))), NSYS_VARIABLE: nsys}
    patient = replace(launch.case, hang_timeout_s=launch.case.timeout_s)
    return replace(launch, case=patient, env={**launch.env, **told})


def profile_cases(campaign: Campaign, folder: Folder, nsys: str) -> list[RunRecord]:
    """Run the profiled rounds that are missing or profiled other ranks; return the records of all."""
    cases = [item.case for item in campaign.planned if not item.infeasible]
    wanted = {case.case_id: ranks for case in cases if (ranks := ranks_of(case, campaign.options.rounds.profile))}
    runs = [_run_of(folder, case, wanted[case.case_id], nsys) for case in cases if case.case_id in wanted]
    missing = [run for run in runs if not _is_done(campaign, run)]
    for run, record in run_uncounted(campaign, folder, missing):
        for rank in record.profiled_ranks:
            if not (run.run_dir / f"profile-rank-{rank}.nsys-rep").exists():
                say(
                    campaign.console,
                    f"    nsys left no report of rank {rank}; its messages are in the rank's log below {run.run_dir}",
                    style="yellow",
                )
    return [store.read_record(run.record_path) for run in runs]


def _run_of(folder: Folder, case: Case, ranks: tuple[int, ...], nsys: str) -> Run:
    return Run(
        case=case,
        round=0,
        run_dir=folder.root / "profiles" / case.case_id,
        uncounted="profiled, not counted",
        profiled_ranks=ranks,
        adapt=partial(profiled_launch, ranks=ranks, nsys=nsys),
    )


def _is_done(campaign: Campaign, run: Run) -> bool:
    """Whether an earlier command profiled these ranks. A failed round is done, except with ``--retry-failed``."""
    if not run.record_path.exists():
        return False
    record = store.read_record(run.record_path)
    is_tried_again = campaign.options.rounds.retry_failed and record.outcome != "completed"
    return record.profiled_ranks == run.profiled_ranks and not is_tried_again

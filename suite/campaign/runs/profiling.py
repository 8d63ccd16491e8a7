"""``bench --profile RANKS``: after the counted rounds one more of each case, with some ranks below Nsight Systems.

Such a round is slower, so it stands in a folder of its own, ``OUT/profiles``, its record says which ranks were
profiled, and no statistic counts it.
"""

import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from suite.campaign.display.progress import Reporter
from suite.campaign.folder import Folder
from suite.campaign.runs.rounds import Run, run_each
from suite.campaign.state import Campaign
from suite.errors import UsageError
from suite.files.set_aside import set_aside
from suite.launch.registry import entry_of
from suite.options.command_line import say
from suite.options.options import Options
from suite.records import store
from suite.schema.record import Case, Launch, RunRecord

# As tasks/rank/profiling.py reads them.
RANKS_VARIABLE: Final = "LABSCALE_PROFILE_RANKS"
NSYS_VARIABLE: Final = "LABSCALE_NSYS"


def find_nsys(options: Options) -> str | None:
    """Path of Nsight Systems' command line; None when nothing is to be profiled.

    Raises:
        UsageError: it is not installed, or rounds do not run where it is.
    """
    if not options.rounds.profile:
        return None
    if not entry_of(options).can_profile:
        raise UsageError(
            f"--profile starts ranks below the nsys of this machine, which --launcher {options.place.launcher} does "
            "not see. Profile with --launcher native, or leave --profile out."
        )
    nsys = shutil.which("nsys")
    if nsys is None:
        raise UsageError(
            "--profile needs nsys, the command line of NVIDIA Nsight Systems, and there is none on PATH. Install "
            "nsight-systems-cli from NVIDIA's repository (it comes with the CUDA toolkit too) and put it on PATH, or "
            "leave --profile out."
        )
    return str(Path(nsys).absolute())


def ranks_of(case: Case, chosen: Collection[int]) -> tuple[int, ...]:
    """Those of the chosen ranks that the case has; it is not profiled when it has none."""
    return tuple(sorted({rank for rank in chosen if rank < case.world_size}))


def profiled_launch(launch: Launch, *, ranks: Collection[int], nsys: str) -> Launch:
    """The launch with its ranks told to begin below nsys. It writes its report at its end, in silence, for minutes."""
    told: Mapping[str, str] = {RANKS_VARIABLE: ",".join(map(str, sorted(ranks))), NSYS_VARIABLE: nsys}
    patient = replace(launch.case, hang_timeout_s=launch.case.timeout_s)
    return replace(launch, case=patient, env={**launch.env, **told})


def report_path(run_dir: Path, rank: int) -> Path:
    return run_dir / f"profile-rank-{rank}.nsys-rep"


def profile_cases(campaign: Campaign, folder: Folder, nsys: str) -> list[RunRecord]:
    """Run what is missing of the profiled rounds, and those of other ranks anew; return the records of all."""
    cases = [item.case for item in campaign.planned if not item.infeasible]
    wanted = {case.case_id: ranks for case in cases if (ranks := ranks_of(case, campaign.options.rounds.profile))}
    runs = [_run_of(folder, case, wanted[case.case_id], nsys) for case in cases if case.case_id in wanted]
    missing = [run for run in runs if not _is_done(campaign, run)]
    for run in missing:
        if run.record_path.exists():
            set_aside(run.run_dir, "earlier")
    reporter = Reporter(campaign.console, list(campaign.planned), [run.case for run in missing])
    for run, record in zip(missing, run_each(campaign, folder, reporter, missing), strict=True):
        for rank in record.profiled_ranks:
            if not report_path(run.run_dir, rank).exists():
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
    """Whether an earlier command profiled these ranks; a round that failed is done unless it is to be tried again."""
    if not run.record_path.exists():
        return False
    record = store.read_record(run.record_path)
    is_tried_again = campaign.options.rounds.retry_failed and record.outcome != "completed"
    return record.profiled_ranks == run.profiled_ranks and not is_tried_again

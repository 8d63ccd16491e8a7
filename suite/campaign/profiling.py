"""``bench --profile RANKS``: after the counted rounds one more of each case, with some ranks below Nsight Systems.

Such a round is slower, so it stands in a folder of its own, ``OUT/profiles``, its record says which ranks were
profiled, and no statistic counts it.
"""

import shutil
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.campaign.folder import Folder
from suite.campaign.progress import Reporter
from suite.campaign.rounds import disk_errors, render_in
from suite.campaign.state import Campaign
from suite.errors import UsageError
from suite.launch.registry import entry_of
from suite.launch.runtime import Runtime
from suite.options.options import Options
from suite.records import store
from suite.records.collect import collect
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


def profiled_launch(launch: Launch, ranks: Collection[int], nsys: str) -> Launch:
    """The launch with its ranks told to begin below nsys. It writes its report at its end, in silence, for minutes."""
    told: Mapping[str, str] = {RANKS_VARIABLE: ",".join(map(str, sorted(ranks))), NSYS_VARIABLE: nsys}
    patient = replace(launch.case, hang_timeout_s=launch.case.timeout_s)
    return replace(launch, case=patient, env={**launch.env, **told})


def report_path(run_dir: Path, rank: int) -> Path:
    return run_dir / f"profile-rank-{rank}.nsys-rep"


def profile_cases(campaign: Campaign, folder: Folder, runtime: Runtime, nsys: str) -> list[RunRecord]:
    """Run what is missing of the profiled rounds, and those of other ranks anew; return the records of all."""
    cases = [item.case for item in campaign.planned if not item.infeasible]
    wanted = {case.case_id: ranks for case in cases if (ranks := ranks_of(case, campaign.options.rounds.profile))}
    profiled = [
        case
        for case in cases
        if case.case_id in wanted and not _is_done(campaign, _record_path(folder, case), wanted[case.case_id])
    ]
    reporter = Reporter(campaign.console, list(campaign.planned), list(profiled))
    for case in profiled:
        with disk_errors(folder.root):
            folder.require_space()
            record = _profile(campaign, folder, runtime, reporter, case, wanted[case.case_id], nsys)
            missing = [rank for rank in record.profiled_ranks if not report_path(_dir(folder, case), rank).exists()]
        reporter.ended(record, " (profiled, not counted)")
        for rank in missing:
            campaign.console.print(
                f"    nsys left no report of rank {rank}; its words are in the rank's log below {_dir(folder, case)}",
                style="yellow",
                highlight=False,
            )
    return [store.read_record(_record_path(folder, case)) for case in cases if case.case_id in wanted]


def _is_done(campaign: Campaign, path: Path, ranks: tuple[int, ...]) -> bool:
    """Whether an earlier command profiled these ranks; a round that failed is done unless it is to be tried again."""
    if not path.exists():
        return False
    record = store.read_record(path)
    is_tried_again = campaign.options.rounds.retry_failed and record.outcome != "completed"
    return record.profiled_ranks == ranks and not is_tried_again


def _profile(
    campaign: Campaign,
    folder: Folder,
    runtime: Runtime,
    reporter: Reporter,
    case: Case,
    ranks: tuple[int, ...],
    nsys: str,
) -> RunRecord:
    run_dir = _dir(folder, case)
    folder.set_aside(run_dir, "earlier" if _record_path(folder, case).exists() else "interrupted")
    launch = profiled_launch(
        render_in(campaign, runtime.worker, run_dir, case, 0, python_path=runtime.python_path), ranks, nsys
    )
    with reporter.run(case, 0) as line:
        result = runtime.launch(launch, on_progress=line.update)
    record = replace(collect(run_dir, case, 0, result, campaign.machine), profiled_ranks=ranks)
    store.write_record(record, _record_path(folder, case))
    return record


def _dir(folder: Folder, case: Case) -> Path:
    return folder.root / "profiles" / case.case_id


def _record_path(folder: Folder, case: Case) -> Path:
    return _dir(folder, case) / "record.json"

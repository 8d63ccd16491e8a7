"""Compile kernels in runs of their own before anything is timed, and remember which kernels are compiled.

A campaign of a matrix with ``warm_up`` begins with a run of two iterations for each task, stack and number of
environments per rank: Newton compiles its broad phase for each number, and everything else once per task. The run has
one rank even if the rounds have several, because ranks load the same kernels. On two CPU cores with an empty cache
(2026-11-24), one rank of Cartpole, Ant and the Shadow Hand compiled 54, 11 and 24 kernels; later runs with one or two
ranks, or with another RL library, compiled none. On a GPU, rl_games also compiles its network, for each number of ranks
(two H100s, 2026-11-24: 188 kernels on one, then 16 on both). So it has warm-ups of its own there, with as many ranks as
its rounds; these serve the other libraries too. A case with an empty ``kernel_cache`` has none: it is to start cold.

Their cache records which kernels are compiled::

    CACHE/kernels-<pins>/warm/<device>-<stack>-<task>-n<environments of a rank>[-rl_games-<topology>].json

The runs are kept in ``OUT/warm-up`` and are never counted.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.campaign import run_log
from suite.campaign.folder import Folder
from suite.campaign.runs.rounds import run_uncounted
from suite.campaign.runs.run import Run, repair_kernels
from suite.campaign.schedule import known_blocks, known_rounds
from suite.campaign.state import Campaign
from suite.files.json_file import replace_json
from suite.files.paths import set_aside
from suite.files.wording import counted
from suite.install import damage
from suite.matrix.own_worker import own_worker_of
from suite.options.command_line import say
from suite.records import store
from suite.schema.record import WARM_UP_SUFFIX, Case, Device, Environment, RlLibrary, RunRecord
from suite.schema.stored import MIN_ITERATIONS

FOLDER: Final = "warm-up"  # in the campaign's folder
COMPILING: Final[frozenset[RlLibrary]] = frozenset({"rl_games"})  # on GPUs, by torch's Inductor

type Kernels = tuple[str, ...]


def kernels_of(case: Case) -> Kernels:
    """The key of all kernels that a run of this case needs."""
    own = (case.rl_library, case.topology) if _compiles_itself(case) else ()
    return (*shared_kernels_of(case), *own)


def shared_kernels_of(case: Case) -> Kernels:
    """The key of the kernels of physics and rendering."""
    own = own_worker_of(case)
    of_own = (hashlib.sha256(str(own).encode()).hexdigest()[:12],) if own else ()
    return case.stack, case.task, f"n{case.num_envs}", *of_own


def is_warmed(case: Case) -> bool:
    """Whether kernels that an earlier run compiled serve this case."""
    return case.kernel_cache == "kept"


def _compiles_itself(case: Case) -> bool:
    return case.device == "cuda" and case.rl_library in COMPILING


def warm_ups(cases: Sequence[Case]) -> list[Case]:
    """The fewest warm-ups that compile all kernels of these cases; those that do not train or start cold have none."""
    training = [case for case in cases if case.learns and is_warmed(case)]
    training.sort(key=lambda case: (not _compiles_itself(case), case.world_size))
    chosen: list[Case] = []
    compiled: set[Kernels] = set()
    for case in training:
        if kernels_of(case) not in compiled:
            chosen.append(_warm_up(case))
            compiled |= compiled_by(case)
    return chosen


def _warm_up(case: Case) -> Case:
    case = replace(case, trainings_per_gpu=1, num_envs_global=case.num_envs * case.world_size)
    if _compiles_itself(case):
        return replace(case, case_id=case.case_id + WARM_UP_SUFFIX, iterations=MIN_ITERATIONS)
    sizes = (f"-n{case.num_envs_global}-{case.topology}", f"-n{case.num_envs}-1x1")
    return replace(
        case,
        case_id=case.case_id.replace(*sizes) + WARM_UP_SUFFIX,
        nnodes=1,
        nproc_per_node=1,
        num_envs_global=case.num_envs,
        iterations=MIN_ITERATIONS,
    )


def is_of(warm_up: Case, case: Case) -> bool:
    """Whether this is the warm-up of the case, which would then fail as the warm-up did."""
    return is_warmed(case) and (warm_up.rl_library, kernels_of(warm_up)) == (case.rl_library, kernels_of(case))


def in_words(case: Case) -> str:
    sizes = f"{counted(case.num_envs, 'environment')} on {counted(case.world_size, 'process')}"
    return ", ".join([f"{case.task} with {case.rl_library}, {sizes}", *case.with_packages])


def compiled_by(warm_up: Case) -> set[Kernels]:
    """The keys of all kernels that a warm-up compiles, for any case."""
    return {kernels_of(warm_up), shared_kernels_of(warm_up)}


def is_missing(cache_dir: Path, warm_up: Case, machine: Environment, needed: Collection[Kernels]) -> bool:
    """Whether this warm-up would compile any of the needed kernels: no run did, or the cache has none any more."""
    compiled = compiled_by(warm_up).intersection(needed)
    if next(damage.modules(cache_dir), None) is None:
        return bool(compiled)
    return not all(_marker(cache_dir, kernels, machine, warm_up.device).exists() for kernels in compiled)


def remember(cache_dir: Path, warm_up: Case, machine: Environment) -> None:
    """Record that a warm-up has compiled its kernels."""
    for kernels in compiled_by(warm_up):
        path = _marker(cache_dir, kernels, machine, warm_up.device)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_json({"case": warm_up.case_id, "suite_version": machine.suite_version}, path)


def _marker(cache_dir: Path, kernels: Kernels, machine: Environment, device: Device) -> Path:
    gpus = machine.gpus if device == "cuda" else ()
    kinds = sorted({gpu.compute_capability or gpu.name.replace(" ", "-") for gpu in gpus})
    return cache_dir / damage.WARM / f"{'-'.join([device, *kinds, *kernels])}.json"


def run_warm_ups(campaign: Campaign, folder: Folder) -> None:
    """Run the warm-ups that rounds need and this machine lacks. If a warm-up fails, its rounds fail."""
    own = Folder(root=folder.root / FOLDER)
    missing = _missing_warm_ups(campaign, folder)
    if missing:
        programs = "; ".join(map(in_words, missing))
        come = "comes" if len(missing) == 1 else "come"
        say(
            campaign.console,
            f"{counted(len(missing), 'warm-up')} {come} first, not counted, so that no kernel is compiled while "
            f"something is timed: {programs}.",
        )
    runs = [Run(case=case, round=0, run_dir=own.run_dir(case, 0), uncounted="warm-up, not counted") for case in missing]
    for run, record in run_uncounted(campaign, folder, runs, followed_by=known_blocks(campaign, folder)):
        if record.outcome == "completed":
            remember(campaign.provided.worker_of(run.case).cache_dir, run.case, campaign.machine)
        else:
            _fail_rounds(campaign, folder, record)


def _missing_warm_ups(campaign: Campaign, folder: Folder) -> list[Case]:
    """The warm-ups that would compile what a round still needs."""
    caches = {item.case: campaign.provided.worker_of(item.case).cache_dir for item in campaign.warm_ups}
    for cache_dir in dict.fromkeys(caches.values()):
        repair_kernels(campaign, cache_dir)  # modules that are moved away are compiled again
    cases = [item.case for item, _ in known_rounds(campaign, folder)]
    needed = {kernels_of(case) for case in cases if is_warmed(case)}
    return [case for case, cache_dir in caches.items() if is_missing(cache_dir, case, campaign.machine, needed)]


def _fail_rounds(campaign: Campaign, folder: Folder, record: RunRecord) -> None:
    """Record the outcome and reason of this warm-up for every round that needs it; running them would repeat it."""
    rounds = [(item.case, index) for item, index in known_rounds(campaign, folder) if is_of(record.case, item.case)]
    for case, index in rounds:
        set_aside(folder.run_dir(case, index), "interrupted")
        failed = replace(
            record,
            case=case,
            round=index,
            reason=f"its warm-up: {record.reason}",
            wall_time_s=None,  # it never ran
            ranks=(),
            workload=None,
            telemetry=None,
            telemetry_note="the round never started",
            clocks=None,
            transport=None,
        )
        run_log.append(folder.run_dir(case, index), store.write_record(failed, folder.record_path(case, index)))
    if rounds:
        say(
            campaign.console,
            f"    {counted(len(rounds), 'run')} of {in_words(record.case)} cannot start either. Its logs: "
            f"{Folder(root=folder.root / FOLDER).run_dir(record.case, 0) / 'logs'}",
            style="yellow",
        )


def log_folder(campaign: Campaign, case: Case, index: int) -> Path:
    """Where the logs of a round are, or those of its failed warm-up if the round never started."""
    run_dir = Folder(root=campaign.out).run_dir(case, index)
    if (run_dir / "logs").is_dir():
        return run_dir / "logs"
    own = Folder(root=campaign.out / FOLDER)
    ended = (item.case for item in campaign.warm_ups if is_of(item.case, case) and own.is_finished(item.case, 0))
    return next((own.run_dir(warm_up, 0) / "logs" for warm_up in ended), run_dir)

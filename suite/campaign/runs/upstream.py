"""Compare our clock with Isaac Lab's own benchmark.

With ``bench --upstream``, upstream's ``isaaclab benchmark training`` runs after each completed round, with the same
arguments on the same machine, so that the two alternate. Upstream reports only rank 0, so only rank 0 is compared.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, NotRequired, TypedDict

from pydantic import ConfigDict, Field, with_config

from suite.campaign.folder import Folder, drop_checkpoints
from suite.errors import StoreError
from suite.files.json_file import STORED, read_json, replace_json
from suite.files.wording import counted
from suite.launch.contract import TO_ITS_END, Launcher
from suite.records.store import read_record, read_record_of
from suite.schema.record import Case, Launch, RunRecord
from suite.schema.stored import LARGEST, plain
from suite.statistics.reduce import counted_iterations, starts_of_turns

_DIGITS: Final = 9  # significant ones, as of our own samples
type _Time = Annotated[float, Field(gt=0, le=LARGEST)]


@with_config(ConfigDict(allow_inf_nan=False))
class _Written(TypedDict):
    """The fields that are read of what ``tasks.upstream`` wrote."""

    iteration_time_s: list[_Time]
    wall_time_s: NotRequired[_Time | None]


@with_config(STORED)
@dataclass(frozen=True, kw_only=True)
class Pair:
    """One round of ours and one of upstream's: medians over the iterations of rank 0 that count in ours [s]."""

    case_id: str
    round: int
    ours_s: _Time
    theirs_s: _Time
    theirs_wall_s: _Time | None = None  # of upstream's whole process; None in old pairs
    theirs_iterations_s: tuple[_Time, ...] | None = None  # every iteration of upstream's; None in old pairs
    library_s: _Time | None  # what the RL library reported in our own process, as upstream would have read it

    @property
    def difference(self) -> float:
        """Relative difference; positive if ours is longer."""
        return self.ours_s / self.theirs_s - 1

    @property
    def clock_difference(self) -> float | None:
        """Relative difference of our clock to the library's in the same process, without noise between processes."""
        return None if self.library_s is None else self.ours_s / self.library_s - 1


def can_run(case: Case) -> bool:
    """Whether upstream can run this case and stores its iteration times; not those of skrl and sb3.

    Upstream's program starts one training on one node. Its benchmark makes the physics deterministic, but not torch.
    Its start-up is not compared, so no cold case needs it.
    """
    is_upstreams = case.workload == "train" and case.rl_library in ("rl_games", "rsl_rl")
    is_one = case.nnodes == case.trainings_per_gpu == 1
    is_changed = case.pin_cpus or case.deterministic or case.kernel_cache == "empty" or case.only_learning
    return is_upstreams and is_one and not is_changed


def folder_of(run_dir: Path) -> Path:
    return run_dir / "upstream"


def needs_upstream(case: Case, run_dir: Path) -> bool:
    """Whether a finished round still needs upstream's run."""
    if not can_run(case) or (folder_of(run_dir) / "upstream.json").exists():
        return False
    return read_record(run_dir / "record.json").outcome == "completed"


def run_pair(ours: Launch, launcher: Launcher) -> Pair | None:
    """Run upstream after a finished round of ours; None if upstream failed (its logs stay in the folder).

    Raises:
        StoreError: our own round has no record yet.
    """
    run_dir = folder_of(Path(ours.run_dir))
    launch = Launch(
        # upstream writes no samples while it runs, so silence does not mean a hang
        case=replace(ours.case, hang_timeout_s=ours.case.timeout_s),
        round=ours.round,
        argv=(ours.argv[0], "-m", "tasks.upstream", str(run_dir)),
        env=ours.env,
        cpus=ours.cpus,
        run_dir=str(run_dir),
    )
    launcher(launch, TO_ITS_END)
    drop_checkpoints(run_dir)
    return read_pair(ours.case, ours.round, run_dir.parent)


def read_pair(case: Case, round_index: int, run_dir: Path) -> Pair | None:
    """The pair in the directory of a completed run; None if upstream wrote no times.

    Raises:
        StoreError: a file cannot be read, or the two sides differ in their number of iterations.
    """
    theirs_path = folder_of(run_dir) / "upstream.json"
    written = read_json(theirs_path, _Written, next_step="Move it away to continue without it.")
    if written is None:
        return None
    theirs = written["iteration_time_s"]
    record = read_record_of(case, round_index, run_dir / "record.json")
    if len(theirs) != (ours := record.ranks[0].num_iterations):
        raise StoreError(
            f"{theirs_path} has {counted(len(theirs), 'iteration')}, but its run has {ours}, so they are not a pair. "
            "Move it away, and the same command runs upstream again."
        )
    ours_s, library_s = medians_of_rank_0(record)
    return Pair(
        case_id=case.case_id,
        round=round_index,
        ours_s=ours_s,
        theirs_s=statistics.median(theirs[iteration] for iteration in _compared(record)),
        theirs_wall_s=written.get("wall_time_s"),
        theirs_iterations_s=tuple(float(f"{time_s:.{_DIGITS}g}") for time_s in theirs),
        library_s=library_s,
    )


def medians_of_rank_0(record: RunRecord) -> tuple[float, float | None]:
    """Median iteration time of rank 0 by our clock and by the library's [s]; None if the library has no clock."""
    compared = _compared(record)
    return statistics.median(_column(record, compared, "iteration_time_s")), _library_s(record, compared)


def _compared(record: RunRecord) -> Sequence[int]:
    """The iterations that count, without the first of a turn: the library's clock goes on while others have theirs."""
    iterations, starts = counted_iterations(record), starts_of_turns(record)
    return [iteration for iteration in iterations if iteration not in starts] or iterations


def bracketed_differences(pairs: Sequence[Pair]) -> list[float]:
    """Relative differences without a slow drift of the machine; positive if ours is longer.

    The runs of one case alternate, ours first. A machine that becomes faster or slower biases all direct comparisons
    in the same way, so each run between two of the other kind is compared with the mean of those two.
    """
    series = [time_s for pair in sorted(pairs, key=lambda pair: pair.round) for time_s in (pair.ours_s, pair.theirs_s)]
    differences = []
    for index in range(1, len(series) - 1):
        neighbours_s = (series[index - 1] + series[index + 1]) / 2
        is_ours = index % 2 == 0
        differences.append((series[index] / neighbours_s if is_ours else neighbours_s / series[index]) - 1)
    return differences


def read_pairs(path: Path) -> tuple[Pair, ...]:
    """Read the pairs that ``write_pairs`` wrote; () without a file. Raises StoreError if it cannot be read."""
    return read_json(path, tuple[Pair, ...], next_step="Copy it again from the campaign that wrote it.") or ()


def write_pairs(folder: Folder) -> list[Pair]:
    """Write ``OUT/upstream.json`` if there are pairs or it exists already; return the pairs of every stored case.

    Raises:
        StoreError: a stored case cannot be read, or the file cannot be written.
    """
    completed = [record for result in folder.stored() for record in result.completed]
    read = (read_pair(record.case, record.round, folder.run_dir(record.case, record.round)) for record in completed)
    pairs, path = [pair for pair in read if pair is not None], folder.root / "upstream.json"
    if pairs or path.exists():
        replace_json(plain(pairs), path)
    return pairs


def _library_s(record: RunRecord, iterations: Sequence[int]) -> float | None:
    if record.case.rl_library == "rsl_rl":
        collections_s = _column(record, iterations, "rsl_rl.collection_time_s")
        learnings_s = _column(record, iterations, "rsl_rl.learning_time_s")
        times_s = [sum(parts) for parts in zip(collections_s, learnings_s, strict=True)]
    elif record.case.rl_library == "rl_games":
        frames = record.case.frames_per_iteration // record.case.trainings_per_gpu  # a library knows its own training
        times_s = [frames / fps for fps in _column(record, iterations, "rl_games.total_fps")]
    else:
        times_s = []
    return statistics.median(times_s) if times_s else None


def _column(record: RunRecord, iterations: Sequence[int], name: str) -> list[float]:
    """Samples of rank 0 in the iterations that count, without missing ones."""
    stored = record.ranks[0].samples.get(name, ())
    values = (stored[iteration] for iteration in iterations if iteration < len(stored))
    return [value for value in values if value is not None]

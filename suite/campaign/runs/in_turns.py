"""Train the rounds of a block: they start together and are measured in turns."""

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from threading import Event

from suite.campaign.display.progress import RunLine
from suite.campaign.runs.keeper import TURN_S, Keeper, Seat
from suite.campaign.runs.training import Run, collected, keep, launch_of, runtime_of, set_up
from suite.campaign.state import Campaign
from suite.errors import Interrupted
from suite.files.paths import set_aside
from suite.files.wording import counted
from suite.launch.contract import RunControl
from suite.options.command_line import say
from suite.schema.observations import TurnsTaken
from suite.schema.rank_protocol import TURNS_SOCKET, TURNS_VARIABLE
from suite.schema.record import RunRecord


def train(campaign: Campaign, runs: Sequence[Run], lines: Sequence[RunLine]) -> list[RunRecord | None]:
    """Train all runs and return their records, which are also kept; None for one that ran out of memory.

    Alone it may fit: its attempt is set aside. If one run cannot be started or ended, the others are stopped.
    """
    for run in runs:
        set_up(campaign, run)
    seats = [Seat(case=run.case, run_dir=run.run_dir) for run in runs]
    stop = Event()
    with Keeper(seats) as keeper, ThreadPoolExecutor(len(runs)) as threads:
        futures = [
            threads.submit(_train, campaign, run, line, seat, keeper, stop, [one.case.case_id for one in runs])
            for run, line, seat in zip(runs, lines, seats, strict=True)
        ]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:  # Ctrl-C too
            stop.set()
    return _results(futures)


def _train(
    campaign: Campaign, run: Run, line: RunLine, seat: Seat, keeper: Keeper, stop: Event, block: Sequence[str]
) -> RunRecord | None:
    """Train one run; its record is written in its own last turn."""
    alone = launch_of(campaign, run)
    launch = replace(alone, env={**alone.env, TURNS_VARIABLE: TURNS_SOCKET})
    control = RunControl(on_progress=line.update, stop=stop, waits=seat.waits)
    try:
        result = runtime_of(campaign).launch(launch, control)
        beside = tuple(case_id for case_id in block if case_id != run.case.case_id)
        turns = TurnsTaken(beside=beside, turns=seat.turns, turn_s=TURN_S)
        record = collected(campaign, run, launch, result, turns)
        if record.outcome == "oom" and beside:
            set_aside(run.run_dir, "crowded")
            return None
        keep(run, record)
        if record.outcome != "completed":  # its own lines follow when the block has ended, which can take long
            others = f"; {counted(len(beside), 'other round')} of its block may go on" if beside else ""
            say(campaign.console, f"{run.case.case_id} round {run.round}: {record.outcome}{others}: {record.reason}")
        return record
    finally:
        keeper.ended(seat)


def _results(futures: Sequence[Future[RunRecord | None]]) -> list[RunRecord | None]:
    """The results; raises the error for which the others were stopped."""
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in sorted(errors, key=lambda one: isinstance(one, Interrupted)):
        raise error
    return [future.result() for future in futures]

"""How many rounds a case gets, and what else runs."""

import argparse
from dataclasses import dataclass

from suite.options.types import above_zero, fraction, ranks, rounds
from suite.statistics.stopping_rule import TARGET_PRECISION


@dataclass(frozen=True, kw_only=True)
class Rounds:
    repeats: int | None = None
    target_precision: float | None = None
    max_rounds: int | None = None
    budget_minutes: float | None = None
    a_a: bool | None = None
    turns: bool = True
    upstream: bool = False
    profile: tuple[int, ...] = ()  # ranks
    video: bool = False
    retry_failed: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repeats",
        type=rounds,
        metavar="N",
        help="run exactly N rounds of each case; with --target-precision, at least N (default: the matrix's)",
    )
    parser.add_argument(
        "--target-precision", type=fraction, nargs="?", const=TARGET_PRECISION, metavar="FRACTION",
        help="add rounds until half the width of the 95 %% interval of the ratio to the baseline of the series (of a "
        "baseline: of its median) is at most this fraction of it "
        f"(without a value: {TARGET_PRECISION}; default: the matrix's)",
    )  # fmt: skip
    parser.add_argument(
        "--max-rounds", type=rounds, metavar="N", help="stop a case after N rounds, even if it misses the target"
    )
    parser.add_argument(
        "--budget-minutes",
        type=above_zero,
        metavar="MIN",
        help="after this wall time, run no more rounds of a case than --repeats or the matrix requires",
    )
    parser.add_argument(
        "--a-a",
        action=argparse.BooleanOptionalAction,
        help="run the baseline of each series twice, under two names (default: the matrix's)",
    )

    parser.add_argument(
        "--no-turns",
        dest="turns",
        action="store_false",
        default=None,
        help="measure rounds one after another (default: rounds that fit the machine together start together, "
        "and are measured in turns)",
    )


def add_running_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what only a command that runs rounds takes."""
    parser.add_argument(
        "--profile", type=ranks, default=(), metavar="N[,N]",
        help="afterwards run each case once more, with Nsight Systems on these ranks; this round is not counted",
    )  # fmt: skip
    parser.add_argument(
        "--video",
        action="store_true",
        help="afterwards run each case once more and film its last seconds; this round is not counted",
    )
    parser.add_argument("--retry-failed", action="store_true", help="run failed rounds again")
    parser.add_argument(
        "--upstream",
        action="store_true",
        help="after each round, run Isaac Lab's own benchmark with the same arguments",
    )

"""How many rounds a case gets, and what runs with them."""

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
    upstream: bool = False
    profile: tuple[int, ...] = ()  # ranks
    retry_failed: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--repeats", type=rounds, metavar="N", help="exactly N rounds, each a fresh process (default: the matrix's)"
    )
    parser.add_argument(
        "--target-precision", type=fraction, nargs="?", const=TARGET_PRECISION, metavar="FRACTION",
        help="go on until the half-width of the 95 %% interval of the median is at most this part of it "
        f"(without a value: {TARGET_PRECISION}; default: the matrix's)",
    )  # fmt: skip
    parser.add_argument("--max-rounds", type=rounds, metavar="N", help="most rounds of a case, if it misses the target")
    parser.add_argument(
        "--budget-minutes",
        type=above_zero,
        metavar="MIN",
        help="wall time after which a case gets only the rounds of the matrix",
    )
    parser.add_argument(
        "--a-a", action=argparse.BooleanOptionalAction, help="run each series' baseline twice (default: the matrix's)"
    )


def add_running_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what only a command that runs rounds takes."""
    parser.add_argument(
        "--profile", type=ranks, default=(), metavar="N[,N]",
        help="then run each case once more with these ranks below Nsight Systems; such a round is never counted",
    )  # fmt: skip
    parser.add_argument("--retry-failed", action="store_true", help="give failed rounds another attempt")
    parser.add_argument(
        "--upstream", action="store_true", help="after each round run Isaac Lab's own benchmark with the same arguments"
    )

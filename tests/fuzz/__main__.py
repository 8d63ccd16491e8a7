"""Mutate inputs until something breaks: ``nox -s fuzz -- [--seconds N] [--seed S] [--target GLOB]``."""

import itertools
import math
import random
import resource
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from suite.errors import LabscaleError, UsageError
from suite.options.command_line import Parser, any_text
from suite.options.types import above_zero, seed
from tests.fuzz.target import Finding, Target, attempt_once
from tests.fuzz.targets import TARGETS

MEMORY_BYTES: Final = 8 * 2**30  # of addresses: input that fills the memory is a finding, not the end of the machine
SAID_EVERY_S: Final = 30.0


def fuzz(targets: Sequence[Target], *, first_seed: int, seconds: float) -> Finding | None:
    """One attempt on each target in turn, with a new seed each turn, until a finding or the end of the time."""
    start_s = said_s = time.monotonic()
    for turn in itertools.count():
        for target in targets:
            if finding := attempt_once(target, first_seed + turn):
                return finding
        now_s = time.monotonic()
        is_over = now_s - start_s > seconds
        if is_over or now_s - said_s > SAID_EVERY_S:
            said_s = now_s
            print(f"{now_s - start_s:.0f} s: {turn + 1} attempts on each of {len(targets)} targets", flush=True)
        if is_over:
            break
    return None


def chosen(glob: str) -> list[Target]:
    """Raises UsageError where there is none."""
    if found := [target for target in TARGETS if fnmatchcase(target.name, glob)]:
        return found
    raise UsageError(f"--target is {glob!r}; allowed are {', '.join(target.name for target in TARGETS)}, or a pattern.")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="nox -s fuzz --", description="Mutate every input until one ends in a traceback or hangs.")
    parser.add_argument("--seconds", type=above_zero, default=math.inf, help="stop after so many (default: never)")
    parser.add_argument("--seed", type=seed, help="of the first attempts (default: a new one)")
    parser.add_argument("--target", type=any_text, default="*", metavar="GLOB", help="only these (default: all)")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    try:
        options = parser.read(arguments)
        targets = chosen(options.target)
        first_seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
        print(f"seed {first_seed}: {', '.join(target.name for target in targets)}", flush=True)
        finding = fuzz(targets, first_seed=first_seed, seconds=options.seconds)
    except LabscaleError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    if finding is None:
        return 0
    print(
        f"{finding.traceback}\n{finding.target} ends so with seed {finding.seed}; the input is in {finding.folder}.\n"
        f"Again: nox -s fuzz -- --target {finding.target} --seed {finding.seed}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())

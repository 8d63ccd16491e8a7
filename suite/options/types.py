"""Types of options for argparse. Pure; each error says what it got and what is allowed."""

import argparse
import math
import re
from collections.abc import Callable
from typing import Final, NoReturn

from suite.files.input_file import fault_of_text
from suite.matrix.own_worker import exact_package
from suite.matrix.tables import LARGEST_SEED, MOST_ROUNDS

SEVERAL: Final = 2
_WORD: Final = "[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_DOMAIN: Final = "[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
_KEY: Final = f"({_DOMAIN}/)?{_WORD}"  # of Kubernetes' labels and taints
HOST: Final = re.compile(r"([A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*", re.ASCII)


def _refuse(text: str, allowed: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"got {text!r}, allowed {allowed}")


def _whole_number(least: int, most: int | None, allowed: str) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            _refuse(text, allowed)
        return int(text)

    return read


positive: Final = _whole_number(1, None, "is a whole number, 1 or more")
several: Final = _whole_number(SEVERAL, None, f"is a whole number, {SEVERAL} or more")
rounds: Final = _whole_number(1, MOST_ROUNDS, f"are whole numbers from 1 to {MOST_ROUNDS}")
seed: Final = _whole_number(0, LARGEST_SEED, f"are whole numbers from 0 to {LARGEST_SEED}")


def _number(is_allowed: Callable[[float], bool], allowed: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not is_allowed(number):  # NaN is within no bounds
            _refuse(text, allowed)
        return number

    return read


fraction: Final = _number(lambda number: 0 < number < 1, "is more than 0 and less than 1, e.g. 0.01")
above_zero: Final = _number(lambda number: 0 < number < math.inf, "is a number above 0")
percent: Final = _number(lambda number: 0 <= number < math.inf, "is a number of percent, 0 or more")


def _matching(pattern: str, allowed: str, flags: re.RegexFlag = re.ASCII) -> Callable[[str], str]:
    compiled = re.compile(pattern, flags)

    def read(text: str) -> str:
        if not compiled.fullmatch(text):
            _refuse(text, allowed)
        return text

    return read


object_name: Final = _matching(
    _DOMAIN, "are names as Kubernetes has them: small letters, digits, - and ., at most 253"
)  # fmt: skip
toleration: Final = _matching(
    rf"{_KEY}(=({_WORD})?)?(:(NoSchedule|PreferNoSchedule|NoExecute))?",
    "is KEY, KEY=VALUE or either with :NoSchedule, :PreferNoSchedule or :NoExecute, e.g. nvidia.com/gpu:NoSchedule",
)
label: Final = _matching(
    rf"{_KEY}=({_WORD})?", "is KEY=VALUE as on a node, e.g. nvidia.com/gpu.product=NVIDIA-H200"
)  # fmt: skip
resource_name: Final = _matching(
    rf"{_DOMAIN}/{_WORD}",
    "is the name of a resource, DOMAIN/NAME, e.g. nvidia.com/gpu or nvidia.com/mig-3g.40gb",
)
quantity: Final = _matching(
    "[1-9][0-9]{0,14}(Mi|Gi|Ti|M|G|T)", "is a whole number with Mi, Gi, Ti, M, G or T, e.g. 64Gi"
)
gpu_type: Final = _matching(
    r"[A-Za-z0-9][A-Za-z0-9_.-]*",
    "is the name of a kind without its number, as `sinfo --format=%G` prints it: h100, rtx_3090",
)
# minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds
slurm_time: Final = _matching(
    r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}|infinite|unlimited",
    "are minutes, [HOURS:]MINUTES:SECONDS and DAYS-HOURS[:MINUTES[:SECONDS]], e.g. 90",
    re.ASCII | re.IGNORECASE,
)


def sbatch_option(text: str) -> str:
    """Any option of sbatch. It becomes a line of a script: ``#SBATCH --NAME=VALUE``."""
    if not re.fullmatch(r"[^\s=-][^\s=]*(=.*)?", text) or fault_of_text(text):
        _refuse(text, "is NAME or NAME=VALUE on one line, the name without its dashes, e.g. mem=0")
    return text


def package(text: str) -> str:
    try:
        return exact_package(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"got {text!r}, {error}") from None


def counts(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        _refuse(text, "are whole numbers from 1 on, e.g. 2 or 1,2,4")
    return tuple(int(part) for part in parts)


def ranks(text: str) -> tuple[int, ...]:
    if not all(part.isdecimal() for part in text.split(",")):
        _refuse(text, "are numbers of processes from 0 on, e.g. 0 or 0,3")
    return tuple(int(part) for part in text.split(","))


def hosts(text: str) -> tuple[str, ...]:
    names = tuple(name for part in text.split(",") if (name := part.strip(" ")))
    if not names:  # as a variable that is not set leaves it: then this machine alone would run everything
        _refuse(text, "is one host or more, e.g. gpu01,gpu02")
    if refused := [name for name in names if not HOST.fullmatch(name)]:
        raise argparse.ArgumentTypeError(
            f"got {', '.join(map(repr, refused))}; allowed is [USER@]HOST, a name or an IPv4 address (torchrun's "
            "rendezvous and gloo are given no others) with letters, digits, dots, - and _, as ssh's configuration "
            "names it, e.g. gpu01,ada@gpu02; a port goes into that configuration"
        )
    return names

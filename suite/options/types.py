"""Types of options for argparse. Pure; each error says what it got and what is allowed."""

import argparse
import ipaddress
import math
import re
from typing import Final

from suite.files.input_file import fault_of_text
from suite.matrix.own_worker import exact_package
from suite.matrix.tables import LARGEST_SEED, MOST_ROUNDS

IPV6: Final = 6
SEVERAL: Final = 2
OBJECT_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_WORD: Final = "[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY: Final = rf"([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_WORD}"  # of Kubernetes' labels and taints
TOLERATION: Final = re.compile(rf"{_KEY}(=({_WORD})?)?(:(NoSchedule|PreferNoSchedule|NoExecute))?")
LABEL: Final = re.compile(rf"{_KEY}=({_WORD})?")
RESOURCE: Final = re.compile(rf"[a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/{_WORD}")
QUANTITY: Final = re.compile("[1-9][0-9]{0,14}(Mi|Gi|Ti|M|G|T)")
SBATCH_OPTION: Final = re.compile(r"[^\s=-][^\s=]*(=.*)?")  # becomes a line of a script: #SBATCH --NAME=VALUE
GPU_TYPE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
HOST: Final = re.compile(r"([A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*", re.ASCII)
# minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds
SLURM_TIME: Final = re.compile(r"\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}|infinite|unlimited", re.ASCII | re.IGNORECASE)


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed is a whole number, 1 or more")
    return int(text)


def rounds(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_ROUNDS:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed are whole numbers from 1 to {MOST_ROUNDS}")
    return int(text)


def object_name(text: str) -> str:
    if not OBJECT_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"got {text!r}, allowed are names as Kubernetes has them: small letters, digits, - and ., at most 253"
        )
    return text


def _matching(text: str, pattern: re.Pattern[str], allowed: str) -> str:
    if not pattern.fullmatch(text):
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed is {allowed}")
    return text


def toleration(text: str) -> str:
    return _matching(
        text, TOLERATION, "KEY, KEY=VALUE or either with :NoSchedule, :PreferNoSchedule or :NoExecute, e.g. "
        "nvidia.com/gpu:NoSchedule",
    )  # fmt: skip


def label(text: str) -> str:
    return _matching(text, LABEL, "KEY=VALUE as on a node, e.g. nvidia.com/gpu.product=NVIDIA-H200")


def resource_name(text: str) -> str:
    return _matching(
        text, RESOURCE, "the name of a resource, DOMAIN/NAME, e.g. nvidia.com/gpu or nvidia.com/mig-3g.40gb"
    )


def quantity(text: str) -> str:
    return _matching(text, QUANTITY, "a whole number with Mi, Gi, Ti, M, G or T, e.g. 64Gi")


def several(text: str) -> int:
    if not text.isdecimal() or int(text) < SEVERAL:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed is a whole number, {SEVERAL} or more")
    return int(text)


def package(text: str) -> str:
    try:
        return exact_package(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"got {text!r}, {error}") from None


def fraction(text: str) -> float:
    if not 0 < _number(text) < 1:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed is more than 0 and less than 1, e.g. 0.01")
    return float(text)


def above_zero(text: str) -> float:
    if not 0 < _number(text) < math.inf:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed is a number above 0")
    return float(text)


def percent(text: str) -> float:
    if not 0 <= _number(text) < math.inf:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed is a number of percent, 0 or more")
    return float(text)


def _number(text: str) -> float:
    """The number, or NaN for any other text: no bound allows it."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def seed(text: str) -> int:
    if not text.isdecimal() or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed are whole numbers from 0 to {LARGEST_SEED}")
    return int(text)


def counts(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed are whole numbers from 1 on, e.g. 2 or 1,2,4")
    return tuple(int(part) for part in parts)


def ranks(text: str) -> tuple[int, ...]:
    if not all(part.isdecimal() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"got {text!r}, allowed are numbers of ranks from 0 on, e.g. 0 or 0,3")
    return tuple(int(part) for part in text.split(","))


def hosts(text: str) -> tuple[str, ...]:
    if fault := fault_of_text(text):
        raise argparse.ArgumentTypeError(f"got {text!r}, which {fault}; allowed are names of hosts, e.g. gpu01,gpu02")
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:  # as a variable that is not set leaves it: then this machine alone would run everything
        raise argparse.ArgumentTypeError(f"got {text!r}, which names no host; allowed is one or more, e.g. gpu01,gpu02")
    if found := [name for name in names if _is_ipv6(name)]:
        raise argparse.ArgumentTypeError(
            f"got {', '.join(found)}; allowed are names and IPv4 addresses, since torchrun's rendezvous and gloo are "
            "given addresses of that family alone"
        )
    if found := [name for name in names if not HOST.fullmatch(name)]:
        raise argparse.ArgumentTypeError(
            f"got {', '.join(map(repr, found))}; allowed is [USER@]HOST with letters, digits, dots, - and _, as ssh's "
            "configuration names it, e.g. gpu01,ada@gpu02; a port goes into that configuration"
        )
    return names


def _is_ipv6(name: str) -> bool:
    try:
        return ipaddress.ip_address(name.rpartition("@")[2].strip("[]")).version == IPV6
    except ValueError:  # a name
        return False


def sbatch_option(text: str) -> str:
    if not SBATCH_OPTION.fullmatch(text) or fault_of_text(text):
        raise argparse.ArgumentTypeError(
            f"got {text!r}, allowed is NAME or NAME=VALUE on one line, the name without its dashes, e.g. mem=0"
        )
    return text


def gpu_type(text: str) -> str:
    if not GPU_TYPE.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"got {text!r}, allowed is the name of a kind without its number, as `sinfo --format=%G` prints it: h100, "
            "rtx_3090"
        )
    return text


def slurm_time(text: str) -> str:
    if not SLURM_TIME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"got {text!r}, allowed are minutes, [HOURS:]MINUTES:SECONDS and DAYS-HOURS[:MINUTES[:SECONDS]], e.g. 90"
        )
    return text

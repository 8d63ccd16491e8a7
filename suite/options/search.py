"""A search in place of a matrix: for the most environments that fit, or for the release that made a case slower."""

import argparse
from dataclasses import dataclass
from typing import Final, Self

from packaging.version import Version

from suite.matrix.own_worker import exact_package, name_of
from suite.options.command_line import any_text
from suite.options.types import SEVERAL, positive

ALLOWED: Final = (
    "allowed is a package alone, such as newton, with a range of releases, such as newton==1.6.0..1.8.0, or with at "
    "least two releases, such as newton==1.6.0,1.6.1"
)


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Which releases of a package are searched: listed by the user, or those of the index within a range."""

    package: str
    listed: tuple[str, ...] = ()  # the oldest first
    ends: tuple[str, str] | None = None  # None without a list: those of the major version that the worker has

    @classmethod
    def read(cls, text: str) -> Self:
        """Read ``NAME``, ``NAME==OLDEST..NEWEST`` or ``NAME==VERSION,VERSION,…``, of at least two versions.

        Raises:
            ValueError: it is anything else.
        """
        name, is_given, versions = text.partition("==")
        package = name_of(exact_package(f"{name}==0"))
        if not is_given:
            return cls(package=package)
        oldest, is_range, newest = versions.partition("..")
        texts = [oldest, newest] if is_range else versions.split(",")
        given = [exact_package(f"{name}=={version}").partition("==")[2] for version in texts]
        ordered = sorted(set(given), key=Version)
        if not SEVERAL <= len(ordered) == len(given) or (is_range and given != ordered):
            raise ValueError("the releases are too few, not distinct or not in order")
        if is_range:
            return cls(package=package, ends=(given[0], given[1]))
        return cls(package=package, listed=tuple(ordered))


@dataclass(frozen=True, kw_only=True)
class Search:
    capacity: str | None = None  # the series
    most_envs: int | None = None
    bisect: Releases | None = None

    @property
    def suffix(self) -> str:
        """What the default folder of results has behind the name of its matrix."""
        if self.bisect is not None:
            return f"-bisect-{self.bisect.package}"
        return "-capacity" if self.capacity else ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--capacity",
        type=any_text,
        metavar="SERIES",
        help="in place of a matrix, find the most environments that one rank of this series can run",
    )
    parser.add_argument("--most-envs", type=positive, metavar="N", help="with --capacity: try at most N environments")
    parser.add_argument(
        "--bisect",
        type=_releases,
        metavar="NAME[==OLDEST..NEWEST]",
        help="in place of a matrix, find between which two releases of this package one case of it became slower by "
        "a sure amount (default: those on the index with the major version that the worker has); or list them: "
        "NAME==VERSION,VERSION",
    )


def _releases(text: str) -> Releases:
    try:
        return Releases.read(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"got {text!r}, {ALLOWED}") from None

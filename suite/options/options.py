"""What a user asks of ``plan`` and ``bench``: small values, one for each concern."""

import argparse
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from suite.options.manifests import Manifests
from suite.options.place import Place
from suite.options.results import Results
from suite.options.rounds import Rounds
from suite.options.search import Search
from suite.options.selection import Selection
from suite.options.setup import Setup

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, kw_only=True)
class Options:
    """See ``python -m suite bench --help``."""

    selection: Selection = field(default_factory=Selection)
    setup: Setup = field(default_factory=Setup)
    rounds: Rounds = field(default_factory=Rounds)
    search: Search = field(default_factory=Search)
    place: Place = field(default_factory=Place)
    manifests: Manifests = field(default_factory=Manifests)
    results: Results = field(default_factory=Results)


def grouped(arguments: argparse.Namespace) -> Options:
    """The options in arguments of the same names."""
    return Options(
        selection=read(Selection, arguments),
        setup=read(Setup, arguments),
        rounds=read(Rounds, arguments),
        search=read(Search, arguments),
        place=read(Place, arguments),
        manifests=read(Manifests, arguments),
        results=read(Results, arguments),
    )


def read[G: "DataclassInstance"](group: type[G], arguments: argparse.Namespace) -> G:
    """The options of a group, whose fields are named as the arguments; those that a command lacks are at defaults."""
    return group(**{one.name: _value(arguments, one) for one in fields(group)})


def given(group: type["DataclassInstance"], arguments: argparse.Namespace) -> tuple[str, ...]:
    """Names of the options of a group that the user gave."""
    return tuple(one.name for one in fields(group) if _value(arguments, one) != one.default)


def _value(arguments: argparse.Namespace, of: "Field[Any]") -> Any:
    value = getattr(arguments, of.name, None)
    if value is None:  # not given, and argparse need not know the default
        return of.default
    return tuple(value) if isinstance(value, list) else value

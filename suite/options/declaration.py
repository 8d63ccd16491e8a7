"""How a dataclass declares options: a field has its default, its help, how argparse reads it, and where it applies."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

type CommandName = Literal["plan", "bench"]
type Mode = Literal["--capacity", "--bisect", "--render-only"]


@dataclass(frozen=True, kw_only=True)
class Declared:
    """How an option is typed and read, and where it applies."""

    flag: str | None  # None: the name of its field
    only: CommandName | None  # None: of every command that has its group
    unused: tuple[Mode, ...]  # what it has no effect with, so that it is refused
    settings: dict[str, Any]  # of argparse


def option(
    help_text: str,
    *,
    default: object = None,
    flag: str | None = None,
    only: CommandName | None = None,
    unused: tuple[Mode, ...] = (),
    **settings: Any,
) -> Any:
    """A field of a group that is an option."""
    declared = Declared(flag=flag, only=only, unused=unused, settings={"help": help_text, **settings})
    return field(default=default, metadata={"declared": declared})


def declared_in(group: type["DataclassInstance"]) -> Iterator[tuple[str, str, Declared]]:
    """Yield name, flag and declaration of each option of a group."""
    for declared_field in fields(group):
        declared: Declared | None = declared_field.metadata.get("declared")
        if declared is not None:
            yield declared_field.name, declared.flag or f"--{declared_field.name.replace('_', '-')}", declared


def add_options(
    parser: argparse.ArgumentParser, group: type["DataclassInstance"], *, only: CommandName | None = None
) -> None:
    """Add the options of a group that every command has; with ``only``, those that this command alone has."""
    for name, flag, declared in declared_in(group):
        if declared.only == only:
            parser.add_argument(flag, dest=name, default=None, **declared.settings)


def read[G: "DataclassInstance"](group: type[G], arguments: argparse.Namespace) -> G:
    """The options of a group, whose fields are named as the arguments; those that a command lacks are at defaults."""
    return group(**{own.name: _value(arguments, own.name, own.default) for own in fields(group)})


def given(group: type["DataclassInstance"], arguments: argparse.Namespace) -> tuple[str, ...]:
    """Names of the options of a group that the user gave."""
    return tuple(own.name for own in fields(group) if _value(arguments, own.name, own.default) != own.default)


def _value(arguments: argparse.Namespace, name: str, default: object) -> Any:
    value = getattr(arguments, name, None)
    if value is None:  # not given, and argparse need not know the default
        return default
    return tuple(value) if isinstance(value, list) else value

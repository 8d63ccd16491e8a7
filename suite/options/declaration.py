"""How a dataclass declares options: a field has its default, its help, how argparse reads it, and where it applies."""

import argparse
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

type CommandName = Literal["plan", "bench"]
type Mode = Literal["--capacity", "--bisect", "--render-only", "only_learning"]  # the last is of a matrix


@dataclass(frozen=True, kw_only=True)
class Declared:
    """How an option is typed and read, and where it applies."""

    flag: str
    only: CommandName | None  # None: of every command that has its group
    unused: tuple[Mode, ...]  # what it has no effect with, so that it is refused
    needs: str | None  # what it has no effect without; None: of a launcher's own option, that --launcher
    renders: tuple[str, ...]  # values of --render that use it, which its help begins with; (): it is none of --render
    settings: dict[str, Any]  # of argparse


def option(
    help_text: str,
    *,
    default: object = None,
    flag: str | None = None,
    only: CommandName | None = None,
    unused: tuple[Mode, ...] = (),
    needs: str | None = None,
    renders: tuple[str, ...] = (),
    **settings: Any,
) -> Any:
    """A field of a group that is an option."""
    if renders:
        help_text = f"with --render{f' {renders[0]}' if len(renders) == 1 else ''}: {help_text}"
    declared = Declared(
        flag=flag or "",
        only=only,
        unused=unused,
        needs=needs,
        renders=renders,
        settings={"help": help_text, **settings},
    )
    return field(default=default, metadata={"declared": declared})


def declared_in(group: type["DataclassInstance"]) -> dict[str, Declared]:
    """The declarations of a group's options by their names; without another flag an option's name is its flag."""
    declared = {own.name: own.metadata["declared"] for own in fields(group) if own.metadata}
    return {name: replace(how, flag=how.flag or f"--{name.replace('_', '-')}") for name, how in declared.items()}


def add_options(
    parser: argparse.ArgumentParser, group: type["DataclassInstance"], *, only: CommandName | None = None
) -> None:
    """Add the options of a group that every command has; with ``only``, those that this command alone has."""
    for name, declared in declared_in(group).items():
        if declared.only == only:
            parser.add_argument(declared.flag, dest=name, default=None, **declared.settings)


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

"""The names of stored fields: those that pages use, where the code has another. Pure."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

NAMES: Final[Mapping[str, str]] = {
    "case": "configuration",
    "case_id": "configuration_id",
    "environment": "machine",
    "round": "run",
    "rounds": "runs",
    "seed_per_round": "seed_per_run",
}


def stored_name(field: str) -> str:
    return NAMES.get(field, field)


def plain(value: Any) -> Any:
    """Convert dataclasses and mappings to dicts and sequences to lists; keep everything else."""
    if is_dataclass(value):
        return {stored_name(item.name): plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value

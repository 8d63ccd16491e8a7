"""Sets the overrides of a case by value on the fields of the task's and the agent's settings."""

import ast
from collections.abc import Sequence
from dataclasses import MISSING, is_dataclass
from typing import Any, Final

_LITERALS: Final = {"true": True, "false": False, "none": None, "null": None}
_VALUES: Final = (bool, int, float, str, list, tuple)


def apply(overrides: Sequence[str], *, env_cfg: Any, agent_cfg: Any) -> None:
    """Set each override.

    Raises:
        ValueError: there is no such field, or its value is of another kind.
    """
    for override in overrides:
        key, _, text = override.partition("=")
        section, *path, name = key.split(".")
        holder = {"env": env_cfg, "agent": agent_cfg}[section]
        for part in path:
            holder = _field(holder, part, override)
        value = _value(text)
        if isinstance(holder, dict):  # from YAML: it may lack what its library has a default for
            _require_fitting(value, holder.get(name), override, is_free=True)
            holder[name] = value
        else:
            _require_fitting(value, _field(holder, name, override), override, is_free=False)
            setattr(holder, name, value)


def _field(holder: Any, name: str, override: str) -> Any:
    values = vars(holder) if is_dataclass(holder) else holder if isinstance(holder, dict) else {}
    if name not in values:
        known = ", ".join(values) or "none"
        raise ValueError(f"override {override!r}: there is no field {name!r}; there are {known}")
    return values[name]


def _value(text: str) -> Any:
    if text.lower() in _LITERALS:
        return _LITERALS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _require_fitting(value: Any, found: Any, override: str, *, is_free: bool) -> None:
    """Refuse to replace a group of settings or code, and in typed settings a value of another type."""
    if value is None or found is None or found is MISSING:
        return
    kinds = {list: tuple, int: float} if type(found) in (tuple, float) else {}
    is_same = is_free or kinds.get(type(value), type(value)) is type(found)
    if callable(found) or not isinstance(found, _VALUES) or not is_same:
        raise ValueError(f"override {override!r}: the field is of the type {type(found).__name__}")

"""Sets the overrides of a configuration, and checks that the agent will train as the configuration states.

A case takes the length of a rollout, its minibatches and its learning epochs from the catalog unless the matrix sets
them, and they determine the frames per second. A worker that the user brought may have other defaults. Imports no
torch.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, is_dataclass
from typing import Any, Final

from suite.schema.record import Case, RlLibrary

_LITERALS: Final = {"true": "True", "false": "False", "none": "None", "null": "None"}
_VALUES: Final = (bool, int, float, str, list, tuple)


@dataclass(frozen=True, kw_only=True)
class Names:
    """Dotted names of a library's settings."""

    num_steps: str
    epochs: str
    minibatch: str
    is_size: bool = False  # ``minibatch`` is a size in samples; otherwise the number of minibatches in an epoch
    not_run: tuple[str, ...] = ()  # settings that would change the environment or the number of optimiser steps
    networks: str
    mixed_precision: str = "mixed_precision"  # sb3 and torchrl have no such setting, nor the next
    torch_compile: str = "torch_compile"
    compiles_by_default: bool | None = None


_SKRL: Final = Names(
    num_steps="agent.rollouts",
    epochs="agent.learning_epochs",
    minibatch="agent.mini_batches",
    networks="models.policy.network",
    mixed_precision="agent.mixed_precision",
    torch_compile="models.policy.compile",
)
NAMES: Final[Mapping[RlLibrary, Names]] = {
    "rl_games": Names(
        num_steps="params.config.horizon_length",
        epochs="params.config.mini_epochs",
        minibatch="params.config.minibatch_size",
        is_size=True,
        networks="params.network.mlp.units",
        mixed_precision="params.config.mixed_precision",
        torch_compile="params.config.torch_compile",
        compiles_by_default=True,
    ),
    "rsl_rl": Names(
        num_steps="num_steps_per_env",
        epochs="algorithm.num_learning_epochs",
        minibatch="algorithm.num_mini_batches",
        networks="actor.hidden_dims",
        mixed_precision="algorithm.use_mixed_precision",
        torch_compile="torch_compile_mode",
    ),
    "skrl": _SKRL,
    "skrl_jax": _SKRL,
    "sb3": Names(
        num_steps="n_steps",
        epochs="n_epochs",
        minibatch="batch_size",
        is_size=True,
        not_run=("normalize_input", "normalize_value", "target_kl"),
        networks="policy_kwargs.net_arch",
    ),
    "torchrl": Names(
        num_steps="num_steps_per_env",
        epochs="num_learning_epochs",
        minibatch="num_mini_batches",
        networks="actor_hidden_dims",
    ),
}


def apply_overrides(overrides: Sequence[str], *, env_cfg: Any, agent_cfg: Any) -> None:
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
        raise ValueError(f"override {override!r}: there is no field {name!r}; there are {', '.join(values) or 'none'}")
    return values[name]


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(_LITERALS.get(text.lower(), text))
    except (ValueError, SyntaxError):
        return text


def _require_fitting(value: Any, present: Any, override: str, *, is_free: bool) -> None:
    """Refuse to replace a group of settings or code, and in typed settings a value of another type."""
    if value is None or present is None or present is MISSING:
        return
    kinds = {list: tuple, int: float} if type(present) in (tuple, float) else {}
    is_same = is_free or kinds.get(type(value), type(value)) is type(present)
    if callable(present) or not isinstance(present, _VALUES) or not is_same:
        raise ValueError(f"override {override!r}: the field is of the type {type(present).__name__}")


# ---- agent ----


def check_agent(case: Case, settings: Mapping[str, Any]) -> None:
    """Raise ValueError if the library would not train as the case states. A control trains nothing."""
    if (case.learns or case.is_pipeline) and (differences := list(contradictions(case, settings))):
        raise ValueError(
            f"{case.rl_library} would not train what the configuration says: {'; '.join(differences)}. The catalog "
            "describes Isaac Lab 3.0.0: use the worker with its pins, or set these in the matrix."
        )


def contradictions(case: Case, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences between the case and the settings of its library."""
    names, batch = NAMES[case.rl_library], case.num_envs * case.num_steps_per_env
    for name in names.not_run:
        if value := look_up(settings, name):
            yield f"agent.{name} is {value}, which labscale does not run with {case.rl_library}"
    num_steps, epochs = (look_up(settings, name) for name in (names.num_steps, names.epochs))
    cut = look_up(settings, names.minibatch)
    if not all(isinstance(value, int) and value > 0 for value in (num_steps, epochs, cut)):
        yield f"agent.{names.num_steps}, agent.{names.epochs} and agent.{names.minibatch} are {num_steps, epochs, cut}"
        return
    size, count = (cut, batch // cut) if names.is_size else (batch // cut, cut)
    compared = {
        f"agent.{names.num_steps}": (num_steps, case.num_steps_per_env),
        f"the minibatch by agent.{names.minibatch}": (size, case.minibatch_size),
        f"the number of optimiser steps by agent.{names.epochs}": (count * epochs, case.optimiser_steps),
    }
    yield from (
        f"{what} is {got}, the configuration has {stated}" for what, (got, stated) in compared.items() if got != stated
    )


def look_up(settings: Mapping[str, Any], path: str, default: Any = None) -> Any:
    value: Any = settings
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return default
        value = value[key]
    return value


def upstreams_name(library: RlLibrary) -> str:
    """Name under which agents are registered and bundles written; skrl with torch and with JAX have one."""
    return "skrl" if library == "skrl_jax" else library

"""Whether an agent will train as its case states: length of a rollout, its minibatches, and learning epochs.

A case takes these from the catalog unless the matrix sets them, and they determine the frames per second. A worker that
the user brought may have other defaults. Imports no torch.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from suite.schema.record import Case, RlLibrary


@dataclass(frozen=True, kw_only=True)
class Names:
    """Dotted names of a library's settings."""

    num_steps: str
    epochs: str
    minibatch: str
    is_size: bool = False  # ``minibatch`` is a size in samples; otherwise the number of minibatches in an epoch
    not_run: tuple[str, ...] = ()  # settings that would change the environment or the number of optimiser steps


_SKRL: Final = Names(num_steps="agent.rollouts", epochs="agent.learning_epochs", minibatch="agent.mini_batches")
NAMES: Final[Mapping[RlLibrary, Names]] = {
    "rl_games": Names(
        num_steps="params.config.horizon_length",
        epochs="params.config.mini_epochs",
        minibatch="params.config.minibatch_size",
        is_size=True,
    ),
    "rsl_rl": Names(
        num_steps="num_steps_per_env",
        epochs="algorithm.num_learning_epochs",
        minibatch="algorithm.num_mini_batches",
    ),
    "skrl": _SKRL,
    "skrl_jax": _SKRL,
    "sb3": Names(
        num_steps="n_steps",
        epochs="n_epochs",
        minibatch="batch_size",
        is_size=True,
        not_run=("normalize_input", "normalize_value", "target_kl"),
    ),
    "torchrl": Names(num_steps="num_steps_per_env", epochs="num_learning_epochs", minibatch="num_mini_batches"),
}


def check(case: Case, settings: Mapping[str, Any]) -> None:
    """Raise ValueError if the library would not train as the case states. A control trains nothing."""
    if (case.learns or case.is_pipeline) and (found := list(contradictions(case, settings))):
        raise ValueError(
            f"{case.rl_library} would not train what the case says: {'; '.join(found)}. The catalog describes "
            "Isaac Lab 3.0.0: use the worker with its pins, or set these in the matrix."
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
    yield from (f"{what} is {got}, and the case has {said}" for what, (got, said) in compared.items() if got != said)


def look_up(settings: Mapping[str, Any], path: str, default: Any = None) -> Any:
    found: Any = settings
    for key in path.split("."):
        if not isinstance(found, Mapping) or key not in found:
            return default
        found = found[key]
    return found

"""Trains with TorchRL 0.14 under labscale's clock: the PPO loop of Isaac Lab's own backend, which runs unchanged.

The loop makes its collector, its critic and its log itself, by names of its own module. These are replaced while it
runs: the collector times its rollouts, and the log gives its two durations. An environment step is Isaac Lab's wrapper;
what TorchRL does around it for every step lies in the rest of the rollout.
"""

import importlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch

from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation, success_mean, use_deterministic_torch
from tasks.rank.timing import IterationTimer

AGENT_ENTRY_POINT = "torchrl_cfg_entry_point"
LAST_EPISODES: Final = 100  # that means are over, as in rsl_rl
COLUMNS: Final = (  # of an iteration, besides those of the timer
    "reward_mean", "episode_length_mean", "success_mean", "torchrl.collection_time_s", "torchrl.learning_time_s",
    "torchrl.total_fps",
)  # fmt: skip
LAST_LOGGED: Final = "Perf/total_fps"  # of the figures that an iteration is written with


def configure(context: RankContext, simulation: Simulation) -> dict[str, Any]:
    """Write the case's values into the agent's settings and return these as the library will read them."""
    from isaaclab.utils import to_dict

    agent_cfg = simulation.agent_cfg
    agent_cfg.seed = context.seed
    agent_cfg.device = str(context.device)
    agent_cfg.max_iterations = context.case.iterations
    settings: dict[str, Any] = to_dict(agent_cfg)
    return settings


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Train the case's iterations and return the trained modules."""
    env = environment(context, simulation, clip_actions=settings["clip_actions"])
    use_deterministic_torch(context)
    collector = _timed_collector(context.timer, context.case.iterations)
    return by_isaac_labs_loop(context, simulation, env, collector)


def by_isaac_labs_loop(
    context: RankContext,
    simulation: Simulation,
    env: Any,
    collector: Callable[..., Any],
    *,
    more: Callable[[], Mapping[str, float | None]] = dict,
) -> torch.nn.ModuleList:
    """Train by the loop with this collector, which has its last rollout in ``batch``. Return actor and critic.

    ``more`` gives further columns of the iteration that ended.
    """
    ppo = importlib.import_module("isaaclab_rl.torchrl.ppo")
    collectors, critics = _Kept(collector), _Kept(ppo.make_critic)
    log = _writing_log(env, collectors, context.timer, more)
    with replaced(ppo, make_critic=critics, Collector=collectors, SummaryWriter=log):
        actor = ppo.train_ppo(env, simulation.agent_cfg, context.library_dir)
    return torch.nn.ModuleList([actor, critics.made])


def environment(context: RankContext, simulation: Simulation, *, clip_actions: float | None) -> Any:
    """Return the environment in Isaac Lab's wrapper for TorchRL, with its steps timed.

    It stays open: a collector closes it with its last rollout, before the checks of a run look at it.
    """
    from isaaclab_rl.torchrl import IsaacLabTorchRLWrapper

    class OpenWrapper(IsaacLabTorchRLWrapper):  # type: ignore[misc]  # the base is untyped
        def close(self, *, raise_if_closed: bool = True) -> None:
            """Do nothing: the simulation closes the environment."""

    env = OpenWrapper(simulation.env, clip_actions=clip_actions)
    env._step = context.timer.environment_step.wrap(env._step)  # noqa: SLF001  TorchRL's name for what a wrapper does
    return env


def collector_options(context: RankContext) -> dict[str, Any]:
    """Return the arguments that Isaac Lab's loop gives its collector, for those that collect without the loop."""
    case = context.case
    return {
        "frames_per_batch": case.frames_per_iteration,
        "total_frames": case.frames_per_iteration * case.iterations,
        "device": context.device,
        "split_trajs": False,
        "no_cuda_sync": context.device.type == "cuda",
    }


class Episodes:
    """Returns and lengths of the last finished episodes. Isaac Lab's loop logs the mean reward of a step only."""

    def __init__(self, num_envs: int, device: torch.device) -> None:
        self._running = torch.zeros(2, num_envs, device=device)
        self._finished: deque[tuple[float, float]] = deque(maxlen=LAST_EPISODES)

    def add(self, reward: torch.Tensor, done: torch.Tensor) -> None:
        """Add a rollout; both have the shape (num_envs, steps)."""
        after = []
        for step in range(reward.shape[1]):
            self._running += torch.stack([reward[:, step], torch.ones_like(reward[:, step])])
            after.append(self._running)
            self._running = self._running * ~done[:, step]
        ended = torch.stack(after, dim=1)[:, done.T]  # shape (2, episodes), the oldest first
        self._finished.extend(zip(*ended[:, -LAST_EPISODES:].tolist(), strict=True))

    def means(self) -> tuple[float | None, float | None]:
        """Return the mean return and the mean length [steps]; None before the first episode ends."""
        if not self._finished:
            return None, None
        returns, lengths = zip(*self._finished, strict=True)
        return sum(returns) / len(returns), sum(lengths) / len(lengths)


@contextmanager
def replaced(module: Any, **objects: Any) -> Iterator[None]:
    """Replace objects of a module by name, and put them back at the end."""
    before = {name: getattr(module, name) for name in objects}
    vars(module).update(objects)
    try:
        yield
    finally:
        vars(module).update(before)


class _Kept:
    """Calls what it is made with, and keeps the one object that this made."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self.made: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.made = self._make(*args, **kwargs)
        return self.made


def _timed_collector(timer: IterationTimer, iterations: int) -> type:
    """Return the collector that Isaac Lab's loop is to make."""
    from torchrl.collectors import Collector

    class TimedCollector(Collector):  # type: ignore[misc]  # the base is untyped
        """Times a rollout and the update after it, which ends with the new weights."""

        _wrapped_policy: Any  # TorchRL's own name for the policy as a rollout calls it

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._wrapped_policy = timer.inference.wrap(self._wrapped_policy)
            self.batch: Any = None

        def iterator(self) -> Iterator[Any]:
            batches = super().iterator()
            for _ in range(iterations):
                timer.begin()
                self.batch = next(batches)
                timer.end_collection()
                yield self.batch

        def update_policy_weights_(self, *args: Any, **kwargs: Any) -> None:
            super().update_policy_weights_(*args, **kwargs)
            timer.end()

    return TimedCollector


def _writing_log(
    env: Any, collectors: _Kept, timer: IterationTimer, more: Callable[[], Mapping[str, float | None]]
) -> type:
    """Return the log that Isaac Lab's loop is to make."""
    from torch.utils.tensorboard import SummaryWriter

    episodes = Episodes(env.batch_size[0], env.device)
    logged: dict[str, float] = {}

    class WritingLog(SummaryWriter):  # type: ignore[misc]  # the base is untyped
        """Writes the iteration as soon as its durations are logged."""

        def add_scalar(self, tag: str, scalar_value: float, *args: Any, **kwargs: Any) -> None:
            super().add_scalar(tag, scalar_value, *args, **kwargs)
            logged[tag] = float(scalar_value)
            if tag == LAST_LOGGED:
                ended = collectors.made.batch["next"]
                episodes.add(ended["reward"].squeeze(-1), ended["done"].squeeze(-1))
                times = (logged[tag] for tag in ("Perf/collection_time", "Perf/learning_time", LAST_LOGGED))
                values = (*episodes.means(), success_mean(env), *times)
                timer.write({**dict(zip(COLUMNS, values, strict=True)), **more()})

    return WritingLog

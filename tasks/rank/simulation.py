"""Creates the environment of a case on this rank through Isaac Lab's public API, as its own training does.

A deterministic case sets all that ``isaaclab train --deterministic`` sets, in the same order: the physics and Warp
before the environment is made, and torch with cuBLAS and cuDNN once the library's runner is made. JAX is asked for
nothing, there as here. Upstream's own benchmark passes the same flag on, but sets nothing of torch (Isaac Lab 3.0.0).
"""

import argparse
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import torch

from suite.schema.record import Case
from tasks.assets import missing_asset_named
from tasks.checks.physics import Overflow, watch_overflow
from tasks.film.filming import serve_if_asked
from tasks.rank.configuration import apply_overrides
from tasks.rank.context import RankContext, Ranks
from tasks.rank.timing import IterationTimer

SUCCESS_RATE: Final = "Metrics/success_rate"  # in the log of every task of Isaac Lab that has a metric of success


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """A running Isaac Lab environment with its configuration.

    ``env`` is the Gymnasium environment, not yet wrapped for a library; ``env_cfg`` and ``agent_cfg`` are Isaac Lab's
    own objects after presets and overrides. ``overflow`` is None without MuJoCo Warp.
    """

    env: Any
    env_cfg: Any
    agent_cfg: Any
    overflow: Overflow | None = None


def register_all() -> None:
    """Register the tasks of Isaac Lab and of installed extensions, as Isaac Lab's own command does."""
    import isaaclab_tasks  # noqa: F401  (registers the tasks)
    from isaaclab.cli import load_external_tasks

    load_external_tasks()


def _launcher_args(case: Case, ranks: Ranks) -> argparse.Namespace:
    """Make Isaac Lab's launcher arguments; leave presets in ``sys.argv``, where it reads them."""
    from isaaclab.app import add_launcher_args
    from isaaclab_tasks.utils import setup_preset_cli

    parser = argparse.ArgumentParser()
    add_launcher_args(parser)
    device = "cuda:0" if case.device == "cuda" else "cpu"
    args: argparse.Namespace
    args, remaining = setup_preset_cli(parser, ["--device", device, *case.presets])
    # With this set, Isaac Lab places each rank on its own GPU. It supports no ranks on a CPU.
    args.distributed = ranks.is_distributed and case.device == "cuda" and case.processes_per_gpu == 1
    args.deterministic = case.deterministic  # Kit reads it for its renderer
    sys.argv = [sys.argv[0], *remaining]
    return args


@contextmanager
def simulation(context: RankContext, *, agent_entry_point: str) -> Iterator[Simulation]:
    """Resolve the task, launch the simulation and create the environment; close both at the end.

    Torch's backend flags are those of upstream's training benchmark, equal for all libraries, so that libraries differ
    by their own work only. As in upstream, Isaac Lab's seeding switches cudnn.benchmark on again while it creates the
    environment; a rank's settings record the final values. Ranks differ by ``seed + rank``.
    """
    case, ranks, log = context.case, context.ranks, context.log
    with log.phase("imports"):
        import warp

        warp.config.enable_backward = False  # as upstream does, before any kernel is defined: less to compile
        context.compilation.watch(warp.Module)  # before any is loaded
        import gymnasium as gym
        from isaaclab.app import launch_simulation
        from isaaclab_rl.entrypoints.common import request_determinism, scoped_torch_backend_flags
        from isaaclab_tasks.utils import resolve_task_config

        register_all()

    with log.phase("task_config"):
        args = _launcher_args(case, ranks)
        env_cfg, agent_cfg = resolve_task_config(case.task, agent_entry_point)
        apply_overrides(case.overrides, env_cfg=env_cfg, agent_cfg=agent_cfg)
    env_cfg.scene.num_envs = case.num_envs
    env_cfg.seed = context.seed
    env_cfg.sim.device = str(context.device)
    env_cfg.log_dir = context.library_dir
    serve_if_asked(env_cfg, rank=ranks.rank)
    if case.rl_library == "torchrl":
        env_cfg.compute_final_obs = True  # as Isaac Lab's backend does, which has no other observation before a reset
    # Upstream's Shadow Hand makes it where it is missing; ranks that do so at the same moment would fail.
    Path(context.library_dir).mkdir(parents=True, exist_ok=True)
    flags = scoped_torch_backend_flags(
        cuda_matmul_allow_tf32=True, cudnn_allow_tf32=True, cudnn_deterministic=False, cudnn_benchmark=False
    )
    with ExitStack() as cleanup:
        with log.phase("simulation_launch"):
            cleanup.enter_context(launch_simulation(env_cfg, args))
        request_determinism(args, env_cfg)  # does so if ``args.deterministic``
        cleanup.enter_context(flags)
        with log.phase("environment_creation"), missing_asset_named(case, os.environ.get("ISAACSIM_ASSET_ROOT")):
            env = gym.make(case.task, cfg=env_cfg)
        cleanup.callback(env.close)
        cleanup.enter_context(_timed(env.unwrapped.sim, context.timer))
        overflow = watch_overflow(env.unwrapped.sim, context.timer)
        env.unwrapped._reset_idx = Successes(env.unwrapped)  # noqa: SLF001
        yield Simulation(env=env, env_cfg=env_cfg, agent_cfg=agent_cfg, overflow=overflow)


def use_deterministic_torch(context: RankContext) -> None:
    """Seed again and let torch use deterministic algorithms only, if the case asks for it.

    Upstream does so after it made the library's runner, whose creation would otherwise set cuDNN back. From then on an
    operation without a deterministic algorithm raises RuntimeError.
    """
    if context.case.deterministic:
        from isaaclab.utils.seed import configure_seed

        configure_seed(context.seed, torch_deterministic=True)


@contextmanager
def _timed(sim: Any, timer: IterationTimer) -> Iterator[None]:
    """Time the parts of an environment step: physics, and rendering with the transfer of the scene's state to it.

    Isaac Lab renders when a camera's data is read, in ``RenderContext.render_into_cameras``; with Kit, the app loop
    renders too, in ``SimulationContext.render``.
    """
    rendering = type(sim.render_context)  # it has slots, so the method is replaced on the class
    render_into_cameras = rendering.render_into_cameras
    sim.step = timer.simulate.wrap(sim.step)
    sim.render = timer.render.wrap(sim.render)
    rendering.render_into_cameras = timer.render.wrap(render_into_cameras)
    try:
        yield
    finally:
        rendering.render_into_cameras = render_into_cameras
        del sim.step, sim.render


class Successes:
    """Resets environments as Isaac Lab does, and keeps how often the task says that the episodes so ended succeeded.

    The task logs the mean over the episodes that a single step ended: of one environment, late in a training. Episodes
    that began together succeed together and fail one by one, so those that an iteration ends may be failures alone.
    """

    def __init__(self, env: Any) -> None:
        self._env, self._reset_idx = env, env._reset_idx  # noqa: SLF001  called where an episode ended, and at first
        self._ended: list[tuple[torch.Tensor, int]] = []  # mean and number, of steps since ``mean``; read from no GPU
        self._known: list[tuple[float, int]] = []  # of steps before, the last of them

    def __call__(self, *env_ids: Any, **as_mask: Any) -> None:
        self._reset_idx(*env_ids, **as_mask)
        rate = self._env.extras.get("log", {}).get(SUCCESS_RATE)
        if rate is None or not env_ids or not self._env.common_step_counter:  # before the first step none ended
            return  # by a mask, as in isaaclab_experimental, nobody knows how many ended without waiting for the GPU
        number = len(env_ids[0]) if isinstance(env_ids[0], torch.Tensor) else self._env.num_envs
        self._ended.append((torch.as_tensor(rate), number))

    def mean(self) -> float | None:
        """The mean over the last episodes, as many as there are environments or more; None, not 0, before any ended."""
        if self._ended:
            rates, numbers = zip(*self._ended, strict=True)
            known = [*self._known, *zip(torch.stack(rates).tolist(), numbers, strict=True)]
            totals = accumulate(number for _, number in reversed(known))
            needed = 1 + sum(total < self._env.num_envs for total in totals)
            self._ended, self._known = [], known[-needed:]
        return statistics.fmean(*zip(*self._known, strict=True)) if self._known else None


def success_mean(env: Any) -> float | None:
    """The task's own success rate, mean over the last episodes; None before any ended."""
    successes: Successes = env.unwrapped._reset_idx  # noqa: SLF001  as ``simulation`` replaced it
    return successes.mean()

"""The process of Ray in the control ``collection_ray``: a simulation of its own, and TorchRL's collector in it."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Final

import torch
from torchrl.collectors import Collector

from tasks.checks import gpu, validity, workload
from tasks.libraries import train_rsl_rl
from tasks.libraries.collect_torchrl import FOLDER, drawn_policy
from tasks.libraries.train_torchrl import environment
from tasks.rank.context import RankContext
from tasks.rank.kernel_cache import WarpCompilation
from tasks.rank.rank_log import RankLog
from tasks.rank.simulation import simulation, use_deterministic_torch
from tasks.rank.timing import IterationTimer

HOST: Final = torch.device("cpu")


class CollectorInRay(Collector):  # type: ignore[misc]  # the base is untyped
    """Collects as the control ``collection`` does, by the same timer. Rollouts leave it in host memory."""

    def __init__(self, rank: tuple[Mapping[str, Any], int], *, policy_factory: None = None, **options: Any) -> None:
        """Create the simulation. ``options`` are TorchRL's, whose place for a policy has none: this draws actions.

        ``rank``: the fields of a context that both processes have, and torch's threads. A log and a timer are its own.
        """
        del policy_factory
        shared, num_threads = rank
        log = RankLog(shared["run_dir"] / FOLDER, shared["ranks"].rank)
        timer = IterationTimer(log, shared["device"])
        self._context = context = RankContext(**shared, log=log, timer=timer, compilation=WarpCompilation())
        os.chdir(context.run_dir)
        torch.set_num_threads(num_threads)
        if context.device.type == "cuda":
            torch.cuda.set_device(context.device)
        self._open = ExitStack()
        self._running = running = self._open.enter_context(
            simulation(context, agent_entry_point=train_rsl_rl.AGENT_ENTRY_POINT)
        )
        self._settings = train_rsl_rl.configure(context, running)
        env = environment(context, running, clip_actions=self._settings["clip_actions"])
        use_deterministic_torch(context)
        super().__init__(env, drawn_policy(context, env), **options)

    def fingerprint(self) -> dict[str, Any]:
        """Return what this process simulates, as a rank describes it."""
        return workload.describe(self._context, self._running, self._settings)

    def next(self) -> Any:
        """Collect a rollout, and copy it to host memory, from which Ray carries it."""
        timer = self._context.timer
        timer.begin()
        rollout = super().next()
        timer.end_collection()
        timer.end()
        timer.iterations += 1
        return rollout.to(HOST)

    def times(self) -> dict[str, float | None]:
        """Return what this process timed of its last rollout [s]."""
        last = self._context.timer.samples[-1]
        sections = ("environment_step_time_s", "simulate_time_s", "render_time_s")
        return {"control.collected_time_s": last["iteration_time_s"], **{name: last[name] for name in sections}}

    def end(self) -> list[dict[str, Any]]:
        """Check the work as a rank does after training, and close the simulation. Return the results as objects."""
        checks = gpu.look(self._context, self._running) + validity.check(self._running)
        self._open.close()
        return [asdict(check) for check in checks]

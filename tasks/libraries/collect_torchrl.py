"""The controls ``collection`` and ``collection_ray``: TorchRL's collector alone, in this process or in one of Ray.

It steps the environments and keeps what they return. Ray's process carries every rollout to this one, as in a training
whose collectors are elsewhere; all else is as in ``collection``. This rank asks for a rollout, waits, and has it on its
own device. Its own simulation stands still: it takes memory, and gives the fingerprint that the other process must have
too.
"""

import importlib
import itertools
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import torch

from suite.schema.record import CheckResult
from tasks.checks import workload
from tasks.libraries.train_torchrl import collector_options, environment, replaced
from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation

FOLDER: Final = "ray"  # in the folder of a run
SESSION: Final = "session"  # in that, for the files of Ray itself; gone when Ray is
LOOPBACK: Final = "127.0.0.1"  # Ray would take another address of this machine, and listen on all of them
# Without it, Ray would leave a token in ~/.ray, and clusters that start later would ask for that.
TOKEN: Final = "RAY_AUTH_TOKEN"  # noqa: S105  the name of a variable
SHARED: Final = ("case", "round_index", "training", "ranks", "device", "run_dir")  # fields of both processes' contexts
VARIABLES: Final = {  # that Ray's processes read
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # it would give way to all else at 15, and a collector in the rank does not
}


def collect(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> None:
    """Collect rollouts with drawn actions.

    The collector has the arguments of Isaac Lab's loop. What it takes longer than steps alone is its own work, with the
    observations before a reset that TorchRL's backend asks for.
    """
    from torchrl.collectors import Collector

    case, timer = context.case, context.timer
    env = environment(context, simulation, clip_actions=settings["clip_actions"])
    collector = Collector(env, drawn_policy(context, env), trust_policy=True, **collector_options(context))
    batches = iter(collector)
    for _ in range(case.iterations):
        timer.begin()
        next(batches)
        timer.end_collection()
        timer.end()
        timer.write({})
    collector.shutdown()


def drawn_policy(context: RankContext, env: Any) -> Callable[[Any], Any]:
    """Return a policy that looks up its next actions, shape (num_envs, num_actions), those of a rollout in turn.

    They are drawn uniformly from -1 to 1 before the clock starts, as for steps alone.
    """
    drawn = torch.rand((context.case.num_steps_per_env, *env.action_spec.shape), device=context.device) * 2 - 1
    actions = itertools.cycle(drawn)
    return lambda data: data.set("action", next(actions))


def collect_by_ray(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> None:
    """Collect the case's rollouts through Ray, each from the request until it is on this rank's device.

    Raises:
        RuntimeError: the process of Ray simulates something else than this rank.
    """
    case, timer = context.case, context.timer
    with _collector(context) as collector:
        (there,) = collector.map_fn("fingerprint")
        here = workload.describe(context, simulation, settings)
        if differing := sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name)):
            raise RuntimeError(f"Ray's process simulates something else than this one: {', '.join(differing)} differ")
        batches = iter(collector)
        for _ in range(case.iterations):
            timer.begin()
            next(batches).to(context.device)
            timer.end_collection()
            timer.end()
            (times,) = collector.map_fn("times")
            timer.write(times)
        (checks,) = collector.map_fn("end")
    results = (CheckResult(**check) for check in checks)
    context.checks.extend(replace(check, name=f"{check.name}, in Ray's process") for check in results)


@contextmanager
def _collector(context: RankContext) -> Iterator[Any]:
    """Start Ray on this machine alone, with one process that simulates; end both."""
    os.environ |= {**VARIABLES, TOKEN: secrets.token_hex(32)}  # Ray reads them when it is imported

    from torchrl.collectors import Collector

    from tasks.libraries.collector_in_ray import CollectorInRay

    rank = {name: getattr(context, name) for name in SHARED}, torch.get_num_threads()
    services = importlib.import_module("ray._private.services")
    folder = context.run_dir / FOLDER / SESSION
    folder.mkdir(parents=True)
    # The only process has all of this Ray. TorchRL's own default is a fifth of a GPU, so others could share it.
    share = {"num_cpus": 1, "num_gpus": int(context.device.type == "cuda")}
    init = {
        "address": "local",
        "include_dashboard": False,
        "logging_level": "error",
        "_node_ip_address": LOOPBACK,
        # A short name for ``folder``, since this process works in the run's: a socket's path has at most 107 bytes.
        "_temp_dir": f"/proc/{os.getpid()}/cwd/{FOLDER}/{SESSION}",
        **share,
    }
    try:
        with replaced(services, get_node_ip_address=lambda *_: LOOPBACK):
            collector = Collector(
                [rank],
                backend="ray",
                backend_options={
                    "ray_init_config": init,
                    "remote_configs": share,
                    "collector_class": CollectorInRay,
                    "weight_sync_schemes": {},  # nothing learns
                },
                trust_policy=True,
                **collector_options(context),
            )
        try:
            yield collector
        finally:
            collector.shutdown(shutdown_ray=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)

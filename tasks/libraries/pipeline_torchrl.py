"""The workload ``async_pipeline``: one process simulates while another one learns, with TorchRL.

Rank 0 learns by the loop of Isaac Lab's own backend, whose collector is replaced by one that receives rollouts. Rank 1
simulates with TorchRL's collector. It sends every rollout and takes the weights that rank 0 has then, so it collects
the next rollout while rank 0 learns from the last one. No rollout is left out and none is used twice: the work is that
of training in turn (``train_torchrl``), but for the age of the weights that actions are chosen with.
"""

import importlib
import time
from collections.abc import Iterator
from typing import Any, Final

import torch

from tasks.libraries import train_torchrl
from tasks.libraries.rollout_link import LEARNER, RolloutLink
from tasks.rank import determinism
from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation, success_rate

AGENT_ENTRY_POINT = train_torchrl.AGENT_ENTRY_POINT
configure = train_torchrl.configure
# Of a rollout that rank 0 learned from; rank 1 writes None. Ranks of a record have the same columns.
COLUMNS: Final = (
    "pipeline.staleness_updates",  # updates since the weights that it was collected with
    "pipeline.batches_since_sync",  # rollouts collected with these weights, this one included
    "pipeline.collected_time_s",  # that its collection took
    "pipeline.overlapped_time_s",  # part of this time in which rank 0 learned
)


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Simulate or learn the case's iterations; both ranks return the trained modules."""
    env = train_torchrl.environment(context, simulation, clip_actions=settings["clip_actions"])
    determinism.of_torch(context)
    run = learn if context.ranks.rank == LEARNER else simulate
    return run(context, simulation, env, RolloutLink(context.device, context.ranks.rank))


def simulate(context: RankContext, simulation: Simulation, env: Any, link: RolloutLink) -> torch.nn.Module:
    """Collect every rollout with the newest weights that there are, with the collector of Isaac Lab's loop."""
    from torchrl.collectors import Collector

    case, timer, device = context.case, context.timer, context.device
    ppo = importlib.import_module("isaaclab_rl.torchrl.ppo")
    actor, critic = (make(env, simulation.agent_cfg).to(device).eval() for make in (ppo.make_actor, ppo.make_critic))
    collector = Collector(
        env,
        actor,
        frames_per_batch=case.frames_per_iteration,
        total_frames=case.frames_per_iteration * case.iterations,
        device=device,
        split_trajs=False,
        auto_register_policy_transforms=True,
        no_cuda_sync=device.type == "cuda",
    )
    collector._wrapped_policy = timer.inference.wrap(collector._wrapped_policy)  # noqa: SLF001  as train_torchrl
    version = link.receive_weights(actor)
    batches = iter(collector)
    for _ in range(case.iterations):
        timer.begin()
        begun_ns = time.perf_counter_ns()
        batch = next(batches)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        timer.end_collection()
        link.send_rollout(batch, version=version, begun_ns=begun_ns, ended_ns=time.perf_counter_ns())
        version = link.receive_weights(actor)
        timer.end()
        timer.write({**dict.fromkeys((*train_torchrl.COLUMNS, *COLUMNS)), "success_rate": success_rate(env)})
    for module in (actor, critic):
        link.receive_weights(module)
    collector.shutdown()
    return torch.nn.ModuleList([actor, critic])


def learn(context: RankContext, simulation: Simulation, env: Any, link: RolloutLink) -> torch.nn.Module:
    """Learn from every rollout by Isaac Lab's own loop, and send the weights as soon as the next rollout is there."""
    timer, iterations = context.timer, context.case.iterations
    ages = Ages()

    class ReceivingCollector:
        """Yields what rank 1 collects; the loop's own arguments for a collector are those that rank 1 has."""

        def __init__(self, _env: Any, policy: Any, **_: Any) -> None:
            self.batch: Any = None
            self._policy = policy
            link.send_weights(policy, version=0)

        def __iter__(self) -> Iterator[Any]:
            for _ in range(iterations):
                timer.begin()
                self.batch, version, begun_ns, ended_ns = link.receive_rollout()
                link.send_weights(self._policy, version=ages.updates)
                ages.received(version, begun_ns, ended_ns)
                timer.end_collection()
                yield self.batch

        def update_policy_weights_(self) -> None:
            timer.end()
            ages.updated()

        def shutdown(self) -> None:
            """Do nothing: rank 1 has the collector."""

    model = train_torchrl.by_isaac_labs_loop(context, simulation, env, ReceivingCollector, more=ages.last)
    for module in model:
        link.send_weights(module, version=ages.updates)
    return model


class Ages:
    """How old the weights of rollouts are, and how much of their collection fell into learning."""

    def __init__(self) -> None:
        self.updates = 0
        self._version: int | None = None  # of the last rollout's weights
        self._batches = 0
        self._learned_ns = (0, 0)  # begin and end of the last update
        self._began_ns = 0
        self._last: dict[str, float | None] = {}

    def received(self, version: int, begun_ns: int, ended_ns: int) -> None:
        """Note a rollout with the number of updates in its weights; the next update begins."""
        self._batches = self._batches + 1 if version == self._version else 1
        self._version = version
        first_ns, last_ns = self._learned_ns
        overlap_ns = max(0, min(ended_ns, last_ns) - max(begun_ns, first_ns))
        values = (self.updates - version, self._batches, (ended_ns - begun_ns) / 1e9, overlap_ns / 1e9)
        self._last = dict(zip(COLUMNS, map(float, values), strict=True))
        self._began_ns = time.perf_counter_ns()

    def updated(self) -> None:
        """Note that the update has ended."""
        self.updates += 1
        self._learned_ns = self._began_ns, time.perf_counter_ns()

    def last(self) -> dict[str, float | None]:
        """Return the columns of the last rollout."""
        return self._last

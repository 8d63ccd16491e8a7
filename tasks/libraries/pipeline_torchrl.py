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
import torch.distributed as dist

from tasks.libraries import train_torchrl
from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation, success_mean, use_deterministic_torch

LEARNER: Final = 0  # rank; the other one simulates
HEADER: Final = 3  # whole numbers that go with a rollout
AGENT_ENTRY_POINT = train_torchrl.AGENT_ENTRY_POINT
configure = train_torchrl.configure
# Of a rollout that rank 0 learned from; rank 1 writes None. Ranks of a record have the same columns.
COLUMNS: Final = (
    "pipeline.staleness_updates",  # updates since the weights that it was collected with
    "pipeline.batches_since_sync",  # rollouts collected with these weights, this one included
    "pipeline.collected_time_s",  # that its collection took
    "pipeline.overlapped_time_s",  # part of this time in which rank 0 learned
)


class RolloutLink:
    """One end of the link that moves rollouts and weights, by the process group that joined the two ranks.

    Between two GPUs that is NCCL. Two processes of one GPU or of the CPU have gloo, which sends from host memory only,
    so data of a shared GPU goes through host memory. Both sides wait for each other in every call. Numbers of weights
    count the updates in them.
    """

    def __init__(self, device: torch.device, rank: int) -> None:
        self._device = device
        self._peer = 1 - rank
        self._sent_from = device if dist.get_backend() == "nccl" else torch.device("cpu")
        self._layout: Any = None  # of a rollout, the same for all

    def send_rollout(self, batch: Any, *, version: int, begun_ns: int, ended_ns: int) -> None:
        """Send a rollout with the number of its weights and when its collection began and ended."""
        if self._layout is None:
            pairs = batch.items(include_nested=True, leaves_only=True)
            leaves = {key: (tuple(leaf.shape), leaf.dtype) for key, leaf in pairs}
            self._layout = leaves, tuple(batch.batch_size), tuple(batch.names)
            dist.broadcast_object_list([self._layout], src=1 - self._peer, device=self._sent_from)
        self._send_numbers(version, begun_ns, ended_ns)
        batch.to(self._sent_from).contiguous().send(self._peer)

    def receive_rollout(self) -> tuple[Any, int, int, int]:
        """Return a rollout on this rank's device, and the three numbers that were sent with it."""
        from tensordict import TensorDict

        if self._layout is None:
            received = [None]
            dist.broadcast_object_list(received, src=self._peer, device=self._sent_from)
            (self._layout,) = received
        version, begun_ns, ended_ns = self._receive_numbers(HEADER)
        leaves, batch_size, names = self._layout
        device = self._sent_from
        tensors = {key: torch.empty(shape, dtype=dtype, device=device) for key, (shape, dtype) in leaves.items()}
        batch: Any = TensorDict(tensors, batch_size=batch_size, device=device, names=names)
        batch.recv(self._peer)
        return batch.to(self._device), version, begun_ns, ended_ns

    def send_weights(self, module: torch.nn.Module, *, version: int) -> None:
        self._send_numbers(version)
        for parameter in module.parameters():
            dist.send(parameter.detach().to(self._sent_from).contiguous(), self._peer)

    def receive_weights(self, module: torch.nn.Module) -> int:
        """Set the parameters of ``module``, and return the number of the weights."""
        (version,) = self._receive_numbers(1)
        with torch.no_grad():
            for parameter in module.parameters():
                sent = torch.empty_like(parameter, device=self._sent_from)
                dist.recv(sent, self._peer)
                parameter.copy_(sent)
        return version

    def _send_numbers(self, *numbers: int) -> None:
        dist.send(torch.tensor(numbers, dtype=torch.int64, device=self._sent_from), self._peer)

    def _receive_numbers(self, count: int) -> list[int]:
        numbers = torch.empty(count, dtype=torch.int64, device=self._sent_from)
        dist.recv(numbers, self._peer)
        values: list[int] = numbers.tolist()
        return values


def train(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Simulate or learn the case's iterations; both ranks return the trained modules."""
    env = train_torchrl.environment(context, simulation, clip_actions=settings["clip_actions"])
    use_deterministic_torch(context)
    run = learn if context.ranks.rank == LEARNER else simulate
    return run(context, simulation, env, RolloutLink(context.device, context.ranks.rank))


def simulate(context: RankContext, simulation: Simulation, env: Any, link: RolloutLink) -> torch.nn.Module:
    """Collect every rollout with the newest weights that there are, with the collector of Isaac Lab's loop."""
    from torchrl.collectors import Collector

    case, timer, device = context.case, context.timer, context.device
    ppo = importlib.import_module("isaaclab_rl.torchrl.ppo")
    actor, critic = (make(env, simulation.agent_cfg).to(device).eval() for make in (ppo.make_actor, ppo.make_critic))
    options = train_torchrl.collector_options(context)
    collector = Collector(env, actor, auto_register_policy_transforms=True, **options)
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
        timer.write({**dict.fromkeys((*train_torchrl.COLUMNS, *COLUMNS)), "success_mean": success_mean(env)})
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

    model = train_torchrl.by_isaac_labs_loop(context, simulation, env, ReceivingCollector, more=lambda: ages.last)
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
        self.last: dict[str, float | None] = {}  # columns of the last rollout

    def received(self, version: int, begun_ns: int, ended_ns: int) -> None:
        """Note a rollout with the number of updates in its weights; the next update begins."""
        self._batches = self._batches + 1 if version == self._version else 1
        self._version = version
        first_ns, last_ns = self._learned_ns
        overlap_ns = max(0, min(ended_ns, last_ns) - max(begun_ns, first_ns))
        values = (self.updates - version, self._batches, (ended_ns - begun_ns) / 1e9, overlap_ns / 1e9)
        self.last = dict(zip(COLUMNS, map(float, values), strict=True))
        self._began_ns = time.perf_counter_ns()

    def updated(self) -> None:
        """Note that the update has ended."""
        self.updates += 1
        self._learned_ns = self._began_ns, time.perf_counter_ns()

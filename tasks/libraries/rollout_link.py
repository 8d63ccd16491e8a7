"""Moves rollouts and weights between the two processes of a pipeline, by the process group that joined them.

Between two GPUs that is NCCL. Two processes of one GPU or of the CPU have gloo, which sends from host memory only, so
data of a shared GPU goes through host memory. Both sides wait for each other in every call.
"""

from typing import Any, Final

import torch
import torch.distributed as dist

LEARNER: Final = 0  # rank; the other one simulates
HEADER: Final = 3  # whole numbers that go with a rollout


class RolloutLink:
    """One end of the link. Numbers of weights count the updates in them."""

    def __init__(self, device: torch.device, rank: int) -> None:
        self._device = device
        self._peer = 1 - rank
        self._sent_from = device if dist.get_backend() == "nccl" else torch.device("cpu")
        self._layout: Any = None  # of a rollout, the same for all

    def send_rollout(self, batch: Any, *, version: int, begun_ns: int, ended_ns: int) -> None:
        """Send a rollout with the number of its weights and when its collection began and ended."""
        if self._layout is None:
            self._layout = _layout_of(batch)
            dist.broadcast_object_list([self._layout], src=1 - self._peer, device=self._sent_from)
        self._send_numbers(version, begun_ns, ended_ns)
        batch.to(self._sent_from).contiguous().send(self._peer)

    def receive_rollout(self) -> tuple[Any, int, int, int]:
        """Return a rollout on this rank's device, and the three numbers that were sent with it."""
        if self._layout is None:
            told = [None]
            dist.broadcast_object_list(told, src=self._peer, device=self._sent_from)
            (self._layout,) = told
        version, begun_ns, ended_ns = self._receive_numbers(HEADER)
        batch = _empty(self._layout, self._sent_from)
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
        found: list[int] = numbers.tolist()
        return found


def _layout_of(batch: Any) -> tuple[Any, ...]:
    leaves = {key: (tuple(leaf.shape), leaf.dtype) for key, leaf in batch.items(include_nested=True, leaves_only=True)}
    return leaves, tuple(batch.batch_size), tuple(batch.names)


def _empty(layout: tuple[Any, ...], device: torch.device) -> Any:
    from tensordict import TensorDict

    leaves, batch_size, names = layout
    found = {key: torch.empty(shape, dtype=dtype, device=device) for key, (shape, dtype) in leaves.items()}
    return TensorDict(found, batch_size=batch_size, device=device, names=names)

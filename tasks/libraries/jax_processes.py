"""Joins the processes of a training in JAX, which has a runtime of its own beside torch's process group.

skrl joins them while it is imported, from variables that its own launcher would set. That launcher returned 0 when a
process of it had failed (skrl 2.1.1), so the variables follow from torchrun's instead. They must not be there before
the simulation is launched: Isaac Lab adds ``JAX_LOCAL_RANK`` to ``LOCAL_RANK`` for the number of a rank's GPU.
Imports no torch.
"""

import atexit
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tasks.rank.context import RankContext, Ranks

_FLAGS_OF_SEVERAL_GPUS: Final = (
    # XLA's own kernel for all-reduce calls ncclGetPeerDevicePointer of NCCL 2.29.2. torch 2.11.0 has NCCL 2.28.9.
    "--xla_gpu_experimental_use_collective_kernels=",
    # XLA would choose kernels by timing them, in each process by itself. Another kernel rounds differently. Processes
    # that apply the same gradients would end with different parameters, as in two of three runs on two H200s.
    "--xla_gpu_deterministic_ops=true",
)
_PORT: Final = "labscale/jax/port"  # in the store that joined torch's ranks


def variables(
    ranks: "Ranks", coordinator: tuple[str, int] | None, *, on_gpu: bool, threads: int, xla_flags: str | None = None
) -> dict[str, str]:
    """Return what JAX and skrl read of one rank.

    ``coordinator``: host and port where rank 0 starts JAX's service. ``xla_flags``: the user's, which win.
    """
    own = {
        "JAX_PLATFORMS": "cuda,cpu" if on_gpu else "cpu",  # JAX fails without the first; it would train on the CPU
        "JAX_CUDA_VISIBLE_DEVICES": str(ranks.local_rank),  # JAX would take memory on every GPU
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",  # torch and Warp share the GPU, and JAX would take 75 % of it
        "NPROC": str(threads),  # of XLA's thread pools, which would have every core in every rank
    }
    if coordinator is None:
        return own
    host, port = coordinator
    if on_gpu:
        own["XLA_FLAGS"] = " ".join(filter(None, (*_FLAGS_OF_SEVERAL_GPUS, xla_flags)))
    return own | {
        "JAX_COORDINATOR_ADDR": host,
        "JAX_COORDINATOR_PORT": str(port),
        "JAX_COORDINATOR_BIND_ADDRESS": f"{host}:{port}",  # the service would listen on all addresses
        "JAX_WORLD_SIZE": str(ranks.world_size),
        "JAX_RANK": str(ranks.rank),
        "JAX_LOCAL_RANK": str(ranks.local_rank),
        "no_grpc_proxy": host,  # JAX would look for the service behind a proxy that http_proxy names, and abort
        # It would catch SIGTERM, by which torchrun ends the other ranks when one has failed.
        "JAX_ENABLE_PREEMPTION_SERVICE": "false",
    }


@contextmanager
def jax_environment(context: "RankContext") -> Iterator[None]:
    """Set the variables for the block, in which skrl is imported and trains.

    A rank that fails ends at once. JAX would wait at the interpreter's end for the other ranks, for five minutes.
    """
    import torch

    ranks = context.ranks
    os.environ |= variables(
        ranks,
        _coordinator(ranks) if ranks.is_distributed else None,
        on_gpu=context.device.type == "cuda",
        threads=torch.get_num_threads(),
        xla_flags=os.environ.get("XLA_FLAGS"),
    )
    try:
        yield
    except BaseException:
        atexit.register(os._exit, 1)  # the last one registered is the first one called
        raise
    import jax

    jax.distributed.shutdown()  # all ranks have trained; does nothing for one rank alone


def _coordinator(ranks: "Ranks") -> tuple[str, int]:
    """Return the host of rank 0, and a port that is free there; the same on all ranks."""
    import torch.distributed as dist

    store = dist.distributed_c10d._get_default_store()  # noqa: SLF001  the store that joined the ranks
    host = os.environ["MASTER_ADDR"]
    if ranks.rank == 0:
        with socket.create_server((host, 0)) as server:
            store.set(_PORT, str(server.getsockname()[1]))
    return host, int(store.get(_PORT))  # waits until it is there

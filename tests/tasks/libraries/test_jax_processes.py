"""The variables by which JAX and skrl know their processes. Real processes are in ``tests/tasks/test_worker.py``."""

from tasks.libraries.jax_processes import variables

JOINING = {
    "JAX_COORDINATOR_ADDR", "JAX_COORDINATOR_PORT", "JAX_WORLD_SIZE", "JAX_RANK", "JAX_LOCAL_RANK",
    "JAX_ENABLE_PREEMPTION_SERVICE", "no_grpc_proxy",
}  # fmt: skip


def of(rank: int = 0, *, world_size: int = 1, on_gpu: bool = True, xla_flags: str | None = None) -> dict[str, str]:
    """Variables of a rank, four of which are on a node."""
    coordinator = ("node-0", 4321) if world_size > 1 else None
    return variables(
        rank=rank,
        local_rank=rank % 4,
        world_size=world_size,
        on_gpu=on_gpu,
        threads=6,
        coordinator=coordinator,
        xla_flags=xla_flags,
    )


def test_a_rank_on_a_second_node_has_its_own_gpu_and_the_address_of_rank_0() -> None:
    found = of(5, world_size=8)
    assert (found["JAX_RANK"], found["JAX_LOCAL_RANK"], found["JAX_WORLD_SIZE"]) == ("5", "1", "8")
    assert (found["JAX_COORDINATOR_ADDR"], found["JAX_COORDINATOR_PORT"]) == ("node-0", "4321")
    assert found["no_grpc_proxy"] == "node-0"
    assert found["JAX_CUDA_VISIBLE_DEVICES"] == "1"
    assert found.keys() >= JOINING


def test_jax_does_not_train_on_the_cpu_where_a_gpu_is_asked_for() -> None:
    assert of()["JAX_PLATFORMS"].split(",")[0] == "cuda"
    assert of(on_gpu=False)["JAX_PLATFORMS"] == "cpu"


def test_several_gpus_reduce_by_nccl_and_choose_the_same_kernels_unless_the_user_decides_otherwise() -> None:
    flags = "--xla_gpu_experimental_use_collective_kernels= --xla_gpu_deterministic_ops=true"
    assert of(world_size=2)["XLA_FLAGS"] == flags
    assert of(world_size=2, xla_flags="--mine")["XLA_FLAGS"] == f"{flags} --mine"
    assert "XLA_FLAGS" not in of() | of(world_size=2, on_gpu=False)

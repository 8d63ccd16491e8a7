"""Which rank's word, signal or log is the reason of a run that failed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from suite.schema.rank_protocol import EndedBy
from tests.fixtures.results.rank_events import Events, RankFiles, end, error, head, iterations, whole

GLOO_PEER = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:58085"
CUDA_OOM = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.80 GiB."

# Of an H100 on which another process held all memory but 2.6 GB (reports/results/2026.11/h100-memory).
WARP_OOM = (
    "Graph launch error: Warp CUDA error 2: out of memory"
    " (in function wp_cuda_graph_launch, /builds/omniverse/warp/warp/native/warp.cu:4544)"
)


@pytest.mark.parametrize(
    ("ended_by", "why"),
    [("timeout", "not finished after 600 s, start-up included"), ("hung", "no process wrote anything for 300 s")],
)
def test_a_run_that_labscale_ended_says_how_far_each_rank_got_and_keeps_it(
    ended_by: EndedBy, why: str, rank_files: RankFiles
) -> None:
    rank_files.case = replace(rank_files.case, timeout_s=600.0, hang_timeout_s=300.0)
    rank_files.rank(0, head(0) + iterations(2), torn='{"event": "iter')
    for events, progress in (([], "in start-up, after imports"), (error("it fell"), "RuntimeError: it fell")):
        rank_files.rank(1, head(1) + events)
        record = rank_files.collect(exit_code=1, ended_by=ended_by)
        assert record.outcome == ended_by
        assert (record.reason or "").startswith(f"{why}; rank 0: 2 of 3 iterations; rank 1: {progress}.")
        assert [rank.num_iterations for rank in record.ranks] == [2, 0]


@pytest.mark.parametrize(
    "failed",
    [
        error("no room", oom=True, time_unix_s=11.0),
        error(CUDA_OOM, kind="OutOfMemoryError", time_unix_s=11.0),
        error(WARP_OOM, time_unix_s=11.0),
        error("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4831838208 bytes.", kind="XlaRuntimeError"),
        error("VkResult: ERROR_OUT_OF_DEVICE_MEMORY"),
        error("[Errno 12] Cannot allocate memory", kind="OSError"),
    ],
)
def test_out_of_memory_is_its_own_outcome(failed: Events, rank_files: RankFiles) -> None:
    rank_files.rank(0, head(0) + error("something else", time_unix_s=10.0))
    rank_files.rank(1, head(1) + failed)
    record = rank_files.collect(exit_code=1)
    assert record.outcome == "oom"
    assert record.reason == f"rank 1: {failed[0]['type']}: {failed[0]['message']}"


# What Warp printed on two H100s on 2026-11-24, and what only says what can be.
@pytest.mark.parametrize(
    "message",
    [
        (
            "Failed to allocate 6144 bytes on device 'cuda:0':  Failed to allocate memory during graph capture because"
            " memory pools are not enabled on device 'cuda:0'.  Try calling wp.set_mempool_enabled('cuda:0', True)"
            " before capture begins."
        ),
        "VK_ERROR_DEVICE_LOST; possible reasons:\n - driver reset\n - out of memory\n - hung shader",
        "Allocator ran out of memory trying to allocate 1.33GiB. The caller indicates that this is not a failure",
    ],
)
def test_a_message_that_speaks_of_memory_is_no_lack_of_it(message: str, rank_files: RankFiles) -> None:
    rank_files.rank(0, head(0) + error(message))
    record = rank_files.collect(exit_code=1)
    assert (record.outcome, record.reason) == ("crashed", f"rank 0: RuntimeError: {message}")


PHYSX_LACKS = "PhysX error: PxgCudaDeviceMemoryAllocator fail to allocate memory 67108864 bytes!! Result = 2"


@pytest.mark.parametrize("speaks", [True, False])
def test_an_illegal_access_after_physx_lacked_memory_is_a_lack_of_memory(speaks: bool, rank_files: RankFiles) -> None:
    illegal = "CUDA error: an illegal memory access was encountered"
    rank_files.rank(0, head(0) + (error(illegal) if speaks else []))
    rank_files.torchrun_log((0, 1 if speaks else -6))
    rank_files.log("none_x/attempt_0/0/stdout.log", f"{PHYSX_LACKS}\n" + "step\n" * 20)
    rank_files.log("none_x/attempt_0/0/stderr.log", f"{illegal}\n")
    record = rank_files.collect(exit_code=1)
    assert record.outcome == "oom"
    assert record.reason is not None
    assert PHYSX_LACKS in record.reason
    assert illegal in record.reason


FRAMES = "".join(f'  File "/lib/torch/module_{line}.py", line {line} in forward\n' for line in range(9))


@pytest.mark.parametrize(
    ("cause", "outcome"),
    [
        ("CUDA error: an illegal memory access was encountered", "crashed"),
        ("CUDA error: out of memory", "oom"),
    ],
)
@pytest.mark.parametrize("stack", ["frame #0: c10::Error (0x7f)\nframe #1: main\n", ""])
def test_an_abort_tells_its_cause_and_no_stack(cause: str, outcome: str, stack: str, rank_files: RankFiles) -> None:
    rank_files.torchrun_log((0, -6))
    rank_files.log(
        "none_x/attempt_0/0/stderr.log",
        f"terminate called after throwing an instance of 'c10::AcceleratorError'\n  what():  {cause}\n"
        "CUDA kernel errors might be asynchronously reported\nFor debugging consider CUDA_LAUNCH_BLOCKING=1\n"
        f"Compile with `TORCH_USE_CUDA_DSA`\nException raised from c10_cuda_check\n{stack}\n"
        "Fatal Python error: Aborted\n\nThread 0x00007f0 (most recent call first):\n"
        f"  <no Python frame>\n\nCurrent thread 0x00007f1 (most recent call first):\n{FRAMES}  ...\n\n"
        "Extension modules: numpy._core._multiarray_umath, torch._C (total: 2)\n",
    )
    record = rank_files.collect(exit_code=1)
    assert record.outcome == outcome
    assert record.reason is not None
    for told in ("rank 0: killed by signal 6", f"what():  {cause}", "terminate called", "Fatal Python error: Aborted"):
        assert told in record.reason
    for left_out in ("module_", "Extension modules", "frame #", "Current thread"):
        assert left_out not in record.reason


@pytest.mark.parametrize(
    ("oom_kills", "outcome", "told"),
    [
        (1, "oom", "signal 9: the kernel's out-of-memory killer ran meanwhile"),
        (0, "crashed", "signal 9, not by the kernel's out-of-memory killer"),
    ],
)
def test_a_killed_rank_lacked_memory_only_if_the_kernel_says_so(
    oom_kills: int, outcome: str, told: str, rank_files: RankFiles
) -> None:
    rank_files.torchrun_log((0, -15), (1, -9))
    record = rank_files.collect(exit_code=1, oom_kills=oom_kills)
    assert record.outcome == outcome
    assert told in (record.reason or "")


@pytest.mark.parametrize(
    ("rank_0", "rank_1", "exits", "reason"),
    [
        # the first error in time
        (error("second", time_unix_s=12.0), error("first", time_unix_s=11.0), (), "rank 1: RuntimeError: first"),
        # an error of a rank's own goes before an earlier one that follows from it
        (
            error(GLOO_PEER, time_unix_s=10.0),
            error("the cube fell", time_unix_s=11.0),
            ((1, 1), (0, 1)),
            "rank 1: RuntimeError: the cube fell",
        ),
        # what follows from another error is the reason when there is no other
        (error(GLOO_PEER), [], ((1, -15), (0, 1)), f"rank 0: RuntimeError: {GLOO_PEER}"),
        # the kernel leaves no evidence, so a killed rank is not called out of memory
        (
            error(GLOO_PEER),
            iterations(2),
            ((0, -15), (1, -9)),
            (
                "rank 1: killed by signal 9; whether by the kernel's out-of-memory killer is not known;"
                " its stderr is empty"
            ),
        ),
        # a rank that died in training goes before one that had finished
        (
            iterations(3) + end(),
            iterations(2),
            ((0, -6), (1, -11)),
            "rank 1: killed by signal 11 (Segmentation fault); its stderr is empty",
        ),
    ],
)
def test_the_root_cause_goes_before_what_follows_from_it(
    rank_0: Events, rank_1: Events, exits: Sequence[tuple[int, int]], reason: str, rank_files: RankFiles
) -> None:
    rank_files.rank(0, head(0) + rank_0)
    rank_files.rank(1, head(1) + rank_1)
    rank_files.torchrun_log(*exits)
    record = rank_files.collect(exit_code=1)
    assert (record.outcome, record.reason) == ("crashed", reason)
    errors = [next((event["message"] for event in of_rank if "message" in event), None) for of_rank in (rank_0, rank_1)]
    assert [rank.error and rank.error.removeprefix("RuntimeError: ") for rank in record.ranks] == errors


def test_rank_that_torchrun_had_to_kill_is_not_the_cause(rank_files: RankFiles) -> None:
    killed = "W Unable to shutdown process 6470 via 15, forcefully exiting via 9"
    rank_files.torchrun_log((0, -9), (1, -11), before=killed)
    reason = rank_files.collect(exit_code=1).reason
    assert reason == "rank 1: killed by signal 11 (Segmentation fault); its stderr is empty"


def test_rank_without_events_speaks_through_its_stderr(rank_files: RankFiles) -> None:
    rank_files.torchrun_log((0, -15), (1, 1))
    rank_files.log("none_x/attempt_0/0/stderr.log", "of the other rank\n")
    rank_files.log(
        "none_x/attempt_0/1/stderr.log", "Traceback\n" * 9 + "ModuleNotFoundError: No module named 'isaaclab'\n\n"
    )
    record = rank_files.collect(exit_code=1)
    assert record.outcome == "crashed"
    assert record.reason
    assert record.reason.startswith("rank 1: ended with exit code 1; the last lines of its stderr:\n")
    assert record.reason.endswith("\nModuleNotFoundError: No module named 'isaaclab'")
    assert record.reason.count("\n") == 5


def test_torchrun_that_fails_alone_speaks_through_its_log(rank_files: RankFiles) -> None:
    rank_files.log("torchrun.log", "python: No module named torch\n")
    record = rank_files.collect(exit_code=1)
    assert record.outcome == "crashed"
    assert record.reason == (
        "torchrun ended with exit code 1; the last lines of its log:\npython: No module named torch"
    )
    reason = rank_files.collect(exit_code=-9).reason
    assert (reason or "").startswith("torchrun was killed by signal 9 (Killed)")


@pytest.mark.parametrize(("more", "exit_code"), [([], 1), (error("at the very end"), 0)])
def test_whole_files_are_a_crash_with_a_bad_exit_or_an_error(
    more: Events, exit_code: int, rank_files: RankFiles
) -> None:
    rank_files.rank(0, whole(0))
    rank_files.rank(1, whole(1) + more)
    assert rank_files.collect(exit_code=exit_code).outcome == "crashed"

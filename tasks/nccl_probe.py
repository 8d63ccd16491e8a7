"""Measures whether NCCL joins the GPUs of this machine with a correct sum, and how fast.

    python -m tasks.nccl_probe RESULT [--message-mib N] [--patience-s S]

One process runs all-reduces over every GPU that it sees. RESULT gets one JSON object: the measurement, or ``error``
(one of ``ERRORS``) with its ``message``; the exit code is then 1. After ``--patience-s`` it prints on stderr where it
hangs.
"""

import argparse
import faulthandler
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any, Final

ERRORS: Final = ("no_torch", "no_cuda", "no_nccl", "nccl_error")
WARM_UPS: Final = 3
REPEATS: Final = 10


def probe(message_bytes: int) -> dict[str, Any]:
    """Check torch and measure; return the measurement, or why there is none."""
    try:
        import torch
    except ImportError as error:
        return {"error": "no_torch", "message": f"this Python cannot import torch: {error}"}
    version = f"torch {torch.__version__}"
    if not torch.cuda.is_available() or torch.cuda.device_count() == 0:
        return {"error": "no_cuda", "message": f"{version} sees no GPU; it is built for CUDA {torch.version.cuda}"}
    if not hasattr(torch._C, "_nccl_all_reduce"):  # noqa: SLF001  torch.cuda.nccl checks this too
        return {"error": "no_nccl", "message": f"{version} is built without NCCL"}
    try:
        return measure(torch, message_bytes)
    except RuntimeError as error:  # from NCCL or CUDA, or out of memory
        return {"error": "nccl_error", "message": str(error)}


def measure(torch: Any, message_bytes: int) -> dict[str, Any]:
    gpus = range(torch.cuda.device_count())
    times_s, is_right = all_reduce(torch, message_bytes, len(gpus))
    carried_bytes = message_bytes * 2 * (len(gpus) - 1) / len(gpus)  # bytes that each GPU sends and receives
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())),
        "gpus": [torch.cuda.get_device_name(gpu) for gpu in gpus],
        "peer_access": [[gpu == peer or torch.cuda.can_device_access_peer(gpu, peer) for peer in gpus] for gpu in gpus],
        "is_sum_right": is_right,
        "message_bytes": message_bytes,
        "times_s": times_s,
        # What each link needs for this time; one GPU uses no link.
        "bus_bandwidth_gb_s": carried_bytes / statistics.median(times_s) / 1e9 if len(gpus) > 1 else None,
    }


def all_reduce(torch: Any, message_bytes: int, num_gpus: int) -> tuple[list[float], bool]:
    """Return the times of the repeats [s], and whether every element on every GPU has the right sum."""
    count = message_bytes // 4
    # GPU g has (g + 1) * pattern; the sums stay far below 2**24, so they are exact in float32.
    patterns = [(torch.arange(count, device=f"cuda:{gpu}") % 13).float() for gpu in range(num_gpus)]
    inputs = [pattern * (gpu + 1) for gpu, pattern in enumerate(patterns)]
    outputs = [torch.zeros_like(pattern) for pattern in patterns]
    times_s = []

    def synchronize() -> None:
        for gpu in range(num_gpus):
            torch.cuda.synchronize(gpu)

    for number in range(WARM_UPS + REPEATS):
        synchronize()
        start_s = time.perf_counter()
        torch.cuda.nccl.all_reduce(inputs, outputs)
        synchronize()
        if number >= WARM_UPS:
            times_s.append(time.perf_counter() - start_s)
    total = num_gpus * (num_gpus + 1) // 2
    is_right = all(bool((output == pattern * total).all()) for output, pattern in zip(outputs, patterns, strict=True))
    return times_s, is_right


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tasks.nccl_probe", description="All-reduce over all GPUs of this machine.")
    parser.add_argument("result", type=Path)
    parser.add_argument("--message-mib", type=int, default=256)
    parser.add_argument("--patience-s", type=float, default=60.0)
    arguments = parser.parse_args(argv)
    faulthandler.enable()
    faulthandler.dump_traceback_later(arguments.patience_s)
    answer = probe(arguments.message_mib * 2**20)
    arguments.result.write_text(json.dumps(answer) + "\n", encoding="utf-8")
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

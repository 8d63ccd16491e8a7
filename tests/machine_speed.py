"""How fast this machine is at this moment: bounds of processor time are of a quiet one, and neighbours slow it down."""

import json
import time
from typing import Final

# What the work below took on the machine that the bounds are of: 2 quiet cores of an Intel Xeon, 2026-11-21.
REFERENCE_S: Final = 0.28
TIMES: Final = 3


def slowness() -> float:
    """By how much longer the same work takes than on the reference; at least 1."""
    return max(1.0, min(_work_s() for _ in range(TIMES)) / REFERENCE_S)


def _work_s() -> float:
    started_s = time.process_time()
    document = {str(number): [number * 0.1, {"a": number}] for number in range(20_000)}
    for _ in range(5):
        json.loads(json.dumps(document))
        sorted(document, key=lambda name: -len(name))
        sum(pair[0] ** 2 for pair in document.values())  # type: ignore[operator]
    return time.process_time() - started_s

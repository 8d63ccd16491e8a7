"""Time calls with a clock that counts its marks, so that every time is known; print what the sections say."""

import itertools
import json
from dataclasses import asdict
from typing import Any


class CountingMarks:
    """Each mark is one second after the one before."""

    def __init__(self) -> None:
        self._seconds = itertools.count()

    def now(self) -> float:
        return float(next(self._seconds))

    def elapsed_s(self, start: float, end: float) -> float:
        return end - start

    def synchronize(self) -> None: ...

    def recycle(self) -> None: ...


def main() -> None:
    import torch

    from tasks.rank.profiling import Ranges
    from tasks.rank.timing import Collective, Section

    def drained(section: Any) -> dict[str, Any]:
        return asdict(section.drain())

    def fail() -> None:
        raise KeyError

    section = Section(CountingMarks(), "any", Ranges())
    inner = section.wrap(lambda: 7)
    outer = section.wrap(lambda: inner() + inner())
    failing = section.wrap(fail)
    found = {"never_called": drained(section), "returned": inner(), "one_call": drained(section)}
    outer()
    found["nested_calls"] = drained(section)
    try:
        failing()
    except KeyError:
        inner()
    found["after_an_error"] = drained(section)
    inner()
    section.discard()
    found["discarded"] = drained(section)
    collective = Collective(CountingMarks(), "sum", Ranges())
    reduce = collective.wrap(lambda tensor, op: (op, tensor.numel()))
    found["passed_on"] = [reduce(torch.zeros(5), "first"), reduce(tensor=torch.zeros(2, 3).half(), op="second")]
    found["two_sums"] = [collective.drain_bytes(), drained(collective), collective.drain_bytes()]
    reduce(torch.zeros(5), "third")
    collective.discard()
    collective.enabled = False
    reduce(torch.zeros(5), "fourth")
    found["not_counted"] = collective.drain_bytes()
    print(json.dumps(found))


if __name__ == "__main__":
    main()

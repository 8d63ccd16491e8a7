"""Parts of the worker that need torch and no simulation.

A timer's NVTX ranges, written down instead of made, its sections by a clock that counts its marks, the success of
episodes, and what LeRobot's control says of frames that come back as they were given and of other ones.
"""

import itertools
import json
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def ranges(*, is_profiled: bool) -> list[str]:
    """Return what two iterations push (+) and pop (-)."""
    import torch

    from tasks.rank.profiling import BELOW_NSYS_VARIABLE
    from tasks.rank.rank_log import RankLog
    from tasks.rank.timing import IterationTimer

    if is_profiled:
        os.environ[BELOW_NSYS_VARIABLE] = "1"
    calls: list[str] = []
    torch.cuda.nvtx.range_push = lambda name: calls.append(f"+{name}")
    torch.cuda.nvtx.range_pop = lambda: calls.append("-")
    with tempfile.TemporaryDirectory() as folder:
        timer = IterationTimer(RankLog(Path(folder), 0), torch.device("cpu"))
        step, reduce = timer.environment_step.wrap(lambda: 1), timer.all_reduce.wrap(lambda tensor: tensor)
        for _ in range(2):
            timer.begin()
            step()
            step()
            timer.end_collection()
            reduce(torch.zeros(1))
            timer.end()
            timer.write({})
    return calls.copy()


def sections() -> dict[str, Any]:
    import torch

    from tasks.rank.profiling import Ranges
    from tasks.rank.timing import Collective, CpuMarks, Section

    marks = CpuMarks()
    marks.now = itertools.count().__next__  # type: ignore[method-assign]  # each is one second after the one before

    def drained(section: Any) -> list[Any]:
        return [section.drain(), len(section.calls_s)]

    def fail() -> None:
        raise KeyError

    section = Section(marks, "any", Ranges())
    inner = section.wrap(lambda: 7)
    outer = section.wrap(lambda: inner() + inner())
    failing = section.wrap(fail)
    results = {"never_called": drained(section), "returned": inner(), "one_call": drained(section)}
    outer()
    results["nested_calls"] = drained(section)
    try:
        failing()
    except KeyError:
        inner()
    results["after_an_error"] = drained(section)
    inner()
    section.discard()
    results["discarded"] = drained(section)
    collective = Collective(marks, "sum", Ranges())
    reduce = collective.wrap(lambda tensor, op: (op, tensor.numel()))
    results["passed_on"] = [reduce(torch.zeros(5), "first"), reduce(tensor=torch.zeros(2, 3).half(), op="second")]
    results["two_sums"] = [collective.drain_bytes(), *drained(collective), collective.drain_bytes()]
    reduce(torch.zeros(5), "third")
    collective.discard()
    collective.enabled = False
    reduce(torch.zeros(5), "fourth")
    results["not_counted"] = collective.drain_bytes()
    return results


def successes() -> list[float | None]:
    """The success before a step, after steps that ended three episodes and one, again, and after a reset by a mask.

    Then after a step that ended the episodes of two of the four environments, and after one of three.
    """
    import torch

    from tasks.rank.simulation import SUCCESS_RATE, Successes

    rates = iter([0.0, 1.0, 0.0, 0.5, 0.5, 0.0])
    env = SimpleNamespace(extras={}, common_step_counter=0, num_envs=4)
    env._reset_idx = lambda *_, mask=None: env.extras.update(log={SUCCESS_RATE: torch.tensor(next(rates))})  # noqa: ARG005
    ended = Successes(env)
    ended(slice(None))
    means = [ended.mean()]
    env.common_step_counter = 1
    ended(torch.arange(3))
    ended(torch.arange(1))
    means += [ended.mean(), ended.mean()]
    ended(mask=torch.ones(4))
    means.append(ended.mean())
    for number in (2, 3):
        ended(torch.arange(number))
        means.append(ended.mean())
    return means


def judged_frames() -> list[Any]:
    import torch

    from tasks.libraries.controls_lerobot import read_back

    picture = torch.arange(24, dtype=torch.uint8).reshape(2, 4, 3)
    kept = {"observation.images.camera": picture.permute(2, 0, 1) / 255, "action": torch.tensor(0.5)}
    given = {"observation.images.camera": picture.numpy(), "action": torch.tensor([0.5]).numpy()}
    other = {**given, "observation.images.camera": (picture + 1).numpy()}
    checks = (read_back([kept], {0: given}), read_back([kept, kept], {0: given, 1: other}))
    return [[check.verdict, check.found, check.fault] for check in checks]


if __name__ == "__main__":
    results = {"sections": sections(), "read_back": judged_frames(), "ranges": ranges(is_profiled=False)}
    print(json.dumps({**results, "successes": successes(), "ranges_below_nsys": ranges(is_profiled=True)}))

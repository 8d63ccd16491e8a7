"""Judge the pictures of the Shadow Hand's camera as they are, and with each fault put into them.

Pictures are spoilt where Isaac Lab draws them, so the checks look through the same camera as the task does.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


def judge_faults(env: Any) -> dict[str, dict[str, Any]]:
    """Verdicts of ``tasks.checks.validity`` for each fault: name of the check -> [verdict, fault, what was found]."""
    first: dict[str, Any] = {}
    faults: dict[str, Callable[[str, Any], object]] = {
        "none": lambda *_: None,
        "blank": lambda _, picture: picture.zero_(),
        "blank_in_one_environment": lambda _, picture: picture[-1].zero_(),
        "nan_depth": lambda kind, picture: picture[2, 5, 5].fill_(math.nan) if kind == "depth" else None,
        "frozen": lambda kind, picture: picture.copy_(first.setdefault(kind, picture.clone())),
        "swapped": lambda _, picture: picture.copy_(picture.roll(1, dims=0).clone()),
        "copies_of_the_first": lambda _, picture: picture.copy_(picture[:1].clone().expand_as(picture)),
    }
    found = {name: judged(env, fault) for name, fault in faults.items()}
    found |= {"wrong_height": told(env, height=60), "missing_type": told(env, data_types=["rgb", "normals"])}
    # Last, because nothing is sound after it.
    found["nan_position"] = judged(env, lambda *_: env.object.data.root_link_pose_w.torch[1, 0].fill_(math.nan))
    return found


@contextmanager
def put_in(env: Any, fault: Callable[[str, Any], object]) -> Iterator[None]:
    """Let every frame be spoilt where Isaac Lab draws it."""
    rendering = type(env.sim.render_context)
    draw = rendering.render_into_cameras

    def spoilt(self: Any, requests: Any, step: int) -> None:
        draw(self, requests, step)
        for _, _, data in requests:
            for kind, output in data.output.items():
                fault(kind, output.torch)

    rendering.render_into_cameras = spoilt
    try:
        yield
    finally:
        rendering.render_into_cameras = draw


def told(env: Any, **settings: Any) -> dict[str, Any]:
    """Judge sound pictures by other settings than those that they were drawn by."""
    camera = env.scene["tiled_camera"].cfg
    before = {name: getattr(camera, name) for name in settings}
    vars(camera).update(settings)
    try:
        return judged(env, lambda *_: None)
    finally:
        vars(camera).update(before)


def judged(env: Any, fault: Callable[[str, Any], object]) -> dict[str, Any]:
    from tasks.checks import validity
    from tasks.rank.simulation import Simulation

    with put_in(env, fault):
        results = validity.check(Simulation(env=env, env_cfg=None, agent_cfg=None))
    return {result.name: [result.verdict, result.fault, result.found] for result in results}

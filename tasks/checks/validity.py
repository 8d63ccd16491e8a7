"""Whether a rank did the work that its case states: physics dropped nothing and stays finite, and pictures show it.

It runs after training, when nothing is measured any more. The environment is reset. Then the objects of one environment
after the other are moved (the marker): only its own picture may change. Then a few steps with random actions must
change every picture. Blank and frozen pictures are fast, and have been published as results elsewhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import torch

from suite.schema.record import CheckResult
from tasks.rank.simulation import Simulation

# Data type of a camera -> element type and channels. For other data types only the remaining sizes are checked.
FORMS: Final[Mapping[str, tuple[torch.dtype, int]]] = {
    "rgb": (torch.uint8, 3),
    "rgba": (torch.uint8, 4),
    "albedo": (torch.uint8, 4),
    "depth": (torch.float32, 1),
    "distance_to_image_plane": (torch.float32, 1),
    "distance_to_camera": (torch.float32, 1),
}
SEGMENTATION: Final = ((torch.uint8, 4), (torch.int32, 1))  # coloured, or as numbers
DISTANCES: Final = ("depth", "distance_to_image_plane", "distance_to_camera")  # infinite if nothing is hit
LOOKED_AT: Final = 64  # environments whose pictures are compared, spread evenly over all
MARKED: Final = 3  # environments whose objects are moved, one after the other
MOVED_BY: Final = (0.03, 0.03, 0.05)  # distance that objects are moved [m]
JOINTS_MOVED_BY: Final = 0.3  # m or rad; for scenes without objects
STEPS: Final = 3
NAMED: Final = 5  # environments in a message
NOISE: Final = {torch.uint8: 16, torch.float32: 1e-3, torch.int32: 0}  # smaller differences of a pixel are ignored
SHARE_OF_MARKER: Final = 0.5  # renderers have noise: other pictures may change by this share of the marked one's change

Pictures = dict[str, torch.Tensor]  # data type -> shape (environments, height, width, channels)


class Fault(Exception):
    """A check failed; ``word`` is the name of the fault, the message says what was found."""

    def __init__(self, word: str, found: str) -> None:
        super().__init__(found)
        self.word = word


@dataclass(frozen=True, kw_only=True)
class View:
    """One camera of an environment."""

    env: Any
    name: str
    camera: Any

    @property
    def environments(self) -> list[int]:
        """Environments whose pictures are compared: the first, the last, and some between."""
        count = min(LOOKED_AT, int(self.env.num_envs))
        return sorted({round(i * (self.env.num_envs - 1) / max(1, count - 1)) for i in range(count)})

    def pictures(self, *, drawn_anew: bool) -> Pictures:
        """Return what the task would see; ``drawn_anew`` renders again after a change of state without a step."""
        if drawn_anew:
            self.env.sim.forward()
            if self.env.sim.is_rendering:
                self.env.sim.render()
            self.camera.update(self.env.physics_dt, force_recompute=True)
        return {name: output.torch for name, output in self.camera.data.output.items()}

    def compared(self, *, drawn_anew: bool) -> Pictures:
        return {
            name: output[self.environments].clone() for name, output in self.pictures(drawn_anew=drawn_anew).items()
        }


def check(running: Simulation) -> list[CheckResult]:
    """Run every check that applies to the task. All episodes of the environment begin anew."""
    from isaaclab.benchmark.stepping import sample_random_actions

    env = running.env.unwrapped
    views = views_of(env)
    with torch.inference_mode():  # rsl_rl's environments have tensors of this mode
        results = [] if running.overflow is None else [running.overflow.check()]
        results.append(_judged("physics state after training", "physics", partial(check_state, env)))
        env.reset()
        for view in views:
            results.append(_judged(f"{view.name} form", "cameras", partial(check_form, view)))
            results.append(_judged(f"{view.name} marker", "cameras", partial(check_marker, view)))
        # Pictures of two steps are compared: Isaac Lab's feature extractor scales depth in the camera's own data.
        env.step(sample_random_actions(env))
        before = [view.compared(drawn_anew=False) for view in views]
        for _ in range(STEPS):
            env.step(sample_random_actions(env))
        for view, then in zip(views, before, strict=True):
            results.append(_judged(f"{view.name} steps", "cameras", partial(check_steps, view, then)))
        results.append(_judged("physics state after steps", "physics", partial(check_state, env)))
    return results


def views_of(env: Any) -> list[View]:
    """Return every camera of the unwrapped environment ``env``."""
    from isaaclab.sensors import Camera

    return [
        View(env=env, name=name, camera=sensor)
        for name, sensor in env.scene.sensors.items()
        if isinstance(sensor, Camera)
    ]


def _judged(name: str, feature: str, run: Callable[[], str]) -> CheckResult:
    try:
        text = run()
    except Fault as fault:
        return CheckResult(name=name, feature=feature, verdict="failure", found=str(fault), fault=fault.word)
    return CheckResult(name=name, feature=feature, verdict="ok", found=text, fault=None)


def check_state(env: Any) -> str:
    """Check that positions and velocities of all bodies and joints are finite. Raises Fault."""
    states = {
        f"{name}.{quantity}": getattr(asset.data, quantity).torch
        for assets, quantities in (
            (env.scene.articulations, ("root_link_pose_w", "joint_pos", "joint_vel")),
            (env.scene.rigid_objects, ("root_link_pose_w", "root_com_vel_w")),
        )
        for name, asset in assets.items()
        for quantity in quantities
    }
    for name, state in states.items():
        bad = ~torch.isfinite(state).flatten(1).all(1)
        if bad.any():
            raise Fault("physics_not_finite", f"{name} is not finite in {_which(bad)}")
    return f"{', '.join(states)} of {env.num_envs} environments are finite"


def check_form(view: View) -> str:
    """Check that every data type exists, has its size, is finite and not constant in an environment. Raises Fault."""
    cfg, pictures = view.camera.cfg, view.pictures(drawn_anew=True)
    if missing := [kind for kind in cfg.data_types if kind not in pictures]:
        raise Fault("camera_wrong_form", f"{view.name} has no {', '.join(missing)}; it has {', '.join(pictures)}")
    for kind in cfg.data_types:
        picture = pictures[kind]
        _check_size(f"{view.name}.{kind}", kind, picture, (view.env.num_envs, cfg.height, cfg.width))
        if picture.is_floating_point():
            lost = torch.isnan(picture) if kind in DISTANCES else ~torch.isfinite(picture)
            if (bad := lost.flatten(1).any(1)).any():
                raise Fault("camera_not_finite", f"{view.name}.{kind} is not finite in {_which(bad)}")
        flat = picture.flatten(1, 2)
        if (bad := (flat.amin(1) == flat.amax(1)).all(1)).any():
            raise Fault("camera_constant", f"{view.name}.{kind} has one value only in {_which(bad)}")
    return f"{', '.join(cfg.data_types)} of {cfg.width}x{cfg.height} in {view.env.num_envs} environments"


def _check_size(name: str, kind: str, picture: torch.Tensor, leading: tuple[int, ...]) -> None:
    forms = SEGMENTATION if "segmentation" in kind else (FORMS[kind],) if kind in FORMS else ()
    got = (picture.dtype, picture.shape[-1])
    if tuple(picture.shape[:-1]) != leading or (forms and got not in forms):
        wanted = (
            " or ".join(f"{(*leading, channels)} {dtype}" for dtype, channels in forms) or f"{leading} and channels"
        )
        raise Fault("camera_wrong_form", f"{name} is {tuple(picture.shape)} {picture.dtype}, should be {wanted}")


def check_marker(view: View) -> str:
    """Move one environment's objects: its picture must change, and no other's nearly as much. Raises Fault."""
    environments = view.environments
    marked = [environments[round(i * (len(environments) - 1) / max(1, MARKED - 1))] for i in range(MARKED)]
    before = view.compared(drawn_anew=True)
    for environment in sorted(set(marked)):
        move(view.env, [environment])
        after = view.compared(drawn_anew=True)
        changed = changed_share(before, after)
        row = environments.index(environment)
        own = float(changed[row])
        others = changed.clone()
        others[row] = 0.0
        most = int(others.argmax())
        moved = f"after a move of environment {environment}, of {view.name}'s pixels"
        if own == 0.0 and not others.any():
            raise Fault("camera_frozen", f"{moved} none changed in any environment")
        if float(others[most]) > SHARE_OF_MARKER * own:
            raise Fault(
                "camera_not_own_image",
                f"{moved} {own:.1%} changed there and {float(others[most]):.1%} in environment {environments[most]}",
            )
        before = after
    return f"only the own picture followed in environments {', '.join(map(str, sorted(set(marked))))}"


def check_steps(view: View, before: Pictures) -> str:
    """Check that steps of the simulation change every picture. Raises Fault."""
    changed = changed_share(before, view.compared(drawn_anew=False))
    if (frozen := changed == 0).any():
        which = _first([view.environments[row] for row in frozen.nonzero().flatten().tolist()])
        compared = f"{int(frozen.sum())} of {len(changed)} environments ({which})"
        raise Fault("camera_frozen", f"after {STEPS} steps no pixel of {view.name} changed in {compared}")
    return (
        f"after {STEPS} steps {float(changed.min()):.1%} of the pixels or more changed in {len(changed)} environments"
    )


def move(env: Any, environments: Sequence[int], *, share: float = 1.0) -> None:
    """Move the objects of environments, or their joints if they have no objects, by ``share`` of the way; no step."""
    ids = torch.tensor(environments, dtype=torch.int32, device=env.device)
    for thing in env.scene.rigid_objects.values():
        pose = thing.data.root_link_pose_w.torch[ids].clone()
        pose[:, :3] += share * torch.tensor(MOVED_BY, device=env.device)
        thing.write_root_pose_to_sim_index(root_pose=pose, env_ids=ids)
    if not env.scene.rigid_objects:
        for robot in env.scene.articulations.values():
            position = robot.data.joint_pos.torch[ids] + share * JOINTS_MOVED_BY
            robot.write_joint_position_to_sim_index(position=position, env_ids=ids)


def changed_share(before: Pictures, after: Pictures) -> torch.Tensor:
    """Return the share of pixels that differ in any data type, shape (environments,). Raises Fault without pictures."""
    pixels: list[torch.Tensor] = []
    for kind, old in before.items():
        new, noise = after[kind], NOISE.get(old.dtype, 0)
        if old.is_floating_point():
            difference = torch.nan_to_num(old, posinf=0.0) - torch.nan_to_num(new, posinf=0.0)
        else:
            difference = old.to(torch.int64) - new.to(torch.int64)
        pixels.append((difference.abs() > noise).any(-1))
    if not pixels:
        raise Fault("camera_wrong_form", "the camera has no pictures at all")
    return torch.stack(pixels).any(0).flatten(1).float().mean(1)


def _which(bad: torch.Tensor) -> str:
    return f"{int(bad.sum())} of {len(bad)} environments ({_first(bad.nonzero().flatten().tolist())})"


def _first(environments: list[int]) -> str:
    return ", ".join([*map(str, environments[:NAMED]), *(["…"] if len(environments) > NAMED else [])])

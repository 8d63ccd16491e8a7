"""Where the camera of each world stands: it sees all bodies, or has the task's own view, and it follows them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import warp
from newton import ShapeFlags

from tasks.film.newton_camera import FIELD_OF_VIEW

DIRECTION: Final = (0.62, -0.62, 0.48)  # from the bodies to the camera
FILLED: Final = 0.8  # of half the picture's height, by the sphere around all bodies
SLACK: Final = 0.5  # of that sphere's radius: how far the bodies move before the camera follows

type Points = Sequence[Sequence[float]]


class Follower:
    """Places a camera in each of the first ``worlds`` worlds.

    ``view``: ``eye`` and ``target`` of the task's own view [m], with the environment at the origin; empty if it has
    none. ``origin``: where the first environment is, shape (3,) [m].
    """

    def __init__(
        self, model: Any, state: Any, *, worlds: int, view: Mapping[str, Sequence[float]], origin: Sequence[float]
    ) -> None:
        world_of = warp.to_torch(model.body_world)
        self._bodies = torch.stack([(world_of == world).nonzero().squeeze(1) for world in range(worlds)])
        self._middles = self._middles_of(state)
        self.radius_m = _radius_m(model, state, self._bodies[0])
        if view:
            eye, target = torch.tensor(view["eye"]), torch.tensor(view["target"])
            self._to_target = target + torch.tensor(origin) - self._middles[0]
            self._to_eye = eye - target
        else:
            self._to_target = torch.zeros(3)
            self._to_eye = torch.tensor(DIRECTION) * self.radius_m / (FILLED * torch.tensor(FIELD_OF_VIEW / 2).tan())

    def eyes_and_targets(self, state: Any) -> tuple[Points, Points]:
        """Return where each camera is and what it looks at, shape (worlds, 3) each [m]."""
        away = self._middles_of(state) - self._middles
        distance_m = away.norm(dim=1, keepdim=True)
        too_far_m = (distance_m - SLACK * self.radius_m).clamp(min=0)
        self._middles = self._middles + away * too_far_m / distance_m.clamp(min=1e-9)
        targets = self._middles + self._to_target
        return (targets + self._to_eye).tolist(), targets.tolist()

    def _middles_of(self, state: Any) -> torch.Tensor:
        return _positions(state)[self._bodies].mean(dim=1).cpu()


def _positions(state: Any) -> torch.Tensor:
    return warp.to_torch(state.body_q)[:, :3]


def _radius_m(model: Any, state: Any, bodies: torch.Tensor) -> float:
    """Radius of a sphere around the middle of these bodies that has all their visible shapes within it."""
    middle = _positions(state)[bodies].mean(dim=0)
    of_shape, flags = warp.to_torch(model.shape_body), warp.to_torch(model.shape_flags)
    shapes = (torch.isin(of_shape, bodies) & (flags & int(ShapeFlags.VISIBLE) != 0)).nonzero().squeeze(1)
    from_middle = (_positions(state)[of_shape[shapes]] - middle).norm(dim=1)
    offsets = warp.to_torch(model.shape_transform)[shapes, :3].norm(dim=1)
    return float((from_middle + offsets + warp.to_torch(model.shape_collision_radius)[shapes]).max())

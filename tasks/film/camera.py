"""Newton's ray-traced camera over the first worlds of a running simulation, and where it stands."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
import warp
from isaaclab_newton.physics.newton_manager import NewtonManager
from newton import ShapeFlags
from newton.sensors import SensorTiledCamera

FIELD_OF_VIEW: Final = 0.7  # vertical [rad]
BACKGROUND: Final = 0xFFF5F0EC  # ABGR
FLOOR: Final = (0.78, 0.80, 0.83)
BODIES: Final = ((0.16, 0.38, 0.62), (0.85, 0.37, 0.10), (0.20, 0.55, 0.40), (0.80, 0.65, 0.20))
DIRECTION: Final = (0.62, -0.62, 0.48)  # from the bodies to the camera
FILLED: Final = 0.8  # of half the picture's height, by the sphere around all bodies
SLACK: Final = 0.5  # of that sphere's radius: how far the bodies move before the camera follows


class NewtonCamera:
    """Looks at each of the first ``worlds`` worlds. It changes nothing that the simulation uses."""

    def __init__(self, *, worlds: int, width_px: int, height_px: int) -> None:
        self.model = _visible(NewtonManager.get_model())
        self.model.bvh_build_shapes(self.state)
        self._sensor = _sensor_of_first(self.model, worlds)
        self._sensor.utils.create_default_light()
        self._size_px = (worlds, height_px, width_px)
        self._rays = self._sensor.utils.compute_camera_rays_pinhole(width_px, height_px, camera_fovs=FIELD_OF_VIEW)
        self._color = self._sensor.utils.create_color_image_output(width_px, height_px)

    @property
    def state(self) -> Any:
        """The simulation's present state, which Newton keeps in two places by turns."""
        return NewtonManager.get_state_0()

    def picture(self, eyes: Sequence[Sequence[float]], targets: Sequence[Sequence[float]]) -> torch.Tensor:
        """Return what the camera sees from ``eyes`` towards ``targets``, a point [m] for each world; z is up.

        Bytes of red, green and blue on the CPU, shape (worlds, height, width, 3).
        """
        cameras = [_looking(eye, target) for eye, target in zip(eyes, targets, strict=True)]
        self.model.bvh_refit_shapes(self.state)
        self._sensor.update(
            self.state,
            warp.array([cameras], dtype=warp.transformf, device=self.model.device),
            self._rays,
            color_image=self._color,
            clear_data=SensorTiledCamera.ClearData(clear_color=BACKGROUND),
        )
        return torch.from_numpy(self._color.numpy().view("uint8")).reshape(*self._size_px, 4)[..., :3]


def _visible(model: Any) -> Any:
    """Return a copy in which the shapes that collide are seen and coloured, if a scene without camera hid them."""
    shown = copy.copy(model)
    flags, bodies = model.shape_flags.numpy(), model.shape_body.numpy()
    if not (flags[bodies >= 0] & ShapeFlags.VISIBLE).any():
        shown.shape_flags, shown.shape_color = warp.clone(model.shape_flags), warp.clone(model.shape_color)
        shown.shape_flags.assign(flags | int(ShapeFlags.VISIBLE))
        of_world = max(1, model.body_count // model.world_count)
        shown.shape_color.assign([FLOOR if body < 0 else BODIES[body % of_world % len(BODIES)] for body in bodies])
    return shown


def _sensor_of_first(model: Any, worlds: int) -> SensorTiledCamera:
    """Return a sensor that renders the first worlds only: it would render all of them, which may be many thousands."""
    first = copy.copy(model)
    first.world_count = worlds
    sensor = SensorTiledCamera(first, default_render_config=SensorTiledCamera.RenderConfig(enable_shadows=True))
    sensor.model = model
    return sensor


def _looking(eye: Sequence[float], target: Sequence[float]) -> Any:
    """Return a camera's transform at ``eye`` that looks to ``target``, shape (3,) each [m]; z is up."""
    ahead = warp.normalize(warp.vec3f(*target) - warp.vec3f(*eye))
    right = warp.normalize(warp.cross(ahead, warp.vec3f(0.0, 0.0, 1.0)))
    axes = warp.matrix_from_cols(right, warp.cross(right, ahead), -ahead)
    return warp.transformf(warp.vec3f(*eye), warp.quat_from_matrix(axes))


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
        self.radius_m = self._radius_m(model, state)
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
        return warp.to_torch(state.body_q)[self._bodies, :3].mean(dim=1).cpu()

    def _radius_m(self, model: Any, state: Any) -> float:
        """Radius of a sphere around the middle of the first world's bodies that has all their visible shapes in it."""
        bodies, positions = self._bodies[0], warp.to_torch(state.body_q)[:, :3]
        of_shape, flags = warp.to_torch(model.shape_body), warp.to_torch(model.shape_flags)
        shapes = (torch.isin(of_shape, bodies) & (flags & int(ShapeFlags.VISIBLE) != 0)).nonzero().squeeze(1)
        from_middle = (positions[of_shape[shapes]] - positions[bodies].mean(dim=0)).norm(dim=1)
        offsets = warp.to_torch(model.shape_transform)[shapes, :3].norm(dim=1)
        return float((from_middle + offsets + warp.to_torch(model.shape_collision_radius)[shapes]).max())

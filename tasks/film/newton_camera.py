"""Newton's ray-traced camera over the first worlds of a running simulation."""

import copy
from collections.abc import Sequence
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

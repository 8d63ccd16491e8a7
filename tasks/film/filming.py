"""Films the last seconds of a training, seen by rank 0, or serves it live to browsers, when the launch asks for it.

Such a run renders within its iterations, so it is a run of its own that nothing counts. Imports no torch.
"""

import importlib.metadata
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tasks.film.mp4 import mp4_of

if TYPE_CHECKING:  # PIL is imported only where something is filmed: each import is part of a start that is timed
    from PIL import Image

    from tasks.rank.context import RankContext
    from tasks.rank.simulation import Simulation

FILM_VARIABLE: Final = "LABSCALE_FILM"  # JSON object: ``eye`` and ``target`` of the task's own view [m], or empty
VIDEO_FILE: Final = "film.mp4"
POSTER_FILE: Final = "film.jpg"
FACTS_FILE: Final = "film.json"
WIDTH_PX: Final = 640
HEIGHT_PX: Final = 360
QUALITY: Final = 60  # of Pillow's AVIF encoder, up to 100
POSTER_QUALITY: Final = 80
SPEED: Final = 8  # of the encoder, up to 10
PACKAGES: Final = ("isaaclab", "newton", "warp-lang", "pillow")
LONGEST_S: Final = 5.0  # simulated
FRAMES_PER_S: Final = 30.0  # about: a frame is a whole number of steps
SIDES: Final = (2, 1)  # environments in a row and in a column of the picture
WATCH_VARIABLE: Final = "LABSCALE_WATCH"  # the port
HOST: Final = "127.0.0.1"  # viser itself would take every interface, and it asks nobody for a password
MOST_SHOWN: Final = 16  # environments


@contextmanager
def filmed(context: "RankContext", simulation: "Simulation") -> Iterator[None]:
    """Film the environment steps within this block if the launch asks for it, and write the files at its end.

    Raises:
        RuntimeError: no step was filmed.
    """
    asked = os.environ.get(FILM_VARIABLE)
    if asked is None or context.ranks.rank != 0:
        yield
        return
    film = _Film(context, simulation, json.loads(asked))
    env = simulation.env.unwrapped
    env.step = film.after(env.step)
    try:
        yield
    finally:
        del env.step
    film.write(context.run_dir)


class _Film:
    def __init__(self, context: "RankContext", simulation: "Simulation", view: Mapping[str, Sequence[float]]) -> None:
        from tasks.film.camera import Follower, NewtonCamera

        case, env = context.case, simulation.env.unwrapped
        self._schedule = Schedule(steps=case.iterations * case.num_steps_per_env, step_s=float(env.step_dt))
        self._side = next(side for side in SIDES if side * side <= env.num_envs)
        self.environments = self._side**2
        self._camera = NewtonCamera(
            worlds=self.environments, width_px=WIDTH_PX // self._side, height_px=HEIGHT_PX // self._side
        )
        self._follower = Follower(
            self._camera.model,
            self._camera.state,
            worlds=self.environments,
            view=view,
            origin=env.scene.env_origins[0].tolist(),
        )
        self._frames: list[Image.Image] = []
        self._step = 0

    def after(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``step`` with a frame taken after it when the schedule says so."""

        def filmed_step(*args: Any, **kwargs: Any) -> Any:
            result = step(*args, **kwargs)
            if self._schedule.is_filmed(self._step):
                self._frames.append(self._frame())
            self._step += 1
            return result

        return filmed_step

    def _frame(self) -> "Image.Image":
        from PIL import Image

        pictures = self._camera.picture(*self._follower.eyes_and_targets(self._camera.state))
        _, height_px, width_px, _ = pictures.shape
        rows = pictures.reshape(self._side, self._side, height_px, width_px, 3).permute(0, 2, 1, 3, 4)
        return Image.fromarray(rows.reshape(HEIGHT_PX, WIDTH_PX, 3).contiguous().numpy())

    def write(self, run_dir: Path) -> None:
        """Write the video, its last frame as a poster, and how they were made.

        Raises:
            RuntimeError: no step was filmed.
        """
        if not self._frames:
            raise RuntimeError(f"the training ended after {self._step} steps, before any was filmed")
        first, *others = self._frames
        encoded = io.BytesIO()
        first.save(encoded, "AVIF", save_all=True, append_images=others, quality=QUALITY, speed=SPEED, range="limited")
        frame_s = self._schedule.frame_s
        video = mp4_of(encoded.getvalue(), width_px=WIDTH_PX, height_px=HEIGHT_PX, frame_s=frame_s)
        (run_dir / VIDEO_FILE).write_bytes(video)
        self._frames[-1].save(run_dir / POSTER_FILE, "JPEG", quality=POSTER_QUALITY, optimize=True)
        facts = {
            "width_px": WIDTH_PX,
            "height_px": HEIGHT_PX,
            "frames": len(self._frames),
            "duration_s": len(self._frames) * frame_s,
            "environments": self.environments,
            "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        }
        (run_dir / FACTS_FILE).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


# ---- which steps are filmed: the last few seconds, as fast as they are simulated ----


class Schedule:
    """What is filmed of a training of ``steps`` environment steps of ``step_s`` simulated seconds.

    A frame is taken after every ``every`` steps, and lasts ``frame_s``.
    """

    def __init__(self, *, steps: int, step_s: float) -> None:
        self.every = min(max(1, round(1 / (FRAMES_PER_S * step_s))), steps)
        self.frame_s = self.every * step_s
        self._frames = min(steps // self.every, max(1, round(LONGEST_S / self.frame_s)))
        self._first_step = steps - self._frames * self.every

    def is_filmed(self, step: int) -> bool:
        """Whether a frame is taken after the step with this number."""
        into = step - self._first_step + 1
        return into > 0 and into % self.every == 0 and into // self.every <= self._frames


# ---- live, in a browser ----


def serve_if_asked(env_cfg: Any, *, rank: int) -> None:
    """Let the simulation of rank 0 be served if the launch asks for it. Isaac Lab starts the server."""
    port = os.environ.get(WATCH_VARIABLE)
    if port is None or rank != 0:
        return
    from isaaclab_visualizers.viser import ViserVisualizerCfg

    env_cfg.sim.visualizer_cfgs = [
        ViserVisualizerCfg(port=int(port), bind_address=HOST, display_address=HOST, max_visible_envs=MOST_SHOWN)
    ]

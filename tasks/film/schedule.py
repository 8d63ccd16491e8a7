"""Which environment steps of a training are filmed: the last few seconds, as fast as they are simulated. Pure."""

from dataclasses import dataclass
from typing import Final

LONGEST_S: Final = 5.0  # simulated
FRAMES_PER_S: Final = 30.0  # about: a frame is a whole number of steps
SIDES: Final = (2, 1)  # environments in a row and in a column of the picture


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """``first_step`` counts from 0; a frame is taken after every ``every`` steps from there on."""

    first_step: int
    every: int
    frames: int
    frame_s: float

    def is_filmed(self, step: int) -> bool:
        """Whether a frame is taken after the step with this number."""
        into = step - self.first_step + 1
        return into > 0 and into % self.every == 0 and into // self.every <= self.frames


def schedule(*, steps: int, step_s: float) -> Schedule:
    """Return what is filmed of a training of ``steps`` environment steps of ``step_s`` simulated seconds.

    Raises:
        ValueError: there is no step to film.
    """
    if steps < 1 or step_s <= 0:
        raise ValueError(f"{steps} steps of {step_s} s are nothing to film")
    every = min(max(1, round(1 / (FRAMES_PER_S * step_s))), steps)
    frames = min(steps // every, max(1, round(LONGEST_S / (every * step_s))))
    return Schedule(first_step=steps - frames * every, every=every, frames=frames, frame_s=every * step_s)


def side_of(num_envs: int) -> int:
    """Return how many environments are in a row of the picture, and in a column."""
    return next(side for side in SIDES if side * side <= num_envs)

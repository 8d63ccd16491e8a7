"""The control ``dataset_recording``: LeRobot writes what happens in rollouts to disk, as its data set.

Every iteration writes a data set of its own, with one episode for each environment, and removes it: all iterations do
the same, and none fills the disk.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import torch

from suite.schema.record import CheckResult
from tasks.checks import validity
from tasks.libraries.act_lerobot import OFFLINE, PICTURE, STATE, joints
from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation

NAME: Final = "labscale/recorded"  # on a hub it would have this address
CACHE: Final = "cache"  # folder of what is made to read a data set back
KIND: Final = "rgb"  # data type of the cameras that are recorded
ACTION: Final = "action"
BRIGHTEST: Final = 255  # LeRobot reads pictures back as shares of it

type Frame = dict[str, Any]  # of one step and all environments, or of one environment as LeRobot takes it


def record(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> None:
    """Run rollouts of drawn actions, and write each. After the last one, two frames are read back.

    ``lerobot.written_time_s`` is the time from the creation of a data set until it is complete on disk.
    """
    del settings
    case, timer, env = context.case, context.timer, simulation.env
    step = timer.environment_step.wrap(env.step)
    shape = (case.num_steps_per_env, case.num_envs, *env.unwrapped.single_action_space.shape)
    drawn = torch.rand(shape, device=context.device) * 2 - 1
    frames = case.num_envs * case.num_steps_per_env
    with _folder(context) as folder, torch.inference_mode():
        env.reset()
        features = _features(_seen(env.unwrapped, drawn[0]))
        for iteration in range(case.iterations):
            root = folder / str(iteration)
            timer.begin()
            steps = []
            for actions in drawn:
                steps.append(_seen(env.unwrapped, actions))
                step(actions)
            begun_s = time.perf_counter()
            data_set = _write(root, features, steps, fps=round(1 / env.unwrapped.step_dt), task=case.task)
            written_s = time.perf_counter() - begun_s
            timer.end_collection()
            timer.end()
            timer.write({"lerobot.written_time_s": written_s, "lerobot.bytes_per_frame": _size(root) / frames})
            if iteration == case.iterations - 1:
                wanted = {0: _of(steps[0], 0), frames - 1: _of(steps[-1], case.num_envs - 1)}
                context.checks.append(read_back(data_set, wanted))
            shutil.rmtree(root)


@contextmanager
def _folder(context: RankContext) -> Iterator[Path]:
    """Make an empty folder in that of the run, and remove it. LeRobot's own files are in it too."""
    with tempfile.TemporaryDirectory(dir=context.run_dir, prefix="recorded-") as name:
        os.environ |= {**OFFLINE, "HF_HOME": str(Path(name, CACHE))}  # read when LeRobot is imported
        yield Path(name)


def _seen(env: Any, actions: torch.Tensor) -> Frame:
    """Return what a step records of all environments: pictures of 8 bits, positions of joints, and actions.

    Raises:
        ValueError: the task has no camera with such pictures.
    """
    pictures = {view.name: view.pictures(drawn_anew=False) for view in validity.views_of(env)}
    found = {PICTURE.format(name): kinds[KIND].cpu().numpy() for name, kinds in pictures.items() if KIND in kinds}
    if not found:
        raise ValueError(f"its cameras ({', '.join(pictures) or 'none'}) have no {KIND} pictures to record")
    return {**found, STATE: joints(env).cpu().numpy(), ACTION: actions.cpu().numpy()}


def _features(seen: Frame) -> dict[str, Any]:
    """Describe a frame as LeRobot wants it. Pictures become PNG files in Parquet, which need no video codec."""
    of_numbers, of_pictures = ("float32", None), ("image", ["height", "width", "channels"])
    kinds = {name: of_numbers if name in (STATE, ACTION) else of_pictures for name in seen}
    return {
        name: {"dtype": dtype, "shape": seen[name].shape[1:], "names": names} for name, (dtype, names) in kinds.items()
    }


def _of(step: Frame, environment: int) -> Frame:
    return {name: values[environment] for name, values in step.items()}


def _write(root: Path, features: dict[str, Any], steps: Sequence[Frame], *, fps: int, task: str) -> Any:
    """Write an episode for each environment, and return LeRobot's data set, which is complete."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    data_set = LeRobotDataset.create(NAME, fps, features, root=root, use_videos=False)
    for environment in range(len(steps[0][ACTION])):
        for step in steps:
            data_set.add_frame({**_of(step, environment), "task": task})
        data_set.save_episode()
    data_set.finalize()
    return data_set


def _size(root: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def read_back(data_set: Any, wanted: Mapping[int, Frame]) -> CheckResult:
    """Check that these frames, by their index, come back as they were given."""
    differing = [
        f"{name} of frame {index}"
        for index, frame in wanted.items()
        for name, values in frame.items()
        if not torch.equal(_values(name, data_set[index][name]).reshape(values.shape), torch.as_tensor(values))
    ]
    return CheckResult(
        name="data set read back",
        feature="data set",
        verdict="failure" if differing else "ok",
        found=f"differing: {', '.join(differing)}" if differing else f"frames {', '.join(map(str, wanted))} are equal",
        fault="data_set_differs" if differing else None,
    )


def _values(name: str, read: torch.Tensor) -> torch.Tensor:
    """Return what LeRobot read in the form that it was given: pictures of shape (height, width, 3) and 8 bits."""
    return read if name in (STATE, ACTION) else (read * BRIGHTEST).round().to(torch.uint8).permute(1, 2, 0)

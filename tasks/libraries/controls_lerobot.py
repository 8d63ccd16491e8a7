"""The controls of LeRobot: ``policy_rollout``, whose policy chooses every action, and ``dataset_recording``.

The policy is ACT with the weights of its seed. It looks at the task's own pictures and at the positions of the joints,
without which LeRobot's ACT does not run.

The recording writes what happens in rollouts to disk, as LeRobot's data set. Every iteration writes a data set of its
own, with one episode for each environment, and removes it: all iterations do the same, and none fills the disk.
"""

import math
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch

from suite.schema.record import CheckResult
from tasks.checks import validity
from tasks.rank.context import RankContext
from tasks.rank.simulation import Simulation

OFFLINE: Final = {"HF_HUB_OFFLINE": "1"}  # LeRobot reads it when it is imported; nothing here is on a hub
PICTURE: Final = "observation.images.{}"  # LeRobot's name for the picture with this number, or of a camera
STATE: Final = "observation.state"  # and for what else is known of the robot
CHANNELS: Final = 3  # of a picture, as the policy's network wants them
RARE: Final = 0.99  # share of calls that are at most as long as the latency of rare ones
DATA_SET: Final = "labscale/recorded"  # on a hub it would have this address
CACHE: Final = "cache"  # folder of what is made to read a data set back
DATA_TYPE: Final = "rgb"  # data type of the cameras that are recorded
ACTION: Final = "action"
BRIGHTEST: Final = 255  # LeRobot reads pictures back as shares of it

type Frame = dict[str, Any]  # of one step and all environments, or of one environment as LeRobot takes it


def act(context: RankContext, simulation: Simulation, settings: dict[str, Any]) -> torch.nn.Module:
    """Run the case's rollouts, and return the policy. Every step asks it, for the actions of all environments at once.

    In marked iterations each call of it is timed.
    """
    del settings
    case, timer, env = context.case, context.timer, simulation.env
    observations, _ = env.reset()
    policy = seeded_policy(context, simulation)
    choose = timer.inference.wrap(policy.select_action)
    step = timer.environment_step.wrap(env.step)
    with torch.inference_mode():
        for _ in range(case.iterations):
            timer.begin()
            for _ in range(case.num_steps_per_env):
                observations, *_ = step(choose(pictures_in(observations) | {STATE: joints(env.unwrapped)}))
            timer.end_collection()
            timer.end()
            timer.write(latencies(timer.inference.calls_s))
    return policy


def seeded_policy(context: RankContext, simulation: Simulation) -> torch.nn.Module:
    """Return ACT for the task's pictures, joints and actions; its seed is that of the rank.

    It looks at every step (``n_action_steps``). By default it would play 100 actions from a queue that all environments
    share, and their episodes end at different steps. It has no weights of others, which are on a hub.

    Raises:
        ValueError: the task's policy observes something else than pictures of three channels.
    """
    os.environ |= OFFLINE

    from lerobot.configs.types import FeatureType, PolicyFeature
    from lerobot.policies.act.configuration_act import ACTConfig
    from lerobot.policies.act.modeling_act import ACTPolicy

    env = simulation.env.unwrapped
    observed = tuple(map(int, env.single_observation_space["policy"].shape))
    if len(observed) != CHANNELS or observed[0] % CHANNELS:
        raise ValueError(
            f"its policy observes {observed}; should be pictures of (channels, height, width) with a multiple of"
            f" {CHANNELS} channels"
        )
    channels, height, width = observed
    picture = PolicyFeature(type=FeatureType.VISUAL, shape=(CHANNELS, height, width))
    state = PolicyFeature(type=FeatureType.STATE, shape=tuple(joints(env).shape[1:]))
    actions = PolicyFeature(type=FeatureType.ACTION, shape=tuple(env.single_action_space.shape))
    config = ACTConfig(
        device=str(context.device),
        input_features={STATE: state} | {PICTURE.format(number): picture for number in range(channels // CHANNELS)},
        output_features={"action": actions},
        pretrained_backbone_weights=None,
        n_action_steps=1,
    )
    torch.manual_seed(context.seed)
    policy = ACTPolicy(config).to(context.device).eval()
    context.log.write("settings", settings={"lerobot.policy_parameters": sum(p.numel() for p in policy.parameters())})
    return policy


def pictures_in(observations: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return what the policy takes: pictures of shape (num_envs, 3, height, width), of which the task stacks some."""
    stacked = observations["policy"].split(CHANNELS, dim=1)
    return {PICTURE.format(number): picture for number, picture in enumerate(stacked)}


def joints(env: Any) -> torch.Tensor:
    """Return the positions of all joints [m or rad], shape (num_envs, joints)."""
    return torch.cat([asset.data.joint_pos.torch for asset in env.scene.articulations.values()], dim=1)


def latencies(calls_s: Sequence[float]) -> dict[str, float | None]:
    """Return the columns of an iteration [s]; None where its calls were not timed."""
    ordered = sorted(calls_s)
    values = (statistics.median(ordered), ordered[math.ceil(RARE * len(ordered)) - 1]) if ordered else (None, None)
    return dict(zip(("lerobot.latency_median_s", "lerobot.latency_p99_s"), values, strict=True))


# ---- recording ----


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
    with (
        tempfile.TemporaryDirectory(dir=context.run_dir, prefix="recorded-") as folder,
        torch.inference_mode(),
    ):
        os.environ |= {**OFFLINE, "HF_HOME": str(Path(folder, CACHE))}  # read when LeRobot is imported
        env.reset()
        features = _features(_recorded(env.unwrapped, drawn[0]))
        for iteration in range(case.iterations):
            root = Path(folder, str(iteration))
            timer.begin()
            steps = []
            for actions in drawn:
                steps.append(_recorded(env.unwrapped, actions))
                step(actions)
            begun_s = time.perf_counter()
            data_set = _write(root, features, steps, fps=round(1 / env.unwrapped.step_dt), task=case.task)
            written_s = time.perf_counter() - begun_s
            timer.end_collection()
            timer.end()
            size_bytes = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
            timer.write({"lerobot.written_time_s": written_s, "lerobot.bytes_per_frame": size_bytes / frames})
            if iteration == case.iterations - 1:
                wanted = {0: _of(steps[0], 0), frames - 1: _of(steps[-1], case.num_envs - 1)}
                context.checks.append(read_back(data_set, wanted))
            shutil.rmtree(root)


def _recorded(env: Any, actions: torch.Tensor) -> Frame:
    """Return what a step records of all environments: pictures of 8 bits, positions of joints, and actions.

    Raises:
        ValueError: the task has no camera with such pictures.
    """
    pictures = {view.name: view.pictures(drawn_anew=False) for view in validity.views_of(env)}
    recorded = {
        PICTURE.format(name): kinds[DATA_TYPE].cpu().numpy() for name, kinds in pictures.items() if DATA_TYPE in kinds
    }
    if not recorded:
        raise ValueError(f"its cameras ({', '.join(pictures) or 'none'}) have no {DATA_TYPE} pictures to record")
    return {**recorded, STATE: joints(env).cpu().numpy(), ACTION: actions.cpu().numpy()}


def _features(frame: Frame) -> dict[str, Any]:
    """Describe a frame as LeRobot wants it. Pictures become PNG files in Parquet, which need no video codec."""
    numbers: dict[str, Any] = {"dtype": "float32", "names": None}
    picture: dict[str, Any] = {"dtype": "image", "names": ["height", "width", "channels"]}
    return {
        name: {**(numbers if name in (STATE, ACTION) else picture), "shape": values.shape[1:]}
        for name, values in frame.items()
    }


def _of(step: Frame, environment: int) -> Frame:
    return {name: values[environment] for name, values in step.items()}


def _write(root: Path, features: dict[str, Any], steps: Sequence[Frame], *, fps: int, task: str) -> Any:
    """Write an episode for each environment, and return LeRobot's data set, which is complete."""
    from lerobot.datasets.lerobot_dataset import LeRobotDataset

    data_set = LeRobotDataset.create(DATA_SET, fps, features, root=root, use_videos=False)
    for environment in range(len(steps[0][ACTION])):
        for step in steps:
            data_set.add_frame({**_of(step, environment), "task": task})
        data_set.save_episode()
    data_set.finalize()
    return data_set


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

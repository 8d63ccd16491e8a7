"""Isaac Lab's training bundle of schema 1.4: every field with its type and range, under Isaac Lab's own names. Pure.

Isaac Lab fills in 0, 0.0 or "unknown" where it could not look; the properties below say None there. A bundle is written
by rank 0 alone: times, rates, learning, processor and memory are of its process.
"""

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION: Final = "1.4"
FORMAT: Final = f"Isaac Lab training bundle, schema {SCHEMA_VERSION}"

type Positive = Annotated[float, Field(gt=0)]
type NotNegative = Annotated[float, Field(ge=0)]
type Share = Annotated[float, Field(ge=0, le=1)]
type PositiveInt = Annotated[int, Field(gt=0)]
type Count = Annotated[int, Field(ge=0)]
type Text = Annotated[str, Field(min_length=1)]


class Part(BaseModel):
    """Nothing unknown, nothing converted, nothing that is not finite."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class MeanStd(Part):
    """Over the iterations, or over the samples of a sampler."""

    mean: NotNegative
    std: NotNegative
    peak: float | None = None


class Measured(MeanStd):
    """Of something that takes time, so that a mean of 0 is no measurement."""

    mean: Positive


class GpuDevice(Part):
    name: Text
    mem_gb: Positive
    compute_cap: Text


class Hardware(Part):
    hostname: str
    gpu_devices: tuple[GpuDevice, ...]
    cpu_name: str
    cpu_count: Count
    ram_gb: NotNegative


class Versions(Part):
    isaaclab: Text
    isaacsim: str | None
    kit: str | None
    newton: str | None
    warp: str | None
    mjwarp: str | None
    torch: Text
    rsl_rl: str | None
    rl_games: str | None
    skrl: str | None
    sb3: str | None
    git_commit: str | None
    git_branch: str | None
    git_dirty: bool
    numpy: str | None = None
    isaaclab_newton: str | None = None
    isaaclab_physx: str | None = None
    isaaclab_ov: str | None = None
    isaaclab_tasks: str | None = None
    isaaclab_rl: str | None = None
    ovrtx: str | None = None
    ovphysx: str | None = None
    mujoco: str | None = None
    cuda_bindings: str | None = None
    usd_core: str | None = None
    usd_exchange: str | None = None
    isaaclab_release: str | None = None


class RunConfig(Part):
    physics_backend: Literal["physx", "newton_mjwarp", "newton_kamino", "ovphysx"]
    rendering_backend: Literal["none", "isaacsim_rtx", "ovrtx", "newton"] = "none"
    presets: tuple[str, ...] = ()


class Run(Part):
    """``num_envs`` counts environments of all ranks."""

    run_id: Text
    framework: Literal["rsl_rl", "rl_games", "skrl", "sb3"]
    config: RunConfig
    task: Text
    seed: int
    start_time_utc: str
    end_time_utc: str
    duration_s: NotNegative
    status: Literal["completed", "interrupted", "crashed"]
    num_envs: PositiveInt
    max_iterations: PositiveInt | None = None


class StartupTime(Part):
    app_launch: NotNegative
    env_creation: NotNegative
    first_step: NotNegative
    python_imports: NotNegative | None = None
    task_config: NotNegative | None = None


class EnvironmentStepTiming(Part):
    environment_step_time_s: Measured
    environment_step_fps: Measured
    simulation_step_time_s: Measured | None
    outside_simulation_step_time_s: MeanStd | None
    outside_simulation_step_fraction: Share | None
    environment_step_calls: PositiveInt
    simulation_step_calls: PositiveInt | None
    measurement_mode: Literal["host_return", "serialized_synchronized"]
    warmup_steps: Count = 0


class Runtime(Part):
    """Means are over all iterations, the first ones included."""

    startup_time_s: StartupTime
    iterations_completed: PositiveInt
    total_wall_time_s: Positive
    steps_per_iteration: PositiveInt
    iteration_time_s: Measured
    collection_fps: Measured
    total_fps: Measured
    iterations_per_s: Measured
    environment_step_timing: EnvironmentStepTiming | None = None


class GpuResources(Part):
    util_pct: MeanStd
    mem_gb: MeanStd


class Resources(Part):
    gpu_util_pct: MeanStd
    gpu_mem_gb: MeanStd
    cpu_util_pct: MeanStd
    ram_gb: MeanStd
    devices: dict[str, GpuResources] = {}


class LearningCurve(Part):
    final_raw: float
    final_ema: float
    series_per_iter: tuple[float, ...] | None


class Learning(Part):
    ema_alpha: Share
    reward: LearningCurve
    ep_length: LearningCurve
    success_rate: LearningCurve | None = None


class Bundle(Part):
    run: Run
    versions: Versions
    hardware: Hardware
    runtime: Runtime
    resources: Resources
    learning: Learning
    success_rate: Share | None = None
    checkpoint_path: str | None = None
    video_path: str | None = None
    extra: dict[str, float | int | str | bool] | None = None
    schema_version: Literal["1.4"]

    @property
    def is_distributed(self) -> bool:
        return self._extra("distributed") is True

    @property
    def world_size(self) -> int:
        """Upstream names the ranks only where there are several processes."""
        return self._rank_field("world_size", 1)

    @property
    def num_nodes(self) -> int:
        return self._rank_field("num_nodes", 1)

    @property
    def num_envs_per_rank(self) -> int:
        return self._rank_field("num_envs_per_rank", self.run.num_envs)

    @property
    def steps_per_env(self) -> int:
        return self.runtime.steps_per_iteration // self.run.num_envs

    @property
    def labscale_case_id(self) -> str | None:
        """Of a bundle that labscale wrote beside its own samples."""
        found = self._extra("labscale_case_id")
        return found if isinstance(found, str) else None

    @property
    def started(self) -> datetime:
        return datetime.fromisoformat(self.run.start_time_utc)

    @property
    def gpu_util_pct(self) -> float | None:
        return self.resources.gpu_util_pct.mean if self._saw_gpus else None

    @property
    def gpu_mem_gb(self) -> float | None:
        return self.resources.gpu_mem_gb.mean if self._saw_gpus else None

    @property
    def ram_gb(self) -> float | None:
        """Of the process; 0 stands for no sampler."""
        return self.resources.ram_gb.mean or None

    @property
    def reward(self) -> float | None:
        """Smoothed, at the end."""
        return _final(self.learning.reward)

    @property
    def success(self) -> float | None:
        return None if self.learning.success_rate is None else _final(self.learning.success_rate)

    @property
    def environment_step_time_s(self) -> float | None:
        timing = self.runtime.environment_step_timing
        return None if timing is None else timing.environment_step_time_s.mean

    @property
    def hardware_text(self) -> str | None:
        """Without the host's name, which nobody needs to know."""
        names = [gpu.name for gpu in self.hardware.gpu_devices]
        if names:
            return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
        return known(self.hardware.cpu_name)

    @property
    def _saw_gpus(self) -> bool:
        return bool(self.hardware.gpu_devices and self.resources.devices)

    def _extra(self, name: str) -> Any:
        return (self.extra or {}).get(name)

    def _rank_field(self, name: str, alone: int) -> int:
        found = self._extra(name)
        return found if self.is_distributed and isinstance(found, int) else alone


def known(text: str) -> str | None:
    return None if text == "unknown" else text


def _final(curve: LearningCurve) -> float | None:
    """An empty series leaves zeros behind."""
    return None if curve.series_per_iter == () else curve.final_ema

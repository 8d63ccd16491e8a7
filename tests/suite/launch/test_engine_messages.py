"""What a person is to do after a message of a container engine, none of which is lost."""

import pytest

from suite.errors import ContainerError
from suite.external.docker_engine import Engine, next_step


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ("failed to discover GPU vendor from CDI: no known GPU vendor found", "nvidia-ctk cdi generate"),
        ("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all", "nvidia-ctk cdi generate"),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update",
            "Update the driver",
        ),
        ("nvidia-container-cli: requirement error: unsatisfied condition: driver>=570", "update its driver"),
        (
            "nvidia-container-cli: container error: failed to get device cgroup: bpf_prog_query(BPF_CGROUP_DEVICE)",
            "1.8",
        ),
        ("initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object", "nvidia-smi"),
        ("mount error: file creation failed: /merged/usr/lib/libnvidia-ml.so.1: file exists: unknown", "nox -s build"),
        ("unknown or invalid runtime name: nvidia", "nvidia-ctk runtime configure"),
        ("Unknown runtime specified nvidia", "nvidia-ctk runtime configure"),
        ('could not select device driver "" with capabilities: [[gpu]]', "nvidia-ctk runtime configure"),
        ("nvidia-container-cli: device error: 7: unknown device: unknown", "nvidia-smi -L"),
        ("nvidia-container-cli: initialization error: nvml error: driver/library version mismatch", "restart"),
        ("permission denied while trying to connect to the Docker daemon socket", "usermod -aG docker"),
        ("('Connection aborted.', PermissionError(13, 'Permission denied'))", "usermod -aG docker"),
        ('exec: "/a": permission denied: unknown', "otherwise"),
        ("something new", "otherwise"),
    ],
)
def test_the_next_step_after_a_message(said: str, step: str) -> None:
    assert step in next_step(said, "otherwise")


def test_an_engine_elsewhere_is_refused_with_what_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "ssh://ada@gpu01")
    with pytest.raises(ContainerError, match="DOCKER_HOST is ssh://ada@gpu01"):
        Engine.connect()

"""Messages of a container engine: the events of a build, and the next step for its errors. Pure."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from suite.errors import ContainerError

BUILD_LINES: Final = 30  # last lines of a failed build that its error quotes
_BUILT: Final = re.compile(r"Successfully built ([0-9a-f]{12,64})")
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")  # the stderr of a step is red

_CDI: Final = (
    "The host's list of GPUs for containers (CDI) is missing or older than its driver: run "
    "`sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml` on the engine's host, and restart the engine. "
    "`nvidia-ctk cdi list` shows the GPUs."
)
_RUNTIME: Final = (
    "The engine does not know NVIDIA's runtime: install the NVIDIA Container Toolkit on its host, run "
    "`sudo nvidia-ctk runtime configure --runtime=docker`, and restart the engine."
)
_SOCKET: Final = (
    "Your user may not use the engine's socket: run `sudo usermod -aG docker $USER` and log in again, or use a "
    "rootless engine."
)
# Part of an engine's message, in small letters -> the next step. The first part that the message contains counts.
_NEXT_STEPS: Final[Mapping[str, str]] = {
    "no known gpu vendor": _CDI,
    "gpu vendor from cdi": _CDI,
    "unresolvable cdi devices": _CDI,
    "cdi device injection failed": _CDI,
    "could not select device driver": (
        "The engine cannot give GPUs to containers: install the NVIDIA Container Toolkit on its host, run "
        "`nvidia-ctk runtime configure --runtime=docker`, and restart the engine."
    ),
    "invalid runtime name": _RUNTIME,
    "unknown runtime specified": _RUNTIME,
    'exec: "nvidia-container-runtime': _RUNTIME,
    "unsatisfied condition: cuda": (
        "The image needs a newer CUDA than the driver of the engine's host has: `nvidia-smi` there shows its CUDA. "
        "Update the driver, or take an image of an older labscale."
    ),
    "unsatisfied condition": "The image does not run on the driver or GPU of the engine's host: update its driver.",
    "bpf_prog_query": (
        "The NVIDIA Container Toolkit on the engine's host is too old for its kernel: update it to 1.8 or newer (with "
        "libnvidia-container), and restart the engine. A rootless engine wants no-cgroups = true in "
        "/etc/nvidia-container-runtime/config.toml."
    ),
    "libnvidia-ml.so.1: file exists": (
        "The image itself has files of a driver, which the toolkit cannot mount over: it was built or committed while "
        "NVIDIA's runtime was the engine's default. Build it without that: `nox -s build`."
    ),
    "load library failed: libnvidia-ml": (
        "The engine's host has no NVIDIA driver that the toolkit finds: `nvidia-smi` must work there. An engine from "
        "snap, or Docker Desktop on Linux, does not see the host's driver: take Docker's own packages."
    ),
    "driver/library version mismatch": "The driver was updated while it was loaded: restart the engine's host.",
    "no space left on device": "The engine's disk is full: `docker system df` shows what takes it.",
    "too many requests": "The registry limits downloads: log in with `docker login`, or wait.",
    "toomanyrequests": "The registry limits downloads: log in with `docker login`, or wait.",
    "unknown device": "No such GPU: `nvidia-smi -L` on the engine's host lists those that are there.",
    "error setting rlimit": (
        "The engine may not raise this limit (it lacks CAP_SYS_RESOURCE). Leave the ulimit option out."
    ),
    "nvml error": "The driver of the engine's host does not work: `nvidia-smi` and `dmesg | grep NVRM` there say why.",
    "nvidia-container-cli": "The toolkit cannot reach the GPUs: `nvidia-smi` must work on the engine's host first.",
    "permissionerror(13": _SOCKET,
    "permission denied while trying to connect": _SOCKET,
    "connect: permission denied": _SOCKET,
    "pull access denied": "Log in to the registry with `docker login`, or check the image's name.",
    "unauthorized": "Log in to the registry with `docker login`; NVIDIA's wants an NGC API key.",
    "no such host": "The engine's host has no way to the registry: load the image there with `docker load`.",
}


def follow_build(events: Iterable[Mapping[str, Any]], on_line: Callable[[str], None]) -> str:
    """Pass on the output of a build, line by line, and return the id of its image.

    Raises:
        ContainerError: a step failed (the message has the last lines of the build), or there is no image.

    """
    last: deque[str] = deque(maxlen=BUILD_LINES)
    image_id = None
    for event in events:
        if "error" in event:
            said = "\n".join(last)
            raise ContainerError(
                f"The image was not built: {event['error'].strip()}. The last lines of the build:\n{said}\n"
                + next_step(event["error"], "Correct what the last step says and build again; the others are cached.")
            )
        image_id = _image_id(event) or image_id
        for line in _lines(event):
            last.append(line)
            on_line(line)
    if image_id is None:
        raise ContainerError("The engine ended the build without an error and without an image. See its own log.")
    return image_id


def next_step(said: str, otherwise: str) -> str:
    return next((step for sign, step in _NEXT_STEPS.items() if sign in said.lower()), otherwise)


def _image_id(event: Mapping[str, Any]) -> str | None:
    if isinstance(aux := event.get("aux"), Mapping) and "ID" in aux:
        return str(aux["ID"])
    found = _BUILT.search(event.get("stream", ""))
    return found[1] if found else None


def _lines(event: Mapping[str, Any]) -> list[str]:
    """Return the lines of one event of a build, without progress bars of a pull."""
    text = event.get("stream") or ("" if event.get("progressDetail") else event.get("status", ""))
    return [line for line in map(str.rstrip, _COLOUR.sub("", str(text)).splitlines()) if line]

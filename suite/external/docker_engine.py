"""Talks to the container engine through the docker SDK, which no other file imports. Errors become ContainerErrors."""

import contextlib
import io
import os
import re
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Self

import psutil

from suite.errors import ContainerError
from suite.external.container_spec import GPU_CAPABILITIES, IMAGE_NAME, OWNER_LABEL, ContainerSpec, ImageFacts

# Functions import the SDK when they need it: it would take a sixth of the time of `plan`.
if TYPE_CHECKING:
    import docker
    from docker.models.containers import Container as DockerContainer

CALL_TIMEOUT_S: Final = 120.0  # of one call; builds and waits have none
EVENTS_OF_S: Final = 24 * 3600  # age of the oldest events that are requested; the engine keeps a few hundred
_ENDED: Final = ("exited", "dead", "stopped")  # podman says stopped
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


class Engine:
    """A Docker engine, or podman through its Docker API; see ``connect``."""

    def __init__(self, client: "docker.DockerClient") -> None:
        self._client = client
        with _refusals("asking the container engine for its version"):
            version: dict[str, Any] = client.version()
            security: Sequence[str] = client.info().get("SecurityOptions") or ()
        components = [str(component.get("Name")) for component in version.get("Components") or ()]
        self.is_podman = any("podman" in name.lower() for name in components)
        self.is_rootless = any("rootless" in option for option in security)
        self.name = f"{'podman' if self.is_podman else 'Docker'} {version.get('Version')}"

    @classmethod
    def connect(cls) -> Self:
        """Connect to the engine that DOCKER_HOST names, or to the machine's own.

        Raises:
            ContainerError: no engine answers, or DOCKER_HOST is not an address.

        """
        address = os.environ.get("DOCKER_HOST", "")
        if address.startswith("ssh://"):
            raise ContainerError(
                f"DOCKER_HOST is {address}, an engine elsewhere: it would not see the folders of this machine that a "
                "container needs. Run the same command on that host, or unset DOCKER_HOST to use this machine's engine."
            )

        import docker  # noqa: PLC0415

        with _refusals("connecting to a container engine"):
            try:
                client = docker.from_env(timeout=int(CALL_TIMEOUT_S))
            except ValueError as error:  # the SDK does not check everything itself
                raise docker.errors.DockerException(f"DOCKER_HOST is no address: {error}") from error
        return cls(client)

    def find_image(self, reference: str) -> ImageFacts:
        """Find an image, never pulled: only those that are here on purpose run. Raises ContainerError without it."""
        if not IMAGE_NAME.fullmatch(reference):  # it becomes part of the engine's address
            raise ContainerError(
                f"{reference!r} is no name of an image; allowed is [HOST[:PORT]/]NAME[:TAG][@DIGEST], the name in small"
                " letters, or an id."
            )
        with _refusals(f"looking for the image {reference}"):
            attributes = self._client.images.get(reference).attrs
        return ImageFacts(
            image_id=attributes["Id"],
            tags=tuple(attributes.get("RepoTags") or ()),
            repo_digests=tuple(attributes.get("RepoDigests") or ()),
            labels=(attributes.get("Config") or {}).get("Labels") or {},
        )

    def registry_digest(self, reference: str) -> str:
        """Ask the registry for a tag's current digest, without pulling the image."""
        with _refusals(f"asking the registry for the digest of {reference}"):
            return str(self._client.images.get_registry_data(reference).id)

    def build(
        self,
        context: bytes,
        *,
        build_args: Mapping[str, str],
        labels: Mapping[str, str],
        target: str | None = None,
        network: str | None = None,
        on_line: Callable[[str], None],
    ) -> str:
        """Build the ``Dockerfile`` in a tar archive and return the id of the untagged image.

        Raises:
            ContainerError: a step failed; the message has the last lines of the build.

        """
        with _refusals("building the image"):
            events = self._client.api.build(
                fileobj=io.BytesIO(context),
                custom_context=True,
                encoding=None,
                buildargs=dict(build_args),
                labels=dict(labels),
                target=target or "",
                network_mode=network,
                rm=True,
                forcerm=True,
                decode=True,
            )
            image_id = follow_build(events, on_line)
        return self.find_image(image_id).image_id

    def tag(self, image_id: str, name: str) -> None:
        """Name an image ``repository:tag``; another image with this name loses it."""
        repository, _, tag = name.rpartition(":")
        with _refusals(f"tagging {image_id} as {name}"):
            self._client.images.get(image_id).tag(repository, tag)

    def run_to_end(self, spec: ContainerSpec, *, timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Run a container to its end, remove it and return its output.

        Raises:
            ContainerError: the engine refuses, or the container does not end within ``timeout_s``.

        """
        with self.container(spec) as container:
            container.start()
            deadline_s = time.monotonic() + timeout_s
            while (exit_code := container.exit_code(wait_s=0.05)) is None:
                if time.monotonic() > deadline_s:
                    raise ContainerError(
                        f"{' '.join(spec.argv)!r} did not end within {timeout_s:g} s in {spec.image}. It said:\n"
                        f"{container.output().strip()}"
                    )
            stdout, stderr = container.output(stderr=False), container.output(stdout=False)
            return subprocess.CompletedProcess(spec.argv, exit_code, stdout, stderr)

    @contextlib.contextmanager
    def container(self, spec: ContainerSpec) -> Iterator["Container"]:
        """Create a container, and remove it in any case: after a failed start, an error or Ctrl-C.

        It is removed by its name, which is known before the engine answers.
        """
        try:
            with _refusals(f"creating a container of {spec.image}"):
                created = self._client.containers.create(spec.image, **_arguments(spec))
            yield Container(created, self._client.api)
        finally:
            self.remove(spec.name)

    def remove(self, name: str) -> None:
        """Kill and remove a container, if it exists."""
        from docker import errors  # noqa: PLC0415

        with _refusals(f"removing the container {name} (try `docker rm --force {name}`)"):
            try:
                self._client.api.remove_container(name, force=True, v=True)
            except errors.NotFound:
                return
            except errors.APIError as error:
                if "already in progress" not in str(error):
                    raise

    def owners(self) -> dict[str, str]:
        """Return the name of every labscale container here with its owner label."""
        with _refusals("listing containers"):
            entries = self._client.api.containers(all=True, filters={"label": OWNER_LABEL})
        return {entry["Names"][0].lstrip("/"): entry["Labels"][OWNER_LABEL] for entry in entries}


class Container:
    """One container of ``Engine.container``."""

    def __init__(self, container: "DockerContainer", api: "docker.APIClient") -> None:
        self._container = container
        self._api = api
        self._state: dict[str, Any] = {}

    def start(self) -> None:
        with _refusals("starting the container"):
            self._container.start()

    def exit_code(self, wait_s: float) -> int | None:
        """Return the exit code, negative for a signal; None, after ``wait_s``, while the container runs."""
        with _refusals("asking for the state of the container"):
            self._container.reload()
        self._state = self._container.attrs["State"]
        if self._state["Status"] in _ENDED:
            code = int(self._state["ExitCode"])
            return 128 - code if code > 128 else code  # noqa: PLR2004  shells and inits add 128 to a signal's number
        time.sleep(wait_s)
        return None

    def was_out_of_memory(self) -> bool:
        """Whether the kernel killed one of its processes at the memory limit; podman does not tell.

        The engine may learn that after the end of the container. Then only its events show it.
        """
        if self._state.get("OOMKilled"):
            return True
        with _refusals("asking for the events of the container"):
            now_s = int(time.time())
            events = self._api.events(
                since=now_s - EVENTS_OF_S,
                until=now_s + 1,
                filters={"container": self._container.id, "event": "oom"},
                decode=True,
            )
            return any(True for _ in events)

    def execute(self, argv: Sequence[str]) -> None:
        """Run a short program inside for its effect, unless the container has ended."""
        from docker import errors  # noqa: PLC0415

        with _refusals(f"running {argv[0]} in the container"):
            try:
                self._container.exec_run(list(argv))
            except errors.APIError as error:
                if error.status_code != HTTPStatus.CONFLICT:
                    raise

    def stop(self, grace_s: float) -> None:
        """Send SIGTERM, and SIGKILL after ``grace_s``, unless the container has ended."""
        with _refusals("stopping the container"):
            self._container.stop(timeout=max(1, round(grace_s)))

    def output(self, *, stdout: bool = True, stderr: bool = True) -> str:
        with _refusals("reading the container's output"):
            content: bytes = self._container.logs(stdout=stdout, stderr=stderr)
        return content.decode(errors="replace")


def _arguments(spec: ContainerSpec) -> dict[str, Any]:
    from docker import types  # noqa: PLC0415

    arguments: dict[str, Any] = {
        "name": spec.name,
        "entrypoint": list(spec.argv[:1]),
        "command": list(spec.argv[1:]),
        "environment": dict(spec.env),
        "user": spec.user,
        "working_dir": spec.working_dir,
        "mounts": [
            types.Mount(target=folder, source=folder, type="bind", read_only=mode == "ro")
            for folder, mode in spec.folders.items()
        ],
        "network_mode": spec.network,
        "ipc_mode": spec.ipc,
        "shm_size": spec.shm_bytes,
        "mem_limit": spec.memory_bytes,
        "memswap_limit": spec.memory_bytes,  # no swap, which would only look like a slow run
        "labels": {**spec.labels, **owner_label()},
        "init": True,  # reaps torchrun's orphans and forwards signals
        "detach": True,
    }
    if spec.gpus is not None:
        chosen: dict[str, Any] = {"count": -1} if spec.gpus == "all" else {"device_ids": list(spec.gpus)}
        arguments["device_requests"] = [types.DeviceRequest(capabilities=[list(GPU_CAPABILITIES)], **chosen)]
    return arguments


@contextlib.contextmanager
def _refusals(doing: str) -> Iterator[None]:
    import requests  # noqa: PLC0415
    from docker import errors  # noqa: PLC0415

    try:
        yield
    except errors.ImageNotFound as error:
        raise ContainerError(
            f"{doing}: the engine does not have it. Build it with `nox -s build`, or load it with `docker load`."
        ) from error
    except errors.APIError as error:
        message = str(error.explanation or error)
        raise ContainerError(
            f"{doing}: the engine says: {message.strip()}\n{step_after_refusal(message, 'Its log has more.')}"
        ) from error
    except (errors.DockerException, requests.RequestException) as error:
        otherwise = (
            "Start the engine, or set DOCKER_HOST to its address, for example "
            "unix:///run/user/1000/podman/podman.sock; your user needs access to that socket."
        )
        raise ContainerError(f"{doing}: {error}. {step_after_refusal(str(error), otherwise)}") from error


def owner_label() -> dict[str, str]:
    """Return the label of every container that this process creates; the next labscale removes those of a dead one."""
    started_s = psutil.Process().create_time()
    return {OWNER_LABEL: f"{socket.gethostname()} {os.getpid()} {started_s:.2f}"}


def is_gone(owner: str) -> bool:
    """Whether the process in a label no longer runs; False for processes of other hosts, which are unknown."""
    host, pid, started_s = owner.split(" ")
    if host != socket.gethostname():
        return False
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" != started_s
    except psutil.NoSuchProcess:
        return True


def remove_abandoned(engine: Engine) -> list[str]:
    """Remove the containers whose owner is gone; return their names."""
    names = [name for name, owner in engine.owners().items() if is_gone(owner)]
    for name in names:
        engine.remove(name)
    return names


def follow_build(events: Iterable[Mapping[str, Any]], on_line: Callable[[str], None]) -> str:
    """Pass on the output of a build, line by line, and return the id of its image.

    Raises:
        ContainerError: a step failed (the message has the last lines of the build), or there is no image.

    """
    last: deque[str] = deque(maxlen=BUILD_LINES)
    image_id = None
    for event in events:
        if "error" in event:
            lines = "\n".join(last)
            otherwise = "Correct what the last step says and build again; the others are cached."
            raise ContainerError(
                f"The image was not built: {event['error'].strip()}. The last lines of the build:\n{lines}\n"
                + step_after_refusal(event["error"], otherwise)
            )
        image_id = _image_id(event) or image_id
        for line in _lines(event):
            last.append(line)
            on_line(line)
    if image_id is None:
        raise ContainerError("The engine ended the build without an error and without an image. See its own log.")
    return image_id


def step_after_refusal(message: str, otherwise: str) -> str:
    return next((step for sign, step in _NEXT_STEPS.items() if sign in message.lower()), otherwise)


def _image_id(event: Mapping[str, Any]) -> str | None:
    if isinstance(aux := event.get("aux"), Mapping) and "ID" in aux:
        return str(aux["ID"])
    built = _BUILT.search(event.get("stream", ""))
    return built[1] if built else None


def _lines(event: Mapping[str, Any]) -> list[str]:
    """Return the lines of one event of a build, without progress bars of a pull."""
    text = event.get("stream") or ("" if event.get("progressDetail") else event.get("status", ""))
    return [line for line in map(str.rstrip, _COLOUR.sub("", str(text)).splitlines()) if line]

"""What labscale and the processes that it starts agree on: files, answers, turns, and environment variables.

Processes of the worker read this file, so it imports the standard library only.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from suite.schema.record import ROUND_VARIABLE, Case
from suite.schema.stored import plain, stored_name

CONFIGURATION_FILE: Final = "configuration.json"


def text_of(case: Case) -> str:
    return json.dumps(plain(case), indent=1) + "\n"


def read_configuration(run_dir: Path) -> Case:
    """Read the launcher's case; JSON's lists become tuples again."""
    stored: dict[str, Any] = json.loads((run_dir / CONFIGURATION_FILE).read_text(encoding="utf-8"))
    values: dict[str, Any] = {item.name: stored[stored_name(item.name)] for item in fields(Case)}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Case(**{**values, **lists})


def round_of(case: Case, environ: Mapping[str, str]) -> int:
    """Return the round that this process belongs to; 0 if nothing in the case depends on it.

    Raises:
        KeyError: the case has a seed for each round, and the launcher did not pass the round on.
    """
    return int(environ[ROUND_VARIABLE]) if case.seed_per_round else 0


# ---- how a launch ended, which launchers and their registry import ----


EndedBy = Literal["timeout", "hung", "lost", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class LaunchResult:
    """How the processes of one round ended; their measurements are in the run directory.

    ``ended_by`` says why labscale or a scheduler ended the run; it is None if the run ended by itself. ``exit_code`` is
    torchrun's, negative if a signal ended it.
    """

    exit_code: int
    ended_by: EndedBy | None
    started_utc: str  # ISO 8601
    wall_time_s: float  # launch to last process gone
    out_of_memory: bool = False  # a process was killed at the memory limit of a container or job
    oom_kills: int | None = None  # processes of the machine that the kernel killed for lack of memory meanwhile
    why: str | None = None  # why it ended or failed, if the launcher knows more than the case and the ranks
    image_digest: str | None = None  # of the container image, sha256:…; None without an image
    nodes: tuple[str, ...] = ()  # names of its machines, node 0 first, to remove them from stored messages


# ---- answers on standard output, where wrappers, start-up files and packages may print too ----


MARK: Final = "labscale answers: "


def answer_line(answer: object) -> str:
    """Return the answer as a line of its own, even if somebody left half a line before it."""
    return f"\n{MARK}{json.dumps(answer)}\n"


def last_answer(output: str) -> Any:
    """Return the last whole answer in ``output``, or None. A process that dies may leave half a line."""
    for line in reversed(output.splitlines()):
        if line.startswith(MARK):
            try:
                return json.loads(line.removeprefix(MARK))
            except (ValueError, RecursionError):
                continue
    return None


# ---- turns: rounds that start together and are measured one at a time ----


TURNS_VARIABLE: Final = "LABSCALE_TURNS"  # of a rank's environment: the keeper's socket, relative to the run directory
TURNS_SOCKET: Final = "turns.socket"
FIRST_ITERATIONS: Final = 2  # run as soon as the rank can: they compile and warm up
READY: Final = b"ready\n"  # a rank asks for a turn; the answer is a number of iterations and a newline


# ---- environment variables of a rank ----


# Read by what a rank runs, and able to change how fast it is. They go wherever the rank runs: into images, to nodes.
_SETTINGS: Final = re.compile(
    "(NCCL|NVSHMEM|GLOO|UCX|FI|OFI|RDMAV|MLX5|SHARP|PYTORCH|TORCH|TORCHINDUCTOR|TORCHDYNAMO|TRITON|ATEN|CUDA|CUBLAS"
    "|CUBLASLT|CUDNN|CUSPARSE|CUSOLVER|OMP|KMP|GOMP|MKL|DNNL|ONEDNN|OPENBLAS|BLIS|VECLIB|NUMEXPR|XLA|JAX|WARP|NEWTON"
    "|MUJOCO|MJ|PXR|PHYSX|MALLOC|MIMALLOC|TCMALLOC|LP|MESA|__GL)_.*|AT_PARALLEL_.*|TF_(CPP|XLA|GPU|CUDNN|FORCE|NUM)_.*"
    "|NVIDIA_TF32_OVERRIDE|MALLOC_CONF|GLIBC_TUNABLES"
)
# These decide too what runs, by paths of one machine, so they stay there.
_SETTINGS_OF_MACHINE: Final = re.compile(
    "LD_(PRELOAD|LIBRARY_PATH|AUDIT|BIND_.*)|(VK|__EGL|__GLX|EGL|LIBGL|GALLIUM)_.*|__VK_LAYER.*|PYOPENGL_PLATFORM"
)
# What labscale itself sets for a rank (``suite.matrix.plan``, launchers, torchrun), and what names a place of this
# machine and decides nothing. A variable that is nowhere in this file does not reach a rank.
_OTHERS: Final = re.compile(
    "LABSCALE_.*|PATH|HOME|USER|LOGNAME|SHELL|HOSTNAME|TERM|LANG|LANGUAGE|LC_.*|TZ|TMPDIR|TEMP|TMP|XDG_.*|DISPLAY"
    "|XAUTHORITY|WAYLAND_DISPLAY|KRB5CCNAME|NIX_.*|CC|CXX|CPATH|LIBRARY_PATH"
    "|(?i:(https?|all|no)_proxy)|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    "|ISAAC.*|OMNI_.*|CARB_.*|EXP_PATH|ACCEPT_EULA|PRIVACY_CONSENT|NVIDIA_(VISIBLE_DEVICES|DRIVER_CAPABILITIES)"
    "|PYTHON(PATH|SAFEPATH|DONTWRITEBYTECODE|UNBUFFERED|FAULTHANDLER|UTF8)|HYDRA_FULL_ERROR|GIT_PYTHON_REFRESH"
    "|NCCL_HOSTID|TORCH_NCCL_ASYNC_ERROR_HANDLING|(OMP|MKL|OPENBLAS)_NUM_THREADS|PXR_WORK_THREAD_LIMIT"
    "|(WARP_CACHE|CUDA_CACHE)_PATH|(TORCHINDUCTOR|TRITON)_CACHE_DIR|CUDA_(VISIBLE_DEVICES|DEVICE_ORDER)"
    "|(CUDA|NCCL)_VERSION|CUDA_(HOME|PATH|ROOT|BIN_PATH|INC_PATH|LIB_PATH)|CUDA_MPS_(PIPE|LOG)_DIRECTORY"
    "|TORCH_(HOME|EXTENSIONS_DIR)"
)
_SECRET: Final = re.compile("PASS|SECRET|TOKEN|CREDENTIAL|KEY", re.IGNORECASE)
_FOLDERS: Final = re.compile(r"[^\s:;,=]*/(?=[^\s:;,=/])")  # before the last name of a path


def travelling(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings that the user gave and that a rank gets wherever it runs."""
    return {name: value for name, value in sorted(environ.items()) if _decides(name) and _SETTINGS.fullmatch(name)}


def recorded(environ: Mapping[str, str]) -> dict[str, str]:
    """All settings that the user gave, for records and to compare campaigns; paths without their folders."""
    return {name: _FOLDERS.sub("", value) for name, value in sorted(environ.items()) if _decides(name)}


def of_rank(environ: Mapping[str, str]) -> dict[str, str]:
    """What of ``environ`` a rank on this machine gets."""
    return {name: value for name, value in environ.items() if _OTHERS.fullmatch(name) or _decides(name)}


def _decides(name: str) -> bool:
    is_setting = _SETTINGS.fullmatch(name) or _SETTINGS_OF_MACHINE.fullmatch(name)
    return bool(is_setting and not _OTHERS.fullmatch(name) and not _SECRET.search(name))

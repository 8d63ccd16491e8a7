"""Which environment variables a rank has: settings that stand in its record, what a program needs here, and no others.

A rank would else depend on the shell from which it was started, unseen. Pure.
"""

import re
from collections.abc import Mapping
from typing import Final

# Read by what a rank runs, and able to change how fast it is. They go wherever the rank runs: into images, to nodes.
_SETTINGS: Final = re.compile(
    "(NCCL|GLOO|UCX|FI|OFI|RDMAV|MLX5|SHARP|PYTORCH|TORCH|TORCHINDUCTOR|TORCHDYNAMO|TRITON|ATEN|CUDA|CUBLAS|CUBLASLT"
    "|CUDNN|CUSPARSE|CUSOLVER|OMP|KMP|GOMP|MKL|DNNL|ONEDNN|OPENBLAS|BLIS|VECLIB|NUMEXPR|XLA|JAX|WARP|NEWTON|MUJOCO"
    "|MJ|PXR|PHYSX|MALLOC|MIMALLOC|TCMALLOC|LP|MESA|__GL)_.*|AT_PARALLEL_.*|TF_(CPP|XLA|GPU|CUDNN|FORCE|NUM)_.*"
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

"""Counts the kernels that were compiled while a rank trained: new files in the caches of its node."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# Caches of Warp, Triton and torch's Inductor. What the driver compiles of Warp's PTX is in another one.
CACHES: Final = ("WARP_CACHE_PATH", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
COMPILED: Final = frozenset({".cubin", ".ptx", ".o", ".so"})  # of Warp for GPUs and CPUs, Triton, Inductor for CPUs


def compiled_kernels(environ: Mapping[str, str]) -> frozenset[Path] | None:
    """Files of compiled kernels; None if the environment names no cache."""
    roots = [Path(environ[name]) for name in CACHES if environ.get(name)]
    if not roots:
        return None
    return frozenset(
        Path(folder, name)
        for root in roots
        for folder, _, names in os.walk(root)
        for name in names
        if Path(name).suffix in COMPILED
    )


def compiled_since(before: frozenset[Path] | None, environ: Mapping[str, str]) -> int | None:
    """Number of files that were not there ``before``; None if unknown."""
    now = compiled_kernels(environ)
    return None if before is None or now is None else len(now - before)

"""How many kernels were compiled while a rank trained, by what appeared in the caches of its node."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# By Warp, Triton and torch's Inductor. What the driver compiles of Warp's PTX lies beside them and goes with it.
CACHES: Final = ("WARP_CACHE_PATH", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
COMPILED: Final = frozenset({".cubin", ".ptx", ".o", ".so"})  # Warp for GPUs and CPUs, Triton, Inductor for CPUs


def compiled_kernels(environ: Mapping[str, str]) -> frozenset[Path] | None:
    """The files of compiled kernels; None where no cache is named, so that nothing can be said."""
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
    """How many files were not there ``before``; None where that is not known."""
    now = compiled_kernels(environ)
    return None if before is None or now is None else len(now - before)

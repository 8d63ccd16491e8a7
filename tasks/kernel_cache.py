"""Which compiled kernels lie in the caches of a node, so that what a round added shows whether its start was cold."""

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

"""Counts what was compiled while a rank trained, in two ways.

Of kernels: new files in the caches of its node, by whichever rank and compiler. Of Warp's modules: the calls in which
this process compiled one, and their time. Neither has what the driver compiles of PTX.
"""

import functools
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

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


class WarpCompilation:
    """What Warp compiled in this process since ``watch``; both figures are None if that cannot be known.

    Source: the return value of ``warp.Module._compile`` (Warp 1.17), "True if compilation was performed, False if a
    cached binary already exists". ``Module.load`` calls it, and prints "(compiled)" or "(cached)" by it. Warp has no
    public counter.
    """

    modules: int | None = None
    time_s: float | None = None  # generation of code and compilation of these modules, without loading them

    def watch(self, module: Any) -> None:
        """Wrap the method of the class ``warp.Module``. Another Warp may not have it: then nothing is known."""
        compile_module = getattr(module, "_compile", None)
        if compile_module is None:
            return
        self.modules, self.time_s = 0, 0.0

        @functools.wraps(compile_module)
        def timed(*args: Any, **kwargs: Any) -> Any:
            start_s = time.perf_counter()
            compiled = compile_module(*args, **kwargs)
            self._count(compiled, time.perf_counter() - start_s)
            return compiled

        module._compile = timed  # noqa: SLF001

    def _count(self, compiled: object, time_s: float) -> None:
        if not isinstance(compiled, bool):  # another Warp may return nothing: once unknown, always unknown
            self.modules = self.time_s = None
        elif compiled and self.modules is not None and self.time_s is not None:
            self.modules += 1
            self.time_s += time_s

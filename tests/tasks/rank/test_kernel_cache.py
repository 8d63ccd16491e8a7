"""What counts as a compiled kernel, on folders as Warp, Triton and Inductor leave them."""

from pathlib import Path
from typing import Any

from tasks.rank.kernel_cache import CACHES, WarpCompilation, compiled_kernels, compiled_since


def test_compiled_files_count_and_what_lies_beside_them_does_not(tmp_path: Path) -> None:
    warp, triton = tmp_path / "warp" / "1.17.0" / "wp_solver_a1b2", tmp_path / "triton" / "HASH"
    for folder in (warp, triton):
        folder.mkdir(parents=True)
    environ = {"WARP_CACHE_PATH": str(tmp_path / "warp"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    assert compiled_kernels(environ) == frozenset()
    made = frozenset(
        {warp / "wp_solver.sm90.ptx", warp / "wp_solver.o", triton / "triton_.cubin", triton / "launcher.so"}
    )
    for path in (*made, warp / "wp_solver.cu", warp / "wp_solver.meta", triton / "triton_.json"):
        path.touch()
    assert compiled_kernels(environ) == made
    (triton / "later.cubin").touch()
    assert compiled_since(made, environ) == 1


def test_without_a_named_cache_nothing_is_known_and_one_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert compiled_kernels({}) is None
    assert compiled_since(None, {"WARP_CACHE_PATH": str(tmp_path)}) is None
    assert compiled_since(frozenset(), {}) is None
    assert compiled_kernels(dict.fromkeys(CACHES, "")) is None
    assert compiled_kernels({"WARP_CACHE_PATH": str(tmp_path / "none")}) == frozenset()


def module_of(answers: list[Any]) -> type:
    class Module:
        def _compile(self, device: str, *, options: int) -> Any:
            assert (device, options) == ("cpu", 3)
            return answers.pop(0)

    return Module


def test_warps_modules_are_counted_and_timed_where_it_says_that_it_compiled() -> None:
    module, compilation = module_of([True, False, True]), WarpCompilation()
    assert (compilation.modules, compilation.time_s) == (None, None)  # never watched
    compilation.watch(module)
    assert (compilation.modules, compilation.time_s) == (0, 0.0)
    assert [module()._compile("cpu", options=3) for _ in range(3)] == [True, False, True]
    assert compilation.modules == 2
    assert compilation.time_s is not None
    assert compilation.time_s > 0

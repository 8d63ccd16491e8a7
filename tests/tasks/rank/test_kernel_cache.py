"""What counts as a compiled kernel, on folders as Warp, Triton and Inductor leave them."""

from pathlib import Path

from tasks.rank.kernel_cache import CACHES, compiled_kernels, compiled_since


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
    assert compiled_kernels(dict.fromkeys(CACHES, "")) is None
    assert compiled_since(None, {"WARP_CACHE_PATH": str(tmp_path)}) is None
    assert compiled_since(frozenset(), {}) is None
    assert compiled_kernels({"WARP_CACHE_PATH": str(tmp_path / "none")}) == frozenset()

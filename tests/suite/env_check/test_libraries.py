import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from suite.env_check import libraries
from suite.env_check.check import Judgement
from suite.env_check.libraries import (
    Library,
    LibraryFacts,
    judge_driver_libraries,
    judge_libraries,
    library_fault,
    read_libraries,
)
from suite.env_check.probes.run import run_probe
from tests.fixtures.machines.nvidia_gpus import HOST
from tests.fixtures.stand_ins.stub_drivers.build import (
    build,
    build_32_bit,
    build_for_another_machine,
    build_with_missing_dependency,
    truncate,
)

pytestmark = pytest.mark.usefixtures("graphics_packages")
DRIVER = "580.159.04"


def not_elf(path: Path) -> Path:
    path.write_text("# GNU ld script\n")
    return path


def load(path: Path, **environ: str) -> Library:
    return read_libraries({str(path): ()}, {**os.environ, **environ}, patience_s=1)[str(path)]


@pytest.mark.parametrize(
    ("make", "fault", "repair_names"),
    [
        (lambda path: path, "library_missing", "apt-file search broken.so"),
        (not_elf, "library_not_elf", "install {path} again"),
        (lambda path: truncate(build(path, "library.c")), "library_truncated", "install {path} again"),
        (build_32_bit, "library_wrong_class", "64-bit"),
        (build_for_another_machine, "library_wrong_machine", "EM_X86_64"),
        (lambda path: build_with_missing_dependency(path.parent, path.name), "dependency_missing", "libdep_gone.so"),
        (lambda path: build(path, "library.c", "-DABORTS"), "library_aborted", "SIGABRT"),
        (lambda path: build(path, "library.c", "-DHANGS"), "library_hung", "no answer in 1 s"),
        (lambda path: build(path, "library.c", "-DCALLS_DEPENDENCY", "-Wl,-z,now"), "library_unloadable", "dependency"),
    ],
)
def test_a_library_that_does_not_load_is_explained(
    tmp_path: Path, make: Callable[[Path], Path], fault: str, repair_names: str
) -> None:
    path = make(tmp_path / "broken.so")
    explained = library_fault(load(path), HOST)
    assert explained
    assert explained.word == fault
    assert repair_names.format(path=path) in explained.repair
    assert path.name in explained.found


def test_the_missing_dependency_of_a_dependency_is_named(tmp_path: Path) -> None:
    middle = build_with_missing_dependency(tmp_path, "libmiddle.so")
    options = (
        "-DCALLS_DEPENDENCY",
        "-Wl,--no-as-needed,--allow-shlib-undefined",
        str(middle),
        f"-Wl,-rpath,{tmp_path}",
    )
    library = load(build(tmp_path / "libtop.so", "library.c", *options))
    assert (library.fault, library.missing, library.needed_by) == ("dependency_missing", "libdep_gone.so", str(middle))
    assert "libdep_gone.so" in (library.loader_text or "")  # the loader's own words agree


def test_a_library_that_was_loaded_before_does_not_hide_a_missing_one(tmp_path: Path) -> None:
    """The second would load in the same process, where its dependency is loaded already."""
    dependency = build(tmp_path / "libdep.so", "library.c", "-Wl,-soname,libdep.so")
    user = build(tmp_path / "libuser.so", "library.c", "-DCALLS_DEPENDENCY", str(dependency))
    loaded = read_libraries({str(dependency): (), str(user): ()}, os.environ)
    assert [library.fault for library in loaded.values()] == [None, "dependency_missing"]


def test_the_loaders_of_this_machine_load() -> None:
    seen = libraries.read_driver_libraries(os.environ, driver_version=None)
    for names in (libraries.EGL_LOADER, libraries.LIBGL, libraries.VULKAN_LOADER):
        assert judge_libraries(seen, names).verdict == "ok"


@pytest.mark.parametrize(
    ("name", "names", "fault", "package"),
    [
        ("libEGL.so.1", libraries.EGL_LOADER, "library_truncated", "libegl1"),
        ("libGLdispatch.so.0", libraries.EGL_LOADER, "dependency_missing", "libglvnd0"),  # libEGL.so.1 needs it
        ("libGL.so.1", libraries.LIBGL, "library_truncated", "libgl1"),
        ("libvulkan.so.1", libraries.VULKAN_LOADER, "library_truncated", "libvulkan1"),
    ],
)
def test_a_broken_loader_is_named_with_its_package(
    tmp_path: Path, name: str, names: tuple[str, ...], fault: str, package: str
) -> None:
    (tmp_path / name).write_bytes(b"\x7fELF")  # found first, and cut short
    seen = libraries.read_driver_libraries({**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}, driver_version=None)
    result = judge_libraries(seen, names)
    assert (result.verdict, result.fault) == ("failure", fault)
    assert package in (result.repair or "")
    absent = Library(name=name, path=None, fault="library_missing", missing=name)
    result = judge_libraries(LibraryFacts(driver_version=None, container=HOST, libraries=(absent,)), names)
    assert result.fault == "library_missing"
    assert f"apt-get install {package} " in (result.repair or "")


def nvidia_driver(folder: Path, version: str) -> dict[str, str]:
    """The variables with which stand-ins for the driver's libraries of ``version`` are found."""
    for name, link in (
        ("libEGL_nvidia", "libEGL_nvidia.so.0"),
        ("libGLX_nvidia", "libGLX_nvidia.so.0"),
        ("libnvidia-eglcore", None),
        ("libcuda", "libcuda.so.1"),
    ):
        file = build(folder / f"{name}.so.{version}", "library.c")
        if link:
            (folder / link).symlink_to(file.name)
    return {**os.environ, "LD_LIBRARY_PATH": str(folder), "container": "docker"}


def judged(seen: LibraryFacts) -> dict[str, Judgement]:
    """The checks of what the NVIDIA driver brings."""
    return {
        "egl": judge_driver_libraries(seen, libraries.egl_driver(seen.driver_version)),
        "vulkan": judge_driver_libraries(seen, libraries.VULKAN_DRIVER),
        "cuda": judge_driver_libraries(seen, libraries.CUDA_DRIVER),
    }


def test_nvidia_libraries_have_the_version_of_the_kernel_driver(tmp_path: Path) -> None:
    environ = nvidia_driver(tmp_path, DRIVER)
    seen = libraries.read_driver_libraries(environ, driver_version=DRIVER)
    assert {check.verdict for check in judged(seen).values()} == {"ok"}
    assert {library.version for library in seen.libraries if library.is_nvidia} == {DRIVER}
    updated = replace(seen, driver_version="580.65.06")
    assert {check.fault for check in judged(updated).values()} == {"version_mismatch"}


@pytest.mark.parametrize(("version", "fault"), [("590.44.01", None), ("575.57.08", "version_mismatch")])
def test_a_compat_libcuda_is_newer_than_the_kernel_driver(tmp_path: Path, version: str, fault: str | None) -> None:
    """Images may be newer than the host, so this is no fault; CUDA does not start with an older library."""
    environ = nvidia_driver(tmp_path, DRIVER)
    (tmp_path / "compat").mkdir()
    compat = build(tmp_path / "compat" / f"libcuda.so.{version}", "library.c")
    (compat.parent / "libcuda.so.1").symlink_to(compat.name)
    seen = libraries.read_driver_libraries(
        {**environ, "LD_LIBRARY_PATH": f"{compat.parent}:{tmp_path}"}, driver_version=DRIVER
    )
    (library,) = seen.named("libcuda.so.1")
    assert library.version == version
    assert judged(seen)["cuda"].fault == fault


def test_a_driver_without_its_graphics_half(tmp_path: Path) -> None:
    environ = nvidia_driver(tmp_path, DRIVER)
    (tmp_path / f"libnvidia-eglcore.so.{DRIVER}").unlink()
    (tmp_path / "libGLX_nvidia.so.0").unlink()
    seen = libraries.read_driver_libraries(environ, driver_version=DRIVER)
    egl, vulkan, _cuda = judged(seen).values()
    assert (egl.fault, vulkan.fault) == ("library_missing", "library_missing")
    assert f"libnvidia-eglcore.so.{DRIVER}" in egl.found
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics" in (vulkan.repair or "")
    assert judged(seen)["cuda"].verdict == "ok"


def test_no_nvidia_driver_is_not_judged() -> None:
    missing = tuple(
        Library(name=name, path=None, fault="library_missing", missing=name)
        for name in (*libraries.egl_driver(None), *libraries.VULKAN_DRIVER, *libraries.CUDA_DRIVER)
    )
    seen = LibraryFacts(driver_version=None, container=HOST, libraries=missing)
    assert judged(seen)["egl"].verdict == "not_checked"


def test_a_probe_runs_in_any_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "__init__.py").write_text("raise RuntimeError('not this one')")
    monkeypatch.chdir(tmp_path)
    run = run_probe("machine", "libraries", '{"libc.so.6": ["malloc"]}', "5", environ=os.environ, timeout_s=20)
    assert (run.end, run.answer["libc.so.6"]["symbols"]) == ("answered", ["malloc"]), run.stderr


def test_a_probe_that_raises_is_no_answer() -> None:
    run = run_probe("machine", "libraries", "{torn", "1", environ=os.environ, timeout_s=20)
    assert (run.end, run.exit_code, run.answer) == ("failed", 1, {})
    assert "JSONDecodeError" in run.stderr

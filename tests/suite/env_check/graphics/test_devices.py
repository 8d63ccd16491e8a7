"""EGL's and Vulkan's devices and frames: drivers with real faults, compiled here, and Mesa's software renderers.

A row of ``FAULTS`` is a machine: the drivers that it has, and what is set on it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import pytest

from suite.env_check.check import Judgement
from suite.env_check.graphics.devices import EglFacts, judge_devices, judge_ray_tracing, read_egl, read_vulkan
from suite.env_check.graphics.frame import frame_device, judge_frame, read_frame
from suite.env_check.graphics.manifests import LIBEGL, read_manifests
from suite.env_check.libraries import Library, LibraryFacts
from suite.env_check.probes.run import SIZE
from suite.env_check.report import Machine
from tests.fixtures.machines.debian_packages import loader_environ
from tests.fixtures.machines.nvidia_gpus import DOCKER, DRIVER
from tests.fixtures.stand_ins.stub_drivers.build import build, truncate, write_manifest

pytestmark = pytest.mark.usefixtures("graphics_packages")

Api = Literal["egl", "vulkan"]
Driver = Callable[[Path], object]  # makes a driver with its manifest in a folder

VERSION: Final = "580.159.04"
STUB_UUID: Final = "GPU-11111111-1111-1111-1111-111111111111"  # of gpu_icd.c and egl_gpu_vendor.c
OTHER_UUID: Final = "GPU-22222222-2222-2222-2222-222222222222"
CAPABILITIES: Final = "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics"  # the only thing that this container lacks
IN_DOCKER: Final = replace(DRIVER, container=DOCKER)
NO_LIBRARIES: Final = LibraryFacts(driver_version=None, container=DOCKER, libraries=())
VARIABLE: Final = {"egl": "__EGL_VENDOR_LIBRARY_DIRS", "vulkan": "VK_DRIVER_FILES"}


def with_drivers(api: Api, folder: Path, **environ: str) -> dict[str, str]:
    """The variables with which only the drivers of ``folder`` are found."""
    return loader_environ(**{"container": "docker", VARIABLE[api]: str(folder), **environ})


def stub(source: str, name: str, *options: str) -> Driver:
    return lambda folder: write_manifest(folder / f"{name}.json", build(folder / name, source, *options))


def cut_short(driver: Driver, name: str) -> Driver:
    return lambda folder: (driver(folder), truncate(folder / name))


def vendor(*options: str, name: str = "libEGL_stub.so") -> Driver:
    return stub("egl_vendor.c", name, *options)


def icd(*options: str, name: str = "libstub_icd.so") -> Driver:
    return stub("icd.c", name, *options)


def egl_gpu(*options: str) -> Driver:
    return stub("egl_gpu_vendor.c", "libEGL_gpu.so", *options)


def vulkan_gpu(*options: str) -> Driver:
    return stub("gpu_icd.c", "libgpu.so", *options)


def mesa(folder: Path) -> object:
    return write_manifest(folder / "50_mesa.json", "libEGL_mesa.so.0")


def lavapipe(folder: Path) -> object:
    return write_manifest(folder / "lvp_icd.json", "libvulkan_lvp.so")


def broken_loader(name: str) -> Driver:
    return lambda folder: (folder / name).write_text("cut short")


def check_devices(
    api: Api,
    folder: Path,
    *,
    driver_version: str | None = None,
    timeout_s: float = 60,
    uuids: Sequence[str] = (),
    **environ: str,
) -> Judgement:
    variables = with_drivers(api, folder, **{name: text.format(folder=folder) for name, text in environ.items()})
    manifests = read_manifests(api, variables, driver_version=driver_version)
    read = read_egl if api == "egl" else read_vulkan
    seen = read(variables, manifests, timeout_s=timeout_s)
    return judge_devices(seen, manifests, IN_DOCKER, NO_LIBRARIES, uuids)


NVIDIA_EGL: Final = "libEGL_nvidia.so"
NVIDIA_VULKAN: Final = "libGLX_nvidia.so.0"
HERE: Final = {"LD_LIBRARY_PATH": "{folder}"}
Row = tuple[Api, tuple[Driver, ...], dict[str, Any], str, str, str]
# API, drivers, what else the machine has -> fault, words of what was found and of the repair.
FAULTS: Final[list[Row]] = [
    ("egl", (broken_loader("libEGL.so.1"),), HERE, "no_loader", "libEGL.so.1 does not load", "install libegl1"),
    ("egl", (), {}, "no_driver", "no egl driver manifest", "unset __EGL_VENDOR_LIBRARY_DIRS"),
    (
        "egl", (stub("library.c", "libplain.so"),), {},
        "no_driver", "has no __egl_Main", "correct library_path in {folder}/libplain.so.json",
    ),
    ("egl", (vendor(),), {}, "zero_devices", "no driver has a device", CAPABILITIES),
    (
        "egl", (vendor(), vendor(name=f"{NVIDIA_EGL}.0")), {},
        "zero_devices", f"{NVIDIA_EGL}.0 finds no GPU", CAPABILITIES,
    ),
    ("egl", (mesa,), {}, "software_renderer", "only software: Mesa Project", "needs a GPU"),
    (
        "egl", (mesa,), {"driver_version": VERSION},
        "software_renderer", f"no egl manifest names {NVIDIA_EGL}.0", CAPABILITIES,
    ),
    (
        "egl", (mesa, vendor(name=f"{NVIDIA_EGL}.580.65.06")), {"driver_version": VERSION},
        "software_renderer", "580.65.06", "Recreate the container",
    ),
    (
        "egl", (mesa, vendor(name=f"{NVIDIA_EGL}.580.65.06")), {"driver_version": "580.65.06"},
        "software_renderer", f"{NVIDIA_EGL}.580.65.06 finds no GPU", CAPABILITIES,
    ),
    (
        "egl", (mesa, vendor("-DABORTS")), {},
        "driver_aborted", "libEGL_stub.so: the process ends by SIGABRT in eglQueryDevicesEXT",
        "__EGL_VENDOR_LIBRARY_FILENAMES={folder}/50_mesa.json",
    ),
    (  # the repair repairs it
        "egl", (mesa, vendor("-DABORTS")), {"__EGL_VENDOR_LIBRARY_FILENAMES": "{folder}/50_mesa.json"},
        "software_renderer", "only software", "needs a GPU",
    ),
    (
        "egl", (vendor("-DHANGS"),), {"timeout_s": 1.5},
        "driver_hung", "libEGL_stub.so: the process hangs in eglQueryDevicesEXT", "reinstall that driver",
    ),
    (
        "egl", (cut_short(vendor(), "libEGL_stub.so"),), {},
        "no_driver", "{folder}/libEGL_stub.so.json: {folder}/libEGL_stub.so", "libEGL_stub.so again",
    ),
    ("egl", (egl_gpu("-DINITIALIZE_FAILS"),), {}, "initialise_failed", "eglInitialize returned", CAPABILITIES),
    (
        "egl", (mesa,), {"LIBGL_DRIVERS_PATH": "/nonexistent"},
        "initialise_failed", "EGL_NOT_INITIALIZED", "libgl1-mesa-dri",
    ),
    (
        "egl", (egl_gpu(),), {"uuids": [STUB_UUID, OTHER_UUID]},
        "devices_not_matched", f"CUDA GPU {OTHER_UUID}", "unset __EGL_VENDOR_LIBRARY_DIRS",
    ),
    (
        "vulkan", (broken_loader("libvulkan.so.1"),), HERE,
        "no_loader", "libvulkan.so.1 does not load", "install libvulkan1",
    ),
    ("vulkan", (), {}, "no_driver", "no vulkan driver manifest", "unset VK_DRIVER_FILES"),
    *(
        ("vulkan", (icd(f"-DCREATE_RESULT={code}"),), {}, "instance_refused",
         f"vkCreateInstance returned {name} ({{folder}}/libstub_icd.so.json)", CAPABILITIES)
        for code, name in {
            -9: "VK_ERROR_INCOMPATIBLE_DRIVER", -3: "VK_ERROR_INITIALIZATION_FAILED", -1000: "VkResult -1000",
        }.items()
    ),
    ("vulkan", (icd("-DNEGOTIATE_RESULT=-9"),), {}, "interface_mismatch", "libstub_icd.so", "upgrade libvulkan1"),
    *(  # NVIDIA's driver gives a null pointer where libEGL.so.1 is missing
        ("vulkan", (icd("-DCREATE_MISSING", name=name), *more), HERE if more else {}, "driver_function_missing",
         f"{name}: vk_icdGetInstanceProcAddr gives no vkCreateInst", repair)
        for name in ("libstub_icd.so", NVIDIA_VULKAN)
        for more, repair in (((), CAPABILITIES), ((broken_loader(LIBEGL),), "libegl1"))
    ),
    *(  # the driver 580.159.04 returns -3 when it is asked for its interface; libvulkan1 is not to blame
        ("vulkan", (icd(option, name=NVIDIA_VULKAN), *more), HERE if more else {}, "instance_refused",
         "returned VK_ERROR_INITIALIZATION_FAILED", repair)
        for option in ("-DNEGOTIATE_RESULT=-3", "-DCREATE_RESULT=-3")
        for more, repair in (((), CAPABILITIES), ((broken_loader(LIBEGL),), "libegl1"))
    ),
    # The loader gives VK_ERROR_INITIALIZATION_FAILED for both of these.
    ("vulkan", (icd(),), {}, "zero_devices", "no driver has a device", CAPABILITIES),
    (
        "vulkan", (icd("-DENUMERATE_RESULT=-3"),), {},
        "enumeration_failed", "VK_ERROR_INITIALIZATION_FAILED", CAPABILITIES,
    ),
    *(
        ("vulkan", (lavapipe, icd(option)), {}, "driver_aborted",
         f"libstub_icd.so: the process ends by {how} in vkCreateInstance",
         "VK_LOADER_DRIVERS_DISABLE=libstub_icd.so.json")
        for option, how in {"-DCREATE_ABORTS": "SIGABRT", "-DCREATE_EXITS": "exit code 3"}.items()
    ),
    (  # the repair repairs it
        "vulkan", (lavapipe, icd("-DCREATE_ABORTS")), {"VK_LOADER_DRIVERS_DISABLE": "libstub_icd.so.json"},
        "software_renderer", "only software: llvmpipe", "needs a GPU",
    ),
    (
        "vulkan", (icd("-DCREATE_HANGS"),), {"timeout_s": 1.5},
        "driver_hung", "libstub_icd.so: the process hangs in vkCreateInstance", "VK_LOADER_DRIVERS_DISABLE",
    ),
    (
        "vulkan", (cut_short(icd(), "libstub_icd.so"),), {},
        "no_driver", "{folder}/libstub_icd.so.json: {folder}/libstub_icd.so", "libstub_icd.so again",
    ),
    ("vulkan", (lavapipe,), {}, "software_renderer", "only software: llvmpipe", "needs a GPU"),
    (  # the silent fallback: NVIDIA's driver refuses, Mesa's steps in, and vkCreateInstance succeeds
        "vulkan", (lavapipe, icd("-DCREATE_RESULT=-3", name=NVIDIA_VULKAN)), {},
        "software_renderer", f"{NVIDIA_VULKAN}: vkCreateInstance returned VK_ERROR_INIT", CAPABILITIES,
    ),
    (
        "vulkan", (lavapipe, icd(name=NVIDIA_VULKAN)), {},
        "software_renderer", f"{NVIDIA_VULKAN} finds no GPU", CAPABILITIES,
    ),
    (
        "vulkan", (lavapipe, lambda folder: write_manifest(folder / "nvidia.json", folder / NVIDIA_VULKAN)),
        {"driver_version": VERSION}, "software_renderer", f"{NVIDIA_VULKAN}: no such library", CAPABILITIES,
    ),
    (
        "vulkan", (lavapipe, vulkan_gpu()), {"uuids": [STUB_UUID, OTHER_UUID]},
        "devices_not_matched", f"CUDA GPU {OTHER_UUID}; it lists Stub GPU", "unset VK_DRIVER_FILES",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("api", "drivers", "machine", "fault", "found", "repair"), FAULTS)
def test_a_fault_of_drivers_has_its_word_and_its_repair(
    api: Api, drivers: tuple[Driver, ...], machine: dict[str, Any], fault: str, found: str, repair: str, tmp_path: Path
) -> None:
    for make in drivers:
        make(tmp_path)
    check = check_devices(api, tmp_path, **machine)
    assert (check.verdict, check.fault) == ("failure", fault), check
    assert found.format(folder=tmp_path) in check.found, check
    assert repair.format(folder=tmp_path) in (check.repair or ""), check


def test_the_vulkan_driver_without_libegl_at_all(tmp_path: Path) -> None:
    icd("-DCREATE_MISSING")(tmp_path)
    variables = with_drivers("vulkan", tmp_path)
    manifests = read_manifests("vulkan", variables, driver_version=None)
    absent = Library(name=LIBEGL, path=None, fault="library_missing", missing=LIBEGL)
    manifests = replace(manifests, nvidia=dict(manifests.nvidia) | {LIBEGL: absent})
    check = judge_devices(read_vulkan(variables, manifests), manifests, IN_DOCKER, NO_LIBRARIES, ())
    assert check.fault == "driver_function_missing"
    assert "apt-get install libegl1 " in (check.repair or "")


def test_a_gpu_is_matched_to_cuda(tmp_path: Path) -> None:
    egl_gpu()(tmp_path)
    check = check_devices("egl", tmp_path, uuids=[STUB_UUID])
    assert (check.verdict, check.fault) == ("ok", None), check
    (device,) = check.evidence.devices
    assert (device.cuda_index, f"GPU-{device.uuid}", device.render_node) == (0, STUB_UUID, "/dev/dri/renderD128")
    (tmp_path / "libEGL_gpu.so.json").unlink()
    vulkan_gpu()(tmp_path)
    assert check_devices("vulkan", tmp_path, uuids=[STUB_UUID]).verdict == "ok"
    assert check_devices("vulkan", tmp_path).verdict == "ok"


def test_the_cuda_index_does_where_the_driver_tells_no_uuid(tmp_path: Path) -> None:
    egl_gpu("-DCUDA_INDEX=1")(tmp_path)
    variables = with_drivers("egl", tmp_path)
    manifests = read_manifests("egl", variables, driver_version=None)
    seen = read_egl(variables, manifests)
    nameless = replace(seen, devices=tuple(replace(device, uuid=None) for device in seen.devices))
    check = judge_devices(nameless, manifests, IN_DOCKER, NO_LIBRARIES, cuda_uuids=[STUB_UUID, OTHER_UUID])
    assert check.fault == "devices_not_matched"
    assert f"CUDA GPU {STUB_UUID};" in check.found  # 1 is there, 0 not


def test_ray_tracing_needs_all_three_extensions(tmp_path: Path) -> None:
    lavapipe(tmp_path)
    assert judge_ray_tracing(check_devices("vulkan", tmp_path).evidence).verdict == "not_checked"
    vulkan_gpu()(tmp_path)
    check = judge_ray_tracing(check_devices("vulkan", tmp_path).evidence)
    assert (check.verdict, check.fault) == ("failure", "no_ray_tracing")
    assert "VK_KHR_ray_query" in check.found
    vulkan_gpu("-DOFFERS_RAY_TRACING")(tmp_path)
    assert judge_ray_tracing(check_devices("vulkan", tmp_path).evidence).verdict == "ok"


def read_egl_of(folder: Path) -> EglFacts:
    variables = with_drivers("egl", folder)
    return read_egl(variables, read_manifests("egl", variables, driver_version=None))


def check_frame(
    api: Api, folder: Path, seen: EglFacts | None = None, *, timeout_s: float = 60, **environ: str
) -> Judgement:
    variables = with_drivers(api, folder, **environ)
    if api == "vulkan":
        return judge_frame(read_frame("vulkan", environ=variables, timeout_s=timeout_s), "Vulkan")
    device = frame_device(seen or read_egl_of(folder))
    return judge_frame(read_frame("egl", device, environ=variables, timeout_s=timeout_s), "EGL")


@pytest.mark.parametrize(
    ("api", "driver", "fault", "wrong_pixels", "found"),
    [
        ("egl", mesa, "software_renderer", 0, "llvmpipe"),
        ("egl", egl_gpu(), None, 0, "Stub GPU"),
        ("egl", egl_gpu("-DDRAWS_NOTHING"), "wrong_pixels", SIZE * (SIZE - 1) // 2, "Stub GPU"),  # but the diagonal
        ("vulkan", lavapipe, "software_renderer", 0, "llvmpipe"),
        ("vulkan", vulkan_gpu(), None, 0, "Stub GPU"),
        ("vulkan", vulkan_gpu("-DDRAWS_NOTHING"), "wrong_pixels", SIZE * (SIZE - 1) // 2, "Stub GPU"),
    ],
)
def test_every_pixel_of_a_frame_is_checked(
    api: Api, driver: Driver, fault: str | None, wrong_pixels: int, found: str, tmp_path: Path
) -> None:
    driver(tmp_path)
    check = check_frame(api, tmp_path)
    assert (check.fault, check.evidence.wrong_pixels) == (fault, wrong_pixels), check
    assert found in check.found


@pytest.mark.parametrize(
    ("api", "driver", "fault", "timeout_s"),
    [
        ("egl", vendor(), "no_context", 60),
        ("egl", vendor("-DABORTS"), "driver_aborted", 60),
        ("egl", vendor("-DHANGS"), "driver_hung", 2.0),
        ("vulkan", icd("-DCREATE_RESULT=-3"), "no_context", 60),
        ("vulkan", icd("-DCREATE_ABORTS"), "driver_aborted", 60),
        ("vulkan", icd("-DCREATE_HANGS"), "driver_hung", 2.5),
    ],
)
def test_a_frame_that_does_not_come(api: Api, driver: Driver, fault: str, timeout_s: float, tmp_path: Path) -> None:
    nothing = read_egl_of(tmp_path) if api == "egl" else None
    driver(tmp_path)
    check = check_frame(api, tmp_path, nothing, timeout_s=timeout_s)
    assert (check.verdict, check.fault) == ("failure", fault), check
    assert ("OpenGL context on EGL device 0" if api == "egl" else "search for a Vulkan device") in check.found


def test_a_gpu_is_chosen_before_software(tmp_path: Path) -> None:
    egl_gpu()(tmp_path)
    seen = read_egl_of(tmp_path)
    gpu = seen.devices[0]
    both = replace(seen, devices=(replace(gpu, is_software=True), replace(gpu, initialised=False), gpu))
    assert "device index 2" in check_frame("egl", tmp_path, both).found  # of which this machine has but one


def test_a_missing_package_is_a_warning_of_the_check_itself(tmp_path: Path) -> None:
    (tmp_path / "wgpu.py").write_text("raise ModuleNotFoundError('wgpu', name='wgpu')\n")
    check = check_frame("vulkan", tmp_path, PYTHONPATH=str(tmp_path))
    assert (check.verdict, check.fault) == ("warning", "frame_package_missing")
    assert "wgpu" in (check.repair or "")


def test_the_frames_of_this_machine(this_machine: Machine) -> None:
    assert this_machine.graphics
    frames = (this_machine.graphics.vulkan_frame, this_machine.graphics.egl_frame)
    assert [frame.wrong_pixels for frame in frames] == [0, 0]

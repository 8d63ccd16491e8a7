import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from suite.env_check.check import Judgement
from suite.env_check.graphics import icd_manifests, vulkan
from suite.env_check.graphics.devices import judge_devices
from suite.env_check.graphics.frame import SIZE, judge_frame
from suite.env_check.graphics.icd_manifests import LIBEGL
from suite.env_check.graphics.vulkan import judge_ray_tracing
from suite.env_check.libraries.library import Library
from tests.fixtures.machines.graphics_packages import graphics_packages  # noqa: F401  (a fixture)
from tests.fixtures.stand_ins.stub_drivers.build import build, truncate, write_manifest
from tests.suite.env_check.graphics.failed_checks import CAPABILITIES, DRIVER_FACTS, NO_LIBRARIES, assert_failure

pytestmark = pytest.mark.usefixtures("graphics_packages")
DRIVER = "580.159.04"
STUB_UUID = "GPU-11111111-1111-1111-1111-111111111111"  # of gpu_icd.c


def with_drivers(folder: Path, **environ: str) -> dict[str, str]:
    """The variables with which only the drivers of ``folder`` are found."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("VK_", "XDG_", "LD_LIBRARY_PATH"))
    }
    return {**kept, "container": "docker", "VK_DRIVER_FILES": str(folder), **environ}


def add_stub(folder: Path, *options: str, name: str = "libstub_icd.so", source: str = "icd.c") -> Path:
    """A driver compiled with ``options``, with its manifest ``<name>.json``."""
    return write_manifest(folder / f"{name}.json", build(folder / name, source, *options))


def add_lavapipe(folder: Path) -> Path:
    return write_manifest(folder / "lvp_icd.json", "libvulkan_lvp.so")


def check_devices(
    folder: Path,
    *,
    cuda_uuids: Sequence[str] = (),
    driver_version: str | None = None,
    timeout_s: float = 60,
    **environ: str,
) -> Judgement:
    variables = with_drivers(folder, **environ)
    found = icd_manifests.read("vulkan", variables, driver_version=driver_version)
    seen = vulkan.read(variables, found, timeout_s=timeout_s)
    return judge_devices(seen, found, DRIVER_FACTS, NO_LIBRARIES, cuda_uuids)


def test_no_loader(tmp_path: Path) -> None:
    (tmp_path / "libvulkan.so.1").write_text("cut short")
    check = check_devices(tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert_failure(check, "no_loader", "libvulkan.so.1 does not load", "apt-get install libvulkan1")


def test_no_driver_names_the_cause_in_the_manifests(tmp_path: Path) -> None:
    check = check_devices(tmp_path)
    assert check.evidence.create_result == -9
    assert_failure(check, "no_driver", "no vulkan driver manifest", "unset VK_DRIVER_FILES")
    path = write_manifest(tmp_path / "gone.json", tmp_path / "libgone.so")
    assert_failure(check_devices(tmp_path), "no_driver", f"{path}: {tmp_path}/libgone.so", "libgone.so")


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ("-DCREATE_RESULT=-9", "VK_ERROR_INCOMPATIBLE_DRIVER"),
        ("-DCREATE_RESULT=-3", "VK_ERROR_INITIALIZATION_FAILED"),
        ("-DCREATE_RESULT=-1", "VK_ERROR_OUT_OF_HOST_MEMORY"),
        ("-DCREATE_RESULT=-4", "VK_ERROR_DEVICE_LOST"),
        ("-DCREATE_RESULT=-1000", "VkResult -1000"),
    ],
)
def test_a_driver_that_refuses_the_instance_is_named_with_its_own_code(tmp_path: Path, option: str, code: str) -> None:
    path = add_stub(tmp_path, option)
    check = check_devices(tmp_path)
    assert_failure(check, "instance_refused", f"vkCreateInstance returned {code} ({path})", CAPABILITIES)


def test_a_driver_that_shares_no_interface_with_the_loader(tmp_path: Path) -> None:
    add_stub(tmp_path, "-DNEGOTIATE_RESULT=-9")
    check = check_devices(tmp_path)
    assert_failure(check, "interface_mismatch", "libstub_icd.so", "--only-upgrade libvulkan1")


@pytest.mark.parametrize("name", ["libstub_icd.so", "libGLX_nvidia.so.0"])
def test_a_driver_that_gives_no_create_instance_is_no_crash(tmp_path: Path, name: str) -> None:
    """NVIDIA's driver gives a null pointer where libEGL.so.1 is missing."""
    add_stub(tmp_path, "-DCREATE_MISSING", name=name)
    step = "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics"
    check = check_devices(tmp_path)
    assert_failure(check, "driver_function_missing", f"{name}: vk_icdGetInstanceProcAddr gives no vkCreateInst", step)
    (tmp_path / "libEGL.so.1").write_text("cut short")
    check = check_devices(tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert_failure(check, "driver_function_missing", "vkCreateInstance", "libegl1")
    variables = with_drivers(tmp_path)
    found = icd_manifests.read("vulkan", variables, driver_version=None)
    absent = Library(name=LIBEGL, path=None, fault="library_missing", missing=LIBEGL)
    found = replace(found, nvidia=dict(found.nvidia) | {LIBEGL: absent})
    check = judge_devices(vulkan.read(variables, found), found, DRIVER_FACTS, NO_LIBRARIES)
    assert_failure(check, "driver_function_missing", "vkCreateInstance", "apt-get install libegl1 ")


@pytest.mark.parametrize("option", ["-DNEGOTIATE_RESULT=-3", "-DCREATE_RESULT=-3"])
def test_a_driver_of_nvidia_that_refuses_without_libegl(tmp_path: Path, option: str) -> None:
    """The driver 580.159.04 on an H200 returns -3 when it is asked for its interface; libvulkan1 is not to blame."""
    add_stub(tmp_path, option, name="libGLX_nvidia.so.0")
    check = check_devices(tmp_path)
    assert_failure(check, "instance_refused", "returned VK_ERROR_INITIALIZATION_FAILED", CAPABILITIES)
    (tmp_path / "libEGL.so.1").write_text("cut short")
    check = check_devices(tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert_failure(check, "instance_refused", "returned VK_ERROR_INITIALIZATION_FAILED", "libegl1")


def test_zero_devices_and_a_failed_enumeration_are_told_apart(tmp_path: Path) -> None:
    """The loader gives VK_ERROR_INITIALIZATION_FAILED for both."""
    add_stub(tmp_path)
    check = check_devices(tmp_path)
    assert check.evidence.enumerate_result == -3
    assert_failure(check, "zero_devices", "no driver has a device", CAPABILITIES)
    add_stub(tmp_path, "-DENUMERATE_RESULT=-3")
    check = check_devices(tmp_path)
    assert check.evidence.enumerate_result == -3
    assert_failure(check, "enumeration_failed", "VK_ERROR_INITIALIZATION_FAILED", CAPABILITIES)


@pytest.mark.parametrize(("option", "how"), [("-DCREATE_ABORTS", "SIGABRT"), ("-DCREATE_EXITS", "exit code 3")])
def test_a_driver_that_ends_the_process_is_named(tmp_path: Path, option: str, how: str) -> None:
    add_lavapipe(tmp_path)
    add_stub(tmp_path, option)
    check = check_devices(tmp_path)
    disable = "VK_LOADER_DRIVERS_DISABLE=libstub_icd.so.json"
    assert_failure(check, "driver_aborted", f"libstub_icd.so: the process ends by {how} in vkCreateInstance", disable)
    check = check_devices(tmp_path, VK_LOADER_DRIVERS_DISABLE="libstub_icd.so.json")  # the repair repairs it
    assert check.fault == "software_renderer"


def test_a_driver_that_hangs_is_named(tmp_path: Path) -> None:
    add_stub(tmp_path, "-DCREATE_HANGS")
    check = check_devices(tmp_path, timeout_s=1.5)
    assert_failure(
        check, "driver_hung", "libstub_icd.so: the process hangs in vkCreateInstance", "VK_LOADER_DRIVERS_DISABLE"
    )


def test_a_library_that_the_loader_itself_dies_of_is_named(tmp_path: Path) -> None:
    path = add_stub(tmp_path)
    truncate(tmp_path / "libstub_icd.so")
    check = check_devices(tmp_path)
    assert check.evidence.signal == "SIGBUS"
    assert_failure(check, "no_driver", f"{path}: {tmp_path}/libstub_icd.so", "libstub_icd.so again")


def test_only_llvmpipe_is_refused_as_a_gpu(tmp_path: Path) -> None:
    add_lavapipe(tmp_path)
    check = check_devices(tmp_path)
    assert_failure(check, "software_renderer", "only software: llvmpipe", "needs a GPU")
    assert [device.type for device in check.evidence.devices] == ["cpu"]
    assert judge_ray_tracing(check.evidence).verdict == "not_checked"


def test_why_there_is_only_software_beside_an_nvidia_driver(tmp_path: Path) -> None:
    """The silent fallback: NVIDIA's driver refuses, Mesa's steps in, and vkCreateInstance succeeds."""
    add_lavapipe(tmp_path)
    add_stub(tmp_path, "-DCREATE_RESULT=-3", name="libGLX_nvidia.so.0")
    check = check_devices(tmp_path)
    assert check.evidence.create_result == 0
    assert_failure(
        check, "software_renderer", "libGLX_nvidia.so.0: vkCreateInstance returned VK_ERROR_INIT", CAPABILITIES
    )
    add_stub(tmp_path, name="libGLX_nvidia.so.0")
    check = check_devices(tmp_path)
    assert_failure(check, "software_renderer", "libGLX_nvidia.so.0 finds no GPU", CAPABILITIES)
    (tmp_path / "libGLX_nvidia.so.0").unlink()
    check = check_devices(tmp_path, driver_version=DRIVER)
    assert_failure(check, "software_renderer", "libGLX_nvidia.so.0: no such library", CAPABILITIES)


def test_a_version_mismatch_is_the_cause_even_where_the_driver_answers(tmp_path: Path) -> None:
    add_stub(tmp_path, name="libGLX_nvidia.so.580.65.06")
    check = check_devices(tmp_path, driver_version=DRIVER)
    assert_failure(check, "no_driver", "libGLX_nvidia.so.580.65.06 is version 580.65.06", "Recreate the container")


def test_a_gpu_is_matched_to_cuda_by_its_uuid(tmp_path: Path) -> None:
    add_lavapipe(tmp_path)
    add_stub(tmp_path, source="gpu_icd.c", name="libgpu.so")
    check = check_devices(tmp_path, cuda_uuids=[STUB_UUID])
    assert (check.verdict, check.fault) == ("ok", None), check
    assert "Stub GPU" in check.found
    assert check_devices(tmp_path).verdict == "ok"
    other = "GPU-22222222-2222-2222-2222-222222222222"
    check = check_devices(tmp_path, cuda_uuids=[STUB_UUID, other])
    assert_failure(check, "devices_not_matched", f"CUDA GPU {other}; it lists Stub GPU", "unset VK_DRIVER_FILES")


def test_ray_tracing_needs_all_three_extensions(tmp_path: Path) -> None:
    add_stub(tmp_path, source="gpu_icd.c", name="libgpu.so")
    check = judge_ray_tracing(check_devices(tmp_path).evidence)
    assert (check.verdict, check.fault) == ("failure", "no_ray_tracing")
    assert "VK_KHR_ray_query" in check.found
    assert "RT cores" in (check.repair or "")
    add_stub(tmp_path, "-DOFFERS_RAY_TRACING", source="gpu_icd.c", name="libgpu.so")
    assert judge_ray_tracing(check_devices(tmp_path).evidence).verdict == "ok"


def check_frame(folder: Path, *, timeout_s: float = 60, **environ: str) -> Judgement:
    return judge_frame(vulkan.read_frame(with_drivers(folder, **environ), timeout_s=timeout_s), "Vulkan")


def test_a_frame_is_rendered_right_by_llvmpipe_and_still_refused(tmp_path: Path) -> None:
    add_lavapipe(tmp_path)
    check = check_frame(tmp_path)
    assert (check.verdict, check.fault) == ("failure", "software_renderer")
    assert check.evidence.wrong_pixels == 0
    assert "llvmpipe" in check.found


def test_a_frame_is_rendered_by_the_gpu_where_there_is_one(tmp_path: Path) -> None:
    add_lavapipe(tmp_path)
    add_stub(tmp_path, source="gpu_icd.c", name="libgpu.so")
    check = check_frame(tmp_path)
    assert (check.verdict, check.fault, check.evidence.wrong_pixels) == ("ok", None, 0), check
    assert "Stub GPU" in check.found


def test_a_driver_that_does_not_draw_is_caught_by_its_pixels(tmp_path: Path) -> None:
    add_stub(tmp_path, "-DDRAWS_NOTHING", source="gpu_icd.c", name="libgpu.so")
    check = check_frame(tmp_path)
    assert (check.verdict, check.fault) == ("failure", "wrong_pixels")
    assert check.evidence.wrong_pixels == SIZE * (SIZE - 1) // 2  # the whole triangle but for the diagonal
    assert "another version" in (check.repair or "")


@pytest.mark.parametrize(
    ("option", "fault", "timeout_s"),
    [
        ("-DCREATE_RESULT=-3", "no_context", 60),
        ("-DCREATE_ABORTS", "driver_aborted", 60),
        ("-DCREATE_HANGS", "driver_hung", 2.5),
    ],
)
def test_a_frame_that_does_not_come(tmp_path: Path, option: str, fault: str, timeout_s: float) -> None:
    add_stub(tmp_path, option)
    check = check_frame(tmp_path, timeout_s=timeout_s)
    assert (check.verdict, check.fault) == ("failure", fault), check
    assert "search for a Vulkan device" in check.found
    assert "repair what the checks of the Vulkan loader" in (check.repair or "")


def test_a_missing_package_is_a_warning_of_the_check_itself(tmp_path: Path) -> None:
    (tmp_path / "wgpu.py").write_text("raise ModuleNotFoundError('wgpu', name='wgpu')\n")
    check = check_frame(tmp_path, PYTHONPATH=str(tmp_path))
    assert (check.verdict, check.fault) == ("warning", "frame_package_missing")
    assert "wgpu" in (check.repair or "")

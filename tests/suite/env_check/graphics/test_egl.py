import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from suite.env_check.check import Judgement
from suite.env_check.graphics import egl, icd_manifests, look
from suite.env_check.graphics.devices import judge_devices
from suite.env_check.graphics.egl import EglSeen
from suite.env_check.graphics.frame import SIZE, judge_frame
from suite.env_check.graphics.icd_manifests import ManifestsSeen
from tests.fixtures.machines.graphics_packages import graphics_packages  # noqa: F401  (a fixture)
from tests.fixtures.stand_ins.stub_drivers.build import build, truncate, write_manifest
from tests.suite.env_check.graphics.failed_checks import CAPABILITIES, DRIVER_FACTS, NO_LIBRARIES, assert_failure

pytestmark = pytest.mark.usefixtures("graphics_packages")
DRIVER = "580.159.04"
STUB_UUID = "GPU-11111111-1111-1111-1111-111111111111"  # of egl_gpu_vendor.c
OTHER_UUID = "GPU-22222222-2222-2222-2222-222222222222"


def with_vendors(folder: Path, **environ: str) -> dict[str, str]:
    """The variables with which only the vendor libraries of ``folder`` are found."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("__EGL", "LD_LIBRARY_PATH"))}
    return {**kept, "container": "docker", "__EGL_VENDOR_LIBRARY_DIRS": str(folder), **environ}


def add_stub(folder: Path, *options: str, name: str = "libEGL_stub.so", source: str = "egl_vendor.c") -> Path:
    """A vendor library compiled with ``options``, with its manifest ``<name>.json``."""
    return write_manifest(folder / f"{name}.json", build(folder / name, source, *options))


def add_gpu(folder: Path, *options: str) -> Path:
    return add_stub(folder, *options, name="libEGL_gpu.so", source="egl_gpu_vendor.c")


def add_mesa(folder: Path) -> Path:
    return write_manifest(folder / "50_mesa.json", "libEGL_mesa.so.0")


def read(
    folder: Path, *, driver_version: str | None = None, timeout_s: float = 60, **environ: str
) -> tuple[EglSeen, ManifestsSeen]:
    variables = with_vendors(folder, **environ)
    found = icd_manifests.read("egl", variables, driver_version=driver_version)
    return egl.read(variables, found, timeout_s=timeout_s), found


def check_devices(
    folder: Path,
    *,
    cuda_uuids: Sequence[str] = (),
    driver_version: str | None = None,
    timeout_s: float = 60,
    **environ: str,
) -> Judgement:
    seen, found = read(folder, driver_version=driver_version, timeout_s=timeout_s, **environ)
    return judge_devices(seen, found, DRIVER_FACTS, NO_LIBRARIES, cuda_uuids)


def test_no_loader(tmp_path: Path) -> None:
    (tmp_path / "libEGL.so.1").write_text("cut short")
    check = check_devices(tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert_failure(check, "no_loader", "libEGL.so.1 does not load", "apt-get install libegl1")


def test_no_driver_names_the_cause_in_the_manifests(tmp_path: Path) -> None:
    """libEGL itself gives no error at all."""
    assert_failure(check_devices(tmp_path), "no_driver", "no egl driver manifest", "unset __EGL_VENDOR_LIBRARY_DIRS")
    path = write_manifest(tmp_path / "plain.json", build(tmp_path / "libplain.so", "library.c"))
    check = check_devices(tmp_path)
    assert (check.evidence.end, check.evidence.query_error) == ("answered", None)
    assert_failure(check, "no_driver", "has no __egl_Main", f"correct library_path in {path}")


def test_a_vendor_that_finds_no_device(tmp_path: Path) -> None:
    add_stub(tmp_path)
    assert_failure(check_devices(tmp_path), "zero_devices", "no driver has a device", CAPABILITIES)
    add_stub(tmp_path, name="libEGL_nvidia.so.0")
    check = check_devices(tmp_path)
    assert_failure(check, "zero_devices", "libEGL_nvidia.so.0 finds no GPU", CAPABILITIES)


def test_only_llvmpipe_is_refused_as_a_gpu(tmp_path: Path) -> None:
    add_mesa(tmp_path)
    check = check_devices(tmp_path)
    assert_failure(check, "software_renderer", "only software: Mesa Project", "needs a GPU")
    assert [device.is_software for device in check.evidence.devices] == [True]


def test_why_there_is_only_software_beside_an_nvidia_driver(tmp_path: Path) -> None:
    add_mesa(tmp_path)
    check = check_devices(tmp_path, driver_version=DRIVER)
    assert_failure(check, "software_renderer", "no egl manifest names libEGL_nvidia.so.0", CAPABILITIES)
    add_stub(tmp_path, name="libEGL_nvidia.so.580.65.06")
    check = check_devices(tmp_path, driver_version=DRIVER)
    assert_failure(check, "software_renderer", "580.65.06", "Recreate the container")
    check = check_devices(tmp_path, driver_version="580.65.06")
    assert_failure(check, "software_renderer", "libEGL_nvidia.so.580.65.06 finds no GPU", CAPABILITIES)


def test_a_vendor_that_aborts_is_named(tmp_path: Path) -> None:
    mesa = add_mesa(tmp_path)
    add_stub(tmp_path, "-DABORTS")
    check = check_devices(tmp_path)
    without = f"__EGL_VENDOR_LIBRARY_FILENAMES={mesa}"
    assert_failure(
        check, "driver_aborted", "libEGL_stub.so: the process ends by SIGABRT in eglQueryDevicesEXT", without
    )
    check = check_devices(tmp_path, __EGL_VENDOR_LIBRARY_FILENAMES=str(mesa))  # the repair repairs it
    assert check.fault == "software_renderer"


def test_a_vendor_that_hangs_is_named(tmp_path: Path) -> None:
    add_stub(tmp_path, "-DHANGS")
    check = check_devices(tmp_path, timeout_s=1.5)
    assert_failure(
        check, "driver_hung", "libEGL_stub.so: the process hangs in eglQueryDevicesEXT", "reinstall that driver"
    )


def test_a_library_that_libegl_itself_dies_of_is_named(tmp_path: Path) -> None:
    path = add_stub(tmp_path)
    truncate(tmp_path / "libEGL_stub.so")
    check = check_devices(tmp_path)
    assert check.evidence.signal == "SIGBUS"
    assert_failure(check, "no_driver", f"{path}: {tmp_path}/libEGL_stub.so", "libEGL_stub.so again")


def test_a_device_that_does_not_initialise(tmp_path: Path) -> None:
    add_gpu(tmp_path, "-DINITIALIZE_FAILS")
    check = check_devices(tmp_path)
    assert_failure(check, "initialise_failed", "eglInitialize returned", CAPABILITIES)
    (tmp_path / "libEGL_gpu.so.json").unlink()
    add_mesa(tmp_path)
    check = check_devices(tmp_path, LIBGL_DRIVERS_PATH="/nonexistent")
    assert_failure(check, "initialise_failed", "EGL_NOT_INITIALIZED", "libgl1-mesa-dri")


def test_a_gpu_is_matched_to_cuda(tmp_path: Path) -> None:
    add_gpu(tmp_path)
    check = check_devices(tmp_path, cuda_uuids=[STUB_UUID])
    assert (check.verdict, check.fault) == ("ok", None), check
    device = check.evidence.devices[0]
    assert (device.cuda_index, f"GPU-{device.uuid}", device.render_node) == (0, STUB_UUID, "/dev/dri/renderD128")
    check = check_devices(tmp_path, cuda_uuids=[STUB_UUID, OTHER_UUID])
    assert_failure(check, "devices_not_matched", f"CUDA GPU {OTHER_UUID}", "unset __EGL_VENDOR_LIBRARY_DIRS")


def test_the_cuda_index_does_where_the_driver_tells_no_uuid(tmp_path: Path) -> None:
    add_gpu(tmp_path, "-DCUDA_INDEX=1")
    seen, found = read(tmp_path)
    nameless = dataclasses.replace(seen, devices=tuple(dataclasses.replace(each, uuid=None) for each in seen.devices))
    check = judge_devices(nameless, found, DRIVER_FACTS, NO_LIBRARIES, cuda_uuids=[STUB_UUID, OTHER_UUID])
    assert_failure(
        check, "devices_not_matched", f"CUDA GPU {STUB_UUID};", "unset __EGL_VENDOR_LIBRARY_DIRS"
    )  # 1 is there, 0 not


def check_frame(folder: Path, seen: EglSeen | None = None, *, timeout_s: float = 60, **environ: str) -> Judgement:
    frame = egl.read_frame(with_vendors(folder, **environ), seen or read(folder)[0], timeout_s=timeout_s)
    return judge_frame(frame, "EGL")


def test_a_frame_is_rendered_right_by_llvmpipe_and_still_refused(tmp_path: Path) -> None:
    add_mesa(tmp_path)
    check = check_frame(tmp_path)
    assert (check.verdict, check.fault) == ("failure", "software_renderer")
    assert check.evidence.wrong_pixels == 0
    assert "llvmpipe" in check.found


def test_a_frame_is_rendered_by_the_gpu_where_there_is_one(tmp_path: Path) -> None:
    add_gpu(tmp_path)
    check = check_frame(tmp_path)
    assert (check.verdict, check.fault, check.evidence.wrong_pixels) == ("ok", None, 0), check
    assert "Stub GPU" in check.found


def test_a_gpu_is_chosen_before_software(tmp_path: Path) -> None:
    add_gpu(tmp_path)
    seen, _found = read(tmp_path)
    gpu = seen.devices[0]
    software = dataclasses.replace(gpu, is_software=True)
    asleep = dataclasses.replace(gpu, initialised=False)
    both = dataclasses.replace(seen, devices=(software, asleep, gpu))
    assert "device index 2" in check_frame(tmp_path, both).found  # of which this machine has but one


def test_a_driver_that_does_not_draw_is_caught_by_its_pixels(tmp_path: Path) -> None:
    add_gpu(tmp_path, "-DDRAWS_NOTHING")
    check = check_frame(tmp_path)
    assert (check.verdict, check.fault) == ("failure", "wrong_pixels")
    assert check.evidence.wrong_pixels == SIZE * (SIZE - 1) // 2  # the whole triangle but for the diagonal


@pytest.mark.parametrize(
    ("options", "fault", "timeout_s"),
    [((), "no_context", 60), (("-DABORTS",), "driver_aborted", 60), (("-DHANGS",), "driver_hung", 2.0)],
)
def test_a_frame_that_does_not_come(tmp_path: Path, options: tuple[str, ...], fault: str, timeout_s: float) -> None:
    nothing, _found = read(tmp_path)
    add_stub(tmp_path, *options)
    check = check_frame(tmp_path, nothing, timeout_s=timeout_s)
    assert (check.verdict, check.fault) == ("failure", fault), check
    assert "OpenGL context on EGL device 0" in check.found
    assert "repair what the checks of the EGL loader" in (check.repair or "")


def test_everything_at_once_on_this_machine() -> None:
    seen = look.read(os.environ, driver_version=None)
    assert (seen.vulkan_frame.wrong_pixels, seen.egl_frame.wrong_pixels) == (0, 0)
    json.dumps(dataclasses.asdict(seen))

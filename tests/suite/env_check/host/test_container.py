"""Whether this is a container, and the driver capabilities that it was given."""

from dataclasses import replace
from pathlib import Path

import pytest

from suite.env_check.container import judge_driver_capabilities, read_container
from tests.fixtures.stand_ins.denied_folders import deny


@pytest.mark.parametrize(
    ("files", "environ", "is_container"),
    [
        ({}, {}, False),
        ({".dockerenv": ""}, {}, True),
        ({"run/.containerenv": ""}, {}, True),
        ({"proc/1/cgroup": "0::/kubepods/burstable/pod1\n"}, {}, True),
        ({"proc/1/cgroup": "0::/init.scope\n"}, {}, False),
        ({}, {"APPTAINER_CONTAINER": "/images/a.sif"}, True),
        ({}, {"container": "podman"}, True),
    ],
)
def test_a_container_is_known_by_its_marks(
    files: dict[str, str], environ: dict[str, str], is_container: bool, tmp_path: Path
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert read_container(environ, tmp_path).is_container is is_container


def test_other_users_processes_that_proc_hides_are_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide other users' processes, as /proc mounted with hidepid=1 does on hosts of many users."""
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/cgroup").write_text("0::/kubepods/pod1")
    deny(monkeypatch, tmp_path / "proc/1")
    assert read_container({}, tmp_path).signs == ()


@pytest.mark.parametrize(
    ("value", "fault", "compute_fault"),
    [
        (None, "capabilities_missing", None),
        ("", "capabilities_missing", None),
        ("compute,utility", "capabilities_missing", None),
        ("compute, graphics ,utility", None, None),
        ("all", None, None),
        ("graphics", None, "capabilities_missing"),
        ("graphics,display", None, "capabilities_missing"),
        ("compute", "capabilities_missing", "capabilities_missing"),
    ],
)
def test_capabilities_of_a_container(
    value: str | None, fault: str | None, compute_fault: str | None, tmp_path: Path
) -> None:
    (tmp_path / ".dockerenv").touch()
    container = read_container({} if value is None else {"NVIDIA_DRIVER_CAPABILITIES": value}, tmp_path)
    graphics = judge_driver_capabilities(container, ("graphics",), has_driver=True, libraries=())
    assert graphics.fault == fault
    compute = judge_driver_capabilities(container, ("compute", "utility"), has_driver=True, libraries=())
    assert compute.fault == compute_fault
    if graphics.fault:
        assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics" in (graphics.repair or "")
    if compute.fault and value and "display" in value:  # what is set already stays
        assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility,graphics,display" in (compute.repair or "")


def test_capabilities_do_not_matter_where_the_libraries_came_otherwise(tmp_path: Path) -> None:
    (tmp_path / ".dockerenv").touch()
    container = read_container({}, tmp_path)
    check = judge_driver_capabilities(container, ("graphics",), has_driver=True, libraries=("libGLX_nvidia.so.0",))
    assert check.verdict == "ok"
    assert "libGLX_nvidia.so.0 is there" in check.found
    assert judge_driver_capabilities(container, ("graphics",), has_driver=False, libraries=()).verdict == "not_checked"
    host = replace(container, is_container=False)
    assert judge_driver_capabilities(host, ("graphics",), has_driver=True, libraries=()).verdict == "ok"

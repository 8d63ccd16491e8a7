"""A fixture for tests that need real graphics loaders, Mesa's software drivers and a C compiler."""

import os
import shutil
import subprocess

import pytest

from tests.debian_packages import install_packages

PACKAGES = (
    "libegl1", "libglvnd0", "libglx0", "libgl1", "libgles2", "libopengl0", "libvulkan1", "mesa-vulkan-drivers",
    "libegl-mesa0", "gcc", "libc6-dev",
)  # fmt: skip


def missing_packages() -> list[str]:
    command = ["dpkg-query", "-W", "-f", "${binary:Package} ${db:Status-Status}\n", *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line.split() for line in done.stdout.splitlines()]
    installed = {line[0].split(":")[0] for line in lines if line[1:] == ["installed"]}
    return [package for package in PACKAGES if package not in installed]


@pytest.fixture(scope="session")
def graphics_packages() -> None:
    """Install what is missing, where that is possible; else skip."""
    if not shutil.which("dpkg-query"):
        pytest.skip("not Debian or Ubuntu: these tests need Mesa's software drivers")
    missing = missing_packages()
    if not missing:
        return
    if os.geteuid() != 0:
        pytest.skip(f"needs root to install {' '.join(missing)}")
    said = install_packages(missing)
    assert said is None, said

"""Installs packages of Debian or Ubuntu that tests need, one process of the tests at a time."""

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

# apt waits for dpkg's lock as long as told, but gives up at once where another apt-get holds the package lists.
_LOCK = Path(tempfile.gettempdir()) / "labscale-tests-apt.lock"


def install_packages(packages: Sequence[str]) -> str | None:
    """Install them as root; what the command said when it failed, else None."""
    apt = ["apt-get", "-o", "DPkg::Lock::Timeout=600", "-qq"]
    environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for arguments in (["update"], ["install", "--yes", "--no-install-recommends", *packages]):
            done = subprocess.run([*apt, *arguments], env=environ, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return done.stderr.strip()
    return None

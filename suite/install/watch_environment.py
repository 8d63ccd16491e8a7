"""The environment of `nox -s watch`: the worker's packages and a viewer, apart from the worker that measures."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.files.cache import cache_root
from suite.install.pins import PINS_DIR, sha256
from suite.install.worker import Worker, install, provision_worker

PINS_FILE: Final = "watch.txt"
_KEY_LENGTH: Final = 12  # digits of a hash in the folder's name


def provision_watcher(*, project_root: Path, on_message: Callable[[str], None]) -> Worker:
    """Return a worker with the viewer, and the kernels and assets of the one that measures; install what is missing.

    Raises WorkerEnvironmentError as ``provision_worker`` does.
    """
    worker = provision_worker(
        project_root=project_root, stack="kitless", worker_python=None, assets="offline", on_message=on_message
    )
    pins_path = project_root / PINS_DIR / PINS_FILE
    pins_sha256 = sha256(pins_path)
    environment = cache_root() / f"worker-{pins_sha256[:_KEY_LENGTH]}-watch"
    python = install(environment, pins_path=pins_path, stack="kitless", on_message=on_message)
    return replace(worker, python=python, pins_sha256=pins_sha256)

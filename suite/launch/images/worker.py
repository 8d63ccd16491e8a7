"""The worker inside an image: its Python, the offline assets that it builds, and a cache for compiled kernels."""

from collections.abc import Callable
from pathlib import Path

from suite.files.cache import cache_root
from suite.install.worker import RunPython, Worker, find_assets
from suite.schema.record import Assets


def provision_in_image(
    python: Path,
    pins_sha256: str | None,
    *,
    assets: Assets,
    project_root: Path,
    run: RunPython,
    on_message: Callable[[str], None],
) -> Worker:
    """Return the worker, ready to run. ``run`` runs ``python`` in the image, with access to the cache.

    ``pins_sha256`` is None if labscale did not install the worker, as in Isaac Sim's own image.

    Raises:
        WorkerEnvironmentError: the assets cannot be built.
    """
    cache = cache_root()
    cache.mkdir(parents=True, exist_ok=True)
    key = (pins_sha256 or "isaacsim")[:12]
    asset_root, asset_sha256 = find_assets(
        assets, python=python, key=key, project_root=project_root, run=run, on_message=on_message
    )
    kernels = cache / f"kernels-{key}-image"  # compiled against the image's own libraries
    kernels.mkdir(exist_ok=True)
    return Worker(
        python=python, pins_sha256=pins_sha256, asset_root=asset_root, asset_sha256=asset_sha256, cache_dir=kernels
    )

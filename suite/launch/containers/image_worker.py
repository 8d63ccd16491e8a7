"""The worker inside an image, whatever starts it: its Python, offline assets built by that, a cache for kernels."""

from collections.abc import Callable
from pathlib import Path

from suite.files.cache import cache_root
from suite.images.table import find_image
from suite.install.asset_root import RunPython, find_assets
from suite.install.pins import sha256
from suite.install.worker import Worker, worker_pins
from suite.schema.record import Assets, Stack


def provision_in_image(
    python: Path,
    pins_sha256: str | None,
    *,
    assets: Assets,
    project_root: Path,
    run: RunPython,
    on_message: Callable[[str], None],
) -> Worker:
    """Return the worker, ready to run. ``run`` runs ``python`` in the image, where the cache can be written.

    ``pins_sha256`` is None where labscale did not install the worker, as in Isaac Sim's own image.

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


def provision_in_image_of(
    stack: Stack, *, assets: Assets, project_root: Path, run: RunPython, on_message: Callable[[str], None]
) -> Worker:
    """As above, for an image that is a file and has no labels to ask: what the table of images says of the stack."""
    return provision_in_image(
        Path(find_image(stack, project_root).worker_python),
        None if stack == "isaacsim" else sha256(worker_pins(project_root, stack)),
        assets=assets,
        project_root=project_root,
        run=run,
        on_message=on_message,
    )

"""Explains a missing asset: which one it is and where to get it. Imports no torch."""

from collections.abc import Iterator
from contextlib import contextmanager

from suite.schema.record import Case


@contextmanager
def missing_asset_named(case: Case, asset_root: str | None) -> Iterator[None]:
    """Replace Isaac Lab's error about a missing file by one that names the asset and where to get it.

    Raises:
        FileNotFoundError: a file is missing; reworded if it is one that the offline assets lack.
    """
    try:
        yield
    except FileNotFoundError as error:
        _, is_asset, name = str(error).partition(asset_root or "\0")
        if case.assets != "offline" or not is_asset:
            raise
        raise FileNotFoundError(
            f"{case.task} needs {name.strip('/')}, which the offline assets do not have: they cover labscale's own "
            "tasks only. Use NVIDIA's assets with --assets official, from the internet or from the folder that "
            "ISAACSIM_ASSET_ROOT names."
        ) from error

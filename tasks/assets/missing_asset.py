"""An asset that the offline ones lack, named with what helps. Imports no torch."""

from collections.abc import Iterator
from contextlib import contextmanager

from suite.schema.record import Case


@contextmanager
def missing_asset_named(case: Case, asset_root: str | None) -> Iterator[None]:
    """Isaac Lab names the whole path of a file that is not there; say which asset that is, and where it can be had.

    Raises:
        FileNotFoundError: what Isaac Lab raised, in other words where a file of the offline assets is missing.
    """
    try:
        yield
    except FileNotFoundError as error:
        _, is_asset, name = str(error).partition(asset_root or "\0")
        if case.assets != "offline" or not is_asset:
            raise
        raise FileNotFoundError(
            f"{case.task} needs {name.strip('/')}, which the offline assets do not have: they are those of labscale's "
            "own tasks. Take NVIDIA's with --assets official, from the internet or from the folder that "
            "ISAACSIM_ASSET_ROOT names."
        ) from error

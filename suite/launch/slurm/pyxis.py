"""What srun is told to put a step into a container by pyxis, the plugin of Slurm that starts enroot. Pure.

Where Apptainer wraps a command, pyxis takes a whole step: what watches the ranks runs inside the image too. Written
after the documentation and the option table of pyxis; labscale has not run on a cluster that has it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.errors import UsageError

SUFFIXES: Final = frozenset({".sqsh", ".squashfs"})  # of what `enroot import` writes
OPTION: Final = "--container-image"  # that srun has where the plugin is
_SEPARATORS: Final = ",: \t"


@dataclass(frozen=True, kw_only=True)
class PyxisOptions:
    """What steps in an image need of the nodes, on all of which every path here is the same."""

    image: Path  # squashfs
    project_root: Path
    asset_root: Path | None = None
    image_digest: str | None = None  # sha256:… of the file


def is_image(name: str) -> bool:
    return Path(name).suffix in SUFFIXES


def srun_options(
    options: PyxisOptions, *, workdir: Path, writable: Sequence[Path] = (), variables: Iterable[str] = ()
) -> tuple[str, ...]:
    """Options of a step that works in ``workdir``.

    ``variables``: those of the job that count more than the image's own. Raises UsageError for a path that pyxis would
    take for two.
    """
    readable = [path for path in (options.project_root, options.asset_root) if path is not None]
    folders = [*((path, ":ro") for path in readable), *((path, "") for path in writable)]
    folders.sort(key=lambda folder: len(folder[0].parts))  # one inside another comes after it
    for path in (options.image, *(path for path, _ in folders)):
        if any(separator in str(path) for separator in _SEPARATORS):
            raise UsageError(
                f"{path} has a comma, a colon or a space, which separate paths for pyxis. Use another folder."
            )
    names = sorted(set(variables))
    return (
        f"{OPTION}={options.image}",
        f"--container-mounts={','.join(f'{path}:{path}{flags}' for path, flags in folders)}",
        f"--container-workdir={workdir}",
        "--no-container-mount-home",  # a run is the same for everyone
        "--no-container-entrypoint",
        *((f"--container-env={','.join(names)}",) if names else ()),
    )

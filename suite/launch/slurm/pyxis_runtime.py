"""An image that pyxis runs on the nodes of Slurm: whether both are there, the worker in it, and a round's steps."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suite.errors import ContainerError, UsageError
from suite.external import slurm
from suite.files.cache import cache_root
from suite.install.pins import sha256
from suite.install.worker import Worker
from suite.launch.containers import eula
from suite.launch.containers.image_worker import provision_in_image_of
from suite.launch.nodes.node import HEAD, PEER, RENDEZVOUS_ID, RENDEZVOUS_PORT
from suite.launch.slurm import pyxis
from suite.launch.slurm.pyxis import PyxisOptions
from suite.launch.slurm.script import SlurmOptions, requested
from suite.matrix.plan import THREAD_VARIABLES
from suite.schema.record import Assets, Launch, Stack

BUILD_MINUTES: Final = 15  # of a job that builds the assets
QUEUE_TIMEOUT_S: Final = 24 * 3600.0
_OF_THE_JOB: Final = (HEAD, PEER, RENDEZVOUS_ID, RENDEZVOUS_PORT, *THREAD_VARIABLES)


@dataclass(frozen=True, kw_only=True)
class PyxisPlace:
    """The image, and the worker in it."""

    worker: Worker
    options: PyxisOptions
    accept_eula: bool

    def node_container(self, project_root: Path) -> tuple[str, ...]:
        """Options of srun for what looks at a node."""
        return pyxis.srun_options(self.options, workdir=project_root, writable=(self.worker.cache_dir,))

    def round_container(self, launch: Launch) -> tuple[str, ...]:
        """Options of srun for the training of a round."""
        run_dir = Path(launch.run_dir)
        return pyxis.srun_options(
            self.options,
            workdir=run_dir,
            writable=(self.worker.cache_dir, run_dir),
            variables=(*self.wrap(launch).env, *_OF_THE_JOB),
        )

    def wrap(self, launch: Launch) -> Launch:
        """With what a round in the image needs in its environment; its command is a path inside already."""
        inside = {"XDG_CACHE_HOME": "/tmp", "XDG_CONFIG_HOME": "/tmp"}  # noqa: S108  there is no home
        return replace(launch, env={**launch.env, **inside, **(eula.ACCEPTED if self.accept_eula else {})})


def find(image: str, *, project_root: Path, must_run: bool) -> PyxisOptions:
    """The image as a file. ``must_run``: Slurm has to be able to start it from here.

    Raises:
        UsageError: there is no such file.
        ContainerError: Slurm's srun knows no containers.
    """
    path = Path(image).absolute()
    if not path.is_file():
        raise UsageError(f"--image {path} does not exist. Make one: enroot import -o FILE.sqsh dockerd://TAG.")
    if must_run and pyxis.OPTION not in slurm.options_of_srun():
        raise ContainerError(
            f"--image {path} is for pyxis, and srun has no {pyxis.OPTION} here: the cluster has no pyxis. Ask for it,"
            " or take a .sif file, which needs Apptainer on the nodes."
        )
    return PyxisOptions(image=path, project_root=project_root, image_digest=f"sha256:{sha256(path)}")


def provision(
    found: PyxisOptions,
    slurm_options: SlurmOptions,
    *,
    stack: Stack,
    assets: Assets,
    accept_eula: bool,
    project_root: Path,
    on_message: Callable[[str], None],
) -> PyxisPlace:
    """The worker of the image, with offline assets built by a step of Slurm where they are not there yet.

    Raises:
        WorkerEnvironmentError: the assets cannot be built.
    """
    container = pyxis.srun_options(found, workdir=project_root, writable=(cache_root(),))

    def inside(argv: Sequence[str], env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        run = slurm.run_step(
            (
                "--job-name=labscale-assets",
                "--nodes=1",
                *(f"--{option}" for option in (*requested(slurm_options, num_gpus=0), *slurm_options.more)),
                f"--time={slurm_options.time or BUILD_MINUTES}",
                "--input=none",
                *container,
                "env",
                *(f"{name}={value}" for name, value in env.items()),
                *argv,
            ),
            timeout_s=QUEUE_TIMEOUT_S,
        )
        code = 1 if run.exit_code is None else run.exit_code
        return subprocess.CompletedProcess(list(argv), code, run.stdout, run.stderr)

    worker = provision_in_image_of(stack, assets=assets, project_root=project_root, run=inside, on_message=on_message)
    return PyxisPlace(worker=worker, options=replace(found, asset_root=worker.asset_root), accept_eula=accept_eula)

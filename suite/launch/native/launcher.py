"""The launcher ``native``: rounds as processes of this machine."""

import functools
import os
from dataclasses import replace
from typing import Final

from suite.env_check.report import env_check
from suite.files.paths import ROOT
from suite.install.bundle_contents import require_device
from suite.install.worker import check_python, names_of, provision_own_worker, provision_worker
from suite.launch.manifests.image_digest import digest_of
from suite.launch.native.run import run
from suite.launch.runtime import Asked, LauncherEntry, NoSettings, Runtime
from suite.matrix.resources import Resources
from suite.schema.record import Environment


def on_this_machine(asked: Asked) -> Runtime:
    """The worker environments of this machine, or the Python that the user brought, started by torchrun here."""
    require_device(asked.device)
    worker = provision_worker(
        project_root=ROOT,
        stack=asked.stack,
        worker_python=asked.options.setup.worker_python,
        worker_packages=asked.options.setup.worker_packages,
        assets=asked.options.setup.assets,
        on_message=asked.say,
    )
    if asked.options.setup.worker_python is not None:
        also = [name for own in asked.own_workers for name in names_of(own, project_root=ROOT)]
        check_python(worker.python, stack=asked.stack, also=also)
    own_workers = {
        own: provision_own_worker(
            own,
            worker,
            project_root=ROOT,
            worker_packages=asked.options.setup.worker_packages,
            on_message=asked.say,
        )
        for own in asked.own_workers
        if asked.options.setup.worker_python is None or own.packages
    }
    others = tuple(own.python for own in own_workers.values())
    return Runtime(
        worker=worker,
        own_workers=own_workers,
        launch=run,
        launch_in_turns=run,
        check=functools.partial(env_check, replace(asked.request, other_workers=others)),
        python_path=os.environ.get("PYTHONPATH"),
    )


def all_of(machine: Environment) -> Resources:
    """One node, with all that the machine has."""
    return Resources(nnodes=1, gpus_per_node=len(machine.gpus), cpus_per_node=machine.num_cpus or 1)


def in_this_image(here: Runtime) -> Runtime:
    """Name the image that labscale itself runs in, if it runs in one and was told its digest."""
    return replace(here, image_digest=digest_of(os.environ))


NATIVE: Final = LauncherEntry(
    name="native",
    resources=lambda _, machine: all_of(machine),
    provision=lambda _, asked: in_this_image(on_this_machine(asked)),
    settings=NoSettings,
    picks_worker=True,
    can_profile=True,
    can_film=True,
    gives_cores=True,
    has_own_workers=True,
    takes_turns=True,
)

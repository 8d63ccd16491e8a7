"""Runs the cells of a version's pages.

All cells of a version run in one kernel, page after page, because starting one takes longer than drawing a page.
Versions run at the same time, each in a kernel of its own.
"""

import asyncio
import os
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from traitlets.config import Config

from reports.sets.version import Version, hand_on
from reports.site import guide
from suite.errors import ReportError
from suite.files.paths import ROOT

CELL_TIMEOUT_S: Final = 600
MAX_SOCKET_BYTES: Final = 108  # of a name and its end: unix(7)


def run_together(builds: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run some builds, as many at a time as there are cores. The first error ends all."""
    with asyncio.Runner(loop_factory=_LoopOfTheCommand) as runner:
        runner.run(_run_together(builds))


async def _run_together(builds: Sequence[Coroutine[Any, Any, None]]) -> None:
    cores = asyncio.Semaphore(os.cpu_count() or 1)

    async def run(build: Coroutine[Any, Any, None]) -> None:
        with closing(build):  # one that never starts too
            async with cores:
                await build

    try:
        # A group waits until all have cleaned up. At Ctrl-C ``gather`` would be done with the first, and the runner
        # would cancel the others again, in the middle of ending their kernels.
        async with asyncio.TaskGroup() as group:
            for build in builds:
                group.create_task(run(build))
    except BaseExceptionGroup as error:
        raise error.exceptions[0] from None


async def run_cells(pages: Mapping[str, Any], version: Version, folder: Path) -> None:
    """Run the cells of all pages in one kernel of this Python and store the outputs in them.

    ``folder``: for the kernel's sockets and the version that it reads. Raises ReportError when a cell fails.
    """
    together = nbformat.v4.new_notebook(cells=[cell for page in pages.values() for cell in page.cells])
    client = NotebookClient(
        together,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(ROOT)}},
        record_timing=False,
        shutdown_kernel="immediate",  # one that ends in order within a cell says so, at length
        config=sockets_in(folder),
    )
    environment = {
        **os.environ,
        **hand_on(version, folder / "version.pickle"),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),  # a bundle's packages
        "FONTCONFIG_FILE": str(guide.BOOK / "fonts.conf"),
    }
    try:
        await _run(client, environment)
    except CellExecutionError as error:
        raise ReportError(
            f"A cell of a page failed: {error.ename}: {error.evalue}. Run it on its own to see where."
        ) from error
    except (DeadKernelError, TimeoutError) as error:
        raise ReportError(f"The pages' cells could not be run to the end: {error}") from error


async def _run(client: NotebookClient, environment: Mapping[str, str]) -> None:
    try:
        await client.async_execute(env=environment)
    except DeadKernelError as error:
        task = asyncio.current_task()
        if task and task.cancelling():  # by Ctrl-C, which nbclient takes for the kernel's death
            raise asyncio.CancelledError from error
        raise


class _LoopOfTheCommand(asyncio.SelectorEventLoop):
    """Leaves signals to the command.

    At Ctrl-C nbclient would take its kernel away from under itself, and end in whatever error that leads to.
    """

    def add_signal_handler(self, *_: object) -> None:
        raise RuntimeError("signals are the command's")  # the error that nbclient goes on after


def sockets_in(folder: Path) -> Config:
    """Sockets of the kernel as files in ``folder``, so that there is no open port.

    By themselves they are kernel-ipc-1 and on in the working folder, where two builds that start at once take each
    other's. Where the name is longer than the kernel lets one be, they are ports of this machine.
    """
    name = str(folder / "kernel")
    is_short = len(os.fsencode(f"{name}-5")) < MAX_SOCKET_BYTES
    return Config({"KernelManager": {"transport": "ipc", "ip": name} if is_short else {}})

"""Runs the cells of a version's pages.

All cells of a version run in a process of their own, page after page: what pages share is computed once, and a cell
that crashes does not take the command with it. Versions run at the same time.
"""

import ast
import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import nbformat

from reports.sets.version import Version, hand_on
from reports.site import guide
from suite.errors import ReportError
from suite.external.parent_death import end_with_parent
from suite.files.paths import ROOT, import_path
from suite.files.wording import last_words

TIMEOUT_S: Final = 1800  # for all cells of a version
SOURCES, OUTPUTS = "cells.json", "outputs.json"  # of the code cells, in order

type MimeBundle = Mapping[str, str]  # MIME type -> what a page shows


def run_together(builds: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run some builds, as many at a time as there are cores. The first error ends all."""
    asyncio.run(_run_together(builds))


async def _run_together(builds: Sequence[Coroutine[Any, Any, None]]) -> None:
    cores = asyncio.Semaphore(os.cpu_count() or 1)

    async def run(build: Coroutine[Any, Any, None]) -> None:
        with closing(build):  # one that never starts too
            async with cores:
                await build

    try:
        # A group waits until all have cleaned up. At Ctrl-C ``gather`` would be done with the first, and the runner
        # would cancel the others again, in the middle of ending their processes.
        async with asyncio.TaskGroup() as group:
            for build in builds:
                group.create_task(run(build))
    except BaseExceptionGroup as error:
        raise error.exceptions[0] from None


async def run_cells(pages: Mapping[str, Any], version: Version, folder: Path) -> None:
    """Run the cells of all pages in one process and store the outputs in them.

    ``folder``: for the files that the two processes exchange. Raises ReportError when a cell fails.
    """
    cells = [cell for page in pages.values() for cell in page.cells if cell.cell_type == "code"]
    (folder / SOURCES).write_text(json.dumps([cell.source for cell in cells]), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, str(folder),
        env={
            **os.environ, **import_path(ROOT, os.environ.get("PYTHONPATH")),
            **hand_on(version, folder / "version.pickle"),
            "FONTCONFIG_FILE": str(guide.BOOK / "fonts.conf"),
        },
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, preexec_fn=end_with_parent,
    )  # fmt: skip
    try:
        async with asyncio.timeout(TIMEOUT_S):
            printed, _ = await process.communicate()
    except TimeoutError:
        raise ReportError(f"Pages were not drawn after {TIMEOUT_S} s. Try again on a less busy machine.") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode:
        cause = last_words(printed.decode(errors="replace"), lines=1)
        raise ReportError(f"The cells of the pages ended with exit code {process.returncode}: {cause}")
    outputs: Sequence[MimeBundle | None] = json.loads((folder / OUTPUTS).read_text(encoding="utf-8"))
    for cell, output in zip(cells, outputs, strict=True):
        if output is not None:
            cell.outputs = [nbformat.v4.new_output("execute_result", data=output, execution_count=1)]


def output_of(source: str, namespace: dict[str, Any]) -> MimeBundle | None:
    """Run a cell; return what its last expression shows, or None."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), namespace)  # noqa: S102  (labscale's own page)
    if not isinstance(last, ast.Expr):
        return None
    shown = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)  # noqa: S307
    return None if shown is None else shown._repr_mimebundle_()  # as Jupyter asks for it


def main(folder: Path) -> None:
    namespace: dict[str, Any] = {}
    sources = json.loads((folder / SOURCES).read_text(encoding="utf-8"))
    outputs = [output_of(source, namespace) for source in sources]
    (folder / OUTPUTS).write_text(json.dumps(outputs), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""The command of `nox -s pictures`: draws each task with Newton's renderer, for the pages of tasks.

It writes ``book/pictures/NAME.png`` and ``book/pictures/pictures.json``, which has how each was drawn, with which
versions and on which day, and its SHA-256. The worker environment is installed if it is missing.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from suite.errors import WorkerEnvironmentError
from suite.external import parent_death
from suite.files.paths import ROOT, import_path
from suite.files.wording import last_lines
from suite.install.pins import sha256
from suite.install.worker import Worker, provision_worker
from suite.options.command_line import Parser, exit_code_of
from suite.schema.rank_protocol import last_answer

FOLDER: Final = ROOT / "book" / "pictures"
LIST: Final = "pictures.json"


@dataclass(frozen=True, kw_only=True)
class View:
    """What is drawn, and from where."""

    task: str
    eye: tuple[float, float, float]  # of the camera [m]
    target: tuple[float, float, float]  # [m]
    steps: int  # of random actions before the picture
    presets: tuple[str, ...] = ()
    seed: int = 42
    width_px: int = 960
    height_px: int = 540


VIEWS: Final = {
    "cartpole": View(task="Isaac-Cartpole-Direct", eye=(4.2, 0.9, 2.7), target=(0, 0.9, 2.05), steps=12),
    "cartpole-with-camera": View(
        task="Isaac-Cartpole-Camera-Direct", eye=(4.2, 0.9, 2.7), target=(0, 0.9, 2.05), steps=12
    ),
    "ant": View(task="Isaac-Ant", eye=(1.9, -1.9, 1.4), target=(0.2, 0, 0.4), steps=30),
    "shadow-hand-with-camera": View(
        task="Isaac-Reorient-Cube-Shadow-Camera-Direct", eye=(0.32, -0.68, 0.86), target=(-0.02, -0.33, 0.54), steps=6
    ),
}


def draw(view: View, file: Path, worker: Worker) -> dict[str, str]:
    """Draw one picture in a process of its own; return the versions that drew it.

    Raises WorkerEnvironmentError with what the process said, if it fails.
    """
    asked = {**asdict(view), "file": str(file)}
    environment = {
        **import_path(ROOT, os.environ.get("PYTHONPATH")),
        "WARP_CACHE_PATH": str(worker.cache_dir / "warp"),
        **({"ISAACSIM_ASSET_ROOT": str(worker.asset_root)} if worker.asset_root else {}),
    }
    done = parent_death.run([str(worker.python), "-m", "tasks.picture", json.dumps(asked)], environment)
    if done.returncode != 0 or not file.is_file():
        raise WorkerEnvironmentError(
            f"{view.task} could not be drawn, exit code {done.returncode}:\n{last_lines(done.stderr)}\nRun "
            "`nox -s env_check` to see what is missing here."
        )
    return dict(last_answer(done.stdout) or {})


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(prog="nox -s pictures --", description="Draw a picture of each task for its page.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these of {', '.join(VIEWS)} (default: all)")
    names = parser.read(arguments).names or list(VIEWS)
    unknown = [name for name in names if name not in VIEWS]
    if unknown:
        parser.error(f"no picture is called {', '.join(unknown)}; there are {', '.join(VIEWS)}")
    worker = provision_worker(on_message=print)
    pictures: dict[str, Any] = json.loads((FOLDER / LIST).read_text()) if (FOLDER / LIST).is_file() else {}
    for name in names:
        file = FOLDER / f"{name}.png"
        versions = draw(VIEWS[name], file, worker)
        pictures[name] = {
            "sha256": sha256(file),
            "drawn": f"{datetime.now(UTC):%Y-%m-%d}",
            "versions": versions,
            "view": asdict(VIEWS[name]),
        }
        print(file)
    (FOLDER / LIST).write_text(json.dumps(pictures, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

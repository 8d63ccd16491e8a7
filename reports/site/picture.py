"""Draw README's picture, the first page of a built site: ``python -m reports.site.picture SITE [FILE]``.

The page is drawn by a Chromium that is installed; its fonts decide how letters look, so no test compares pictures.
"""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from suite.errors import ReportError
from suite.files.paths import ROOT
from suite.options.command_line import Parser, any_path, exit_code_of, results_path

PICTURE: Final = ROOT / ".github" / "report.png"
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")
WIDTH_PX, HEIGHT_PX = 1440, 1430  # charts, calculator, and how sure it is
PATIENCE_MS: Final = 6000  # of the page's own clock, until charts are drawn
TIMEOUT_S: Final = 120


def draw(page: Path, file: Path) -> None:
    """Draw the top of ``page`` as PNG.

    Raises:
        ReportError: there is no such page, no browser, or it draws nothing.
    """
    if not page.is_file():
        raise ReportError(f"{page} is not there. Build it first: nox -s publish")
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise ReportError(f"None of {', '.join(BROWSERS)} is installed, and a picture needs one of them.")
    file.unlink(missing_ok=True)
    command = [
        browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        f"--virtual-time-budget={PATIENCE_MS}", f"--window-size={WIDTH_PX},{HEIGHT_PX}",
        f"--screenshot={file.resolve()}", page.resolve().as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if not file.is_file():
        raise ReportError(f"{browser} drew nothing and ended with {done.returncode}: {done.stderr.strip()[-500:]}")


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(prog="python -m reports.site.picture", description="Draw README's picture.")
    parser.add_argument("site", type=results_path, metavar="SITE", help="what `nox -s publish` wrote")
    parser.add_argument("file", type=any_path, nargs="?", default=PICTURE, metavar="FILE")
    options = parser.read(arguments)
    draw(options.site / "latest" / "index.html", options.file)
    print(options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())

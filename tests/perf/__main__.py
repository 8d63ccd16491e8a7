"""Time labscale's own work and show it beside the stored figures: ``nox -s perf -- [--only NAME] [--write]``."""

import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from suite.errors import LabscaleError
from suite.external.machine import capture
from suite.files.paths import ROOT
from suite.options.command_line import Parser
from suite.options.types import positive
from tests.perf.measurements import MEASUREMENTS, Measurement

STORED: Final = ROOT / "reports" / "perf.json"
TIMES: Final = 5

type Times = Mapping[str, Sequence[float]]


def measure(measurement: Measurement, times: int) -> list[float]:
    """Seconds of each of several runs, each in a folder of its own."""
    found = []
    for _ in range(times):
        with tempfile.TemporaryDirectory(prefix="labscale-perf-") as folder:
            found.append(round(measurement.run(Path(folder)), 6))
    return found


def read_stored() -> dict[str, Any]:
    """The stored figures; empty where there are none yet."""
    return json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {"times_s": {}}


def shown(times_s: Sequence[float] | None) -> str:
    """The median and the range, in seconds or milliseconds; a dash where nothing was measured."""
    if not times_s:
        return "-"
    scale, unit = (1000, "ms") if max(times_s) < 1 else (1, "s")
    low, middle, high = (scale * value for value in (min(times_s), statistics.median(times_s), max(times_s)))
    return f"{middle:.3g} {unit} ({low:.3g} to {high:.3g})"


def table(now: Times, stored: Mapping[str, Any]) -> Table:
    machine = f"{stored['cpu_model']}, {stored['num_cpus']} cores, {stored['date']}" if stored["times_s"] else "none"
    found = Table("what", "now", f"stored: {machine}")
    for each in MEASUREMENTS:
        if each.name in now:
            found.add_row(each.what, shown(now[each.name]), shown(stored["times_s"].get(each.name)))
    return found


def write(now: Times) -> None:
    """Store these figures with machine, date and commit in place of all earlier ones."""
    here = capture()
    content = {
        "cpu_model": here.cpu_model,
        "num_cpus": here.num_cpus,
        "date": datetime.now(tz=UTC).date().isoformat(),
        "git_commit": here.git_commit,
        "times_s": now,
    }
    STORED.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = Parser(prog="nox -s perf --", description="Time labscale's own work, beside the stored figures.")
    names = [each.name for each in MEASUREMENTS]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"one of {', '.join(names)}")
    parser.add_argument("--times", type=positive, default=TIMES, metavar="N", help="how often (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help=f"store the figures in {STORED.relative_to(ROOT)}")
    console = Console()
    try:
        options = parser.read(arguments)
        stored, now = read_stored(), dict[str, list[float]]()
        for each in MEASUREMENTS:
            if options.only is None or each.name in options.only:
                console.print(f"{each.what} ...", highlight=False)
                now[each.name] = measure(each, options.times)
        console.print(table(now, stored))
        if options.write:
            write({**stored["times_s"], **now} if options.only else now)
    except LabscaleError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

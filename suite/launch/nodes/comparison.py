"""Compare the nodes of a job: ``python -m suite.launch.nodes.comparison REPORT…`` reads the report of each.

Prints a line for each difference; exit code 1 if there is one. A missing report is a difference.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from suite.env_check.nodes import differences
from suite.env_check.report import Report, read_report
from suite.files.input_file import read_text


def compare(paths: Sequence[Path]) -> Iterator[str]:
    """Yield the differences. ``paths`` are the reports, each with the node's stderr beside it as ``.txt``."""
    reports: dict[str, Report] = {}
    for path in paths:
        try:
            report = read_report(read_text(path) if path.exists() else "")
            name = report.host if report.host not in reports else f"{report.host} ({path.stem})"
            reports[name] = report
        except ValueError as error:
            errors = path.with_suffix(".txt")
            lines = read_text(errors).strip().splitlines() if errors.exists() else []
            yield f"{path.stem}: {error}; last: {lines[-1] if lines else 'no message'}"
    yield from map(str, differences(reports))


def main(argv: Sequence[str]) -> int:
    found = list(compare([Path(name) for name in argv]))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

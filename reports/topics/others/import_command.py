"""Import results of another tool as a set of their own: Isaac Lab's schema-1.4 training bundles.

``python -m reports.topics.others.import_command FILE... --out DIR``

Every file is checked before anything is written. The set keeps them byte by byte, with their hashes; its figures are
read from them whenever a report is built, under Isaac Lab's names, and never computed with labscale's own.
"""

import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from reports.display.html import count, percent, seconds
from reports.sets.imported.bundle import FORMAT
from reports.sets.imported.imported_set import ForeignCase, cases_of, efficiencies, refuse_repeated
from reports.sets.imported.reading import ImportedRun, read_run
from reports.sets.imported.wording import RANK_0, case_name
from reports.sets.manifest import MANIFEST
from reports.verification.hashes import write_hashes
from suite.errors import ForeignResultError
from suite.files.wording import counted
from suite.options.command_line import Parser, any_path, exit_code_of
from suite.records.folders import BUNDLES


def import_bundles(paths: Sequence[Path], out: Path) -> tuple[ImportedRun, ...]:
    """Check every file, then write the set.

    Raises ForeignResultError with what is wrong in each file; then nothing is written.
    """
    _refuse_used(out)
    runs = _read_all(paths)
    refuse_repeated(runs)
    names = [path.name for path in paths]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ForeignResultError(
            f"Two files are named {twice[0]}; a set keeps them under their names, so each must be another. Rename one."
        )
    folder = out / BUNDLES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            shutil.copyfile(path, folder / (path.name if path.suffix == ".json" else f"{path.name}.json"))
        write_hashes(out)
    except OSError as error:
        raise _cannot_be_written(out, error) from error
    return tuple(runs)


def _cannot_be_written(out: Path, error: OSError) -> ForeignResultError:
    return ForeignResultError(
        f"{out} cannot be written: {error.strerror}. Remove it, free some space or choose another folder."
    )


def _refuse_used(out: Path) -> None:
    try:
        is_used = out.exists() and (not out.is_dir() or any(out.iterdir()))
    except OSError as error:
        raise _cannot_be_written(out, error) from error
    if is_used:
        raise ForeignResultError(
            f"{out} is not empty, and results are never overwritten or mixed. Choose a new folder with --out; to add"
            " bundles to a set, import all of them into a new one."
        )


def _read_all(paths: Sequence[Path]) -> list[ImportedRun]:
    """What is wrong in one file does not hide what is wrong in the next."""
    runs, faults = [], []
    for path in paths:
        try:
            runs.append(read_run(path))
        except ForeignResultError as error:
            faults.append(str(error))
    if faults:
        raise ForeignResultError("\n".join([*faults, "Nothing was imported."]))
    return runs


def summary(runs: Sequence[ImportedRun], out: Path) -> Iterator[str]:
    """What was imported, what it can be used for, and what is seen by whoever it is published to."""
    cases = cases_of(runs)
    yield f"{counted(len(runs), 'run')} in {counted(len(cases), 'case')}, {FORMAT}, kept in {out}."
    for case in cases:
        yield (
            f"  {case_name(case)}: {_runs(case)}, iteration_time_s {seconds(case.iteration_time_s)},"
            f" total_fps {count(case.total_fps)}"
        )
    found = efficiencies(cases)
    for one in found:
        yield f"  {one.kind} scaling to {case_name(one.case)}: efficiency {percent(one.efficiency)}"
    yield RANK_0
    hosts = sorted({run.bundle.hardware.hostname for run in runs})
    paths = sorted({path for run in runs for path in (run.bundle.checkpoint_path, run.bundle.video_path) if path})
    yield f"The files name, and publishing shows: host {', '.join(hosts)}; paths {', '.join(paths) or 'none'}."
    yield f"Look at them:     python3 -m nox -s report -- {out}"
    yield (
        f"To publish them:  put the folder into reports/results/<version>, and into {MANIFEST} there:\n"
        f'\n[[set]]\nfolder = "{out.name}"\ntitle = "What ran where"\ncontributed_by = "Who measured"'
    )


def _runs(case: ForeignCase) -> str:
    return f"{counted(len(case.runs), 'run')}, {len(case.completed)} completed"


def main(arguments: Sequence[str] | None = None) -> int:
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(
        prog="nox -s import --",
        description=f"Import files of another benchmark as a set of their own ({FORMAT}). One file is one run: several"
        f" are repeats, or other numbers of GPUs. Exit code {ForeignResultError.exit_code}: a file is not valid; all"
        " that is wrong in it is listed, and nothing is written.",
    )
    parser.add_argument(
        "files", type=any_path, nargs="+", metavar="FILE", help="what `isaaclab benchmark training` wrote"
    )
    parser.add_argument("--out", type=any_path, required=True, metavar="DIR", help="folder of the set: new, or empty")
    options = parser.read(arguments)
    for line in summary(import_bundles(options.files, options.out), options.out):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`nox -s accept -- RESULTS`: whether a machine is as fast as published ones of its kind, and which part is slow."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from reports.accept.judgement import EXIT_CODES, Judgement, judge
from reports.accept.parts import Placed
from reports.accept.published import Measured, measured, read_published
from reports.accept.verdict import verdict
from reports.sets.file_errors import told_when_unreadable
from reports.sets.version import read_version
from suite.errors import UsageError
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.options.command_line import Parser, any_path, any_text, results_path, say, tables_console

PUBLISHED: Final = ROOT / "reports" / "results"
MISSING: Final = "n/a"
_STYLES: Final = {"slow": "red", "fast": "green", "open": "magenta"}
_WORDS_OF_SIGNS: Final = {"slow": "higher", "fast": "lower"}


def main(arguments: Sequence[str]) -> int:
    """0: accepted; 1: slow; 2: nothing can be compared; others as in ``suite.errors``."""
    options = parser().read(arguments)
    if options.results is None:  # the session measures them next, so its other options are checked first
        _chosen(options.baseline, _published(options.published).models)
        return 0
    with told_when_unreadable(options.results):
        own, own_model = _own(options.results)
    machines = _published(options.published)
    models = machines.models
    model = _chosen(options.baseline, models) or own_model
    judgement = judge(own, machines, model)
    show(judgement, tables_console())
    if model not in models:
        print(f"Published are {', '.join(models)}; choose one with --baseline.")
    return EXIT_CODES[judgement.answer]


def parser() -> Parser:
    parser = Parser(
        prog="nox -s accept --",
        description="Say whether a machine is as fast as the published ones with the same GPU model, and which part is"
        " slow. Exit code 0: accepted; 1: slow; 2: nothing can be compared.",
    )
    parser.add_argument(
        "results",
        type=results_path,
        nargs="?",
        metavar="RESULTS",
        help="the --out of `bench`, e.g. runs/accept (without it, `nox -s accept` runs the matrix accept first)",
    )
    parser.add_argument(
        "--baseline", type=any_text, metavar="MODEL", help="GPU model to compare with, e.g. h200 (default: its own)"
    )
    parser.add_argument(
        "--published",
        type=any_path,
        default=PUBLISHED,
        metavar="DIR",
        help="the folder of versions to compare with (default: reports/results)",
    )
    return parser


def _own(folder: Path) -> tuple[Measured, str]:
    """Read the results of a campaign, and the GPU model that it ran on; say which have no times.

    Raises UsageError for several campaigns, without a run on a GPU that has times, or with several models.
    """
    version = read_version(folder, name="")
    models, what = measured(version, version.sets, starts=True).models, "have no run on a GPU"
    results = [result for result_set in version.sets for result in result_set.campaign.results]
    if untimed := [result.case.case_id for result in results if result.case.only_learning]:
        print(f"Left out, since their runs shared a GPU and have no times: {', '.join(untimed)}.")
        what = "have no run with times"
    if len(version.sets) == len(models) == 1:
        return measured(version, version.sets), models[0]
    if models:
        what = f"ran on several GPU models: {', '.join(models)}" if len(models) > 1 else "are of several campaigns"
    raise UsageError(
        f"The results in {folder} {what}. Allowed are results of a machine with GPUs of one model: run"
        " `nox -s accept` on it, or `nox -s bench -- --matrix accept`."
    )


def _published(folder: Path) -> Measured:
    with told_when_unreadable(folder):
        return read_published(folder)


def _chosen(asked: str | None, models: Sequence[str]) -> str | None:
    """The published model that ``asked`` is a part of, in capitals or not; None if nothing is asked.

    Raises UsageError if no model or several have it in their names.
    """
    if asked is None:
        return None
    matching = [model for model in models if asked.lower() in model.lower()]
    exact = [model for model in matching if asked.lower() in (model.lower(), model.lower().removeprefix("nvidia "))]
    if len(exact or matching) != 1:
        cause = "several models have this in their names" if matching else "nobody has published it"
        raise UsageError(f"--baseline {asked}: {cause}. Allowed are {', '.join(models)}, or a part of such a name.")
    return (exact or matching)[0]


def show(judgement: Judgement, console: Console) -> None:
    """Print the cases and the parts as tables, why cases are open, and the verdict."""
    if judgement.cases:
        console.print(_cases_table(judgement))
    if any(placed.worst for placed in judgement.parts):
        console.print(_parts_table(judgement))
    for placed in judgement.cases:
        if placed.reason:
            say(console, f"{placed.name}: open: {placed.reason}")
    if judgement.machines and judgement.cases:
        published = ", ".join(
            f"{driver} on {counted(number, 'machine')}" for driver, number in judgement.published_drivers.items()
        )
        own = ", ".join(judgement.drivers) or "unknown"
        say(console, f"Driver: {own} here; published: {published or 'unknown'}.")
    say(console, verdict(judgement))


def _cases_table(judgement: Judgement) -> Table:
    numbers = ("Quickest", "Median", "Slowest", "Machines", "Would see", "Verdict")
    table = _table("Configuration", "Runs", "s/iteration", "95 % interval", *numbers)
    for judged in judgement.cases:
        interval = judged.time.value.interval
        table.add_row(
            judged.name,
            str(judged.time.runs),
            *_numbers(judged.time)[:1],
            "{:.4g} to {:.4g}".format(*interval) if interval else MISSING,
            *_numbers(judged.time)[1:],
            _seen(judged.time),
            _word(judged.word),
        )
    return table


def _parts_table(judgement: Judgement) -> Table:
    """A row for each part that another machine has, in the case in which it is furthest above the slowest."""
    numbers = ("Here", "Quickest", "Median", "Slowest", "Machines", "Would see")
    table = _table("Part", "Points to", "Configurations", *numbers, "Furthest off in", "Verdict")
    for judged in judgement.parts:
        if judged.worst is not None:
            case_id, worst = judged.worst
            named = (f"{judged.part.name} in {judged.part.unit}", judged.part.points_to, str(len(judged.decided)))
            word = _WORDS_OF_SIGNS.get(judged.word, judged.word) if judged.part.kind == "sign" else judged.word
            table.add_row(*named, *_numbers(worst), _seen(worst), case_id, _word(word))
    return table


def _seen(placed: Placed) -> str:
    """The slowness, against the median machine, from which on a machine would be called slow."""
    return MISSING if placed.would_see is None else f"from +{placed.would_see:.0%}"


def _numbers(placed: Placed) -> list[str]:
    """Here, then the quickest, the median and the slowest machine, and how many there are."""
    values = (placed.value.value, min(placed.others.values(), default=None), placed.middle, placed.slowest)
    return [*(MISSING if value is None else f"{value:.4g}" for value in values), str(len(placed.others))]


def _table(*names: str) -> Table:
    return Table(*(Column(name, overflow="fold") for name in names), box=box.SIMPLE_HEAD, pad_edge=False)


def _word(word: str) -> Text:
    return Text(word, style=_STYLES.get(word, ""))

"""Files of results that are stored or imported, read by every command that reads results."""

import ast
import json
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import jupytext
import pytest

from reports import compare_command, export, figure, result_sets, verify
from reports.book import page_sources
from reports.import_command import import_bundles, summary
from reports.verification.hashes import write_hashes
from suite import a_a, interference, upstream
from suite.options import ROOT
from suite.result_folders import BUNDLES
from suite.schema import CaseResult
from tests.fuzz.campaign_files import CAMPAIGN_FILES
from tests.fuzz.mutations import any_number, json_bytes, mutate_bytes, mutate_json, mutate_toml
from tests.fuzz.target import EXIT_CODES, Target
from tests.generated_results import make_case, make_result, node_results, stack_results, sweep_results, write_results

VERSION: Final = ROOT / "reports" / "results" / "2026.11"
SET: Final = VERSION / "h200-x4-pairs"  # with upstream.json
CASES: Final = (
    VERSION / "h200-x4/cases/shadow-horizontal/rsl_rl-kitless-n2048-1x4.json",
    VERSION / "h200-x2-shadow/cases/shadow-horizontal/rsl_rl-kitless-n1024-2x1.json",
    VERSION / "h200-x4-controls/cases/control-cartpole-all-reduce/rsl_rl-kitless-n256-2x2.json",
    VERSION / "cpu-upstream/cases/ant-clock/rsl_rl-kitless-cpu-n32-1x1.json",
    VERSION / "h200-x4/cases/cartpole-per-gpu/rl_games-kitless-n4096-1x1.json",
    SET / "cases/shadow-horizontal/rsl_rl-kitless-n1024-1x2.json",
)
FOREIGN: Final = ROOT / "tests" / "golden" / "isaaclab_1.4"
ENV_CHECK: Final = VERSION / "env_check" / "h200-one.json"
COMPARES: Final = frozenset({0, 1, 2})  # what `compare` says of cases
MANIFEST: Final = """# order and titles
[[set]]
folder = "one"
title = "One"

[[set]]
folder = "two"
title = "Two"
role = "learning"
contributed_by = "Example Lab"
link = "https://example.org/robots"
citation = "Example Lab, 2026"
"""


@cache
def document(path: Path) -> Any:
    return json.loads(path.read_bytes())


def read_stored_case(rng: random.Random, folder: Path) -> None:
    source = rng.choice(CASES)
    path = folder / "set" / source.relative_to(source.parents[2])
    path.parent.mkdir(parents=True)
    path.write_bytes(changed_case(rng, document(source)))
    as_it_was = folder / "sound" / path.relative_to(folder / "set")
    as_it_was.parent.mkdir(parents=True)
    shutil.copyfile(source, as_it_was)
    read_with_any_command(rng, folder / "set", folder / "sound")


def changed_case(rng: random.Random, stored: Any) -> bytes:
    """Anything anywhere; or one thing in all rounds alike, which no check of shape finds; or a few samples."""
    match rng.randrange(4):
        case 0:
            return json_bytes(rng, stored)
        case 1:
            return json.dumps(_with_rounds(stored, lambda record: _with_another_case(rng, record))).encode()
        case 2:
            at = rng.choice(_numbers(stored["labscale"]["case_result"]["rounds"][0]))
            number = rng.choice((any_number(rng), 1, 1e-9, -1e-3, 1e9, None, True))
            return json.dumps(_with_rounds(stored, lambda record: _set(record, at, number))).encode()
        case _:
            return json.dumps(_with_rounds(stored, lambda record: mutate_json(rng, record))).encode()


def _with_rounds(stored: Any, change: Callable[[Any], Any]) -> Any:
    copy = json.loads(json.dumps(stored))
    result = copy["labscale"]["case_result"]
    result["rounds"] = [change(record) for record in result["rounds"]]
    if result["rounds"] and isinstance(result["rounds"][0], dict):
        result["case"] = result["rounds"][0].get("case")
    return copy


def _with_another_case(rng: random.Random, record: Any) -> Any:
    record["case"] = mutate_json(random.Random(rng.random()), record["case"])  # noqa: S311 - no secret
    return record


def _numbers(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every number, and to a value that was not measured."""
    if isinstance(value, dict):
        return [way for key, item in value.items() for way in _numbers(item, (*at, key))]
    if isinstance(value, list):
        return [way for index, item in enumerate(value) for way in _numbers(item, (*at, index))]
    return [at] if value is None or (isinstance(value, int | float) and not isinstance(value, bool)) else []


def _set(record: Any, at: tuple[Any, ...], number: Any) -> Any:
    """Where a round lacks what the first has, nothing."""
    node = record
    try:
        for key in at[:-1]:
            node = node[key]
        node[at[-1]] = number
    except (IndexError, KeyError, TypeError):
        return record
    return record


# --- the commands ----------------------------------------------------------------------------------------------------


def read_with_any_command(rng: random.Random, folder: Path, sound: Path) -> None:
    """``report`` by one of its pages: what is drawn there, without the time that drawing takes."""
    commands: Mapping[str, Callable[[], object]] = {
        "verify": lambda: check(verify.main([str(folder)])),
        "verify --json": lambda: check(verify.main([str(folder), "--json"])),
        "verify --write-hashes": lambda: check(verify.main([str(folder), "--write-hashes"])),
        "export": lambda: check(export.main([str(folder), "--format", rng.choice(("github", "bencher", "csv"))])),
        "export reframe": lambda: check(export.main([str(folder), "--format", "reframe", "--matrix", "short"])),
        "compare after": lambda: check_compared(compare_command.main([str(sound), str(folder)])),
        "compare before": lambda: check_compared(
            compare_command.main([str(folder), str(sound), rng.choice(("--json", "--markdown"))])
        ),
        "report": lambda: show_a_page(rng, folder),
        "report again": lambda: show_a_page(rng, folder),
    }
    commands[rng.choice(list(commands))]()


def check(code: int) -> None:
    assert code in EXIT_CODES, code


def check_compared(code: int) -> None:
    assert code in EXIT_CODES | COMPARES, code


def show_a_page(rng: random.Random, folder: Path) -> None:
    version = result_sets.read_version(folder, name="fuzz")
    with undrawn(version):
        pages = page_sources(version)
        run_cells(pages[rng.choice(sorted(pages))])


@contextmanager
def undrawn(version: result_sets.Version) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_sets, "version_of_page", lambda: version)
        patch.setattr(figure, "_static_svg", lambda spec, **_: json.dumps(spec))
        yield


def run_cells(page: str) -> None:
    """As the kernel of a report does: what the last expression of a cell gives is shown."""
    names: dict[str, Any] = {}
    for cell in jupytext.reads(page, fmt="md:myst").cells:
        if cell.cell_type != "code":
            continue
        tree = ast.parse(cell.source)
        last = tree.body.pop()
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - a page's
        if isinstance(last, ast.Expr):
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
            for name in ("_repr_html_", "_repr_mimebundle_"):
                getattr(shown, name, dict)()


# --- what lies beside cases ------------------------------------------------------------------------------------------


def read_files_beside(rng: random.Random, folder: Path) -> None:
    """A set with twins, the interference test and pairs, one file of which is not as it was written."""
    one, sound = folder / "set", folder / "sound"
    write_set(sound)
    shutil.copytree(sound, one)
    path = rng.choice(sorted(path for path in one.rglob("*") if path.is_file()))
    content = path.read_bytes()
    path.write_bytes(json_bytes(rng, json.loads(content)) if path.suffix == ".json" else mutate_bytes(rng, content))
    read_with_any_command(rng, one, sound)


def write_set(folder: Path) -> None:
    alone, both = make_case(device="cuda"), make_case(world_size=2, device="cuda")
    twin = replace(alone, case_id=alone.case_id + a_a.SUFFIX)
    times_s = (0.5, 0.51, 0.505)
    results = [make_result(alone, *times_s), make_result(both, 0.3, 0.31, 0.305), make_result(twin, *times_s)]
    write_results(results[:2], folder)
    write_below(folder / "a_a", results[2])
    a_a.write_noise(a_a.twin_pairs(results), folder / "noise.json")
    probe = replace(alone, case_id=alone.case_id + interference.PROBE_SUFFIX)
    test = make_result(probe, *([0.5] * len(interference.ORDER)))
    write_below(folder / interference.FOLDER, test)
    interference.write(interference.judged(test.rounds), folder / interference.FILE)
    sides = {"case_id": alone.case_id, "round": 0, "ours_s": 0.5, "theirs_s": 0.5, "library_s": None}
    upstream.write_pairs([upstream.Pair(**sides, theirs_wall_s=60.0)], folder / "upstream.json")
    write_hashes(folder)


def write_below(folder: Path, result: CaseResult) -> None:
    """As ``write_results`` does, in a folder that is not ``cases``."""
    write_results([result], folder)
    (folder / "cases").rename(folder.with_suffix(".moved"))
    folder.rmdir()
    folder.with_suffix(".moved").rename(folder)


def read_version_file(rng: random.Random, folder: Path) -> None:
    for name, results in (("one", node_results()), ("two", stack_results())):
        write_results(results, folder / name)
    (folder / "report.toml").write_bytes(mutate_toml(rng, MANIFEST))
    show_a_page(rng, folder)


def read_env_check(rng: random.Random, folder: Path) -> None:
    write_results(sweep_results(), folder / "one")
    (folder / "env_check").mkdir()
    (folder / "env_check" / "a.json").write_bytes(json_bytes(rng, document(ENV_CHECK)))
    version = result_sets.read_version(folder, name="fuzz")
    with undrawn(version):
        run_cells(page_sources(version)["machines"])


def read_bundles(rng: random.Random, folder: Path) -> None:
    sources = sorted(FOREIGN.glob("*.json"))
    chosen = rng.choice(sources)
    given = folder / "given"
    given.mkdir()
    for source in sources:
        content = json_bytes(rng, document(source)) if source == chosen else source.read_bytes()
        (given / source.name).write_bytes(content)
    match rng.randrange(3):
        case 0:
            "\n".join(summary(import_bundles(sorted(given.iterdir()), folder / "set"), folder / "set"))
        case 1:
            given.rename(folder / BUNDLES)
            write_hashes(folder)
            check(verify.main([str(folder)]))
        case _:
            given.rename(folder / BUNDLES)
            show_a_page(rng, folder)


RESULT_FILES: Final[tuple[Target, ...]] = (
    Target(name="stored_case", attempt=read_stored_case),
    Target(name="files_beside_cases", attempt=read_files_beside),
    Target(name="report_toml", attempt=read_version_file),
    Target(name="env_check_json", attempt=read_env_check),
    Target(name="imported_bundles", attempt=read_bundles),
    *CAMPAIGN_FILES,
)

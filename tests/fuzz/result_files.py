"""Files of results that are stored or imported, read by every command that reads results."""

import ast
import io
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import jupytext
import pytest
from rich.console import Console

from reports.accept import command as accept
from reports.accept.judgement import judge
from reports.accept.published import machines_of
from reports.display import figure
from reports.sets import version as result_sets
from reports.site.pages import page_sources
from reports.topics.data import export
from reports.topics.history import command as compare_command
from reports.verification import command as verify
from reports.verification.hashes import write_hashes
from suite.campaign.runs import upstream
from suite.files.paths import ROOT
from suite.records.store import load_results
from suite.schema.record import CaseResult
from suite.statistics import aa_noise as a_a
from tests.fixtures.results.generated_results import (
    make_case,
    make_result,
    node_results,
    stack_results,
    sweep_results,
    write_results,
)
from tests.fuzz.campaign_files import CAMPAIGN_FILES
from tests.fuzz.case_changes import changed_case
from tests.fuzz.mutations import json_bytes, mutate_bytes, mutate_toml
from tests.fuzz.target import EXIT_CODES, Target

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
        "accept": lambda: accept_among(folder, sound),
        "report": lambda: show_a_page(rng, folder),
        "report again": lambda: show_a_page(rng, folder),
    }
    commands[rng.choice(list(commands))]()


def check(code: int) -> None:
    assert code in EXIT_CODES, code


def check_compared(code: int) -> None:
    assert code in EXIT_CODES | COMPARES, code


def accept_among(folder: Path, sound: Path) -> None:
    """``accept`` with the sound set as what is published: reading all that is in git takes seconds."""
    machines = machines_of([result_sets.read_version(sound, name="sound")])
    accept.show(judge(load_results(folder), "any model", machines), Console(file=io.StringIO()))


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
    """Run the cells like the kernel of a report: the value of a cell's last expression is displayed."""
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
    """A set with twins and pairs, one file of which is not as it was written."""
    one, sound = folder / "set", folder / "sound"
    for where in (one, sound):
        for name, content in generated_set().items():
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            (where / name).write_bytes(content)
    path = rng.choice(sorted(path for path in one.rglob("*") if path.is_file()))
    content = path.read_bytes()
    path.write_bytes(json_bytes(rng, json.loads(content)) if path.suffix == ".json" else mutate_bytes(rng, content))
    read_with_any_command(rng, one, sound)


@cache
def generated_set() -> Mapping[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        write_set(Path(folder))
        return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def write_set(folder: Path) -> None:
    alone, both = make_case(device="cuda"), make_case(world_size=2, device="cuda")
    twin = replace(alone, case_id=alone.case_id + a_a.SUFFIX)
    times_s = (0.5, 0.51, 0.505)
    results = [make_result(alone, *times_s), make_result(both, 0.3, 0.31, 0.305), make_result(twin, *times_s)]
    write_results(results[:2], folder)
    write_below(folder / "a_a", results[2])
    a_a.write_noise(a_a.twin_pairs(results), folder / "noise.json")
    beside = upstream.Pair(case_id=alone.case_id, round=0, ours_s=0.5, theirs_s=0.5, theirs_wall_s=60.0, library_s=None)
    upstream.write_pairs([beside], folder / "upstream.json")
    write_hashes(folder)


def write_below(folder: Path, result: CaseResult) -> None:
    """Write a result like ``write_results``, but into a folder that is not ``cases``."""
    write_results([result], folder)
    (folder / "cases").rename(folder.with_suffix(".moved"))
    folder.rmdir()
    folder.with_suffix(".moved").rename(folder)


def read_version_file(rng: random.Random, folder: Path) -> None:
    for name, results in (("one", node_results(rounds=1)), ("two", stack_results(rounds=1))):
        write_results(results, folder / name)
    (folder / "report.toml").write_bytes(mutate_toml(rng, MANIFEST))
    page_sources(result_sets.read_version(folder, name="fuzz"))
    if rng.random() < 0.2:
        show_a_page(rng, folder)


def read_env_check(rng: random.Random, folder: Path) -> None:
    write_results(sweep_results(rounds=1), folder / "one")
    (folder / "env_check").mkdir()
    (folder / "env_check" / "a.json").write_bytes(json_bytes(rng, document(ENV_CHECK)))
    version = result_sets.read_version(folder, name="fuzz")
    with undrawn(version):
        run_cells(page_sources(version)["machines"])


RESULT_FILES: Final[tuple[Target, ...]] = (
    Target(name="stored_case", attempt=read_stored_case),
    Target(name="files_beside_cases", attempt=read_files_beside),
    Target(name="report_toml", attempt=read_version_file),
    Target(name="env_check_json", attempt=read_env_check),
    *CAMPAIGN_FILES,
)

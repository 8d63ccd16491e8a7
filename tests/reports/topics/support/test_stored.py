"""Every cell of what ran where has stored records behind it, and what cannot run has reasons and sources."""

import re
from dataclasses import replace
from datetime import date, datetime
from functools import cache
from pathlib import Path

import pytest

from reports.display.series_tables import STACK_NAMES
from reports.sets.version import Version
from reports.site.contents import page_sources
from reports.site.publish import read_versions
from reports.topics.support import page, tables
from reports.topics.support.model import PATH, read_impossible, systems, trainings
from suite.env_check.gpu.rt_cores import judge_rt_cores, read_table
from suite.errors import MatrixError
from suite.launch.registry import LAUNCHERS, MANIFESTS
from suite.matrix.catalog import load_catalog
from suite.matrix.plan import plan
from suite.records.store import load_results
from suite.schema.record import RunRecord, Stack
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.results.generated_results import make_case
from tests.suite.env_check.gpu.test_gpus import H200, HEALTHY

CATALOG = load_catalog()
IMPOSSIBLE = read_impossible()
CELL = re.compile(r"(\d+) (?:x (.+?)|CPU process(?:es)?), (\d+ \w{3} \d{4})")


@cache
def versions() -> Version:
    return read_versions(RESULTS.parent)[0]


@cache
def stored() -> tuple[RunRecord, ...]:
    """Every completed run of every set that trained or was of LeRobot, read without the code under test."""
    sets = [path.parent for path in sorted(RESULTS.parent.glob("*/*/cases"))]
    folders = [folder for one in sets for folder in (one, one / "a_a") if folder.is_dir()]
    found = [record for folder in folders for result in load_results(folder) for record in result.completed]
    return tuple(record for record in found if record.case.workload == "train" or record.case.rl_library == "lerobot")


def model(record: RunRecord) -> str:
    return record.environment.gpus[0].name.removeprefix("NVIDIA ") if record.case.device == "cuda" else "CPU"


def day(record: RunRecord) -> date:
    assert record.started_utc is not None
    return datetime.fromisoformat(record.started_utc).date()


def test_all_stored_trainings_are_counted_once() -> None:
    found = trainings(versions())
    assert len(found) == len(stored()) > 600
    assert sum(one.runs for one in systems(found)) == len(found)
    assert f" {len(found)} trainings completed" in page.answer(found)


def test_every_system_has_its_stored_records() -> None:
    for one in systems(trainings(versions())):
        behind = [
            record
            for record in stored()
            if (record.case.rl_library, record.case.stack, model(record)) == (one.rl_library, one.stack, one.hardware)
            and (record.case.nnodes > 1) == (one.way == "simulated nodes")
        ]
        assert len(behind) == one.runs, one
        assert {record.case.world_size for record in behind} == set(one.ranks)
        assert {record.case.task for record in behind} == set(one.tasks)
        assert max(map(day, behind)) == one.newest.day


def assert_cell(cell: str, those: list[RunRecord]) -> None:
    """Every size in a cell was reached on its day, and neither a larger one nor the same one later."""
    assert (cell == tables.NOT_MEASURED) == (not those)
    for ranks, named, said in CELL.findall(cell):
        same = [record for record in those if model(record) == (named or "CPU")]
        assert max(record.case.world_size for record in same) == int(ranks)
        last = max(day(record) for record in same if record.case.world_size == int(ranks))
        assert datetime.strptime(said, "%d %b %Y").date() == last  # noqa: DTZ007
    assert len(CELL.findall(cell)) == len({model(record) for record in those})


def test_every_cell_of_the_tables_has_a_stored_record_of_its_size_and_day() -> None:
    found = trainings(versions())
    columns = tables.columns(CATALOG, found)
    of_libraries = zip(CATALOG.libraries, tables.library_rows(CATALOG, found), strict=True)
    others = {record.case.task for record in stored()} - {*CATALOG.tasks}  # own tasks, and those of LeRobot
    of_tasks = zip([*CATALOG.tasks, *sorted(others)], tables.task_rows(CATALOG, found), strict=True)
    rows = [(library, row[1:]) for library, row in of_libraries] + [(task, row[2:]) for task, row in of_tasks]
    for name, cells in rows:
        for column, cell in zip(columns, cells, strict=True):
            those = [one for one in stored() if name in (one.case.rl_library, one.case.task)]
            assert_cell(cell, [one for one in those if (one.case.stack, one.case.device) == column])


def test_the_launchers_on_the_page_are_those_of_labscale() -> None:
    named = {word for _, launchers in tables.WAYS.values() for word in re.findall(r"\w+", launchers)}
    assert named >= {*LAUNCHERS, *MANIFESTS}
    assert named - {*LAUNCHERS, *MANIFESTS} == {"and", "through", "files"}


def test_every_stack_has_a_name_in_words() -> None:
    assert set(CATALOG.stacks) == set(STACK_NAMES)


def test_the_page_is_in_the_contents_and_opens_with_its_answer() -> None:
    assert "support.opening(version)" in page_sources(versions())["support"]
    assert page.opening(versions()).markup.startswith(
        '<p class="answer">lerobot, rl_games, rsl_rl, sb3, skrl, skrl_jax and torchrl ran with'
    )
    assert "\t1, 2, 4\t" in page.systems(versions()).text
    nothing = replace(versions(), sets=(), older=())
    assert page.systems(nothing).text == "No stored run has completed."
    assert page.libraries(nothing).text.count(tables.NOT_MEASURED) == len(CATALOG.libraries) * len(
        tables.columns(CATALOG, [])
    )


# --- what cannot run ---


def test_whatever_cannot_run_has_a_reason_sources_and_a_date() -> None:
    said = page.impossible()
    for one in IMPOSSIBLE:
        assert len(one.what.split()) > 1
        assert one.reason.endswith(".")
        assert date(2026, 11, 1) <= one.looked_up <= datetime.now().astimezone().date()
        assert all(source.startswith("https://") or re.match(r"[\w-]+ [\d.]+, \S+$", source) for source in one.sources)
        assert one.what.replace("`", "") in said.text
        assert all(source in said.markup.replace("<wbr>", "") for source in one.sources)
    assert {"IsaacGymWrapper", "Arena", "RTX"} <= set(re.findall(r"\w+", " ".join(one.what for one in IMPOSSIBLE)))


@pytest.mark.parametrize(("name", "capability"), [("A100", "8.0"), ("H100", "9.0"), ("H200", "9.0")])
def test_env_check_refuses_rtx_on_gpus_without_rt_cores(name: str, capability: str) -> None:
    (one,) = [one for one in IMPOSSIBLE if one.refusal and one.refusal.by == "env_check"]
    assert name in one.what
    state = replace(HEALTHY, gpus=(replace(H200, name=f"NVIDIA {name}", compute_capability=capability),))
    judged = judge_rt_cores(state, read_table())
    assert one.refusal is not None
    assert (judged.verdict, judged.fault) == ("failure", one.refusal.says)


def test_plan_refuses_physx_on_a_cpu() -> None:
    (one,) = [one for one in IMPOSSIBLE if one.refusal and one.refusal.by == "plan"]
    stacks: tuple[Stack, ...] = ("kitless", "ovphysx")
    (planned,) = plan(
        [make_case("ant-weak", stack="ovphysx", device="cpu")],
        gpus_available=0,
        cpus_available=2,
        device="cpu",
        available_stacks=stacks,
        nnodes_available=1,
        rounds=1,
        catalog=CATALOG,
    )
    assert one.refusal is not None
    assert one.refusal.says in str(planned.infeasible)


def test_every_refusal_is_by_a_command_with_a_page() -> None:
    assert {one.refusal.by for one in IMPOSSIBLE if one.refusal} == set(page.PAGES)


def test_a_fault_of_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "impossible.toml"
    path.write_text(PATH.read_text(encoding="utf-8").replace("reason =", "why =", 1), encoding="utf-8")
    with pytest.raises(MatrixError, match=r"impossible.*why"):
        read_impossible(path)

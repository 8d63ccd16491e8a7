"""Rows of what ran where, from constructed records."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from reports.sets.version import read_version
from reports.topics.support import tables
from reports.topics.support.markdown import markdown
from reports.topics.support.model import Most, Training, Way, most, systems, training, trainings, way_of
from reports.topics.support.page import answer
from suite.matrix.catalog import load_catalog
from suite.schema.record import RunRecord
from suite.schema.transport import Transport
from tests.fixtures.results.generated_results import (
    GPU_HOST,
    full_results,
    make_case,
    make_record,
    smoke_results,
    write_results,
)

CATALOG = load_catalog()
DAY = date(2026, 11, 21)  # of generated records


def trained(**changes: Any) -> Training:
    """A training on one H200, with changes."""
    plain = Training(
        version="2026.11",
        by=None,
        day=DAY,
        rl_library="rl_games",
        library_version="1.6.5",
        stack="kitless",
        device="cuda",
        hardware="H200",
        ranks=1,
        way="one machine",
        task="Isaac-Ant",
        renderer="none",
    )
    return replace(plain, **changes)


def gpu_record(**changes: Any) -> RunRecord:
    case = make_case("ant-weak", world_size=4, device="cuda", **changes)
    return make_record(case)


def test_a_record_says_what_trained_where_and_when() -> None:
    record = gpu_record(rl_library="rsl_rl", stack="ovphysx")
    settings = {**record.ranks[0].settings, "versions.rsl-rl-lib": "5.5.1"}
    record = replace(
        record, ranks=(replace(record.ranks[0], settings=settings), *record.ranks[1:]), workload={"renderer": "newton"}
    )
    assert training(record, version="v", by="Somebody") == Training(
        version="v",
        by="Somebody",
        day=DAY,
        rl_library="rsl_rl",
        library_version="5.5.1",
        stack="ovphysx",
        device="cuda",
        hardware=GPU_HOST.gpus[0].name,
        ranks=4,
        way="one machine",
        task="Isaac-Ant",
        renderer="newton",
    )


def test_what_a_record_does_not_say_is_none() -> None:
    found = training(replace(gpu_record(), started_utc=None), version="v", by=None)
    assert found is not None
    assert (found.library_version, found.renderer, found.day) == (None, None, None)
    assert tables.most_text(most([found])) == "4 x Generated Accelerator, unknown day"


def test_a_run_of_lerobot_counts_though_it_trains_nothing() -> None:
    record = gpu_record(rl_library="lerobot", workload="policy_rollout")
    settings = {**record.ranks[0].settings, "versions.lerobot": "0.6.1"}
    found = training(replace(record, ranks=(replace(record.ranks[0], settings=settings),)), version="v", by=None)
    assert found is not None
    assert (found.rl_library, found.library_version) == ("lerobot", "0.6.1")
    rows = [row[0] for row in tables.library_rows(CATALOG, [found])]
    assert "lerobot 0.6.1" in rows


def test_only_completed_trainings_count() -> None:
    failed = make_record(make_case(), outcome="crashed", reason="x")
    profiled = replace(make_record(make_case()), profiled_ranks=(0,))
    part = make_record(make_case(workload="environment_step"))
    assert [training(one, version="v", by=None) for one in (failed, profiled, part)] == [None, None, None]


@pytest.mark.parametrize(
    ("nnodes", "emulated", "image", "way"),
    [
        (1, None, None, "one machine"),
        (1, False, "sha256:00", "image"),
        (2, True, None, "simulated nodes"),
        (2, False, None, "several machines"),
        (2, False, "sha256:00", "several machines"),
        (2, None, None, None),
    ],
)
def test_the_way_a_run_was_started(nnodes: int, emulated: bool | None, image: str | None, way: Way | None) -> None:
    record = gpu_record(nnodes=nnodes)
    assert way_of(replace(record, transport=Transport(library="nccl", emulated=emulated), image_digest=image)) == way


def test_several_nodes_of_which_nothing_is_known_are_no_claim() -> None:
    unknown = trained(way=None)
    assert all(row[-1] == tables.NOT_MEASURED for row in tables.way_rows([unknown]))
    assert tables.system_rows([unknown])[0][2] == "several nodes, unknown whether simulated"


def test_a_cell_names_the_most_gpus_of_each_model_and_their_last_day() -> None:
    later = date(2026, 12, 1)
    found = [trained(ranks=4), trained(ranks=1, day=later), trained(hardware="L40S", ranks=2, day=later)]
    assert most(found) == (
        Most(hardware="H200", device="cuda", ranks=4, day=DAY),  # not the later day, on which one GPU trained
        Most(hardware="L40S", device="cuda", ranks=2, day=later),
    )
    assert tables.most_text(most(found)) == "4 x H200, 21 Nov 2026; 2 x L40S, 1 Dec 2026"
    assert tables.most_text(most([])) == "not measured"
    on_cpu = [trained(device="cpu", hardware="CPU", ranks=ranks) for ranks in (1, 2)]
    assert tables.most_text(most(on_cpu)) == "2 CPU processes, 21 Nov 2026"
    assert tables.most_text(most(on_cpu[:1])) == "1 CPU process, 21 Nov 2026"


def test_a_system_has_all_its_runs_and_the_newest_of_them() -> None:
    last = trained(ranks=2, day=date(2026, 12, 1), version="2026.12", task="Isaac-Cartpole-Direct", by="Somebody")
    (system,) = systems([trained(), last, trained()])
    assert (system.ranks, system.runs, system.newest) == ((1, 2), 3, last)
    assert tables.system_rows([trained(), last, trained()]) == [
        [
            "rl_games 1.6.5",
            "Newton, H200",
            "on one machine",
            "Ant, Cartpole",
            "1, 2",
            "3",
            "1 Dec 2026, version 2026.12, by Somebody",
        ]
    ]
    assert len(systems([trained(), trained(stack="ovphysx"), trained(way="image"), trained(hardware="L40S")])) == 4


def test_every_known_library_task_and_way_has_a_row_and_says_where_nothing_ran() -> None:
    found = [trained()]
    rows = {row[0]: row[1:] for row in tables.library_rows(CATALOG, found)}
    assert list(rows) == ["rl_games 1.6.5", *(name for name in CATALOG.libraries if name != "rl_games")]
    names = tables.headings(tables.columns(CATALOG, found))
    assert rows["rl_games 1.6.5"][names.index("Newton, GPUs")] == "1 x H200, 21 Nov 2026"
    assert sum(cell != "not measured" for row in rows.values() for cell in row) == 1
    tasks = {row[0]: row[1:] for row in tables.task_rows(CATALOG, found)}
    assert len(tasks) == len(CATALOG.tasks)
    assert tasks["Ant"][0] == "no camera"
    assert set(tasks["Shadow Hand with camera"]) == {"not measured"}
    assert [row[-1] != "not measured" for row in tables.way_rows(found)] == [True, False, False, False]


def test_a_stack_that_ran_where_the_catalog_does_not_know_it_has_a_column() -> None:
    assert ("ovphysx", "cpu") not in tables.columns(CATALOG, [])
    assert ("ovphysx", "cpu") in tables.columns(CATALOG, [trained(stack="ovphysx", device="cpu", hardware="CPU")])


def test_the_answer_counts_what_ran_and_names_what_did_not() -> None:
    assert answer([]) == "No stored run has completed, so nothing is known to run."
    on_cpu = trained(device="cpu", hardware="CPU", rl_library="rsl_rl", library_version=None)
    said = answer([trained(ranks=4), on_cpu])
    assert said.startswith(
        "rl_games and rsl_rl ran with Newton, on up to 4 x H200 and 1 CPU process. 2 trainings completed"
    )
    for missing in ("with PhysX,", "RTX in Isaac Sim", "in a container image", "on several machines"):
        assert missing in said


def test_the_block_of_the_readme_says_what_never_ran() -> None:
    said = markdown(CATALOG, [trained(task="Isaac-Cartpole-Direct"), trained(renderer="newton")], [])
    assert "- **Tasks**: Ant (Newton, drawn by Newton Warp), Cartpole (Newton)." in said
    assert "- **Started**: on one machine (21 Nov 2026); not measured: in a container image, on simulated" in said
    header, rule, *rows = said.partition("\n\n")[0].splitlines()
    assert {line.count("|") for line in (header, rule, *rows)} == {2 + len(tables.columns(CATALOG, []))}


def test_older_versions_count_and_name_themselves(tmp_path: Path) -> None:
    older = read_version(write_results(smoke_results(), tmp_path / "older"), name="1")
    newer = replace(read_version(write_results(full_results(), tmp_path / "newer"), name="2"), older=(older,))
    found = trainings(newer)
    assert {one.version for one in found} == {"1", "2"}
    on_cpu = [one for one in found if one.device == "cpu"]
    assert {one.version for one in on_cpu} == {"1"}
    assert len(on_cpu) == sum(len(result.completed) for result in smoke_results())

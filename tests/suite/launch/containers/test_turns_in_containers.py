"""Rounds that take turns, each in a container of its own: their sockets are in folders that the containers mount."""

import functools
from pathlib import Path

from suite.external.docker_engine import Engine
from suite.files.paths import ROOT
from suite.launch.containers.run import ContainerOptions, run
from suite.schema.record import Environment
from tests.fixtures.machines.container_engine import FORGOTTEN_SOCKETS, PYTHON_IN_DEBIAN
from tests.fixtures.runs.real_runs import marked_processes
from tests.fixtures.runs.simulated_campaign import records, run_all
from tests.fixtures.runs.turning_ranks import CASES, TurningHost, campaign_of

pytestmark = FORGOTTEN_SOCKETS


def test_rounds_in_containers_take_turns_and_a_fault_ends_its_own_case_only(
    engine: Engine, debian: str, environment: Environment, tmp_path: Path
) -> None:
    image = engine.find_image(debian)
    in_container = functools.partial(run, engine=engine, image=image, options=ContainerOptions(project_root=ROOT))
    host = TurningHost(faults={(CASES[1].case_id, 0): "killed"}, python=PYTHON_IN_DEBIAN, run=in_container)
    run_all(campaign_of(host, environment), tmp_path)
    assert marked_processes(host.mark) == []
    found = {record.case.case_id: record for record in records(tmp_path)}
    assert [found[case.case_id].outcome for case in CASES] == ["completed", "crashed", "completed"]
    for record in found.values():
        assert record.turns is not None
        assert sorted(record.turns.beside) == sorted(found.keys() - {record.case.case_id})
        assert record.image_digest == image.digest
        assert record.ranks[0].samples["turn"][-1] is not None

"""A person's own task, from a matrix file to the report, with a package of theirs in the worker."""

from typing import Any

import pytest

from reports.__main__ import main as session
from reports.site import guide
from suite.install.worker import Worker
from suite.launch.watch import prepare
from suite.matrix.catalog import load_catalog
from suite.schema.record import Case
from tests.conftest import CaseMaker
from tests.fixtures.runs.own_task_runs import OwnTasks
from tests.fixtures.runs.worker_probes import probe
from tests.reports.site.test_report import read_pages, text_of

pytestmark = pytest.mark.worker

CAMERA = "camera/rl_games-kitless-cpu-n2-1x1-deterministic"
SWING_UP = "swing-up/rsl_rl-kitless-cpu-n64-1x1-deterministic"


def test_every_round_completes_with_one_rank_and_with_two(own_tasks: OwnTasks) -> None:
    assert own_tasks.exit_code == 0, own_tasks.output
    outcomes = {name: [record.outcome for record in result.rounds] for name, result in own_tasks.results.items()}
    two_ranks = ("camera/rl_games-kitless-cpu-n4-1x2", "swing-up/rsl_rl-kitless-cpu-n128-1x2")
    cases = (CAMERA, SWING_UP, *two_ranks)
    assert outcomes == {name: ["completed"] for name in cases}


def test_a_record_names_the_package_with_version_and_commit(own_tasks: OwnTasks) -> None:
    for result in own_tasks.results.values():
        (record,) = result.rounds
        named = (f"small-extension 0.1.0 (commit {own_tasks.commit[:12]})",)
        assert record.environment.worker_packages == named
        assert record.ranks[0].settings["versions.small-extension"] == "0.1.0"


def test_a_run_of_one_machine_listens_on_its_loopback_alone_and_records_its_settings(own_tasks: OwnTasks) -> None:
    """Two of the runs have two ranks."""
    assert own_tasks.listening == {"127.0.0.1"}
    for result in own_tasks.results.values():
        for rank in result.rounds[0].ranks:
            assert rank.settings["environment.MALLOC_ARENA_MAX"] == "64"


def test_the_report_says_of_each_that_it_works(own_tasks: OwnTasks) -> None:
    site = own_tasks.out / "report"
    assert set(read_pages(site)) - {f"{name}.html" for name in guide.PAGES} == {
        "index.html", "hardware.html", "data.html",
    }  # fmt: skip
    summary = text_of(site, "index.html")
    assert "<title>What works here, labscale " in summary
    assert "Everything works on " in summary
    # Physics and learning of each, gradients of two, pictures of one.
    assert summary.count('aria-label="works"') == 2 * 2 + 2 + 1
    for task in ("Isaac-Cartpole-Camera-Direct, rl_games", "Small-Swing-Up, rsl_rl"):
        assert task in summary
    assert f"small-extension 0.1.0 (commit {own_tasks.commit[:12]})" in text_of(site, "hardware.html")


def test_its_figures_can_be_verified(own_tasks: OwnTasks) -> None:
    assert session("verify", [str(own_tasks.out)]) == 0


@pytest.fixture(scope="module")
def answers(worker: Worker, make_case: CaseMaker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    case: Case = make_case()
    run_dir = tmp_path_factory.mktemp("probe") / "r0"
    prepare(run_dir, case)
    return probe(worker, "own_task", str(run_dir), *load_catalog().tasks)


def test_the_worker_says_that_a_task_needs_isaac_sim(answers: dict[str, Any]) -> None:
    needs, cartpole, unknown = answers["answers"]
    assert needs["obstacles"]["kitless"].startswith("needs Isaac Sim: ")
    assert cartpole["obstacles"] == {}
    assert cartpole["agents"]["rl_games"].keys() >= {"num_steps_per_env", "minibatch_size", "learning_epochs"}
    assert "Isaac-Cartpole" in unknown["registered"]
    assert cartpole["cameras"] is False


def test_the_catalog_has_every_agent_of_its_tasks_as_isaac_lab_registers_them(answers: dict[str, Any]) -> None:
    in_catalog = {
        task: {
            library: {
                name: getattr(agent, name)
                for name in ("num_steps_per_env", "minibatch_size", "num_minibatches", "learning_epochs")
                if getattr(agent, name) is not None
            }
            | {"minibatch_overrides": list(agent.minibatch_overrides)}
            for library, agent in entry.agents.items()
        }
        for task, entry in load_catalog().tasks.items()
    }
    assert answers["agents"] == in_catalog


def test_an_asset_that_the_offline_ones_lack_is_named(answers: dict[str, Any]) -> None:
    assert answers["missing"]["offline"].startswith(
        "Isaac-Cartpole-Direct needs Isaac/Robots/Nowhere/robot.usd, which the offline assets do not have"
    )
    assert "--assets official" in answers["missing"]["offline"]
    assert answers["missing"]["official"].startswith("Unable to resolve the file")

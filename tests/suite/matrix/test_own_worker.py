"""Which cases need a worker of their own, and where they are refused."""

from dataclasses import replace

import pytest

from suite.errors import UsageError
from suite.matrix.cases import expand, with_packages
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix
from suite.matrix.own_worker import PINS_OF, OwnWorker, own_worker_of, with_version
from suite.matrix.plan import plan
from suite.matrix.resources import Resources
from suite.schema.record import Case
from tests.conftest import CaseMaker

CATALOG = load_catalog()
NEWTON = ("newton==1.8.0",)


@pytest.fixture
def fake_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """rl_games as if it needed other pins than the stack."""
    monkeypatch.setitem(PINS_OF, "rl_games", "games")


def refused(case: Case, *, one_worker: str | None = None, brings_python: bool = False) -> str:
    (item,) = plan(
        [case],
        resources=Resources(nnodes=1, gpus_per_node=2, cpus_per_node=16),
        device=case.device,
        available_stacks=["kitless", "ovphysx"],
        one_worker=one_worker,
        brings_python=brings_python,
        rounds=1,
        catalog=CATALOG,
    )
    return item.infeasible or ""


@pytest.mark.usefixtures("fake_library")
def test_a_library_may_have_pins_of_its_own(make_case: CaseMaker) -> None:
    own = own_worker_of(make_case(rl_library="rl_games", with_packages=NEWTON))
    assert own == OwnWorker(pins="games", packages=NEWTON)
    assert str(own) == "games.txt, newton==1.8.0"
    assert own_worker_of(make_case(rl_library="rsl_rl")) is None


@pytest.mark.usefixtures("fake_library")
def test_pins_of_a_library_are_for_one_stack(make_case: CaseMaker) -> None:
    case = make_case(
        task="Isaac-Ant", device="cuda", rl_library="rl_games", nproc_per_node=1, num_envs=1024, num_envs_global=1024,
        num_steps_per_env=16, minibatch_size=16384, stack="ovphysx",
    )  # fmt: skip
    assert "needs the worker of games.txt, which has no ovphysx; needs the stack kitless" in refused(case)
    assert refused(replace(case, stack="kitless")) == ""


def test_where_all_cases_have_one_worker_the_plan_says_why(make_case: CaseMaker) -> None:
    why = "--launcher moon has one worker"
    case = make_case(with_packages=NEWTON, division="open")
    assert refused(case) == ""
    assert refused(case, one_worker=why) == f"needs a worker of its own (newton==1.8.0), and {why}"
    assert refused(replace(case, with_packages=()), one_worker=why) == ""


def test_a_python_that_the_user_brings_may_have_other_pins_and_no_other_versions(make_case: CaseMaker) -> None:
    why = "--worker-python takes a Python as it is; leave it out"
    case = make_case(rl_library="skrl_jax")
    assert refused(case, one_worker=why).startswith(f"needs a worker of its own (skrl-jax.txt), and {why}")
    assert "worker of its own" not in refused(case, one_worker=why, brings_python=True)
    newer = replace(case, with_packages=("newton==1.8.0",))
    assert refused(newer, one_worker=why, brings_python=True).startswith("needs a worker of its own")


def test_with_every_case_has_the_versions_under_a_variant_that_names_them() -> None:
    matrix = with_packages(load_matrix("smoke", CATALOG), ["warp-lang==1.19.0", "newton==1.8.0"])
    cases = expand(matrix, CATALOG, device="cpu", assets="offline")
    shipped = expand(load_matrix("smoke", CATALOG), CATALOG, device="cpu", assets="offline")
    variant = "-newton-1-8-0-warp-lang-1-19-0"
    assert [case.case_id for case in cases] == [f"{case.case_id}{variant}" for case in shipped]
    assert {(case.division, case.with_packages) for case in cases} == {
        ("open", ("newton==1.8.0", "warp-lang==1.19.0")),
    }
    same = [replace(case, with_packages=(), division="closed", case_id="") for case in cases]
    assert same == [replace(case, case_id="") for case in shipped]


def test_with_names_a_package_once() -> None:
    with pytest.raises(UsageError, match=r"--with names newton twice; a package has one version\."):
        with_packages(load_matrix("smoke", CATALOG), ["newton==1.6.0", *NEWTON])


def test_a_version_of_one_case_is_over_its_own_and_named_as_with_names_it() -> None:
    matrix = load_matrix("smoke", CATALOG)
    shipped, *_ = expand(matrix, CATALOG, device="cpu", assets="offline")
    changed, *_ = expand(with_packages(matrix, NEWTON), CATALOG, device="cpu", assets="offline")
    assert with_version(shipped, *NEWTON) == changed
    again = with_version(replace(changed, with_packages=("newton==1.6.0", "skrl==2.0")), "newton==1.7.0")
    assert again.with_packages == ("newton==1.7.0", "skrl==2.0")

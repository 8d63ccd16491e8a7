"""Machines: what they are called, and what tells them apart."""

from dataclasses import replace

from reports.analysis.environments import Place
from reports.analysis.machines import Found, machines
from tests.fixtures.results.generated_results import GPU_HOST

GPU = GPU_HOST.gpus[0]


def found(
    label: str | None, started_utc: str | None, *, gpus: int = 1, whose: str | None = None, name: str = "first"
) -> Found:
    environment = replace(GPU_HOST, host_label=label, gpus=(replace(GPU, name="NVIDIA H200"),) * gpus, num_cpus=16)
    place = Place(
        environment=environment, versions={}, num_rounds=1, first_started_utc=started_utc, last_started_utc=started_utc
    )
    return Found(set_name=name, whose=whose, place=place)


MORNING, LATER, NEXT_DAY = "2026-11-27T06:12:30+00:00", "2026-11-27T19:08:00+01:00", "2026-11-28T00:10:00+00:00"


def test_a_machine_is_named_by_its_hardware_and_day_and_by_the_time_where_another_has_that_name() -> None:
    alone, other = machines([found("b", NEXT_DAY), found("a", MORNING)])
    assert alone.name == "1 x H200, 16 vCPU, 27 Nov 2026"
    assert other.name == "1 x H200, 16 vCPU, 28 Nov 2026"
    first, second = machines([found("a", MORNING), found("b", LATER)])
    assert first.name == "1 x H200, 16 vCPU, 27 Nov 2026, 06:12"
    assert second.name == "1 x H200, 16 vCPU, 27 Nov 2026, 18:08"  # in UTC


def test_one_label_is_one_machine_on_any_day_with_all_of_its_gpus() -> None:
    (one,) = machines([found("a", NEXT_DAY, gpus=4), found("a", MORNING, name="second")])
    assert one.name == "4 x H200, 16 vCPU, 27 Nov 2026"
    assert one.model == "NVIDIA H200"
    assert [each.set_name for each in one.found] == ["first", "second"]


def test_a_label_of_somebody_else_and_a_machine_without_gpus_are_other_machines() -> None:
    ours, theirs = machines([found("a", MORNING), found("a", MORNING, whose="Lab")])
    assert theirs.name == f"{ours.name} (2)"
    without, _ = machines([found("a", None, gpus=0), found("a", None)])
    assert without.model is None

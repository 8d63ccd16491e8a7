"""Machines: what they are called, and what tells them apart."""

from dataclasses import replace

from reports.sets.campaign import Campaign
from reports.sets.machines import Place, PlaceOfSet, machines
from tests.fixtures.results.generated_machines import elsewhere
from tests.fixtures.results.generated_results import GPU_HOST, full_results

GPU = GPU_HOST.gpus[0]


def place(
    label: str | None, started_utc: str | None, *, gpus: int = 1, whose: str | None = None, name: str = "first"
) -> PlaceOfSet:
    environment = replace(GPU_HOST, host_label=label, gpus=(replace(GPU, name="NVIDIA H200"),) * gpus, num_cpus=16)
    where = Place(environment=environment, num_rounds=1, first_started_utc=started_utc)
    return PlaceOfSet(set_name=name, whose=whose, place=where)


MORNING, LATER, NEXT_DAY = "2026-11-27T06:12:30+00:00", "2026-11-27T19:08:00+01:00", "2026-11-28T00:10:00+00:00"


def test_a_machine_is_named_by_its_hardware_and_day_and_by_the_time_where_another_has_that_name() -> None:
    days = [machine.name for machine in machines([place("b", NEXT_DAY), place("a", MORNING)])]
    assert days == ["1 x H200, 16 vCPU, 27 Nov 2026", "1 x H200, 16 vCPU, 28 Nov 2026"]
    times = [machine.name for machine in machines([place("a", MORNING), place("b", LATER)])]  # in UTC
    assert times == ["1 x H200, 16 vCPU, 27 Nov 2026, 06:12", "1 x H200, 16 vCPU, 27 Nov 2026, 18:08"]


def test_one_label_is_one_machine_on_any_day_with_all_of_its_gpus() -> None:
    (machine,) = machines([place("a", NEXT_DAY, gpus=4), place("a", MORNING, name="second")])
    assert (machine.name, machine.model) == ("4 x H200, 16 vCPU, 27 Nov 2026", "NVIDIA H200")
    assert [own.set_name for own in machine.of_sets] == ["first", "second"]


def test_a_label_of_somebody_else_and_a_machine_without_gpus_are_other_machines() -> None:
    ours, theirs = machines([place("a", MORNING), place("a", MORNING, whose="Lab")])
    assert theirs.name == f"{ours.name} (2)"
    without, _ = machines([place("a", None, gpus=0), place("a", None)])
    assert without.model is None


def test_machines_of_a_campaign_have_plain_names_and_in_a_report_of_its_own_their_labels() -> None:
    results = tuple(full_results())
    name = f"8 x Generated Accelerator, {GPU_HOST.num_cpus} vCPU, 21 Nov 2026"
    assert Campaign(results=results).where == name
    assert Campaign(results=results, shows_labels=True).where == f"{name} [{GPU_HOST.host_label}]"
    without = tuple(elsewhere(results, host_label=None))
    assert Campaign(results=without, shows_labels=True).where == name
    assert Campaign(results=tuple(replace(result, rounds=()) for result in results)).where == "nothing yet"

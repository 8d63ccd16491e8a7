from dataclasses import replace

from reports.analysis.analysed_set import Campaign
from reports.analysis.environments import hardware, places
from tests.fixtures.results.generated_results import CPU_HOST, GPU_HOST, full_results, smoke_results


def test_places_are_the_distinct_environments() -> None:
    (place,) = places(smoke_results())
    assert place.environment == CPU_HOST
    assert place.num_rounds == 7
    assert place.versions == {"isaaclab": "3.0.0", "torch": "2.11.0"}
    assert place.first_started_utc == place.last_started_utc == "2026-11-21T10:00:00Z"
    assert len(places([*smoke_results(), *full_results()])) == 2


def test_hardware_in_words() -> None:
    assert hardware(GPU_HOST) == "8 x Generated Accelerator"
    assert hardware(CPU_HOST) == "Generated Processor (2 CPUs)"
    assert hardware(replace(CPU_HOST, cpu_model=None)) == "unknown hardware"


def test_a_machine_of_a_set_with_a_title_has_a_plain_name_and_otherwise_its_label() -> None:
    named = Campaign.from_results(full_results(), title="1 x H200: Ant")
    label = GPU_HOST.host_label
    assert label is not None
    assert named.where == f"8 x Generated Accelerator, {GPU_HOST.num_cpus} vCPU, 21 Nov 2026"
    assert replace(named, title="").where == f"8 x Generated Accelerator [{label}], 21 Nov 2026"
    skipped = [replace(result, rounds=()) for result in full_results()]
    assert Campaign.from_results(skipped, title="1 x H200: Ant").where == "nothing yet"

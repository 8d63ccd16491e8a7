from dataclasses import replace

from reports.analysis.environments import hardware, places
from tests.fixtures.results.generated_results import CPU_HOST, GPU_HOST, full_results, smoke_results


def test_places_are_the_distinct_environments() -> None:
    (place,) = places(smoke_results())
    assert place.environment == CPU_HOST
    assert place.num_rounds == 8
    assert place.versions == {"isaaclab": "3.0.0", "torch": "2.11.0"}
    assert place.first_started_utc == place.last_started_utc == "2026-11-21T10:00:00Z"
    assert len(places([*smoke_results(), *full_results()])) == 2


def test_hardware_in_words() -> None:
    assert hardware(GPU_HOST) == "8 x Generated Accelerator"
    assert hardware(CPU_HOST) == "Generated Processor (2 CPUs)"
    assert hardware(replace(CPU_HOST, cpu_model=None)) == "unknown hardware"

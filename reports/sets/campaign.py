"""What one campaign stored, and where it ran. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from reports.sets.machines import Place, hardware, places, plain_name
from suite.records.worked import has_speeds
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.core_speed import Host, fastest_probes_s


@dataclass(frozen=True, kw_only=True)
class Campaign:
    results: tuple[CaseResult, ...]
    twins: tuple[CaseResult, ...] = ()  # of the A/A run
    shows_labels: bool = False  # what --host-label said of a machine: in the campaign's own report, not in a version

    @property
    def with_twins(self) -> tuple[CaseResult, ...]:
        return (*self.results, *self.twins)

    @property
    def completed(self) -> tuple[RunRecord, ...]:
        return tuple(record for result in self.results for record in result.completed)

    @cached_property
    def has_speeds(self) -> bool:
        """Whether any run completed whose speed means something; nothing is said of speed where none did."""
        return has_speeds(self.results)

    @cached_property
    def fastest_probe_s(self) -> Mapping[Host, float]:
        return fastest_probes_s([record for result in self.with_twins for record in result.completed])

    @cached_property
    def places(self) -> tuple[Place, ...]:
        return places(self.results)

    @property
    def largest_place(self) -> Place:
        return max(self.places, key=lambda place: len(place.environment.gpus))

    @property
    def where(self) -> str:
        """Every machine for captions. Where one label names several environments, the largest stands for them."""
        by_label: dict[str, Place] = {}
        for place in self.places:
            label = place.environment.host_label or hardware(place.environment)
            if label not in by_label or len(place.environment.gpus) > len(by_label[label].environment.gpus):
                by_label[label] = place
        return "; ".join(dict.fromkeys(map(self._name, by_label.values()))) or "nothing yet"

    def _name(self, place: Place) -> str:
        label = place.environment.host_label
        return f"{plain_name(place)} [{label}]" if self.shows_labels and label else plain_name(place)

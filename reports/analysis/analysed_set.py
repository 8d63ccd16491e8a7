"""What a page's cells read: the results of one campaign, analysed, whole and by series. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from reports.analysis.environments import Place, places, where_it_ran, with_label, with_label_and_day
from reports.analysis.rows import CaseRow, case_rows
from reports.analysis.series_kind import SeriesKind, series_kind
from reports.analysis.time_split import Inside, inside
from suite.records.worked import has_speeds
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.core_speed import Host, SlowedCores, fastest_probes_s, slowed_cores
from suite.statistics.series_model import SetModel


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """Results with their rows; a series is a campaign of its own cases."""

    results: tuple[CaseResult, ...]
    rows: tuple[CaseRow, ...]
    model: SetModel = field(repr=False, compare=False)  # of the whole set
    name: str = ""  # of its folder; empty where there is but one
    title: str = ""
    version: str = ""  # of the report
    twins: tuple[CaseResult, ...] = ()  # of the A/A run
    fastest_probe_s: Mapping[Host, float] = field(default_factory=dict)  # by host, of the whole campaign
    # Shared with the campaigns of its series: a page asks for one in each of its sections.
    _inside: dict[str, Inside] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_results(
        cls,
        results: Sequence[CaseResult],
        *,
        name: str = "",
        title: str = "",
        version: str = "",
        twins: Sequence[CaseResult] = (),
    ) -> "Campaign":
        model = SetModel.of((*results, *twins))
        campaign = cls(
            results=tuple(results),
            rows=case_rows(results),
            model=model,
            name=name,
            title=title,
            version=version,
            twins=tuple(twins),
        )
        everything = campaign.with_twins
        fastest_s = fastest_probes_s([record for result in everything for record in result.completed])
        return replace(campaign, fastest_probe_s=fastest_s)

    @property
    def completed(self) -> tuple[RunRecord, ...]:
        return tuple(record for result in self.results for record in result.completed)

    @cached_property
    def has_speeds(self) -> bool:
        """Whether any round completed on a GPU; nothing is said of speed where none did."""
        return has_speeds(self.results)

    @property
    def series_names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.series for row in self.rows))

    @cached_property
    def places(self) -> tuple[Place, ...]:
        return places(self.results)

    @property
    def where(self) -> str:
        """Every machine for captions: of a set with a title by its plain name, else with its label.

        Where one label names several environments, the largest stands for them.
        """
        by_label: dict[str, Place] = {}
        for place in self.places:
            label = place.environment.host_label or with_label(place)
            if label not in by_label or len(place.environment.gpus) > len(by_label[label].environment.gpus):
                by_label[label] = place
        name_of = where_it_ran if self.title else with_label_and_day
        return "; ".join(dict.fromkeys(map(name_of, by_label.values()))) or "nothing yet"

    @property
    def with_twins(self) -> tuple[CaseResult, ...]:
        return (*self.results, *self.twins)

    @property
    def inside(self) -> Mapping[str, Inside]:
        """By case id."""
        for result in self.results:
            if result.case.case_id not in self._inside:
                self._inside[result.case.case_id] = inside(result, self.fastest_probe_s)
        return {result.case.case_id: self._inside[result.case.case_id] for result in self.results}

    @property
    def slowed_cores(self) -> SlowedCores | None:
        """What slowed cores did to its GPU cases; None where nothing is worth saying, or known."""
        return slowed_cores(self.with_twins, self.fastest_probe_s)

    @property
    def kind(self) -> SeriesKind:
        """Of a series."""
        return series_kind(result.case for result in self.results)

    def series(self, name: str) -> "Campaign":
        return self.only(lambda result: result.case.series == name)

    def only(self, is_wanted: Callable[[CaseResult], bool]) -> "Campaign":
        results = tuple(result for result in self.results if is_wanted(result))
        kept = {result.case.case_id for result in results}
        return replace(
            self,
            results=results,
            rows=tuple(row for row in self.rows if row.case_id in kept),
            twins=tuple(filter(is_wanted, self.twins)),
        )

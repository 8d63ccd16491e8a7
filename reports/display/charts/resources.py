"""Memory, energy, and how far ranks lie apart, for one series: as tables, which can be linked as charts can. Pure."""

from reports.analysis.analysed_set import Campaign
from reports.display import html as tables
from reports.display import resource_tables, series_tables
from reports.display.charts.drawing import as_table
from reports.display.charts.points import MAX_RANKS, case_label
from reports.display.figure import TableFigure
from reports.display.html import Html


def rank_skew(series: Campaign) -> TableFigure | Html:
    """Iteration time of each rank against that of the median rank."""
    shown = [row for row in series.rows if series.inside[row.case_id].rank_ratios]
    if not shown:
        return tables.paragraph("No case with more than one rank completed, so no rank can be late.")
    left_out = (
        f" Of more than {MAX_RANKS} ranks the fastest, the slowest and those at the quartiles are shown."
        if any(row.world_size > MAX_RANKS for row in shown)
        else ""
    )
    words = "; ".join(f"{case_label(row, shown)}: {series_tables.behind(row.rank_skew)}" for row in shown)
    return as_table(
        series,
        chart="rank-skew",
        caption="Each line is a rank, median over rounds. Ranks wait for each other in every all-reduce, so their"
        f" iterations end close together even where their work does not.{left_out} Slowest over median, by case:"
        f" {words}.",
        data=series_tables.rank_ratios(series.rows, series.inside),
    )


def memory(series: Campaign) -> TableFigure | Html:
    """Peak memory of the fullest rank, as torch's allocator counts it, and all memory in use."""
    if all(found.peak_memory_gb is None for found in series.inside.values()):
        return tables.paragraph("Memory was not measured: on a CPU there is no allocator to ask.")
    return as_table(
        series,
        chart="memory",
        caption="Peak of what torch allocated on the GPU of the rank with most. What simulation and rendering allocate"
        " by other means is not in it; all that is in use on the GPU, by whichever process, is in the table where it"
        f" was sampled. {resource_tables.RANGES}",
        data=resource_tables.memory(series.rows, series.inside),
    )


def energy(series: Campaign) -> TableFigure | Html:
    """Energy of all GPUs of a case for a million environment steps."""
    if all(found.joules_per_million_frames is None for found in series.inside.values()):
        reasons = dict.fromkeys(reason for found in series.inside.values() for reason in found.without_telemetry)
        return tables.paragraph(f"Energy was not measured: {'; '.join(reasons) or 'no GPU was used'}.")
    return as_table(
        series,
        chart="energy",
        caption="Energy of the case's GPUs in the steady iterations by the driver's counters, for a million environment"
        f" steps. The host's own consumption is not in it. {resource_tables.RANGES}",
        data=resource_tables.energy(series.rows, series.inside),
    )

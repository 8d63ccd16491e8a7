"""A version beside every older one, set by set."""

from reports.display.html import MISSING, Displayed, Html, heading, html_table, paragraph, seconds, together
from reports.sets.version import Version
from reports.topics.history.comparison import CaseComparison, compare


def all_versions(version: Version) -> Html:
    """Sets are matched by their folder's name; a set that only one version has is named."""
    parts: list[Displayed] = []
    for older in version.older:
        before = {one.name: one for one in older.sets}
        for one in version.scaling:
            parts.append(heading(f"{one.title or one.name}, since {older.name}", depth=2))
            if one.name not in before:
                parts.append(paragraph(f"Version {older.name} has no set {one.name}, so there is nothing to compare."))
                continue
            if before[one.name].contributor != one.contributor:
                parts.append(paragraph(f"The set {one.name} of version {older.name} is of somebody else."))
                continue
            noises = [noise for noise in (before[one.name].noise, one.noise) if noise is not None]
            found = compare(before[one.name].campaign.results, one.campaign.results, noise=max(noises, default=None))
            table = html_table(
                ["Case", "Before in s", "Now in s", "Change of time", "Interval", "Verdict", "Because"],
                (_row(case) for case in found.cases),
                label=f"{one.name} since {older.name}",
                text_headings=("Verdict", "Because"),
            )
            parts.append(table if found.cases else paragraph("No case is in both, so nothing was compared."))
            for text, names in (("Only before", found.only_before), ("New", found.only_after)):
                if names:
                    parts.append(paragraph(f"{text}: {', '.join(names)}."))
    return together(parts)


def _row(case: CaseComparison) -> list[str]:
    change, interval = MISSING, MISSING
    if case.change is not None:
        change = f"{case.change.value:+.1%}"
        if case.change.interval is not None:
            interval = "{:+.1%} to {:+.1%}".format(*case.change.interval)
    differences = "; ".join(f"{item.name}: {item.before}, now {item.after}" for item in case.differences)
    reason = f"{case.reason}. {differences}" if differences else case.reason
    return [case.case_id, seconds(case.before_time_s), seconds(case.after_time_s), change, interval, case.word, reason]

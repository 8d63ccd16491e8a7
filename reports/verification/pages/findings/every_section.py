"""All figures of the page *Findings* that no row of a case has."""

from reports.verification.finding import Json
from reports.verification.pages.findings import iterations, learned, parts_alone, places, sizes
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    sections = (iterations, sizes, parts_alone, places, learned)
    return {of: row for section in sections for of, row in section.figures(version).items()}

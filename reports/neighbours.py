"""How many rounds ran while other cases ran on the same host, which may slow all of them. Pure."""

from collections.abc import Sequence

from suite.schema import RunRecord


def neighbours_sentence(records: Sequence[RunRecord]) -> str:
    """How many of ``records`` had neighbours, how many at the most, and of how many it is not known."""
    if not records:
        return "No round completed."
    known = [record.neighbours for record in records if record.neighbours is not None]
    if not known:
        return f"Of {len(records)} rounds it is not known whether others ran beside them, as their records do not say."
    beside = [number for number in known if number]
    said = f"{len(beside)} of {len(records)} rounds ran beside other cases on their host"
    if beside:
        said += f", with at most {max(beside)} of them at a time"
    if len(known) < len(records):
        said += f"; of {len(records) - len(known)} it is not known, as their records do not say"
    return f"{said}."

"""The feed of a site: one Atom entry for each version, newest first, with the answer of its first page."""

import html
from collections.abc import Sequence
from typing import Final

from reports.analysis.scaling.answer import answer
from reports.sets.version import Version

FEED_FILE: Final = "feed.xml"
UNKNOWN: Final = "1970-01-01T00:00:00+00:00"  # of a version in which nothing ran; Atom wants a time

_FEED: Final = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<title>labscale: how Isaac Lab training scales</title>
<id>urn:labscale:report</id>
<link rel="self" href="{file}"/>
<link rel="alternate" href="latest/index.html"/>
<updated>{updated}</updated>
<author><name>The labscale authors</name></author>
{entries}</feed>
"""
_ENTRY: Final = """<entry>
<title>Version {name}</title>
<id>urn:labscale:report:{name}</id>
<link rel="alternate" href="{name}/index.html"/>
<updated>{updated}</updated>
<summary>{summary}</summary>
</entry>
"""


def feed(versions: Sequence[Version]) -> str:
    """Return the feed of these versions, newest first. A version's time is the start of its last run."""
    entries = "".join(
        _ENTRY.format(
            name=html.escape(version.name), updated=_updated(version), summary=html.escape(answer(version.lines))
        )
        for version in versions
    )
    updated = max((_updated(version) for version in versions), default=UNKNOWN)
    return _FEED.format(file=FEED_FILE, updated=updated, entries=entries)


def _updated(version: Version) -> str:
    starts = [
        record.started_utc
        for one in version.sets
        for record in one.campaign.completed
        if record.started_utc is not None
    ]
    return max(starts, default=UNKNOWN)

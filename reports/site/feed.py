"""The feed of a site: one Atom entry for each version, newest first, with the answer of its first page."""

import html
from collections.abc import Sequence
from typing import Final

from reports.analysis.scaling.answer import answer
from reports.sets.version import Version

FEED_FILE: Final = "feed.xml"

_FEED: Final = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<title>labscale: how Isaac Lab training scales</title>
<id>urn:labscale:report</id>
<link rel="self" href="{file}"/>
<link rel="alternate" href="latest/index.html"/>
{updated}<author><name>The labscale authors</name></author>
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
    """Return the feed of these versions, newest first.

    A version's time is the start of its last run. A version in which nothing ran has no time, so it is left out. A feed
    without an entry has no time either.
    """
    timed = [(version, updated) for version in versions if (updated := _updated(version)) is not None]
    entries = "".join(
        _ENTRY.format(name=html.escape(version.name), updated=updated, summary=html.escape(answer(version.lines)))
        for version, updated in timed
    )
    newest = max((updated for _, updated in timed), default=None)
    updated = f"<updated>{newest}</updated>\n" if newest else ""
    return _FEED.format(file=FEED_FILE, updated=updated, entries=entries)


def _updated(version: Version) -> str | None:
    starts = [record.started_utc for one in version.sets for record in one.campaign.completed]
    return max((start for start in starts if start is not None), default=None)

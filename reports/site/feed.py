"""The feed of a site: one Atom entry for each version, newest first, with the answer of its first page."""

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reports.sets.version import Version

FEED_FILE: Final = "feed.xml"

_ANSWER: Final = re.compile(r'<p class="answer">(.*?)</p>', re.DOTALL)
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


def feed(versions: Sequence[Version], site: Path) -> str:
    """Return the feed of these versions, newest first, whose pages are in ``site``.

    A version's time is the start of its last run. A version in which nothing ran has no time, so it is left out. A feed
    without an entry has no time either.
    """
    timed: dict[str, str] = {}
    for version in versions:
        starts = [run.started_utc for own in version.sets for run in own.campaign.completed if run.started_utc]
        timed |= {version.name: max(starts)} if starts else {}
    entries = "".join(
        _ENTRY.format(name=html.escape(name), updated=updated, summary=_answer(site / name / "index.html"))
        for name, updated in timed.items()
    )
    updated = f"<updated>{max(timed.values())}</updated>\n" if timed else ""
    return _FEED.format(file=FEED_FILE, updated=updated, entries=entries)


def _answer(page: Path) -> str:
    """The sentence that the page opens with, without markup."""
    answer = _ANSWER.search(page.read_text(encoding="utf-8"))
    return html.escape(html.unescape(re.sub(r"<[^>]+>", "", answer[1]))) if answer else ""

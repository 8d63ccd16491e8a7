"""Removes the names of this machine, its folders and its user from messages that are stored.

Results are published, failed rounds too. The logs of a round keep the whole text and stay on the machine.
"""

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from suite.files.cache import cache_root, home
from suite.files.paths import ROOT

_HOMES: Final = re.compile(r"/(home|Users)/[^/\s:'\"]+")  # of other users
_SHORT: Final = 3  # a host's name with so few characters may be part of any word


def public(text: str, *, folders: Mapping[Path, str] | None = None, nodes: Sequence[str] = ()) -> str:
    """Replace labscale's, the cache's and the user's folders, ``folders`` and this host by names in ``text``.

    ``nodes`` are replaced by their numbers.
    """
    private = {Path(ROOT): "LABSCALE", cache_root(): "CACHE"} | dict(folders or {})
    if (own := home()) is not None:
        private.setdefault(own, "HOME")
    for folder, name in sorted(private.items(), key=lambda item: len(str(item[0])), reverse=True):
        if folder != Path(folder.anchor):  # a container's home may be /, where every path begins
            text = re.sub(rf"{re.escape(str(folder))}(?![\w.-])", name, text)
    text = _HOMES.sub(r"/\1/USER", text)
    for number, node in enumerate(nodes):
        for name in _names_of(node):  # whatever domain follows
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?:\.\w[\w-]*)*(?![\w-])", f"node {number}", text)
    for host in _names_of_this_host():
        text = re.sub(rf"(?<![\w-]){re.escape(host)}(?![\w-])", "HOST", text)
    return text


def _names_of(node: str) -> Iterator[str]:
    """Yield a node's name as given, which may be ssh's user@host; without the user; and without the domain."""
    host = node.rpartition("@")[2]
    short = host.partition(".")[0]
    yield from dict.fromkeys((node, host, host if short.isdecimal() else short))  # not the 10 of an address


def _names_of_this_host() -> Iterator[str]:
    """Yield the whole name, then the short one, with which it begins."""
    name = socket.gethostname()
    for candidate in dict.fromkeys((name, name.partition(".")[0])):
        if len(candidate) > _SHORT and candidate != "localhost":
            yield candidate

"""The list of topics, whose pages are not in ``reports/pages`` yet. Without its line and its folder a topic is gone."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

from reports.display.page import Page
from reports.display.topic import Topic

# Folder in ``reports/topics`` -> session of nox -> the topic's module that has its command.
TOPICS: Final[Mapping[str, Mapping[str, str]]] = {}
COMMANDS: Final = {
    session: f"reports.topics.{folder}.{module}"
    for folder, commands in TOPICS.items()
    for session, module in commands.items()
}


@cache
def topics() -> tuple[Topic, ...]:
    """What every topic gives to the site."""
    return tuple(_topic(folder) for folder in TOPICS)


def pages_of(folder: str) -> tuple[Page, ...]:
    """Return the pages of a topic; none of one that is gone."""
    return _topic(folder).pages if folder in TOPICS else ()


def _topic(folder: str) -> Topic:
    topic: Topic = import_module(f"reports.topics.{folder}.topic").TOPIC
    return topic

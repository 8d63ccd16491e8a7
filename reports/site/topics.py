"""The only list of topics, in the order of the contents. Without its line and its folder a topic is gone."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

from reports.display.topic import Topic

# Folder in ``reports/topics`` -> session of nox -> the topic's module that has its command.
TOPICS: Final[Mapping[str, Mapping[str, str]]] = {
    "results": {},
    "findings": {},
    "explore": {},
    "tasks": {},
    "settings": {},
    "support": {},
    "hardware": {},
    "others": {},
    "tuning": {"learning_references": "learning_references"},
    "history": {"compare": "command"},
    "releases": {},
    "acceptance": {},
    "trust": {},
    "data": {"export": "export"},
}
COMMANDS: Final = {
    session: f"reports.topics.{folder}.{module}"
    for folder, commands in TOPICS.items()
    for session, module in commands.items()
}


@cache
def topics() -> tuple[Topic, ...]:
    """What every topic gives to the site."""
    return tuple(import_module(f"reports.topics.{folder}.topic").TOPIC for folder in TOPICS)

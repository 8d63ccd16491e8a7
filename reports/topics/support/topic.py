"""What ran where."""

from typing import Final

from reports.display.page import Page, has_speeds
from reports.display.topic import Topic
from reports.sets.version import Version
from reports.topics.support.markdown import markdown
from reports.topics.support.model import read_impossible, trainings
from suite.matrix.catalog import load_catalog


def _readme(version: Version) -> str:
    return markdown(load_catalog(), trainings(version), read_impossible())


TOPIC: Final = Topic(
    pages=(Page(text="support", part="Hardware", is_shown=has_speeds),),
    readme=_readme,
)

"""Machines, and a page for each GPU model."""

import string
from collections.abc import Mapping
from typing import Final

from reports.display.addresses import page_of_gpu
from reports.display.html import heading, together
from reports.display.page import Page, has_speeds, read_text
from reports.display.topic import Topic
from reports.sets.version import Version
from reports.topics.hardware.gpu_page import gpu_models
from reports.topics.hardware.models import models

PART: Final = "Hardware"


def _hardware(version: Version) -> Mapping[str, str]:
    """One page for each GPU model, and one for machines without."""
    template = string.Template(read_text("hardware"))
    return {page_of_gpu(model): template.substitute(model=model.replace('"', "'")) for model in gpu_models(version)}


TOPIC: Final = Topic(
    pages=(
        Page(text="machines", part=PART, is_shown=lambda _: True),
        Page(text="hardware", part=PART, is_shown=has_speeds, made=_hardware),
    ),
    page_parts={"index": lambda version: together([heading("Hardware", depth=2, anchor="hardware"), models(version)])},
)

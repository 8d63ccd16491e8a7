"""The launcher ``ray``: rounds on the nodes of a Ray cluster that a person has started."""

import functools
from dataclasses import replace
from typing import Final

from suite.launch.native.launcher import on_this_machine
from suite.launch.nodes import facts
from suite.launch.ray import cluster
from suite.launch.ray.run import run
from suite.launch.runtime import Asked, LauncherEntry, NoSettings, Runtime


def _provision(_settings: NoSettings, asked: Asked) -> Runtime:
    """Use the worker in the same folder on every node of Ray; refuse nodes that differ, by name."""
    inner = on_this_machine(asked)
    found = cluster.look_at_nodes(
        facts.arguments_for(asked.request),
        say=asked.say,
        differing_is_fine=asked.options.place.ignore_env_check,
    )
    return replace(
        inner,
        launch=functools.partial(run, say=asked.say),
        launch_in_turns=None,
        machine=found.environment,
        check=lambda: found.report,
    )


RAY: Final = LauncherEntry(
    name="ray",
    resources=lambda _settings, _machine: cluster.resources(),
    provision=_provision,
    settings=NoSettings,
)

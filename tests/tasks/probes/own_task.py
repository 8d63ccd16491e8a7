"""What the worker says of two tasks, of all agents of the catalog's, and of an asset that is missing: prints JSON."""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

from suite.schema.rank_protocol import read_configuration
from suite.schema.record import Assets, Stack
from tasks.assets import missing_asset_named
from tasks.registered import agents, answers


def missing_asset(run_dir: str, assets: Assets) -> str:
    from isaaclab.utils.assets import retrieve_file_path

    root = os.environ["ISAACSIM_ASSET_ROOT"]
    case = replace(read_configuration(Path(run_dir)), assets=assets)
    try:
        with missing_asset_named(case, root):
            retrieve_file_path(f"{root}/Isaac/Robots/Nowhere/robot.usd")
    except FileNotFoundError as error:
        return str(error)
    return "it was found"


def main(case_path: str, *catalog_tasks: str) -> None:
    stacks: dict[Stack, list[list[str]]] = {
        "kitless": [[], []],
        "isaacsim": [["presets=isaacsim_physx"], ["presets=isaacsim_physx,isaacsim_rtx"]],
    }
    # Physics that only Isaac Sim has, and a config whose presets offer it beside Newton.
    described = answers(["IsaacContrib-Deploy-Reach-UR10e", "Isaac-Cartpole", "Isaac-Cartpol"], stacks)
    missing = {assets: missing_asset(case_path, assets) for assets in get_args(Assets)}
    registered = {task: dict(agents(task)) for task in catalog_tasks}
    print(json.dumps({"answers": described, "agents": registered, "missing": missing}))


if __name__ == "__main__":
    main(*sys.argv[1:])

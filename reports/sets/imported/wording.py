"""What is said of imported results wherever they are shown."""

from typing import Final

from reports.sets.imported.imported_set import ForeignCase
from suite.files.wording import counted

RANK_0: Final = (
    "These are means over all iterations of a run, the slow first ones included, by the clock of rank 0 alone: no other"
    " rank was timed, and no sample was kept. Efficiencies between them are rank 0's, and neither they nor the times"
    " can be compared with labscale's, which are medians over steady iterations of the slowest rank."
)


def case_name(case: ForeignCase) -> str:
    """``Isaac-Ant, rsl_rl, newton_mjwarp, 4096 environments, 1x4``, topology as nodes x ranks of each."""
    bundle = case.first.bundle
    config = bundle.run.config
    rendering = () if config.rendering_backend == "none" else (config.rendering_backend,)
    topology = f"{bundle.num_nodes}x{bundle.world_size // bundle.num_nodes}"
    parts = (
        bundle.run.task,
        bundle.run.framework,
        config.physics_backend,
        *rendering,
        *config.presets,
        counted(case.num_envs, "environment"),
        topology,
        *(() if bundle.labscale_case_id is None else ("by labscale's clock",)),
    )
    return ", ".join(parts)

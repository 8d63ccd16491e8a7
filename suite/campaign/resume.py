"""Which commands may share a results folder, and when one adds rounds to what an earlier one had decided.

Rounds that a narrower command added stay. ``campaign.json`` has the rule of the whole campaign: it says more only once
all cases have it, so that whatever is interrupted goes on.
"""

import hashlib
from dataclasses import replace
from typing import Final

from suite.campaign import identity_file as campaign_file
from suite.campaign.folder import Folder, require_identity
from suite.campaign.planning import make_plan
from suite.campaign.rounds import decision
from suite.campaign.state import Campaign
from suite.errors import CampaignError
from suite.files.wording import counted
from suite.records import store
from suite.schema.record import Case
from suite.statistics.aa_noise import is_twin
from suite.statistics.stopping_rule import CUT_OFF

# Of an identity, what follows from options and matrix; the rest is known when the worker is there.
OF_OPTIONS: Final = (
    "matrix",
    "capacity",
    "matrix_sha256",
    "seed",
    "a_a",
    "device",
    "stack",
    "assets",
    "host_label",
    "emulated_nodes",
)


def identity(campaign: Campaign) -> dict[str, object]:
    """What must be equal for results to share a folder; narrowing options are not in it, so a campaign can grow.

    ``suite.campaign.identity_file`` compares: of its ``RULE`` more may be asked for, and how the matrix is named is
    for readers.
    """
    cases = [item.case for item in make_plan(_whole(campaign)).planned]
    matrix_text = "\n".join(map(repr, cases))
    machine = campaign.machine
    return {
        "matrix": campaign.options.selection.matrix,
        "capacity": campaign.options.search.capacity,
        "matrix_sha256": hashlib.sha256(matrix_text.encode()).hexdigest(),
        "seed": cases[0].seed,
        "a_a": any(map(is_twin, cases)),
        "rounds": campaign.rule.rounds,
        "precision": campaign.rule.precision,
        "max_rounds": None if campaign.rule.precision is None else campaign.rule.max_rounds,
        "device": campaign.device,
        "cpus_per_rank": len(campaign.slots[0].cpus) if campaign.slots else None,  # None: those of the host are divided
        "stack": campaign.stack,
        "assets": campaign.options.setup.assets,
        "asset_sha256": machine.asset_sha256,
        "worker_pins_sha256": machine.worker_pins_sha256,
        "worker_packages": list(machine.worker_packages) or None,  # as campaigns of earlier versions have it
        "cpu_model": machine.cpu_model,
        "gpus": [gpu.name for gpu in machine.gpus],
        "driver_version": machine.driver_version,
        "host_label": machine.host_label,
        "emulated_nodes": campaign.resources.nnodes if campaign.resources.is_one_host else None,
        "image_digest": campaign.runtime.image_digest if campaign.runtime else None,
    }


def refuse_other_options(campaign: Campaign) -> None:
    """Refuse a folder that other options began, before anything is installed or checked for these.

    Raises:
        CampaignError: they differ, fewer rounds are asked for, or nobody can tell whose results the folder has.
    """
    require_identity(campaign.out)
    path = campaign.out / campaign_file.IDENTITY_FILE
    if path.exists():
        campaign_file.asks_for_more(path, identity(campaign), names=OF_OPTIONS)


def is_whole(campaign: Campaign) -> bool:
    """Say whether the command runs all of its matrix, not some cases."""
    return campaign.options == _whole(campaign).options


def _whole(campaign: Campaign) -> Campaign:
    whole = replace(
        campaign.options,
        selection=replace(campaign.options.selection, series=(), case_globs=(), rl_libraries=(), gpus=()),
    )
    return replace(campaign, options=whole)


def with_more_rounds(campaign: Campaign, folder: Folder) -> Folder:
    """The folder with those cases open again that an earlier command stored and this one asks more rounds of.

    Raises:
        CampaignError: the raw records of such a case are gone.
    """
    cases = [item.case for item in campaign.planned if not item.infeasible]
    return replace(folder, reopened=frozenset(case.case_id for case in cases if is_reopened(campaign, folder, case)))


def is_reopened(campaign: Campaign, folder: Folder, case: Case) -> bool:
    """Say whether a case is stored, and has fewer rounds than this command asks for: none where it could not run.

    Raises:
        CampaignError: its raw records are gone.
    """
    path = folder.case_path(case)
    if not path.exists():
        return False
    stored = store.read_case(path)
    rounds, was_cut_off = stored.begun, (stored.ended_because or "").startswith(CUT_OFF)
    # By the same rule it was decided, if only because the time of that command was spent.
    if not folder.asks_for_more and not was_cut_off and len(rounds) >= campaign.rule.rounds:
        return False
    if campaign.options.search.capacity and not all(record.counts for record in rounds):
        return False  # what memory has no room for, it has none for in the next round
    if not decision(campaign, rounds).go_on:
        return False
    if gone := [record.round for record in rounds if not folder.is_finished(case, record.round)]:
        raise CampaignError(
            f"{path} has {counted(len(rounds), 'round')}, but {folder.record_path(case, gone[0])} is gone, so none can"
            " be added. Put OUT/raw back where it was, or choose another folder with --out."
        )
    return True

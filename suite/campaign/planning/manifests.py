"""Write the files that Kubernetes or OSMO runs: ``plan --render kubernetes|osmo --out DIR``."""

import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from suite.campaign.folder import Folder
from suite.campaign.state import Campaign
from suite.errors import UsageError
from suite.external.container_spec import IMAGE_NAME
from suite.files.paths import IMAGE_ROOT, ROOT
from suite.launch import manifests
from suite.launch.images.table import Image, find_image
from suite.launch.images.worker import require_licence
from suite.launch.registry import MANIFESTS
from suite.matrix.file import matrix_names
from suite.matrix.plan import render_launch
from suite.options.command_line import say
from suite.options.options import as_typed
from suite.schema.rank_protocol import travelling
from suite.schema.record import Case, Launch

ONE_NODE = "*-1x*"  # matches the ids of cases of one node


def write_manifests(campaign: Campaign) -> Campaign:
    """Write one file for all cases of one node; for Kubernetes also one for each round of several nodes.

    Raises:
        UsageError: an option is missing or invalid, no case is left, or a file cannot be written.
        ContainerError: the licence of Isaac Sim is not accepted.
    """
    options = campaign.options
    if options.place.image is None or options.results.out is None:
        given = f"got --image {options.place.image or 'missing'} and --out {options.results.out or 'missing'}"
        raise UsageError(f"--render needs --image, the image's name in a registry, and --out, a folder; {given}.")
    if not IMAGE_NAME.fullmatch(options.place.image):
        raise UsageError(
            f"--image is {options.place.image!r}, allowed is an image's name in a registry, "
            "[HOST[:PORT]/]NAME[:TAG][@DIGEST], the name in small letters, e.g. registry.example.org/robots/kitless:1."
        )
    if options.selection.matrix not in (names := matrix_names()):
        raise UsageError(
            f"--render needs a matrix that the image has, got {options.selection.matrix}; allowed are "
            f"{', '.join(names)}."
        )
    require_licence(stack=campaign.stack, accepted=options.place.accept_eula)
    image = find_image(campaign.stack, ROOT)
    documents = dict(_documents(campaign, image))
    if not documents:
        raise UsageError("No configuration is left to render: osmo takes those of one node, and none is selected.")
    for name, document in documents.items():
        path = options.results.out / name
        _write(document, path)
        how = MANIFESTS[options.manifests.render or ""].submit
        say(campaign.console, f"{how} {shlex.quote(str(path))}")
    return campaign


def _write(document: Mapping[str, Any], path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}. Check space and permissions, or choose another folder with"
            " --out."
        ) from error


def _documents(campaign: Campaign, image: Image) -> Iterator[tuple[str, dict[str, Any]]]:
    feasible = [item for item in campaign.planned if not item.infeasible]
    one_node = [item.case for item in feasible if item.case.nnodes == 1]
    matrix, entry = campaign.options.selection.matrix, MANIFESTS[campaign.options.manifests.render or ""]
    name, out = f"labscale-{matrix}", entry.results(matrix)
    if one_node:
        num_gpus = max((case.gpus_per_node for case in one_node if case.device == "cuda"), default=0)
        arguments = bench_arguments(campaign, image, one_node, out=out)
        yield f"{name}{entry.suffix}", entry.campaign(arguments, campaign.options, name, num_gpus)
    if entry.round_of_nodes is None:
        return
    for item in feasible:
        # Exactly ``rounds``: nothing on the cluster could apply the rule of a precision.
        for index in range(item.rounds if item.case.nnodes > 1 else 0):
            launch = _launch(image, item.case, index, out=out)
            document = entry.round_of_nodes(launch, campaign.options, item.rounds)
            yield f"{item.case.case_id.replace('/', '--')}--r{index}.json", document


def _launch(image: Image, case: Case, index: int, *, out: str) -> Launch:
    return render_launch(
        case,
        round_index=index,
        worker_python=Path(image.worker_python),
        project_root=IMAGE_ROOT,
        run_dir=Folder(root=Path(out)).run_dir(case, index),
        asset_root=Path(manifests.ASSETS),
        cache_dir=Path(manifests.CACHE),
        cpus=1,  # the pod counts its own cores
        settings=travelling(os.environ),
    )


def bench_arguments(campaign: Campaign, image: Image, cases: Sequence[Case], *, out: str) -> tuple[str, ...]:
    """The options with which ``bench`` runs these cases of the campaign in a pod of one node.

    Globs are replaced by case ids: a glob may also match cases of several nodes, which the pod would store as skipped.
    """
    options = campaign.options
    chosen_cases = [case.case_id for case in cases] if options.selection.case_globs else [ONE_NODE]
    limits = ("repeats", "target_precision", "max_rounds", "budget_minutes", "stack", "seed", "host_label")
    # labscale does not install Isaac Sim, so it does not know where it is.
    python = ("--worker-python", image.worker_python) if campaign.stack == "isaacsim" else ()
    return (
        *("--matrix", options.selection.matrix, "--out", out, "--device", campaign.device),
        *as_typed(options, "assets"),
        *(word for case_id in chosen_cases for word in ("--case", case_id)),
        *as_typed(options, "series", "rl_libraries", "gpus", *limits),
        *python,
        *as_typed(options, "a_a"),
        "--no-report",
    )

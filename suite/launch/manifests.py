"""Render files for clusters with a control plane of their own. Pure: nothing here talks to a cluster.

For Kubernetes, all cases of one node are one campaign in one pod. A round of several nodes is an Indexed Job with one
pod a node, and a headless service. Its pods share the volume of the results; the first pod writes the record.

For NVIDIA's OSMO, a campaign is a workflow with one task, whose output is the results folder. Tasks of OSMO share no
folder, and the ranks of a round write to one, so rounds of several nodes are not rendered.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from suite.errors import StoreError
from suite.launch.contract import ManifestEntry
from suite.launch.images.table import SUITE_PYTHON
from suite.launch.images.worker import LICENCE_ACCEPTED, digest_variables
from suite.launch.nodes.node import HEAD, NODE_RANK, PEER, RENDEZVOUS_ID, RENDEZVOUS_PORT
from suite.matrix.plan import THREAD_VARIABLES
from suite.options.options import Options
from suite.schema.rank_protocol import CONFIGURATION_FILE, text_of, travelling
from suite.schema.record import Launch

RESULTS: Final = "/results"  # where the volume is mounted
CACHE: Final = "/var/cache/labscale"  # inside the image, where every user may write
ASSETS: Final = f"{CACHE}/assets"
USER: Final = 1000  # of the image, and so of the files in the volume
CONFIGURATION: Final = f"/labscale/{CONFIGURATION_FILE}"
PORT: Final = 29400  # a pod has its network to itself
# Of a pod that is on a node, beyond its case's limit: its image is fetched, of 9 GB and more, and those of its peers,
# on nodes that may be slower or may have come later. So long it waits for them too.
SLACK_S: Final = 3600.0
STOP_S: Final = 30  # training has after SIGTERM
GRACE_S: Final = 120  # a pod has after SIGTERM: training stops, the record is written
TOLD_TO_STOP: Final = "told-to-stop"  # in a node's logs: somebody else ended it, before anything of it failed
FAILED: Final = "failed"  # in a node's logs: it ended badly, and by itself
JOB_LABEL: Final = "batch.kubernetes.io/job-name"  # Kubernetes' own, on every pod of a job
OSMO_OUTPUT: Final = "{{output}}"  # OSMO's word for the folder that it uploads
OSMO_CPUS_PER_GPU: Final = 8
OSMO_MEMORY_GIB_PER_GPU: Final = 64
OSMO_STORAGE_GIB: Final = 100
LABELS: Final = {"app.kubernetes.io/name": "labscale"}
INDEX: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

# $1: labscale's Python, $2: the run directory, $3: nodes, $4: ranks a node, $5: rounds of the case, $6: its limit in
# seconds, $7: threads of a pool, empty for a rank's share of the pod's cores, $8: the label of the host, which may be
# empty; then the command of the node.
# labscale counts the cores, as it does elsewhere: nproc does not know a quota.
_NODE: Final = f"""
suite=$1 run_dir=$2 nodes=$3 ranks=$4 rounds=$5 limit_s=$6 threads=$7 label=$8; shift 8
if [ -z "$threads" ]; then
    cores=$("$suite" -c 'from suite.external.machine import num_usable_cpus; print(num_usable_cpus())') || exit
    threads=$((cores / ranks)); [ "$threads" -gt 0 ] || threads=1
fi
export {" ".join(f"{variable}=$threads" for variable in THREAD_VARIABLES)}
[ -z "${{ISAACSIM_ASSET_ROOT:-}}" ] || "$1" -m tasks.assets "$ISAACSIM_ASSET_ROOT" || exit
logs=$run_dir/logs/node-${NODE_RANK} part=$run_dir/{CONFIGURATION_FILE}.${NODE_RANK}
if [ -e "$run_dir/record.json" ]; then
    echo "$run_dir contains a finished run, which is never overwritten. Render with another --volume-claim." >&2
    exit {StoreError.exit_code}
fi
# What an attempt that was evicted left of this node: ranks append.
rm -rf "$logs" "$run_dir/telemetry-node-${NODE_RANK}.jsonl"
rank=$((${NODE_RANK} * ranks)); next_node=$((rank + ranks))
while [ "$rank" -lt "$next_node" ]; do rm -f "$run_dir/rank-$rank.jsonl"; rank=$((rank + 1)); done
mkdir -p "$logs" && cp {CONFIGURATION} "$part" && mv "$part" "$run_dir/{CONFIGURATION_FILE}" || exit
# Only then does its time begin, and torchrun's patience, which is for nodes that start together.
"$suite" -m suite.launch.nodes.wait_for_nodes --nodes "$nodes" --within-s {SLACK_S:g} || exit
started=$(date +%s)
# As process 1 a shell is deaf to an eviction's SIGTERM, and would wait for training until it is killed itself.
timeout --kill-after={STOP_S} "$limit_s" "$@" >"$logs/torchrun.log" 2>&1 &
training=$! stopped=
stop() {{
    # A pod that fails has its job end the others: then that is what happened, and not this.
    grep -qs '"event": "error"' "$run_dir"/rank-*.jsonl || ls "$run_dir"/logs/node-*/{FAILED} >/dev/null 2>&1 ||
        : >"$logs/{TOLD_TO_STOP}"
    stopped=1; kill "$training" 2>/dev/null
}}
trap stop TERM
wait "$training"; code=$?
while [ -n "$stopped" ]; do  # the signal may have ended the waiting alone; 127: its end is known already
    stopped=; wait "$training"; ended=$?
    [ "$ended" = 127 ] || code=$ended
done
[ "$code" = 0 ] || [ -e "$logs/{TOLD_TO_STOP}" ] || : >"$logs/{FAILED}"
if [ "${NODE_RANK}" = 0 ]; then
    "$suite" -m suite.campaign.record_round "$run_dir" --rounds "$rounds" --exit-code "$code" \\
        --started-unix-s "$started" "--host-label=$label" || exit
fi
exit "$code"
"""


def _environ(options: Options) -> dict[str, str]:
    """What every container gets, with the settings of the user's shell."""
    licence = LICENCE_ACCEPTED if options.place.accept_eula else {}
    return {**travelling(os.environ), **licence, **digest_variables(options.place.image or "")}


def campaign(arguments: Sequence[str], options: Options, name: str, num_gpus: int) -> dict[str, Any]:
    """A job that runs ``suite bench`` with these arguments in one pod. Started again, it continues."""
    container = _container(options, num_gpus, [SUITE_PYTHON, "-m", "suite", "bench", *arguments], {})
    pod = _pod(options, container)
    spec = {"backoffLimit": 0, "template": {"metadata": {"labels": LABELS}, "spec": pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": LABELS}, "spec": spec}


def round_of_nodes(launch: Launch, options: Options, rounds: int) -> dict[str, Any]:
    """A list of objects: the case, the service that names the pods, and their job. A pod that fails ends the others."""
    case, name = launch.case, f"labscale-{hashlib.sha256(launch.run_dir.encode()).hexdigest()[:12]}"
    pod = _pod_of_node(launch, options, name=name, rounds=rounds)
    metadata = {
        "name": name,
        "labels": LABELS,
        "annotations": {"labscale/case": case.case_id, "labscale/round": str(launch.round)},
    }
    job = {
        "completionMode": "Indexed",
        "completions": case.nnodes,
        "parallelism": case.nnodes,
        "backoffLimit": 0,  # a round that crashes is never tried again
        "template": {"metadata": {"labels": LABELS}, "spec": pod},
    }
    service = {
        "clusterIP": "None",
        "selector": {JOB_LABEL: name},
        "publishNotReadyAddresses": True,  # torchrun connects before any probe could say ready
        "ports": [{"name": "rendezvous", "port": PORT}],
    }
    data = {CONFIGURATION_FILE: text_of(case)}
    items = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job},
    ]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _pod_of_node(launch: Launch, options: Options, *, name: str, rounds: int) -> dict[str, Any]:
    """The pod of the job ``name``; no two of them run on one host."""
    case = launch.case
    env = {name: value for name, value in launch.env.items() if name not in THREAD_VARIABLES} | {
        HEAD: f"{name}-0.{name}",
        PEER: f"{name}-1.{name}",
        RENDEZVOUS_ID: name,
        RENDEZVOUS_PORT: str(PORT),
    }
    prefix = ["sh", "-c", _NODE.strip("\n"), "node", SUITE_PYTHON, launch.run_dir]
    numbers = (case.nnodes, case.nproc_per_node, rounds, f"{case.timeout_s:g}", case.cpu_threads or "")
    command = [*prefix, *map(str, numbers), options.results.host_label or "", *launch.argv]
    container = _container(options, case.gpus_per_node if case.device == "cuda" else 0, command, env)
    container["env"].append({"name": NODE_RANK, "valueFrom": {"fieldRef": {"fieldPath": INDEX}}})
    container["volumeMounts"].append(
        {"name": "configuration", "mountPath": CONFIGURATION.rpartition("/")[0], "readOnly": True}
    )
    pod = _pod(options, container)
    pod["subdomain"] = name
    pod["activeDeadlineSeconds"] = round(case.timeout_s + SLACK_S)  # a job's own would count a queue too
    pod["volumes"].append({"name": "configuration", "configMap": {"name": name}})
    apart = {"labelSelector": {"matchLabels": {JOB_LABEL: name}}, "topologyKey": "kubernetes.io/hostname"}
    pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    return pod


def _container(options: Options, num_gpus: int, command: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    everywhere = {**_environ(options), "HOME": "/tmp", "USER": "labscale"}  # noqa: S108  of the container
    cluster = options.manifests
    sizes = {"cpu": cluster.pod_cpus and str(cluster.pod_cpus), "memory": cluster.pod_memory}
    asked = {name: size for name, size in sizes.items() if size}
    gpus = {cluster.gpu_resource: num_gpus} if num_gpus else {}
    resources = {"limits": {**gpus, **asked}, **({"requests": asked} if asked else {})} if gpus or asked else {}
    return {
        "name": "labscale",
        "image": options.place.image,
        "command": list(command),
        "env": [{"name": name, "value": value} for name, value in sorted({**everywhere, **env}.items())],
        "resources": resources,
        "volumeMounts": [
            {"name": "results", "mountPath": RESULTS},
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108  NCCL's, 64 MB by default
        ],
    }


def _pod(options: Options, container: dict[str, Any]) -> dict[str, Any]:
    cluster = options.manifests
    selectors = dict(text.split("=", 1) for text in cluster.node_selectors)
    where = {
        "runtimeClassName": cluster.runtime_class,
        "nodeSelector": selectors,
        "tolerations": [_toleration(text) for text in cluster.tolerations],
        "imagePullSecrets": [{"name": name} for name in cluster.pull_secrets],
    }
    return {
        **{name: value for name, value in where.items() if value},
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": {"fsGroup": USER},
        "containers": [container],
        "volumes": [
            {"name": "results", "persistentVolumeClaim": {"claimName": cluster.volume_claim}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
    }


def _toleration(text: str) -> dict[str, str]:
    """A toleration from ``KEY[=VALUE][:EFFECT]``; without an effect it is for all."""
    taint, _, effect = text.partition(":")
    key, equals, value = taint.partition("=")
    matched = {"operator": "Equal", "value": value} if equals else {"operator": "Exists"}
    return {"key": key, **matched, **({"effect": effect} if effect else {})}


def workflow(arguments: Sequence[str], options: Options, name: str, num_gpus: int) -> dict[str, Any]:
    """A workflow that runs ``suite bench`` with these arguments."""
    variables = [f"{variable}={value}" for variable, value in _environ(options).items()]
    size = max(1, num_gpus)
    cluster = options.manifests
    resources = {
        "cpu": cluster.pod_cpus or OSMO_CPUS_PER_GPU * size,
        "memory": cluster.pod_memory or f"{OSMO_MEMORY_GIB_PER_GPU * size}Gi",
        "storage": cluster.pod_storage or f"{OSMO_STORAGE_GIB}Gi",
        **({"gpu": num_gpus} if num_gpus else {}),
        **({"platform": cluster.platform} if cluster.platform else {}),
    }
    task = {
        "name": "bench",
        "image": options.place.image,
        "command": ["env"],
        "args": ["HOME=/tmp", "USER=labscale", *variables, SUITE_PYTHON, "-m", "suite", "bench", *arguments],
        "outputs": [{"dataset": {"name": name}}],
    }
    return {"workflow": {"name": name, "resources": {"default": resources}, "tasks": [task]}}


KUBERNETES: Final = ManifestEntry(
    name="kubernetes",
    submit="kubectl apply -f",
    suffix=".json",
    results=lambda matrix: str(PurePosixPath(RESULTS) / matrix),
    campaign=campaign,
    round_of_nodes=round_of_nodes,
)  # fmt: skip
OSMO: Final = ManifestEntry(
    name="osmo",
    submit="osmo workflow submit",
    suffix=".yaml",
    results=lambda _matrix: OSMO_OUTPUT,
    campaign=workflow,
)

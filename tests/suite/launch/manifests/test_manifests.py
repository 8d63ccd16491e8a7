"""What is rendered for Kubernetes and OSMO: golden files, and Kubernetes' own schema."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from suite.__main__ import main, parse
from suite.errors import UsageError
from suite.files.paths import ROOT
from suite.launch.manifests import image_digest, kubernetes
from suite.launch.manifests.kubernetes import KubernetesOptions
from suite.launch.manifests.osmo import OsmoOptions, workflow
from suite.options.declaration import read
from suite.options.options import Manifests
from tests.suite.matrix.test_plan import ANT
from tests.suite.matrix.test_rendered_launch import launch_of

GOLDEN = Path(__file__).parents[3] / "golden" / "manifests"

OPTIONS: Final = KubernetesOptions(image="registry.example/kitless:1", volume_claim="nfs", suite_python="/suite/python")
NODES: Final = launch_of(replace(ANT, nnodes=2, case_id="ant/rl_games-kitless-n4096-2x2", num_envs_global=4096))
SCHEMA: Final = "1.37"


def validate(document: dict[str, Any]) -> None:
    for item in document.get("items", [document]):
        kubernetes_validate.validate(item, SCHEMA, strict=True)


def as_file(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1) + "\n"


def test_a_round_of_several_nodes() -> None:
    document = kubernetes.round_of_nodes(NODES, OPTIONS, rounds=3)
    assert as_file(document) == (GOLDEN / "kubernetes_round.json").read_text(encoding="utf-8")
    validate(document)
    (script,) = (part for part in document["items"][2]["spec"]["template"]["spec"]["containers"][0]["command"][2:3])
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0


def test_waiting_for_a_node_does_not_count_against_a_round() -> None:
    _, _, job = kubernetes.round_of_nodes(NODES, OPTIONS, rounds=3)["items"]
    assert "activeDeadlineSeconds" not in job["spec"]
    assert job["spec"]["template"]["spec"]["activeDeadlineSeconds"] > NODES.case.timeout_s


def test_a_campaign_of_one_node() -> None:
    document = kubernetes.campaign(("--matrix", "full"), OPTIONS, name="labscale-full", num_gpus=8)
    assert as_file(document) == (GOLDEN / "kubernetes_campaign.json").read_text(encoding="utf-8")
    validate(document)


def test_pods_have_what_their_cluster_needs() -> None:
    words = [
        "--toleration", "nvidia.com/gpu:NoSchedule", "--toleration", "team=robots", "--toleration", "spot",
        "--node-selector", "nvidia.com/gpu.product=NVIDIA-H200", "--runtime-class", "nvidia", "--pull-secret", "ngc",
        "--gpu-resource", "nvidia.com/mig-3g.40gb", "--pod-cpus", "16", "--pod-memory", "64Gi",
    ]  # fmt: skip
    cluster = read(Manifests, parse(["plan", "--render", "kubernetes", *words]))
    asked = replace(OPTIONS, cluster=cluster, settings={"NCCL_ALGO": "Ring"})
    campaign = kubernetes.campaign(("--matrix", "full"), asked, name="labscale-full", num_gpus=2)
    round_of_nodes = kubernetes.round_of_nodes(NODES, asked, rounds=3)
    for document, num_gpus in ((campaign, 2), (round_of_nodes, NODES.case.nproc_per_node)):
        validate(document)
        pod = document.get("items", [document])[-1]["spec"]["template"]["spec"]
        assert pod["tolerations"] == [
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {"key": "team", "operator": "Equal", "value": "robots"},
            {"key": "spot", "operator": "Exists"},
        ]
        assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H200"}
        assert pod["runtimeClassName"] == "nvidia"
        assert pod["imagePullSecrets"] == [{"name": "ngc"}]
        (container,) = pod["containers"]
        sizes = {"cpu": "16", "memory": "64Gi"}
        assert container["resources"] == {"limits": {"nvidia.com/mig-3g.40gb": num_gpus, **sizes}, "requests": sizes}
        assert {"name": "NCCL_ALGO", "value": "Ring"} in container["env"]


def test_a_workflow_has_the_platform_and_sizes_of_its_pool() -> None:
    words = ["--platform", "h200", "--pod-cpus", "16", "--pod-memory", "64Gi", "--pod-storage", "200Gi"]
    cluster = read(Manifests, parse(["plan", "--render", "osmo", *words]))
    asked = OsmoOptions(image="a/b:1", suite_python="/python", cluster=cluster, settings={"NCCL_ALGO": "Ring, Tree"})
    found = workflow(("--matrix", "full"), asked, name="labscale-full", num_gpus=8)["workflow"]
    assert found["resources"]["default"] == {
        "cpu": 16, "memory": "64Gi", "storage": "200Gi", "gpu": 8, "platform": "h200"
    }  # fmt: skip
    assert "NCCL_ALGO=Ring, Tree" in found["tasks"][0]["args"]


@pytest.mark.parametrize(
    "words",
    ["--toleration a:Never", "--toleration =x", "--node-selector gpu", "--runtime-class Nvidia", "--gpu-resource gpu",
     "--pull-secret a/b", "--pod-cpus 0", "--pod-memory 64", "--pod-storage -1Gi", "--platform h200",
     "--volume-claim A"],
)  # fmt: skip
def test_what_kubernetes_does_not_take_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--matrix", "full", "--render", "kubernetes", *words.split()]) == UsageError.exit_code
    assert words.split(maxsplit=1)[0] in capsys.readouterr().err


def test_a_workflow_of_osmo() -> None:
    document = workflow(
        ("--matrix", "full", "--out", "{{output}}"),
        OsmoOptions(image="registry.example/kitless:1", suite_python="/suite/python", accept_eula=True),
        name="labscale-full",
        num_gpus=8,
    )
    assert as_file(document) == (GOLDEN / "osmo_workflow.yaml").read_text(encoding="utf-8")


DIGEST: Final = f"sha256:{'0123456789abcdef' * 4}"


@pytest.mark.parametrize(
    ("image", "told"),
    [
        (f"registry.example:5000/kitless@{DIGEST}", DIGEST),
        (f"registry.example/kitless:1@{DIGEST}", DIGEST),
        ("registry.example/kitless:1", None),  # another image tomorrow
        (f"registry.example/kitless@{DIGEST[:-1]}", None),
    ],
)
def test_a_pod_is_told_the_digest_that_its_image_is_named_by(image: str, told: str | None) -> None:
    options = replace(OPTIONS, image=image)
    campaign = kubernetes.campaign((), options, name="labscale-full", num_gpus=8)
    _, _, job = kubernetes.round_of_nodes(NODES, options, rounds=3)["items"]
    for document in (campaign, job):
        validate(document)
        (container,) = document["spec"]["template"]["spec"]["containers"]
        assert {item["name"]: item.get("value") for item in container["env"]}.get(image_digest.DIGEST) == told
    osmo = workflow((), OsmoOptions(image=image, suite_python="/suite/python"), name="labscale-full", num_gpus=8)
    arguments = osmo["workflow"]["tasks"][0]["args"]
    settings = [word for word in arguments[: arguments.index("/suite/python")] if word.startswith(image_digest.DIGEST)]
    assert settings == ([] if told is None else [f"{image_digest.DIGEST}={told}"])


def plan(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "suite", "plan", "--matrix", "full", *arguments)
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_full_matrix_is_rendered_and_valid(tmp_path: Path) -> None:
    done = plan(
        "--render", "kubernetes", "--image", "registry.example/kitless:1", "--repeats", "1", "--out", str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    paths = sorted(tmp_path.iterdir())
    assert sorted(done.stdout.splitlines()) == [f"kubectl apply -f {path}" for path in paths]
    for path in paths:
        validate(json.loads(path.read_text(encoding="utf-8")))
    (whole,) = (path for path in paths if path.name == "labscale-full.json")
    command = json.loads(whole.read_text())["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[:4] == ["/opt/labscale/suite/bin/python", "-m", "suite", "bench"]
    assert command[command.index("--case") :][:2] == ["--case", "*-1x*"]


def test_the_pod_of_one_node_has_no_case_of_several(tmp_path: Path) -> None:
    """The pod would store such cases as skipped, in the folder of the rounds of several nodes."""
    chosen = ("--case", "ant-weak/*-2x*", "--case", "ant-weak/*-n2048-*", "--case", "ant-weak/*-1x1*")
    out = ("--out", str(tmp_path))
    done = plan("--render", "kubernetes", "--image", "registry.example/kitless:1", *chosen, *out)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir() if "-2x" in path.name]
    command = _command(json.loads((tmp_path / "labscale-full.json").read_text(encoding="utf-8")))
    globs = parse(command[command.index("bench") :]).case_globs
    assert {glob.partition("/")[0] for glob in globs} == {"ant-weak"}
    assert len(globs) >= 3  # a baseline, its twin and the next
    assert all("-1x" in glob and not set("*?[") & set(glob) for glob in globs)


def test_the_pod_measures_as_it_was_asked_to(tmp_path: Path) -> None:
    chosen = ["--target-precision", "0.02", "--max-rounds", "20", "--budget-minutes", "600.0", "--no-a-a"]
    done = plan("--render", "osmo", "--image", "registry.example/kitless:1", "--out", str(tmp_path), *chosen)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    arguments = json.loads(path.read_text(encoding="utf-8"))["workflow"]["tasks"][0]["args"]
    asked = parse(arguments[arguments.index("bench") :])
    assert (asked.target_precision, asked.max_rounds, asked.budget_minutes) == (0.02, 20, 600.0)
    assert asked.a_a is False


def test_rendered_campaigns_have_the_label_of_their_host(tmp_path: Path) -> None:
    label = "8 x L40S, lab's"
    done = plan("--render", "kubernetes", "--image", "i", "--host-label", label, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    commands = [_command(json.loads(path.read_text(encoding="utf-8"))) for path in tmp_path.iterdir()]
    (bench,) = (words for words in commands if "bench" in words)
    assert parse(bench[bench.index("bench") :]).host_label == label
    rounds = [words for words in commands if "bench" not in words]
    assert rounds
    assert all(label in words for words in rounds)


def _command(document: dict[str, Any]) -> list[str]:
    job = document.get("items", [document])[-1]
    words: list[str] = job["spec"]["template"]["spec"]["containers"][0]["command"]
    return words


def test_isaac_sim_is_not_rendered_without_its_licence(tmp_path: Path) -> None:
    asked = ("--render", "kubernetes", "--stack", "isaacsim", "--image", "registry.example/sim:1")
    done = plan(*asked, "--out", str(tmp_path / "no"))
    assert (done.returncode, "--accept-eula" in done.stderr, (tmp_path / "no").exists()) == (17, True, False)
    done = plan(*asked, "--accept-eula", "--out", str(tmp_path / "yes"))
    assert done.returncode == 0, done.stderr
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "yes").iterdir()]
    assert texts
    assert all("ACCEPT_EULA" in text for text in texts)


def test_an_image_that_no_registry_has_is_refused(tmp_path: Path) -> None:
    done = plan("--render", "kubernetes", "--image", "x y", "--out", str(tmp_path / "jobs"))
    assert (done.returncode, (tmp_path / "jobs").exists()) == (11, False)
    assert "--image is 'x y'" in done.stderr


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    done = plan("--render", "osmo", "--out", str(tmp_path))
    assert (done.returncode, f"got --image missing and --out {tmp_path}." in done.stderr) == (11, True)
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "k"
    done = plan("--render", "kubernetes", "--image", "registry.example/kitless:1", "--out", str(out))
    assert (done.returncode, f"{out}/labscale-full.json cannot be written: Not a directory" in done.stderr) == (
        11,
        True,
    )


@pytest.mark.parametrize("path", sorted((ROOT / "containers" / "examples").iterdir()), ids=lambda path: path.name)
def test_the_commands_in_examples_are_ours(path: Path) -> None:
    document = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    commands = document["commands"] if "commands" in document else document["run"].splitlines()
    ours = [shlex.split(command) for command in commands if "-m nox" in command]
    assert [words[4] for words in ours] == ["env_check", "bench"]
    for words in ours:
        assert parse(words[4:5] + words[6:]).command == words[4]

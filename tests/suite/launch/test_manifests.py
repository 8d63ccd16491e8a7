"""What is rendered for Kubernetes and OSMO: golden files, and Kubernetes' own schema."""

import json
import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
from ruamel.yaml import YAML

from suite.__main__ import main, parse
from suite.errors import UsageError
from suite.files.paths import ROOT
from suite.launch import manifests
from suite.launch.images import worker as image_worker
from suite.launch.manifests import workflow
from suite.options.options import Options
from suite.schema.rank_protocol import travelling
from tests.fixtures.runs.asked_options import changed, options_with
from tests.suite.matrix.test_plan import ANT
from tests.suite.matrix.test_rendered_launch import launch_of

GOLDEN = Path(__file__).parents[2] / "golden" / "manifests"

IMAGE: Final = "registry.example/kitless:1"
DIGEST: Final = f"sha256:{'0123456789abcdef' * 4}"
OPTIONS: Final = options_with(image=IMAGE, volume_claim="nfs")
NODES: Final = launch_of(replace(ANT, nnodes=2, case_id="ant/rl_games-kitless-n4096-2x2", num_envs_global=4096))
SCHEMA: Final = "1.37"


def validate(document: dict[str, Any]) -> None:
    for item in document.get("items", [document]):
        kubernetes_validate.validate(item, SCHEMA, strict=True)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods get the settings of the user's shell."""
    for name in travelling(os.environ):
        monkeypatch.delenv(name)


FULL: Final = ("--matrix", "full")
SIZES: Final = ("--pod-cpus", "16", "--pod-memory", "64Gi")
ON_PODS: Final = (
    "--toleration", "nvidia.com/gpu:NoSchedule", "--toleration", "team=robots", "--toleration", "spot",
    "--node-selector", "nvidia.com/gpu.product=NVIDIA-H200", "--runtime-class", "nvidia", "--pull-secret", "ngc",
    "--gpu-resource", "nvidia.com/mig-3g.40gb", *SIZES,
)  # fmt: skip
IN_A_POOL: Final = ("--platform", "h200", *SIZES, "--pod-storage", "200Gi")


def asked(target: str, *words: str) -> Options:
    return Options.of(parse(["plan", "--render", target, "--image", f"registry.example/kitless@{DIGEST}", *words]))


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("kubernetes_round.json", lambda: manifests.round_of_nodes(NODES, OPTIONS, 3)),
        ("kubernetes_round_asked.json", lambda: manifests.round_of_nodes(NODES, asked("kubernetes", *ON_PODS), 3)),
        ("kubernetes_campaign.json", lambda: manifests.campaign(FULL, OPTIONS, "labscale-full", 8)),
        (
            "osmo_workflow.yaml",
            lambda: workflow((*FULL, "--out", "{{output}}"), changed(OPTIONS, accept_eula=True), "labscale-full", 8),
        ),
        ("osmo_workflow_asked.yaml", lambda: workflow(FULL, asked("osmo", *IN_A_POOL), "labscale-full", 8)),
    ],
)
def test_what_is_rendered(name: str, render: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    if "asked" in name:
        monkeypatch.setenv("NCCL_ALGO", "Ring, Tree")
    document = render()
    assert json.dumps(document, indent=1) + "\n" == (GOLDEN / name).read_text(encoding="utf-8")
    if name.endswith(".json"):
        validate(document)


@pytest.mark.parametrize(
    "words",
    ["--toleration a:Never", "--toleration =x", "--node-selector gpu", "--runtime-class Nvidia", "--gpu-resource gpu",
     "--pull-secret a/b", "--pod-cpus 0", "--pod-memory 64", "--pod-storage -1Gi", "--platform h200",
     "--volume-claim A"],
)  # fmt: skip
def test_what_kubernetes_does_not_take_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--matrix", "full", "--render", "kubernetes", *words.split()]) == UsageError.exit_code
    assert words.split(maxsplit=1)[0] in capsys.readouterr().err


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
    options = changed(OPTIONS, image=image)
    for document in (manifests.round_of_nodes(NODES, options, 3), manifests.campaign(FULL, options, "full", 8)):
        (container,) = pod_of(document)["containers"]
        assert {item["name"]: item.get("value") for item in container["env"]}.get(image_worker.DIGEST) == told
    (task,) = workflow(FULL, options, "labscale-full", 8)["workflow"]["tasks"]
    set_there = [word for word in task["args"] if word.startswith(f"{image_worker.DIGEST}=")]
    assert set_there == ([f"{image_worker.DIGEST}={told}"] if told else [])


def plan(*arguments: object) -> int:
    return main(["plan", "--matrix", "full", *map(str, arguments)])


def documents_in(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.iterdir())}


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = document.get("items", [document])[-1]["spec"]["template"]["spec"]
    return pod


def command_of(document: dict[str, Any]) -> list[str]:
    words: list[str] = pod_of(document)["containers"][0]["command"]
    return words


def test_a_matrix_is_rendered_and_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    label = "8 x L40S, lab's"
    chosen = ("--series", "ant-weak", "--repeats", "1", "--host-label", label)
    asked = ("--render", "kubernetes", "--image", IMAGE, *chosen)
    assert plan(*asked, "--out", tmp_path) == 0
    documents = documents_in(tmp_path)
    assert sorted(capsys.readouterr().out.splitlines()) == [f"kubectl apply -f {tmp_path / name}" for name in documents]
    for document in documents.values():
        validate(document)
    bench = command_of(documents.pop("labscale-full.json"))
    assert bench[:4] == ["/opt/labscale/suite/bin/python", "-m", "suite", "bench"]
    assert bench[bench.index("--case") :][:2] == ["--case", "*-1x*"]
    assert parse(bench[bench.index("bench") :]).host_label == label
    assert documents
    assert all(label in command_of(document) for document in documents.values())


def test_the_pod_of_one_node_has_no_case_of_several(tmp_path: Path) -> None:
    """The pod would store such cases as skipped, in the folder of the rounds of several nodes."""
    chosen = ("--case", "ant-weak/*-2x*", "--case", "ant-weak/*-n2048-*", "--case", "ant-weak/*-1x1*")
    assert plan("--render", "kubernetes", "--image", IMAGE, *chosen, "--out", tmp_path) == 0
    documents = documents_in(tmp_path)
    assert [name for name in documents if "-2x" in name]
    command = command_of(documents["labscale-full.json"])
    globs = parse(command[command.index("bench") :]).case_globs
    assert {glob.partition("/")[0] for glob in globs} == {"ant-weak"}
    assert len(globs) >= 3  # a baseline, its twin and the next
    assert all("-1x" in glob and not set("*?[") & set(glob) for glob in globs)


def test_the_pod_measures_as_it_was_asked_to(tmp_path: Path) -> None:
    chosen = ["--target-precision", "0.02", "--max-rounds", "20", "--budget-minutes", "600.0", "--no-a-a"]
    assert plan("--render", "osmo", "--image", IMAGE, "--out", tmp_path, *chosen) == 0
    (document,) = documents_in(tmp_path).values()
    arguments = document["workflow"]["tasks"][0]["args"]
    asked = parse(arguments[arguments.index("bench") :])
    assert (asked.target_precision, asked.max_rounds, asked.budget_minutes) == (0.02, 20, 600.0)
    assert asked.a_a is False


def test_isaac_sim_is_not_rendered_without_its_licence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--render", "kubernetes", "--stack", "isaacsim", "--image", IMAGE, "--case", "ant-weak/*-1x1*")
    assert plan(*asked, "--out", tmp_path / "no") == 17
    assert ("--accept-eula" in capsys.readouterr().err, (tmp_path / "no").exists()) == (True, False)
    assert plan(*asked, "--accept-eula", "--out", tmp_path / "yes") == 0
    assert {"ACCEPT_EULA" in json.dumps(document) for document in documents_in(tmp_path / "yes").values()} == {True}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--render", "kubernetes", "--image", "x y", "--out", "jobs"), "--image is 'x y'"),
        (("--render", "osmo", "--out", "jobs"), "got --image missing and --out jobs."),
        (("--render", "kubernetes", "--image", IMAGE, "--out", "file/k"), "cannot be written: Not a directory"),
    ],
)
def test_what_cannot_be_rendered_is_refused(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert plan(*words) == UsageError.exit_code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize("path", sorted((ROOT / "containers" / "examples").iterdir()), ids=lambda path: path.name)
def test_the_commands_in_examples_are_ours(path: Path) -> None:
    document = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    commands = document["commands"] if "commands" in document else document["run"].splitlines()
    ours = [shlex.split(command) for command in commands if "-m nox" in command]
    assert [words[4] for words in ours] == ["env_check", "bench"]
    for words in ours:
        assert parse(words[4:5] + words[6:]).command == words[4]

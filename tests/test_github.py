"""Workflows, issue forms and CITATION.cff: valid, guarded, and true to the noxfile. No test here needs a network."""

import ast
import re
import subprocess
import sysconfig
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, get_args

import pytest
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

from reports.compare_command import parser as compare_parser
from reports.verification.hashes import SUMS, read_hashes, write_hashes
from suite import __version__
from suite.__main__ import parse
from suite.schema import Stack
from tests.workflow_rules import OWN_REF, faults, nox_commands, triggers

ROOT = Path(__file__).resolve().parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.y*ml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.y*ml") if path.stem != "config")
SHA = "3d3c42e5aac5ba805825da76410c181273ba90b1"

GOOD = f"""\
name: good
on:
  push:
    branches: [main]
  workflow_dispatch:
    inputs:
      ref:
        type: string
permissions: {{}}
concurrency:
  group: good
jobs:
  check:
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions:
      contents: read
    env:
      MATRIX: short
    steps:
      - uses: actions/checkout@{SHA} # v7.0.1
        with:
          persist-credentials: false
      - run: python3 -m pip install 'nox[uv]'
      - run: python3 -m nox -s bench -- --matrix "$MATRIX"
"""
SELF_HOSTED = GOOD.replace("  push:\n    branches: [main]\n", "").replace("ubuntu-24.04", "[self-hosted, gpu]")


def load(path: Path) -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = YAML(typ="safe").load(path.read_text())
    return loaded


def sessions() -> set[str]:
    tree = ast.parse((ROOT / "noxfile.py").read_text())
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return {
        function.name.rstrip("_")
        for function in functions
        if any("session" in ast.unparse(d) for d in function.decorator_list)
    }


def tool(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = Path(sysconfig.get_path("scripts")) / name
    return subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


def schema_check(schema: str, *paths: Path) -> Result:
    """In this process: the program takes seconds to start."""
    return CliRunner().invoke(check_jsonschema, ["--builtin-schema", f"vendor.{schema}", *map(str, paths)])


def zizmor(path: Path) -> subprocess.CompletedProcess[str]:
    return tool("zizmor", "--offline", "--persona=auditor", "--strict-collection", "--no-progress", path)


def actionlint(*paths: Path) -> subprocess.CompletedProcess[str]:
    # Without shellcheck and pyflakes, which some machines have and others do not.
    return tool("actionlint", "-shellcheck=", "-pyflakes=", "-config-file", GITHUB / "actionlint.yaml", *paths)


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
        ("dependabot", [GITHUB / "dependabot.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_files_follow_their_schemas(schema: str, paths: list[Path], tmp_path: Path) -> None:
    done = schema_check(schema, *paths)
    assert done.exit_code == 0, done.output
    damaged = tmp_path / paths[0].name
    damaged.write_text(paths[0].read_text() + "\nno-such-key-1: {}\n")
    assert schema_check(schema, damaged).exit_code == 1


def test_zizmor_finds_nothing_and_would_find_an_injection(tmp_path: Path) -> None:
    done = zizmor(GITHUB)
    assert done.returncode == 0, done.stdout + done.stderr
    bad = tmp_path / ".github" / "workflows" / "bad.yml"
    bad.parent.mkdir(parents=True)
    bad.write_text(GOOD.replace('"$MATRIX"', "${{ inputs.ref }}"))
    done = zizmor(bad)
    assert done.returncode != 0
    assert "template-injection" in done.stdout


def test_actionlint_finds_nothing_and_would_find_a_wrong_name(tmp_path: Path) -> None:
    done = actionlint(*WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr
    bad = tmp_path / "bad.yml"
    bad.write_text(GOOD.replace("MATRIX: short", "MATRIX: ${{ inputs.matirx }}"))
    done = actionlint(bad)
    assert done.returncode == 1
    assert "matirx" in done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_keep_the_rules_of_the_house(path: Path) -> None:
    assert faults(path.read_text(), sessions=sessions()) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (SHA, "v7", "not pinned by commit and version: - uses: actions/checkout@v7 # v7.0.1"),
        (" # v7.0.1", "", f"not pinned by commit and version: - uses: actions/checkout@{SHA}"),
        ("actions/checkout@", "evil/checkout@", "check: action evil/checkout is not allowed"),
        ("  push:\n    branches: [main]", "  pull_request_target:", "trigger pull_request_target is not allowed"),
        ("permissions: {}", "permissions: read-all", "permissions at the top are not {}"),
        ("permissions: {}\n", "", "permissions at the top are not {}"),
        ("concurrency:\n  group: good\n", "", "no concurrency"),
        ("    timeout-minutes: 5\n", "", "check: no timeout-minutes"),
        ("    permissions:\n      contents: read\n", "", "check: no permissions of its own"),
        ("contents: read", "contents: write", "check: may write, and runs code of the checkout"),
        ("ubuntu-24.04", "[self-hosted, gpu]", "check: push reaches a self-hosted runner"),
        ("ubuntu-24.04", "{group: gpus}", "check: push reaches a self-hosted runner"),
        ("-s bench", "-s bnech", "check: no nox session bnech"),
        ("MATRIX: short", "OTHER: short", "check: nothing sets MATRIX"),
        (' -- --matrix "$MATRIX"', " && ls", "check: not one plain nox command: python3 -m nox -s bench && ls"),
        (
            '"$MATRIX"',
            "${{ inputs.ref }}",
            "check: not one plain nox command: python3 -m nox -s bench -- --matrix ${{ inputs.ref }}",
        ),
        ('"$MATRIX"', "$MATRIX", "check: not one plain nox command: python3 -m nox -s bench -- --matrix $MATRIX"),
        ("'nox[uv]'", "rich", "check: not one plain nox command: python3 -m pip install rich"),
    ],
)
def test_each_rule_catches_its_fault(old: str, new: str, fault: str) -> None:
    assert faults(GOOD, sessions=["bench"]) == []
    assert GOOD.count(old) == 1
    assert faults(GOOD.replace(old, new), sessions=["bench"]) == [fault]


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        (OWN_REF, []),
        ("${{ inputs.ref }}", ["check: the self-hosted runner checks out ${{ inputs.ref }}"]),
        ("refs/pull/1/head", ["check: the self-hosted runner checks out refs/pull/1/head"]),
    ],
)
def test_the_self_hosted_runner_gets_code_of_this_repository_only(ref: str, expected: list[str]) -> None:
    assert faults(SELF_HOSTED, sessions=["bench"]) == []
    with_ref = SELF_HOSTED.replace("        with:\n", f'        with:\n          ref: "{ref}"\n')
    assert faults(with_ref, sessions=["bench"]) == expected


FOLLOWING = f"""\
on:
  workflow_run:
    workflows: [good]
permissions: {{}}
concurrency:
  group: following
jobs:
  tell:
    runs-on: ubuntu-24.04
    timeout-minutes: 5
    permissions:
      pull-requests: write
    steps:
      - uses: actions/checkout@{SHA} # v7.0.1
        with:
          persist-credentials: false
      - uses: actions/download-artifact@{SHA} # v8.0.1
        with:
          path: ${{{{ runner.temp }}}}/made
      - uses: actions/github-script@{SHA} # v9.0.0
        with:
          script: tell()
"""


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("on:\n", "on:\n  push:\n", "workflow_run beside other triggers"),
        ("  pull-requests: write", "  contents: write", "tell: workflow_run may write contents"),
        ("tell()", "tell(${{ github.event.workflow_run.head_branch }})", "tell: a script has an expression in it"),
        (
            "persist-credentials: false",
            "ref: ${{ github.event.workflow_run.head_sha }}",
            "tell: workflow_run checks out something else than the default branch",
        ),
        ("${{ runner.temp }}/made", "made", "tell: workflow_run unpacks an artifact into the checkout"),
    ],
)
def test_what_follows_a_pull_requests_run_gives_it_nothing(old: str, new: str, fault: str) -> None:
    assert faults(FOLLOWING, sessions=["bench"]) == []
    assert FOLLOWING.count(old) == 1
    assert faults(FOLLOWING.replace(old, new), sessions=["bench"]) == [fault]


def test_what_follows_a_pull_requests_run_runs_no_command() -> None:
    with_command = FOLLOWING + "      - run: python3 -m nox -s bench\n"
    assert "tell: workflow_run runs a command" in faults(with_command, sessions=["bench"])


def test_comments_follow_the_comparison() -> None:
    made, posted = (load(GITHUB / "workflows" / name) for name in ("compare.yml", "compare-comment.yml"))
    assert posted["on"]["workflow_run"]["workflows"] == [made["name"]]
    assert triggers(made) == {"pull_request"}
    uploaded, downloaded = (
        next(step["with"]["name"] for step in steps if "-artifact@" in step.get("uses", ""))
        for steps in (made["jobs"]["compare"]["steps"], posted["jobs"]["comment"]["steps"])
    )
    assert uploaded == downloaded


def test_pull_requests_are_rejected_on_the_self_hosted_runner() -> None:
    opened = SELF_HOSTED.replace("on:\n", "on:\n  pull_request:\n", 1)
    assert faults(opened, sessions=["bench"]) == ["check: pull_request reaches a self-hosted runner"]


def test_one_commit_stands_for_one_version_of_an_action() -> None:
    used = re.findall(r"uses: (\S+)@(\S+) # (v\S+)", "".join(path.read_text() for path in WORKFLOWS))
    assert used
    assert len({action for action, _, _ in used}) == len(set(used))


def test_bench_runs_by_hand_and_by_schedule() -> None:
    workflow = load(GITHUB / "workflows" / "bench.yml")
    assert triggers(workflow) == {"workflow_dispatch", "schedule"}
    assert workflow["on"]["schedule"][0]["cron"]
    inputs = workflow["on"]["workflow_dispatch"]["inputs"]
    assert set(inputs) == {"matrix", "stack", "ref"}
    assert set(inputs["stack"]["options"]) == set(get_args(Stack))
    assert set(inputs["matrix"]["options"]) <= {path.stem for path in (ROOT / "tasks" / "matrices").glob("*.toml")}
    assert [command[0] for command in nox_commands(workflow)] == ["env_check", "bench", "verify"]


def test_bench_uploads_what_the_hashes_of_a_set_list(tmp_path: Path) -> None:
    for name in ("cases/ant-weak/a.json", "a_a/ant-weak/a.json", "noise.json", "upstream.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    listed = {PurePath(name).parts[0] for name in read_hashes(write_hashes(tmp_path).parent)}
    steps = load(GITHUB / "workflows" / "bench.yml")["jobs"]["bench"]["steps"]
    (uploaded,) = (step["with"]["path"].split() for step in steps if step.get("id") == "results")
    assert {PurePath(path).relative_to("runs/workflow").as_posix() for path in uploaded} == {*listed, SUMS}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_use_options_and_folders_that_exist(path: Path) -> None:
    values = {"$MATRIX": "short", "$STACK": "kitless", "$HOST_LABEL": "a host"}
    for session, *rest in nox_commands(load(path)):
        arguments = [values.get(word, word) for word in rest if word != "--"]
        assert not any("$" in word for word in arguments)
        if session in {"bench", "build", "env_check"}:
            assert parse([session, *arguments]).command == session
        for word in arguments:
            assert not word.startswith("reports/") or (ROOT / word).is_dir()
        if session == "compare":
            assert compare_parser().parse_args(arguments).changed


def test_a_new_result_must_say_how_it_was_measured() -> None:
    fields = {field["id"]: field for field in load(GITHUB / "ISSUE_TEMPLATE" / "result.yml")["body"] if "id" in field}
    for name in ("hardware", "driver", "command", "versions", "results", "env-check"):
        assert fields[name]["validations"]["required"] is True


def test_the_citation_says_what_the_project_says() -> None:
    citation = load(ROOT / "CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"] == __version__
    assert [citation[key] for key in ("title", "abstract", "license")] == [
        project[key] for key in ("name", "description", "license")
    ]


TEXTS = [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", GITHUB / "pull_request_template.md", *FORMS]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_texts_name_sessions_and_files_that_exist(path: Path) -> None:
    text = path.read_text()
    named = {word for words in re.findall(r"nox -s((?: [a-z]\w*)+)", text) for word in words.split()}
    assert named <= sessions()
    assert [link for link in re.findall(r"\]\(([^)#:]+)\)", text) if not (path.parent / link).exists()] == []

"""Workflows, issue forms and CITATION.cff: valid, guarded, and true to the noxfile. No test here needs a network."""

import ast
import subprocess
import sysconfig
import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import pytest
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner, Result
from ruamel.yaml import YAML

from reports.compare.command import parser as compare_parser
from reports.verification.hashes import SUMS, read_hashes
from suite import __version__
from suite.__main__ import parse
from tests.architecture.workflow_rules import OWN_REF, faults, nox_commands, triggers

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.y*ml"))
BENCH = GITHUB / "workflows" / "bench.yml"
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.y*ml") if path.stem != "config")


def load(path: Path) -> Mapping[str, Any]:
    loaded: Mapping[str, Any] = YAML(typ="safe").load(path.read_text())
    return loaded


def damaged(path: Path, folder: Path, old: str, new: str) -> Path:
    """A copy where the tools look for workflows."""
    text = path.read_text()
    assert text.count(old) == 1
    copy = folder / ".github" / "workflows" / path.name
    copy.parent.mkdir(parents=True)
    copy.write_text(text.replace(old, new))
    return copy


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
    """Runs in this process, because the program takes seconds to start."""
    return CliRunner().invoke(check_jsonschema, ["--builtin-schema", f"vendor.{schema}", *map(str, paths)])


def zizmor(path: Path) -> subprocess.CompletedProcess[str]:
    config = f"--config={GITHUB / 'zizmor.yml'}"
    return tool("zizmor", "--offline", config, "--persona=auditor", "--strict-collection", "--no-progress", path)


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


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('--matrix "$MATRIX"', "--matrix ${{ inputs.ref }}", "template-injection"),
        ("actions/upload-artifact@", "evil/upload-artifact@", "forbidden-uses"),
    ],
)
def test_zizmor_finds_nothing_and_would_find_a_fault(old: str, new: str, fault: str, tmp_path: Path) -> None:
    done = zizmor(GITHUB)
    assert done.returncode == 0, done.stdout + done.stderr
    done = zizmor(damaged(BENCH, tmp_path, old, new))
    assert done.returncode != 0
    assert f"[{fault}]" in done.stdout


def test_actionlint_finds_nothing_and_would_find_a_wrong_name(tmp_path: Path) -> None:
    done = actionlint(*WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr
    done = actionlint(damaged(BENCH, tmp_path, "inputs.matrix", "inputs.matirx"))
    assert done.returncode == 1
    assert "matirx" in done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_keep_the_rules_of_the_house(path: Path) -> None:
    assert faults(path.read_text(), sessions=sessions()) == []


COMMENT = BENCH.with_name("compare-comment.yml")


@pytest.mark.parametrize(
    ("path", "old", "new", "fault"),
    [
        (BENCH, "    timeout-minutes: 720\n", "", "bench: no timeout-minutes"),
        (BENCH, "    permissions:\n      contents: read #", "    #", "bench: no permissions of its own"),
        (BENCH, "contents: read", "contents: write", "bench: may write, and runs code of the checkout"),
        (BENCH, "\n  schedule:", "\n  push:\n  schedule:", "bench: push reaches a self-hosted runner"),
        (BENCH, OWN_REF, "refs/pull/1/head", "bench: the self-hosted runner checks out refs/pull/1/head"),
        (BENCH, OWN_REF, "${{ inputs.ref }}", "bench: the self-hosted runner checks out ${{ inputs.ref }}"),
        (BENCH, "-s bench", "-s bnech", "bench: no nox session bnech"),
        (BENCH, " MATRIX:", " OTHER:", "bench: nothing sets MATRIX"),
        (BENCH, "-s env_check", "-s env_check && ls", "bench: not one plain nox command"),
        (BENCH, '"$MATRIX"', "$MATRIX", "bench: not one plain nox command"),
        (COMMENT, "\non:\n", "\non:\n  push:\n", "comment: workflow_run beside other triggers"),
        (COMMENT, "contents: read", "contents: write", "comment: workflow_run may write contents"),
        (COMMENT, "persist-credentials: false", "ref: x", "comment: workflow_run checks out something else"),
        (COMMENT, "${{ runner.temp }}/comparison\n", "made\n", "comment: workflow_run unpacks an artifact"),
        (COMMENT, "    steps:\n", "    steps:\n      - run: ls\n", "comment: workflow_run runs a command"),
    ],
)
def test_each_rule_catches_its_fault(path: Path, old: str, new: str, fault: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    *others, message = faults(text.replace(old, new), sessions=sessions())
    assert message.startswith(fault)
    assert bool(others) == (fault == "comment: workflow_run runs a command")  # which no job that may write does


def test_comments_follow_the_comparison() -> None:
    made, posted = (load(GITHUB / "workflows" / name) for name in ("compare.yml", "compare-comment.yml"))
    assert posted["on"]["workflow_run"]["workflows"] == [made["name"]]
    assert triggers(made) == {"pull_request"}
    uploaded, downloaded = (
        next(step["with"]["name"] for step in steps if "-artifact@" in step.get("uses", ""))
        for steps in (made["jobs"]["compare"]["steps"], posted["jobs"]["comment"]["steps"])
    )
    assert uploaded == downloaded


def test_bench_uploads_what_the_hashes_of_any_set_list() -> None:
    sets = [path.parent for path in (ROOT / "reports" / "results").glob("*/*/SHA256SUMS")]
    listed = {PurePath(name).parts[0] for folder in sets for name in read_hashes(folder)}
    assert listed >= {"cases", "a_a", "upstream.json"}
    listed |= {"plan.json"}  # newer than all sets
    steps = load(BENCH)["jobs"]["bench"]["steps"]
    # The only upload: raw rounds and logs are not for everybody.
    (uploaded,) = (step["with"]["path"].splitlines() for step in steps if "upload-artifact@" in step.get("uses", ""))
    out = "~/labscale/${{ env.CAMPAIGN }}"
    assert {PurePath(path).relative_to(out).as_posix() for path in uploaded} == {*listed, SUMS}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_use_options_and_folders_that_exist(path: Path) -> None:
    values = {"$MATRIX": "short", "$STACK": "kitless", "$HOST_LABEL": "a host", "~/labscale/$CAMPAIGN": "runs/run-1"}
    for session, *rest in nox_commands(load(path)):
        arguments = [values.get(word, word) for word in rest if word != "--"]
        assert not any("$" in word for word in arguments)
        if session in {"bench", "build", "env_check"}:
            assert parse([session, *arguments]).command == session
        for word in arguments:
            assert not word.startswith("reports/") or (ROOT / word).is_dir()
        if session == "compare":
            assert compare_parser().parse_args(arguments).changed


def test_the_citation_says_what_the_project_says() -> None:
    citation = load(ROOT / "CITATION.cff")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"] == __version__
    assert [citation[key] for key in ("title", "abstract", "license")] == [
        project[key] for key in ("name", "description", "license")
    ]
    assert "date-released" in citation
    address = project.get("urls", {}).get("Repository")
    assert citation.get("repository-code") == address
    to_clone = "It has no public address yet" if address is None else f"git clone {address}"
    assert to_clone in (ROOT / "reports" / "pages" / "data.md").read_text()

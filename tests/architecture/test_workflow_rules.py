"""Each rule for workflows catches its fault in a workflow that keeps all the others."""

import pytest

from tests.architecture.workflow_rules import OWN_REF, faults

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
      - run: python3 -m pip install --require-hashes --requirement containers/pins/nox.txt
      - run: python3 -m nox -s bench -- --matrix "$MATRIX"
"""
SELF_HOSTED = GOOD.replace("  push:\n    branches: [main]\n", "").replace("ubuntu-24.04", "[self-hosted, gpu]")
FOLLOWING = f"""\
on:
  workflow_run:
    workflows: [good]
permissions: {{}}
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
        ("    timeout-minutes: 5\n", "", "check: no timeout-minutes"),
        ("    permissions:\n      contents: read\n", "", "check: no permissions of its own"),
        ("contents: read", "contents: write", "check: may write, and runs code of the checkout"),
        ("ubuntu-24.04", "[self-hosted, gpu]", "check: push reaches a self-hosted runner"),
        ("-s bench", "-s bnech", "check: no nox session bnech"),
        ("MATRIX: short", "OTHER: short", "check: nothing sets MATRIX"),
        (' -- --matrix "$MATRIX"', " && ls", "check: not one plain nox command: python3 -m nox -s bench && ls"),
        ('"$MATRIX"', "$MATRIX", "check: not one plain nox command: python3 -m nox -s bench -- --matrix $MATRIX"),
        ("on:\n", "on:\n  push:\n", "tell: workflow_run beside other triggers"),
        ("  pull-requests: write", "  contents: write", "tell: workflow_run may write contents"),
        (
            "persist-credentials: false",
            "ref: ${{ github.event.workflow_run.head_sha }}",
            "tell: workflow_run checks out something else than the default branch",
        ),
        ("${{ runner.temp }}/made", "made", "tell: workflow_run unpacks an artifact into the checkout"),
    ],
)
def test_each_rule_catches_its_fault(old: str, new: str, fault: str) -> None:
    workflow = FOLLOWING if fault.startswith("tell") else GOOD
    assert faults(workflow, sessions=["bench"]) == []
    assert workflow.count(old) == 1
    assert faults(workflow.replace(old, new), sessions=["bench"]) == [fault]


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


def test_what_follows_a_pull_requests_run_runs_no_command() -> None:
    with_command = FOLLOWING + "      - run: python3 -m nox -s bench\n"
    assert "tell: workflow_run runs a command" in faults(with_command, sessions=["bench"])

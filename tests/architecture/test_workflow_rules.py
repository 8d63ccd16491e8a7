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
      - run: python3 -m pip install --require-hashes --requirement containers/pins/nox.txt
      - run: python3 -m nox -s bench -- --matrix "$MATRIX"
"""
SELF_HOSTED = GOOD.replace("  push:\n    branches: [main]\n", "").replace("ubuntu-24.04", "[self-hosted, gpu]")


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (SHA, "v7", "not pinned by commit and version: - uses: actions/checkout@v7 # v7.0.1"),
        ("actions/checkout@", "evil/checkout@", "check: action evil/checkout is not allowed"),
        ("  push:\n    branches: [main]", "  pull_request_target:", "trigger pull_request_target is not allowed"),
        ("permissions: {}", "permissions: read-all", "permissions at the top are not {}"),
        ("concurrency:\n  group: good\n", "", "no concurrency"),
        ("    timeout-minutes: 5\n", "", "check: no timeout-minutes"),
        ("    permissions:\n      contents: read\n", "", "check: no permissions of its own"),
        ("contents: read", "contents: write", "check: may write, and runs code of the checkout"),
        ("ubuntu-24.04", "[self-hosted, gpu]", "check: push reaches a self-hosted runner"),
        ("-s bench", "-s bnech", "check: no nox session bnech"),
        ("MATRIX: short", "OTHER: short", "check: nothing sets MATRIX"),
        (' -- --matrix "$MATRIX"', " && ls", "check: not one plain nox command: python3 -m nox -s bench && ls"),
        ('"$MATRIX"', "$MATRIX", "check: not one plain nox command: python3 -m nox -s bench -- --matrix $MATRIX"),
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

"""comment.cjs, with Node and a GitHub that only remembers: whom it tells, and what it refuses to post."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from reports.site.book import path_with_node
from tests.reports.compare.test_changes import GOLDEN

SCRIPT: Final = Path(__file__).resolve().parents[2] / ".github" / "comment.cjs"
MARK: Final = "<!-- labscale: comparison of result sets -->"
BOT: Final = "github-actions[bot]"
HEAD: Final = {"sha": "a" * 40, "repo": {"id": 7}}
RUN: Final = {
    "head_sha": "a" * 40,
    "head_branch": "my-results",
    "head_repository": {"id": 7, "owner": {"login": "someone"}},
    "html_url": "https://github.example/run/1",
}
DRIVER: Final = """
const [script, given] = process.argv.slice(1);
const { comment } = require(script);
const { run, pulls, comments, file } = JSON.parse(given);
const calls = [];
const call = (name) => async (options) => { calls.push([name, options]); };
const github = {
  paginate: async (list, options) => { calls.push([list.what, options]); return list.found; },
  rest: {
    pulls: { list: { what: "pulls", found: pulls } },
    issues: {
      listComments: { what: "comments", found: comments },
      createComment: call("create"), updateComment: call("update"),
    },
  },
};
const context = { payload: { workflow_run: run }, repo: { owner: "labs", repo: "labscale" } };
const core = { notice: (text) => calls.push(["notice", text]) };
comment({ github, context, core, file }).then(() => console.log(JSON.stringify(calls)));
"""


def calls_of(
    file: Path,
    *,
    run: dict[str, Any] = RUN,
    pulls: tuple[dict[str, Any], ...] = ({"number": 3, "head": HEAD},),
    comments: tuple[dict[str, Any], ...] = (),
) -> dict[str, Any]:
    """What it asked of GitHub, by name of the call."""
    node = shutil.which("node", path=path_with_node())
    assert node
    given = json.dumps({"run": run, "pulls": pulls, "comments": comments, "file": str(file)})
    done = subprocess.run([node, "-e", DRIVER, SCRIPT, given], capture_output=True, text=True, check=True, timeout=60)
    return dict(json.loads(done.stdout))


def test_a_comparison_is_posted_as_it_is_with_where_it_came_from() -> None:
    calls = calls_of(GOLDEN)
    assert calls["pulls"]["head"] == "someone:my-results"
    assert calls["create"]["issue_number"] == 3
    body = calls["create"]["body"]
    assert body.startswith(MARK)
    assert GOLDEN.read_text(encoding="utf-8") in body
    assert body.index(RUN["html_url"]) < body.index("###")


def test_its_own_comment_is_changed_and_nobody_elses() -> None:
    theirs = {"id": 1, "user": {"login": "someone"}, "body": MARK}
    other = {"id": 2, "user": {"login": BOT}, "body": "Something else"}
    assert "create" in calls_of(GOLDEN, comments=(theirs, other))
    own = {"id": 5, "user": {"login": BOT}, "body": f"{MARK}\nolder"}
    calls = calls_of(GOLDEN, comments=(theirs, other, own))
    assert calls["update"]["comment_id"] == 5
    assert "create" not in calls


@pytest.mark.parametrize(
    "head",
    [{"sha": "b" * 40, "repo": {"id": 7}}, {"sha": "a" * 40, "repo": {"id": 8}}, {"sha": "a" * 40, "repo": None}],
)
def test_a_pull_request_that_is_not_the_one_compared_or_a_fork_that_is_gone_is_told_nothing(
    head: dict[str, Any],
) -> None:
    assert calls_of(GOLDEN, pulls=({"number": 3, "head": head},)).keys() == {"pulls", "notice"}
    assert calls_of(GOLDEN, run={**RUN, "head_repository": None}).keys() == {"notice"}


@pytest.mark.parametrize(
    "line",
    [
        "@everyone look", "&#64;everyone look", "see https://evil.example", "fixes #1 and labs/labscale#2",
        "<img src=x>", "<code>@someone</code>", "<!-- hidden -->", "caf\u00e9", "carriage\r",
    ],
)  # fmt: skip
def test_what_has_another_form_is_not_posted(tmp_path: Path, line: str) -> None:
    file = tmp_path / "comparison.md"
    file.write_bytes(f"{GOLDEN.read_text(encoding='utf-8')}\n{line}\n".encode())
    body = calls_of(file)["create"]["body"]
    assert "not of the form that is posted" in body
    assert line not in body


def test_a_long_file_and_a_link_to_another_file_are_not_posted(tmp_path: Path) -> None:
    file, link = tmp_path / "long.md", tmp_path / "link.md"
    file.write_text("x" * 60_001)
    link.symlink_to(GOLDEN)
    for path in (file, link):
        assert "too long for a comment" in calls_of(path)["create"]["body"]

// Posts a comparison as a comment on its pull request, or changes the one that is there. Run by compare-comment.yml,
// with a token that may write, on a text that the pull request's own code made: nothing in it is believed. Which pull
// request it is comes from GitHub, and only text of the form that reports/compare/text.py writes is posted.
const fs = require("node:fs");

const MARK = "<!-- labscale: comparison of result sets -->";
const AUTHOR = "github-actions[bot]";
const MAX_BYTES = 60_000;
// Text of the results: letters, digits and numbers of characters, which stay what they are within <code>.
const CODE = /<code>(?:[A-Za-z0-9 ,/+=%-]|&#[0-9]{1,7};)*<\/code>/g;
const TAGS = /<details><summary>Why<\/summary>|<\/details>/g;
const PLAIN = /^[A-Za-z0-9 .,:;%+()/|#-]*$/;
const LINK = /:\/\/|www\.|gh-[0-9]|#[A-Za-z0-9]/i;

// Whether every line has the form of a comparison: no link, mention, reference, picture or other markup.
function isComparison(text) {
  return text.split("\n").every((line) => {
    const rest = line.replace(CODE, " ").replace(TAGS, " ");
    return PLAIN.test(rest) && !LINK.test(rest);
  });
}

function readComparison(file) {
  const stat = fs.lstatSync(file);
  if (!stat.isFile() || stat.size > MAX_BYTES) return null;
  const text = fs.readFileSync(file, "utf8");
  return isComparison(text) ? text : null;
}

function body(text, runUrl) {
  // First, since the text may end within a fold.
  const source = `Computed by the code of this pull request in [this run](${runUrl}): what it claims, not a verdict.`;
  const told = text ?? "What the run wrote is too long for a comment, or not of the form that is posted; see the run.";
  return `${MARK}\n## Result sets before and after\n\n${source}\n\n${told}\n`;
}

// Open pull requests whose newest commit is the one that was compared; one that has moved on gets a run of its own.
async function pullRequests({ github, repo, run }) {
  if (!run.head_repository) return []; // a fork that was deleted
  const head = `${run.head_repository.owner.login}:${run.head_branch}`;
  const open = await github.paginate(github.rest.pulls.list, { ...repo, state: "open", head });
  return open.filter((pull) => pull.head.sha === run.head_sha && pull.head.repo?.id === run.head_repository.id);
}

async function comment({ github, context, core, file }) {
  const run = context.payload.workflow_run;
  const repo = context.repo;
  const text = body(readComparison(file), run.html_url);
  const pulls = await pullRequests({ github, repo, run });
  if (pulls.length === 0) core.notice(`No open pull request has ${run.head_sha} as its newest commit.`);
  for (const pull of pulls) {
    const about = { ...repo, issue_number: pull.number };
    const said = await github.paginate(github.rest.issues.listComments, about);
    const own = said.find((one) => one.user?.login === AUTHOR && one.body?.startsWith(MARK));
    if (own) await github.rest.issues.updateComment({ ...repo, comment_id: own.id, body: text });
    else await github.rest.issues.createComment({ ...about, body: text });
  }
}

module.exports = { comment, isComparison };

// The frame around a page's content. All links are relative, so a report works under any address and from a disk.
import { escapeHtml } from "./nodes.mjs";

const POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; script-src 'self'";
const MIN_SECTIONS_FOR_CONTENTS = 3;

function pageLinks(site, current) {
  if (site.pages.length < 2) return "";
  const items = site.pages.map((page) => {
    const mark = page === current ? ' aria-current="page"' : "";
    return `<li><a href="${page.file}"${mark}>${escapeHtml(page.title)}</a></li>`;
  });
  return `<p class="nav-title">Pages</p><ul>${items.join("")}</ul>`;
}

function sectionLinks(sections) {
  if (sections.length < MIN_SECTIONS_FOR_CONTENTS) return "";
  const items = sections.map(({ id, title }) => `<li><a href="#${id}">${title}</a></li>`);
  return `<p class="nav-title">On this page</p><ul>${items.join("")}</ul>`;
}

export function pageHtml({ site, page, body, frontmatter, renderer }) {
  const title = escapeHtml(frontmatter.title);
  const name = escapeHtml(site.title);
  const version = escapeHtml(site.version);
  const links = pageLinks(site, page) + sectionLinks(renderer.sections);
  const vega = renderer.hasFigures ? '<script defer src="assets/vega-bundle.js"></script>\n' : "";
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="description" content="${escapeHtml(frontmatter.description ?? site.title)}">
<meta name="generator" content="${escapeHtml(site.generator)}">
<title>${title}, ${name} ${version}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="assets/report.css">
${vega}<script defer src="assets/report.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to content</a>
<header><a class="brand" href="index.html">${name}</a><span class="version">${version}</span></header>
<div class="columns">
<nav aria-label="Contents"><details id="contents" open><summary>Contents</summary>${links}</details></nav>
<main id="main">
<h1>${title}</h1>
${body}</main>
</div>
<footer>Report ${version}, built with Jupyter Book and Altair. Licences of the chart code: <a href="assets/vega-licences.txt">Vega</a>.</footer>
</body>
</html>
`;
}

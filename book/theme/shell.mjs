// The frame around a page's content. All links are relative, so a report works under any address and from a disk.
import { escapeHtml } from "./nodes.mjs";

const POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; script-src 'self'";
const MIN_SECTIONS_FOR_CONTENTS = 2;

function pageLinks(site, current) {
  if (site.pages.length < 2) return "";
  const parts = site.contents.map((entry) => {
    if (!entry.slug) return `</ul><p class="nav-title">${escapeHtml(entry.group)}</p><ul>`;
    const mark = entry === current ? ' aria-current="page"' : "";
    return `<li><a href="${entry.file}"${mark}>${escapeHtml(entry.title)}</a></li>`;
  });
  return `<ul>${parts.join("")}</ul>`.replaceAll("<ul></ul>", "");
}

// Every version is a folder beside this one. A version that has no such page is entered by its first.
function addressIn(folder, sibling, page) {
  return `../${folder}/${sibling.pages.includes(page.file) ? page.file : "index.html"}`;
}

function versionSwitcher(site, page) {
  const version = escapeHtml(site.version);
  if (site.versions.length === 0) return `<span class="version">${version}</span>`;
  const items = site.versions.map((sibling, index) => {
    const isNewest = index === 0;
    const mark = sibling.name === site.version ? ' aria-current="true"' : "";
    const address = addressIn(encodeURIComponent(sibling.name), sibling, page);
    return `<li><a href="${address}"${mark}>${escapeHtml(sibling.name)}${isNewest ? " (latest)" : ""}</a></li>`;
  });
  return `<details class="switcher"><summary>Version ${version}</summary><ul>${items.join("")}</ul></details>`;
}

function olderNotice(site, page) {
  const newest = site.versions[0];
  if (!newest || newest.name === site.version) return "";
  const address = addressIn("latest", newest, page);
  return `<aside class="admonition warning older" aria-label="Newer version"><p>This is version ${escapeHtml(site.version)}, an older one. <a href="${address}">The latest is ${escapeHtml(newest.name)}</a>.</p></aside>\n`;
}

function sectionLinks(sections) {
  if (sections.length < MIN_SECTIONS_FOR_CONTENTS) return "";
  const items = sections.map(({ id, title }) => `<li><a href="#${id}">${title}</a></li>`);
  return `<p class="nav-title">On this page</p><ul class="sections">${items.join("")}</ul>`;
}

// Pages above all parts, and the first of every part: the ways in.
function mainLinks(site, current) {
  if (site.pages.length < 2) return "";
  const entries = site.contents.flatMap((entry, index) => {
    if (entry.slug) return site.contents.slice(0, index).every(({ slug }) => slug) ? [entry] : [];
    const first = site.contents[index + 1];
    return first?.slug ? [{ ...first, title: entry.group }] : [];
  });
  const items = entries.map((entry) => `<li><a href="${entry.file}"${entry.slug === current.slug ? ' aria-current="page"' : ""}>${escapeHtml(entry.short ?? entry.title)}</a></li>`);
  return `<nav class="main-links" aria-label="Main pages"><ul>${items.join("")}</ul></nav>`;
}

export function pageHtml({ site, page, body, frontmatter, renderer }) {
  const title = escapeHtml(frontmatter.title);
  const name = escapeHtml(site.title);
  const version = escapeHtml(site.version);
  const links = pageLinks(site, page) + sectionLinks(renderer.sections);
  const isFirst = page.file === "index.html";
  const calculator = body.includes('class="calculator"') ? '<script defer src="assets/calculator.js"></script>\n' : "";
  const explore = body.includes('class="explore"') ? '<script defer src="assets/explore.js"></script>\n' : "";
  const vega = renderer.hasFigures ? '<script defer src="assets/vega-bundle.js"></script>\n<script defer src="assets/png.js"></script>\n' : "";
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="description" content="${escapeHtml(frontmatter.description ?? site.title)}">
<meta property="og:type" content="website">
<meta property="og:title" content="${title}, ${name} ${version}">
<meta property="og:description" content="${escapeHtml(frontmatter.description ?? site.title)}">
<meta name="generator" content="${escapeHtml(site.generator)}">
<title>${title}, ${name} ${version}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="assets/report.css">
${vega}${calculator}${explore}<script defer src="assets/report.js"></script>
</head>
<body data-page="${page.slug}"${isFirst ? ' class="front"' : ""}>
<a class="skip" href="#main">Skip to content</a>
<header>
<a class="brand" href="index.html">${name}</a>
${mainLinks(site, page)}
<search hidden><label for="query">Search</label> <input id="query" type="search" autocomplete="off" aria-controls="found"><ul id="found" aria-live="polite"></ul></search>
${versionSwitcher(site, page)}
</header>
<div class="columns">
<nav aria-label="Contents"><details id="contents"${isFirst ? "" : " open"}><summary>${isFirst ? "All pages" : "Contents"}</summary>${links}</details></nav>
<main id="main">
${olderNotice(site, page)}<h1>${title}</h1>
${page.file === "index.html" || !frontmatter.description ? "" : `<p class="lead">${escapeHtml(frontmatter.description)}</p>\n`}${body}</main>
</div>
<footer>Report ${version}, built with Jupyter Book and Altair. Text and data: CC-BY-4.0. Code: BSD-3-Clause. Chart code: <a href="assets/vega-licences.txt">Vega</a>.</footer>
</body>
</html>
`;
}

// Jupyter Book runs this file as `build.render`: it reads the parsed pages from the content server and writes HTML.
// Node's standard library only.
import fs from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { FIGURES, withFiles } from "./figures.mjs";
import { PageRenderer } from "./nodes.mjs";
import { sectionsOf } from "./search.mjs";
import { pageHtml } from "./shell.mjs";

const CONFIG_VERSION = 3;
const { BUILD_DIRECTORY: outDir, CONTENT_CDN: contentUrl } = process.env;
if (!outDir || !contentUrl) {
  throw new Error("BUILD_DIRECTORY and CONTENT_CDN are not set; run `jupyter-book build --html` in the book's folder");
}

async function fetchContent(location) {
  const response = await fetch(contentUrl + location);
  if (!response.ok) throw new Error(`the content server answered ${response.status} for ${location}`);
  return response;
}

const fetchJson = async (location) => (await fetchContent(location)).json();
const fetchText = async (location) => (await fetchContent(location)).text();

async function copyAssets() {
  const source = path.join(path.dirname(fileURLToPath(import.meta.url)), "assets");
  await fs.cp(source, path.join(outDir, "assets"), { recursive: true });
}

const config = await fetchJson("/config.json");
if (config.version !== CONFIG_VERSION) {
  throw new Error(`the site configuration has version ${config.version}, this theme reads ${CONFIG_VERSION}`);
}
const project = config.projects[0];
const fileOf = (slug) => `${slug}.html`;
// A page, or the title of a group of the pages after it.
const contents = [
  { slug: project.index, title: "Results", file: "index.html" },
  ...project.pages.map((page) => (page.slug ? { slug: page.slug, title: page.title, file: fileOf(page.slug) } : { group: page.title })),
];
const site = {
  title: project.title,
  version: config.options.report_version,
  versions: JSON.parse(config.options.report_versions ?? "[]"),
  generator: `Jupyter Book, mystmd ${config.myst}`,
  contents,
  pages: contents.filter((entry) => entry.slug),
};

// What brings a figure to life is a third of a page, and who only reads never needs it: it is a script of its own.
function withoutSpecs(html) {
  const specs = {};
  const pattern = /(<figure class="vega-figure" id="([^"]+)">[\s\S]*?)<script type="application\/json">([\s\S]*?)<\/script>/g;
  const body = html.replace(pattern, (_, before, id, spec) => {
    specs[id] = JSON.parse(spec);
    return before;
  });
  return { body, specs };
}

await copyAssets();
await fs.mkdir(path.join(outDir, FIGURES), { recursive: true });
const searched = [];
for (const page of site.pages) {
  const document = await fetchJson(`/content/${page.slug}.json`);
  const renderer = new PageRenderer({ slug: page.slug, pages: site.pages, fetchText });
  const { body, specs } = withoutSpecs(await renderer.render(document.mdast));
  if (Object.keys(specs).length > 0) {
    const script = `globalThis.figureSpecs = ${JSON.stringify(specs)};\n`;
    await fs.writeFile(path.join(outDir, "assets", `figures-${page.slug}.js`), script);
  }
  const { withLinks, files } = withFiles(body);
  for (const [name, content] of files) await fs.writeFile(path.join(outDir, name), content);
  const html = pageHtml({ site, page, body: withLinks, frontmatter: document.frontmatter, renderer });
  await fs.writeFile(path.join(outDir, page.file), html);
  searched.push(...sectionsOf(body, page, document.frontmatter));
}
await fs.writeFile(path.join(outDir, "assets", "search-index.js"), `globalThis.searchIndex = ${JSON.stringify(searched)};\n`);

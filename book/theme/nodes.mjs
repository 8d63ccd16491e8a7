// From MyST's syntax tree to HTML, one rule per type of node. A node without a rule and a link without a target are
// errors, because Jupyter Book itself lets both pass.

export function escapeHtml(text) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return String(text).replace(/[&<>"]/g, (character) => entities[character]);
}

const plainText = (html) => html.replace(/<[^>]+>/g, "");

// Headings of the second level that a cell shows. One without an address cannot be linked.
const HEADING = /<h2 id="([^"]+)">([\s\S]*?)<a class="anchor"/g;

export class PageRenderer {
  constructor({ slug, pages, fetchText }) {
    this.slug = slug;
    this.pages = pages;
    this.fetchText = fetchText;
    this.sections = []; // {id, title} of every heading of the second level
    this.latestTitle = slug; // of the heading above
    this.hasFigures = false;
  }

  async render(node) {
    const rule = RULES[node.type];
    if (!rule) throw new Error(`${this.slug}: the theme has no rule for a node of type "${node.type}"`);
    return rule(node, this);
  }

  async children(node) {
    const parts = [];
    for (const child of node.children ?? []) parts.push(await this.render(child));
    return parts.join("");
  }

  href(url) {
    if (/^[a-z]+:/i.test(url) || url.startsWith("#")) return url;
    const [location, fragment] = url.replace(/^\//, "").split("#");
    const page = this.pages.find((candidate) => candidate.slug === location || (location === "" && candidate.file === "index.html"));
    if (!page) throw new Error(`${this.slug}: the link "${url}" leads to no page of this book`);
    return page.file + (fragment ? `#${fragment}` : "");
  }

  async output(node) {
    const data = node.jupyter_data;
    if (!data) return "";
    if (data.output_type === "error") throw new Error(`${this.slug}: a cell failed with ${data.ename}`);
    if (data.output_type === "stream") return `<pre>${escapeHtml(data.text)}</pre>\n`;
    const html = data.data?.["text/html"];
    if (html) {
      const markup = await this.outputText(html);
      this.hasFigures ||= markup.includes('class="vega-figure"');
      for (const [, id, title] of markup.matchAll(HEADING)) this.sections.push({ id, title: plainText(title) });
      return `${markup}\n`;
    }
    const text = data.data?.["text/plain"];
    if (text) return `<pre>${escapeHtml(await this.outputText(text))}</pre>\n`;
    throw new Error(`${this.slug}: a cell's output has neither HTML nor text`);
  }

  // Long outputs are kept outside the page's own file.
  async outputText(entry) {
    if (entry.content !== undefined) return entry.content;
    return this.fetchText(entry.path.startsWith("/") ? entry.path : `/${entry.path}`);
  }
}

const wrap = (tag, end = "") => async (node, page) => `<${tag}>${await page.children(node)}</${tag}>${end}`;

const RULES = {
  root: (node, page) => page.children(node),
  block: (node, page) => (node.visibility === "remove" ? "" : page.children(node)),
  outputs: (node, page) => (node.visibility === "remove" ? "" : page.children(node)),
  output: (node, page) => page.output(node),
  comment: () => "",
  mystComment: () => "",
  text: (node) => escapeHtml(node.value),
  paragraph: wrap("p", "\n"),
  strong: wrap("strong"),
  emphasis: wrap("em"),
  inlineCode: (node) => `<code>${escapeHtml(node.value)}</code>`,
  thematicBreak: () => "<hr>\n",
  break: () => "<br>",

  async heading(node, page) {
    const id = escapeHtml(node.html_id ?? node.identifier);
    const title = await page.children(node);
    const label = `Link to section: ${plainText(title)}`;
    page.latestTitle = plainText(title);
    if (node.depth === 2) page.sections.push({ id, title: plainText(title) });
    const anchor = `<a class="anchor" href="#${id}" aria-label="${label}">#</a>`;
    return `<h${node.depth} id="${id}">${title}${anchor}</h${node.depth}>\n`;
  },

  async link(node, page) {
    return `<a href="${escapeHtml(page.href(node.url))}">${await page.children(node)}</a>`;
  },

  async crossReference(node, page) {
    const url = node.url ?? `#${node.html_id ?? node.identifier}`;
    return `<a href="${escapeHtml(page.href(url))}">${await page.children(node)}</a>`;
  },

  async list(node, page) {
    const tag = node.ordered ? "ol" : "ul";
    return `<${tag}>${await page.children(node)}</${tag}>\n`;
  },

  async listItem(node, page) {
    const [only] = node.children;
    const isShort = node.children.length === 1 && only.type === "paragraph";
    return `<li>${await page.children(isShort ? only : node)}</li>\n`;
  },

  // On a phone a row is a block, whose cells begin with their headings: report.css takes them from here.
  async table(node, page) {
    const rows = [];
    for (const row of node.children) {
      const cells = [];
      for (const cell of row.children) cells.push(await page.children(cell));
      rows.push(cells);
    }
    const [headings, ...others] = rows;
    const names = headings.slice(1).map((heading, index) => `--h${index + 2}:&quot;${plainText(heading)}: &quot;`);
    const head = headings.map((heading) => `<th scope="col">${heading}</th>`).join("");
    const body = others.map(([first, ...rest]) => `<tr><th scope="row">${first}</th>${rest.map((cell) => `<td>${cell}</td>`).join("")}</tr>\n`);
    const table = `<table class="prose" style="${names.join(";")}"><thead><tr>${head}</tr></thead>\n<tbody>${body.join("")}</tbody></table>`;
    return `<div class="scroll" tabindex="0" role="region" aria-label="Table: ${page.latestTitle}">${table}</div>\n`;
  },

  async definitionList(node, page) {
    return `<dl>${await page.children(node)}</dl>\n`;
  },
  definitionTerm: wrap("dt"),
  definitionDescription: wrap("dd", "\n"),

  code(node) {
    if (node.visibility === "remove") return "";
    return `<pre tabindex="0"><code>${escapeHtml(node.value)}</code></pre>\n`;
  },

  async admonition(node, page) {
    const [title, ...rest] = node.children;
    const body = await page.children({ children: rest });
    const heading = `<p class="admonition-title">${await page.children(title)}</p>`;
    // Not an aside: that is a landmark, which needs a name of its own.
    return `<div role="note" class="admonition ${escapeHtml(node.kind ?? "note")}">${heading}${body}</div>\n`;
  },
};

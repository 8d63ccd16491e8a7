// What can be taken away of a chart: its drawing as SVG, its table as CSV, and a link that leads to it.
// PNG is added in the browser, by assets/png.js.
export const FIGURES = "figures";

const FIGURE = /<figure class="vega-figure" id="([^"]+)">[\s\S]*?<\/figure>/g;
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

const plain = (html) => html.replace(/<[^>]+>/g, "").replaceAll("\u00a0", " ").replace(/&(?:amp|lt|gt|quot|#x27);/g, (entity) => ENTITIES[entity]);

function csvOf(table) {
  const rows = [...table.matchAll(/<tr>([\s\S]*?)<\/tr>/g)].map(([, row]) => [...row.matchAll(/<t[hd][^>]*>([\s\S]*?)<\/t[hd]>/g)].map(([, cell]) => plain(cell)));
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  return rows.map((cells) => `${cells.map(quoted).join(",")}\n`).join("");
}

// The body of a page with links below each of its figures, and the files that they lead to.
export function withFiles(body) {
  const files = [];
  const withLinks = body.replace(FIGURE, (figure, id) => {
    const links = [`<a href="#${id}">Link to this chart</a>`];
    const [svg] = figure.match(/<svg [\s\S]*?<\/svg>/) ?? [];
    if (svg) {
      files.push([`${FIGURES}/${id}.svg`, `${svg}\n`]);
      links.push(`<a href="${FIGURES}/${id}.svg" download>SVG</a>`);
    }
    const [table] = figure.match(/<table[\s\S]*?<\/table>/) ?? [];
    if (table) {
      files.push([`${FIGURES}/${id}.csv`, csvOf(table)]);
      links.push(`<a href="${FIGURES}/${id}.csv" download>CSV</a>`);
    }
    return figure.replace("</figcaption>", `<p class="links">${links.join(" ")}</p></figcaption>`);
  });
  return { withLinks, files };
}

// What the search box looks through: the words of every section, without drawings and scripts.
const MAX_CHARACTERS = 3000; // of a section

function words(html) {
  return html
    .replace(/<a class="anchor"[^>]*>#<\/a>/g, " ")
    .replace(/<(svg|script|style)[\s\S]*?<\/\1>/g, " ")
    .replace(/<[^>]+>/g, " ")
    .replace(/&amp;/g, "&")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#x27;/g, "'")
    .replace(/\s+/g, " ")
    .trim();
}

// One entry for what stands before the first heading that has an address, and one for each of them. The first has the
// words that people search the page by: they count as its title does.
export function sectionsOf(body, page, { description = "", keywords = [] }) {
  const parts = body.split(/(?=<h[23] id=)/);
  let above = page.title; // the page and its latest heading of the second level
  return parts.map((part, index) => {
    const [, depth, id, text] = /^<h([23]) id="([^"]*)">([\s\S]*?)<a class="anchor"/.exec(part) ?? [];
    if (depth === "2") above = `${page.title}: ${words(text)}`;
    return {
      file: page.file + (id ? `#${id}` : ""),
      title: depth === "3" ? `${above}: ${words(text)}` : above,
      keywords: index === 0 ? keywords.join(", ") : "",
      text: `${index === 0 ? `${description} ` : ""}${words(part)}`.slice(0, MAX_CHARACTERS),
    };
  });
}

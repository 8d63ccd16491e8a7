// What the search box looks through: the words of every section, without drawings and scripts.
const MAX_CHARACTERS = 3000; // of a section; enough for its words, too few for all of its hashes

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

// One entry for what stands before the first heading that has an address, and one for each of them.
export function sectionsOf(body, page) {
  const parts = body.split(/(?=<h[23] id=)/);
  let above = page.title; // the page and its latest heading of the second level
  return parts.map((part) => {
    const [, depth, id, text] = /^<h([23]) id="([^"]*)">([\s\S]*?)<a class="anchor"/.exec(part) ?? [];
    if (depth === "2") above = `${page.title}: ${words(text)}`;
    return {
      file: page.file + (id ? `#${id}` : ""),
      title: depth === "3" ? `${above}: ${words(text)}` : above,
      text: words(part).slice(0, MAX_CHARACTERS),
    };
  });
}

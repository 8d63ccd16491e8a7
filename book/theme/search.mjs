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

// One entry for what stands before the first heading of the second level, and one for each of them.
export function sectionsOf(body, page) {
  const parts = body.split(/(?=<h2 id=)/);
  return parts.map((part) => {
    const heading = /^<h2 id="([^"]*)">([\s\S]*?)<a class="anchor"/.exec(part);
    return {
      file: page.file + (heading ? `#${heading[1]}` : ""),
      title: heading ? `${page.title}: ${words(heading[2])}` : page.title,
      text: words(part).slice(0, MAX_CHARACTERS),
    };
  });
}

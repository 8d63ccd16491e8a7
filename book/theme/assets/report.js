// Replaces each static figure with the live one when the reader comes near it. Without this file the page is complete.
const contents = document.getElementById("contents");
if (matchMedia("(max-width: 64rem)").matches) contents.open = false;

// The list of pages is higher than a screen, and scrolls by itself: the entry of this page has to be seen.
const here = contents.querySelector("[aria-current]");
if (here) {
  const hidden = here.getBoundingClientRect().bottom - contents.getBoundingClientRect().bottom;
  if (hidden > 0) contents.scrollTop += hidden + here.offsetHeight;
}

// A page on a disk may load scripts, but not fetch files.
const loads = new Map();
function loadOnce(address) {
  if (!loads.has(address)) {
    loads.set(address, new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = address;
      script.onload = resolve;
      script.onerror = () => reject(new Error(`${address} cannot be loaded`));
      document.head.append(script);
    }));
  }
  return loads.get(address);
}

async function bringToLife(figure) {
  const still = figure.querySelector(".vega-static");
  const live = document.createElement("div");
  live.className = "vega-live";
  // It takes no room until it is drawn: otherwise what is below moves down and up again, and a reader's place with it.
  live.style.cssText = `position: absolute; visibility: hidden; width: ${still.clientWidth}px`;
  still.after(live);
  try {
    await loadOnce(`assets/figures-${document.body.dataset.page}.js`);
    const spec = figureSpecs[figure.id];
    // `ast` interprets expressions, so that the content security policy needs no unsafe-eval.
    await vegaEmbed(live, spec, { renderer: "svg", actions: false, ast: true, tooltip: { theme: "custom" } });
    live.querySelector("svg").setAttribute("aria-hidden", "true");
    still.classList.add("only-spoken");
    live.removeAttribute("style");
    figure.dataset.live = "true";
  } catch (error) {
    live.remove();
    console.error(error);
  }
}

const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries.filter((candidate) => candidate.isIntersecting)) {
      observer.unobserve(entry.target);
      bringToLife(entry.target);
    }
  },
  { rootMargin: "300px" },
);
for (const figure of document.querySelectorAll("figure.vega-figure")) observer.observe(figure);

// --- folds -------------------------------------------------------------------------------------------------------
// An address opens the folds that hold its place, and the one below its heading.
function openFolds() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  const section = place.nextElementSibling?.nextElementSibling;
  if (place.matches("h2") && section?.matches("details.fold")) section.open = true;
  for (let fold = place.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  place.scrollIntoView();
}
if (location.hash) openFolds();
addEventListener("hashchange", openFolds);
document.addEventListener("click", (event) => {
  if (location.hash && event.target.closest("a")?.getAttribute("href") === location.hash) openFolds(); // no change
});

// --- search ------------------------------------------------------------------------------------------------------
const MAX_FOUND = 12;
const search = document.querySelector("search");
const query = document.getElementById("query");
const found = document.getElementById("found");

function excerpt(text, word) {
  const at = text.toLowerCase().indexOf(word);
  return at < 0 ? text.slice(0, 90) : text.slice(Math.max(0, at - 35), at + 70);
}

function showFound() {
  const wanted = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  found.replaceChildren();
  if (wanted.length === 0) return;
  const hits = searchIndex
    .map((entry) => ({ entry, title: `${entry.title} ${entry.keywords}`.toLowerCase() }))
    .map(({ entry, title }) => ({ entry, title, all: `${title} ${entry.text}`.toLowerCase() }))
    .filter(({ all }) => wanted.every((word) => all.includes(word)))
    .sort((one, other) => wanted.filter((word) => other.title.includes(word)).length - wanted.filter((word) => one.title.includes(word)).length);
  for (const { entry } of hits.slice(0, MAX_FOUND)) {
    const link = document.createElement("a");
    link.href = entry.file;
    link.textContent = entry.title;
    const context = document.createElement("small");
    context.textContent = excerpt(entry.text, wanted[0]);
    link.append(context);
    const item = document.createElement("li");
    item.append(link);
    found.append(item);
  }
  if (hits.length === 0) {
    const item = document.createElement("li");
    item.className = "none";
    item.textContent = "Nothing found.";
    found.append(item);
  }
}

search.hidden = false;
query.addEventListener("input", async () => {
  await loadOnce("assets/search-index.js");
  showFound();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") found.replaceChildren();
});
document.addEventListener("click", (event) => {
  if (!search.contains(event.target)) found.replaceChildren();
  for (const menu of document.querySelectorAll("details.switcher[open]")) if (!menu.contains(event.target)) menu.open = false;
});

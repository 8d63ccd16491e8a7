// Replaces each static figure with the live one when the reader comes near it. Without this file the page is complete.
const contents = document.getElementById("contents");
if (matchMedia("(max-width: 64rem)").matches) contents.open = false;

async function bringToLife(figure) {
  const still = figure.querySelector(".vega-static");
  const live = document.createElement("div");
  live.className = "vega-live";
  still.after(live);
  try {
    const spec = JSON.parse(figure.querySelector("script").textContent);
    // `ast` interprets expressions, so that the content security policy needs no unsafe-eval.
    await vegaEmbed(live, spec, { renderer: "svg", actions: false, ast: true, tooltip: { theme: "custom" } });
    live.querySelector("svg").setAttribute("aria-hidden", "true");
    still.classList.add("only-spoken");
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

// Filters the table of all points, draws one metric of what is left, and compares two points.
// What is chosen stands in the address, so that a view can be sent.
const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 380;
const MARGIN = { top: 14, right: 14, bottom: 48 };
const COLOURS = 10; // that report.css knows
const COLOURED_BY = ["task", "library", "physics", "settings", "gpu"]; // the first that differs

// --- figures -----------------------------------------------------------------------------------------------------
const sum = (values) => values.reduce((total, value) => total + value, 0);
const mean = (values) => sum(values) / values.length;

function threeDigits(value) {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

// The square of the standard error of the mean logarithm.
function squaredError(logs) {
  const centre = mean(logs);
  return sum(logs.map((value) => (value - centre) ** 2)) / (logs.length - 1) / logs.length;
}

// Listed over 1 / degrees of freedom, and straight in between.
function quantile(inverse, { quantiles, mostInverse }) {
  const place = Math.min(1, inverse / mostInverse) * (quantiles.length - 1);
  const below = Math.min(quantiles.length - 2, Math.floor(place));
  return quantiles[below] + (place - below) * (quantiles[below + 1] - quantiles[below]);
}

// Half the interval, of logarithms. That of times of one set is its model's; that of anything else is Welch's, as `ratio_of` of
// suite/statistics/intervals.py.
function halfWidth(over, under, metric, data) {
  const ofModel = over.halfWidths[under.key] ?? under.halfWidths[over.key];
  if (metric.sample === "time" && ofModel !== undefined) return ofModel;
  const logs = [over, under].map((point) => point.samples[metric.sample].map(Math.log));
  const errors = logs.map(squaredError);
  const total = sum(errors);
  const inverse = total && sum(errors.map((error, index) => (error / total) ** 2 / (logs[index].length - 1)));
  return total && quantile(inverse, data) * Math.sqrt(total);
}

function ratioOf(over, under, metric, data) {
  const value = over.figures[metric.key][0] / under.figures[metric.key][0];
  const half = halfWidth(over, under, metric, data);
  return { value, low: value * Math.exp(-half), high: value * Math.exp(half) };
}

// Why the ratio of two points would mean nothing; undefined if it means something.
function whyNot(one, other, metric, { minRuns }) {
  const unknown = [one, other].find((point) => !(metric.key in point.figures));
  if (unknown) return `${metric.name} of ${unknown.name} is not known.`;
  if (one.task !== other.task) return "They are different tasks, whose frames are different work.";
  if (one.together !== other.together) {
    const why = one.machine === other.machine
      ? `Both ran on ${one.machine}, in two campaigns, between which a machine and its software may change`
      : `The first was measured on ${one.machine}, the second on ${other.machine}; machines differ even with the same GPUs`;
    return `They were not measured on one machine in one campaign. ${why}, so the ratio would mix that with what was changed.`;
  }
  if (metric.overBaseline && one.baseline !== other.baseline) return "They are relative to different baselines.";
  if (metric.sample === "reward" && one.reward !== other.reward) return "Their rewards are different.";
  const few = [one, other].find((point) => point.samples[metric.sample].length < minRuns);
  if (few) return `${few.name} has ${few.samples[metric.sample].length} of the ${minRuns} runs that an interval needs.`;
  return undefined;
}

// --- drawing -----------------------------------------------------------------------------------------------------
function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function ticksTo(most) {
  const rough = most / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, index) => index * step);
}

const shortNumber = (value) => value.toLocaleString("en", { maximumSignificantDigits: 6 });

function draw(drawing, { shown, metric, axis, title, lineOf, colourOf, isChosen, label, minRuns, choose }) {
  const width = Math.max(280, drawing.clientWidth);
  const most = 1.04 * Math.max(...shown.flatMap((point) => point.figures[metric.key]));
  const ticks = ticksTo(most);
  const left = 34 + 7 * Math.max(...ticks.map((tick) => shortNumber(tick).length));
  const values = [...new Set(shown.map((point) => point[axis]))].sort((one, other) => one - other);
  const band = (width - left - MARGIN.right) / values.length;
  const every = Math.ceil((8 + 7 * Math.max(...values.map((value) => shortNumber(value).length))) / band); // so that labels do not touch
  const bottom = HEIGHT - MARGIN.bottom;
  const y = (value) => bottom - (value / most) * (bottom - MARGIN.top);
  const lines = new Map(); // each has its own place within a band, so that points do not hide each other
  for (const point of shown) lines.set(lineOf(point), [...(lines.get(lineOf(point)) ?? []), point]);
  const places = [...lines.keys()];
  const x = (point) => left + band * (values.indexOf(point[axis]) + 0.5 + 0.8 * ((places.indexOf(lineOf(point)) + 0.5) / places.length - 0.5));

  const svg = element("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label });
  for (const tick of ticks) {
    svg.append(element("line", { class: "grid", x1: left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }));
    svg.append(element("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, shortNumber(tick)));
  }
  values.forEach((value, index) => {
    if (index) svg.append(element("line", { class: "grid", x1: left + band * index, x2: left + band * index, y1: MARGIN.top, y2: bottom }));
    if (index % every === 0) svg.append(element("text", { x: left + band * (index + 0.5), y: bottom + 18, "text-anchor": "middle" }, shortNumber(value)));
  });
  svg.append(element("text", { x: (left + width) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, title));
  svg.append(element("text", { transform: `translate(13 ${(MARGIN.top + bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, metric.heading));
  for (const points of lines.values()) {
    const ordered = [...points].sort((one, other) => one[axis] - other[axis]);
    const path = ordered.map((point) => `${x(point)},${y(point.figures[metric.key][0])}`).join(" ");
    if (points.length > 1) svg.append(element("polyline", { class: `line c${colourOf(points[0])}`, points: path }));
  }
  for (const point of shown) {
    const [value, low, high] = point.figures[metric.key];
    const colour = `c${colourOf(point)}`;
    if (low !== undefined) svg.append(element("line", { class: `interval ${colour}`, x1: x(point), x2: x(point), y1: y(low), y2: y(high) }));
    const isOwnBaseline = metric.overBaseline && point.key === point.baseline;
    const isSure = low !== undefined || (isOwnBaseline && point.samples[metric.sample].length >= minRuns);
    const mark = element("circle", { class: `point ${colour}${isSure ? "" : " few"}${isChosen(point) ? " chosen" : ""}`, cx: x(point), cy: y(value), r: isChosen(point) ? 8 : 5, "data-key": point.key });
    mark.append(element("title", {}, `${point.name}\n${point.machine}\n${metric.name}: ${point.said(metric)}`));
    mark.addEventListener("click", () => choose(point));
    svg.append(mark);
  }
  drawing.replaceChildren(svg);
}

// --- the page ----------------------------------------------------------------------------------------------------
function start(explore) {
  const data = JSON.parse(explore.querySelector("script").textContent);
  const { points, metrics, filters, axes } = data;
  const form = explore.querySelector("form");
  const figure = explore.querySelector("figure");
  const comparison = explore.querySelector(".comparison");
  const table = explore.querySelector("table");
  const rows = [...table.tBodies[0].rows];
  const columns = metrics.map(({ column }) => column);
  const names = Object.keys(filters);
  const metricOf = (key) => metrics.find((metric) => metric.key === key);
  const view = { metric: metrics[0].key, x: Object.keys(axes)[0], compare: [] };
  points.forEach((point, index) => {
    point.said = ({ column }) => rows[index].cells[column].textContent;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Compare";
    button.setAttribute("aria-label", `Compare ${point.name}, ${point.machine}`);
    button.addEventListener("click", () => choose(point));
    rows[index].cells[rows[index].cells.length - 1].append(" ", button);
  });

  const valuesOf = (name) => [...new Set(points.map((point) => String(point[name])))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const fits = (point, but) => names.every((name) => name === but || !view[name] || String(point[name]) === view[name]);

  // An address says all of a view; a page without one begins with the task that has most points, as shipped: tuned
  // settings are never ranked with those.
  function read() {
    const address = new URLSearchParams(location.hash.slice(1));
    const isView = ["metric", ...names].some((name) => address.has(name));
    if (!isView) return false;
    for (const name of names) view[name] = valuesOf(name).includes(address.get(name)) ? address.get(name) : "";
    if (metricOf(address.get("metric"))) view.metric = address.get("metric");
    if (address.get("x") in axes) view.x = address.get("x");
    view.compare = address.getAll("compare").filter((key) => points.some((point) => point.key === key)).slice(0, 2);
    return true;
  }

  function write() {
    const address = new URLSearchParams();
    for (const name of [...names, "metric", "x"]) if (view[name]) address.set(name, view[name]);
    for (const key of view.compare) address.append("compare", key);
    history.replaceState(null, "", `#${address}`);
  }

  function choose({ key }) {
    view.compare = view.compare.includes(key) ? view.compare.filter((other) => other !== key) : [...view.compare, key].slice(-2);
    write();
    show();
  }

  function showForm() {
    for (const name of names) {
      const options = valuesOf(name).map((value) => {
        const option = new Option(value, value, false, view[name] === value);
        option.disabled = !points.some((point) => String(point[name]) === value && fits(point, name));
        return option;
      });
      form.elements[name].replaceChildren(new Option("all", "", false, !view[name]), ...options);
    }
    form.elements.metric.replaceChildren(...metrics.map(({ key, name }) => new Option(name, key, false, key === view.metric)));
    form.elements.x.replaceChildren(...Object.entries(axes).map(([key, name]) => new Option(name, key, false, key === view.x)));
  }

  function showTable() {
    const { column } = metricOf(view.metric);
    for (const row of table.rows) for (const each of columns) row.cells[each].hidden = each !== column;
    points.forEach((point, index) => {
      rows[index].hidden = !(fits(point) && view.metric in point.figures);
      rows[index].classList.toggle("chosen", view.compare.includes(point.key));
      rows[index].querySelector("button").setAttribute("aria-pressed", String(view.compare.includes(point.key)));
    });
  }

  function showChart() {
    const metric = metricOf(view.metric);
    const fitting = points.filter((point) => fits(point));
    const shown = fitting.filter((point) => metric.key in point.figures);
    const by = COLOURED_BY.find((name) => new Set(shown.map((point) => point[name])).size > 1) ?? "library";
    const kinds = [...new Set(shown.map((point) => point[by]))];
    const colourOf = (point) => kinds.indexOf(point[by]) % COLOURS;
    const without = fitting.length - shown.length;
    const count = `Shown: ${shown.length} of ${points.length} configurations.${without ? ` Of ${without} more this metric is not known.` : ""}`;
    const legend = explore.querySelector(".legend");
    legend.replaceChildren(count);
    kinds.forEach((kind, index) => {
      const entry = document.createElement("span");
      entry.className = `c${index % COLOURS}`;
      entry.textContent = kind;
      legend.append(" ", entry);
    });
    const drawing = explore.querySelector(".drawing");
    if (shown.length === 0) {
      drawing.replaceChildren();
      return;
    }
    draw(drawing, {
      shown, metric, colourOf, choose,
      axis: view.x, title: axes[view.x], minRuns: data.minRuns,
      lineOf: (point) => (view.x === "gpus" ? point.curve : point.sweep),
      isChosen: (point) => view.compare.includes(point.key),
      label: `${metric.heading} over ${axes[view.x].toLowerCase()}; the table below has every value.`,
    });
  }

  function showComparison() {
    const chosen = view.compare.map((key) => points.find((point) => point.key === key));
    comparison.querySelector("button").hidden = chosen.length === 0;
    comparison.querySelector("p").textContent = saidOf(chosen);
  }

  function saidOf([one, other]) {
    if (!one) return "To compare two points, click them in the chart, or press Compare in the table.";
    if (!other) return `First: ${one.name}. Choose a second point.`;
    const metric = metricOf(view.metric);
    const both = `First: ${one.name}. Second: ${other.name}.`;
    const reason = whyNot(one, other, metric, data);
    if (reason) return `${both} They may not be compared. ${reason}`;
    const { value, low, high } = ratioOf(one, other, metric, data);
    const unsure = low <= 1 && high >= 1 ? " The interval contains 1, so they may be equal." : "";
    return `${both} ${metric.name}: the first is ${threeDigits(value)} times the second (${data.confidence} interval ${threeDigits(low)} to ${threeDigits(high)}).${unsure}`;
  }

  function show() {
    showForm();
    showTable();
    showChart();
    showComparison();
  }

  if (!read()) {
    const sizes = valuesOf("task").map((task) => [task, points.filter((point) => point.task === task).length]);
    view.task = sizes.reduce((most, each) => (each[1] > most[1] ? each : most))[0];
    const shipped = "as shipped";
    if (points.some((point) => point.task === view.task && point.settings === shipped)) view.settings = shipped;
  }
  form.addEventListener("change", ({ target }) => {
    view[target.name] = target.value;
    write();
    show();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  comparison.querySelector("button").addEventListener("click", () => {
    view.compare = [];
    write();
    show();
  });
  addEventListener("hashchange", () => read() && show());
  explore.classList.add("live");
  for (const part of [form, figure, comparison]) part.hidden = false;
  show();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) showChart();
    width = innerWidth;
  });
}

for (const explore of document.querySelectorAll(".explore")) start(explore);

// Filters and orders the table of all configurations, shows one metric of it, and draws that: a panel for each GPU model.
// What is chosen stands in the address, so that a view can be sent.
const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 320;
const MARGIN = { top: 14, right: 14, bottom: 48 };
const MOST_TIMES = 20; // the largest value over the least on a linear axis
const COLOURS = 10; // that report.css knows
const COLOURED_BY = ["task", "library", "physics", "settings", "version"]; // the first that differs
// The value of a figure, then the ends of its interval if it has one: `1,234 (1,200 to 1,300)`.
const numbersOf = (text) => (text.replaceAll(",", "").match(/-?[\d.]+(?:e[-+]\d+)?/g) ?? []).map(Number);

// --- drawing -----------------------------------------------------------------------------------------------------
function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function ticksBetween(least, most) {
  const rough = (most - least) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((candidate) => candidate >= rough);
  const first = Math.ceil(least / step - 1e-9);
  return Array.from({ length: Math.floor(most / step + 1e-9) - first + 1 }, (_, index) => (first + index) * step);
}

function powersBetween(least, most) {
  const powers = Array.from({ length: Math.ceil(Math.log10(most / least)) + 2 }, (_, index) => 10 ** (Math.floor(Math.log10(least)) + index));
  return powers.flatMap((power) => [1, 2, 5].map((factor) => factor * power)).filter((tick) => tick >= least && tick <= most);
}

const shortNumber = (value) => value.toLocaleString("en", { maximumSignificantDigits: 6 });

// Logarithmic where values are far apart, which would lie on each other. All panels have the same scales, so that they can be compared.
function scalesOf({ shown, axis, valueOf, unit }) {
  const numbers = shown.flatMap(valueOf);
  const isLog = Math.min(...numbers) > 0 && Math.max(...numbers) > MOST_TIMES * Math.min(...numbers);
  const most = 1.04 * Math.max(0, ...numbers) || 1;
  const least = isLog ? Math.min(...numbers) / 1.04 : 1.04 * Math.min(0, ...numbers);
  const ticks = (isLog ? powersBetween : ticksBetween)(least, most).map((tick) => [tick, shortNumber(tick) + unit]);
  const values = [...new Set(shown.map((point) => point[axis]))].sort((one, other) => one - other);
  return { isLog, least, most, ticks, values };
}

function draw(panel, { shown, scales, axis, title, heading, valueOf, textOf, lineOf, colourOf, choose }) {
  const { isLog, least, most, ticks, values } = scales;
  const width = Math.max(260, panel.clientWidth);
  const left = 34 + 7 * Math.max(...ticks.map(([, text]) => text.length));
  const band = (width - left - MARGIN.right) / values.length;
  const every = Math.ceil((8 + 7 * Math.max(...values.map((value) => shortNumber(value).length))) / band); // so that labels do not touch
  const bottom = HEIGHT - MARGIN.bottom;
  const place = isLog ? Math.log : (value) => value;
  const y = (value) => bottom - ((place(value) - place(least)) / (place(most) - place(least))) * (bottom - MARGIN.top);
  const lines = Map.groupBy(shown, lineOf); // each has its own place within a band, so that points do not hide each other
  const places = [...lines.keys()];
  const x = (point) => left + band * (values.indexOf(point[axis]) + 0.5 + 0.8 * ((places.indexOf(lineOf(point)) + 0.5) / places.length - 0.5));

  const label = `${heading} over ${title.toLowerCase()} on ${shown[0].gpu}; the table below has every value.`;
  const svg = element("svg", { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label });
  for (const [tick, text] of ticks) {
    svg.append(element("line", { class: "grid", x1: left, x2: width - MARGIN.right, y1: y(tick), y2: y(tick) }));
    svg.append(element("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, text));
  }
  values.forEach((value, index) => {
    if (index) svg.append(element("line", { class: "grid", x1: left + band * index, x2: left + band * index, y1: MARGIN.top, y2: bottom }));
    if (index % every === 0) svg.append(element("text", { x: left + band * (index + 0.5), y: bottom + 18, "text-anchor": "middle" }, shortNumber(value)));
  });
  svg.append(element("text", { x: (left + width) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, title));
  for (const points of lines.values()) {
    const ordered = [...points].sort((one, other) => one[axis] - other[axis]);
    const path = ordered.map((point) => `${x(point)},${y(valueOf(point)[0])}`).join(" ");
    if (points.length > 1) svg.append(element("polyline", { class: `line c${colourOf(points[0])}`, points: path }));
  }
  for (const point of shown) {
    const [value, low, high] = valueOf(point);
    const colour = `c${colourOf(point)}`;
    if (low !== undefined) svg.append(element("line", { class: `interval ${colour}`, x1: x(point), x2: x(point), y1: y(low), y2: y(high) }));
    const mark = element("circle", { class: `point ${colour}${low === undefined ? " few" : ""}`, cx: x(point), cy: y(value), r: 5 });
    mark.append(element("title", {}, `${point.name}\n${textOf(point)}`));
    mark.addEventListener("click", () => choose(point));
    svg.append(mark);
  }
  panel.append(svg);
}

// --- the page ----------------------------------------------------------------------------------------------------
function start(explore) {
  const { points, metrics, filters, axes, orders, column, columns } = JSON.parse(explore.querySelector("script").textContent);
  const form = explore.querySelector("form");
  const table = explore.querySelector("table");
  const drawing = explore.querySelector(".drawing");
  const rows = [...table.tBodies[0].rows];
  const names = Object.keys(filters);
  const choices = { metric: Object.fromEntries(metrics.map(({ key, heading }) => [key, heading])), x: axes, sort: orders };
  const view = Object.fromEntries(Object.entries(choices).map(([name, options]) => [name, Object.keys(options)[0]]));
  points.forEach((point, index) => {
    point.row = rows[index];
    point.numbers = point.figures.map(numbersOf);
    point.name = [...point.row.cells].slice(0, column).map((cell) => cell.textContent).join(", ");
  });
  for (const row of table.rows) for (let other = 1; other < columns; other += 1) row.cells[column + other].hidden = true;

  const metricAt = () => metrics.findIndex(({ key }) => key === view.metric);
  const textOf = (point) => point.figures[metricAt()];
  const valueOf = (point) => point.numbers[metricAt()];
  const valuesOf = (name) => [...new Set(points.map((point) => String(point[name])))].sort((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const fits = (point, but) => names.every((name) => name === but || !view[name] || String(point[name]) === view[name]);

  // An address says all of a view; a page without one begins with the task that has most configurations, as shipped: tuned
  // settings are never ranked with those.
  function read() {
    const address = new URLSearchParams(location.hash.slice(1));
    if (![...names, "metric"].some((name) => address.has(name))) return false;
    for (const name of names) view[name] = valuesOf(name).includes(address.get(name)) ? address.get(name) : "";
    for (const [name, options] of Object.entries(choices)) if (address.get(name) in options) view[name] = address.get(name);
    return true;
  }

  function write() {
    const address = new URLSearchParams();
    for (const name of [...names, ...Object.keys(choices)]) if (view[name]) address.set(name, view[name]);
    history.replaceState(null, "", `#${address}`);
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
    for (const [name, options] of Object.entries(choices)) {
      form.elements[name].replaceChildren(...Object.entries(options).map(([key, text]) => new Option(text, key, false, key === view[name])));
    }
  }

  function showTable() {
    const { key, heading } = metrics[metricAt()];
    table.tHead.rows[0].cells[column].textContent = heading;
    table.style.setProperty(`--h${column + 1}`, JSON.stringify(heading));
    for (const point of points) {
      point.row.hidden = !(fits(point) && textOf(point));
      if (point.row.hidden) continue;
      const shown = document.createElement("data");
      shown.value = `${point.key}/${key}`;
      shown.textContent = textOf(point);
      point.row.cells[column].replaceChildren(shown);
    }
    const sign = { newest: 0, most: -1, least: 1 }[view.sort];
    const ordered = sign ? [...points].sort((one, other) => sign * ((valueOf(one)[0] ?? 0) - (valueOf(other)[0] ?? 0))) : points;
    table.tBodies[0].append(...ordered.map(({ row }) => row));
  }

  function showChart() {
    const { heading, unit } = metrics[metricAt()];
    const fitting = points.filter((point) => fits(point));
    const shown = fitting.filter(textOf);
    const by = COLOURED_BY.find((name) => new Set(shown.map((point) => point[name])).size > 1) ?? "library";
    const kinds = [...new Set(shown.map((point) => point[by]))];
    const without = fitting.length - shown.length;
    const count = `Shown: ${shown.length} of ${points.length} configurations.${without ? ` Of ${without} more this metric is not known.` : ""}`;
    explore.querySelector(".legend").replaceChildren(count, ...kinds.flatMap((text, index) => {
      const entry = document.createElement("span");
      entry.className = `c${index % COLOURS}`;
      entry.textContent = text;
      return [" ", entry];
    }));
    drawing.replaceChildren();
    if (shown.length === 0) return;
    const common = {
      axis: view.x, title: axes[view.x], heading, unit, textOf, valueOf,
      lineOf: (point) => point.lines[Object.keys(axes).indexOf(view.x)],
      colourOf: (point) => kinds.indexOf(point[by]) % COLOURS,
      choose: ({ row }) => {
        for (const other of rows) other.classList.toggle("chosen", other === row);
        row.scrollIntoView({ block: "center" });
      },
    };
    const scales = scalesOf({ ...common, shown });
    const panels = [...Map.groupBy(shown, ({ gpu }) => gpu)].sort(([one], [other]) => one.localeCompare(other)).map(([gpu, own]) => {
      const panel = document.createElement("div");
      const name = document.createElement("p");
      name.className = "panel";
      name.textContent = `${gpu}: ${heading}${scales.isLog ? ", log scale" : ""}`;
      panel.append(name);
      drawing.append(panel);
      return [panel, own];
    });
    for (const [panel, own] of panels) draw(panel, { ...common, scales, shown: own });
  }

  function show() {
    showForm();
    showTable();
    showChart();
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
  addEventListener("hashchange", () => read() && show());
  explore.classList.add("live");
  for (const part of [form, explore.querySelector("figure")]) part.hidden = false;
  show();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) showChart();
    width = innerWidth;
  });
}

for (const explore of document.querySelectorAll(".explore")) start(explore);

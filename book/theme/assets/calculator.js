// Makes the table of the calculator a calculator: one task, library, number of environments and GPU, and the reader's
// frames and price of a GPU-hour.
// What is chosen stands in the address, so that it can be sent.
const AMOUNTS = [
  [1e6, "1 million"],
  [3e6, "3 million"],
  [1e7, "10 million"],
  [3e7, "30 million"],
  [1e8, "100 million"],
  [3e8, "300 million"],
  [1e9, "1 billion"],
];

function threeDigits(value) {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function start(calculator) {
  const form = calculator.querySelector("form");
  const range = form.querySelector("input[type=range]");
  const price = form.querySelector("input[type=number]");
  const keyed = [...calculator.querySelectorAll("[data-key]")].map((element) => ({ element, key: JSON.parse(element.dataset.key) }));
  const names = Object.keys(keyed[0].key);
  const fromAddress = new URLSearchParams(location.hash.slice(1));
  const chosen = { ...keyed[0].key };
  for (const name of names) if (fromAddress.has(name)) chosen[name] = fromAddress.get(name);
  const asked = AMOUNTS.findIndex(([frames]) => frames === Number(fromAddress.get("frames")));
  if (asked >= 0) range.value = String(asked);
  if (Number(fromAddress.get("price")) > 0) price.value = fromAddress.get("price");

  // What was not measured together cannot be chosen together: the names before one decide what it may be.
  const possible = (index) => [...new Set(keyed.filter(({ key }) => names.slice(0, index).every((name) => key[name] === chosen[name])).map(({ key }) => key[names[index]]))];

  function show(isAsked) {
    names.forEach((name, index) => {
      const values = possible(index);
      if (!values.includes(chosen[name])) chosen[name] = values[0];
      const fieldset = form.querySelector(`[data-name="${name}"]`);
      const before = document.activeElement?.name === name;
      fieldset.querySelectorAll("label").forEach((label) => label.remove());
      for (const value of values) {
        const label = document.createElement("label");
        const input = document.createElement("input");
        Object.assign(input, { type: "radio", name, value, checked: value === chosen[name] });
        label.append(input, ` ${value}`);
        fieldset.append(label);
        if (before && input.checked) input.focus();
      }
    });
    const [frames, said] = AMOUNTS[Number(range.value)];
    form.querySelector("output").textContent = said;
    range.setAttribute("aria-valuetext", said);
    for (const { element, key } of keyed) element.hidden = names.some((name) => key[name] !== chosen[name]);
    for (const figure of calculator.querySelectorAll("[data-per-frame]")) figure.textContent = threeDigits(frames * Number(figure.dataset.perFrame) * (figure.closest(".cost") ? Number(price.value) : 1));
    if (isAsked) history.replaceState(null, "", `#${new URLSearchParams({ ...chosen, frames, price: price.value })}`);
  }

  form.addEventListener("input", ({ target }) => {
    if (target.type === "radio") chosen[target.name] = target.value;
    show(true);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  calculator.classList.add("live");
  form.hidden = false;
  show(false);
}

for (const calculator of document.querySelectorAll(".calculator")) start(calculator);

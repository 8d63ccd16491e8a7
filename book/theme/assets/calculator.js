// Computes for one training the hours and the cost of the reader's frames, and the cost of the reward, at the reader's
// price of a GPU-hour.
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
const NAMES = ["task", "training"];

function threeDigits(value) {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function withInterval(ends) {
  const [value, least, most] = ends.map((end) => end && threeDigits(end));
  if (value === null) return "n/a";
  return least ? `${value} (${least} to ${most})` : value;
}

function start(calculator) {
  const form = calculator.querySelector("form");
  const range = form.querySelector("input[type=range]");
  const price = form.querySelector("input[type=number]");
  const trainings = JSON.parse(calculator.dataset.trainings);
  const fromAddress = new URLSearchParams(location.hash.slice(1));
  const chosen = Object.fromEntries(NAMES.map((name) => [name, fromAddress.get(name)]));
  const asked = AMOUNTS.findIndex(([frames]) => frames === Number(fromAddress.get("frames")));
  if (asked >= 0) range.value = String(asked);
  if (Number(fromAddress.get("price")) > 0) price.value = fromAddress.get("price");

  function offer(name, values) {
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
  }

  function show(isAsked) {
    offer("task", [...new Set(trainings.map(({ task }) => task))]);
    const own = trainings.filter(({ task }) => task === chosen.task);
    offer("training", own.map(({ training }) => training));
    const { rows, said } = own.find(({ training }) => training === chosen.training);
    const [frames, amount] = AMOUNTS[Number(range.value)];
    form.querySelector("output").textContent = amount;
    range.setAttribute("aria-valuetext", amount);
    const body = calculator.querySelector("tbody");
    body.replaceChildren();
    for (const [gpus, perSecond, low, high, ...rewardAfter] of rows) {
      const hours = (times) => withInterval([perSecond, high, low].map((end) => end && (times * frames) / end / 3600));
      const row = body.insertRow();
      const head = document.createElement("th");
      Object.assign(head, { scope: "row", textContent: gpus });
      row.append(head);
      const reward = (times) => withInterval(rewardAfter.map((end) => end && times * end));
      const cells = [hours(1), hours(gpus * price.value), reward(1), reward((gpus * price.value) / 3600)];
      for (const text of cells) row.insertCell().textContent = text;
    }
    calculator.querySelector(".fine").textContent = said;
    if (isAsked) history.replaceState(null, "", `#${new URLSearchParams({ ...chosen, frames, price: price.value })}`);
  }

  form.addEventListener("input", ({ target }) => {
    if (target.type === "radio") chosen[target.name] = target.value;
    show(true);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  calculator.querySelector(".no-script").remove();
  form.hidden = calculator.querySelector(".scroll").hidden = false;
  show(false);
}

for (const calculator of document.querySelectorAll(".calculator")) start(calculator);

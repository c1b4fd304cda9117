// The chosen token in words, and its halting probability over the steps as a chart.

const ROUNDING = 1e-4; // of two numbers with four decimals

function startHalting() {
  element("detail").hidden = false;
  watchers.push((names) => {
    if (names.has("chosen") || names.has("hovered")) drawHalting();
  });
}

function drawHalting() {
  const { side: name, index } = place().token;
  const side = sides[name];
  const title = document.createElement("bdi");
  title.textContent = side.tokens[index];
  element("detail-title").replaceChildren(title, `, ${side.title.toLowerCase()} token ${index + 1}`);
  element("detail-text").textContent = describe(side, index);
  element("detail-chart").replaceChildren(...(side.halting ? [haltingChart(side, index)] : []));
}

function describe(side, index) {
  const parts = [];
  const ran = side.ponder ? side.ponder[index] : null;
  if (side.halting) {
    const before = ran > 1 ? side.halting[ran - 2][index] : 0;
    // At the limit the sum may have been made 1: what counts is whether the probabilities reached the threshold.
    const halted = ran < side.limit || before + side.probability[ran - 1][index] >= data.threshold - ROUNDING;
    const where = ran < side.limit ? `step ${ran} of ${side.limit}` : `the last step, ${ran}`;
    const remainder = side.remainders[index] > 0 ? `; its remainder is ${side.remainders[index].toFixed(4)}` : "";
    parts.push((halted ? `It halted in ${where}` : `The limit of ${side.limit} steps ended it`) + remainder + ".");
  } else if (ran !== null) {
    parts.push(`It took all ${ran} steps.`);
  }
  if (side.likelihood) {
    const given = index < side.given ? " (it was given)" : "";
    parts.push(`The model gave this token probability ${side.likelihood[index].toFixed(4)}${given}.`);
  }
  return parts.join(" ");
}

function svg(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Bars: each step's halting probability; line: their sum, up to the step in which the token halts. */
function haltingChart(side, index) {
  const ran = side.ponder[index];
  const room = Math.max(240, element("detail-chart").clientWidth);
  const beside = room > 560; // the legend stands beside the chart, or else below it
  const [left, right, top, bottom] = [34, beside ? 150 : 6, 10, beside ? 24 : 46];
  const step = Math.min(56, (Math.min(room, 900) - left - right) / side.limit);
  const [width, height] = [step * side.limit, 120];
  const x = (number) => left + step * (number + 0.5);
  const y = (value) => top + height * (1 - Math.min(1, value));
  const chart = svg("svg", {
    viewBox: `0 0 ${Math.max(left + width + right, 330)} ${top + height + bottom}`,
    width: Math.max(left + width + right, 330),
    height: top + height + bottom,
    role: "img",
    "aria-label": "halting probability over steps: " + range(ran).map((n) => side.halting[n][index]).join(", "),
  });
  for (const value of [0, 0.5, 1]) {
    chart.append(svg("line", { class: "axis", x1: left, x2: left + width, y1: y(value), y2: y(value) }));
    chart.append(svg("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)));
  }
  const every = Math.ceil(24 / step);
  for (const number of range(side.limit)) {
    if (number % every) continue;
    chart.append(svg("text", { x: x(number), y: top + height + 16, "text-anchor": "middle" }, String(number + 1)));
  }
  for (const number of range(ran)) {
    const value = side.probability[number][index];
    const bar = { x: x(number) - step * 0.3, width: step * 0.6, y: y(value), height: top + height - y(value) };
    chart.append(svg("rect", { class: "share", ...bar }));
  }
  const threshold = y(data.threshold);
  chart.append(svg("line", { class: "limit", x1: left, x2: left + width, y1: threshold, y2: threshold }));
  const points = range(ran).map((number) => [x(number), y(side.halting[number][index])]);
  chart.append(svg("polyline", { class: "sum", points: points.map((point) => point.join()).join(" ") }));
  for (const [cx, cy] of points) chart.append(svg("circle", { class: "dot", cx, cy, r: 3 }));
  const names = [
    ["sum", "added up"],
    ["share", "of the step"],
    ["limit", "halts at " + data.threshold],
  ];
  names.forEach(([kind, name], place) => {
    const from = beside ? left + width + 14 : left + 96 * place;
    const middle = beside ? top + 12 + 20 * place : top + height + 36;
    if (kind === "share") chart.append(svg("rect", { class: kind, x: from, y: middle - 5, width: 20, height: 10 }));
    else chart.append(svg("line", { class: kind, x1: from, x2: from + 20, y1: middle, y2: middle }));
    chart.append(svg("text", { x: from + 26, y: middle + 4 }, name));
  });
  return chart;
}

const range = (count) => [...Array(count).keys()];

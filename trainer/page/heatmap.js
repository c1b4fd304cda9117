// The map of one head at one step: rows look at columns.

// size of a cell in CSS pixels, pixels of the screen in one of those, and the map without what is marked in it
const cells = { size: 0, scale: 1, picture: null };

function startHeatmap() {
  const canvas = element("map-cells");
  const cellAt = (event) => {
    const [, , , queries, keys] = mapNow().shape;
    const box = canvas.getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / box.height) * queries);
    const column = Math.floor(((event.clientX - box.left) / box.width) * keys);
    return row >= 0 && row < queries && column >= 0 && column < keys ? placeOfCell(row, column) : null;
  };
  canvas.addEventListener("pointermove", (event) => change({ hovered: cellAt(event) }));
  canvas.addEventListener("pointerleave", () => change({ hovered: null }));
  canvas.addEventListener("click", (event) => change({ chosen: cellAt(event) || state.chosen }));
  canvas.addEventListener("keydown", moveCell);
  watchers.push((names) => {
    if (names.has("map")) layOut();
    if (!mapNow().shape) return;
    const { map, step, block, head } = state;
    const weights = weightsOf(data.attention[map], step, block, head);
    if (["map", "step", "block", "head", "colours"].some((name) => names.has(name))) drawCells(weights);
    markMap(weights);
  });
}

function moveCell(event) {
  const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (!move) return;
  event.preventDefault();
  const [, , , queries, keys] = mapNow().shape;
  const { row, column } = state.chosen;
  const clipped = (value, count) => Math.max(0, Math.min(count - 1, value));
  const to = [clipped((row ?? 0) + move[0], queries), clipped((column ?? 0) + move[1], keys)];
  change({ chosen: placeOfCell(...to), hovered: null });
}

/** Makes labels and the empty canvas for the present map, as large as there is room for. */
function layOut() {
  const map = mapNow();
  element("map-missing").hidden = Boolean(map.shape);
  element("map-shown").hidden = !map.shape;
  if (!map.shape) {
    element("map-missing").textContent = "These are more weights than a page can hold; a shorter text shows them.";
    return;
  }
  const [, , , queries, keys] = map.shape;
  const rows = labels(sides[map.queries].tokens, sides[map.queries].special);
  const columns = labels(sides[map.keys].read, sides[map.keys].readSpecial);
  element("map-rows").replaceChildren(...rows);
  element("map-columns").replaceChildren(...columns);
  const beside = element("map").parentElement.clientWidth;
  const room = (beside > 800 ? beside - 290 : beside) - element("map-rows").offsetWidth - 24;
  const least = Math.max(queries, keys) > 128 ? 10 : 15;
  const size = Math.max(least, Math.min(34, Math.floor(room / keys), Math.floor(900 / queries)));
  const font = Math.min(14, size - 1) + "px";
  for (const label of [...rows, ...columns]) Object.assign(label.style, { lineHeight: size + "px", fontSize: font });
  for (const label of rows) label.style.height = size + "px";
  for (const label of columns) label.style.width = size + "px";
  const canvas = element("map-cells");
  const wide = keys * size * queries * size > 4e6;
  Object.assign(cells, { size, scale: wide ? 1 : Math.max(1, window.devicePixelRatio || 1) });
  canvas.width = keys * size * cells.scale;
  canvas.height = queries * size * cells.scale;
  Object.assign(canvas.style, { width: keys * size + "px", height: queries * size + "px" });
  const answer = map.queries === "decoder" ? "the token that is predicted" : "a token that looks";
  const read = map.keys === "decoder" ? "the token that is read" : "one that is looked at";
  const halts = sides[map.queries].halting ? " Struck out: it had halted before this step." : "";
  element("map-axes").textContent = `A row is ${answer}, a column ${read}.${halts}`;
}

/** `special`: indices of names that are no text. */
function labels(names, special) {
  return names.map((name, index) => {
    const label = document.createElement("div");
    label.textContent = name;
    label.dir = "auto";
    label.title = name;
    label.classList.toggle("special", special.includes(index));
    return label;
  });
}

function drawCells(weights) {
  const [, , , queries, keys] = mapNow().shape;
  const { css, ink } = ramp();
  const { size, scale } = cells;
  cells.picture = document.createElement("canvas");
  Object.assign(cells.picture, { width: keys * size * scale, height: queries * size * scale });
  const context = cells.picture.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.font = "10px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  const gap = size >= 12 ? 1 : 0;
  for (let row = 0; row < queries; row++) {
    for (let column = 0; column < keys; column++) {
      const weight = Math.round(weights[row * keys + column]);
      context.fillStyle = css[weight];
      context.fillRect(column * size, row * size, size - gap, size - gap);
      if (size < 24 || weight < 10) continue;
      context.fillStyle = ink[weight];
      const text = weight >= 995 ? "1" : (weight / 1000).toFixed(2).slice(1);
      context.fillText(text, (column + 0.5) * size, (row + 0.5) * size);
    }
  }
}

/** Draws the map with frames around the row and the column of the place. */
function markMap(weights) {
  const map = mapNow();
  const [, , , queries, keys] = map.shape;
  const { size, scale } = cells;
  const context = element("map-cells").getContext("2d");
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, cells.picture.width, cells.picture.height);
  context.drawImage(cells.picture, 0, 0);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.strokeStyle = ramp().mark;
  context.lineWidth = 2;
  const { row, column } = place();
  if (row !== null) context.strokeRect(1, row * size + 1, keys * size - 2, size - 2);
  if (column !== null) context.strokeRect(column * size + 1, 1, size - 2, queries * size - 2);
  markLabels(map, row, column);
  tell(map, weights);
}

/** Marks the labels of row and column, and those of tokens that had halted before this step. */
function markLabels(map, row, column) {
  const ponder = sides[map.queries].halting ? sides[map.queries].ponder : null;
  [...element("map-rows").children].forEach((label, index) => {
    label.classList.toggle("here", index === row);
    label.classList.toggle("halted", ponder !== null && ponder[index] <= state.step);
  });
  [...element("map-columns").children].forEach((label, index) => label.classList.toggle("here", index === column));
}

/** The same in words: the largest weights of the row (or of the column, where the token has no row). */
function tell(map, weights) {
  const { row, column, cell } = place();
  const [, , , queries, keys] = map.shape;
  const [from, to] = [sides[map.queries].tokens, sides[map.keys].read];
  const share = (thousandths) => (thousandths / 1000).toFixed(3);
  let [found, names] = [[], []];
  let title = "This token takes no part in this map";
  if (row !== null) {
    title = `${row + 1}: ${from[row]} looks at`;
    found = range(keys).map((index) => [index, weights[row * keys + index]]);
    names = to;
  } else if (column !== null) {
    title = `${column + 1}: ${to[column]} is looked at by`;
    found = range(queries).map((index) => [index, weights[index * keys + column]]);
    names = from;
  }
  element("top-title").textContent = title;
  found = found.filter((one) => one[1] > 0).sort((one, other) => other[1] - one[1]);
  element("top").replaceChildren(
    ...found.slice(0, 6).map(([index, weight]) => {
      const [item, number, label, bar] = ["li", "small", "bdi", "div"].map((kind) => document.createElement(kind));
      number.textContent = index + 1;
      label.textContent = names[index];
      bar.className = "bar";
      bar.style.width = weight / 10 + "%";
      item.append(number, label, bar, share(weight));
      return item;
    }),
  );
  const ponder = row !== null && sides[map.queries].halting ? sides[map.queries].ponder[row] : null;
  const halted = ponder !== null && ponder <= state.step ? "It had halted before this step." : "";
  const looks = `${row + 1}: ${from[row]} looks at ${column + 1}: ${to[column]}`;
  element("readout").textContent = cell
    ? `${looks} with ${share(weights[row * keys + column])}. ${halted}`
    : halted || "Point at a cell, or move among the cells with the arrow keys.";
}

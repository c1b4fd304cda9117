"use strict";
// The page's numbers, what is chosen, and who is told when that changes. What goes wrong is shown on the page.

const element = (id) => document.getElementById(id);

function fail(reason) {
  element("error").textContent = "This page met an error and may be incomplete: " + reason;
  element("error").hidden = false;
}
window.addEventListener("error", (event) => fail(event.message));
window.addEventListener("unhandledrejection", (event) => fail(event.reason));

const data = JSON.parse(element("data").textContent);
const sides = data.sides;
for (const map of data.attention) if (map.weights) map.weights = Uint16Array.from(map.weights);
const UNIT = data.recurrent ? "step" : "layer";

// map: which attention; step and block from 0; head from 0, -1 is the mean of all.
// chosen, hovered: a place {token: {side, index}, row, column, cell}: the token's row and column in the map, null where
// it has none; or, with `cell`, those of one cell and the token of its row.
const state = { map: 0, step: 0, head: -1, block: 0, chosen: null, hovered: null };
const watchers = [];

/** Takes over some of the state's values; watchers get the names of those that differ from before. */
function change(values) {
  const names = new Set(Object.keys(values).filter((name) => state[name] !== values[name]));
  Object.assign(state, values);
  if (names.size) for (const watcher of watchers) watcher(names);
}

const place = () => state.hovered || state.chosen;
const mapNow = () => data.attention[state.map];

// A decoder's column is the token that is read there, which stands one place earlier.
const shiftOf = (side) => (side === "decoder" ? 1 : 0);

/** Where a token is in the present map. */
function placeOfToken(token) {
  const map = mapNow();
  const found = { token, row: null, column: null, cell: false };
  if (!map || !map.shape) return found;
  if (map.queries === token.side) found.row = token.index;
  const column = token.index + shiftOf(token.side);
  if (map.keys === token.side && column < map.shape[4]) found.column = column;
  return found;
}

/** The place of a cell of the present map. */
function placeOfCell(row, column) {
  return { token: { side: mapNow().queries, index: row }, row, column, cell: true };
}

/** Attention of a head (-1: the mean of all) at a step: [queries * keys] thousandths. */
function weightsOf(map, step, block, head) {
  const [, blocks, heads, queries, keys] = map.shape;
  const size = queries * keys;
  const start = (step * blocks + block) * heads * size;
  if (head >= 0) return map.weights.subarray(start + head * size, start + (head + 1) * size);
  const mean = new Float32Array(size);
  for (let index = 0; index < heads * size; index++) mean[index % size] += map.weights[start + index] / heads;
  return mean;
}

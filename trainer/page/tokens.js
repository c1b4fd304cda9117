// The tokens: pointing at one or choosing it shows it in the charts.

const chips = {};

function startTokens() {
  for (const list of document.querySelectorAll("ol.tokens")) {
    const side = list.dataset.side;
    chips[side] = [...list.querySelectorAll("button")];
    chips[side].forEach((chip, index) => {
      const token = { side, index };
      chip.addEventListener("pointerenter", () => change({ hovered: placeOfToken(token) }));
      chip.addEventListener("pointerleave", () => change({ hovered: null }));
      chip.addEventListener("focus", () => change({ chosen: placeOfToken(token) }));
      chip.addEventListener("click", () => change({ chosen: placeOfToken(token) }));
    });
    if (chips[side].length) rove(chips[side], 0);
  }
  watchers.push((names) => {
    if (names.has("chosen") || names.has("hovered")) markTokens();
  });
}

/** Marks the token, and the one that the cell of the map says it looks at. */
function markTokens() {
  const { token, column, cell } = place();
  const map = mapNow();
  const looked = cell ? { side: map.keys, index: column - shiftOf(map.keys) } : null;
  const same = (one, side, index) => one !== null && one.side === side && one.index === index;
  for (const side of Object.keys(chips)) {
    chips[side].forEach((chip, index) => {
      const chosen = same(token, side, index);
      chip.classList.toggle("chosen", chosen);
      chip.classList.toggle("looked", !chosen && same(looked, side, index));
      chip.setAttribute("aria-pressed", String(chosen));
    });
  }
}

// Starts the parts, and the controls of the attention.

function options(select, names) {
  select.replaceChildren(...names.map((name, index) => new Option(name, String(index))));
}

function startControls() {
  const [maps, heads, blocks, step] = ["choose-map", "choose-head", "choose-block", "choose-step"].map(element);
  options(maps, data.attention.map((map) => map.title));
  maps.addEventListener("change", () => {
    stop();
    showMap(Number(maps.value));
  });
  heads.addEventListener("change", () => change({ head: Number(heads.value) - 1 }));
  blocks.addEventListener("change", () => change({ block: Number(blocks.value) }));
  step.addEventListener("input", () => {
    stop();
    change({ step: Number(step.value) - 1 });
  });
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    element("play").textContent = "Play";
  };
  const last = () => mapNow().shape[0] - 1;
  element("play").addEventListener("click", () => {
    if (timer !== null) return stop();
    if (state.step >= last()) change({ step: 0 });
    element("play").textContent = "Pause";
    timer = setInterval(() => {
      if (state.step < last()) change({ step: state.step + 1 });
      if (state.step >= last()) stop();
    }, 700);
  });
  watchers.push(() => {
    const map = mapNow();
    element("map-controls").hidden = !map.shape;
    if (!map.shape) return;
    step.max = map.shape[0];
    step.value = state.step + 1;
    element("step-label").textContent = `${UNIT[0].toUpperCase()}${UNIT.slice(1)} ${state.step + 1} of ${map.shape[0]}`;
    heads.value = state.head + 1;
    blocks.value = state.block;
  });
}

/** Shows a map, and in it the token that was chosen where it has a place, else the first row. */
function showMap(number) {
  const map = data.attention[number];
  state.map = number;
  if (map.shape) {
    const [steps, numBlocks, heads] = map.shape;
    options(element("choose-head"), range(heads + 1).map((head) => headName(head - 1)));
    options(element("choose-block"), range(numBlocks).map((block) => String(block + 1)));
    element("block-label").hidden = numBlocks < 2;
    state.step = Math.min(state.step, steps - 1);
    state.head = Math.min(state.head, heads - 1);
    state.block = Math.min(state.block, numBlocks - 1);
  }
  let chosen = placeOfToken(state.chosen.token);
  if (map.shape && chosen.row === null && chosen.column === null) chosen = placeOfCell(0, 0);
  Object.assign(state, { chosen, hovered: null });
  redraw();
}

function redraw() {
  forgetColours();
  const names = new Set(["map", "step", "head", "block", "chosen", "colours"]);
  for (const watcher of watchers) watcher(names);
}

function start() {
  for (const part of document.querySelectorAll(".scripted")) part.hidden = false;
  const [side] = Object.keys(sides);
  state.chosen = { token: { side, index: 0 }, row: null, column: null, cell: false };
  startTokens();
  startHalting();
  if (data.attention.length) {
    startControls();
    startHeatmap();
    startOverview();
    showMap(0);
  }
  for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", redraw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) redraw();
    width = innerWidth;
  });
  document.documentElement.dataset.ready = "true";
}

start();

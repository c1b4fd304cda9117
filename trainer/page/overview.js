// All steps and heads of one map as small pictures, each a button that shows it large.

let pictures = [];

function startOverview() {
  element("overview-hint").textContent = `A row is a ${UNIT}, a column a head; choose one to see it large.`;
  watchers.push((names) => {
    if (!mapNow().shape) return;
    if (names.has("map")) buildOverview();
    if (names.has("map") || names.has("block") || names.has("colours")) drawOverview();
    if (names.has("map") || names.has("step") || names.has("head")) markOverview();
  });
}

function buildOverview() {
  const [steps, , heads, queries, keys] = mapNow().shape;
  const longest = Math.max(queries, keys);
  const zoom = Math.max(1, Math.floor(72 / longest));
  const shrink = longest > 120 ? 120 / longest : 1;
  pictures = [];
  const head = document.createElement("tr");
  head.append(document.createElement("td"), heading("mean", "col"), ...range(heads).map((n) => heading(n + 1, "col")));
  const rows = range(steps).map((step) => {
    const line = document.createElement("tr");
    line.append(heading(`${UNIT} ${step + 1}`, "row"));
    for (const number of [-1, ...range(heads)]) {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-label", `${UNIT} ${step + 1}, ${headName(number)}`);
      const canvas = document.createElement("canvas");
      Object.assign(canvas, { width: keys, height: queries });
      canvas.style.width = keys * zoom * shrink + "px";
      canvas.style.height = queries * zoom * shrink + "px";
      button.append(canvas);
      button.addEventListener("click", () => change({ step, head: number }));
      pictures.push({ step, head: number, button, canvas });
      const cell = document.createElement("td");
      cell.append(button);
      line.append(cell);
    }
    return line;
  });
  const [top, body] = [document.createElement("thead"), document.createElement("tbody")];
  top.append(head);
  body.append(...rows);
  element("overview").replaceChildren(top, body);
  rove(pictures.map((picture) => picture.button), heads + 1);
}

function heading(text, scope) {
  const made = document.createElement("th");
  made.scope = scope;
  made.textContent = text;
  return made;
}

const headName = (head) => (head < 0 ? "mean of all heads" : `head ${head + 1}`);

function drawOverview() {
  const map = mapNow();
  const { table } = ramp();
  for (const { step, head, canvas } of pictures) {
    const weights = weightsOf(map, step, state.block, head);
    const image = new ImageData(canvas.width, canvas.height);
    for (let index = 0; index < weights.length; index++) {
      image.data.set(table[Math.round(weights[index])], 4 * index);
      image.data[4 * index + 3] = 255;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
  }
}

function markOverview() {
  for (const { step, head, button } of pictures) {
    button.setAttribute("aria-pressed", String(step === state.step && head === state.head));
  }
}

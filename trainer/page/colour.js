// Colours of weights from 0 to 1: between the stops of the style's ramp, which follow light, dark and print.
// The scale is the square root, so that a weight of one thirtieth can be told from none.

let colours = null;

/** Returns for 0 to 1000 thousandths `table` ([red, green, blue]), `css` and `ink` on it; and the colour of `mark`. */
function ramp() {
  if (colours) return colours;
  const style = getComputedStyle(document.documentElement);
  const stops = [];
  for (let level = 0; level <= 8; level++) {
    const text = style.getPropertyValue("--ramp-" + level).trim();
    stops.push([1, 3, 5].map((start) => parseInt(text.slice(start, start + 2), 16)));
  }
  const table = [];
  for (let thousandths = 0; thousandths <= 1000; thousandths++) {
    const at = Math.sqrt(thousandths / 1000) * 8;
    const low = Math.min(7, Math.floor(at));
    table.push(stops[low].map((value, index) => Math.round(value + (at - low) * (stops[low + 1][index] - value))));
  }
  const css = table.map((colour) => `rgb(${colour.join(",")})`);
  const ink = table.map(([red, green, blue]) => (0.3 * red + 0.59 * green + 0.11 * blue > 125 ? "#000" : "#fff"));
  colours = { table, css, ink, mark: style.getPropertyValue("--mark").trim() };
  return colours;
}

/** For when the style has changed. */
function forgetColours() {
  colours = null;
}

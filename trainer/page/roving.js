// Many buttons, one tab stop: arrow keys, Home and End move among them.

/** `columns`: buttons in a row of a grid, or 0 where all are one line. */
function rove(buttons, columns) {
  let current = 0;
  const show = (index) => {
    buttons[current].tabIndex = -1;
    current = index;
    buttons[current].tabIndex = 0;
  };
  buttons.forEach((button, index) => {
    button.tabIndex = index ? -1 : 0;
    button.addEventListener("focus", () => show(index));
    button.addEventListener("keydown", (event) => {
      const forward = getComputedStyle(button.parentElement).direction === "rtl" ? -1 : 1;
      const moves = { ArrowRight: forward, ArrowLeft: -forward, ArrowDown: columns || 1, ArrowUp: -(columns || 1) };
      let to = index + (moves[event.key] || 0);
      if (event.key === "Home") to = 0;
      else if (event.key === "End") to = buttons.length - 1;
      else if (!(event.key in moves)) return;
      event.preventDefault();
      if (buttons[to]) buttons[to].focus();
    });
  });
}

// Small things that every part of the board uses. Text from programs, games and errors always goes in
// through textContent: a name is never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: attributes, listeners (`onclick`), `dataset`, and children (strings become text nodes). */
function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") node.className = value;
    else if (key === "dataset") Object.assign(node.dataset, value);
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}

function svg(tag, attributes = {}, text = null) {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, String(value));
  if (text !== null) node.textContent = text;
  return node;
}

const PRESSED = 10000; // ms for which a press holds up what is drawn

/** Draws once nothing in `node` is being pressed: a button replaced between press and release gets no click. */
class Drawing {
  constructor(node) {
    this.node = node;
    this.timer = null;
  }

  /** Of what comes during one press, the last is drawn. */
  next(draw, until = Date.now() + PRESSED) {
    clearTimeout(this.timer);
    if (this.node.matches(":active") && Date.now() < until) this.timer = setTimeout(() => this.next(draw, until), 20);
    else draw();
  }

  close() {
    clearTimeout(this.timer);
  }
}

/** A place on the page that is drawn anew only where what it shows has changed. */
class Part {
  constructor() {
    this.node = el("div");
    this.shown = null;
  }

  /** `draw` makes the element for `shown`, which is data. */
  draw(shown, draw) {
    const words = JSON.stringify(shown);
    if (words === this.shown) return;
    this.shown = words;
    const made = draw();
    this.node.replaceWith(made);
    this.node = made;
  }
}

/** Set an element's text only where it differs, so that selections and layout stay put. */
function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

/** What times are told in: seconds, or the cycles of a model, a nanosecond each. */
let unitOfTimes = "seconds";

function tellTimesIn(unit) {
  unitOfTimes = unit;
}

/** Seconds with three significant digits and a unit: 98.2 ms; of a model 1,043 cycles. */
function duration(seconds) {
  if (!(seconds >= 0)) return "–";
  if (unitOfTimes === "cycles") return `${Math.round(seconds * 1e9).toLocaleString("en")} cycles`;
  const [scale, unit] =
    seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : seconds >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return `${significant(seconds * scale)} ${unit}`;
}

function significant(value) {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** A ratio of times as players read it: 1.57×. */
function ratio(value) {
  if (!(value > 0)) return "–";
  return `${value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value >= 0.1 ? value.toFixed(2) : Number(value.toPrecision(2))}×`;
}

/** Is `path` the node `root` or inside it? Paths are child numbers joined by dots; "" is the program. */
function within(path, root) {
  return path === root || root === "" || path.startsWith(root + ".");
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

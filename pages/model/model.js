// A model: its calls from top to bottom with the tensors between them as lanes, and its kernels, what takes longest
// first. A press opens a kernel on the board. Search, zoom and what is pointed at are the page's own business.
// Names go in through textContent alone.

const LANE = 13; // pixels from lane to lane
const EDGE = 9; // before the first one
const ROWS = [12, 22, 40, 54]; // pixels of a row, by zoom
const USUAL = 2;

function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

function percent(share) {
  if (share === null || share === undefined) return "";
  return share > 0 && share < 0.01 ? "< 1%" : `${Math.round(100 * share)}%`;
}

function bar(share, kind = "") {
  const filled = el("span", {});
  filled.style.width = `${100 * (share || 0)}%`;
  return el("div", { class: `bar ${kind}` }, filled);
}

const SVG = "http://www.w3.org/2000/svg";

/** The lanes beside a row: those that pass, that lead to its call and that leave it. */
function lanes(count, row) {
  const svg = document.createElementNS(SVG, "svg");
  const width = 2 * EDGE + LANE * (count - 1);
  svg.setAttribute("width", width);
  svg.setAttribute("viewBox", `0 0 ${width} 40`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("aria-hidden", "true");
  const x = (lane) => EDGE + LANE * lane;
  const path = (lane, d) => {
    const line = document.createElementNS(SVG, "path");
    line.setAttribute("class", `lane-${lane % 8}`);
    line.setAttribute("d", d);
    svg.append(line);
  };
  for (const lane of row.past) path(lane, `M${x(lane)} 0V40`);
  for (const lane of row.read) path(lane, `M${x(lane)} 0C${x(lane)} 14 ${x(row.lane)} 6 ${x(row.lane)} 20`);
  for (const lane of row.given) path(lane, `M${x(row.lane)} 20C${x(row.lane)} 34 ${x(lane)} 26 ${x(lane)} 40`);
  return svg;
}

class Model {
  constructor(parent) {
    this.number = 0;
    this.zoom = USUAL;
    this.search = el("input", { type: "search", placeholder: "Search", "aria-label": "Search calls and kernels", oninput: () => this.find() });
    this.search.addEventListener("keydown", (event) => { if (event.key === "Enter") this.next(); });
    this.status = el("span", { class: "status", role: "status" });
    this.out = el("button", { type: "button", "aria-label": "Smaller", onclick: () => this.scale(-1) }, "−");
    this.in = el("button", { type: "button", "aria-label": "Larger", onclick: () => this.scale(1) }, "+");
    this.graph = el("div", { class: "scroll graph" });
    this.list = el("div", { class: "scroll" });
    this.root = el("div", { class: "model" },
      el("section", { class: "pane", "aria-label": "Graph" },
        el("div", { class: "head" }, el("h3", {}, "Graph"), this.search, this.status, el("span", { class: "spring" }),
          el("span", { class: "zoom", role: "group", "aria-label": "Zoom" }, this.out, this.in)),
        this.graph),
      el("section", { class: "pane", "aria-label": "Kernels" },
        el("div", { class: "head" }, el("h3", {}, "Kernels"), el("span", { class: "status" }, "A press opens one on the board.")), this.list));
    parent.append(this.root);
    for (const pane of [this.graph, this.list]) {
      pane.addEventListener("pointerover", (event) => this.point(event.target.closest("[data-kernel]")?.dataset.kernel));
      pane.addEventListener("pointerleave", () => this.point(undefined));
      pane.addEventListener("click", (event) => this.press(event));
    }
    this.scale(0);
  }

  send(action) {
    this.number += 1;
    this.component.setTriggerValue("action", { ...action, n: `${Date.now()}-${this.number}` });
  }

  press(event) {
    const block = event.target.closest("[data-block]");
    if (block) return this.send({ kind: "block", first: Number(block.dataset.block) });
    const kernel = event.target.closest("button[data-kernel]");
    if (kernel) this.send({ kind: "open", kernel: kernel.dataset.kernel });
  }

  update(component) {
    this.component = component;
    const key = JSON.stringify(component.data);
    if (key === this.key) return;
    this.key = key;
    const { rows, kernels, lanes: count, worst } = component.data;
    this.keeping(this.graph, () => this.graph.replaceChildren(...rows.flatMap((row) => this.call(row, count, worst))));
    this.keeping(this.list, () => this.list.replaceChildren(...kernels.map((kernel) => this.kernel(kernel, worst))));
    const { pointed } = this;
    this.pointed = undefined;
    this.point(pointed);
    this.find();
  }

  /** Draw anew, with the keyboard where it was. */
  keeping(pane, draw) {
    const buttons = () => [...pane.querySelectorAll("button")];
    const at = buttons().indexOf(pane.getRootNode().activeElement);
    const scrolled = pane.scrollTop;
    draw();
    pane.scrollTop = scrolled;
    if (at >= 0) buttons()[at]?.focus({ preventScroll: true });
  }

  call(row, count, worst) {
    const { kernel, nodes, times, block } = row;
    const dot = el("i", {});
    dot.style.left = `${EDGE + LANE * row.lane}px`;
    if (row.tensor !== undefined) {
      const tensor = el("div", { class: "row tensor" }, lanes(count, row), dot,
        el("div", { class: "call" }, el("span", { class: "name", title: row.tensor }, row.tensor), el("span", { class: "nodes", title: row.about }, row.about)));
      tensor.searched = row.searched;
      return [tensor];
    }
    const limit = row.limit === null ? "" : `${percent(row.limit)} of limit`;
    const about = [row.time && `${row.time} of a run`, nodes, limit && `runs at ${limit}`].filter(Boolean).join(" · ");
    const drawn = el("div", { class: `row${row.within === null ? "" : " within"}${kernel === worst ? " worst" : ""}`, "data-kernel": kernel },
      lanes(count, row), dot,
      el("button", { type: "button", class: "call", "data-kernel": kernel, title: about },
        el("span", {}, el("div", { class: "name" }, kernel, times > 1 ? el("b", {}, ` × ${times}`) : ""), el("div", { class: "nodes" }, nodes)),
        row.share === null ? el("span", {}) : bar(row.share),
        el("span", {}, el("div", { class: "share" }, percent(row.share)), el("div", { class: "limit" }, limit))));
    drawn.searched = row.searched;
    if (!block) return [drawn];
    const passing = { past: [...new Set([...row.past, ...row.read])], read: [], given: [], lane: 0 };
    const what = block.calls === 1 ? "this call" : `these ${block.calls} calls`;
    const words = block.open ? `${block.times} times ${block.calls === 1 ? "the same call" : `${block.calls} calls`}` : `${what}, ${block.times} times`;
    return [el("div", { class: "row repeat" }, lanes(count, passing), el("div", { class: "again" }, el("span", { title: words }, words),
      el("button", { type: "button", "data-block": block.first, "aria-expanded": String(block.open) }, block.open ? "once" : "show all"))), drawn];
  }

  kernel(kernel, worst) {
    const failed = kernel.message !== "";
    return el("button", { type: "button", class: `kernel${kernel.name === worst ? " worst" : ""}`, "data-kernel": kernel.name, title: kernel.nodes },
      el("div", { class: "first" }, el("span", { class: "name" }, kernel.name), el("span", { class: "time" }, kernel.time || "–")),
      el("div", { class: "about" }, [kernel.about, kernel.total].filter(Boolean).join(" · ")),
      kernel.share === null ? null : el("div", { class: "meters" },
        el("div", {}, el("div", {}, `${percent(kernel.share)} of the time`), bar(kernel.share)),
        kernel.limit === null ? null
          : el("div", {}, el("div", {}, `${percent(kernel.limit)} of the limit (${kernel.bound})`), bar(kernel.limit, "limit-bar"))),
      kernel.found ? el("div", { class: "found" }, kernel.found) : null,
      kernel.rival ? el("div", { class: "found" }, kernel.rival) : null,
      kernel.state ? el("div", { class: `state${kernel.working ? " working" : ""}${failed ? " failed" : ""}` },
        failed ? `✕ ${kernel.state}: ${kernel.message}` : kernel.state) : null);
  }

  /** Rows and kernels of the one that is pointed at stand out. */
  point(kernel) {
    if (kernel === this.pointed) return;
    this.pointed = kernel;
    for (const node of this.root.querySelectorAll("[data-kernel]")) node.classList.toggle("same", node.dataset.kernel === kernel);
  }

  find() {
    const words = this.search.value.trim().toLowerCase();
    const calls = [...this.graph.children].filter((row) => row.searched !== undefined);
    this.matching = words ? calls.filter((row) => row.searched.includes(words)) : [];
    for (const row of calls) {
      row.classList.toggle("found", this.matching.includes(row));
      row.classList.toggle("dim", words !== "" && !this.matching.includes(row));
    }
    this.status.textContent = words ? `${this.matching.length} of ${calls.length}` : `${calls.length} rows`;
    if (words !== this.sought) {
      this.sought = words;
      this.at = -1;
      if (words) this.next();
    }
  }

  next() {
    if (!this.matching.length) return;
    this.at = (this.at + 1) % this.matching.length;
    this.matching[this.at].scrollIntoView({ block: "center" });
  }

  scale(by) {
    this.zoom = Math.min(ROWS.length - 1, Math.max(0, this.zoom + by));
    this.graph.style.setProperty("--row", `${ROWS[this.zoom]}px`);
    this.graph.classList.toggle("small", this.zoom < USUAL);
    this.graph.classList.toggle("tiny", this.zoom === 0);
    this.out.disabled = this.zoom === 0;
    this.in.disabled = this.zoom === ROWS.length - 1;
  }
}

const models = new WeakMap();

export default function mount(component) {
  const parent = component.parentElement;
  if (!models.has(parent)) models.set(parent, new Model(parent));
  models.get(parent).update({ ...component, data: component.data[0] });
  return () => models.delete(parent);
}

// The history as an analysis board shows it: the main line runs on, variations stand indented below the
// move that they replace. The chart beside it draws the speed-up along the line of the cursor.

class HistoryPane {
  constructor(board) {
    this.board = board;
    this.closed = new Set();
    this.entries = new Map();
    this.body = el("div", { class: "scroll history", role: "group", "aria-label": "Moves played", tabindex: "0" });
    this.body.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => {
      const fold = event.target.closest("[data-fold]");
      if (fold) {
        const id = Number(fold.dataset.fold);
        if (!this.closed.delete(id)) this.closed.add(id);
        return this.draw();
      }
      const entry = event.target.closest("[data-id]");
      if (entry) board.send("goto", { id: Number(entry.dataset.id) });
    });
    const act = (kind, label, title) => el("button", { class: "small", type: "button", title, "data-about": title,
      onclick: () => board.send(kind, { id: board.data.position.id }) }, label);
    this.remove = act("ask_drop", "Remove this move", "Replay the line without this move, on a new branch");
    this.promote = act("promote", "Make main line", "Make the variation with this move the main one");
    this.erase = act("delete", "Delete from here", "Delete this move and all that was played after it");
    this.root = el("section", { class: "pane history-pane", "aria-label": "History" },
      el("header", { class: "pane-head" }, el("h2", {}, "History"),
        el("div", { class: "extras" }, this.remove, this.promote, this.erase)), this.body);
  }

  /** Up and down through the moves as they stand here. */
  key(event) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step) return;
    const ids = [...this.entries.keys()];
    const next = ids[ids.indexOf(this.board.data.position.id) + step];
    if (next !== undefined) this.board.send("goto", { id: next });
    event.preventDefault();
    event.stopPropagation();
  }

  update() {
    this.draw();
    const { position, history } = this.board.data;
    const { watching } = this.board;
    for (const button of [this.remove, this.promote, this.erase]) button.title = watching || button.dataset.about;
    this.remove.disabled = this.erase.disabled = Boolean(watching) || position.parent === null;
    this.promote.disabled = Boolean(watching) || !history.nodes.some((n) => n.id === position.id && n.variation);
  }

  draw() {
    const { history } = this.board.data;
    this.children = new Map();
    this.nodes = new Map();
    for (const node of history.nodes) {
      this.nodes.set(node.id, node);
      if (node.parent === null) continue;
      if (!this.children.has(node.parent)) this.children.set(node.parent, []);
      this.children.get(node.parent).push(node);
    }
    this.entries.clear();
    const main = el("div", { class: "line-of-moves" });
    const root = history.nodes[0];
    main.append(this.entry(root));
    this.follow(root, main);
    const top = this.body.scrollTop;
    this.body.replaceChildren(main);
    if (history.nodes.length === 1) {
      main.append(el("span", { class: "quiet none" }, "Moves that you play appear here. Click one to go there; playing another move from there starts a variation."));
    }
    this.body.scrollTop = top;
    const entry = this.entries.get(this.board.data.position.id);
    if (entry) entry.root.scrollIntoView({ block: "nearest" });
    this.refresh();
  }

  follow(node, block) {
    for (;;) {
      const [main, ...others] = this.children.get(node.id) || [];
      if (!main) return;
      block.append(this.entry(main));
      for (const other of others) {
        const variation = el("div", { class: "variation", role: "group", "aria-label": `Variation ${other.ply}. ${other.move}` });
        const length = this.length(other);
        if (length > 1) {
          variation.append(el("button", { class: "fold", type: "button", "data-fold": other.id,
            "aria-expanded": String(!this.closed.has(other.id)), "aria-label": "Variation" }, this.closed.has(other.id) ? "▸" : "▾"));
        }
        variation.append(this.entry(other));
        if (this.closed.has(other.id)) variation.append(el("span", { class: "quiet" }, ` … ${plural(length - 1, "move")}`));
        else this.follow(other, variation);
        block.append(variation);
      }
      node = main;
    }
  }

  length(node) {
    return 1 + (this.children.get(node.id) || []).reduce((sum, child) => sum + this.length(child), 0);
  }

  entry(node) {
    const current = node.id === this.board.data.position.id;
    const time = el("small", {});
    const root = el("button", { class: `entry${current ? " here" : ""}`, type: "button", tabindex: "-1",
      "data-id": node.id, "aria-current": current ? "step" : null },
      node.parent === null ? "Start" : `${node.ply}. ${node.move}`, time);
    this.entries.set(node.id, { root, time });
    return root;
  }

  refresh() {
    const feed = this.board.feed;
    if (!feed || !feed.times) return;
    // Times make entries wider, and lines break anew: what stood in sight stays in sight.
    const current = this.entries.get(this.board.data.position.id);
    const seen = current && this.inSight(current.root);
    for (const [id, entry] of this.entries) {
      const time = feed.times[id];
      const node = this.nodes.get(id);
      put(entry.time, typeof time === "number" ? ` ${duration(time)}` : "");
      const about = (feed.provenance || {})[id];
      entry.time.classList.toggle("taken-busy", Boolean(about && about.busy));
      if (typeof time === "number") {
        const against = feed.start > 0 && node.parent !== null ? `: ${ratio(feed.start / time)} of the start's speed` : "";
        entry.root.title = `${duration(time)}${against}${about ? `. Taken ${provenance(about)}` : ""}`;
      }
    }
    if (seen && !this.inSight(current.root)) current.root.scrollIntoView({ block: "nearest" });
  }

  inSight(entry) {
    const [box, bounds] = [this.body.getBoundingClientRect(), entry.getBoundingClientRect()];
    return bounds.top >= box.top && bounds.bottom <= box.bottom;
  }
}

/** 1, 2 and 5 of each decade; where 2 stands less than a line above 1, the powers of ten, and 1 always. */
function ticks(low, high, apart) {
  const steps = apart < 16 ? [1] : [1, 2, 5];
  return [0.001, 0.01, 0.1, 1, 10, 100, 1000].flatMap((decade) => steps.map((step) => step * decade))
    .filter((tick) => tick >= low && tick <= high).map((tick) => Number(tick.toPrecision(1)));
}

class Chart {
  constructor(board) {
    this.board = board;
    this.canvas = svg("svg", { class: "chart", role: "img" });
    this.basis = el("span", { class: "note-of" });
    this.again = el("button", { class: "small", type: "button", hidden: true, onclick: () => board.send("yardstick") });
    this.root = el("section", { class: "pane chart-pane", "aria-label": "Speed-up over moves" },
      el("header", { class: "pane-head" }, el("h2", {}, "Speed-up over moves"),
        el("div", { class: "extras" }, this.basis, this.again)), el("div", { class: "chart-box" }, this.canvas));
    this.canvas.addEventListener("click", (event) => {
      const dot = event.target.closest("[data-id]");
      if (dot) board.send("goto", { id: Number(dot.dataset.id) });
    });
    new ResizeObserver(() => this.draw()).observe(this.root);
  }

  update() {
    this.shown = null;
    this.draw();
  }

  /** Which time of the start the speed-ups stand on; a better one is offered, and changes nothing by itself. */
  tellBasis(feed) {
    const { yardstick } = feed;
    const simulated = this.board.data.game.unit === "cycles";
    const basis = yardstick && feed.start > 0 ? [`against ${duration(feed.start)}`, !simulated && moment(yardstick.taken), !simulated && yardstick.busy && "busy"] : [];
    put(this.basis, basis.filter(Boolean).join(", "));
    this.basis.title = yardstick ? `The start's time that speed-ups stand on, taken ${provenance(yardstick)}.` : "";
    const again = yardstick && yardstick.again;
    show(this.again, Boolean(again));
    if (!again) return;
    put(this.again, `Use ${duration(again.seconds)}`);
    this.again.title = `The start was timed again: ${duration(again.seconds)} (${provenance(again)}). Speed-ups stand on ${duration(feed.start)} (${provenance(yardstick)}); press to let them stand on the new time.`;
  }

  draw() {
    const feed = this.board.feed;
    const data = this.board.data;
    if (!data || !data.history || !feed || !feed.times) return;
    const box = this.canvas.parentNode;
    const width = box.clientWidth;
    const height = box.clientHeight;
    if (width < 80 || height < 50) return;
    const line = data.history.line;
    const abouts = feed.provenance || {};
    const points = line.map((id, ply) => ({ id, ply, about: abouts[id] || {}, gain: typeof feed.times[id] === "number" && feed.start > 0 ? feed.start / feed.times[id] : null }));
    this.tellBasis(feed);
    const key = JSON.stringify([width, height, data.position.id, points, feed.roofline, feed.torch]);
    if (key === this.shown) return;
    this.shown = key;
    const known = points.filter((p) => p.gain !== null);
    const parts = [];
    if (known.length === 0) {
      parts.push(svg("text", { x: width / 2, y: height / 2, class: "quiet", "text-anchor": "middle" }, data.game.timed ? "No measured position yet" : "On this target positions have no time here"));
    } else {
      const left = 40, right = 12, top = 12, bottom = 22;
      const limit = feed.roofline && feed.start > 0 ? feed.start / feed.roofline.seconds : null;
      const torch = feed.torch && feed.start > 0 ? feed.start / feed.torch : null;
      const high = Math.max(2, limit || 0, torch || 0, ...known.map((p) => p.gain)) * 1.1;
      const low = Math.min(1, torch || 1, ...known.map((p) => p.gain)) / 1.1;
      const x = (ply) => left + 10 + ((width - left - 10 - right) * ply) / Math.max(4, line.length - 1);
      const y = (gain) => top + (height - top - bottom) * (1 - Math.log(gain / low) / Math.log(high / low));
      for (const tick of ticks(low, high, y(1) - y(2))) {
        parts.push(svg("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: tick === 1 ? "grid one" : "grid" }));
        parts.push(svg("text", { x: left - 6, y: y(tick) + 4, class: "tick", "text-anchor": "end" }, `${tick}×`));
      }
      const marks = [["roofline", limit, left + 20], ["PyTorch", torch, (left + width) / 2]].filter(([, gain]) => gain !== null);
      const labels = marks.map(([name, gain, place]) => {
        parts.push(svg("line", { x1: left, x2: width - right, y1: y(gain), y2: y(gain), class: name === "PyTorch" ? "roofline rival" : "roofline" }));
        // Below its line, or above it where another one, of the start or the axis too, lies there.
        const others = [...marks.map(([, other]) => y(other)), y(1), height - bottom];
        const full = others.some((other) => other > y(gain) && other < y(gain) + 17);
        return svg("text", { x: place, y: y(gain) + (full ? -4 : 13), class: "tick label" }, `${name} ${ratio(gain)}`);
      });
      const step = Math.max(1, Math.ceil(line.length / Math.max(2, Math.floor(width / 50))));
      for (let ply = 0; ply < line.length; ply += step) {
        parts.push(svg("text", { x: x(ply), y: height - 6, class: "tick", "text-anchor": "middle" }, String(ply)));
      }
      for (let i = 1; i < known.length; i += 1) {
        const [a, b] = [known[i - 1], known[i]];
        parts.push(svg("line", { x1: x(a.ply), y1: y(a.gain), x2: x(b.ply), y2: y(b.gain), class: b.ply - a.ply > 1 ? "segment gap" : "segment" }));
      }
      parts.push(...labels);
      for (const p of known) {
        const current = p.id === data.position.id;
        const dot = svg("circle", { cx: x(p.ply), cy: y(p.gain), r: current ? 6 : line.length > 40 ? 2.5 : 4, class: `dot${current ? " here" : ""}${p.about.busy ? " taken-busy" : ""}`, "data-id": p.id });
        dot.append(svg("title", {}, `${p.ply === 0 ? "Start" : `Move ${p.ply}`}: ${ratio(p.gain)}, taken ${provenance(p.about)}`));
        parts.push(dot);
      }
    }
    this.canvas.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.canvas.setAttribute("aria-label", known.length
      ? `Speed-up against the start after each move: ${known.map((p) => `${p.ply}: ${ratio(p.gain)}`).join(", ")}` : "No measured position yet");
    this.canvas.replaceChildren(...parts);
  }
}

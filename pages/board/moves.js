// The moves table. Rows are kept by move text, never by place in the list, and their order changes only
// when the player asks for it: results that stream in fill cells and move nothing.

const FAILURES = {
  compile_error: "does not compile", wrong_result: "wrong result", unwritten: "unwritten elements",
  out_of_bounds: "out of bounds", crash: "crash", timeout: "timeout", refused: "no code for it",
};

const FAILURE_SENTENCES = {
  compile_error: "The generated C did not compile. This is a fault of the generator, not of yours; the compiler said:",
  wrong_result: "The result differs from the reference by more than rounding explains. This is a fault of ours; the position is kept for repair.",
  unwritten: "Some elements of the output were never written. This is a fault of ours; the position is kept for repair.",
  out_of_bounds: "The code wrote outside its arrays. This is a fault of ours; the position is kept for repair.",
  crash: "The code crashed in its own process; nothing else was harmed.",
  timeout: "The run took longer than its time limit and was stopped.",
  refused: "The code generator does not support this program yet, so it has no time. The move can be played all the same.",
};

class MovesPane {
  constructor(board) {
    this.board = board;
    this.group = "all";
    this.filter = "";
    this.sort = "listed";
    this.rows = new Map();
    this.order = [];
    this.chosen = null;
    this.playing = null;
    this.typed = null;
    this.fresh = 0;
    this.tabs = tabBar("Groups of moves",
      [["all", "All"], ["selection", "At the selection"], ["enablers", "Enablers"], ["blocked", "Blocked"]],
      (id) => this.open(id));
    this.tabs.buttons.get("enablers").title = "Moves that make other, now blocked, moves legal";
    this.tabs.buttons.get("blocked").title = "Moves that are refused here, each with its reason";
    this.search = el("input", { type: "search", class: "field", placeholder: "Filter, or type a move  /", "aria-label": "Filter moves, or type one",
      oninput: () => { this.filter = this.search.value; this.arrange(); this.draw(); } });
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { this.search.value = ""; this.filter = ""; this.arrange(); this.draw(); this.search.blur(); }
      if (event.key === "Enter" && this.command()) this.playTyped();
      if (event.key === "ArrowDown") { this.list.focus(); this.walk(1); event.preventDefault(); }
    });
    this.sorter = el("select", { class: "field", "aria-label": "Order of the moves",
      onchange: () => { this.sort = this.sorter.value; this.reorder(); } },
      el("option", { value: "listed" }, "By kind"), el("option", { value: "gain" }, "Fastest first"),
      el("option", { value: "place" }, "By place"));
    this.updater = el("button", { class: "small", type: "button", title: "Sort the rows again by what has been measured",
      onclick: () => { this.sort = "gain"; this.sorter.value = "gain"; this.reorder(); } }, "Update order");
    this.count = el("span", { class: "count", role: "status" });
    this.tools = el("div", { class: "tools" }, this.search, this.sorter, this.updater, this.count);
    this.titles = el("div", { class: "row titles", "aria-hidden": "true" }, el("span", {}, "Move"), el("span", {}, "Place"),
      el("span", {}, "Parameter"), el("span", { class: "speed", title: "How many times as fast as the position on the board" }, "Speed against now"));
    this.list = el("div", { class: "scroll moves", role: "listbox", tabindex: "0", "aria-label": "Legal moves" });
    this.list.addEventListener("click", (event) => this.clicked(event));
    this.list.addEventListener("dblclick", (event) => this.doubled(event));
    this.list.addEventListener("mouseover", (event) => this.hover(event));
    this.list.addEventListener("mouseleave", () => this.board.involve(this.placesOf(this.chosen)));
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.drawer = el("div", { class: "drawer", "aria-live": "polite" });
    this.root = el("section", { class: "pane moves-pane", "aria-label": "Moves" },
      this.tabs.root, this.tools, this.titles, this.list, this.drawer);
  }

  open(group) {
    this.group = group;
    this.tabs.select(group);
    
    this.chosen = null;
    this.board.involve([]);
    this.arrange();
    this.draw();
    this.list.scrollTop = 0;
  }

  /** A new position, or the same with more known about it. */
  update(changed) {
    const moves = this.board.data.moves;
    if (changed) {
      this.rows.clear();
      this.chosen = null;
      this.playing = null;
      this.list.scrollTop = 0;
    }
    if (changed && this.typed && this.typed === this.filter.trim()) this.search.value = this.filter = "";
    if (changed) this.typed = null;
    this.moves = new Map(moves.map((move, index) => [move.text, { ...move, index }]));
    if (changed) this.reorder();
    else this.arrange();
    this.draw();
  }

  result(text) {
    const move = this.moves.get(text);
    const feed = this.board.feed;
    return move && feed && feed.position === this.board.data.position.id ? feed.results[move.index] : 0;
  }

  gain(text) {
    const result = this.result(text);
    const now = this.board.feed && this.board.feed.now;
    if (!Array.isArray(result) || typeof result[0] !== "number" || !now || !(now.seconds > 0)) return null;
    return now.seconds / result[0];
  }

  reorder() {
    const order = [...this.moves.keys()];
    if (this.sort === "gain") {
      const times = new Map(order.map((text) => {
        const result = this.result(text);
        return [text, Array.isArray(result) && typeof result[0] === "number" ? result[0] : Infinity];
      }));
      order.sort((a, b) => (times.get(a) === times.get(b) ? 0 : times.get(a) - times.get(b)));
    } else if (this.sort === "place") {
      const key = (text) => { const m = this.moves.get(text); return `${m.place} ${m.name} ${m.params}`; };
      order.sort((a, b) => key(a).localeCompare(key(b), "en", { numeric: true }));
    }
    this.order = order;
    this.fresh = this.measured();
    this.updater.classList.remove("lit");
    this.arrange();
  }

  measured() {
    const feed = this.board.feed;
    return feed && feed.results ? feed.results.filter(Array.isArray).length : 0;
  }

  /** Which rows are shown, in the frozen order. */
  arrange() {
    if (!this.board.data.moves || !this.moves) return;
    if (this.group === "blocked") return this.drawBlocked();
    const words = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = this.order.filter((text) => {
      const move = this.moves.get(text);
      if (this.group === "selection" && !this.atSelection(move)) return false;
      if (this.group === "enablers" && !move.opens.length) return false;
      return words.every((word) => text.toLowerCase().includes(word));
    });
    const nodes = shown.map((text) => this.row(text));
    if (nodes.length !== this.list.children.length || nodes.some((node, i) => node !== this.list.children[i])) {
      const top = this.list.scrollTop;
      this.titles.hidden = !nodes.length;
      this.list.replaceChildren(...(nodes.length ? nodes : [el("p", { class: "empty" }, this.emptySentence())]));
      this.list.scrollTop = top;
    }
    this.count.textContent = shown.length === this.order.length ? plural(shown.length, "move") : `${shown.length} of ${this.order.length}`;
    this.counts();
    this.fill();
  }

  /** What is typed as a move or recipe: [how it is written, what it does]; null: a mere filter. */
  command() {
    return (this.board.data.commands || {})[this.filter.trim().split(/\s+/)[0]] || null;
  }

  /** It stays typed until it has been played: a refusal costs nobody their text. */
  playTyped() {
    this.typed = this.filter.trim();
    this.play(this.typed);
  }

  emptySentence() {
    if (this.group === "selection" && this.board.selection === null) {
      return "Nothing is selected. Click a line, or a number in front of it (a scope), in the program on the left.";
    }
    if (this.command()) return "Enter plays what you typed: any legal parameter will do, also one not listed.";
    if (this.filter) return "No move matches the filter. Escape clears it.";
    if (this.group === "selection") return "No legal move touches the selection.";
    if (this.group === "enablers") return this.board.data.enablers ? "No legal move here opens a blocked one." : "Looking for moves that open others…";
    return "No legal move here.";
  }

  counts() {
    const moves = [...this.moves.values()];
    put(this.tabs.buttons.get("all"), `All ${moves.length}`);
    const here = moves.filter((m) => this.atSelection(m)).length;
    put(this.tabs.buttons.get("selection"), this.board.selection === null ? "At the selection" : `At the selection ${here}`);
    const opening = moves.filter((m) => m.opens.length).length;
    put(this.tabs.buttons.get("enablers"), opening ? `Enablers ${opening}` : "Enablers");
    const blocked = this.board.data.blocked;
    put(this.tabs.buttons.get("blocked"), blocked ? `Blocked ${blocked.length}` : "Blocked");
  }

  atSelection(move) {
    const at = this.board.selection;
    if (at === null) return false;
    if (at.startsWith("buffer:")) {
      return move.text.split(/[^A-Za-z0-9_]+/).slice(1).includes(at.slice(7));
    }
    const operation = this.board.isOperation(at);
    return move.paths.some((path) => within(path, at) || (operation && within(at, path)));
  }

  row(text) {
    let row = this.rows.get(text);
    if (row) return row.root;
    const move = this.moves.get(text);
    const fill = el("span", { class: "fill" });
    const value = el("span", { class: "value" });
    const apply = el("button", { class: "small apply", type: "button", tabindex: "-1", "aria-label": `Apply ${text}` }, "Apply");
    const root = el("div", { class: "row", role: "option", "data-move": text, "aria-selected": "false" },
      el("span", { class: "name", title: move.name }, move.name),
      el("span", { class: "place", title: move.place }, move.place),
      el("span", { class: "params", title: move.params }, move.params),
      el("span", { class: "bar", "aria-hidden": "true" }, fill), value, apply);
    row = { root, fill, value, shown: undefined };
    this.rows.set(text, row);
    return root;
  }

  /** Put what is measured into the rows: text and classes only, no row moves. */
  fill() {
    const now = this.board.feed && this.board.feed.now;
    const base = now && now.seconds > 0 ? now.seconds : null;
    for (const [text, row] of this.rows) {
      const result = this.result(text);
      const key = `${Array.isArray(result) ? result.slice(0, 2).join() : result}/${base}`;
      if (row.shown === key) continue;
      row.shown = key;
      row.root.dataset.state = Array.isArray(result) ? (typeof result[0] === "number" ? "known" : "failed") : ["waiting", "measuring", "unmeasured"][result] || "waiting";
      row.fill.style.cssText = "";
      row.fill.className = "fill";
      row.value.className = "value";
      if (Array.isArray(result) && typeof result[0] === "number") {
        if (base === null) { put(row.value, duration(result[0])); continue; }
        const gain = base / result[0];
        // log scale, two doublings to either side of 1.0
        const share = Math.max(-1, Math.min(1, Math.log2(gain) / 2));
        row.fill.style.left = `${50 + Math.min(0, share) * 50}%`;
        row.fill.style.width = `max(1px, ${Math.abs(share) * 50}%)`;
        row.fill.classList.add(tone(gain));
        row.value.classList.add(tone(gain));
        put(row.value, `${sign(gain)} ${ratio(gain)}`);
      } else if (Array.isArray(result)) {
        row.value.classList.add("failure");
        put(row.value, `✕ ${FAILURES[result[0]] || result[0]}`);
      } else put(row.value, result === 1 ? "measuring" : result === 2 ? "" : "…");
    }
    const news = this.measured() - this.fresh;
    this.updater.classList.toggle("lit", news > 0);
  }

  /** New results came. */
  refresh() {
    if (!this.moves) return;
    this.fill();
    if (this.chosen) this.drawDrawer();
  }

  clicked(event) {
    const row = event.target.closest("[data-move]");
    if (!row) return;
    const text = row.dataset.move;
    if (event.target.closest(".apply")) return this.play(text);
    this.choose(text);
  }

  doubled(event) {
    const row = event.target.closest("[data-move]");
    if (row && this.group !== "blocked" && !event.target.closest("button")) this.play(row.dataset.move);
  }

  hover(event) {
    const row = event.target.closest("[data-move]");
    this.board.involve(row ? this.placesOf(row.dataset.move) : this.placesOf(this.chosen));
  }

  placesOf(text) {
    if (text === null) return [];
    if (this.group === "blocked") {
      const blocked = (this.board.data.blocked || []).find((b) => b.text === text);
      return blocked ? blocked.paths : [];
    }
    const move = this.moves && this.moves.get(text);
    return move ? move.paths : [];
  }

  choose(text) {
    this.chosen = text;
    for (const row of this.list.querySelectorAll("[data-move]")) {
      row.setAttribute("aria-selected", String(row.dataset.move === text));
    }
    this.board.involve(this.placesOf(text));
    if (this.group !== "blocked") this.board.send("look", { move: text });
    this.draw();
    // The drawer below has opened: keep the row in sight.
    const row = this.list.querySelector("[aria-selected=true]");
    if (row) row.scrollIntoView({ block: "nearest" });
  }

  walk(step) {
    const rows = [...this.list.querySelectorAll("[data-move]")];
    if (!rows.length) return;
    const at = rows.findIndex((row) => row.dataset.move === this.chosen);
    const next = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step))];
    this.choose(next.dataset.move);
  }

  key(event) {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      this.walk(event.key === "ArrowDown" ? 1 : -1);
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === "Enter" && this.chosen !== null && this.group !== "blocked") {
      this.play(this.chosen);
      event.preventDefault();
      event.stopPropagation();
    }
  }

  play(text) {
    // Until the next position is drawn a second click plays nothing; the server checks besides.
    if (this.playing !== null) return;
    this.playing = text;
    this.root.classList.add("busy");
    const row = this.rows.get(text);
    if (row) row.root.classList.add("playing");
    this.board.send("play", { move: text });
    setTimeout(() => { if (this.playing === text) this.released(); }, 4000);
  }

  released() {
    this.playing = null;
    this.root.classList.remove("busy");
    for (const row of this.rows.values()) row.root.classList.remove("playing");
  }

  draw() {
    if (this.playing === null) this.root.classList.remove("busy");
    this.sorter.disabled = this.updater.disabled = this.group === "blocked";
    this.drawDrawer();
  }

  drawDrawer() {
    const text = this.chosen;
    this.drawer.classList.toggle("open", text !== null);
    const command = text === null ? this.command() : null;
    if (command) {
      const shown = `command ${command[0]}`;
      if (this.drawer.dataset.shown === shown) return;
      this.drawer.dataset.shown = shown;
      this.drawer.replaceChildren(el("div", { class: "drawer-head" }, el("code", {}, command[0]),
        el("button", { class: "small", type: "button", onclick: () => this.playTyped() }, "Play what I typed")),
      el("p", {}, command[1]));
      return;
    }
    if (text === null) {
      const hint = this.group === "blocked"
        ? "These moves are well formed but would break the program here. Select one to see why, where, and what would unblock it."
        : this.group === "enablers" ? "Each of these makes some blocked move legal. Neutral is not bad: plateaus are part of the game."
        : "A move changes how the program computes, never what. The bar shows the time it leads to: ▲ faster, ▼ slower than now. Apply plays it; you can always take back.";
      if (this.drawer.dataset.shown === hint) return;
      this.drawer.dataset.shown = hint;
      this.drawer.replaceChildren(el("p", { class: "hint" }, hint));
      return;
    }
    if (this.group === "blocked") return this.drawRefusal(text);
    const move = this.moves.get(text);
    if (!move) return;
    const feed = this.board.feed;
    const result = this.result(text);
    const look = feed && feed.look && feed.look.move === text ? feed.look : null;
    const key = JSON.stringify([text, result, look && look.diff.length, feed && feed.now && feed.now.seconds, move.opens]);
    if (this.drawer.dataset.shown === key) return;
    this.drawer.dataset.shown = key;
    const measured = Array.isArray(result) && typeof result[0] === "number";
    const gain = measured ? this.gain(text) : null;
    const parts = [el("div", { class: "drawer-head" }, el("code", {}, text),
      measured ? el("span", { class: "quiet" }, gain ? el("span", { class: tone(gain) }, `${sign(gain)} ${ratio(gain)}  `) : "",
        `${duration(result[0])}, median ${duration(result[1])}`) : "",
      el("button", { class: "small primary", type: "button", onclick: () => this.play(text) }, "Apply"))];
    if (move.words) parts.push(el("p", {}, move.words));
    if (Array.isArray(result) && !measured) {
      parts.push(el("p", { class: "failure" }, FAILURE_SENTENCES[result[0]] || `Failed: ${result[0]}.`));
      if (result[1]) parts.push(el("pre", { class: "mono" }, result[1]));
    }
    if (move.opens.length) parts.push(el("p", {}, "Opens: ", ...separated(move.opens.map((other) => el("code", {}, other)))));
    if (look && look.diff.length) {
      parts.push(el("div", { class: "mono preview" }, ...look.diff.map(([mark, line]) =>
        el("div", { class: `line diff ${mark === "+" ? "plus" : "minus"}` }, el("span", { class: "sign" }, mark === "-" ? "−" : mark), el("span", {}, line)))));
    }
    this.drawer.replaceChildren(...parts);
  }

  drawBlocked() {
    const blocked = this.board.data.blocked;
    this.titles.hidden = true;
    this.counts();
    if (!blocked) {
      this.list.replaceChildren(el("p", { class: "empty" }, "Looking at what is refused here, and why…"));
      put(this.count, "");
      return;
    }
    const words = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = blocked.filter((b) => words.every((word) => b.text.toLowerCase().includes(word)));
    this.list.replaceChildren(...shown.map((b) =>
      el("div", { class: "row blocked", role: "option", "data-move": b.text, "aria-selected": String(b.text === this.chosen) },
        el("span", { class: "name", title: b.text }, b.text), el("span", { class: "why", title: b.sentence }, b.sentence))));
    if (!shown.length) this.list.replaceChildren(el("p", { class: "empty" }, this.filter ? "No blocked move matches the filter." : "Nothing is blocked here."));
    put(this.count, shown.length === blocked.length ? `${blocked.length} refused` : `${shown.length} of ${blocked.length}`);
  }

  drawRefusal(text) {
    const refusal = (this.board.data.blocked || []).find((b) => b.text === text);
    if (!refusal) return;
    this.drawer.dataset.shown = `refusal ${text}`;
    this.drawer.replaceChildren(...[
      el("div", { class: "drawer-head" }, el("code", {}, text)),
      el("p", {}, refusal.sentence),
      refusal.witness ? el("p", {}, el("strong", {}, "For instance: "), refusal.witness) : null,
      refusal.enablers.length ? el("p", { class: "enablers" }, "What would unblock it: ",
        ...refusal.enablers.map((move) => this.moves.has(move)
          ? el("button", { class: "small", type: "button", onclick: () => this.play(move) }, `Play ${move}`)
          : el("code", {}, move))) : el("p", { class: "quiet" }, "No single move is known to unblock it."),
    ].filter((part) => part !== null));
  }
}

function separated(nodes) {
  return nodes.flatMap((node, i) => (i ? [", ", node] : [node]));
}

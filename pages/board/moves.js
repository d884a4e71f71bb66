// The moves table. Rows are kept by move text, never by place in the list, and their order changes only
// when the player asks for it: results that stream in fill cells and move nothing.

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
    this.settled = false; // is all that is known of this position in the order?
    this.unblocking = null; // the blocked move whose enabler is being played
    this.unblocked = null; // it is legal now
    this.tabs = tabBar("Groups of moves",
      [["all", "All"], ["selection", "At the selection"], ["enablers", "Enablers"], ["blocked", "Blocked"]],
      (id) => this.open(id));
    this.tabs.buttons.get("enablers").title = "Moves that make a move legal that is blocked now: first steps of a plan";
    this.tabs.buttons.get("blocked").title = "Moves that are refused here, each with its reason";
    this.search = el("input", { type: "search", class: "field", placeholder: "Filter, or type a move  /", "aria-label": "Filter moves, or type one",
      oninput: () => { this.filter = this.search.value; this.arrange(); this.draw(); } });
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { this.clear(); this.search.blur(); event.stopPropagation(); }
      if (event.key === "/" && this.search.selectionStart === 0) event.preventDefault(); // the key that leads here
      if (event.key === "Enter" && this.command()) this.playTyped();
      if (event.key === "ArrowDown") { this.list.focus(); this.walk(1); event.preventDefault(); }
    });
    this.sorter = el("select", { class: "field", "aria-label": "Order of the moves",
      onchange: () => { this.sort = this.sorter.value; this.reorder(); this.draw(); this.list.scrollTop = 0; } },
      el("option", { value: "listed" }, "By kind"), el("option", { value: "gain" }, "Fastest first"),
      el("option", { value: "place" }, "By place"));
    this.updater = el("button", { class: "small", type: "button", title: "Sort the rows again by what has been measured",
      onclick: () => { this.reorder(); this.list.scrollTop = 0; } }, "Update order");
    this.count = el("span", { class: "count", role: "status" });
    this.tools = el("div", { class: "tools" }, this.search, this.sorter, this.updater, this.count);
    this.titles = el("div", { class: "row titles", "aria-hidden": "true" }, el("span", {}, "Move"), el("span", {}, "Place"),
      el("span", {}, "Parameter"), el("span", { class: "speed", title: "How many times as fast as the position on the board" }, "Speed", el("span", { class: "words" }, " against now")));
    this.list = el("div", { class: "scroll moves", role: "listbox", tabindex: "0", "aria-label": "Legal moves" });
    this.list.addEventListener("click", (event) => this.clicked(event));
    this.list.addEventListener("dblclick", (event) => this.doubled(event));
    this.list.addEventListener("mouseover", (event) => this.hover(event));
    this.list.addEventListener("mouseleave", () => this.board.involve(this.placesOf(this.chosen)));
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.drawer = new Drawer(this);
    this.root = el("section", { class: "pane moves-pane", "aria-label": "Moves" },
      this.tabs.root, this.tools, this.titles, this.list, this.drawer.root);
  }

  open(group) {
    this.group = group;
    this.tabs.select(group);
    this.unchoose();
    this.arrange();
    this.draw();
    this.list.scrollTop = 0;
  }

  /** A new position, or the same with more known about it. */
  update(changed) {
    const moves = this.board.data.moves;
    if (changed) {
      this.rows.clear();
      this.chosen = this.unblocked = this.playing = null;
      this.settled = false;
      this.list.scrollTop = 0;
    }
    if (changed && this.typed && this.typed === this.filter.trim()) this.search.value = this.filter = "";
    if (changed) this.typed = null;
    this.moves = new Map(moves.map((move, index) => [move.text, { ...move, index }]));
    if (changed) this.reorder();
    else this.arrange();
    if (changed && this.unblocking !== null) this.afterUnblocking();
    this.draw();
  }

  /** The enabler has been played: the move that it should open stands ready, or its next reason. */
  afterUnblocking() {
    const text = this.unblocking;
    this.unblocking = null;
    if (!this.moves.has(text)) return;
    this.find("all", text);
    this.unblocked = text;
  }

  unblock(text, enabler) {
    this.play(enabler);
    this.unblocking = text;
  }

  /** Show a move in a group, chosen. */
  find(group, text) {
    this.clear();
    this.open(group);
    this.choose(text);
  }

  clear() {
    this.search.value = this.filter = "";
    this.arrange();
    this.draw();
  }

  /** What Escape closes first: the filter, then the chosen move. */
  escape() {
    if (this.filter) this.clear();
    else if (this.chosen !== null) this.choose(null);
    else return false;
    return true;
  }

  summary(name) {
    const command = (this.board.data.commands || {})[name];
    return command ? command[1] : "";
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

  /** The moves in the order asked for, by what is known now. */
  sorted() {
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
    return order;
  }

  reorder() {
    this.order = this.sorted();
    this.updater.classList.remove("lit");
    this.arrange();
  }

  /** Is somebody reading the rows? Then they stay where they are. */
  inUse() {
    const root = this.list.getRootNode();
    return this.chosen !== null || this.list.scrollTop > 0 || this.list.matches(":hover") || root.activeElement === this.list;
  }

  /** The order holds as far as results are known on arrival; while more stream in the rows are frozen. */
  settle() {
    const feed = this.board.feed;
    if (this.sort !== "gain" || !feed || !feed.explored) return;
    const streaming = ["measuring", "waiting"].includes(feed.queue.state);
    if (!this.settled || (!streaming && this.updater.classList.contains("lit") && !this.inUse())) {
      this.reorder();
      this.keepInSight();
    }
    this.settled = true;
    const order = this.sorted();
    this.updater.classList.toggle("lit", order.some((text, i) => text !== this.order[i]));
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
    if (this.chosen !== null && !shown.includes(this.chosen)) this.unchoose();
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
      el("span", { class: "name", title: this.summary(move.name).replace(/`/g, "") }, move.name),
      el("span", { class: "place", title: move.place }, move.place),
      el("span", { class: "params", title: move.params ? text : null }, move.params),
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
      } else if (Array.isArray(result) && result[0] === "untimed") {
        put(row.value, "no time");
      } else if (Array.isArray(result)) {
        row.value.classList.add("failure");
        put(row.value, `✕ ${FAILURES[result[0]] || result[0]}`);
      } else put(row.value, result === 1 ? "measuring" : result === 2 ? "" : "…");
    }
  }

  /** New results came. */
  refresh() {
    if (!this.moves) return;
    this.settle();
    this.fill();
    if (this.chosen) this.drawer.draw();
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

  unchoose() {
    const row = this.chosen !== null && this.rows.get(this.chosen);
    if (row) row.root.setAttribute("aria-selected", "false");
    this.chosen = this.unblocked = null;
    this.board.involve([]);
  }

  choose(text) {
    this.unchoose();
    this.chosen = text;
    for (const row of this.list.querySelectorAll("[data-move]")) {
      row.setAttribute("aria-selected", String(row.dataset.move === text));
    }
    this.board.involve(this.placesOf(text));
    if (text !== null && this.group !== "blocked") this.board.send("look", { move: text });
    this.draw();
    this.keepInSight(); // the drawer below has opened
  }

  keepInSight() {
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
    this.unblocking = null;
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
    this.sorter.disabled = this.group === "blocked";
    this.updater.disabled = this.group === "blocked" || this.sort !== "gain";
    this.drawer.draw();
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
    if (this.chosen !== null && !shown.some((b) => b.text === this.chosen)) this.unchoose();
    this.list.replaceChildren(...shown.map((b) =>
      el("div", { class: "row blocked", role: "option", "data-move": b.text, "aria-selected": String(b.text === this.chosen) },
        el("span", { class: "name", title: `${b.text}: ${this.summary(b.text.split(" ")[0]).replace(/`/g, "")}` }, b.text), el("span", { class: "why", title: b.sentence }, b.sentence))));
    if (!shown.length) this.list.replaceChildren(el("p", { class: "empty" }, this.filter ? "No blocked move matches the filter." : "Nothing is blocked here."));
    put(this.count, shown.length === blocked.length ? `${blocked.length} refused` : `${shown.length} of ${blocked.length}`);
  }
}

// The moves table: which rows are shown, which is chosen, what is played. Rows (row.js) are kept by move text,
// never by place in the list, and their order (order.js) changes only when the player asks for it.

class MovesPane {
  constructor(board) {
    this.board = board;
    this.group = "all";
    this.filter = "";
    this.moves = new Map();
    this.rows = new Map();
    this.chosen = null;
    this.playing = null;
    this.typed = null;
    this.plan = []; // what follows the move that is being played, on the way to one that was blocked
    this.unblocked = null; // the first of these, once it can be played
    this.previewed = null; // the enabler whose effect is shown
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
    this.words = new Words(this);
    this.order = new Order(this);
    this.count = el("span", { class: "count", role: "status" });
    this.tools = el("div", { class: "tools" }, this.search, this.order.select, this.order.button, this.count);
    this.titles = el("div", { class: "row titles", "aria-hidden": "true" }, el("span", {}, "Move"), el("span", {}, "Place"),
      el("span", {}, "Parameter"), el("span", { class: "speed", title: "How many times as fast as the position on the board" }, "Speed", el("span", { class: "words" }, " against now")));
    this.list = el("div", { class: "scroll moves", role: "listbox", tabindex: "0", "aria-label": "Legal moves" });
    this.list.addEventListener("click", (event) => this.clicked(event));
    this.list.addEventListener("dblclick", (event) => this.doubled(event));
    this.list.addEventListener("mouseover", (event) => this.hover(event));
    this.list.addEventListener("mouseleave", () => this.pointOut());
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.attention = new Attention(this);
    this.hints = new Hints(this);
    this.drawer = new Drawer(this);
    this.root = el("section", { class: "pane moves-pane", "aria-label": "Moves" },
      this.tabs.root, this.tools, this.attention.root, this.words.root, this.titles, this.list, this.drawer.root);
    for (const kind of ["click", "dblclick"]) this.root.addEventListener(kind, (event) => this.meant(event), { capture: true });
  }

  open(group) {
    this.group = group;
    this.tabs.select(group);
    this.unchoose();
    this.arrange();
    this.draw();
    this.list.scrollTop = 0;
  }

  /** Another position: what was typed has been played. */
  arrive() {
    if (this.typed && this.typed === this.filter.trim()) this.search.value = this.filter = "";
    this.typed = null;
  }

  /** Until the moves of the position are there, the rows of the one before stand in their place, and are none. */
  hold(on) {
    this.root.setAttribute("aria-busy", String(on));
    if (!on) return;
    this.unchoose();
    this.rows.clear();
    for (const row of this.list.children) row.removeAttribute("data-move");
  }

  /** A new position, or the same with more known about it. */
  update(changed) {
    const moves = this.board.data.moves;
    if (changed) {
      this.rows.clear();
      this.chosen = this.unblocked = this.playing = null;
      this.order.settled = false;
      this.list.scrollTop = 0;
    }
    this.moves = new Map(moves.map((move, index) => [move.text, { ...move, index }]));
    if (changed) this.order.update();
    else this.arrange();
    if (changed && this.plan.length) this.afterUnblocking();
    this.draw();
  }

  /** A step has been played: the next one stands ready, last the move that was blocked. */
  afterUnblocking() {
    const next = this.plan[0];
    if (!this.moves.has(next)) return void (this.plan = []);
    this.find("all", next);
    this.unblocked = next;
  }

  unblock(way) {
    this.play(way.moves[0]);
    this.plan = [...way.moves.slice(1), way.then].filter(Boolean);
  }

  /** A way and the move that it leads to, in one go. */
  whole(way) {
    return [...way.moves, way.then].filter(Boolean).join("; ");
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

  /** Has a move's text all these words, or what others call its kind? */
  matches(words, text) {
    const command = (this.board.data.commands || {})[text.split(" ")[0]];
    const searched = `${text} ${(command && command[2]) || ""}`.toLowerCase(); // words may stand apart: unroll and jam
    return words.every((word) => searched.includes(word));
  }

  result(text) {
    const move = this.moves.get(text);
    const feed = this.board.feed;
    return move && this.board.data.moves && feed && feed.position === this.board.data.position.id ? feed.results[move.index] : 0;
  }

  /** How fast what a move leads to is against the position on the board, null where that is not known. */
  speed(text) {
    return Speed.of(this.result(text));
  }

  /** What rows are ordered by: the time against now where there is one, else the time. */
  cost(text) {
    const [result, speed] = [this.result(text), this.speed(text)];
    if (speed !== null) return 1 / speed.value;
    return Array.isArray(result) && typeof result[0] === "number" ? result[0] : null;
  }

  /** Which rows are shown, in the frozen order. */
  arrange() {
    if (!this.board.data.moves) return;
    if (this.group === "blocked") return this.drawBlocked();
    const words = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = this.order.list.filter((text) => {
      const move = this.moves.get(text);
      if (this.group === "selection" && !this.atSelection(move)) return false;
      if (this.group === "enablers" && !move.opens.length) return false;
      return this.matches(words, text);
    });
    if (this.chosen !== null && !shown.includes(this.chosen)) this.unchoose();
    const nodes = shown.map((text) => this.row(text));
    if (nodes.length !== this.list.children.length || nodes.some((node, i) => node !== this.list.children[i])) {
      const top = this.list.scrollTop;
      this.titles.hidden = !nodes.length;
      this.list.replaceChildren(...(nodes.length ? nodes : [el("p", { class: "empty" }, this.emptySentence())]));
      this.list.scrollTop = top;
    }
    this.count.textContent = shown.length === this.order.list.length ? plural(shown.length, "move") : `${shown.length} of ${this.order.list.length}`;
    this.counts();
    this.fill();
    this.words.draw(shown.length);
    this.attention.look();
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

  /** Put a beginning into the field, to be gone on with. */
  write(text) {
    this.search.value = this.filter = text;
    this.arrange();
    this.draw();
    this.search.focus();
  }

  /** What was typed is refused: said where it stands. False where nothing is. */
  refuse(sentence) {
    if (this.typed === null || this.typed !== this.filter.trim()) return false;
    this.words.refuse(sentence);
    return true;
  }

  emptySentence() {
    if (this.group === "selection" && this.board.selection === null) {
      return "Nothing is selected. Click a line, or a number in front of it (a scope), in the program.";
    }
    if (this.command()) return "Enter plays what you typed: any legal parameter will do, also one not listed.";
    if (this.filter) return "No move that is legal here has what you typed. Escape clears it; ? tells all moves and recipes.";
    if (this.group === "selection") return "No legal move touches the selection.";
    if (this.group === "enablers") return this.board.data.enablers ? "No legal move here opens a blocked one." : "Looking for moves that open others…";
    return "No legal move here.";
  }

  counts() {
    const moves = [...this.moves.values()];
    put(this.tabs.buttons.get("all"), `All ${moves.length}`);
    const selected = moves.filter((m) => this.atSelection(m)).length;
    put(this.tabs.buttons.get("selection"), this.board.selection === null ? "At the selection" : `At the selection ${selected}`);
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
    if (!row) {
      const move = this.moves.get(text);
      row = new MoveRow(move, this.summary(move.name), this.board.changing());
      this.rows.set(text, row);
    }
    return row.root;
  }

  /** Put what is measured into the rows. */
  fill() {
    for (const [text, row] of this.rows) row.show(this.result(text));
  }

  /** New results came. */
  refresh() {
    this.order.settle();
    this.fill();
    this.drawer.draw();
    if (this.chosen === null && !this.list.matches(":hover")) this.pointOut();
  }

  /** The later clicks of a double one may meet what the position shows that the first one led to: that is not meant. */
  meant(event) {
    const row = event.target.closest("[data-move]");
    const about = `${this.board.data.position.id} ${row ? row.dataset.move : ""}`;
    if (event.type === "click" && event.detail < 2) this.pressed = about;
    else if (about !== this.pressed) event.stopPropagation();
  }

  clicked(event) {
    const row = event.target.closest("[data-move]");
    if (!row) return;
    if (event.target.closest(".apply")) this.play(row.dataset.move);
    else this.choose(row.dataset.move);
  }

  doubled(event) {
    const row = event.target.closest("[data-move]");
    if (row && this.group !== "blocked" && !event.target.closest("button")) this.play(row.dataset.move);
  }

  hover(event) {
    const row = event.target.closest("[data-move]");
    if (row && this.group !== "blocked") this.board.ahead.look(row.dataset.move);
    if (row) this.board.involve(this.placesOf(row.dataset.move));
    else this.pointOut();
  }

  /** Mark the nodes of the chosen move, or of the hint. */
  pointOut() {
    this.board.involve(this.chosen === null ? this.hints.paths() : this.placesOf(this.chosen));
  }

  placesOf(text) {
    if (text === null) return [];
    if (this.group === "blocked") return this.blockedMove(text).paths;
    const move = this.moves.get(text);
    return move ? move.paths : [];
  }

  unchoose() {
    const row = this.chosen !== null && this.rows.get(this.chosen);
    if (row) row.root.setAttribute("aria-selected", "false");
    this.chosen = this.unblocked = this.previewed = null;
    this.list.removeAttribute("aria-activedescendant");
    this.board.involve([]);
  }

  choose(text) {
    this.unchoose();
    this.chosen = text;
    for (const row of this.list.querySelectorAll("[data-move]")) {
      row.setAttribute("aria-selected", String(row.dataset.move === text));
      if (row.dataset.move === text) this.list.setAttribute("aria-activedescendant", row.id);
    }
    this.pointOut();
    if (text !== null) this.board.bringInvolved();
    if (text !== null && this.group !== "blocked") {
      this.board.send("look", { move: text });
      this.board.ahead.look(text, 0);
    }
    if (text !== null && this.group === "blocked") {
      this.board.send("why", { move: text }); // that its reason was asked for; a lesson may want that
      const [way] = this.blockedMove(text).ways;
      this.preview(way ? this.whole(way) : null);
    }
    this.draw();
    this.keepInSight(); // the drawer below has opened
  }

  /** Show what an enabler would do, before it is played. */
  preview(enabler) {
    this.previewed = enabler;
    if (enabler !== null) this.board.send("look", { move: enabler });
    this.drawer.draw();
  }

  blockedMove(text) {
    return (this.board.data.blocked || []).find((b) => b.text === text) || { paths: [], ways: [] };
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
    if (this.playing !== null || (!this.board.data.moves && text !== this.typed)) return;
    if (this.board.watching) return void this.board.tell(this.board.watching);
    this.playing = text;
    this.plan = text === this.unblocked ? this.plan.slice(1) : [];
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
    this.attention.draw();
    this.board.panes.dock.update();
    this.order.select.disabled = this.group === "blocked";
    this.order.button.disabled = this.group === "blocked" || this.order.kind !== "gain";
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
    const shown = blocked.filter((b) => this.matches(words, b.text));
    if (this.chosen !== null && !shown.some((b) => b.text === this.chosen)) this.unchoose();
    this.list.replaceChildren(...shown.map((b, number) =>
      blockedRow(b, this.summary(b.text.split(" ")[0]), number, b.text === this.chosen)));
    if (!shown.length) this.list.replaceChildren(el("p", { class: "empty" }, this.filter ? "No blocked move matches the filter." : "Nothing is blocked here."));
    put(this.count, shown.length === blocked.length ? `${blocked.length} refused` : `${shown.length} of ${blocked.length}`);
  }
}

// The board: it holds the panes together, owns the selection, and passes on what the server tells.

const CHANGES = ["play", "take_back", "delete", "undelete", "promote", "ask_drop", "drop"]; // the server refuses them besides

class Board {
  constructor(root) {
    this.root = root;
    this.selection = null;
    this.hovered = null;
    this.involved = [];
    this.data = null;
    this.told = ""; // the version of the server's that is shown, or is about to be
    this.feed = null;
    this.events = new Events("board");
    this.client = this.events.client;
    this.door = new Door(this);
    this.ahead = new Ahead(this);
    this.address = new Address(this);
    this.dialogs = new Dialogs(this);
    this.games = new GamesDialog(this);
    this.help = new Help(this);
    this.start = new StartView(this);
    this.header = new Header(this);
    this.program = new ProgramPane(this);
    this.code = new CodePane(this);
    this.moves = new MovesPane(this);
    this.history = new HistoryPane(this);
    this.chart = new Chart(this);
    this.pin = new Pin(this);
    this.away = new TakeAway(this);
    this.notice = new Notice(this);
    this.panes = new Panes(this);
    this.play = el("div", { class: "play" }, this.header.root, this.panes.root, this.panes.dock.root);
    this.frame = el("div", { class: "board" }, this.start.root, this.play, this.notice.root, this.dialogs.root);
    root.append(this.frame);
    this.drawing = new Drawing(this.frame);
    // Streamlit listens for C and R at the document: keys typed in the board must not reach it.
    this.frame.addEventListener("keydown", (event) => { this.key(event); event.stopPropagation(); });
    const back = () => this.lookAgain();
    const project = () => this.frame.classList.toggle("projector", document.documentElement.classList.contains("dojo-projector"));
    project();
    this.listeners = [
      [document, "keydown", (event) => { if (!event.composedPath().includes(this.frame)) this.key(event); }],
      [window, "dojo:feed", () => this.takeFeed(window.dojoFeed)],
      [window, "focus", back],
      [window, "dojo:projector", project],
      [document, "visibilitychange", back],
      ...this.panes.queries.map((query) => [query, "change", () => this.panes.arrange()]),
    ];
    for (const [target, name, listener] of this.listeners) target.addEventListener(name, listener);
  }

  close() {
    for (const [target, name, listener] of this.listeners) target.removeEventListener(name, listener);
    for (const part of [this.drawing, this.door, this.ahead, this.events, this.address, this.notice]) part.close();
  }

  /** A tab that comes into sight: the game may have gone on in another one. */
  lookAgain() {
    if (document.visibilityState !== "visible" || !this.data || this.data.view !== "play") return;
    if (Date.now() - this.events.sent > 3000) this.send("look_again");
  }

  /** New data from the page; only panes whose part changed are drawn again. */
  update(component) {
    this.events.component = component;
    this.events.acknowledge(component.data.acknowledged);
    this.take(component.data);
    this.door.open(component.data.key);
  }

  /** A board of the server's. */
  take(data) {
    if (!this.ahead.accepts(data)) return;
    this.told = data.version;
    this.drawing.next(() => this.draw(data));
  }

  /** `feed`: of a position that the server has not told of yet. */
  draw(data, feed = null) {
    const before = this.data;
    const old = this.parts || {};
    this.data = this.asPressed(data);
    data = this.data;
    if (data.game) tellTimesIn(data.game.unit);
    this.frame.classList.toggle("embedded", Boolean(data.embedded)); // what stands beside it has this name
    if (data.embedded) put(this.panes.dock.tabs.get("lesson"), data.embedded);
    this.address.update();
    const playing = data.view === "play";
    show(this.start.root, !playing);
    show(this.play, playing);
    if (before && before.view !== data.view) this.toTop();
    if (!playing) {
      this.parts = {};
      this.start.update();
    } else {
      const parts = {};
      for (const name of ["program", "code", "assembly", "profile", "profiling", "moves", "blocked", "enablers", "history", "game", "measuring", "paused"]) {
        parts[name] = JSON.stringify(data[name] ?? null);
      }
      parts.at = `${data.game.id}/${data.position.id}/${data.position.hash}`; // a number may come again
      // A position comes before its moves and its code where these have to be found first: what stands there waits.
      parts.listed = data.moves ? parts.at : old.listed;
      const same = before && before.view === "play" && before.game.id === data.game.id;
      if (same && data.game.changes > before.game.changes && data.game.by && data.game.by !== this.client) {
        this.tell("This game went on in another tab: you see it as it stands now.");
      }
      const changed = (...names) => names.some((name) => parts[name] !== old[name]);
      const arrived = changed("at");
      if (!same) this.fresh();
      if (arrived) {
        // A path names another node after a move: keep the selection only where the line reads the same.
        this.selection = arrived && before && before.program ? this.carried(before) : null;
        this.hovered = null;
        this.involved = [];
        this.feed = feed || (window.dojoFeed && window.dojoFeed.position === data.position.id ? window.dojoFeed : this.feed);
      }
      this.parts = parts;
      if (changed("program", "profile", "profiling", "at")) this.program.update();
      if (arrived) this.moves.arrive();
      this.code.hold(!data.code);
      this.moves.hold(!data.moves);
      if (data.code && changed("program", "code", "assembly", "profile", "at")) this.code.update();
      if (data.moves && changed("moves", "blocked", "enablers", "paused", "listed")) this.moves.update(changed("listed"));
      if (changed("history", "at")) { this.history.update(); this.chart.update(); }
      if (changed("history", "game", "at", "measuring")) this.header.update();
      if (arrived) this.paint();
      this.pin.update();
      this.ahead.prepare();
    }
    this.dialogs.update();
    this.games.update();
    if (window.dojoFeed) this.takeFeed(window.dojoFeed);
  }

  /** What was scrolled was the view before: the next one begins at its top. */
  toTop() {
    for (let at = this.root.getRootNode().host || this.root; at; at = at.parentElement) at.scrollTop = 0;
  }

  /** Another game: its program, its code and all its moves are shown first. */
  fresh() {
    this.panes.fresh();
    this.moves.group = "all";
    this.moves.tabs.select("all");
    this.moves.search.value = this.moves.filter = "";
    for (const place of [this.moves.list, this.code.body]) place.replaceChildren();
    this.program.tab = "text";
    this.program.tabs.select("text");
    show(this.program.switch, false);
    this.code.tab = "c";
    this.code.tabs.select("c");
    this.code.tops = {};
    this.code.shown = null;
  }

  carried(before) {
    const at = this.selection;
    if (at === null || at.startsWith("buffer:")) return at;
    const line = before.program.lines.find((l) => l.path === at);
    const same = line && this.data.program.lines.filter((l) => l.op === line.op);
    return same && same.length === 1 ? same[0].path : null;
  }

  takeFeed(feed) {
    if (!feed) return;
    this.events.acknowledge(feed.acknowledged);
    this.address.acknowledged();
    const notice = feed.notice;
    if (notice && notice.n !== this.noticed) {
      this.noticed = notice.n;
      if (notice.client === this.client || notice.client === "") {
        const said = notice.kind === "error" && this.moves.refuse(notice.text);
        if (!said) this.tell(notice.text, notice.kind, notice.undo ? ["Undo", () => this.send(notice.undo.kind)] : null);
      }
    }
    this.away.arrived(feed.taken);
    if (!this.data || this.data.view !== "play" || feed.view !== "play") return;
    if (this.moves.playing !== null && !this.events.waits((e) => e.kind === "play")) this.moves.released();
    if (feed.position !== this.data.position.id || feed.game !== this.data.game.id) return;
    this.feed = feed;
    this.ahead.heard(feed);
    this.header.refresh();
    if (this.data.moves) this.moves.refresh();
    this.history.refresh();
    this.chart.draw();
    this.code.tell();
    this.pin.refresh();
  }

  tell(text, kind = "info", action = null) {
    this.notice.tell(text, kind, action);
  }

  /** Of somebody else's game, which is seen as they play it and left as it is: why that is. Else empty. */
  get watching() {
    return (this.data && this.data.game && this.data.game.watching) || "";
  }

  /** Attributes of a button that changes the game: who watches sees that there is one, and why it does nothing. */
  changing() {
    return this.watching ? { disabled: "", title: this.watching } : {};
  }

  send(kind, fields = {}) {
    if (this.watching && CHANGES.includes(kind)) return this.tell(this.watching);
    const at = this.data && this.data.view === "play" ? { game: this.data.game.id, position: this.data.position.id } : {};
    const event = this.events.add({ kind, ...at, ...fields });
    this.ahead.sent(event);
    return event.seq;
  }

  /** The server's board, which may not have heard yet what was switched on or off here. */
  asPressed(data) {
    const pressed = this.events.pending.filter((event) => event.kind === "measure").at(-1);
    return pressed && data.game && pressed.game === data.game.id ? { ...data, measuring: pressed.on } : data;
  }

  toggleMeasuring() {
    // At once, not when the server has answered: a second press means the other.
    this.data.measuring = !this.data.measuring;
    this.send("measure", { on: this.data.measuring });
  }

  isOperation(path) {
    return this.data.program.lines.some((line) => line.path === path);
  }

  select(path, from = null) {
    this.selection = path === this.selection ? null : path;
    this.paint(from || this.program);
    this.moves.arrange();
    this.moves.draw();
    this.send("select", { path: this.selection });
  }

  hover(path) {
    if (path === this.hovered) return;
    this.hovered = path;
    this.program.paint();
    paintLines(this.code.body, this);
  }

  /** The nodes that a move names, shown while the move is under the pointer or chosen. */
  involve(paths) {
    if (paths.join() === this.involved.join()) return;
    this.involved = paths;
    this.program.paint();
    paintLines(this.code.body, this);
  }

  /** Scroll the program so that a node that the chosen move names is in view. */
  bringInvolved() {
    const line = this.program.body.querySelector(".involved");
    if (line && line.closest(".line")) bring(this.program.body, line.closest(".line"));
  }

  paint(from = null) {
    this.program.paint();
    this.code.paint(from);
    this.pin.bringSelected(from);
    const row = this.program.body.querySelector(".line.selected");
    if (row && from === this.code) bring(this.program.body, row);
  }

  /** Up or down in the moves, from wherever the focus was. */
  walk(step) {
    this.panes.reveal("moves");
    this.moves.list.focus({ preventScroll: true });
    this.moves.walk(step);
  }

  key(event) {
    if (!this.data || this.data.view !== "play" || this.dialogs.box.open) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    if (target.matches && target.matches("input, textarea, select")) return;
    const keys = {
      ArrowLeft: () => this.send("step", { to: "back" }),
      ArrowRight: () => this.send("step", { to: "forward" }),
      ArrowDown: () => this.walk(1),
      ArrowUp: () => this.walk(-1),
      p: () => this.pin.toggle(),
      u: () => this.send("take_back"),
      h: () => this.moves.hints.ask(),
      b: () => this.send("step", { to: "branch" }),
      m: () => this.toggleMeasuring(),
      f: () => this.panes.fill(),
      w: () => this.panes.wrap(),
      "+": () => this.panes.resize(1),
      "-": () => this.panes.resize(-1),
      "/": () => { this.panes.reveal("moves"); this.moves.search.focus(); },
      "?": () => this.help.open(),
      Escape: () => {
        if (this.moves.escape()) return;
        if (this.selection !== null) this.select(this.selection);
        else this.panes.leave();
      },
    };
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    act();
    event.preventDefault();
  }
}

const boards = new WeakMap();

export default function mount(component) {
  const root = component.parentElement;
  if (!boards.has(root)) boards.set(root, new Board(root));
  const board = boards.get(root);
  board.update({ ...component, data: component.data[0] });
  return () => {
    // Called when the component leaves the page, not when its data changes.
    board.close();
    board.frame.remove();
    boards.delete(root);
  };
}

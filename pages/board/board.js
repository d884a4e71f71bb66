// The board: it holds the panes together, owns the selection, and talks with the server.
//
// Events go out numbered and are sent again until the feed acknowledges them; the server applies each
// number once and drops what was made on a position that is no longer current. So a lost message is
// repaired and a double click plays one move.

class Board {
  constructor(root) {
    this.root = root;
    this.client = Math.random().toString(36).slice(2, 10);
    this.sequence = 0;
    this.pending = [];
    this.selection = null;
    this.hovered = null;
    this.involved = [];
    this.data = null;
    this.feed = null;
    this.dialogs = new Dialogs(this);
    this.start = new StartView(this);
    this.header = new Header(this);
    this.program = new ProgramPane(this);
    this.code = new CodePane(this);
    this.moves = new MovesPane(this);
    this.history = new HistoryPane(this);
    this.chart = new Chart(this);
    this.notice = el("div", { class: "notice", role: "status", hidden: true });
    this.play = el("div", { class: "play" }, this.header.root,
      el("div", { class: "columns" }, this.program.root, this.code.root, this.moves.root),
      el("div", { class: "below" }, this.history.root, this.chart.root));
    this.frame = el("div", { class: "board" }, this.start.root, this.play, this.notice, this.dialogs.root);
    root.append(this.frame);
    // Streamlit listens for C and R at the document: keys typed in the board must not reach it.
    this.frame.addEventListener("keydown", (event) => { this.key(event); event.stopPropagation(); });
    this.listeners = {
      key: (event) => { if (!event.composedPath().includes(this.frame)) this.key(event); },
      feed: () => this.takeFeed(window.dojoFeed),
    };
    document.addEventListener("keydown", this.listeners.key);
    window.addEventListener("dojo:feed", this.listeners.feed);
    this.retry = setInterval(() => { if (this.pending.length && Date.now() - this.sent > 2500) this.flush(); }, 1000);
  }

  close() {
    document.removeEventListener("keydown", this.listeners.key);
    window.removeEventListener("dojo:feed", this.listeners.feed);
    clearInterval(this.retry);
  }

  /** New data from the page; only panes whose part changed are drawn again. */
  update(component) {
    this.component = component;
    const before = this.data;
    const data = component.data;
    const old = this.parts || {};
    this.data = data;
    const playing = data.view === "play";
    show(this.start.root, !playing);
    show(this.play, playing);
    if (!playing) {
      this.parts = {};
      this.start.update();
    } else {
      const parts = {};
      for (const name of ["program", "code", "assembly", "moves", "blocked", "enablers", "history", "game", "measuring"]) {
        parts[name] = JSON.stringify(data[name] ?? null);
      }
      parts.at = `${data.game.id}/${data.position.id}`;
      const changed = (...names) => names.some((name) => parts[name] !== old[name]);
      const arrived = changed("at");
      if (arrived) {
        // A path names another node after a move: keep the selection only where the line reads the same.
        this.selection = arrived && before && before.program ? this.carried(before) : null;
        this.hovered = null;
        this.involved = [];
        this.feed = window.dojoFeed && window.dojoFeed.position === data.position.id ? window.dojoFeed : this.feed;
      }
      this.parts = parts;
      if (changed("program", "at")) this.program.update();
      if (changed("program", "code", "assembly", "at")) this.code.update();
      if (changed("moves", "blocked", "enablers", "at")) this.moves.update(changed("at"));
      if (changed("history", "at")) { this.history.update(); this.chart.update(); }
      if (changed("history", "game", "at", "measuring")) this.header.update();
      if (arrived) this.paint();
    }
    this.dialogs.update();
    if (window.dojoFeed) this.takeFeed(window.dojoFeed);
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
    const acknowledged = feed.acknowledged[this.client] || 0;
    this.pending = this.pending.filter((event) => event.seq > acknowledged);
    if (feed.notice && feed.notice.n !== this.noticed) {
      this.noticed = feed.notice.n;
      this.tell(feed.notice.text, feed.notice.kind);
    }
    if (feed.download && feed.download.n !== this.downloaded) {
      this.downloaded = feed.download.n;
      if (feed.download.client === this.client) this.save(feed.download);
    }
    if (!this.data || this.data.view !== "play" || feed.view !== "play") return;
    if (this.moves.playing !== null && !this.pending.some((e) => e.kind === "play")) this.moves.released();
    if (feed.position !== this.data.position.id || feed.game !== this.data.game.id) return;
    this.feed = feed;
    this.header.refresh();
    this.moves.refresh();
    this.history.refresh();
    this.chart.draw();
  }

  save({ name, text }) {
    const link = el("a", { href: URL.createObjectURL(new Blob([text], { type: "text/plain" })), download: name });
    this.frame.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  tell(text, kind = "info") {
    put(this.notice, text);
    this.notice.className = `notice ${kind}`;
    show(this.notice, true);
    clearTimeout(this.noticeTimer);
    this.noticeTimer = setTimeout(() => show(this.notice, false), kind === "error" ? 12000 : 5000);
  }

  send(kind, fields = {}) {
    this.sequence += 1;
    const at = this.data && this.data.view === "play" ? { game: this.data.game.id, position: this.data.position.id } : {};
    this.pending.push({ seq: this.sequence, kind, ...at, ...fields });
    this.flush();
  }

  flush() {
    this.sent = Date.now();
    this.component.setTriggerValue("events", { client: this.client, events: this.pending });
  }

  toggleMeasuring() {
    this.send("measure", { on: !this.data.measuring });
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

  paint(from = null) {
    this.program.paint();
    this.code.paint(from);
    const row = this.program.body.querySelector(".line.selected");
    if (row && from === this.code) bring(this.program.body, row);
  }

  key(event) {
    if (!this.data || this.data.view !== "play" || this.dialogs.box.open) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    if (target.matches && target.matches("input, textarea, select")) return;
    const keys = {
      ArrowLeft: () => this.send("step", { to: "back" }),
      ArrowRight: () => this.send("step", { to: "forward" }),
      ArrowDown: () => { this.moves.list.focus({ preventScroll: true }); this.moves.walk(1); },
      ArrowUp: () => { this.moves.list.focus({ preventScroll: true }); this.moves.walk(-1); },
      u: () => this.send("take_back"),
      b: () => this.send("step", { to: "branch" }),
      m: () => this.toggleMeasuring(),
      "/": () => this.moves.search.focus(),
      "?": () => this.dialogs.keys(),
      Escape: () => { if (this.selection !== null) this.select(this.selection); },
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
  board.update(component);
  return () => {
    // Called when the component leaves the page, not when its data changes.
    board.close();
    board.frame.remove();
    boards.delete(root);
  };
}

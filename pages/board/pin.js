// The pinned position: while there is one, the program, its C and its assembly are shown as what differs from it,
// with both times on top. The server keeps which one it is and hands out its texts.

class Pin {
  constructor(board) {
    this.board = board;
    this.layout = new LayoutSwitch(() => this.update());
    this.back = el("button", { class: "small", type: "button", title: "Go to the pinned position", onclick: () => board.send("goto", { id: this.pinned.id }) }, "Go there");
    this.versus = new Versus(["Pinned", "Here"], this.layout.root, this.back,
      el("button", { class: "small", type: "button", title: "Show the texts themselves again", onclick: () => board.send("unpin") }, "Unpin"));
    this.root = el("section", { class: "pinned", "aria-label": "Compared with the pinned position", hidden: true }, this.versus.root);
    this.button = el("button", { class: "ghost", type: "button", "aria-pressed": "false",
      title: "Compare with this position: go on, and the program, its code and its assembly show what differs from here (P)", onclick: () => this.toggle() }, "Pin");
    this.views = [[board.program, "Program"], [board.code, "Generated code"]].map(([pane, label]) => this.view(pane, label));
    board.header.root.append(this.root);
    board.header.buttons.keys.before(this.button);
  }

  view(pane, label) {
    const difference = new Difference(label, () => this.board.paint(pane));
    show(difference.root, false);
    pane.body.after(difference.root);
    difference.root.addEventListener("click", (event) => {
      const path = event.target.closest("button") ? null : pathAt(event);
      if (path !== null) this.board.select(path, pane);
    });
    difference.table.addEventListener("keydown", (event) => { // they scroll, and leave the moves alone
      if (event.key === "ArrowUp" || event.key === "ArrowDown") event.stopPropagation();
    });
    difference.root.addEventListener("mouseover", (event) => this.board.hover(pathAt(event)));
    difference.root.addEventListener("mouseleave", () => this.board.hover(null));
    return { pane, difference, shown: null };
  }

  get pinned() {
    return (this.board.data && this.board.data.pinned) || null;
  }

  /** Is it the position on the board that is pinned? */
  get here() {
    const { game, position } = this.board.data;
    return this.pinned !== null && this.pinned.game === game.id && this.pinned.id === position.id && this.pinned.hash === position.hash;
  }

  toggle() {
    this.board.send(this.here ? "unpin" : "pin");
  }

  /** New data, another tab or layout. */
  update() {
    const { pinned, here } = this;
    this.button.setAttribute("aria-pressed", String(here));
    show(this.root, pinned !== null);
    for (const view of this.views) this.draw(view, pinned !== null && !here ? this.texts(view.pane) : null);
    if (pinned === null) return;
    show(this.back, !here && pinned.game === this.board.data.game.id);
    this.refresh();
    this.board.paint();
  }

  /** The two texts of what a pane's tab shows; null where it shows none, a sentence where one is not there. */
  texts(pane) {
    const { data } = this.board;
    if (pane === this.board.program) {
      if (pane.tab !== "text") return null;
      const { head, lines } = data.program;
      const rows = [...head.map(({ text }) => [text, null]), ...lines.map(({ text, path }) => [text, path])];
      // A buffer's long table is cut off on the board, so it is here.
      const cut = this.pinned.program.map((line, at) => (head[at] && head[at].text.endsWith(" …") && line.startsWith(head[at].text.slice(0, -2)) ? head[at].text : line));
      return { kind: "program", before: cut, rows };
    }
    const part = pane.tab === "c" ? "code" : "assembly";
    const [before, after] = [this.pinned[part], data[part]];
    for (const text of [after, before]) {
      if (!text) return { kind: "", sentence: "Compiling for the assembly…" };
      if (!text.lines) return { kind: "", sentence: text.error };
    }
    return { kind: pane.tab, before: before.lines.map(([line]) => line), rows: after.lines };
  }

  draw(view, texts) {
    const { pane, difference } = view;
    show(difference.root, texts !== null);
    show(pane.body, texts === null);
    const key = texts && JSON.stringify([texts, this.layout.value, this.names]);
    if (key === view.shown) return;
    view.shown = key;
    if (texts === null) return difference.table.replaceChildren(); // what is hidden is not marked either
    if (texts.sentence) return difference.tell(texts.sentence);
    difference.draw(texts.before, texts.rows.map(([line]) => line), {
      kind: texts.kind, layout: this.layout.value, names: this.names, paths: texts.rows.map(([, path]) => path),
    });
  }

  get names() {
    const { data } = this.board;
    const { pinned } = this;
    const node = data.history.nodes.find(({ id }) => id === data.position.id);
    const other = pinned.game === data.game.id ? "" : ` of ${pinned.title}`;
    return [`${pinned.name}${other}`, node.parent === null ? "Start" : `${node.ply}. ${node.move}`];
  }

  /** The feed has new times. */
  refresh() {
    const { feed } = this.board;
    if (!this.pinned || !feed) return;
    const known = feed.pinned;
    const speed = known && known.speed && !this.here && known.board === this.board.data.position.hash ? new Speed(known.speed) : null;
    const time = (seconds) => (seconds > 0 ? duration(seconds) : this.board.data.game.timed ? "not measured" : "");
    this.versus.tell(this.here ? [this.names[0], "the same: go to another position"] : this.names,
      [time(known && known.seconds), this.here ? "" : time(feed.now.seconds)],
      speed && { words: speed.decided ? speed.words : `${speed.words} (${ratio(speed.value)})`, tone: speed.tone, title: speed.sentence.replace("the position on the board", "the pinned position") });
  }

  /** The chosen node's first line is in view, unless it was chosen there. */
  bringSelected(from) {
    const chosen = this.board.selection;
    for (const { pane, difference } of this.views) {
      if (pane === from || difference.root.hidden || chosen === null) continue;
      difference.reveal((path) => within(path, chosen));
      paintLines(difference.root, this.board);
      const line = difference.table.querySelector(".line.selected");
      if (line) difference.bring(line);
    }
  }
}

// Dialogues: one box for all of them, and what removing a move in the middle of a line would do.

class Dialogs {
  constructor(board) {
    this.board = board;
    this.box = el("dialog", { class: "dialog" });
    this.box.addEventListener("click", (event) => { if (event.target === this.box) this.box.close(); });
    this.root = this.box;
    this.shown = null;
    this.dropping = null;
    this.box.addEventListener("close", () => {
      this.shown = null;
      board.notice.root.append(board.notice.box);
      if (this.dropping !== null) board.send("drop", { mode: "cancel" });
      this.dropping = null;
    });
  }

  /** `name` tells which dialogue it is. */
  open(name, ...parts) {
    this.shown = name;
    this.box.replaceChildren(...parts, ...(this.box.contains(this.board.notice.box) ? [this.board.notice.box] : []));
    if (!this.box.open) this.box.showModal();
  }

  foot() {
    return el("div", { class: "dialog-foot" },
      el("button", { class: "small primary", type: "button", onclick: () => this.box.close() }, "Close"));
  }

  /** The report of a replay without one move, before anything is changed. */
  update() {
    const drop = this.board.data.drop || null;
    if (!drop) {
      if (this.dropping !== null) { this.dropping = null; this.box.close(); }
      return;
    }
    if (this.dropping === drop.id) return;
    this.dropping = drop.id;
    const choose = (mode) => () => { this.dropping = null; this.box.close(); this.board.send("drop", { mode }); };
    const bad = drop.entries.filter((e) => e.outcome === "refused" || e.outcome === "place changed").length;
    this.open("drop", el("h2", {}, "Remove ", el("code", {}, drop.move)),
      el("p", {}, drop.entries.length === 0 ? "Nothing was played after it."
        : bad === 0 ? drop.entries.length === 1 ? "The later move still applies." : `All ${drop.entries.length} later moves still apply.`
        : `${bad} of ${plural(drop.entries.length, "later move")} no longer apply.`),
      el("div", { class: "report scroll" }, ...drop.entries.map((e) => {
        const fine = e.outcome === "same" || e.outcome === "readdressed";
        return el("div", { class: `report-row ${fine ? "" : "failure"}` },
          el("span", { "aria-label": fine ? "applies" : "does not apply" }, fine ? "✓" : "✕"), el("code", {}, e.move),
          el("span", { class: "quiet" }, e.outcome === "readdressed" ? `now ${e.new}` : e.outcome === "same" ? "" : e.reason || e.outcome));
      })),
      el("p", { class: "quiet" }, "The replay becomes a new branch; the line as it is stays."),
      el("div", { class: "dialog-foot" },
        el("button", { class: "small", type: "button", onclick: choose("cancel") }, "Cancel"),
        bad ? el("button", { class: "small", type: "button", onclick: choose("skip") }, "Skip what no longer applies") : "",
        el("button", { class: "small primary", type: "button", onclick: choose("prefix") }, bad ? "Keep up to the first that fails" : "Remove the move")));
  }
}

// Dialogues: the keys, and what removing a move in the middle of a line would do.

const KEYS = [
  ["← →", "one move back, forward"], ["U", "take back"], ["B", "next branch"], ["↑ ↓", "up, down in a list"],
  ["Enter", "play the selected move"], ["/", "filter the moves, or type one"], ["Esc", "clear the filter, the selection"],
  ["M", "measure, pause"], ["?", "these keys"],
];

class Dialogs {
  constructor(board) {
    this.board = board;
    this.box = el("dialog", { class: "dialog" });
    this.box.addEventListener("click", (event) => { if (event.target === this.box) this.box.close(); });
    this.root = this.box;
    this.dropping = null;
    this.box.addEventListener("close", () => {
      if (this.dropping !== null) board.send("drop", { mode: "cancel" });
      this.dropping = null;
    });
  }

  open(...parts) {
    this.box.replaceChildren(...parts);
    if (!this.box.open) this.box.showModal();
  }

  keys() {
    this.open(el("h2", {}, "Keys"),
      el("table", {}, ...KEYS.map(([key, words]) => el("tr", {}, el("th", { scope: "row" }, key), el("td", {}, words)))),
      el("div", { class: "dialog-foot" }, el("button", { class: "small primary", type: "button", onclick: () => this.box.close() }, "Close")));
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
    this.open(el("h2", {}, "Remove ", el("code", {}, drop.move)),
      el("p", {}, drop.entries.length === 0 ? "Nothing was played after it."
        : bad === 0 ? `All ${plural(drop.entries.length, "later move")} still apply.`
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

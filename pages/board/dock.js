// In a small window: the bar at its foot, which always stays in reach. It has the ways through the line, Apply for the
// chosen move, and the tabs of the panes, of which one is shown at a time.

const PANE_TABS = [["lesson", "Lesson"], ["program", "Program"], ["code", "Code"], ["moves", "Moves"], ["history", "History"], ["chart", "Chart"]];

class Dock {
  constructor(panes) {
    this.panes = panes;
    this.apply = el("button", { class: "nav primary", type: "button", onclick: () => this.play() }, "Apply");
    this.acts = el("div", { class: "acts" }, this.apply);
    this.tabs = new Map(PANE_TABS.map(([name, words]) => [name, el("button", { class: "tab", type: "button", role: "tab", "data-pane": name,
      id: `tab-${name}`, "aria-controls": `pane-${name}`, onclick: () => panes.reveal(name, true) }, words)]));
    this.tabs.get("lesson").removeAttribute("aria-controls"); // it stands in a component of its own
    this.bar = el("div", { class: "tabs", role: "tablist", "aria-label": "Panes" }, ...this.tabs.values());
    this.bar.addEventListener("keydown", (event) => this.key(event));
    this.root = el("div", { class: "dock" }, this.acts, this.bar);
  }

  /** Which move Apply plays: the chosen one, else the one that is typed; null: none. */
  get move() {
    const { moves } = this.panes.board;
    if (moves.chosen !== null) return moves.group === "blocked" ? null : moves.chosen;
    return moves.filter && moves.command() ? moves.filter.trim() : null;
  }

  play() {
    const { moves } = this.panes.board;
    if (moves.chosen !== null) moves.play(moves.chosen);
    else moves.playTyped();
  }

  update() {
    const { move } = this;
    const { watching } = this.panes.board;
    this.apply.disabled = move === null || Boolean(watching);
    this.apply.title = watching || (move === null ? "Choose a move first" : `Apply ${move}`);
  }

  select(shown) {
    for (const [name, tab] of this.tabs) {
      tab.setAttribute("aria-selected", String(name === shown));
      tab.tabIndex = name === shown ? 0 : -1;
    }
  }

  key(event) {
    const tabs = [...this.tabs.values()].filter((tab) => !tab.hidden);
    const at = tabs.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    const tab = tabs[(to + tabs.length) % tabs.length];
    this.panes.reveal(tab.dataset.pane);
    tab.focus();
    event.preventDefault();
    event.stopPropagation();
  }
}

// What is measured first, and what not: the server hears which rows are on the screen, and which kinds of moves are
// paused. Their names stand above the rows, each with a button that lets it go on.

const SETTLED = 350; // ms that the rows stand still until the server hears of them
const MOST_SEEN = 60; // of one message

class Attention {
  constructor(pane) {
    this.pane = pane;
    this.told = "";
    this.timer = null;
    this.root = el("div", { class: "paused", hidden: true });
    pane.list.addEventListener("scroll", () => this.look());
  }

  get paused() { return this.pane.board.data.paused || []; }

  /** The rows may be other ones now. */
  look() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), SETTLED);
  }

  tell() {
    const { board, list, group } = this.pane;
    const { data } = board;
    if (!data || data.view !== "play" || !data.measuring || group === "blocked") return;
    const top = list.offsetTop + list.scrollTop;
    const moves = [...list.querySelectorAll("[data-move]")]
      .filter((row) => row.offsetTop + row.offsetHeight > top && row.offsetTop < top + list.clientHeight)
      .slice(0, MOST_SEEN).map((row) => row.dataset.move);
    const told = JSON.stringify([data.game.id, data.position.id, moves]);
    if (!moves.length || told === this.told) return;
    this.told = told;
    board.send("sight", { moves });
  }

  pause(name, on) {
    this.pane.board.send("pause", { name, on });
  }

  draw() {
    const { paused } = this;
    show(this.root, paused.length > 0);
    this.root.replaceChildren("Not measured: ", ...paused.map((name) => el("button", { class: "small", type: "button",
      "data-resume": name, title: `Measure moves of the kind ${name} again`, onclick: () => this.pause(name, false) }, `${name} ✕`)));
  }

  /** In the drawer of a move: its kind is not measured for now, or again. */
  button(name) {
    const on = this.paused.includes(name);
    return el("button", { class: "small", type: "button", "data-pause": name, "aria-pressed": String(on),
      title: on ? `Measure moves of the kind ${name} again` : `Leave moves of the kind ${name} unmeasured for now: what is left comes sooner`,
      onclick: () => this.pause(name, !on) }, on ? `Measure ${name}` : `Pause ${name}`);
  }
}

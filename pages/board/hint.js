// What helps a player on: hints in three levels (kind, place, move), beside them what a learned policy would play,
// and what to do first. All stand in the drawer below the moves while no move is chosen there.

const LEARNED_SHOWN = 5; // moves of a policy; the rest are less likely still

function chance(probability) {
  return probability < 0.001 ? "<0.1%" : `${(100 * probability).toFixed(probability < 0.0995 ? 1 : 0)}%`;
}

class Hints {
  constructor(pane) {
    this.pane = pane;
  }

  get board() { return this.pane.board; }

  /** What the server hints at this position, as far as it has been asked for. */
  get shown() {
    const { feed, data } = this.board; // the pointer may leave the table on its way to the start screen
    return (feed && data.position && feed.position === data.position.id && feed.hint) || null;
  }

  ask() {
    if (this.pane.group === "blocked") this.pane.open("all");
    this.pane.unchoose();
    this.board.panes.reveal("moves");
    this.board.send("hint");
    this.pane.draw();
  }

  /** The nodes that the hint names. */
  paths() {
    return (this.shown && this.shown.paths) || [];
  }

  parts() {
    return [...this.advised(), ...this.learned()];
  }

  /** What a learned policy would play: its likeliest moves, each to be played. */
  learned() {
    const { learned } = this.board.feed;
    if (!learned) return [];
    const head = el("strong", {}, "Learned ");
    if (!learned.words) return [el("p", { class: "hint learned" }, head, "Asking the policy…")];
    if (learned.stop === null) return this.shown.level > 1 ? [] : [el("p", { class: "hint learned" }, head, learned.words)]; // why there is none: once
    const row = ({ move, probability }) => el("li", {},
      el("button", { class: "learned-move", type: "button", "data-learned": move, title: "Play it", onclick: () => this.pane.play(move), ...this.board.changing() },
        el("span", { class: "chance" }, chance(probability)), el("code", {}, move)));
    return [
      el("p", { class: "learned" }, head, el("span", { class: "quiet" }, `from good lines of kernels: how likely each move is to be the next of one. ${learned.words}`)),
      el("ol", { class: "learned-moves", "aria-label": "What a learned policy would play" }, ...learned.moves.slice(0, LEARNED_SHOWN).map(row),
        el("li", { class: "quiet" }, el("span", { class: "chance" }, chance(learned.stop)), "stop: no move is worth more")),
    ];
  }

  advised() {
    const hint = this.shown;
    if (hint.source === "waiting") return [el("p", { class: "hint" }, "Asking the heuristic pass what it would play…")];
    if (hint.source === "none") {
      return [el("p", {}, el("strong", {}, "No hint. "), `${this.timed ? "Nothing measured here is faster, and the" : "The"} heuristic pass would play nothing more. Take some moves back and try another variation, or play an enabler: it is neutral now and opens something.`)];
    }
    const measured = hint.source === "measured";
    return [
      el("div", { class: "drawer-head" }, el("strong", {}, `Hint ${hint.level} of 3`),
        el("span", { class: "quiet" }, measured ? "from what was measured here" : "from the heuristic pass, which measures nothing"),
        hint.level < 3 ? el("button", { class: "small", type: "button", onclick: () => this.ask() }, hint.level === 1 ? "Where?  H" : "Which move?  H")
          : el("button", { class: "small primary", type: "button", onclick: () => this.pane.play(hint.move), ...this.board.changing() }, "Apply")),
      el("p", {}, measured ? "A move of this kind makes the program faster: " : `${this.timed ? "Nothing measured here is faster so far. " : ""}An expert would go on with `,
        el("code", {}, hint.kind), ". ", ...prose(hint.words)),
      hint.level >= 2 ? el("p", {}, "The place: ", el("code", {}, hint.place), hint.paths.length ? ", marked in the program." : ".") : null,
      hint.level >= 3 ? el("p", {}, "The move: ", el("code", {}, hint.move), hint.gain
        ? el("span", { class: "faster" }, `  ▲ ${ratio(hint.gain)}`) : "") : null,
    ];
  }

  /** Is any move of this position timed? */
  get timed() {
    return [...this.pane.moves.keys()].some((text) => this.pane.speed(text));
  }

  /** The fastest move measured here, of those that are surely faster than now. */
  best() {
    let best = null;
    for (const text of this.pane.moves.keys()) {
      const speed = this.pane.speed(text);
      if (speed && speed.verdict === "faster" && (best === null || speed.value > best.gain)) best = { text, gain: speed.value };
    }
    return best;
  }

  /** What to do next: in full on a game's first move, later in a line. */
  guide() {
    const { board, pane } = this;
    const best = this.best();
    const begun = board.data.history.nodes.length > 1;
    const { counts, unit, play } = board.data.game;
    const fastest = best === null ? null : el("p", { class: "found" }, `Fastest measured${counts ? " here" : ""}: `, el("code", {}, best.text),
      el("span", { class: "faster" }, `  ▲ ${ratio(best.gain)}  `),
      el("button", { class: "small", type: "button", onclick: () => pane.find("all", best.text) }, "Show it"));
    if (!counts || unit !== "seconds") return [fastest, el("p", { class: "hint" }, `${HINTS.move} ${play || HINTS.untimed}`)];
    if (board.watching) return [fastest, el("p", { class: "hint" }, board.watching)];
    if (begun) return [fastest, el("p", { class: "hint" }, HINTS.all)];
    if (!board.data.measuring) return [el("p", { class: "hint" }, HINTS.all)];
    return [
      el("p", {}, el("strong", {}, "Your first move. "), "Each row is a way to rewrite the program that keeps its meaning; each is being verified and timed on this computer. ",
        el("span", { class: "faster" }, "▲"), " makes it faster: press ", el("strong", {}, "Apply"), " on such a row. Nothing is lost: you can always take back."),
      fastest || el("p", { class: "hint" }, "The first times come in a few seconds. Stuck? H gives a hint, ? explains the rest."),
    ];
  }

  /** Changes whenever `guide` would say something else. */
  guideKey() {
    const best = this.best();
    const { data } = this.board;
    return JSON.stringify(["guide", this.board.watching, data.history.nodes.length > 1, data.measuring, data.game.target, best && best.text, best && ratio(best.gain)]);
  }
}

// Below the table: what is known of the chosen move, why it is refused, or what the typed one does.

const FAILURES = {
  compile_error: "does not compile", wrong_result: "wrong result", unwritten: "unwritten elements",
  out_of_bounds: "out of bounds", crash: "crash", timeout: "timeout", refused: "no code for it",
};

const FAILURE_SENTENCES = {
  compile_error: "The generated C did not compile. This is a fault of the generator, not of yours; the compiler said:",
  wrong_result: "The result differs from the reference by more than rounding explains. This is a fault of ours; the position is kept for repair.",
  unwritten: "Some elements of the output were never written. This is a fault of ours; the position is kept for repair.",
  out_of_bounds: "The code wrote outside its arrays. This is a fault of ours; the position is kept for repair.",
  crash: "The code crashed in its own process; nothing else was harmed.",
  timeout: "The run took longer than its time limit and was stopped.",
  refused: "The code generator does not support this program yet, so it has no time. The move can be played all the same.",
};

const HINTS = {
  move: "A move changes how the program computes, never what.",
  untimed: "Nothing here times programs for this target.",
  blocked: "These moves are well formed but would break the program here. Select one to see why, where, and what would unblock it.",
  enablers: "An enabler makes a move legal that is blocked now. Neutral is not bad: plateaus are part of the game.",
  all: "A move changes how the program computes, never what. The bar shows the time it leads to: ▲ faster, ▼ slower than now; the thin line is how sure that is, ? not yet. Apply plays it; you can always take back.",
};

class Drawer {
  constructor(pane) {
    this.pane = pane;
    this.root = el("div", { class: "drawer", "aria-live": "polite" });
  }

  /** Draw again where `key` says that something has changed. */
  put(key, parts) {
    if (this.root.dataset.shown === key) return;
    this.root.dataset.shown = key;
    this.root.replaceChildren(...parts().filter((part) => part !== null));
  }

  draw() {
    const pane = this.pane;
    const text = pane.chosen;
    this.root.classList.toggle("open", text !== null);
    const command = text === null ? pane.command() : null;
    if (command) return this.put(`command ${command[0]}`, () => this.command(command));
    const hint = text === null ? pane.hints.shown : null;
    if (hint) return this.put(`hint ${JSON.stringify([hint, pane.board.feed.learned, pane.hints.timed])}`, () => pane.hints.parts());
    if (text === null && pane.group !== "all") {
      const about = HINTS[pane.group] || HINTS.all;
      return this.put(about, () => [el("p", { class: "hint" }, about)]);
    }
    if (text === null) return this.put(pane.hints.guideKey(), () => pane.hints.guide());
    if (pane.group === "blocked") return this.refusal(text);
    const move = pane.moves.get(text);
    if (move) this.move(text, move);
  }

  command([form, summary]) {
    return [el("div", { class: "drawer-head" }, el("code", {}, form),
      el("button", { class: "small", type: "button", onclick: () => this.pane.playTyped(), ...this.pane.board.changing() }, "Play what I typed")),
      el("p", {}, ...prose(summary))];
  }

  move(text, move) {
    const pane = this.pane;
    const feed = pane.board.feed;
    const result = pane.result(text);
    const look = feed && feed.look && feed.look.move === text ? feed.look : null;
    const news = pane.unblocked === text;
    const { attention } = pane;
    const key = JSON.stringify([text, result, look && look.diff.length, move.opens, news, attention.paused]);
    const measured = Array.isArray(result) && typeof result[0] === "number";
    const speed = measured ? pane.speed(text) : null;
    this.put(key, () => [
      news ? el("p", { class: "news" }, el("strong", {}, pane.plan.length > 1 ? `Next on the way to ${pane.plan.at(-1)}.` : `${text} is legal now.`)) : null,
      el("div", { class: "drawer-head" }, el("code", {}, text),
        measured ? el("span", { class: "quiet" }, speed ? el("span", { class: speed.tone }, `${speed.words}  `) : "",
          result[1] > result[0] ? `${duration(result[0])}, median ${duration(result[1])}` : duration(result[0])) : "",
        pane.board.data.game.counts ? attention.button(move.name) : null,
        el("button", { class: "small primary", type: "button", onclick: () => pane.play(text), ...pane.board.changing() }, news ? "Play it" : "Apply")),
      el("p", {}, ...prose(pane.summary(move.name) || move.words)),
      speed ? el("p", { class: "quiet" }, speed.sentence) : null,
      look && look.why ? el("p", { class: "quiet" }, el("strong", {}, "Legal, for: "), ...prose(look.why)) : null,
      ...this.failure(result, measured),
      move.opens.length ? el("p", { class: "enablers" }, "Opens: ", ...move.opens.map((other) =>
        el("button", { class: "small", type: "button", title: "Show why it is blocked now", onclick: () => pane.find("blocked", other) }, other))) : null,
      look ? this.preview(look.diff) : null,
    ]);
  }

  /** The lines that a move takes away and brings. */
  preview(diff) {
    return diff.length ? el("div", { class: "mono preview" }, ...diff.map(([mark, line]) =>
      el("div", { class: `line diff ${mark === "+" ? "plus" : "minus"}` },
        el("span", { class: "sign", "aria-label": mark === "+" ? "added" : "removed" }, mark === "-" ? "−" : mark), el("span", {}, line)))) : null;
  }

  failure(result, measured) {
    if (!Array.isArray(result) || measured) return [];
    if (WITHOUT_TIME[result[0]]) return [el("p", { class: "quiet" }, result[1])];
    return [el("p", { class: "failure" }, FAILURE_SENTENCES[result[0]] || `Failed: ${result[0]}.`),
      result[1] ? el("pre", { class: "mono" }, result[1]) : null];
  }

  refusal(text) {
    const pane = this.pane;
    const refusal = (pane.board.data.blocked || []).find((b) => b.text === text);
    if (!refusal) return this.put("not shown", () => [el("p", { class: "hint" }, "This move is not among those listed here.")]);
    const feed = pane.board.feed;
    const look = feed && feed.look && feed.look.move === pane.previewed ? feed.look.diff : [];
    const key = JSON.stringify(["refusal", refusal, pane.board.data.position.id, pane.previewed, look]);
    this.put(key, () => [
      el("div", { class: "drawer-head" }, el("code", {}, text)),
      el("p", {}, el("strong", {}, "Blocked: "), refusal.sentence),
      refusal.witness ? el("p", {}, el("strong", {}, "For instance: "), refusal.witness) : null,
      refusal.paths.length ? el("p", { class: "quiet" }, `${plural(refusal.paths.length, "place")} marked in the program.`) : null,
      ...(refusal.ways.length ? this.enablers(refusal.ways, look) : [el("p", { class: "quiet" }, refusal.needs || "No few moves are known to unblock it.")]),
      el("p", { class: "quiet" }, ...prose(pane.summary(text.split(" ")[0]))),
    ]);
  }

  /** What would unblock a move: the first step of each way can be looked at, then played. */
  enablers(ways, diff) {
    const pane = this.pane;
    const shown = ways.map((way) => {
      const [move] = way.moves, told = way.told.slice(move.length).replace(/^, /, ""), rest = way.then ? told : `${told} instead`.trim();
      const all = pane.whole(way), steps = way.moves.length + (way.then ? 1 : 0);
      return [el("span", { class: "enabler" },
        el("button", { class: "small", type: "button", "aria-pressed": String(pane.previewed === move), title: "Show what this move would change",
          onclick: () => pane.preview(pane.previewed === move ? null : move) }, move),
        el("button", { class: "small primary", type: "button", "aria-label": `Play ${move}`, onclick: () => pane.unblock(way), ...pane.board.changing() }, "Play")),
      rest ? el("span", { class: "quiet" }, rest) : null,
      steps > 1 ? el("span", { class: "enabler" },
        el("button", { class: "small", type: "button", "aria-pressed": String(pane.previewed === all), title: "Show what all of it would change",
          onclick: () => pane.preview(pane.previewed === all ? null : all) }, plural(steps, "move")),
        el("button", { class: "small primary", type: "button", "aria-label": `Play ${all}`, onclick: () => pane.play(all), ...pane.board.changing() }, "Play all")) : null];
    });
    return [el("div", { class: "enablers" }, el("strong", {}, "What would unblock it: "), ...shown.flat()), this.preview(diff)];
  }
}

// A review: what each move of a game was worth, by what was reachable afterwards. The real losses stand first: hints,
// then the better move, then why.

const KINDS = { // of moves: one, several, and the tone of the words
  gain: ["gain", "gains", "faster"], investment: ["investment", "investments", "accent"], idle: ["idle", "idle", "quiet"],
  noise: ["about equal", "about equal", "quiet"], loss: ["real loss", "real losses", "slower"], unknown: ["not known", "not known", "quiet"],
};
const BUSY = "A time was taken while other processes used this machine: it may be longer than it need be.";

class ReviewView {
  constructor(panel) {
    this.panel = panel;
    this.head = new Part();
    this.findings = [];
    this.list = el("div", { class: "stack" });
    this.all = new Part();
    this.body = el("div", { class: "scroll body", tabindex: "0", "aria-label": "The review" }, this.head.node, this.list, this.all.node);
    this.root = el("section", { class: "pane step" }, el("div", { class: "head" }, el("div", { class: "head-row" },
      el("button", { class: "ghost", type: "button", onclick: () => panel.tell("games") }, "‹ All games"),
      el("span", { class: "spring" }), el("button", { class: "ghost", type: "button", onclick: () => panel.glossary.open() }, "Glossary"))),
      this.body, el("div", { class: "foot" }, el("div", { class: "foot-row" },
        el("button", { class: "small", type: "button", title: "A game of your own from this position", onclick: () => panel.tell("to_play") }, "Open on Play"))));
  }

  update(review) {
    const top = this.body.scrollTop;
    const { findings } = review;
    this.head.draw([{ ...review, findings: findings.length }], () => this.words(review));
    this.all.draw([review.verdicts], () => el("div", { class: "verdicts" },
      review.compared ? el("h2", {}, "Move by move") : "", ...(review.compared ? review.verdicts.map((each) => this.verdict(each)) : [])));
    while (this.findings.length > findings.length) this.findings.pop().node.remove();
    while (this.findings.length < findings.length) {
      this.findings.push(new Part());
      this.list.append(this.findings.at(-1).node);
    }
    findings.forEach((each, number) => this.findings[number].draw(each, () => this.finding(each, number)));
    this.body.scrollTop = top;
  }

  words(review) {
    const measured = review.compared === 0 && review.done;
    return el("div", { class: "stack" }, el("h1", {}, "Review: ", review.title),
      el("p", {}, review.done ? this.summary(review) : `Looking at move ${review.looked + 1} of ${review.moves}…`),
      review.done ? this.about(review) : "",
      review.fault ? el("p", { class: "failure", role: "alert" }, review.fault) : "",
      measured ? el("p", {}, "Open the game on Play, step through it with ← and → while Measure is on, and come back: then the times of its moves and of others are known.") : "");
  }

  summary(review) {
    if (!review.moves) return "This game has no moves.";
    if (!review.compared) return "None of its moves can be compared: their times, or those of alternatives, are not known.";
    const counts = Object.entries(KINDS).filter(([kind]) => kind !== "unknown" && review.counts[kind])
      .map(([kind, [one, several]]) => `${review.counts[kind]} ${review.counts[kind] === 1 ? one : several}`);
    return `${review.compared} of ${plural(review.moves, "move")} could be compared: ${counts.join(", ")}.`;
  }

  about(review) {
    if (!review.compared) return "";
    const lost = review.findings.length ? "Find the better move for each real loss:" : "Nothing was lost for good.";
    return el("div", { class: "stack" },
      el("p", { class: "quiet" }, "A move is judged by what was reachable after it, in the game and its variations: a slower one that a later gain needed is an investment. What could still be had afterwards was not lost."),
      review.unplayed ? el("p", {}, review.unplayed) : "", el("p", {}, lost));
  }

  verdict(each) {
    const [one, , tone] = KINDS[each.kind];
    return el("button", { class: `verdict ${each.kind}`, type: "button", title: "Show the position before this move", onclick: () => this.panel.tell("verdict", { number: each.ply }) },
      el("span", {}, `${each.ply}. `, el("code", {}, each.played), " ", el("strong", { class: tone }, one)),
      el("span", { class: "quiet" }, each.words, each.busy ? el("span", { title: BUSY }, " (busy machine)") : ""));
  }

  finding(each, number) {
    const show = () => this.panel.tell("finding", { number });
    const parts = [el("button", { class: "finding-head", type: "button", "aria-expanded": String(each.open), onclick: show },
      el("span", {}, `Move ${each.ply}: `, el("code", {}, each.played)), el("strong", { class: "slower" }, `${ratio(each.ratio)} as fast was possible`))];
    if (each.open) {
      const body = [el("p", {}, each.words), el("p", {}, `What was reached after it took ${duration(each.seconds)} at best. The board shows the position before it${each.instead ? ": find the better move." : "."}`)];
      if (each.busy) body.push(el("p", { class: "quiet" }, BUSY));
      if (each.kind) body.push(el("p", {}, el("strong", {}, "Kind. "), el("code", {}, each.kind[0]), `: ${each.kind[1]}`));
      if (each.place) body.push(el("p", {}, el("strong", {}, "Place. "), "At ", el("code", {}, each.place), "."));
      if (each.better) body.push(el("p", {}, el("strong", {}, "Move. "), el("code", {}, each.better), ` takes ${duration(each.better_seconds)}. `, each.why || ""));
      const words = each.instead && ["Hint: what kind of move?", "Hint: where?", "Show the move"][each.level];
      body.push(el("div", { class: "foot-row" },
        words ? el("button", { class: "small", type: "button", onclick: () => this.panel.tell("reveal") }, words) : "",
        el("button", { class: "small", type: "button", onclick: show }, "Try again from here")));
      parts.push(el("div", { class: "finding-body" }, ...body));
    }
    return el("div", { class: `finding ${each.open ? "open" : ""}` }, ...parts);
  }
}

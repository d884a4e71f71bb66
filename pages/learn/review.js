// A review: the moves of a game where a measured alternative was faster; hints first, then the move, then why.

class ReviewView {
  constructor(panel) {
    this.panel = panel;
    this.head = new Part();
    this.findings = [];
    this.list = el("div", { class: "stack" });
    this.body = el("div", { class: "scroll body", tabindex: "0", "aria-label": "The review" }, this.head.node, this.list);
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
      review.fault ? el("p", { class: "failure", role: "alert" }, review.fault) : "",
      measured ? el("p", {}, "Open the game on Play, step through it with ← and → while Measure is on, and come back: then the times of its moves and of others are known.") : "");
  }

  summary(review) {
    if (!review.moves) return "This game has no moves.";
    if (!review.compared) return "None of its moves can be compared: their times, or those of alternatives, are not known.";
    const count = review.findings.length;
    const head = `${review.compared} of ${plural(review.moves, "move")} could be compared with measured alternatives.`;
    return count ? `${head} ${count === 1 ? "One was" : `${count} were`} slower than an alternative by more than the noise.`
      : `${head} None was slower than an alternative by more than the noise.`;
  }

  finding(each, number) {
    const show = () => this.panel.tell("finding", { number });
    const parts = [el("button", { class: "finding-head", type: "button", "aria-expanded": String(each.open), onclick: show },
      el("span", {}, `Move ${each.ply}: `, el("code", {}, each.played)), el("strong", { class: "slower" }, `${ratio(each.ratio)} faster was possible`))];
    if (each.open) {
      const told = [el("p", {}, "The board shows the position before this move. Find a better one: the best measured alternative is ",
        el("strong", {}, `${ratio(each.ratio)} as fast`), ` (yours took ${duration(each.seconds)}).`)];
      if (each.later) told.push(el("p", { class: "quiet" }, `Yours may have been an investment: later in the game you were ${ratio(each.later)} as fast as that alternative.`));
      if (each.kind) told.push(el("p", {}, el("strong", {}, "Kind. "), el("code", {}, each.kind[0]), `: ${each.kind[1]}`));
      if (each.place) told.push(el("p", {}, el("strong", {}, "Place. "), "At ", el("code", {}, each.place), "."));
      if (each.better) told.push(el("p", {}, el("strong", {}, "Move. "), el("code", {}, each.better), ` takes ${duration(each.better_seconds)}. `, each.why || ""));
      const words = ["Hint: what kind of move?", "Hint: where?", "Show the move"][each.level];
      told.push(el("div", { class: "foot-row" },
        words ? el("button", { class: "small", type: "button", onclick: () => this.panel.tell("reveal") }, words) : "",
        el("button", { class: "small", type: "button", onclick: show }, "Try again from here")));
      parts.push(el("div", { class: "finding-body" }, ...told));
    }
    return el("div", { class: `finding ${each.open ? "open" : ""}` }, ...parts);
  }
}

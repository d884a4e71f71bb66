// A step: its text, goals with live check marks, a question, help in levels, and the ways on.

const ratingWords = ({ value, settled }) => `${value}${settled ? "" : "?"}`;

/** How hard a puzzle is, how many tries programs need, and whose times decide. */
function puzzleFacts({ rating, agents, machine, date }) {
  const tries = Object.entries(agents).map(([name, count]) => `${name} ${count < 10 ? count.toFixed(1).replace(/\.0$/, "") : Math.round(count)}`);
  return [`Rated ${ratingWords(rating)}.`, tries.length ? `Tries of programs: ${tries.join(", ")}.` : "",
    machine ? `Gains: ${machine}, ${date}.` : ""].filter(Boolean).join(" ");
}

class StepView {
  constructor(panel) {
    this.panel = panel;
    this.prose = panel.prose;
    this.body = el("div", { class: "scroll body", tabindex: "0", "aria-label": "The step's text" });
    this.status = el("div", { class: "visually-hidden", role: "status" });
    const names = ["head", "text", "question", "goals", "after", "onward", "help", "foot"];
    this.parts = Object.fromEntries(names.map((name) => [name, new Part()]));
    const { head, foot, ...inside } = this.parts;
    this.body.append(...Object.values(inside).map((part) => part.node));
    this.root = el("section", { class: "pane step" }, head.node, this.body, foot.node, this.status);
    this.reached = null;
  }

  update(step) {
    const key = `${step.lesson}/${step.id}`;
    const fresh = key !== this.key;
    this.key = key;
    const top = this.body.scrollTop;
    const { steps, question, goals, reached, after, refusal, note, hints, solution } = step;
    const { more_hints: more, can_show: can, moves, done, previous, next, puzzle } = step;
    const drawn = (name, shown, draw) => this.parts[name].draw([key, ...shown], () => draw.call(this, step));
    drawn("head", [steps], this.head);
    drawn("text", [puzzle && puzzle.rating.value], this.text); // what is read does not move
    drawn("question", [question], this.question);
    drawn("goals", [goals, reached], this.goals);
    drawn("after", [after], this.after);
    drawn("onward", [puzzle, reached, done, moves > 0], this.onward);
    drawn("help", [refusal, note, hints, solution], this.help);
    drawn("foot", [more, hints.length, can, Boolean(solution), moves > 0, done, reached, previous, next], this.foot);
    this.body.scrollTop = fresh ? 0 : top;
    if (!fresh && step.reached && this.reached === false) {
      put(this.status, "Step done.");
      const seen = this.parts[after.length ? "after" : "goals"].node;
      seen.scrollIntoView({ block: "nearest" });
      this.root.classList.add("just-done");
      setTimeout(() => this.root.classList.remove("just-done"), 1200);
    }
    this.reached = step.reached;
    const chosen = step.question && step.question.chosen;
    if (!fresh && chosen !== this.chosen && chosen !== null) this.parts.question.node.scrollIntoView({ block: "nearest" });
    this.chosen = chosen;
  }

  head(step) {
    const dots = step.steps.map((each, number) => el("button", {
      class: `dot ${each.done ? "done" : ""} ${each.id === step.id ? "here" : ""}`, type: "button",
      title: `${each.title}${each.done ? ": done" : ""}`, "aria-label": `Step ${number + 1}: ${each.title}${each.done ? ", done" : ""}`,
      "aria-current": each.id === step.id ? "step" : null,
      onclick: () => this.panel.tell("open", { lesson: step.lesson, step: each.id }),
    }, each.done ? "✓" : String(number + 1)));
    return el("div", { class: "head" },
      el("div", { class: "head-row" },
        el("button", { class: "ghost", type: "button", onclick: () => this.panel.tell("list") }, "‹ All lessons"),
        el("span", { class: "spring" }),
        el("button", { class: "ghost", type: "button", onclick: () => this.panel.glossary.open() }, "Glossary")),
      el("div", { class: "crumb quiet" }, `${step.lesson_title} · ${step.puzzles ? "puzzle" : "step"} ${step.number} of ${step.steps.length}`),
      el("nav", { class: "dots", "aria-label": step.puzzles ? "Puzzles" : "Steps" }, ...dots));
  }

  text(step) {
    return el("div", { class: "text" }, el("h1", {}, step.title), ...this.prose.blocks(step.text),
      step.gain ? el("p", { class: "quiet" }, `Promised: at least ${step.gain} times as fast as the start.`) : "",
      step.puzzle ? el("p", { class: "quiet" }, puzzleFacts(step.puzzle)) : "",
      step.policy === "reassoc" ? "" : el("p", { class: "quiet" }, `Policy of this step: ${step.policy}.`));
  }

  goals(step) {
    if (!step.goals.length) return el("div", {});
    const words = { reached: "reached", open: "not yet", unknown: "needs a measurement" };
    return el("div", { class: `goals ${step.reached ? "all" : ""}` },
      el("h2", {}, step.goals.length === 1 ? "Goal" : "Goals"),
      el("ul", {}, ...step.goals.map((goal) => el("li", { class: goal.state },
        el("span", { class: "mark", "aria-hidden": "true" }, goal.state === "reached" ? "✓" : goal.state === "unknown" ? "…" : "○"),
        el("span", { class: "visually-hidden" }, `${words[goal.state]}: `),
        el("span", {}, goal.text, goal.state !== "reached" && goal.now ? el("small", {}, goal.now) : "")))));
  }

  question(step) {
    const asked = step.question;
    if (!asked) return el("div", {});
    const answers = asked.answers.map((words, number) => {
      const state = asked.right === number ? "right" : asked.chosen === number ? "wrong" : "";
      return el("button", { class: `answer ${state}`, type: "button", "aria-pressed": String(asked.chosen === number),
        onclick: () => this.panel.tell("answer", { number }) },
        el("span", { class: "mark", "aria-hidden": "true" }, state === "right" ? "✓" : state === "wrong" ? "✕" : "○"),
        el("span", {}, ...this.prose.spans(words)));
    });
    const why = asked.chosen === null || !asked.why.length ? "" : el("p", { class: `why ${asked.right === asked.chosen ? "good" : "bad"}`, role: "status" },
      el("strong", {}, asked.right === asked.chosen ? "Right. " : "Not quite. "), ...this.prose.spans(asked.why));
    return el("div", { class: "question" }, this.prose.paragraph(asked.words, { class: "asked" }), ...answers, why);
  }

  help(step) {
    const parts = [];
    if (step.refusal) {
      parts.push(el("div", { class: "told refused", role: "status" }, el("strong", {}, "Refused: "), el("code", {}, step.refusal.move),
        el("p", {}, step.refusal.why.startsWith(`${step.refusal.move}: `) ? step.refusal.why.slice(step.refusal.move.length + 2) : step.refusal.why),
        el("p", { class: "quiet" }, "Nothing has changed: you can go on from here.")));
    }
    if (step.note.length) parts.push(el("div", { class: "told note", role: "status" }, this.prose.paragraph(step.note)));
    step.hints.forEach((hint, number) => parts.push(el("div", { class: "told hint" }, el("strong", {}, `Hint ${number + 1}. `), ...this.prose.spans(hint))));
    if (step.solution) {
      parts.push(el("div", { class: "told solution" }, el("strong", {}, "Solution"),
        el("ol", {}, ...step.solution.map((each) => el("li", {}, el("code", {}, each.move), each.refused ? el("span", { class: "quiet" }, " (try it: it is refused)") : ""))),
        el("button", { class: "small", type: "button", onclick: () => this.panel.tell("show_me") }, "Play it on the board")));
    }
    return el("div", { class: "help" }, ...parts);
  }

  after(step) {
    if (!step.after.length) return el("div", {});
    return el("div", { class: "after" }, ...this.prose.blocks(step.after));
  }

  /** Of a puzzle of one move: what came of the attempt, and what to do next. */
  onward(step) {
    const { puzzle } = step;
    if (!puzzle) return el("div", {});
    const open = (to, words, kind) => el("button", { class: kind, type: "button", onclick: () => this.panel.tell("open", { lesson: to.lesson, step: to.step }) }, words);
    if (!step.reached && !step.done) {
      return step.moves ? el("div", { class: "told note", role: "status" }, el("p", {}, "It is another move. Take this one back and try again: only the first try is rated."),
        el("button", { class: "small", type: "button", onclick: () => this.panel.tell("reset") }, "Back to the position")) : el("div", {});
    }
    const came = puzzle.solved === true ? "Solved at the first try." : puzzle.solved === false ? "Not solved at the first try." : "With a hint: not rated.";
    return el("div", { class: "onward" },
      el("p", {}, `${came} Your rating: ${ratingWords(puzzle.yours)}.`),
      el("div", { class: "foot-row" },
        puzzle.next ? open(puzzle.next, `Next puzzle: ${puzzle.next.title}`, "small primary") : el("span", { class: "quiet" }, "You have tried all puzzles there are."),
        puzzle.teaches ? open(puzzle.teaches, `Learn it: ${puzzle.teaches.title}`, "small") : "",
        puzzle.origin ? el("button", { class: "small", type: "button", title: puzzle.origin, onclick: () => this.panel.tell("origin") }, "Go through its game") : ""),
      puzzle.origin ? el("p", { class: "quiet" }, `From ${puzzle.origin}.`) : "");
  }

  foot(step) {
    const go = (to) => to && this.panel.tell("open", { lesson: to.lesson, step: to.step });
    const help = [];
    if (step.more_hints > 0) help.push(el("button", { class: "small", type: "button", onclick: () => this.panel.tell("hint") }, step.hints.length ? "Another hint" : "Hint"));
    else if (step.can_show && !step.solution) help.push(el("button", { class: "small", type: "button", onclick: () => this.panel.tell("solution") }, "Show me"));
    if (step.moves) help.push(el("button", { class: "small", type: "button", title: "Back to the step's start; what you played stays in the history", onclick: () => this.panel.tell("reset") }, "Reset"));
    help.push(el("button", { class: "small", type: "button", title: "A game of your own from this position", onclick: () => this.panel.tell("to_play") }, "Open on Play"));
    return el("div", { class: "foot" },
      el("div", { class: "foot-row" }, ...help),
      el("div", { class: "foot-row" },
        el("span", { class: `state ${step.done ? "done" : ""}` }, step.reached || step.done ? "✓ Done" : "Not done yet"), el("span", { class: "spring" }),
        el("button", { class: "small", type: "button", disabled: !step.previous, "aria-label": "The step before", title: step.previous ? step.previous.title : "", onclick: () => go(step.previous) }, "‹ Back"),
        el("button", { class: `small next ${step.done ? "primary" : ""}`, type: "button", disabled: !step.next, title: step.next ? step.next.title : "", onclick: () => go(step.next) },
          step.next ? (step.next.same ? "Next ›" : "Next lesson ›") : "The end")));
  }
}

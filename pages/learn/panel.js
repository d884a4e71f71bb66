// The panel: the list of lessons, a step, a review or the games to review, and the glossary over all of them.

const LISTED = 12; // steps of a card that are named; more are numbers

class Glossary {
  constructor(panel) {
    this.panel = panel;
    this.root = el("dialog", { class: "glossary" });
    this.root.addEventListener("click", (event) => { if (event.target === this.root) this.root.close(); });
  }

  /** All words, or one of them. */
  open(slug = null) {
    const entries = this.panel.data.glossary;
    const prose = new Prose((other) => this.open(other));
    const search = el("input", { class: "field", type: "search", placeholder: "Find a word", "aria-label": "Find a word" });
    const list = el("div", { class: "scroll entries", tabindex: "0" });
    const draw = () => {
      const words = search.value.trim().toLowerCase();
      const shown = slug && !words ? entries.filter((e) => e.slug === slug)
        : entries.filter((e) => [e.title, ...e.also].some((name) => name.toLowerCase().includes(words)));
      list.replaceChildren(...shown.map((e) => el("section", { class: "entry" }, el("h2", {}, e.title),
        ...e.words.map((paragraph) => prose.paragraph(paragraph)))), shown.length ? "" : el("p", { class: "quiet" }, "No such word."));
      show(all, Boolean(slug) && !words);
    };
    const all = el("button", { class: "small", type: "button", onclick: () => { slug = null; draw(); } }, "All words");
    search.addEventListener("input", draw);
    this.root.replaceChildren(el("div", { class: "head-row" }, el("h1", {}, "Glossary"), el("span", { class: "spring" }), search), list,
      el("div", { class: "foot-row" }, all, el("span", { class: "spring" }), el("button", { class: "small primary", type: "button", onclick: () => this.root.close() }, "Close")));
    draw();
    if (!this.root.open) this.root.showModal();
  }
}

class Panel extends BesidePanel {
  constructor(parent) {
    super("panel");
    this.glossary = new Glossary(this);
    this.prose = new Prose((slug) => this.glossary.open(slug));
    this.step = new StepView(this);
    this.review = new ReviewView(this);
    this.list = el("section", { class: "list" });
    const root = el("div", { class: "learn" }, this.list, this.step.root, this.review.root, this.glossary.root);
    this.stand(parent, root, (event) => {
      const typing = event.composedPath()[0].matches("input");
      const scrolls = event.composedPath()[0].matches(".scroll") && /^Arrow(Up|Down)$/.test(event.key);
      return typing || scrolls || this.glossary.root.open;
    });
  }

  draw(data) {
    if (!this.changed(data)) return;
    this.data = data;
    const { view, learner } = data;
    // A year; the learner's progress is kept under this name.
    const cookie = `dojo_learner=${learner}`;
    if (!document.cookie.split("; ").includes(cookie)) document.cookie = `${cookie}; path=/; max-age=31536000; SameSite=Strict`;
    show(this.list, view === "list" || view === "games");
    show(this.step.root, view === "step");
    show(this.review.root, view === "review");
    if (view === "step") this.step.update(this.data.step);
    else if (view === "review") this.review.update(this.data.review);
    else if (view === "games") this.drawGames(this.data.games);
    else this.drawList(this.data.list);
    if (view !== "step") this.step.key = null;
  }

  fault() {
    return this.data.fault ? el("p", { class: "told refused", role: "alert" }, this.data.fault) : "";
  }

  drawList({ lessons, resume, faults, puzzles }) {
    const all = lessons.flatMap((lesson) => lesson.steps);
    const done = all.filter((step) => step.done).length;
    const first = lessons[0];
    this.list.replaceChildren(
      el("header", { class: "welcome" }, el("div", {}, el("h1", {}, "Learn"),
        el("p", { class: "about" }, "How loops are made fast, step by step, on the real board. Every step has a goal that is checked; every refused move says why. No knowledge of compilers is needed.")),
        el("div", { class: "welcome-side" },
          resume ? el("button", { class: "primary", type: "button", onclick: () => this.tell("open", { lesson: resume.lesson, step: resume.step }) }, `Go on: ${resume.title}`)
            : first ? el("button", { class: "primary", type: "button", onclick: () => this.tell("open", { lesson: first.id }) }, "Begin with the first lesson") : "",
          el("div", { class: "foot-row" }, el("button", { class: "small", type: "button", onclick: () => this.tell("games") }, "Review my games"),
            el("button", { class: "small", type: "button", onclick: () => this.glossary.open() }, "Glossary"),
            el("span", { class: "quiet" }, `${done} of ${all.length} done`)))),
      this.fault(),
      el("h2", {}, "Lessons"), el("div", { class: "cards" }, ...lessons.filter((l) => !l.puzzles).map((l, n) => this.card(l, n + 1))),
      el("h2", {}, "Puzzles"), el("p", { class: "about" }, "The first idea does not do it: look for the move that opens the way. Or find the one move that gains."),
      this.puzzles(puzzles),
      el("div", { class: "cards" }, ...lessons.filter((l) => l.puzzles).map((l) => this.card(l, null))),
      ...(faults.length ? [el("h2", {}, "Left out"), ...faults.map((f) => el("pre", { class: "told refused mono" }, `${f.file}: ${f.told}`))] : []));
  }

  /** The puzzle of the day, the one to try next, and how well the learner does. */
  puzzles({ daily, next, rating }) {
    const open = (to, words, kind) => to ? el("button", { class: `small ${kind}`, type: "button", onclick: () => this.tell("open", { lesson: to.lesson, step: to.step }) }, words) : "";
    return el("div", { class: "foot-row practice" },
      open(daily, daily ? `Puzzle of the day: ${daily.title}` : "", "primary"),
      open(next, rating ? "One for your rating" : "One to begin with", ""),
      rating ? el("span", { class: "quiet" }, `Your rating: ${ratingWords(rating)}`) : "");
  }

  card(lesson, number) {
    const open = (step) => () => this.tell("open", { lesson: lesson.id, ...(step ? { step } : {}) });
    const share = lesson.steps.length ? lesson.done / lesson.steps.length : 0;
    const bar = el("div", { class: "progress", "aria-hidden": "true" }, el("div", {}));
    bar.firstChild.style.width = `${100 * share}%`;
    return el("article", { class: "card", "data-lesson": lesson.id },
      el("button", { class: "card-title", type: "button", onclick: open() }, el("strong", {}, number ? `${number}. ${lesson.title}` : lesson.title),
        el("span", { class: "quiet" }, `${lesson.done} of ${lesson.steps.length}${lesson.done === lesson.steps.length ? " ✓" : ""}`)),
      el("p", {}, ...this.prose.spans(lesson.about)), bar,
      lesson.steps.length > LISTED ? el("div", { class: "dots" }, ...lesson.steps.map((step, at) => el("button", {
        class: `dot ${step.done ? "done" : ""}`, type: "button", "data-step": step.id, title: step.title,
        "aria-label": `${step.title}${step.done ? ", done" : ""}`, onclick: open(step.id) }, step.done ? "✓" : String(at + 1)))) : el("ol", {}, ...lesson.steps.map((step) => el("li", {}, el("button", { class: "link", type: "button", "data-step": step.id, onclick: open(step.id) },
        el("span", { class: `mark ${step.done ? "done" : ""}`, "aria-label": step.done ? "done" : "not done" }, step.done ? "✓" : "○"), step.title,
        step.helped ? el("small", { class: "quiet" }, " with the solution") : "")))));
  }

  drawGames(games) {
    this.list.replaceChildren(
      el("header", { class: "welcome" }, el("div", {}, el("h1", {}, "Review my games"),
        el("p", { class: "about" }, "Choose a game: you see the moves where a measured alternative was faster, try again from there, and learn why.")),
        el("div", { class: "welcome-side" }, el("button", { type: "button", onclick: () => this.tell("list") }, "‹ All lessons"))),
      this.fault(),
      games.length ? el("div", { class: "cards" }, ...games.map((game) => el("button", { class: "card as-button", type: "button", "data-game": game.id,
        onclick: () => this.tell("review", { game: game.id }) }, el("strong", {}, game.title),
        el("span", { class: "quiet" }, [plural(game.moves, "move"), game.best ? `best ${ratio(game.best)}` : "", game.when].filter(Boolean).join(" · ")))))
        : el("p", {}, "There is no game with moves yet. Play one on the page Play, with measuring on, and come back."));
  }
}

export default mounting(Panel);

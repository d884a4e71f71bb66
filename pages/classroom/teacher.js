// What a teacher sees: the way in for students, what they are given, who is where, what they try first, their games.

class TeacherView {
  constructor(page) {
    this.page = page;
    const names = ["head", "way", "given", "give", "students", "steps", "games", "foot"];
    this.parts = Object.fromEntries(names.map((name) => [name, new Part()]));
    const { head, way, given, give, ...below } = this.parts;
    const beside = el("div", { class: "beside" }, way.node, el("div", { class: "givings" }, given.node, give.node));
    this.root = el("section", { class: "view" }, head.node, beside, ...Object.values(below).map((part) => part.node));
    this.saved = null;
    this.key = "";
  }

  update({ class: told, lessons, file, key, login }) {
    if (key) this.key = { code: told.code, key }; // told once: it stays on the page until that is left
    const drawn = (name, shown, draw) => this.parts[name].draw([told.code, ...shown], draw);
    drawn("head", [told.title], () => el("header", {}, this.page.back(), el("h1", {}, told.title)));
    drawn("way", [told.spelled, this.key, login], () => this.way(told, login));
    drawn("given", [told.assignments], () => this.given(told.assignments));
    drawn("give", [lessons], () => this.give(lessons));
    drawn("students", [told.students], () => this.students(told.students));
    drawn("steps", [told.steps], () => this.steps(told.steps));
    drawn("games", [told.games], () => this.games(told.games));
    drawn("foot", [told.kept_until], () => this.foot(told));
    if (file && file.n !== this.saved) {
      this.saved = file.n;
      const address = URL.createObjectURL(new Blob([file.text], { type: "text/csv;charset=utf-8" }));
      el("a", { href: address, download: file.name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 10000);
    }
  }

  way(told, login) {
    const mine = this.key && this.key.code === told.code ? this.key.key : "";
    return el("div", { class: "card way" },
      el("h2", {}, "The way in"),
      el("p", {}, "Students open this link, or type the code on this page:"),
      el("div", { class: "code", "aria-label": "Code" }, told.spelled),
      copied("Link for students", withinApp(`class?code=${told.code}`)),
      mine ? el("div", { class: "key" },
        el("p", {}, el("strong", {}, "Your own link. "), "Whoever has it teaches this class: keep it, it is not shown again. This browser knows you without it."),
        copied("Link for the teacher", withinApp(`class?key=${mine}`))) : "",
      login ? el("p", { class: "quiet" }, "You teach this class with your login.")
        : el("button", { type: "button", class: "small", title: "For another browser of yours; the link before opens the class no more", onclick: () => this.page.act("key") }, "A new link for the teacher"));
  }

  given(assignments) {
    if (this.link) this.link.reset();
    return el("section", {}, el("h2", {}, "Given"),
      assignments.length ? el("ul", { class: "given" }, ...assignments.map((each) => el("li", {},
        el("span", { class: "kind quiet" }, each.kind), anchor(each.title, each.href),
        el("button", { type: "button", class: "small", "aria-label": `Take away ${each.title}`, onclick: () => this.page.act("unassign", { id: each.id }) }, "Take away"))))
        : el("p", { class: "quiet" }, "Nothing yet. You see how students fare in the lessons and puzzles that you give, and in no others."));
  }

  give(lessons) {
    const group = (words, puzzles) => el("optgroup", { label: words }, ...lessons.filter((each) => each.puzzles === puzzles)
      .map((each) => el("option", { value: each.id }, each.title)));
    const lesson = el("select", { class: "field", "aria-label": "Lesson or puzzles" }, group("Lessons", false), group("Puzzles", true));
    const step = el("select", { class: "field", "aria-label": "Step" });
    const steps = () => {
      const chosen = lessons.find((each) => each.id === lesson.value);
      step.replaceChildren(el("option", { value: "" }, "the whole"), ...(chosen ? chosen.steps : []).map((each) => el("option", { value: each.id }, each.title)));
    };
    lesson.addEventListener("change", steps);
    steps();
    const address = field("A study or another page, by its address", { type: "url", maxlength: "2000", placeholder: "https://…" });
    const title = field("What it is called", { maxlength: "80" });
    this.link = form("Give", () => this.page.act("link", { address: address.input.value, title: title.input.value }), address.node, title.node);
    return el("details", { class: "card give" }, el("summary", {}, "Give something"),
      form("Give", () => this.page.act("lesson", { lesson: lesson.value, step: step.value }), lesson, step),
      this.link);
  }

  students(students) {
    const row = (each) => el("tr", {}, el("th", { scope: "row" }, each.name),
      el("td", { "data-label": "Where" }, each.where ? el("span", {}, each.reached ? "✓ " : "", each.game ? anchor(each.where, each.game, { title: "Watch: nothing can be changed" }) : each.where) : el("span", { class: "quiet" }, "not begun")),
      el("td", { "data-label": "Seen", class: "quiet" }, each.seen),
      el("td", { "data-label": "Done", class: "number" }, `${each.done} of ${each.of}`, each.helped ? el("small", { class: "quiet" }, ` (${each.helped} with the solution)`) : ""),
      el("td", { "data-label": "First wrong moves" }, each.wrong.length ? el("details", {}, el("summary", {}, String(each.wrong.length)),
        el("ul", {}, ...each.wrong.map((one) => el("li", {}, el("span", { class: "quiet" }, `${one.step}: `), el("code", {}, one.move), one.refused ? " refused" : "")))) : ""),
      el("td", { "data-label": "Times" }, ...each.times.map((one) => el("div", {}, anchor(`${timesAsFast(one.speed_up)} ${one.time}`, one.href, { title: one.step })))),
      el("td", {}, careful("Delete", `Delete ${each.name}?`, () => this.page.act("remove", { student: each.id }))));
    return el("section", {}, el("h2", {}, students.length ? plural(students.length, "student") : "Students"),
      students.length ? el("table", { class: "students" }, el("thead", {}, el("tr", {},
        ...["Name", "Where", "Seen", "Done", "First wrong moves", "Times", ""].map((words) => el("th", { scope: "col" }, words)))), el("tbody", {}, ...students.map(row)))
        : el("p", { class: "quiet" }, "Nobody has joined yet."));
  }

  steps(steps) {
    if (!steps.length) return el("section", {});
    return el("section", {}, el("h2", {}, "Step by step"), el("table", { class: "steps" }, el("thead", {}, el("tr", {},
      ...["Step", "Reached", "Minutes", "What was tried first"].map((words) => el("th", { scope: "col" }, words)))), el("tbody", {}, ...steps.map((each) => el("tr", {},
      el("th", { scope: "row" }, el("span", { class: "quiet" }, `${each.lesson}: `), anchor(each.step, each.href)),
      el("td", { "data-label": "Reached", class: "number" }, `${each.reached} of ${each.opened}`),
      el("td", { "data-label": "Minutes", class: "number" }, each.minutes === null ? "" : each.minutes < 1 ? "< 1" : String(Math.round(each.minutes))),
      el("td", { "data-label": "What was tried first" }, ...each.wrong.map((one) => el("div", { title: one.names.join(", ") },
        el("strong", {}, `${one.names.length}× `), el("code", {}, one.move), one.refused ? " refused" : "", el("small", { class: "quiet" }, ` ${one.names.join(", ")}`)))))))));
  }

  games(games) {
    return el("section", {}, el("h2", {}, "Games to look at"), games.length ? el("ul", { class: "given" }, ...games.map((each) => el("li", {},
      el("strong", {}, each.student), anchor(each.title, each.href), el("span", { class: "quiet" }, [timesAsFast(each.speed_up), each.when].filter(Boolean).join(" · ")))))
      : el("p", { class: "quiet" }, "Students show them here. You watch them as they go on, and cannot change them."));
  }

  foot(told) {
    return el("footer", {},
      el("button", { type: "button", onclick: () => this.page.act("csv") }, "Download as CSV"),
      el("span", { class: "spring" }),
      careful("Delete the class", "Delete it with all its students?", () => this.page.act("delete")),
      el("p", { class: "quiet" }, `Kept until ${told.kept_until}, ${told.kept_days} days after it was last worked in; then deleted.`));
  }
}

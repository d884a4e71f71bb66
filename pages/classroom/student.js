// What a student sees: what is given, how far they are, the games that they show. And the page without a class.

class StudentView {
  constructor(page) {
    this.page = page;
    const names = ["head", "given", "games", "own", "foot"];
    this.parts = Object.fromEntries(names.map((name) => [name, new Part()]));
    this.root = el("section", { class: "view" }, ...Object.values(this.parts).map((part) => part.node));
    this.own = null;
  }

  update({ class: told, mine, at, trouble, token }) {
    if (token) this.own = { code: told.code, token }; // told once: it stays on the page until that is left
    const drawn = (name, shown, draw) => this.parts[name].draw([told.code, at, ...shown], draw);
    drawn("head", [told.title, told.name, trouble], () => el("header", {}, this.page.back(), el("h1", {}, told.title), el("p", { class: "quiet" }, `You are ${told.name} in this class.`),
      at ? el("p", { class: "quiet" }, `This class is at ${at}: your Dojo tells it how you fare in what is given. `, trouble ? el("strong", {}, `${trouble} It is told later.`) : "") : ""));
    drawn("given", [told.assignments], () => this.given(told.assignments));
    drawn("games", [told.games, mine], () => this.games(told.games, mine));
    drawn("own", [this.own], () => at ? "" : this.inOwnDojo(told.code));
    drawn("foot", [told.kept_until], () => el("footer", {}, privacy(told.kept_days),
      careful("Leave the class", "Leave, and delete what is kept of you?", () => this.page.act("leave"))));
  }

  given(assignments) {
    const card = (each) => {
      if (each.kind === "link") return el("li", { class: "card" }, anchor(each.title, each.href, { class: "open" }), el("span", { class: "quiet" }, "another page"));
      const open = (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return; // another tab
        event.preventDefault();
        this.page.act("open", { lesson: each.lesson, step: each.step });
      };
      return el("li", { class: "card" }, anchor(each.title, each.href, { class: "open", target: null, onclick: open }),
        el("span", { class: "quiet" }, `${each.done} of ${each.of} done${each.of && each.done === each.of ? " ✓" : ""}`));
    };
    return el("section", {}, el("h2", {}, "For you"), assignments.length ? el("ul", { class: "cards" }, ...assignments.map(card))
      : el("p", { class: "quiet" }, "Nothing is given yet: come back when your teacher says so."));
  }

  games(games, mine) {
    const shown = new Set(games.map((each) => each.id));
    const others = mine.filter((each) => !shown.has(each.id));
    const choice = el("select", { class: "field", "aria-label": "A game of yours" }, ...others.map((each) => el("option", { value: each.id }, `${each.title}, ${plural(each.moves, "move")}`)));
    return el("section", {}, el("h2", {}, "Games that you show"),
      games.length ? el("ul", { class: "given" }, ...games.map((each) => el("li", {}, anchor(each.title, `?g=${encodeURIComponent(each.id)}`),
        el("span", { class: "quiet" }, timesAsFast(each.speed_up)),
        el("button", { type: "button", class: "small", "aria-label": `Show ${each.title} no more`, onclick: () => this.page.act("take_back", { game: each.id }) }, "Take back")))) : "",
      others.length ? form("Show it", () => this.page.act("show", { game: choice.value }), choice)
        : el("p", { class: "quiet" }, games.length ? "" : "Games that you play on Play can be shown to your teacher here."));
  }

  /** The token stands behind "#", which no browser sends anywhere. */
  inOwnDojo(code) {
    const token = this.own && this.own.code === code ? this.own.token : "";
    return el("section", {}, el("h2", {}, "In a Dojo of your own"),
      el("p", { class: "quiet" }, "Work on your own machine, measured there, as the student that you are here."),
      token ? el("div", { class: "key" },
        el("p", {}, el("strong", {}, "Your own link. "), "Paste it on the page Class of your own Dojo. Whoever has it is you in this class: keep it, it is not shown again."),
        copied("Link for a Dojo of your own", withinApp(`class?code=${code}#token=${token}`))) : "",
      el("button", { type: "button", class: "small", title: "A link before is worth nothing then", onclick: () => this.page.act("token") }, token ? "Another link" : "A link for your own Dojo"));
  }
}

function privacy(days) {
  return el("p", { class: "quiet" }, "Your teacher sees your name, which steps of what is given you opened and reached, when, with which first wrong moves and times, and the games that you show; no other student does. "
    + `It is deleted ${days} days after the class was last worked in, or when you leave, or when your teacher deletes it.`);
}

/** The code that was typed, or that of a pasted link, with the Dojo that it leads to where that is not this one, and
 * the token of the student whose link it is. */
function codeIn(typed) {
  let link = null;
  try {
    link = new URL(typed.trim());
  } catch {
    return { code: typed };
  }
  const base = `${link.origin}${link.pathname.replace(/[^/]*$/, "")}`;
  const token = new URLSearchParams(link.hash.slice(1)).get("token") || "";
  return { code: link.searchParams.get("code") || "", at: base === withinApp("") ? "" : base, token };
}

class StartView {
  constructor(page) {
    this.page = page;
    this.parts = { mine: new Part(), ways: new Part() };
    this.root = el("section", { class: "view" }, el("header", {}, el("h1", {}, "Class"),
      el("p", { class: "about" }, "A teacher gives lessons, puzzles and pages, and sees where everybody is. Nobody needs an account.")),
    ...Object.values(this.parts).map((part) => part.node));
  }

  update({ code, taught, joined, kept_days: days }) {
    this.parts.mine.draw([taught, joined], () => el("section", {}, this.mine("You teach", taught), this.mine("You are in", joined)));
    this.parts.ways.draw([code, days], () => el("div", { class: "ways" }, this.join(code, days), code ? "" : this.make()));
  }

  mine(words, classes) {
    if (!classes.length) return "";
    return el("div", {}, el("h2", {}, words), el("div", { class: "mine" }, ...classes.map((each) =>
      el("button", { type: "button", "data-class": each.code, title: each.at, onclick: () => this.page.act("go", { code: each.code, at: each.at }) }, each.title))));
  }

  join(code, days) {
    const typed = field("Code, or the link that you were given", { value: code, maxlength: "2000", class: "field code-field", placeholder: "BCDF-GHJK", spellcheck: "false" });
    const name = field("Your name, as your teacher knows you", { maxlength: "40", autocomplete: "name" });
    return el("div", { class: "card join" }, el("h2", {}, "Join a class"),
      form("Join", () => this.page.act("join", { ...codeIn(typed.input.value), name: name.input.value }), typed.node, name.node), privacy(days));
  }

  make() {
    const title = field("What it is called", { maxlength: "80", placeholder: "Compilers, Monday" });
    return el("div", { class: "card make" }, el("h2", {}, "Teach a class"),
      form("Make a class", () => this.page.act("make", { title: title.input.value }), title.node),
      el("p", { class: "quiet" }, "You get a code and a link for your students."));
  }
}

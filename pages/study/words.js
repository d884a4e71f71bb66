// The words of a study beside the board: its chapters, what is told at a position, and the questions, which hold a
// reader up until they are answered or given up.

class StudyWords {
  constructor(session) {
    this.session = session;
    this.prose = new Prose(() => {});
    this.chapter = 0;
    this.open = new Map(); // of a question, the answers that were chosen
    const { study, chapters, machines } = session.data;
    this.title = el("h1", {}, study.title);
    this.chapters = el("select", { class: "field", "aria-label": "Chapter", onchange: () => this.enter(Number(this.chapters.value)) },
      ...chapters.map((chapter, number) => el("option", { value: number }, `${number + 1}. ${chapter.title}`)));
    this.machines = el("select", { class: "field", "aria-label": "Machine", onchange: () => { session.machine = Number(this.machines.value); session.tell(); this.draw(); } },
      ...machines.map((times, number) => el("option", { value: number }, `${times.machine}, ${times.date}`)));
    this.body = el("div", { class: "scroll body", tabindex: "0", role: "region", "aria-label": "What the study says here" });
    this.back = el("button", { type: "button", onclick: () => this.walk(-1) }, "‹ Back");
    this.next = el("button", { class: "primary", type: "button", onclick: () => this.walk(1) }, "Next ›");
    this.fork = el("button", { type: "button", title: "Play on from here in a Dojo on your own machine", onclick: () => this.takeAway() }, "Fork");
    this.place = el("span", { class: "quiet" });
    this.away = el("dialog", { class: "away" });
    this.away.addEventListener("click", (event) => { if (event.target === this.away) this.away.close(); });
    this.root = el("section", { class: "words", "aria-label": "Study" },
      el("header", {}, this.title, el("p", { class: "quiet" }, [study.authors.join(", "), study.licence].filter(Boolean).join(" · ")), this.chapters), this.body,
      el("footer", {}, machines.length > 1 ? el("label", {}, el("span", { class: "quiet" }, "Times of "), this.machines)
        : el("span", { class: "quiet" }, machines.length ? `Times: ${machines[0].machine}, ${machines[0].date}` : "Nothing of this study was timed."),
      el("div", { class: "walk" }, this.back, this.place, this.fork, this.next)), this.away);
  }

  get here() { return this.session.data.chapters[this.chapter]; }

  enter(number) {
    this.chapter = number;
    const { game, begins } = this.here;
    this.session.go(begins, game);
  }

  /** The chapters' stops in their order, as [chapter, number of the stop]. */
  get stops() {
    return this.session.data.chapters.flatMap((chapter, number) => chapter.stops.map((stop) => [number, stop.at]));
  }

  /** Where the reader is among the stops: the last one that lies on the way to the position. */
  get stop() {
    const { session, stops } = this;
    const way = this.way();
    let found = stops.findIndex(([chapter]) => chapter === this.chapter);
    stops.forEach(([chapter, at], number) => {
      if (chapter === this.chapter && way.includes(at) && way.indexOf(at) >= way.indexOf(stops[found][1])) found = number;
    });
    return this.here.game === session.game ? found : -1;
  }

  /** The positions from the start to the one on the board. */
  way() {
    const nodes = new Map(this.session.shown.history.map((node) => [node.id, node]));
    const way = [];
    for (let id = this.session.at; id !== null; id = nodes.get(id).parent) way.unshift(id);
    return way;
  }

  walk(step) {
    const { stops, session } = this;
    const at = this.stop;
    const beyond = session.at !== stops[at][1];
    const to = stops[step < 0 && beyond ? at : at + step];
    if (!to) return;
    [this.chapter] = to;
    session.go(to[1], this.here.game);
  }

  /** The position has changed: the chapter that tells of it, if the one that is read does not. */
  moved() {
    const { chapters } = this.session.data;
    const tells = (chapter) => chapter.game === this.session.game && chapter.stops.some((stop) => stop.at === this.session.at);
    if (!tells(this.here)) {
      const other = chapters.findIndex(tells);
      if (other >= 0) this.chapter = other;
    }
    this.draw();
  }

  draw() {
    const { session, here } = this;
    this.chapters.value = String(this.chapter);
    this.machines.value = String(session.machine);
    const way = this.way();
    const stop = here.stops.find((each) => each.at === session.at);
    const titled = [...here.stops].filter((each) => each.title && way.includes(each.at)).sort((a, b) => way.indexOf(a.at) - way.indexOf(b.at)).at(-1);
    const before = stop ? null : [...here.stops].filter((each) => each.blocks.length && way.includes(each.at)).sort((a, b) => way.indexOf(a.at) - way.indexOf(b.at)).at(-1);
    const node = session.shown.history.find((each) => each.id === session.at);
    this.body.replaceChildren(
      el("h2", {}, here.title),
      ...(titled ? [el("h3", {}, titled.title)] : []),
      el("p", { class: "quiet" }, node.move === null ? "The start." : el("span", {}, `Move ${node.ply}${node.variation ? ", a variation" : ""}: `, el("code", {}, node.move))),
      ...(stop ? this.prose.blocks(stop.blocks) : before ? [el("div", { class: "before" }, ...this.prose.blocks(before.blocks))] : []),
      ...(stop && stop.question ? [this.question(stop)] : []),
      ...this.table());
    this.body.scrollTop = 0;
    const at = this.stop;
    const { stops } = this;
    put(this.place, `${at + 1} of ${stops.length}`);
    this.back.disabled = at <= 0 && session.at === stops[0][1];
    this.next.disabled = at >= stops.length - 1 || session.open(session.game, session.at);
    this.next.title = session.open(session.game, session.at) ? "Answer the question, or give it up, first" : "";
  }

  /** What the position takes on each machine. */
  table() {
    const { machines } = this.session.data;
    if (machines.length < 2) return [];
    const { hash } = this.session.sheet.position;
    return [el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "Machine"), el("th", {}, "Time"), el("th", {}, "Speed-up"))),
      el("tbody", {}, ...machines.map((times) => {
        const [here, start] = [times.seconds[hash], times.seconds[this.session.shown.game.start]];
        return el("tr", {}, el("td", {}, `${times.machine}, ${times.date}`), el("td", {}, here ? duration(here[0]) : "–"), el("td", {}, here && start ? ratio(start[0] / here[0]) : "–"));
      })))];
  }

  question({ at, question }) {
    const key = `${this.here.id}/${at}`;
    const chosen = this.open.get(key) || new Set();
    const done = this.session.answered.has(key);
    const finish = () => { this.session.answered.add(key); this.draw(); this.session.tell(); };
    const choose = (number) => {
      this.open.set(key, chosen.add(number));
      if (question.answers[number].right) finish();
      else this.draw();
    };
    const answers = question.answers.map((answer, number) => {
      const told = chosen.has(number) || (done && answer.right);
      return el("div", {}, el("button", { class: `answer ${told ? (answer.right ? "right" : "wrong") : ""}`, type: "button", disabled: done || told, onclick: () => choose(number) },
        el("span", { class: "mark", "aria-hidden": "true" }, told ? (answer.right ? "✓" : "✗") : ""), question.kind === "move" ? el("code", {}, answer.text) : el("span", {}, ...this.prose.spans(answer.words))),
      told && answer.why.length ? this.prose.paragraph(answer.why, { class: "why" }) : "");
    });
    return el("div", { class: "question", role: "group", "aria-label": "Question" }, this.prose.paragraph(question.words, { class: "asked" }),
      question.move ? el("p", {}, el("code", {}, question.move)) : "", ...answers,
      done && question.refusal ? el("p", { class: "why" }, `The Dojo says: ${question.refusal}`) : "",
      done ? "" : el("button", { class: "small ghost", type: "button", onclick: finish }, "Give up: show the answer"));
  }

  /** The times of the machine that is chosen along the line to here, to stand beside those of the reader's own. */
  timesAlong() {
    const { times, shown } = this.session;
    if (!times) return "";
    const hashes = new Map(shown.history.map((node) => [node.id, node.hash]));
    const seconds = this.way().map((id) => times.seconds[hashes.get(id)]).map((known) => (known ? Number(known[0].toPrecision(4)) : null));
    const bytes = new TextEncoder().encode(JSON.stringify([times.machine, times.date, seconds]));
    return `&times=${btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  }

  takeAway() {
    const { link } = this.session.sheet;
    const address = el("input", { class: "field", type: "url", value: "http://127.0.0.1:8501", "aria-label": "Address of your Dojo" });
    const go = el("a", { class: "button primary", target: "_blank", rel: "noopener noreferrer" }, "Open it there");
    const point = () => {
      const base = /^https?:\/\/[\w.:[\]-]+/.exec(address.value.trim());
      if (base && link) go.href = `${base[0]}/?g=${encodeURIComponent(link)}${this.timesAlong()}`;
      else go.removeAttribute("href");
    };
    address.addEventListener("input", point);
    point();
    const file = new Blob([this.session.shown.text], { type: "text/plain" });
    const save = el("a", { class: "button", href: URL.createObjectURL(file), download: `${this.session.shown.game.title.replace(/[^A-Za-z0-9]+/g, "-")}.line` }, "Save the game as a file");
    this.away.replaceChildren(el("h2", {}, "Play on from here"),
      el("p", {}, "A Dojo on your own machine opens this position and times it there (", el("code", {}, "pip install dojo && dojo app"), ")."),
      link ? el("label", {}, el("span", {}, "Its address "), address) : el("p", {}, "The line is too long for a link: save the game, and open the file on the start screen."),
      el("div", { class: "walk" }, link ? go : "", save, el("button", { type: "button", onclick: () => this.away.close() }, "Close")));
    this.away.showModal();
  }
}

// The study as a whole: who tells it, its chapters, its times, the page that is built of it.

const FACTS = [
  ["title", "Title", ""],
  ["about", "What it is about, in a sentence", ""],
  ["authors", "Authors, with commas", "Ann Example, Bo Example"],
  ["licence", "Licence", "CC BY 4.0"],
];

class WholeView {
  constructor(panel) {
    this.panel = panel;
    this.inputs = Object.fromEntries(FACTS.map(([name, , placeholder]) => [name, el("input", { class: "field", type: "text", placeholder })]));
    const send = () => panel.tell("facts", Object.fromEntries(FACTS.map(([name]) => [name, this.inputs[name].value])));
    this.fields = Object.fromEntries(FACTS.map(([name]) => [name, new Field(this.inputs[name], send)]));
    this.chapters = el("div", { class: "chapters" });
    this.titles = [];
    this.added = el("input", { class: "field", type: "text", placeholder: "Title of a new chapter", "aria-label": "Title of a new chapter" });
    const add = (kind) => { panel.tell(kind, { ...panel.here.at, title: this.added.value || "Another chapter" }); this.added.value = ""; };
    this.fromPlay = el("button", { class: "small", type: "button", onclick: () => add("add_game") }, "From the game on Play");
    this.machines = new Part();
    this.timing = new Part();
    this.building = new Part();
    this.taking = false; // was the page saved that is told?
    this.root = el("div", { class: "tab", role: "tabpanel", "aria-label": "Whole" },
      ...FACTS.map(([name, words]) => el("label", {}, words, this.inputs[name])),
      el("h2", {}, "Chapters"), this.chapters, this.added,
      el("div", { class: "row" }, el("button", { class: "small", type: "button", onclick: () => add("add_chapter") }, "From the position on the board"), this.fromPlay),
      el("h2", {}, "Times"), this.machines.node, this.timing.node,
      el("h2", {}, "The page"), el("p", { class: "quiet" }, "One file that opens anywhere, without a server or a network: send it, put it on a site, into a frame, on a slide."), this.building.node,
      el("h2", {}, "The file"), (this.file = el("p", { class: "quiet mono wrapped" })),
      el("div", { class: "row" }, el("button", { class: "small", type: "button", onclick: () => this.save(`${panel.study.name}.md`, panel.study.text, "text/markdown") }, "Download the text"),
        el("span", { class: "spring" }), el("button", { class: "small ghost", type: "button", onclick: () => this.remove() }, "Delete the study")));
  }

  remove() {
    const { name, title } = this.panel.study;
    if (window.confirm(`Delete ${title}? Its file goes into the folder "deleted" beside the others.`)) this.panel.tell("delete", { name });
  }

  save(name, text, type) {
    const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    this.root.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  update(study) {
    const { facts, title, name, chapters } = study;
    for (const [fact] of FACTS) this.fields[fact].update(fact === "title" ? title : facts[fact], `${fact}/${name}`);
    while (this.titles.length < chapters.length) {
      const chapter = this.titles.length;
      const input = el("input", { class: "field", type: "text", "aria-label": `Title of chapter ${chapter + 1}` });
      this.titles.push(new Field(input, (words) => this.panel.tell("chapter_title", { chapter, title: words })));
      this.chapters.append(input);
    }
    this.titles.splice(chapters.length).forEach((field) => field.node.remove());
    this.titles.forEach((field, number) => field.update(chapters[number].title, `chapter/${name}/${number}`));
    put(this.file, study.file);
    this.machines.draw([study.machines, study.positions], () => study.machines.length
      ? el("ul", {}, ...study.machines.map((each) => el("li", {}, `${each.machine}, ${each.date}: ${each.timed} of ${plural(study.positions, "program")}`)))
      : el("p", { class: "quiet" }, "None yet. They are taken here; run dojo study time on another machine with the same file, and both stand side by side."));
    this.timing.draw(study.timing, () => this.drawTiming(study.timing));
    this.building.draw(study.building, () => this.drawBuilding(study.building));
    if (study.page && !this.taking) {
      this.taking = true;
      this.save(study.page.name, study.page.text, "text/html");
      this.panel.tell("received");
    } else if (!study.page) this.taking = false;
  }

  drawTiming({ state, done, total, message }) {
    const tell = (kind, fields) => () => this.panel.tell(kind, fields);
    if (state === "running") return this.underWay("Positions timed", done, total, message, tell("stop"));
    return el("div", {}, state === "failed" ? el("p", { class: "told refused" }, `No times: ${message}`) : "",
      el("div", { class: "row" }, el("button", { class: "small", type: "button", onclick: tell("time", { again: false }) }, state === "stopped" ? `Go on (${done} of ${total} are timed)` : "Time what has no time yet"),
        el("button", { class: "small ghost", type: "button", onclick: tell("time", { again: true }) }, "All anew")));
  }

  /** `message`: whom it waits for, if anybody. */
  underWay(label, done, total, message, stop) {
    const told = message || (total ? `${done} of ${plural(total, "position")}: it goes on when you leave.` : "Beginning…");
    return el("div", { class: "row" }, el("progress", { max: total || 1, value: done, "aria-label": label }),
      el("span", { role: "status", class: "wrapped" }, told), el("button", { class: "small", type: "button", onclick: stop }, "Stop"));
  }

  drawBuilding({ state, done, total, message, built }) {
    const tell = (kind, fields) => () => this.panel.tell(kind, fields);
    if (state === "running") return this.underWay("Positions built", done, total, message, tell("stop", { what: "building" }));
    return el("div", { class: "answers" }, state === "failed" ? el("p", { class: "told refused" }, `Not built: ${message}`) : "",
      built ? el("p", {}, `${built.name}, ${Math.round(built.bytes / 1024)} KB, built ${built.changed}${built.older ? ": the text is newer" : ""}.`) : "",
      el("div", { class: "row" }, built ? el("button", { class: `small ${built.older ? "" : "primary"}`, type: "button", onclick: tell("download") }, "Download the page") : "",
        el("button", { class: `small ${built && !built.older ? "" : "primary"}`, type: "button", onclick: tell("build") }, built ? "Build it again" : "Build the page")));
  }
}

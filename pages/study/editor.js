// The panel of the page Study: the list of studies, or one of them, by position, as a whole and as a text.

const TABS = [["here", "Here"], ["whole", "Study"], ["source", "Text"]];

class Panel extends BesidePanel {
  constructor(parent) {
    super("study");
    this.prose = new Prose(() => {});
    this.here = new HereView(this);
    this.whole = new WholeView(this);
    this.source = new SourceView(this);
    this.tab = "here";
    this.list = el("section", { class: "list" });
    this.title = el("h1", {});
    this.state = el("span", { class: "quiet", role: "status" });
    this.tabs = TABS.map(([name, words]) => el("button", { class: "tab-button", type: "button", role: "tab", "data-tab": name, onclick: () => this.choose(name) }, words));
    this.fault = el("p", { class: "told refused", role: "alert" });
    this.wrong = el("div", { class: "told refused" });
    this.body = el("div", { class: "scroll body", tabindex: "0" }, this.fault, this.wrong, this.here.root, this.whole.root, this.source.root);
    this.pane = el("section", { class: "pane", "aria-label": "Study" },
      el("header", { class: "head" }, el("div", { class: "row" }, el("button", { class: "small ghost", type: "button", onclick: () => this.leave() }, "‹ All studies"), el("span", { class: "spring" }), this.state),
        this.title, el("div", { class: "tabs", role: "tablist" }, ...this.tabs)), this.body);
    // What is typed here stays here.
    this.stand(parent, el("div", { class: "writing" }, this.list, this.pane), (event) => event.composedPath()[0].matches("input, textarea, select, .scroll"));
    this.root.querySelector(".tabs").addEventListener("keydown", (event) => this.turn(event));
    this.left = () => this.commit();
    window.addEventListener("pagehide", this.left);
    this.choose("here");
  }

  close() {
    window.removeEventListener("pagehide", this.left);
    super.close();
  }

  /** Send what is typed and was not sent yet. */
  commit() {
    for (const field of [...Object.values(this.here.fields), ...Object.values(this.whole.fields), ...this.whole.titles]) field.commit();
    this.source.send();
  }

  leave() {
    this.commit();
    this.tell("list");
  }

  choose(name) {
    this.tab = name;
    for (const button of this.tabs) {
      const chosen = button.dataset.tab === name;
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
    }
    if (this.study) this.arrange();
  }

  turn(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.stopPropagation();
    const at = TABS.findIndex(([name]) => name === this.tab);
    const next = (at + step + TABS.length) % TABS.length;
    this.choose(TABS[next][0]);
    this.tabs[next].focus();
  }

  /** A text that is no study can be corrected, and nothing else. */
  arrange() {
    const sound = !this.study.wrong;
    show(this.here.root, this.tab === "here" && sound && Boolean(this.study.here));
    show(this.whole.root, this.tab === "whole" && sound);
    show(this.source.root, this.tab === "source");
    show(this.wrong, !sound && this.tab !== "source");
    this.wrong.replaceChildren(el("p", {}, "The text of this study cannot be read: correct it first."), el("pre", {}, sound ? "" : this.study.wrong.told),
      el("button", { class: "small", type: "button", onclick: () => { this.choose("source"); if (this.source.line) this.source.goTo(this.source.line); } }, "Show me where"));
  }

  draw(data) {
    if (!this.events.waits((event) => event.kind === "question")) this.here.asking.heard(data.fault);
    if (!this.changed(data)) return;
    const study = data.view === "study" ? data.study : null;
    if (this.study && (!study || study.name !== this.study.name)) this.choose("here");
    this.study = study;
    show(this.list, !study);
    show(this.pane, Boolean(study));
    if (!study) return this.drawList(data.list, data.fault);
    put(this.title, study.title);
    put(this.state, study.clash ? "Changed elsewhere" : study.wrong ? "Saved; cannot be read yet" : "Saved");
    const fault = this.here.asking.tells(data.fault) ? "" : data.fault;
    put(this.fault, fault);
    show(this.fault, Boolean(fault));
    this.source.update(study);
    if (!study.wrong) {
      this.whole.update(study);
      if (study.here) this.here.update(study);
    }
    this.arrange();
    return null;
  }

  drawList({ studies, folder, play, lines }, fault) {
    const line = el("select", { class: "field", "aria-label": "Recorded line" }, ...lines.map((name) => el("option", { value: name }, name)));
    this.list.replaceChildren(
      el("header", {}, el("h1", {}, "Studies"), el("p", { class: "about" }, "A game with words: what was played, why, and questions to whoever reads it. Written beside the board, built into one page that opens anywhere.")),
      fault ? el("p", { class: "told refused", role: "alert" }, fault) : "",
      el("div", { class: "begin" },
        play ? el("div", { class: "row" }, el("button", { class: "primary", type: "button", onclick: () => this.tell("begin") }, "Begin with the game on Play"),
          el("span", { class: "quiet wrapped" }, `${play.title}, ${plural(play.moves, "move")}`))
          : el("p", { class: "quiet" }, "There is no game on Play. Play one, and come back to write about it; or begin with a recorded line."),
        el("div", { class: "row" }, line, el("button", { type: "button", onclick: () => this.tell("begin_line", { line: line.value }) }, "Begin with this recorded line"))),
      el("h2", {}, "Yours"),
      studies.length ? el("ul", { class: "cards" }, ...studies.map((study) => el("li", {}, el("button", { class: "card", type: "button", "data-study": study.name, onclick: () => this.tell("open", { name: study.name }) },
        el("strong", {}, study.title), el("span", { class: "quiet" }, `${study.name}.md · ${study.changed}`)))))
        : el("p", { class: "quiet" }, "None yet."),
      el("p", { class: "quiet" }, "They are Markdown files in ", el("code", {}, folder), ": any editor may write them too."));
  }
}

export default mounting(Panel);

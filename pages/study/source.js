// The text of a study, to be written by hand: saved and checked while it is typed, what is wrong told with its line.

const CHECKED = 500; // ms after the last key

class SourceView {
  constructor(panel) {
    this.panel = panel;
    this.name = null;
    this.base = ""; // the revision that the text in the field began from
    this.value = ""; // and that text
    this.number = 0;
    this.under = null; // the number of the text that is under way, and the text
    this.clashes = false; // does another text stand in the file than the one that this one began from?
    this.timer = null;
    this.field = el("textarea", { class: "field source", spellcheck: "true", "aria-label": "The study's text", "aria-describedby": "source-told", wrap: "soft" });
    this.field.addEventListener("input", () => {
      unsaved.keep(`text/${this.name}`, { value: this.field.value, base: this.base });
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.send(), CHECKED);
    });
    this.field.addEventListener("change", () => this.send());
    this.told = el("pre", { id: "source-told", role: "status", class: "told" });
    this.jump = el("button", { class: "small", type: "button", onclick: () => this.goTo(this.line) });
    this.clash = el("div", { class: "told refused", role: "alert" }, el("p", {}, "This study was changed in another window, or by another program, since this text was read. Nothing of yours was written over it yet, and nothing of it is lost."),
      el("div", { class: "row" }, el("button", { class: "small", type: "button", onclick: () => this.keepMine() }, "Put mine in its place"),
        el("button", { class: "small", type: "button", onclick: () => this.takeTheirs() }, "Take what stands there")));
    this.root = el("div", { class: "tab", role: "tabpanel", "aria-label": "Text" }, this.clash, this.field, el("div", { class: "row" }, this.jump), this.told);
  }

  get dirty() { return this.field.value !== this.value; }

  send(before = this.base) {
    clearTimeout(this.timer);
    this.timer = null;
    if (this.under !== null || this.clashes || !this.dirty) return;
    this.number += 1;
    this.under = { number: this.number, value: this.field.value };
    this.panel.tell("text", { text: this.field.value, before, number: this.number });
  }

  keepMine() {
    this.value = this.theirs;
    this.base = this.revision;
    this.clashes = false;
    this.send();
  }

  takeTheirs() {
    this.fill(this.theirs, this.revision);
    this.clashes = false;
    this.number += 1; // the server hears that it is settled
    this.under = { number: this.number, value: this.theirs };
    this.panel.tell("text", { text: this.theirs, before: this.revision, number: this.number });
  }

  fill(text, revision) {
    if (this.field.value !== text) {
      const { selectionStart, scrollTop } = this.field;
      this.field.value = text;
      this.field.selectionStart = this.field.selectionEnd = selectionStart;
      this.field.scrollTop = scrollTop;
    }
    this.value = text;
    this.base = revision;
  }

  update(study) {
    const { name, text, revision, saved, clash, wrong } = study;
    const about = (told) => told && this.under !== null && told.client === this.panel.events.client && told.number === this.under.number;
    this.theirs = text;
    this.revision = revision;
    if (name !== this.name) {
      this.name = name;
      this.under = null;
      this.clashes = false;
      this.fill(text, revision);
      const left = unsaved.take(`text/${name}`);
      if (left && left.value !== text) {
        this.field.value = left.value;
        this.base = left.base;
        setTimeout(() => this.send(), 0);
      }
    } else if (about(saved)) {
      this.value = this.under.value;
      this.base = saved.revision;
      this.under = null;
      if (this.dirty) this.send();
    } else if (about(clash)) {
      this.under = null;
      this.clashes = true;
    }
    if (!this.dirty && this.under === null) {
      if (revision !== this.base) this.fill(text, revision);
      unsaved.drop(`text/${name}`);
    }
    show(this.clash, this.clashes);
    show(this.told, !this.clashes); // of another text than this one
    this.line = wrong ? wrong.line : 0;
    put(this.told, wrong ? wrong.told : `Saved, and sound: ${plural(study.chapters.length, "chapter")}, ${plural(study.positions, "position")}, ${plural(study.questions, "question")}. Every move in it is legal.`);
    this.told.classList.toggle("refused", Boolean(wrong));
    this.field.setAttribute("aria-invalid", String(Boolean(wrong)));
    show(this.jump, this.line > 0);
    put(this.jump, `Go to line ${this.line}`);
  }

  goTo(line) {
    const lines = this.field.value.split("\n");
    const begin = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.field.focus();
    this.field.setSelectionRange(begin, begin + (lines[line - 1] || "").length);
    this.field.scrollTop = Math.max(0, (line - 4) * parseFloat(getComputedStyle(this.field).lineHeight));
  }
}

// Words about the position on the board: where it stands in the study, its heading, what is told, what is asked.

const TYPED = 900; // ms after the last key until what was typed is sent

/** What is typed survives a reload of the tab until the server has it. */
const unsaved = {
  keep(key, value) { try { sessionStorage.setItem(`dojo-study/${key}`, JSON.stringify(value)); } catch { /* full, or not allowed */ } },
  take(key) { try { return JSON.parse(sessionStorage.getItem(`dojo-study/${key}`)); } catch { return null; } },
  drop(key) { try { sessionStorage.removeItem(`dojo-study/${key}`); } catch { /* not allowed */ } },
};

/** A field whose words the server keeps: what it tells is shown, unless other words are typed here meanwhile. */
class Field {
  /** `send(value, before, at)` passes on what was typed, `before` the words that it began from, `at` where. */
  constructor(node, send) {
    this.node = node;
    this.send = send;
    this.key = this.at = null;
    this.base = "";
    this.timer = null;
    node.addEventListener("input", () => {
      unsaved.keep(this.key, { value: node.value, base: this.base });
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.commit(), TYPED);
    });
    node.addEventListener("change", () => this.commit());
  }

  commit() {
    clearTimeout(this.timer);
    this.timer = null;
    if (this.key !== null && this.node.value !== this.base) this.send(this.node.value, this.base, this.at);
  }

  /** What the server tells; `key` names the place, `at` is what tells the server of it. */
  update(value, key, at = null) {
    if (key !== this.key) {
      this.commit();
      this.key = key;
      this.base = this.node.value = value;
      const left = unsaved.take(key);
      if (left && left.value !== value) [this.node.value, this.base] = [left.value, left.base];
    } else if (this.node.value === this.base || this.node.value.trim() === value.trim()) {
      this.base = value;
      if (this.timer === null && this.node.value.trim() !== value.trim()) this.node.value = value;
      else if (this.node.value.trim() === value.trim()) this.base = this.node.value;
    } else this.base = value;
    if (this.node.value === this.base) unsaved.drop(key);
    this.at = at;
  }
}

class HereView {
  constructor(panel) {
    this.panel = panel;
    const tell = (kind, fields) => panel.tell(kind, fields);
    this.chapters = el("select", { class: "field", "aria-label": "Chapter", onchange: () => this.enter(Number(this.chapters.value)) });
    this.stops = new Part();
    this.place = el("p", { class: "quiet" });
    this.putIn = el("button", { class: "small", type: "button", onclick: () => tell("put_in", this.at) }, "Put this move into the study");
    this.title = el("input", { class: "field", type: "text", maxlength: 60, placeholder: "One pass" });
    this.note = el("textarea", { class: "field note", rows: 6, placeholder: "What is there to see here? `code`, **bold**, lists, [links](https://…)" });
    this.fields = {
      title: new Field(this.title, (title, before, at) => tell("title", { ...at, title })),
      note: new Field(this.note, (words, before, at) => tell("note", { ...at, words, before })),
    };
    this.titleRow = el("label", {}, "Heading: what this move and those after it are about", this.title);
    this.shown = new Part();
    this.asking = new Asking(panel, () => this.at);
    this.hint = el("p", { class: "quiet" });
    this.root = el("div", { class: "tab", role: "tabpanel", "aria-label": "Here" },
      el("div", { class: "row" }, this.chapters), this.stops.node, this.place, this.putIn, this.titleRow,
      el("label", {}, "What you tell here", this.note), this.hint, this.shown.node, this.asking.root);
  }

  enter(chapter) {
    this.panel.tell("go", { chapter, moves: this.panel.study.chapters[chapter].stops[0].moves });
  }

  update(study) {
    const { here, chapters, name, revision } = study;
    this.at = { chapter: here.chapter, moves: here.moves };
    const words = chapters.map((chapter, number) => `${number + 1}. ${chapter.title}`);
    if ([...this.chapters.options].map((option) => option.text).join("\n") !== words.join("\n")) {
      this.chapters.replaceChildren(...words.map((text, number) => el("option", { value: number }, text)));
    }
    this.chapters.value = String(here.chapter);
    const stops = chapters[here.chapter].stops;
    this.stops.draw([here.chapter, here.moves, stops], () => el("ol", { class: "scroll stops", "aria-label": "Positions of this chapter", tabindex: "0" }, ...stops.map((stop) => el("li", {},
      el("button", { class: "stop", type: "button", title: stop.label, "aria-current": stop.moves === here.moves ? "step" : null, onclick: () => this.panel.tell("go", { chapter: here.chapter, moves: stop.moves }) },
        el("span", { class: "quiet" }, String(stop.ply)), el("span", { class: "label" }, stop.label),
        el("span", { class: "quiet" }, [stop.told ? "¶" : "", stop.asked ? "?" : ""].join(" ")))))));
    put(this.place, here.ply ? `After move ${here.ply}: ${here.move}${here.in ? "" : ", which is not in the study yet"}` : "Before the first move");
    show(this.putIn, !here.in);
    show(this.titleRow, here.ply > 0 && !here.recorded);
    const key = `${name}/${here.chapter}/${here.moves}`;
    this.fields.title.update(here.title, `title/${key}`, this.at);
    this.fields.note.update(here.note, `note/${key}`, this.at);
    put(this.hint, here.in ? "" : "Words that you write here put the move into the study.");
    this.shown.draw([here.blocks, here.title], () => here.blocks.length ? el("section", { class: "shown", "aria-label": "As readers see it" },
      el("h2", {}, "As readers see it"), ...(here.title ? [el("h3", {}, here.title)] : []), ...this.panel.prose.blocks(here.blocks)) : el("div"));
    this.asking.update(here, revision);
  }
}

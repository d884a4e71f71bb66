// Two texts as what differs: in line, or side by side. Signs and words carry it beside the colours, and a screen
// reader hears "removed" and "added"; long stretches that stayed are folded.

const CONTEXT = 3; // lines shown around what differs
const FOLDED = 8; // lines that stayed: fewer are shown
const KINDS = { same: ["", ""], removed: ["−", "removed"], added: ["+", "added"] };

class Difference {
  /** `label` names the texts to a screen reader: "C"; `unfolded` is called when lines have come into view. */
  constructor(label, unfolded = () => {}) {
    this.label = label;
    this.unfolded = unfolded;
    this.summary = el("span", { role: "status" });
    const step = (by, words, sign) => el("button", { class: "small", type: "button", "aria-label": words, title: words, onclick: () => this.go(by) }, sign);
    this.steps = el("span", { class: "steps" }, step(-1, "Previous difference", "↑"), step(1, "Next difference", "↓"));
    this.table = el("div", { class: "scroll mono", tabindex: "0" });
    this.root = el("div", { class: "difference" }, el("div", { class: "difference-head" }, this.summary, this.steps), this.table);
    this.blocks = [];
    this.folds = [];
  }

  /** In place of texts, why there are none. */
  tell(sentence) {
    put(this.summary, "");
    show(this.steps, false);
    this.blocks = this.folds = [];
    this.table.removeAttribute("role");
    this.table.replaceChildren(el("p", { class: "empty" }, sentence));
  }

  /**
   * `before` and `after`: the texts' lines; `kind` is one of TEXTS, `layout` "line" or "side", `names` of the two
   * texts; `paths`: of each line after, the node that it comes from.
   */
  draw(before, after, { kind, layout, names, paths = [] }) {
    const { key, shown } = TEXTS[kind];
    this.texts = { before: before.map(shown), after: after.map(shown), paths, key };
    this.layout = layout;
    const rows = alignedLines(this.texts.before, this.texts.after, key);
    this.count(rows);
    this.table.setAttribute("role", "table");
    this.table.setAttribute("aria-label", `${this.label}: from ${names[0]} to ${names[1]}`);
    this.blocks = [];
    this.folds = [];
    const head = layout === "side" ? ["", names[0], "", names[1]] : ["", "Line"];
    const title = el("div", { class: `line titles ${layout === "side" ? "pair" : "unseen"}`, role: "row" },
      head.map((name) => el("span", { role: "columnheader" }, name)));
    this.table.replaceChildren(title, ...this.folded(rows));
    this.table.scrollTop = 0;
  }

  count(rows) {
    const of = (kind) => rows.filter(([its]) => its === kind).length;
    const counts = [["changed", of("changed")], ["added", of("added")], ["removed", of("removed")]].filter(([, n]) => n);
    put(this.summary, counts.length ? counts.map(([kind, n], at) => `${at ? n : plural(n, "line")} ${kind}`).join(", ") : "No difference here");
    show(this.steps, counts.length > 0);
  }

  /** The rows as elements; of a long stretch that stayed a button that shows it. */
  folded(rows) {
    const shown = [];
    for (let at = 0; at < rows.length;) {
      let end = at;
      while (end < rows.length && (rows[end][0] === "same") === (rows[at][0] === "same")) end += 1;
      const run = rows.slice(at, end);
      if (run[0][0] !== "same") {
        const block = run.flatMap((row) => this.row(row));
        this.blocks.push(block[0]);
        shown.push(...block);
      } else {
        const [head, tail] = [at ? CONTEXT : 0, end < rows.length ? CONTEXT : 0];
        const hidden = run.slice(head, run.length - tail);
        if (hidden.length < FOLDED || run.length === rows.length) shown.push(...run.flatMap((row) => this.row(row)));
        else {
          shown.push(...run.slice(0, head).flatMap((row) => this.row(row)), this.fold(hidden),
            ...run.slice(run.length - tail).flatMap((row) => this.row(row)));
        }
      }
      at = end;
    }
    return shown;
  }

  fold(rows) {
    const open = () => {
      line.replaceWith(...rows.flatMap((row) => this.row(row)));
      this.folds = this.folds.filter((fold) => fold.open !== open);
    };
    const line = el("div", { class: "line folded", role: "row" }, el("span", { role: "cell" },
      el("button", { class: "small", type: "button", onclick: () => { open(); this.unfolded(); } }, `${plural(rows.length, "line")} the same`)));
    this.folds.push({ open, paths: rows.map(([, , j]) => this.texts.paths[j]).filter(Boolean) });
    return line;
  }

  /** Unfold where a node is of whose path `asked` says so. */
  reveal(asked) {
    for (const fold of this.folds.filter(({ paths }) => paths.some(asked))) fold.open();
  }

  /** The elements of a row: in line, a changed line is one that went and one that came. */
  row([kind, i, j]) {
    const { before, after, key } = this.texts;
    const [old, now] = kind === "changed" ? alignedWords(before[i], after[j], key)
      : [i === null ? null : [[before[i], false]], j === null ? null : [[after[j], false]]];
    const went = kind === "same" ? "same" : "removed", came = kind === "same" ? "same" : "added";
    if (this.layout === "side") {
      return [this.line("pair", j, [...this.cells(went, old, "del"), ...this.cells(came, now, "ins")])];
    }
    const lines = [];
    if (old && kind !== "same") lines.push(this.line("diff minus", null, this.cells(went, old, "del")));
    if (now) lines.push(this.line(kind === "same" ? "diff same" : "diff plus", j, this.cells(came, now, "ins")));
    return lines;
  }

  line(classes, j, cells) {
    const path = j === null ? null : this.texts.paths[j];
    return el("div", { class: `line ${classes}${path ? " op" : ""}`, role: "row", "data-path": path }, cells);
  }

  cells(kind, pieces, tag) {
    if (pieces === null) return [el("span", { class: "sign", role: "cell" }), el("span", { class: "side none", role: "cell" })];
    const [sign, words] = KINDS[kind];
    return [
      el("span", { class: `sign ${kind}`, role: "cell" }, el("span", { "aria-hidden": "true" }, sign), el("span", { class: "unseen" }, words)),
      el("span", { class: `side ${kind}`, role: "cell" }, pieces.map(([text, differs]) => (differs ? el(tag, {}, text) : text))),
    ];
  }

  /** To the next block of differences, or the one before. */
  go(by) {
    const top = (node) => node.getBoundingClientRect().top - this.table.getBoundingClientRect().top;
    const ahead = this.blocks.filter((block) => (by > 0 ? top(block) > 60 : top(block) < 40));
    const next = by > 0 ? ahead[0] : ahead[ahead.length - 1];
    if (next) this.table.scrollTop += top(next) - 50;
  }

  /** Scroll so that a line of a node is in view. */
  bring(line) {
    const [box, at] = [this.table.getBoundingClientRect(), line.getBoundingClientRect()];
    if (at.top < box.top || at.bottom > box.bottom) this.table.scrollTop += at.top - box.top - box.height / 3;
  }
}

const LAYOUTS = [["line", "In line"], ["side", "Side by side"]];
const LAYOUT = "dojo-difference"; // in the browser's storage

/** The switch between the two layouts, which the browser keeps. */
class LayoutSwitch {
  constructor(changed) {
    this.changed = changed;
    this.buttons = LAYOUTS.map(([id, words]) => el("button", { class: "small", type: "button", "data-layout": id, onclick: () => this.choose(id) }, words));
    this.root = el("span", { class: "switch", role: "group", "aria-label": "How differences are shown" }, this.buttons);
    let kept = null;
    try { kept = window.localStorage.getItem(LAYOUT); } catch { /* storage may be off */ }
    this.value = LAYOUTS.some(([id]) => id === kept) ? kept : "line";
    this.mark();
  }

  mark() {
    for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.layout === this.value));
  }

  choose(layout) {
    this.value = layout;
    try { window.localStorage.setItem(LAYOUT, layout); } catch { /* then it holds for this page */ }
    this.mark();
    this.changed();
  }
}

/** What stands on top of a comparison: two names with their times, and the ratio of these. */
class Versus {
  /** `labels` of the two sides. */
  constructor(labels, ...controls) {
    this.sides = [0, 1].map(() => ({ name: el("code", {}), time: el("span", { class: "versus-time" }) }));
    this.ratio = el("strong", {});
    this.root = el("div", { class: "versus" },
      this.sides.map(({ name, time }, at) => el("span", { class: "versus-side" }, el("span", { class: "quiet" }, labels[at]), name, time)),
      this.ratio, el("span", { class: "spring" }), controls);
  }

  /** `names` and `times`: two texts each; `speed`: `words`, `tone` (a class) and a sentence for `title`, or null. */
  tell(names, times, speed) {
    this.sides.forEach(({ name, time }, at) => {
      put(name, names[at]);
      name.title = names[at];
      put(time, times[at]);
    });
    put(this.ratio, speed ? speed.words : "");
    this.ratio.className = speed ? speed.tone : "";
    this.ratio.title = speed ? speed.title : "";
  }
}

// What stands under the field of the moves: why what was typed is refused; the recipes, and the moves that no
// row shows, which people call by the words that they typed, or nearly so.

const WORDS_SHOWN = 4;

class Words {
  constructor(pane) {
    this.pane = pane;
    this.refused = null; // [what was typed, why it is refused]
    this.root = el("div", { class: "typed-words", "aria-live": "polite" });
  }

  get commands() {
    return Object.entries(this.pane.board.data.commands || {});
  }

  /** A sentence about what stands in the field. */
  refuse(sentence) {
    this.refused = [this.pane.filter.trim(), sentence];
    this.draw(0);
  }

  /** `rows`: how many moves of the list are shown. */
  draw(rows) {
    const typed = this.pane.filter.trim();
    if (this.refused && this.refused[0] !== typed) this.refused = null;
    const command = this.pane.command();
    const parts = [];
    if (this.refused) parts.push(el("p", { class: "failure", role: "alert" }, this.refused[1]));
    if (typed && (!command || /\s[a-z]/i.test(typed))) parts.push(...this.suggestions(typed, command ? 1 : rows)); // unroll and jam
    this.root.replaceChildren(...parts);
    show(this.root, parts.length > 0);
  }

  suggestions(typed, rows) {
    const words = typed.toLowerCase().split(/\s+/);
    const listed = new Set([...this.pane.moves.values()].map((move) => move.name));
    let found = this.commands.filter(([name, [, , also]]) =>
      !listed.has(name) && words.every((word) => `${name} ${also || ""}`.includes(word)));
    let title = "Also called so:";
    let rest = ""; // what follows a name in which a letter is wrong
    if (!found.length && !rows) {
      found = this.nearest(words.join("_"));
      title = "Did you mean";
    }
    if (!found.length && !rows && /\s.*[@\d]/.test(typed)) { // paralelize m@0
      found = this.nearest(words[0]);
      rest = typed.replace(/^\S+\s+/, "");
    }
    if (!found.length && !rows && words.length > 1) { // vectorise everything
      rest = "";
      found = this.commands.filter(([name, [, , also]]) => words.some((word) => word.length > 3 && `${name} ${also || ""}`.includes(word)));
      title = "Nothing is called all of this. With one of the words:";
    }
    if (!found.length) return [];
    return [el("p", {}, el("span", { class: "quiet" }, `${title} `), ...found.slice(0, WORDS_SHOWN).map(([name, [form, summary]]) =>
      el("button", { class: "small", type: "button", title: summary, onclick: () => this.pane.write(`${name} ${rest}`) }, rest ? `${name} ${rest}` : form)))];
  }

  /** The commands of whose names or other names one is but a few letters apart. */
  nearest(typed) {
    const most = typed.length < 4 ? 0 : typed.length < 8 ? 1 : 2;
    const apart = ([name, [, , also]]) => Math.min(...[name, ...(also || "").split(" ").filter(Boolean)].map((word) => edits(typed, word)));
    return this.commands.map((command) => [apart(command), command]).filter(([count]) => count <= most)
      .sort((a, b) => a[0] - b[0]).map(([, command]) => command);
  }
}

/** How many letters have to be changed, left out or put in (Levenshtein). */
function edits(a, b) {
  let above = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let k = 1; k <= b.length; k++) {
      row.push(Math.min(above[k] + 1, row[k - 1] + 1, above[k - 1] + (a[i - 1] === b[k - 1] ? 0 : 1)));
    }
    above = row;
  }
  return above[b.length];
}

// The start screen: a kernel's card, a saved game, a recorded line, or a text of one's own.

class StartView {
  constructor(board) {
    this.board = board;
    this.root = el("div", { class: "start" });
    this.drawn = null;
    this.own = { text: "", policy: "reassoc" };
  }

  update() {
    const start = this.board.data.start;
    const key = JSON.stringify([start.groups, start.recent, start.lines]);
    if (key !== this.drawn) {
      this.drawn = key;
      this.draw(start);
    }
    this.refresh();
  }

  draw(start) {
    const policies = el("select", { class: "field", "aria-label": "Floating-point policy",
      onchange: () => { this.own.policy = policies.value; put(words, start.policies.find((p) => p.name === policies.value).sentence); } },
      ...start.policies.map((p) => el("option", { value: p.name }, p.name)));
    policies.value = this.own.policy;
    const words = el("span", { class: "quiet" }, start.policies.find((p) => p.name === this.own.policy).sentence);
    const cards = el("section", {}, el("h2", {}, "Kernels"), el("div", { class: "cards" },
      ...start.groups.flatMap((group) => group.kernels.map((kernel) => this.card(kernel, group.name)))));
    const recent = start.recent.length ? el("section", {}, el("h2", {}, "Continue"),
      el("div", { class: "cards" }, ...start.recent.map((game) => el("button", { class: "card as-button", type: "button",
        onclick: () => this.board.send("open", { game: game.id }) },
        el("strong", {}, game.title), el("span", { class: "quiet" }, `${plural(game.moves, "move")} · ${game.when}`))))) : null;
    const lines = start.lines.length ? el("section", {}, el("h2", {}, "Recorded lines"),
      el("p", { class: "quiet" }, "A game that somebody played to its end. Step through it with ← and →; nothing is measured unless you ask for it."),
      el("div", { class: "cards" }, ...start.lines.map((line) => el("button", { class: "card as-button", type: "button",
        onclick: () => this.board.send("line", { file: line.file }) },
        el("strong", {}, line.title), el("span", { class: "quiet" }, line.words))))) : null;
    this.area = el("textarea", { class: "field mono", rows: "12", spellcheck: "false", "aria-label": "Program text or a saved game",
      placeholder: "kernel double\nin x\nout y\nx f32 [1024] heap\ny f32 [1024] heap\n1024 y[{0}] = x[{0}]*2" });
    this.area.value = this.own.text;
    this.area.addEventListener("input", () => { this.own.text = this.area.value; });
    this.error = el("pre", { class: "mono text-error", role: "alert", hidden: true });
    const file = el("input", { type: "file", accept: ".dojo,.line,.txt,text/plain", hidden: true });
    file.addEventListener("change", async () => {
      if (!file.files[0]) return;
      if (file.files[0].size > 262144) { this.tell("This file is larger than 256 KB: no game is."); return; }
      this.own.text = this.area.value = await file.files[0].text();
      file.value = "";
    });
    const own = el("section", { class: "own" }, el("h2", {}, "A text of your own"),
      el("p", { class: "quiet" }, "A program in the text form, or a saved game."), this.area, this.error,
      el("div", { class: "own-foot" }, el("button", { class: "small", type: "button", onclick: () => file.click() }, "From a file…"), file,
        el("button", { class: "small primary", type: "button", onclick: () => this.board.send("text", { text: this.area.value, policy: this.own.policy }) }, "Play this")));
    this.root.replaceChildren(
      el("header", { class: "welcome" }, el("h1", {}, "The Dojo"),
        el("p", {}, "Make a kernel fast, one move at a time. Every move keeps the program's meaning; its measured time is your score. ",
          el("strong", {}, "Pick a kernel to begin."))),
      el("div", { class: "start-columns" },
        el("div", {}, recent || "", el("div", { class: "policy" }, el("label", {}, "Arithmetic ", policies), words), cards),
        el("div", {}, lines || "", own)));
  }

  card(kernel, group) {
    const shape = el("input", { class: "field", value: kernel.shape, "aria-label": `Shape of ${kernel.name}`, title: kernel.dims || "Shape", spellcheck: "false" });
    const begin = () => this.board.send("start", { kernel: kernel.name, shape: shape.value, policy: this.own.policy });
    shape.addEventListener("keydown", (event) => { if (event.key === "Enter") begin(); });
    const card = el("div", { class: "card kernel", "data-kernel": kernel.name },
      el("div", { class: "card-head" }, el("strong", {}, kernel.name), el("span", { class: "quiet" }, group)),
      el("code", { class: "formula" }, kernel.formula),
      el("div", { class: "card-foot" }, shape,
        el("button", { class: "small primary", type: "button", "aria-label": `Play ${kernel.name}` }, "Play")));
    card.addEventListener("click", (event) => { if (event.target !== shape) begin(); });
    return card;
  }

  tell(text) {
    put(this.error, text);
    show(this.error, Boolean(text));
  }

  /** An error about the text stands beside the text, which stays as it was typed. */
  refresh() {
    const error = this.board.data.start.error;
    if (!this.error) return;
    this.tell(error || "");
  }
}

// The start screen: a kernel's card, a saved game, a recorded line, or a text of one's own.

const SHOWN_GAMES = 4;
const FIRST_KERNEL = "softmax"; // a dozen ideas in one kernel, and the first move shows

const TYPED = 450; // ms without a key until a text is looked at
const LONGEST_LOOKED_AT = 65536; // characters of a text that is looked at while it is typed: a program has no more

const EXAMPLES = [
  ["Dojo", "kernel double\nin x\nout y\nx f32 [1024] heap\ny f32 [1024] heap\n1024 y[{0}] = x[{0}]*2"],
  ["einsum", "mk,kn->mn"],
  ["NumPy", "# x[m, n], gamma[n]\ndef rmsnorm(x, gamma, eps=1e-6):\n    return x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + eps) * gamma"],
  ["PyTorch", "def attention(q, k, v):\n    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5\n    return F.softmax(s, dim=-1) @ v"],
  ["C", "void saxpy(int n, float a, const float *x, float *y) {\n  for (int i = 0; i < n; i++)\n    y[i] = a * x[i] + y[i];\n}"],
  ["ONNX", "y = Gemm(a, b, c, alpha=0.5, transB=1)"],
];

const PYTHON_EXAMPLE = `from dojo_core import kernel
from dojo_core.own import exp

@kernel({"m": 1024, "n": 512}, x="mn")
def softmax(x):
    e = exp(x - x.max("n")).named("e")
    return e / e.sum("n")

softmax.save("softmax.dojo")`;

const PARTS = ["newcomer", "daily", "games", "settings", "kernels", "faults", "lines"];

class StartView {
  constructor(board) {
    this.board = board;
    this.parts = Object.fromEntries(PARTS.map((name) => [name, new Part()]));
    this.errors = new Map();
    this.own = { policy: "", target: "", sizes: new Map() };
    this.place = null; // line and column of the text's first mistake
    this.looked = 0; // the number of the text that was last sent to be looked at
    this.shapes = new Map(); // as typed, by kernel
    this.fitting = {}; // of the target that is chosen, by kernel
    const place = (name) => this.parts[name].node;
    this.root = el("div", { class: "start" },
      el("header", { class: "welcome" }, el("h1", {}, "The Dojo"),
        el("p", {}, "Make a kernel fast, one move at a time. Every move keeps the program's meaning; its measured time is your score. ",
          el("strong", {}, "Pick a kernel to begin, or paste your own code.")), place("newcomer"), place("daily")),
      el("div", { class: "start-columns" },
        el("div", {}, ...["games", "settings", "kernels", "faults"].map(place)),
        el("div", {}, this.ownText(), place("lines"))));
  }

  /** What has not changed stays as it is, with its fields: somebody may be typing there. */
  update() {
    const { errors, draft, games, groups, daily, policies, targets, faults, lines } = this.board.data.start;
    const shown = { newcomer: games.length ? [] : groups, daily, games, settings: { policies, targets }, kernels: groups, faults, lines: { lines, policies } };
    for (const [name, data] of Object.entries(shown)) {
      this.parts[name].draw(data ?? null, () => this[name](data) || el("div", { hidden: true }));
    }
    this.refresh(errors, draft);
  }

  /** The first thing to press for whoever has no game yet. */
  newcomer(groups) {
    const first = groups.flatMap((group) => group.kernels).find((kernel) => kernel.name === FIRST_KERNEL);
    if (!first) return "";
    return el("div", { class: "newcomer" },
      el("button", { class: "primary", type: "button", onclick: () => this.board.send("start", { kernel: first.name, shape: this.fitting[first.name] || first.shape, ...this.chosen() }) }, `Play ${first.name}`),
      el("span", { class: "quiet" }, "A good first game. A first faster program takes some seconds."));
  }

  /** The puzzle of the day, on the page Learn. */
  daily(daily) {
    if (!daily) return "";
    const to = new URLSearchParams({ lesson: daily.lesson, step: daily.step });
    return el("p", { class: "daily quiet" }, "Puzzle of the day: ", el("a", { href: `learn?${to}`, target: "_self" }, daily.title));
  }

  /** All kernels, and a field that leaves those whose name, formula or group has what is typed. */
  kernels(groups) {
    const cards = groups.flatMap((group) => group.kernels.map((kernel) => {
      const names = kernel.layers.map(([layer]) => layer);
      return [[kernel.name, kernel.formula, group.name, ...names].join(" ").toLowerCase(), this.card(kernel, group.name)];
    }));
    const none = el("p", { class: "quiet", hidden: true }, "No kernel has this in its name, formula or group.");
    const find = el("input", { type: "text", class: "field", placeholder: "Find a kernel", "aria-label": "Find a kernel", spellcheck: "false" });
    find.addEventListener("input", () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const [text, card] of cards) show(card, words.every((word) => text.includes(word)));
      show(none, cards.every(([, card]) => card.hidden));
    });
    return el("section", { class: "kernels" }, el("div", { class: "section-head" }, el("h2", {}, "Kernels"), find), el("div", { class: "cards" }, ...cards.map(([, card]) => card)), none);
  }

  /** Packages that are installed and cannot be used, or failed. */
  faults(faults) {
    if (!faults.length) return "";
    return el("section", { class: "packages" }, el("h2", {}, "Packages that cannot be used"),
      ...faults.map((fault) => el("p", { class: "quiet" }, fault)));
  }

  chosen() {
    return { policy: this.own.policy, target: this.own.target };
  }

  /** What holds for whatever is begun next: how exact the arithmetic stays, and which machine it is for. */
  settings({ policies, targets }) {
    const arithmetic = this.setting("policy", "Arithmetic", "Floating-point policy", policies, (o) => `${o.words} (${o.name})`);
    const machine = this.setting("target", "For", "Target", targets, (o) => o.words, (target) => {
      this.fit(target.shapes);
      arithmetic.offer(policies.filter((policy) => target.policies.includes(policy.name)));
    });
    return el("div", { class: "settings" }, ...arithmetic.nodes, ...machine.nodes);
  }

  /** A choice of one option with its sentence; ``offer`` leaves it others to choose from. */
  setting(name, label, about, options, text, chosen = () => {}) {
    const words = el("span", { class: "quiet" });
    const choose = () => {
      const option = options.find((o) => o.name === choice.value);
      this.own[name] = choice.value;
      put(words, option.sentence);
      chosen(option);
    };
    const choice = el("select", { class: "field", "aria-label": about, onchange: choose });
    const offer = (offered) => {
      choice.replaceChildren(...offered.map((o) => el("option", { value: o.name }, text(o))));
      choice.value = offered.some((o) => o.name === this.own[name]) ? this.own[name] : offered[0].name;
      choose();
    };
    offer(options);
    return { nodes: [el("label", {}, `${label}: `), choice, words], offer };
  }

  /** A target of little memory begins with shapes of its own, but for those that were typed. */
  fit(shapes) {
    this.fitting = shapes;
    for (const input of this.root.querySelectorAll("[data-shape]")) {
      const { kernel } = input.closest("[data-kernel]").dataset;
      if (!this.shapes.has(kernel)) input.value = shapes[kernel] || input.dataset.shape;
    }
  }

  games(games) {
    if (!games.length) return "";
    return el("section", { class: "continue" }, el("div", { class: "section-head" }, el("h2", {}, "Continue"),
      el("button", { class: "small", type: "button", onclick: () => this.board.games.open() }, games.length > SHOWN_GAMES ? `More… (${games.length})` : "More…")),
      el("div", { class: "cards" }, ...games.slice(0, SHOWN_GAMES).map((game) => el("button", { class: "card as-button", type: "button",
        onclick: () => this.board.send("open", { game: game.id }) }, ...gameWords(game)))));
  }

  lines({ lines, policies }) {
    if (!lines.length) return "";
    const words = (name) => { const p = policies.find((policy) => policy.name === name); return p ? p.words : name; };
    return el("section", { class: "recorded" }, el("h2", {}, "Recorded lines"),
      el("p", { class: "quiet" }, "A game that somebody played to its end. Step through it with ← and →; nothing is measured unless you ask for it."),
      el("div", { class: "lines" }, ...lines.map((line) => el("button", { class: "as-button", type: "button",
        onclick: () => this.board.send("line", { file: line.file }) },
        el("strong", {}, line.title === line.kernel ? `${line.kernel} ${line.shape}` : `${line.title}: ${line.kernel} ${line.shape}`),
        el("span", { class: "quiet", title: `Arithmetic: ${words(line.policy)} (${line.policy})` },
          `${plural(line.moves, "step")} · ${words(line.policy)}`),
        line.lacks ? el("span", { class: "quiet lacks" }, line.lacks) : null))));
  }

  ownText() {
    this.area = el("textarea", { class: "field mono", rows: "8", maxlength: "600000", spellcheck: "false", "aria-label": "Program text or a saved game",
      placeholder: EXAMPLES[0][1] });
    this.area.addEventListener("input", () => this.typed());
    const play = () => { clearTimeout(this.timer); this.board.send("text", { text: this.area.value, sizes: this.sizes(), ...this.chosen() }); };
    const file = el("input", { type: "file", accept: ".dojo,.line,.game,.txt,.py,.c,.onnx,text/plain", hidden: true });
    const open = async (chosen) => {
      if (/\.onnx$/i.test(chosen.name)) { this.tell("text", `${chosen.name} is a model of ONNX: drop it on the page Model, where each of its kernels is played.`); return; }
      if (chosen.size > 524288) { this.tell("text", "This file is larger than 512 KB: no game is."); return; }
      this.area.value = await chosen.text();
      play();
    };
    file.addEventListener("change", async () => {
      if (file.files[0]) await open(file.files[0]);
      file.value = "";
    });
    this.area.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); });
    this.area.addEventListener("drop", (event) => {
      if (!event.dataTransfer.files[0]) return; // a text that is dropped is the field's own affair
      event.preventDefault();
      open(event.dataTransfer.files[0]);
    });
    this.told = el("div", { class: "own-told", role: "status" });
    this.fields = el("div", { class: "own-sizes", hidden: true });
    this.program = el("pre", { class: "mono" });
    this.translation = el("details", { class: "python", hidden: true }, el("summary", {}, "The program that it becomes"), this.program);
    this.drawnSizes = "";
    return el("section", { class: "own" }, el("h2", {}, "Your own code"),
      el("p", { class: "quiet" }, "Paste a program of the Dojo, NumPy or PyTorch, an einsum, loops in C, operators of ONNX, or a saved game. It is read, never run."),
      el("div", { class: "own-examples" }, el("span", { class: "quiet" }, "Examples: "), ...EXAMPLES.map(([name, text]) =>
        el("button", { class: "small", type: "button", onclick: () => { this.area.value = text; this.typed(0); this.area.focus(); } }, name))),
      this.area, this.error("text", () => this.showPlace()), this.told, this.fields, this.translation,
      el("div", { class: "own-foot" },
        el("button", { class: "small", type: "button", title: "Choose a file and play it", onclick: () => file.click() }, "Play a file…"), file,
        el("button", { class: "small primary", type: "button", onclick: play }, "Play this")),
      el("details", { class: "python" }, el("summary", {}, "Written with named axes"),
        el("p", { class: "quiet" }, "A kernel can also be described as a Python function over named axes: run it yourself, save its text, and play that file here. The app reads the text and never runs Python."),
        el("pre", { class: "mono" }, PYTHON_EXAMPLE)));
  }

  /** The text or a size has changed: once nobody types any more it is looked at. */
  typed(wait = TYPED) {
    this.tell("text", "");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.looked += 1;
      this.board.events.withdraw("read");
      const text = this.area.value.length > LONGEST_LOOKED_AT ? "" : this.area.value;
      this.board.send("read", { text, number: this.looked, client: this.board.client, sizes: this.sizes(), ...this.chosen() });
    }, wait);
  }

  /** The sizes as they were changed, m=512 each. */
  sizes() {
    return [...this.own.sizes].map(([name, size]) => `${name}=${size}`);
  }

  /** What the server tells of the text as it stands. */
  drafted(draft) {
    const known = draft && draft.client === this.board.client && draft.number === this.looked && this.area.value ? draft : null;
    if (!known && this.area.value) return;
    const { told = [], sizes = [], program = "" } = known || {};
    this.told.replaceChildren(...told.map((sentence) => el("p", { class: "quiet" }, sentence)));
    put(this.program, program);
    show(this.translation, Boolean(program));
    if (known && known.error) return; // a size that is no size is changed where it stands
    const names = JSON.stringify(sizes.map(([name]) => name));
    if (names !== this.drawnSizes) {
      this.drawnSizes = names;
      this.own.sizes.clear();
      this.fields.replaceChildren(...sizes.map(([name, size]) => this.size(name, size)));
    }
    show(this.fields, Boolean(sizes.length));
  }

  /** The place of a mistake, selected in the text: to the end of the word that begins there. */
  showPlace() {
    if (!this.place) return;
    const [line, column] = this.place;
    const before = this.area.value.split("\n").slice(0, line - 1).reduce((sum, row) => sum + row.length + 1, 0);
    const start = before + column - 1;
    const word = /^\w+|^./.exec(this.area.value.slice(start));
    this.area.focus();
    this.area.setSelectionRange(start, start + (word ? word[0].length : 0));
  }

  size(name, size) {
    const field = el("input", { class: "field", type: "text", inputmode: "numeric", value: size, "aria-label": `Size ${name}` });
    field.addEventListener("input", () => { this.own.sizes.set(name, field.value.trim() || size); this.typed(); });
    return el("label", {}, el("small", {}, name), field);
  }

  card(kernel, group) {
    const name = kernel.name;
    const shape = el("input", { class: "field", value: this.shapes.get(name) || this.fitting[name] || kernel.shape, "data-shape": kernel.shape, "aria-label": `Shape of ${name}: ${kernel.dims}`, spellcheck: "false" });
    const names = el("datalist", { id: `layers-${name}` }, ...kernel.layers.map(([layer, sizes]) => el("option", { value: layer }, sizes)));
    if (kernel.layers.length) shape.setAttribute("list", names.id);
    const begin = () => this.board.send("start", { kernel: name, shape: shape.value, ...this.chosen() });
    shape.addEventListener("input", () => this.shapes.set(name, shape.value));
    shape.addEventListener("keydown", (event) => { if (event.key === "Enter") begin(); });
    const label = el("label", { class: "shape" }, el("small", { title: kernel.dims }, kernel.dims || "shape"), shape, names);
    const error = this.error(name);
    const card = el("div", { class: "card kernel", "data-kernel": name },
      el("div", { class: "card-head" }, el("strong", {}, name), el("span", { class: "quiet" }, group)),
      el("code", { class: "formula" }, kernel.formula),
      el("div", { class: "card-foot" }, label,
        el("button", { class: "small primary", type: "button", "aria-label": `Play ${name}` }, "Play")), error);
    card.addEventListener("click", (event) => { if (!label.contains(event.target) && event.target !== error) begin(); });
    return card;
  }

  error(place, onclick = null) {
    const node = el("pre", { class: place === "text" ? "mono text-error" : "text-error", role: "alert", hidden: true, onclick });
    this.errors.set(place, node);
    return node;
  }

  tell(place, text) {
    const node = this.errors.get(place);
    put(node, text);
    show(node, Boolean(text));
  }

  /** An error stands beside what it is about, which stays as it was typed. */
  refresh(errors, draft) {
    for (const place of this.errors.keys()) if (place !== "text") this.tell(place, errors[place] || "");
    this.drafted(draft);
    const current = draft && draft.client === this.board.client && draft.number === this.looked;
    if (errors.text || current) this.tell("text", errors.text || draft.error);
    this.place = current && draft.line ? [draft.line, draft.column] : null;
  }
}

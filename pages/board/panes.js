// Where the panes stand: how wide each is, which one fills the board, how large their letters are, and whether long
// lines wrap. What a player chose is kept in the browser. A small window shows one pane at a time (dock.js).

const SMALL_WINDOW = "(max-width: 899px), (max-height: 559px)"; // a telephone, a tablet, a page at 200%
const SMALL_BESIDE_LESSON = "(max-width: 1279px), (max-height: 559px)"; // the same beside a lesson, which takes its part
const LESSON_ABOVE = "(max-width: 899px)"; // a lesson stands above the board, no longer beside it
const LETTER_SIZES = [0.85, 1, 1.15, 1.3, 1.5, 1.75, 2];

class Panes {
  constructor(board) {
    this.board = board;
    this.kept = new KeptChoices("dojo-layout");
    const { program, code, moves, history, chart } = board;
    this.all = new Map(Object.entries({ program, code, moves, history, chart }).map(([name, pane]) => [name, pane.root]));
    for (const [name, root] of this.all) root.id = `pane-${name}`;
    this.maximised = null;
    this.shown = "moves"; // in a small window
    this.lesson = true; // is the lesson shown in place of the board?
    this.size = this.kept.get("size", (size) => LETTER_SIZES.includes(size), 1);
    this.wrapping = this.kept.get("wrap", (wrap) => typeof wrap === "boolean", null); // null: in a small window
    this.dock = new Dock(this);
    this.make(program.root, code.root, moves.root, history.root, chart.root);
    this.buttons();
    const homes = [[program, program.body], [code, code.body], [moves, moves.list], [history, history.body], [chart, null]];
    for (const [pane, home] of homes) new Roving(pane.root, home);
    this.queries = [SMALL_WINDOW, SMALL_BESIDE_LESSON, LESSON_ABOVE].map((query) => window.matchMedia(query));
  }

  /** The elements, and the four edges between them. Beside a lesson the code stands below the program. */
  make(program, code, moves, history, chart) {
    const plan = (wide, embedded) => () => (this.embedded ? embedded() : wide());
    const [columns, below] = [el("div", { class: "columns" }), el("div", { class: "below" })];
    this.root = el("div", { class: "panes" });
    const rows = () => ({ name: "rows", box: this.root, upright: false, low: 30, high: 88 });
    const foot = (name) => () => ({ name, box: below, upright: true, low: 20, high: 85 });
    const first = new Separator("Edge of program and code", program, this.kept, plan(
      () => ({ name: "first", box: columns, upright: true, low: 12, get high() { return Math.max(13, second.value - 12); } }),
      () => ({ name: "stack", box: columns, upright: false, low: 15, high: 85 })));
    const second = new Separator("Edge of code and moves", code, this.kept, plan(
      () => ({ name: "second", box: columns, upright: true, get low() { return Math.min(87, first.value + 12); }, high: 88 }),
      () => ({ name: "half", box: columns, upright: true, low: 25, high: 75 })));
    const third = new Separator("Edge of the program and the history", program, this.kept, rows);
    const fourth = new Separator("Edge of history and chart", history, this.kept, plan(foot("below"), foot("half-below")));
    this.separators = [first, second, third, fourth];
    columns.append(program, first.root, code, second.root, moves);
    below.append(history, fourth.root, chart);
    this.root.append(columns, third.root, below);
  }

  /** In each pane's head: fill the board, and of texts wrap; in the board's: larger and smaller letters. */
  buttons() {
    this.wraps = [];
    this.fills = new Map();
    for (const [name, root] of this.all) {
      const extras = root.querySelector(".pane-head .extras");
      if (name === "program" || name === "code") {
        const wrap = el("button", { class: "small icon-only", type: "button", "aria-label": "Wrap long lines", title: "Wrap long lines (W)",
          onclick: () => this.wrap() }, icon("wrap"));
        this.wraps.push(wrap);
        extras.append(wrap);
      }
      const fill = el("button", { class: "small icon-only", type: "button", onclick: () => this.maximise(name) }, icon("fill"));
      this.fills.set(name, fill);
      extras.append(fill);
    }
    const sized = (words, step, title) => el("button", { class: "ghost", type: "button", "aria-label": title, title: `${title} (${words.slice(1)})`,
      onclick: () => this.resize(step) }, words);
    [this.smaller, this.larger] = [sized("A−", -1, "Smaller letters"), sized("A+", 1, "Larger letters")];
    this.board.header.buttons.keys.before(el("span", { class: "sizes", role: "group", "aria-label": "Size of letters" }, this.smaller, this.larger));
  }

  get narrow() {
    return this.queries[this.embedded ? 1 : 0].matches;
  }

  get embedded() {
    return this.board.frame.classList.contains("embedded");
  }

  /** Is the lesson what a small window shows? */
  get aside() {
    return this.lesson && this.stacked;
  }

  get stacked() {
    return this.embedded && this.queries[2].matches;
  }

  /** Draw what was chosen, for the window as it is. */
  arrange() {
    const { frame, header } = this.board;
    const { narrow, aside } = this;
    const only = narrow ? this.shown : this.maximised;
    frame.classList.toggle("narrow", narrow);
    frame.classList.toggle("aside", aside);
    this.root.classList.toggle("single", only !== null);
    for (const part of [header.root, this.root]) show(part, !aside);
    for (const [name, pane] of this.all) {
      show(pane, only === null || only === name);
      for (const [key, value] of [["role", "tabpanel"], ["aria-labelledby", `tab-${name}`]]) {
        if (narrow) pane.setAttribute(key, value);
        else pane.removeAttribute(key);
      }
    }
    for (const box of this.root.children) if (!box.matches(".separator")) show(box, [...box.children].some((pane) => pane.matches(".pane:not([hidden])")));
    for (const separator of this.separators) {
      show(separator.root, only === null);
      separator.arrange();
    }
    show(this.dock.root, narrow);
    show(this.dock.tabs.get("lesson"), this.stacked);
    this.dock.select(aside ? "lesson" : this.shown);
    (narrow ? this.dock.acts : header.metrics).append(header.navs);
    for (const [name, button] of this.fills) {
      const full = name === this.maximised;
      show(button, !narrow);
      button.setAttribute("aria-pressed", String(full));
      button.setAttribute("aria-label", full ? "Back to all panes" : "Fill the board with this pane");
      button.title = full ? "Back to all panes (F, Esc)" : "Fill the board with this pane (F)";
    }
    frame.style.setProperty("--size", String(this.size));
    this.smaller.disabled = this.size === LETTER_SIZES[0];
    this.larger.disabled = this.size === LETTER_SIZES.at(-1);
    const wrapped = this.wrapping ?? narrow;
    frame.classList.toggle("wrap", wrapped);
    for (const button of this.wraps) button.setAttribute("aria-pressed", String(wrapped));
    const { host } = frame.getRootNode();
    if (host) host.dataset.shows = aside ? "lesson" : "board"; // the page Learn shows its lesson, or not
  }

  /** Another game: its moves are shown first, or the lesson, which is read before them. */
  fresh() {
    this.shown = "moves";
    this.lesson = true;
    this.arrange();
  }

  /** Bring a pane up where one is shown at a time; `scroll`: to where it can be seen whole. */
  reveal(name, scroll = false) {
    if (!this.narrow) {
      if (this.maximised !== null && this.maximised !== name) this.maximise(name);
      return;
    }
    this.lesson = name === "lesson";
    if (!this.lesson) this.shown = name;
    this.arrange();
    if (scroll) this.root.scrollIntoView({ block: "nearest" });
  }

  /** A pane fills the board, or all are there again. */
  maximise(name) {
    this.maximised = this.maximised === name ? null : name;
    this.arrange();
  }

  /** F: the pane that has the focus, or the pointer; else the program. */
  fill() {
    if (this.narrow) return;
    const [name] = [...this.all].find(([, root]) => root.matches(":focus-within")) || [...this.all].find(([, root]) => root.matches(":hover")) || ["program"];
    this.maximise(this.maximised ?? name);
  }

  /** What Escape does last; false where there is nothing to leave. */
  leave() {
    if (this.maximised === null) return false;
    this.maximise(this.maximised);
    return true;
  }

  resize(step) {
    const at = LETTER_SIZES.indexOf(this.size) + step;
    this.size = LETTER_SIZES[Math.max(0, Math.min(LETTER_SIZES.length - 1, at))];
    this.kept.set("size", this.size);
    this.arrange();
  }

  wrap() {
    this.wrapping = !(this.wrapping ?? this.narrow);
    this.kept.set("wrap", this.wrapping);
    this.arrange();
  }
}

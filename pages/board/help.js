// What a player may want to look up: the keys, the notation of programs, and what each move does.

const KEYS = [
  ["← →", "one move back, forward"], ["U", "take back"], ["H", "a hint: the kind of a good move; again: its place; again: the move"], ["B", "next branch"], ["↑ ↓", "up, down in a list"],
  ["Enter", "play the selected move"], ["Double click", "on a move: play it"], ["/", "filter the moves, or type one"],
  ["Esc", "clear the filter, then the selected move, then the selected line"], ["M", "measure, pause"],
  ["P", "pin this position: the program, its C and its assembly then show what differs from it"],
  ["Tab", "from pane to pane, and to the edges between them: arrow keys move these"], ["Alt + ↑ ↓", "through the controls of a pane"],
  ["F", "one pane fills the board; Esc, or F again: all panes"], ["W", "wrap long lines"], ["+ −", "larger, smaller letters"],
  ["Take away", "on top: copy or download the C, a library, the line, a link, the chart"], ["?", "this help"],
];

const NOTATION = [
  ["512 y[{0}] = x[{0}]*2", "a scope of 512 iterations around an operation: a loop"],
  ["{0} {1}", "the iteration of the outermost scope, of the next one inside it, …"],
  ["|", "the same scope as in the line above: the operations share one loop"],
  ["m[{0}] max= x[{0},{1}]", "a reduction: m takes the maximum of itself and each x (also +=, min=, *=)"],
  ["m@0", "the outermost scope around the operation that writes m; @1 is the next one inside"],
  ["m#1@1", "the same for the second operation that writes m: they are counted from 0"],
  [":p", "a parallel scope: its iterations are given to threads"],
  [":v", "a vector scope: its iterations are the lanes of one instruction"],
  [":vpdpbusd", "run as the machine instruction of that name, with the scopes inside"],
  [":u", "an unrolled scope: its iterations are written out one after the other"],
  ["d f32 [96, 32:N] heap", "a buffer: its name, type, sizes and location; :N marks a dimension that is not kept: all its indices share one cell"],
  ["heap", "the buffer lies in memory"],
  ["stack", "a small buffer, one for each iteration of the scope around its uses: it stays in the cache"],
  ["register", "the same, small enough for the processor's registers"],
  ["y f32 [8] heap -> e, y", "the arrays e and y are stored in one buffer, y"],
  ["if {0} < 300", "the operation is done only where this holds"],
  ["!prefetch(x[{0}+1])", "this address is asked for ahead of its use"],
  ["!stream", "the result goes to memory past the caches"],
];

class Help {
  constructor(board) {
    this.board = board;
    this.tab = "keys";
    this.bar = tabBar("Help", [["keys", "Keys"], ["notation", "Notation"], ["moves", "Moves"]], (id) => this.choose(id));
    this.body = el("div", { class: "scroll help-body", tabindex: "0" });
  }

  open() {
    this.choose(this.tab);
    this.board.dialogs.open("help", this.bar.root, this.body, this.board.dialogs.foot());
  }

  choose(tab) {
    this.tab = tab;
    this.bar.select(tab);
    const row = (key, words) => el("tr", {}, el("th", { scope: "row" }, key), el("td", {}, words));
    if (tab === "keys") this.body.replaceChildren(el("table", {}, ...KEYS.map(([key, words]) => row(key, words))));
    if (tab === "notation") {
      this.body.replaceChildren(el("p", { class: "quiet" }, "A program is its buffers, then one line for each operation, in order."),
        el("table", {}, ...NOTATION.map(([key, words]) => row(key, words))));
    }
    if (tab === "moves") {
      const commands = Object.values(this.board.data.commands || {});
      this.body.replaceChildren(
        el("p", { class: "quiet" }, "What can be typed into the filter. An enabler is a move that makes another one legal that is blocked now; it need not be faster itself."),
        el("table", {}, ...commands.map(([form, summary]) => row(form, el("span", {}, ...prose(summary))))));
    }
    this.body.scrollTop = 0;
  }
}

/** A sentence from a docstring: what stands between back quotes is code. */
function prose(text) {
  return text.split(/`+/).map((part, i) => (i % 2 ? el("code", {}, part) : part));
}

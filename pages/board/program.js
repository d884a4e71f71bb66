// The program text, the generated C and the assembly: three texts of one position that share a selection.

const HUES = 8;

class ProgramPane {
  constructor(board) {
    this.board = board;
    this.tab = "text";
    this.body = el("div", { class: "scroll mono", role: "listbox", "aria-label": "Program text", tabindex: "0" });
    this.note = el("div", { class: "note" });
    this.tabs = tabBar("Program views", [["text", "Program"], ["tree", "Tree"], ["changes", "Changes"]], (id) => this.open(id));
    this.since = "diff";
    this.sinces = new Map([["diff", "last move"], ["since_start", "start"]].map(([id, words]) => [id,
      el("button", { class: "small", type: "button", "data-since": id, "aria-pressed": String(id === this.since),
        title: `What changed since the ${words}`, onclick: () => this.compare(id) }, words)]));
    this.switch = el("span", { class: "switch", role: "group", "aria-label": "Changed since", hidden: true }, "since ", ...this.sinces.values());
    this.profile = el("button", { class: "small", type: "button", "data-profile": "", "aria-pressed": "false",
      title: "Where the time goes: each line's share, and what bounds it", onclick: () => this.askProfile() }, "Profile");
    this.tabs.extras.append(this.switch, this.profile);
    this.root = el("section", { class: "pane program", "aria-label": "Program" }, this.tabs.root, this.body, this.note);
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("mouseover", (event) => board.hover(pathAt(event)));
    this.body.addEventListener("mouseleave", () => board.hover(null));
    this.body.addEventListener("keydown", (event) => this.key(event));
  }

  open(tab) {
    this.tab = tab;
    this.tabs.select(tab);
    show(this.switch, tab === "changes");
    this.draw();
    this.board.pin.update();
    if (tab === "text") this.board.paint(this.board.code); // the selected line is in view
  }

  askProfile() {
    this.board.send("show", { profile: this.profile.getAttribute("aria-pressed") !== "true" });
  }

  /** `since`: which of the position's two differences is shown. */
  compare(since) {
    this.since = since;
    for (const [id, button] of this.sinces) button.setAttribute("aria-pressed", String(id === since));
    this.draw();
  }

  clicked(event) {
    const path = pathAt(event);
    if (path !== null) this.board.select(path);
  }

  key(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const rows = [...this.body.querySelectorAll("[data-row]")];
    if (!rows.length) return;
    const at = rows.findIndex((r) => r.dataset.path === this.board.selection);
    const next = at < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)));
    this.board.select(rows[next].dataset.path);
    rows[next].scrollIntoView({ block: "nearest" });
    event.preventDefault();
    event.stopPropagation();
  }

  update() {
    this.draw();
  }

  draw() {
    const program = this.board.data.program;
    const { profile, profiling } = this.board.data;
    show(this.profile, this.board.data.game.profiled);
    this.profile.setAttribute("aria-pressed", String(profiling));
    const parts = (profile && profile.parts) || {};
    this.body.classList.toggle("graph", this.tab === "tree");
    if (this.tab === "changes") return this.drawChanges(program);
    if (this.tab === "tree") {
      this.body.replaceChildren(drawTree(program));
      return this.paint();
    }
    const rows = [];
    for (const head of program.head) {
      rows.push(el("div", { class: head.buffer ? "line buffer" : "line head", role: "option",
        "data-path": head.buffer ? `buffer:${head.buffer}` : null, "data-row": head.buffer ? "" : null,
        title: head.buffer ? "A buffer: click to see the moves about it" : null },
        el("span", { class: "hue" }), el("span", {}, head.text)));
    }
    const added = new Set(program.added);
    for (const line of program.lines) {
      const row = el("div", { class: `line op hue-${line.hue % HUES}${added.has(line.text) ? " added" : ""}`,
        role: "option", "data-path": line.path, "data-row": "",
        title: added.has(line.text) ? "Changed by the last move" : null });
      const text = el("span", {});
      row.append(el("span", { class: "hue" }));
      if (profile && profile.parts) row.append(shareBar(parts[line.path]));
      row.append(text);
      for (const slot of line.slots) {
        text.append(el("span", { class: slot.text === "|" ? "slot bar" : `slot mark-${slot.mark || "none"}`,
          "data-path": slot.path, title: slot.text === "|" ? "" : slotTitle(slot, parts[slot.path]) }, slot.text,
          loopShare(slot, parts[slot.path], parts[line.path])), " ");
      }
      text.append(el("span", { class: "instruction", "data-path": line.path }, line.op));
      rows.push(row);
    }
    rows.forEach((row, number) => { row.id = `line-${number}`; });
    this.body.replaceChildren(...rows);
    put(this.note, profile ? profile.error || `${profile.note} Shares with ≈ are a model's, between timers.` : profiling ? "Profiling…" : "");
    this.paint();
  }

  drawChanges(program) {
    const lines = program[this.since];
    if (!lines.length) {
      this.body.replaceChildren(el("p", { class: "empty" },
        "This is the start: no move has been played yet. After a move, the lines that it took away (−) and brought (+) stand here."));
      return;
    }
    this.body.replaceChildren(...lines.map(([mark, text]) =>
      el("div", { class: `line diff ${mark === "+" ? "plus" : mark === "-" ? "minus" : "same"}` },
        el("span", { class: "sign", "aria-label": mark === "+" ? "added" : mark === "-" ? "removed" : null },
          mark === "-" ? "−" : mark), el("span", {}, text))));
  }

  paint() {
    paintLines(this.body, this.board);
    const row = this.body.querySelector("[data-row][aria-selected=true]");
    if (row) this.body.setAttribute("aria-activedescendant", row.id);
    else this.body.removeAttribute("aria-activedescendant");
  }
}

const MARK_WORDS = { u: "unrolled", p: "parallel: threads", v: "vectorised", g: "grid", b: "block", w: "warp" };

function slotTitle(slot, part) {
  const scope = `Scope of ${slot.text.split(":")[0]} iterations${slot.mark ? `, ${MARK_WORDS[slot.mark] || slot.mark}` : ""}`;
  return part ? `${scope}. ${part.sentence}` : scope;
}

/** What a share is: a timer's, or a model's between timers, which is told by a sign. */
function percentage(share, source) {
  return share < 0.005 ? "" : `${source === "timer" ? "" : "≈"}${Math.round(100 * share)}%`;
}

/** A loop's share beside its size, where it is another than that of the line. */
function loopShare(slot, part, line) {
  const told = part && slot.text !== "|" && (!line || Math.abs(part.share - line.share) >= 0.01);
  return told ? el("sup", { class: "loop-share" }, percentage(part.share, part.source)) : null;
}

/** A line's share of the time, as a bar and a percentage; what bounds it is told on hover, and beside it. */
function shareBar(part) {
  const share = part ? part.share : 0;
  const words = part ? percentage(share, part.source) : "";
  const bound = share >= 0.005 && part.bound ? part.bound : "";
  return el("span", { class: "share", title: part ? part.sentence : "It has no code of its own.",
    style: `--share: ${Math.min(100, 100 * share).toFixed(1)}%` },
    el("span", { class: "percent" }, words), el("span", { class: "bound" }, bound));
}

/** The path of the innermost node under the pointer. */
function pathAt(event) {
  const node = event.target.closest ? event.target.closest("[data-path]") : null;
  return node ? node.dataset.path : null;
}

/** Mark what is selected, hovered or involved in the move under the pointer, in one pane. */
function paintLines(body, board) {
  const chosen = board.selection;
  const hovered = board.hovered;
  const involved = board.involved;
  for (const node of body.parentNode.querySelectorAll("[data-path]")) { // also what differs, where that is shown
    const path = node.dataset.path;
    const buffer = path.startsWith("buffer:");
    const inside = (root) => root !== null && (buffer || root.startsWith("buffer:")
      ? path === root || (!buffer && mentions(node, root.slice(7)))
      : within(path, root));
    const selected = inside(chosen);
    node.classList.toggle("selected", selected);
    node.classList.toggle("hovered", inside(hovered));
    node.classList.toggle("involved", !buffer && involved.includes(path));
    if (node.hasAttribute("data-row")) node.setAttribute("aria-selected", String(path === chosen));
  }
}

function mentions(node, array) {
  return node.matches(".op") && (" " + node.textContent).split(/[^A-Za-z0-9_]+/).includes(array);
}

/** The share of a piece of the assembly, its percentage on the first of its lines. */
function hotBar(piece) {
  const share = piece ? piece.share : 0;
  return el("span", { class: "share", style: `--share: ${Math.min(100, 100 * share).toFixed(1)}%`,
    title: piece ? `These lines take ${(100 * share).toFixed(1)}% of the time: what timers tell of its nodes, parted by a model and by how often each piece is run.` : null },
    el("span", { class: "percent" }, piece && piece.first ? percentage(share, "model") : ""));
}

class CodePane {
  constructor(board) {
    this.board = board;
    this.tab = "c";
    this.body = el("div", { class: "scroll mono", tabindex: "0", "aria-label": "Generated code" });
    this.note = el("div", { class: "note" });
    this.tabs = tabBar("Generated code", [["c", "C"], ["asm", "Assembly"]], (id) => this.open(id));
    this.root = el("section", { class: "pane code", "aria-label": "Generated code" }, this.tabs.root, this.body, this.note);
    this.body.addEventListener("click", (event) => {
      const path = pathAt(event);
      if (path !== null) board.select(path, this);
    });
    this.body.addEventListener("mouseover", (event) => board.hover(pathAt(event)));
    this.body.addEventListener("mouseleave", () => board.hover(null));
    this.tops = {};
  }

  /** The text is that of the position before until this one's is there. */
  hold(on) {
    this.root.setAttribute("aria-busy", String(on));
  }

  open(tab) {
    this.tab = tab;
    this.tabs.select(tab);
    this.board.send("show", { assembly: tab === "asm" });
    this.draw();
    this.board.pin.update();
    this.paint(this.board.program);
  }

  update() {
    this.draw();
    this.paint(this.board.program);
  }

  draw() {
    const text = this.tab === "c" ? this.board.data.code : this.board.data.assembly;
    if (this.body.firstChild && this.shown) this.tops[this.shown] = this.body.scrollTop;
    this.shown = text && text.lines ? this.tab : null;
    if (!this.shown) {
      const sentence = text && text.error ? text.error
        : this.tab === "asm" ? "Compiling for the assembly…" : "Generating…";
      this.body.replaceChildren(el("p", { class: text && text.error ? "empty failure" : "empty" }, sentence));
      return;
    }
    put(this.tabs.buttons.get("c"), this.board.data.game.code);
    const hues = new Map(this.board.data.program.lines.map((line) => [line.path, line.hue % HUES]));
    const hot = this.hotRows();
    this.body.replaceChildren(...text.lines.map(([line, path], row) =>
      el("div", { class: `line code${path !== null && hues.has(path) ? ` op hue-${hues.get(path)}` : ""}`,
        "data-path": path }, el("span", { class: "hue" }), ...(hot ? [hotBar(hot.get(row))] : []), el("span", {}, line || " "))));
    if (!(this.tab in this.tops)) this.toBusiest(text.busiest);
    else this.body.scrollTop = this.tops[this.tab];
  }

  /** By row of the assembly, the share of the time of the piece that it stands in, and whether it begins that;
   * null without a profile. */
  hotRows() {
    const profile = this.tab === "asm" && this.board.data.profile;
    if (!profile || !profile.hot) return null;
    const rows = new Map();
    for (const [first, last, share] of profile.hot) {
      for (let row = first; row <= last; row += 1) rows.set(row, { share, first: row === first });
    }
    return rows;
  }

  /** To the hottest piece of the assembly, as far as it is known; of C, to where the kernel begins. */
  toBusiest(busiest) {
    if (this.tab !== "asm") return this.toFirstNode();
    const { profile } = this.board.data;
    const hottest = profile && profile.hot && profile.hot.length ? profile.hot[0][0] : busiest;
    const line = this.body.children[Math.max(0, (hottest || 0) - 4)];
    this.body.scrollTop = line ? line.offsetTop - this.body.offsetTop : 0;
  }

  /** Past a long preamble (a GPU's), to where the kernel itself begins. */
  toFirstNode() {
    const at = [...this.body.children].findIndex((line) => line.dataset.path !== undefined);
    const line = this.body.children[Math.max(0, at - 4)];
    this.body.scrollTop = at > 12 && line ? line.offsetTop - this.body.offsetTop : 0;
  }

  paint(from = null) {
    paintLines(this.body, this.board);
    const chosen = this.board.selection;
    const text = this.tab === "c" ? this.board.data.code : this.board.data.assembly;
    let note = "";
    if (chosen !== null && text && text.lines && !chosen.startsWith("buffer:")) {
      const lines = this.body.querySelectorAll(".line.selected");
      if (!lines.length) note = "The selected node has no line of its own here: optimised away, or part of a neighbour's.";
      else if (from !== this && from !== null) bring(this.body, lines[0]);
    }
    this.missing = note;
    this.tell();
  }

  /** Below the code: why the selection has no line, or what is known of it without a time (a GPU's). */
  tell() {
    const feed = this.board.feed;
    const current = feed && feed.now && feed.position === this.board.data.position.id;
    put(this.note, this.missing || (current && feed.now.about) || "");
  }
}

/** Scroll a pane, and only the pane, so that a line is in view. */
function bring(body, line) {
  const top = line.offsetTop - body.offsetTop;
  if (top < body.scrollTop || top + line.offsetHeight > body.scrollTop + body.clientHeight) {
    body.scrollTop = Math.max(0, top - body.clientHeight / 3);
  }
}

function tabBar(label, entries, choose) {
  const buttons = new Map();
  const extras = el("div", { class: "extras" });
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": label });
  for (const [id, name] of entries) {
    const button = el("button", { class: "tab", role: "tab", type: "button", "data-tab": id, onclick: () => choose(id) }, name);
    buttons.set(id, button);
    list.append(button);
  }
  const bar = {
    root: el("header", { class: "pane-head" }, list, extras),
    extras,
    buttons,
    select(id) {
      for (const [other, button] of buttons) button.setAttribute("aria-selected", String(other === id));
    },
  };
  bar.select(entries[0][0]);
  return bar;
}

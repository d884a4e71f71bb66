// The stage: one or two runs side by side, each with its program, its line, what was considered and a log. It draws
// what the server sends and sends what was pressed; elements stay, so that nothing moves under a reader.
// Names and messages go in through textContent alone.

function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function chance(probability) {
  return probability < 0.001 ? "<0.1%" : `${(100 * probability).toFixed(probability < 0.0995 ? 1 : 0)}%`;
}

/** Buttons by what they do: made once, shown and named as told. */
class Controls {
  constructor(label, press) {
    this.root = el("div", { class: "controls", role: "group", "aria-label": label });
    this.press = press;
    this.buttons = new Map();
  }

  update(wanted) {
    const ids = wanted.map((each) => each.id).join();
    if (ids !== this.ids) {
      const focused = [...this.buttons].find(([, b]) => b === b.getRootNode().activeElement);
      this.ids = ids;
      this.buttons = new Map(wanted.map(({ id }) => [id, this.buttons.get(id)
        || el("button", { type: "button", "data-do": id, onclick: () => this.press(id) })]));
      this.root.replaceChildren(...this.buttons.values());
      if (focused) (this.buttons.get(focused[0]) || this.root.firstChild)?.focus();
    }
    for (const { id, label, about, primary } of wanted) {
      const button = this.buttons.get(id);
      put(button, label);
      button.title = about || "";
      button.classList.toggle("primary", Boolean(primary));
    }
  }

  has(id) {
    return this.buttons.has(id);
  }
}

class Lane {
  constructor(stage, id) {
    this.stage = stage;
    this.id = id;
    const send = (kind, more = {}) => stage.send({ kind, run: id, ...more });
    this.send = send;
    this.title = el("h2", {});
    this.about = el("span", { class: "about" });
    this.state = el("span", { class: "state", role: "status" });
    this.controls = new Controls("What to do with this run", (id) => send(id));
    this.message = el("p", { class: "message", hidden: true });
    this.metrics = el("div", { class: "metrics" });
    this.program = el("div", { class: "program mono", tabindex: "0", "aria-label": "Program" });
    this.where = el("span", { class: "where" });
    this.follows = new Map([["best", "best"], ["newest", "newest"]].map(([value, words]) => [value,
      el("button", { type: "button", class: "small", "aria-pressed": "false", onclick: () => send("follow", { value }) }, words)]));
    this.line = el("ol", { class: "line", "aria-label": "The moves that lead to it", tabindex: "0" });
    this.considered = el("tbody", {});
    this.learned = el("tbody", {});
    this.learnedWords = el("p", { class: "message" });
    this.log = el("ol", { class: "log", "aria-label": "Programs in the order they were measured", tabindex: "0" });
    this.logged = new Map();
    this.line.addEventListener("click", (event) => {
      const at = event.target.closest("[data-ply]");
      if (at) send("ply", { ply: Number(at.dataset.ply) });
    });
    this.log.addEventListener("click", (event) => {
      const at = event.target.closest("[data-entry]");
      if (at) send("look", { entry: Number(at.dataset.entry) });
    });
    this.table = el("table", { class: "considered" },
      el("thead", {}, el("tr", {}, ...["program", "decision", "chance", "against its parent", "expected"].map((words, at) =>
        el("th", { scope: "col", class: at > 1 ? "number" : null }, words)))), this.considered);
    this.root = el("section", { class: "lane", "data-run": id },
      el("header", {}, this.title, this.about, this.state, this.controls.root), this.message, this.metrics,
      el("div", { class: "panes" },
        el("div", { class: "pane wide" }, el("div", { class: "pane-head" }, el("h3", {}, "Program"), this.where, el("span", { class: "spring" }),
          el("span", { class: "follow", role: "group", "aria-label": "Follow" }, "follow ", ...this.follows.values())), this.program),
        el("div", { class: "pane" }, el("div", { class: "pane-head" }, el("h3", {}, "Its line")), this.line),
        el("div", { class: "pane" }, el("div", { class: "pane-head" }, el("h3", {}, "Log")), this.log),
        el("div", { class: "pane wide" }, el("div", { class: "pane-head" }, el("h3", {}, "Considered last"), this.heat = el("span", { class: "where" })),
          el("div", { class: "scroll", tabindex: "0", "aria-label": "What was considered last" }, this.table)),
        this.policy = el("div", { class: "pane wide policy", hidden: true }, el("div", { class: "pane-head" }, el("h3", {}, "A learned policy here")), this.learnedWords,
          this.scroll = el("div", { class: "scroll", tabindex: "0", "aria-label": "What a learned policy would play here" }, el("table", { class: "learned" },
            el("thead", {}, el("tr", {}, ...["move", "probability", "lines that change"].map((words, at) =>
              el("th", { scope: "col", class: at === 1 ? "number" : null }, words)))), this.learned)))));
  }

  update(data) {
    put(this.title, data.title);
    put(this.about, data.about);
    put(this.state, data.state);
    this.state.dataset.state = data.tone;
    this.controls.update(data.controls);
    put(this.message, data.message);
    this.message.hidden = !data.message;
    if (JSON.stringify(data.metrics) !== this.measured) {
      this.measured = JSON.stringify(data.metrics);
      this.metrics.replaceChildren(...data.metrics.map(([name, value, detail]) => el("div", { class: "metric" },
        el("div", { class: "name" }, name), el("div", { class: "value" }, value), el("div", { class: "detail" }, detail))));
    }
    for (const [value, button] of this.follows) button.setAttribute("aria-pressed", String(data.follow === value));
    put(this.where, data.where);
    this.where.title = data.where;
    this.drawProgram(data.program);
    this.drawLine(data.moves, data.ply, data.chances);
    this.drawLearned(data.learned);
    put(this.heat, data.heat);
    this.heat.title = data.heat;
    this.drawConsidered(data.considered);
    this.drawLog(data.log, data.entry);
  }

  drawProgram(program) {
    const key = JSON.stringify(program);
    if (key === this.programKey) return;
    this.programKey = key;
    const added = new Set(program.added);
    this.program.replaceChildren(
      ...program.head.map((head) => el("div", { class: "head" }, head.text)),
      ...program.lines.map((line) => el("div", { class: `op hue-${line.hue % 8}${added.has(line.text) ? " added" : ""}`,
        title: added.has(line.text) ? "Changed by the move before" : null },
        ...line.slots.flatMap((slot) => [el("span", { class: slot.text === "|" ? "bar" : slot.mark ? "marked" : "" }, slot.text), " "]), line.op)));
  }

  drawLine(moves, ply, chances) {
    const key = JSON.stringify([moves, chances]);
    if (key !== this.lineKey) {
      this.lineKey = key;
      const row = (text, at) => {
        const told = at > 0 && typeof chances[at - 1] === "number" ? chance(chances[at - 1]) : "";
        return el("li", {}, el("button", { type: "button", "data-ply": at, title: told ? `${text}: the policy gave it ${told}` : text },
          el("span", { class: "move" }, text), told ? el("span", { class: "share" }, told) : null));
      };
      this.line.replaceChildren(row("start of the run", 0), ...moves.map((move, at) => row(`${at + 1}. ${move}`, at + 1)));
      this.ply = null;
    }
    if (ply === this.ply) return;
    this.ply = ply;
    for (const button of this.line.querySelectorAll("button")) {
      const current = Number(button.dataset.ply) === ply;
      if (current) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
      if (current) this.bring(this.line, button);
    }
  }

  bring(list, row) {
    const top = row.offsetTop - list.offsetTop;
    if (top < list.scrollTop || top + row.offsetHeight > list.scrollTop + list.clientHeight) {
      list.scrollTop = Math.max(0, top - list.clientHeight / 2);
    }
  }

  drawConsidered(rows) {
    const key = JSON.stringify(rows);
    if (key === this.consideredKey) return;
    this.consideredKey = key;
    if (!rows.length) {
      this.considered.replaceChildren(el("tr", {}, el("td", { colspan: 5, class: "empty" },
        "Nothing yet. Passes follow the program's structure and weigh nothing; searches tell here what they chose.")));
      return;
    }
    this.considered.replaceChildren(...rows.flatMap((row) => [
      el("tr", {},
        el("td", { title: row.program }, row.program), el("td", { class: row.tone }, row.decision), el("td", { class: "number" }, row.chance),
        el("td", { class: `number ${row.speed}` }, row.ratio), el("td", { class: "number" }, row.expected)),
      row.words ? el("tr", { class: "words" }, el("td", { colspan: 5 }, row.words)) : null].filter(Boolean)));
  }

  /** What a policy says of the program shown: hidden where there is none to ask. */
  drawLearned(learned) {
    const key = JSON.stringify(learned);
    if (key === this.learnedKey) return;
    this.learnedKey = key;
    this.policy.hidden = !learned;
    if (!learned) return;
    put(this.learnedWords, learned.pending ? "Asking the policy…" : learned.words);
    if (learned.pending) return; // what was said of the program before stays until then: nothing jumps
    this.scroll.hidden = learned.stop === null;
    const lines = (changes) => changes.map(([sign, text]) => el("div", { class: sign === "+" ? "added" : "removed" }, `${sign === "+" ? "+" : "−"} ${text}`));
    const row = ({ move, probability, changes }) => el("tr", { class: move === learned.played ? "played" : null },
      el("td", {}, move, move === learned.played ? el("span", { class: "tag" }, "played next") : null),
      el("td", { class: "number" }, chance(probability)), el("td", { class: "changes mono" }, ...lines(changes)));
    this.learned.replaceChildren(...learned.moves.map(row), ...(learned.stop === null ? [] : [
      el("tr", {}, el("td", {}, "stop"), el("td", { class: "number" }, chance(learned.stop)), el("td", { class: "empty" }, "no move is worth more"))]));
  }

  /** The newest stands on top; who has scrolled down stays where he reads. */
  drawLog(rows, entry) {
    const numbers = rows.map((row) => row.number);
    const before = this.log.scrollHeight;
    const known = new Set(numbers);
    for (const [number, node] of this.logged) {
      if (!known.has(number)) { node.remove(); this.logged.delete(number); }
    }
    const fresh = rows.filter((row) => !this.logged.has(row.number)).sort((one, other) => one.number - other.number);
    for (const row of fresh) {
      const node = el("li", {}, el("button", { type: "button", "data-entry": row.number, title: row.about },
        el("span", { class: "number" }, row.label), el("span", { class: "move" }, row.move),
        el("span", { class: `number ${row.tone}` }, row.time)));
      this.logged.set(row.number, node);
      this.log.prepend(node);
    }
    for (const row of rows) {
      const [, move, time] = this.logged.get(row.number).firstChild.children;
      put(move, row.move);
      put(time, row.time);
    }
    if (this.log.scrollTop > 0) this.log.scrollTop += this.log.scrollHeight - before;
    if (entry !== this.entry || fresh.length) {
      this.entry = entry;
      for (const [number, node] of this.logged) {
        if (number === entry) node.firstChild.setAttribute("aria-current", "true");
        else node.firstChild.removeAttribute("aria-current");
      }
    }
  }
}

class Replay {
  constructor(stage) {
    const send = (kind, more = {}) => stage.send({ kind, ...more });
    this.play = el("button", { type: "button", class: "primary", onclick: () => stage.play() });
    this.slider = el("input", { type: "range", min: 0, "aria-label": "Place in the recording",
      onchange: () => send("replay_at", { at: Number(this.slider.value) }) });
    this.pace = el("select", { "aria-label": "Seconds for each step", onchange: () => send("replay_pace", { pace: Number(this.pace.value) }) },
      ...[[4, "slow: 4 s"], [2, "reading: 2 s"], [1, "brisk: 1 s"], [0.4, "quick: 0.4 s"]].map(([value, words]) => el("option", { value }, words)));
    this.count = el("span", { class: "where" });
    this.root = el("div", { class: "replay", role: "group", "aria-label": "Recording" }, this.play,
      el("button", { type: "button", title: "One step back (←)", onclick: () => send("replay_step", { by: -1 }) }, "◂ Back"),
      el("button", { type: "button", title: "One step on (→)", onclick: () => send("replay_step", { by: 1 }) }, "Step ▸"),
      this.slider, this.count, el("label", {}, "a step ", this.pace));
  }

  update(data) {
    put(this.play, data.playing ? "Pause" : data.at >= data.total ? "From the beginning" : "Play");
    this.play.title = "Space";
    this.slider.max = data.total;
    if (this.slider !== this.slider.getRootNode().activeElement || data.playing) this.slider.value = data.at;
    this.pace.value = String(data.pace);
    put(this.count, `${data.at} of ${data.total}`);
  }
}

class Stage {
  constructor(parent) {
    this.lanes = new Map();
    this.replay = new Replay(this);
    this.row = el("div", { class: "lanes" });
    this.root = el("div", { class: "stage" }, this.replay.root, this.row);
    parent.append(this.root);
    this.number = 0;
    this.listener = (event) => this.key(event);
    document.addEventListener("keydown", this.listener);
  }

  close() {
    document.removeEventListener("keydown", this.listener);
    this.root.remove();
  }

  send(action) {
    this.number += 1;
    this.component.setTriggerValue("action", { ...action, n: `${Date.now()}-${this.number}` });
  }

  update(component) {
    this.component = component;
    const { lanes, replay } = component.data;
    this.replay.root.hidden = !replay;
    if (replay) this.replay.update(replay);
    const ids = lanes.map((lane) => lane.id);
    if (ids.join() !== [...this.lanes.keys()].join()) {
      this.lanes = new Map(ids.map((id) => [id, this.lanes.get(id) || new Lane(this, id)]));
      this.row.replaceChildren(...[...this.lanes.values()].map((lane) => lane.root));
      this.row.dataset.count = ids.length;
    }
    for (const lane of lanes) this.lanes.get(lane.id).update(lane);
  }

  play() { // what the button says, whatever has come to an end meanwhile
    this.send({ kind: "replay_play", on: !this.component.data.replay.playing });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.composedPath()[0];
    if (target.matches && target.matches("input, textarea, select, button, summary, [role=slider], [role=tab], [role=radio], [role=combobox]")) return;
    const replay = this.component.data.replay;
    const all = (...kinds) => { // the first that any run can do, for all that can
      const kind = kinds.find((each) => [...this.lanes.values()].some((lane) => lane.controls.has(each)));
      if (kind) this.send({ kind: "all", does: kind });
    };
    const keys = replay
      ? { " ": () => this.play(), ArrowRight: () => this.send({ kind: "replay_step", by: 1 }),
          ArrowLeft: () => this.send({ kind: "replay_step", by: -1 }) }
      : { " ": () => all("pause", "go_on"), ArrowRight: () => all("step") };
    const act = keys[event.key];
    if (!act) return;
    act();
    event.preventDefault();
  }
}

const stages = new WeakMap();

export default function mount(component) {
  const parent = component.parentElement;
  if (!stages.has(parent)) stages.set(parent, new Stage(parent));
  stages.get(parent).update({ ...component, data: component.data[0] });
  return () => {
    stages.get(parent)?.close();
    stages.delete(parent);
  };
}

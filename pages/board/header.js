// What stands on top: which game, what was measured, what the queue does, and the ways through the line.

// By the queue's state: what a press of the banner's button asks for, its words, and what they mean.
const REMEDIES = {
  down: ["restart", "Restart the measurer", ""],
  locked: ["anyway", "Measure anyway", "Beside what runs there, without the lock: such times are marked"],
};

class Header {
  constructor(board) {
    this.board = board;
    this.title = el("h1", {});
    this.about = el("span", { class: "about" });
    const act = (kind, fields = {}) => () => board.send(kind, fields);
    this.buttons = {
      fresh: el("button", { class: "ghost", type: "button", title: "Leave this game (it is saved) and start another", onclick: act("leave") }, "New game"),
      review: el("button", { class: "ghost", type: "button", title: "Go through this game: gains, investments, real losses", onclick: () => this.review() }, "Review"),
      keys: el("button", { class: "ghost", type: "button", "aria-label": "Help", title: "Keys, notation, moves (?)", onclick: () => board.help.open() }, "?"),
      first: el("button", { class: "nav", type: "button", "aria-label": "To the start", title: "To the start of the line", onclick: act("step", { to: "first" }) }, icon("first")),
      back: el("button", { class: "nav", type: "button", "aria-label": "One move back", title: "One move back (←)", onclick: act("step", { to: "back" }) }, icon("back")),
      forward: el("button", { class: "nav", type: "button", "aria-label": "One move forward", title: "One move forward (→)", onclick: act("step", { to: "forward" }) }, icon("forward")),
      last: el("button", { class: "nav", type: "button", "aria-label": "To the end", title: "To the end of the line", onclick: act("step", { to: "last" }) }, icon("last")),
      branch: el("button", { class: "nav", type: "button", "aria-label": "Next branch", title: "Next branch at this move (B)", onclick: act("step", { to: "branch" }) }, icon("branch")),
      undo: el("button", { class: "nav wide", type: "button", "aria-label": "Take back", title: "Take the last move back; it stays in the history (U)", onclick: act("take_back") }, icon("undo"), el("span", { class: "words" }, " Take back")),
      hint: el("button", { class: "nav wide", type: "button", title: "A hint: first the kind of a good move, then its place, then the move (H)", onclick: () => board.moves.hints.ask() }, "Hint"),
      measure: el("button", { class: "nav wide", type: "button", onclick: () => board.toggleMeasuring() }, "Pause"),
    };
    const b = this.buttons;
    this.metric = {
      time: metric("Time", "The shortest of several verified runs, and how far their median lies above it"),
      gain: metric("Speed-up", "Against this game's start program"),
      best: metric("Best so far", "The fastest measured position of this game: click to go there"),
      rate: metric("Throughput", "The kernel's own bytes and operations, each counted once, over the time"),
    };
    for (const [name, each] of Object.entries(this.metric)) each.root.classList.add(`metric-${name}`);
    this.machine = el("span", { class: "machine-now" });
    this.metric.time.root.firstChild.append(this.machine);
    this.metric.best.root.classList.add("link");
    this.metric.best.root.addEventListener("click", () => {
      const best = board.feed && board.feed.best;
      if (best) board.send("goto", { id: best.id });
    });
    this.progress = el("div", { class: "progress", "aria-hidden": "true" }, el("div", { class: "done" }));
    this.queue = el("span", { class: "queue-text", role: "status" });
    this.queueBox = el("div", { class: "queue" }, el("div", { class: "queue-line" }, this.queue, b.measure), this.progress);
    this.banner = el("div", { class: "banner", role: "alert", hidden: true },
      el("span", {}, ""), el("button", { class: "small", type: "button", onclick: () => board.send(this.remedy) }, ""));
    this.over = el("button", { class: "small", type: "button", title: "The game is yours from then on; the program is told so when it plays on", onclick: act("take_over") }, "Take over");
    this.watched = el("div", { class: "watched", role: "status", hidden: true },
      el("span", {}, ""), this.over,
      el("button", { class: "small primary", type: "button", title: "Makes a copy of your own; this game stays as it is", onclick: act("fork") }, "Fork: play on from here"));
    this.authored = el("div", { class: "authored", hidden: true });
    this.doubt = el("div", { class: "doubt", role: "status", hidden: true });
    this.navs = el("div", { class: "navs" }, b.hint, b.undo, b.first, b.back, b.forward, b.last, b.branch);
    this.metrics = el("div", { class: "metric-row" }, this.metric.time.root, this.metric.gain.root, this.metric.best.root,
      this.metric.rate.root, this.queueBox, this.navs);
    this.root = el("header", { class: "top" },
      el("div", { class: "title-row" }, this.title, this.about, el("span", { class: "spring" }), b.fresh, b.review, b.keys),
      this.metrics, this.authored, this.watched, this.doubt, this.banner);
  }

  update() {
    const { game, position, history } = this.board.data;
    for (const each of [this.buttons.fresh, this.buttons.hint, this.buttons.review]) show(each, !this.board.data.embedded); // a lesson has its own
    put(this.title, game.title);
    const rules = game.client ? [...game.rules, [`played by ${game.client}`, "A program plays or played this game, by calls"]] : game.rules;
    this.about.replaceChildren(...rules.flatMap(([words, about], n) => [n ? " · " : "", el("span", { title: about }, words)]));
    for (const name of ["gain", "best"]) show(this.metric[name].root, game.timed);
    const line = history.line;
    const at = line.indexOf(position.id);
    this.buttons.first.disabled = this.buttons.back.disabled = this.buttons.undo.disabled = at <= 0;
    const { watching } = this.board;
    show(this.watched, Boolean(watching));
    put(this.watched.firstChild, watching);
    show(this.over, Boolean(game.taken));
    if (watching) this.buttons.undo.disabled = true;
    show(this.doubt, Boolean(game.doubt));
    put(this.doubt, game.doubt);
    this.buttons.undo.title = watching || "Take the last move back; it stays in the history (U)";
    this.buttons.forward.disabled = this.buttons.last.disabled = at >= line.length - 1;
    this.buttons.branch.disabled = !history.branches;
    this.refresh();
  }

  /** The page Learn reviews it; it is found by the game's id. */
  review() {
    const { game } = this.board.data;
    const base = window.location.pathname.replace(/[^/]*$/, "");
    window.location.assign(`${base}learn?g=${game.id}&review=${game.id}`);
  }

  refresh() {
    const feed = this.board.feed;
    if (!feed || !feed.now || !this.board.data.game) return;
    const { now, start, best, queue, work } = feed;
    const m = this.metric;
    const known = now.seconds > 0;
    const simulated = this.board.data.game.unit === "cycles";
    const spread = now.busy ? "taken busy" : now.spread > 0.0005 ? `+${(now.spread * 100).toFixed(1)}% median` : "";
    if (now.rough && !known) m.time.set(`≈ ${duration(now.rough)}`, "one run, being verified");
    else m.time.set(known ? duration(now.seconds) : now.state, known ? (simulated ? now.about : spread) : "");
    m.time.root.classList.toggle("pending", !known);
    m.time.root.classList.toggle("failure", Boolean(now.error));
    m.time.root.title = now.error || [now.about || m.time.about, known && !simulated ? `Taken ${provenance(now)}.` : ""].filter(Boolean).join(". ");
    const { authored } = feed;
    show(this.authored, Boolean(authored));
    if (authored) put(this.authored, `The author's time here: ${duration(authored.seconds)}${authored.start ? `, ${ratio(authored.start / authored.seconds)}` : ""} (${authored.machine}, ${authored.date})`);
    this.tellMachine(feed.machine, simulated);
    this.lastMove();
    const gain = known && start > 0 ? start / now.seconds : null;
    m.gain.set(gain ? ratio(gain) : "–", start > 0 ? `start ${duration(start)}${feed.yardstick.busy ? ", busy" : ""}` : "");
    m.gain.root.title = start > 0 && !simulated ? `Against this game's start program: ${duration(start)}, taken ${provenance(feed.yardstick)}.` : m.gain.about;
    m.best.set(best && start > 0 ? ratio(start / best.seconds) : "–",
      best ? (best.id === this.board.data.position.id ? "here" : `${duration(best.seconds)}, move ${best.ply}`) : "");
    const gigabytes = known && work.bytes ? work.bytes / now.seconds / 1e9 : null;
    const gigaflops = known && work.flops ? work.flops / now.seconds / 1e9 : null;
    this.rate(known ? now.seconds : null, gigabytes, gigaflops, work, feed.roofline);
    const words = {
      measuring: `Measuring ${queue.done} of ${queue.total}${queue.left >= 5 ? ` · ${rest(queue.left)}` : ""}`,
      waiting: `${queue.done} of ${queue.total}, another player is being measured`,
      idle: queue.total ? `Measured ${queue.done} of ${queue.total}` : "Nothing to measure",
      off: queue.done ? `Off: ${queue.done} of ${queue.total} known` : "Measuring is off",
      locked: "Waiting for the measuring lock",
      down: "Not measuring",
      elsewhere: queue.done ? `From its worker: ${queue.done} of ${queue.total} known` : "Times come from its worker",
    };
    put(this.queue, words[queue.state] || queue.state);
    this.queue.title = queue.state === "elsewhere" ? queue.message : "";
    show(this.buttons.measure, queue.state !== "elsewhere");
    this.progress.firstChild.style.width = queue.total ? `${(100 * queue.done) / queue.total}%` : "0";
    this.progress.classList.toggle("none", !queue.done);
    this.progress.classList.toggle("active", queue.state === "measuring");
    const on = this.board.data.measuring;
    put(this.buttons.measure, on ? "Pause" : "Measure");
    this.buttons.measure.title = on ? "Stop measuring; what is known stays (M)" : "Measure this position and its moves (M)";
    const [remedy, label, about] = REMEDIES[queue.state] || ["", "", ""];
    this.remedy = remedy;
    show(this.banner, Boolean(remedy));
    this.banner.classList.toggle("calm", queue.state === "locked");
    put(this.banner.firstChild, queue.message || "The measurer has stopped. Play goes on unmeasured.");
    put(this.banner.lastChild, label);
    this.banner.lastChild.title = about;
  }

  /** How much of what the machine can do is reached; before that is measured, the throughput. */
  rate(seconds, gigabytes, gigaflops, work, roofline) {
    const { rate } = this.metric;
    show(rate.root, Boolean(work.bytes || work.flops) && this.board.data.game.timed && this.board.data.game.unit === "seconds");
    const speeds = [gigabytes ? `${significant(gigabytes)} GB/s` : "", gigaflops ? `${significant(gigaflops)} GFLOP/s` : ""].filter(Boolean);
    rate.name(roofline ? "Of the roofline" : "Throughput");
    rate.root.title = roofline
      ? `The limit is ${duration(roofline.seconds)}, the best that this machine was ever seen to do: ${roofline.reached ? `so long took ${roofline.reached}`
        : roofline.bound === "memory" ? `the kernel's arrays (${roofline.pattern}) streamed at ${significant(roofline.gbytes_per_second)} GB/s` : `all cores computing ${significant(roofline.gflops)} GFLOP/s`}. What beats it becomes it. Now: ${speeds.join(", ") || "not measured"}.`
      : rate.about;
    const left = roofline && seconds ? seconds / roofline.seconds : 1;
    if (roofline && seconds) rate.set(`${significant(100 / left)}%`, `${left >= 1.05 ? `${ratio(left)} to gain, ` : ""}${roofline.bound}`);
    else rate.set(speeds[0] || "–", speeds[1] || "");
  }

  /** What else the machine does now: times that are taken meanwhile are marked. */
  tellMachine(machine, simulated) {
    const busy = Boolean(machine && machine.busy);
    show(this.machine, Boolean(machine) && !simulated && (busy || machine.quiet));
    this.machine.classList.toggle("is-busy", busy);
    put(this.machine, busy ? `busy ${machine.share}%` : "machine idle");
    this.machine.title = busy ? `The machine is ${machine.words}. Times are taken in turns, so that moves can be told apart all the same; a time taken now is marked, and taken again in quiet.`
      : "Other processes leave the machine alone.";
  }

  /** What the last move did to the time, beside the time itself. */
  lastMove() {
    const { last } = this.board.feed;
    const speed = last ? new Speed(last) : null;
    this.metric.time.chip(speed === null ? "" : `${speed.brief} last move`, speed === null ? "" : speed.tone);
    this.metric.time.root.querySelector(".chip").title = speed === null ? "" : `The last move: ${speed.sentence.replace("the position on the board", "the position before")}`;
  }
}

/** What is left, roughly: nobody counts these seconds. */
function rest(seconds) {
  return seconds < 90 ? `${Math.ceil(seconds / 5) * 5} s` : `${Math.round(seconds / 60)} min`;
}

function metric(name, about) {
  const value = el("div", { class: "metric-value" });
  const detail = el("div", { class: "metric-detail" });
  const chip = el("span", { class: "chip", hidden: true });
  const root = el("div", { class: "metric", title: about }, el("div", { class: "metric-name" }, el("span", {}, name)),
    value, el("div", { class: "metric-foot" }, chip, detail));
  return {
    root,
    about,
    name(text) { put(root.firstChild.firstChild, text); },
    set(text, small = "") {
      put(value, text);
      put(detail, small);
    },
    chip(text, kind) {
      put(chip, text);
      chip.className = `chip ${kind}`;
      show(chip, Boolean(text));
    },
  };
}

// Drawn, not typed: the arrows' signs are missing from many fonts.
const ICONS = {
  first: "M4 3v10 M13 3L6 8l7 5z", back: "M11 3L4 8l7 5z", forward: "M5 3l7 5-7 5z", last: "M12 3v10 M3 3l7 5-7 5z",
  branch: "M4 2v12 M4 10c6 0 7-2 7-6 M8.5 6L11 3l2.5 3", undo: "M6 3L3 6l3 3 M3 6h6a4 4 0 0 1 0 8H6",
  wrap: "M2 4h12 M2 8h9a2.5 2.5 0 0 1 0 5H8 M10 11l-2 2 2 2 M2 12h3", fill: "M9 2h5v5 M7 14H2V9 M14 2L9 7 M2 14l5-5",
};

function icon(name) {
  const picture = svg("svg", { viewBox: "0 0 16 16", class: `icon icon-${name}`, "aria-hidden": "true" });
  picture.append(svg("path", { d: ICONS[name] }));
  return picture;
}

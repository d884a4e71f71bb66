// What stands in for the server on a study's page: it answers the board's events from what was computed beforehand.

const READING = "This is a study: look around in it. Fork it to play on, with times of your own machine.";

class StudySession {
  /** `data` as dojo_core/study/sheets.py tells it; `changed` is called once what is shown has changed. */
  constructor(data, changed) {
    this.data = data;
    this.changed = changed;
    this.game = 0;
    this.at = data.chapters[0].begins;
    this.machine = 0;
    this.pinned = null; // [game, position]
    this.assembly = this.profile = false;
    this.told = 0;
    this.last = {}; // the number of the last event of each client
    this.answered = new Set(); // questions, as "chapter/position"
    this.notice = null;
    this.waits = null; // what is done once all of the study is read
  }

  get shown() { return this.data.games[this.game]; }
  get sheet() { return this.shown.sheets[this.at]; }
  get times() { return this.data.machines[this.machine] || null; }

  mount(parent, board) {
    this.board = board;
    this.component = { parentElement: parent, setTriggerValue: () => {} };
    board.events.way = () => this.hear(board.events.pending);
    this.tell();
  }

  /** All of the study is read by now. */
  completed() {
    const { waits } = this;
    this.waits = null;
    if (waits) waits();
    this.hear(this.board.events.pending);
  }

  /** Go to a position of a game, as far as no open question stands before it. */
  go(at, game = this.game) {
    if (!this.data.whole) {
      this.waits = () => this.go(at, game);
      return;
    }
    const barred = this.bar(game, at);
    this.game = game;
    this.at = barred === null ? at : barred;
    if (barred !== null) this.say("A question stands here: answer it, or give it up, to go on.");
    this.changed();
    this.tell();
  }

  /** The position of the first open question on the way to a position beyond it, null where there is none. */
  bar(game, at) {
    const nodes = new Map(this.data.games[game].history.map((node) => [node.id, node]));
    const way = [];
    for (let id = nodes.get(at).parent; id !== null; id = nodes.get(id).parent) way.unshift(id);
    for (const id of way) if (this.open(game, id)) return id;
    return null;
  }

  /** Is there a question at a position that is not answered yet? */
  open(game, at) {
    return this.data.chapters.some((chapter) => chapter.game === game
      && chapter.stops.some((stop) => stop.at === at && stop.question && !this.answered.has(`${chapter.id}/${at}`)));
  }

  say(text) {
    this.told += 1;
    this.notice = { n: this.told, text, kind: "info", client: "", undo: null };
  }

  hear(events) {
    if (!this.data.whole) return; // they wait
    const before = [this.game, this.at];
    for (const event of [...events]) {
      this.last[this.board.client] = event.seq;
      const { kind, to, id } = event;
      if (kind === "step" || kind === "goto" || kind === "take_back") {
        const next = this.board.ahead.destination({ kind, to, id });
        if (next !== null && next !== undefined) {
          const barred = this.bar(this.game, next);
          this.at = barred ?? next;
          if (barred !== null) this.say("A question stands here: answer it, or give it up, to go on.");
        }
      } else if (kind === "show") {
        this.assembly = event.assembly ?? this.assembly;
        this.profile = event.profile ?? this.profile;
      } else if (kind === "pin") this.pinned = [this.game, this.at];
      else if (kind === "unpin") this.pinned = null;
      else if (kind === "fork") this.fork();
    }
    // The board has not sent the event to its end yet: it hears once it has.
    queueMicrotask(() => {
      if (before[0] !== this.game || before[1] !== this.at) this.changed();
      this.tell();
    });
  }

  fork() {}

  tell() {
    const { board, component } = this;
    if (!board) return;
    component.data = this.boardData();
    board.update(component);
    board.events.way = () => this.hear(board.events.pending); // a board without a key takes it away
    window.dojoFeed = this.feed();
    window.dispatchEvent(new Event("dojo:feed"));
  }

  boardData() {
    const { shown, sheet, at } = this;
    this.told += 1;
    const { after, link, ...drawn } = sheet;
    const profile = this.times && this.times.profiles[sheet.position.hash];
    return {
      view: "play", embedded: "Words", key: "", acknowledged: { ...this.last }, version: String(this.told), told: ["study", this.told],
      pinned: this.pinnedTexts(), ...drawn, game: { ...shown.game, watching: READING },
      assembly: this.assembly ? sheet.assembly : null,
      profile: this.profile ? profile || { error: "No machine of this study told where the time goes." } : null,
      profiling: this.profile, history: historyAt(shown.history, at), drop: null, measuring: false, paused: [], commands: {},
    };
  }

  pinnedTexts() {
    if (!this.pinned) return null;
    const [game, at] = this.pinned;
    const { game: about, sheets, history } = this.data.games[game];
    const node = history.find((each) => each.id === at);
    const sheet = sheets[at];
    return { game: about.id, title: about.title, id: at, name: node.ply ? `${node.ply}. ${node.move}` : "Start", hash: sheet.position.hash,
      program: [...sheet.program.head.map((line) => line.text), ...sheet.program.lines.map((line) => line.text)],
      code: sheet.code, assembly: this.assembly ? sheet.assembly : null };
  }

  // ------------------------------------------------------------------ times

  /** [shortest, median] of a program on a machine, null where it has none. */
  static seconds(times, hash) {
    return (times && times.seconds[hash]) || null;
  }

  feed() {
    const { shown, sheet, at, times } = this;
    const common = { view: "play", acknowledged: { ...this.last }, notice: this.notice, taken: null };
    const hashes = new Map(shown.history.map((node) => [node.id, node.hash]));
    const about = { taken: null, busy: false, machine: times ? `${times.date}, ${times.machine}` : "" };
    const known = {};
    const provenance = {};
    let best = null;
    for (const { id, hash, ply } of shown.history) {
      const time = StudySession.seconds(times, hash);
      if (!time) {
        if (times && times.failed[hash]) known[id] = "failed";
        continue;
      }
      known[id] = time[0];
      provenance[id] = about;
      if (best === null || time[0] < best.seconds) best = { id, seconds: time[0], ply };
    }
    const here = StudySession.seconds(times, hashes.get(at));
    const why = times && times.failed[hashes.get(at)];
    const start = StudySession.seconds(times, shown.game.start);
    const now = here ? { state: "ok", seconds: here[0], median: here[1], spread: Math.max(0, here[1] / here[0] - 1), about: "", ...about }
      : { state: why ? "no time" : "not timed", ...(why ? { about: why } : {}) };
    const results = sheet.after.map((hash) => this.result(sheet.position.hash, hash));
    const done = results.filter(Array.isArray).length;
    const limit = (times && times.limits[shown.game.start]) || {};
    return {
      ...common, game: shown.game.id, position: at, now, start: start ? start[0] : null,
      yardstick: start ? { seconds: start[0], ...about, again: null } : null,
      last: this.lastMove(hashes), best, times: known, provenance, results, explored: true, look: { move: null, diff: [], why: "" }, hint: null,
      work: shown.work, roofline: limit.roofline || null, torch: limit.torch || null, pinned: this.pinnedTimes(), machine: null,
      queue: { state: "off", done, total: results.length, message: "", left: null },
    };
  }

  /** What a legal move came to, as the feed tells it. */
  result(here, hash) {
    const { times } = this;
    const time = StudySession.seconds(times, hash);
    if (!time) return times && times.failed[hash] ? ["failed", times.failed[hash]] : 2;
    const speed = times.speeds[here] && times.speeds[here][hash];
    return [...time, ...(speed || [])];
  }

  lastMove(hashes) {
    const { parent } = this.sheet.position;
    if (parent === null || !this.times) return null;
    const speeds = this.times.speeds[hashes.get(parent)];
    return (speeds && speeds[hashes.get(this.at)]) || null;
  }

  pinnedTimes() {
    if (!this.pinned) return null;
    const [game, at] = this.pinned;
    const time = StudySession.seconds(this.times, this.data.games[game].sheets[at].position.hash);
    return { board: this.sheet.position.hash, seconds: time ? time[0] : null, speed: null };
  }
}

// Positions that the board has before they are asked for: those it showed, those beside the one it shows, and what the
// move under the pointer leads to. Going to one of them draws it at once, as a guess of what the server will say; the
// server hears of it meanwhile, and what it says then stands: a refusal puts the board back to where the game is.

const KEPT = 48; // positions
const NEAR = 4; // moves to either side of the position on the board that are fetched
const EACH = 1; // positions fetched at once: what is asked for meanwhile waits for no more
const QUIET = 150; // ms after a position came until others are fetched: its own times come first
const DWELL = 60; // ms that the pointer rests on a move until what that leads to is fetched
const SHEET = ["position", "program", "code", "moves", "blocked", "enablers", "assembly", "profile"];
// Events that leave the position on the board where it is.
const STILL = ["select", "look", "sight", "pause", "show", "why", "hint", "measure", "pin", "unpin", "take_away", "received", "look_again", "yardstick", "ask_drop", "anyway", "restart"];

class Ahead {
  constructor(board) {
    this.board = board;
    this.sheets = new Map(); // by position, the one used last at the end
    this.moves = new Map(); // by position and move, the sheet of a position that the game has not yet
    this.feeds = new Map(); // by position, what was last heard of its moves
    this.guess = null; // the number of the event that led to what is shown, until the server has said so
    this.newest = null; // [process, number] of the newest board that the server told
    this.fetching = false;
    this.timer = this.dwell = null;
  }

  close() {
    clearTimeout(this.timer);
    clearTimeout(this.dwell);
  }

  /** Is this board of the server's what the screen should show? Not one that is older than another, nor one
   * from before the server heard of what led to the guess. */
  accepts(data) {
    const [process, number] = data.told;
    if (this.newest && this.newest[0] === process && number < this.newest[1]) return false;
    if (this.guess !== null && this.board.events.waits((event) => event.seq <= this.guess)) return false;
    this.newest = data.told;
    this.guess = null;
    if (data.view !== "play") return true;
    const known = this.sheets.has(Ahead.key(data.game.id, data.position));
    if (data.moves || !known) this.keep(data.game.id, Object.fromEntries(SHEET.map((part) => [part, data[part]])));
    return true;
  }

  static key(game, { id, hash, parent }) {
    return `${game}/${id}/${hash}/${parent}`;
  }

  keep(game, sheet) {
    const key = Ahead.key(game, sheet.position);
    this.sheets.delete(key);
    this.sheets.set(key, sheet);
    for (const kept of [this.sheets, this.moves, this.feeds]) {
      while (kept.size > KEPT) kept.delete(kept.keys().next().value);
    }
  }

  take(game, sheets) {
    for (const { move, ...sheet } of sheets) {
      const { data } = this.board;
      if (data.view !== "play" || data.game.id !== game) return;
      const known = this.node(sheet.position.id);
      if (known && known.hash === sheet.position.hash) this.keep(game, { assembly: null, profile: null, ...sheet });
      else if (!known && move && sheet.position.parent === data.position.id) {
        this.moves.set(this.to(move), { assembly: null, profile: null, ...sheet });
      }
    }
  }

  /** What a move of the position on the board is kept under. */
  to(move) {
    const { game, position } = this.board.data;
    return `${Ahead.key(game.id, position)}>${move}`;
  }

  node(id) {
    return this.board.data.history.nodes.find((node) => node.id === id);
  }

  sheet(id) {
    const node = this.node(id);
    return node && this.sheets.get(Ahead.key(this.board.data.game.id, node));
  }

  /** Is all there that is shown of a position? Its texts come before its moves. */
  whole(id) {
    const sheet = this.sheet(id);
    return Boolean(sheet && sheet.moves);
  }

  /** The feed of the position on the board. */
  heard(feed) {
    const { game, position } = this.board.data;
    if (feed.explored) this.feeds.set(Ahead.key(game.id, position), { results: feed.results, last: feed.last, queue: feed.queue });
  }

  // ------------------------------------------------------------------ guessing

  /** An event was sent: where that leads, as far as it is known, is drawn. */
  sent(event) {
    const { data, events } = this.board;
    if (!data || data.view !== "play" || STILL.includes(event.kind)) return;
    // What cannot be foreseen stands between: the server says where the game is.
    if (events.waits((e) => e.seq !== event.seq && !STILL.includes(e.kind) && (this.guess === null || e.seq > this.guess))) return;
    const guess = event.kind === "play" ? this.afterMove(event.move) : this.at(this.destination(event));
    if (!guess) return;
    this.guess = event.seq;
    this.board.drawing.close(); // what waits to be drawn is older
    this.board.draw(guess, this.feedOf(guess));
  }

  /** The number of the position that an event leads to, null where that is not foreseen. */
  destination({ kind, to, id }) {
    const { position, history } = this.board.data;
    const children = (at) => history.nodes.filter((node) => node.parent === at).map((node) => node.id);
    if (kind === "goto") return id;
    if (kind === "take_back" || (kind === "step" && to === "back")) return position.parent;
    if (kind !== "step") return null;
    if (to === "first") return 0;
    if (to === "forward") return children(position.id)[0] ?? null;
    if (to === "last") return history.line[history.line.length - 1];
    const siblings = position.parent === null ? [] : children(position.parent);
    if (siblings.length > 1) return siblings[(siblings.indexOf(position.id) + 1) % siblings.length];
    return children(position.id)[1] ?? null;
  }

  /** The board at a position that the game has; null where it is not known, or is there. */
  at(id, nodes = this.board.data.history.nodes) {
    const { data } = this.board;
    const node = nodes.find((each) => each.id === id);
    const sheet = node && this.sheets.get(Ahead.key(data.game.id, node));
    if (!sheet || id === data.position.id) return null;
    return { ...data, ...sheet, drop: null, history: historyAt(nodes, id) };
  }

  afterMove(move) {
    const { game, position, history } = this.board.data;
    const played = history.nodes.find((node) => node.parent === position.id && node.move === move);
    if (played) return this.at(played.id);
    const sheet = this.moves.get(this.to(move));
    const next = Math.max(...history.nodes.map((node) => node.id)) + 1;
    if (!sheet || sheet.position.id !== next) return null;
    this.keep(game.id, sheet);
    return this.at(next, withMove(history.nodes, { ...sheet.position, move }));
  }

  /** What is known of the times at a position before the server tells them. */
  feedOf({ game, position, moves, measuring }) {
    const { feed } = this.board;
    if (!feed || feed.game !== game.id) return feed;
    const known = this.feeds.get(Ahead.key(game.id, position));
    const time = feed.times[position.id];
    const now = typeof time === "number" ? { state: "ok", seconds: time, median: time, spread: 0, ...feed.provenance[position.id] }
      : { state: measuring ? "waiting" : "not measured" };
    const nothing = { results: (moves || []).map(() => (measuring ? 0 : 2)), last: null, queue: { ...feed.queue, done: 0, total: (moves || []).length, left: null } };
    return { ...feed, ...nothing, ...known, position: position.id, now, explored: Boolean(known), hint: null,
      look: { move: null, diff: [], why: "" } };
  }

  // ------------------------------------------------------------------ fetching

  /** Once the board is at rest, fetch what lies beside the position on it. */
  prepare() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.fetchNear(), QUIET);
  }

  async fetchNear() {
    const { data, door, events } = this.board;
    if (!data || data.view !== "play" || !door.key || this.fetching) return;
    const wanted = events.pending.length ? [] : this.near().filter((id) => !this.whole(id)).slice(0, EACH);
    if (!wanted.length) return;
    await this.fetch(wanted);
    if (this.board.data.view !== "play") return; // the game was left meanwhile
    if (wanted.every((id) => this.whole(id))) this.prepare(); // what was not told now will not be told then
  }

  /** The positions around the one on the board, nearest first. */
  near() {
    const { history, position } = this.board.data;
    const at = history.line.indexOf(position.id);
    const near = [];
    for (let by = 1; by <= NEAR; by += 1) near.push(history.line[at + by], history.line[at - by]);
    const branch = this.destination({ kind: "step", to: "branch" });
    return [...new Set([...near.slice(0, 2), branch, ...near.slice(2)])].filter((id) => id !== undefined && id !== null);
  }

  /** The pointer, or the choice, is at a move: it may be played soon. */
  look(move, wait = DWELL) {
    clearTimeout(this.dwell);
    const { data, door, watching } = this.board;
    if (move === null || data.view !== "play" || watching || !door.key || this.moves.has(this.to(move))) return;
    if (data.history.nodes.some((node) => node.parent === data.position.id && node.move === move)) return;
    this.dwell = setTimeout(() => {
      if (this.fetching) this.look(move);
      else if (!this.board.events.waits((event) => !STILL.includes(event.kind))) this.fetch([move]);
    }, wait);
  }

  async fetch(wanted) {
    this.fetching = true;
    await this.board.door.fetch(wanted);
    this.fetching = false;
  }
}

/** The history with the cursor at a position: the line through it, and whether it branches there. */
function historyAt(nodes, id) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const children = (at) => nodes.filter((node) => node.parent === at);
  const line = [];
  for (let at = id; at !== null; at = byId.get(at).parent) line.unshift(at);
  for (let [next] = children(id); next; [next] = children(next.id)) line.push(next.id);
  const { parent } = byId.get(id);
  return { nodes, line, branches: children(id).length > 1 || (parent !== null && children(parent).length > 1) };
}

/** The positions with one more, the last child of its parent, in the order in which the server tells them. */
function withMove(nodes, { id, parent, hash, move }) {
  const first = nodes.findIndex((node) => node.id === parent);
  const above = nodes[first];
  const inside = new Set([parent]);
  let end = first + 1;
  while (end < nodes.length && inside.has(nodes[end].parent)) inside.add(nodes[end++].id);
  const variation = above.variation || nodes.some((node) => node.parent === parent);
  return [...nodes.slice(0, end), { id, parent, move, ply: above.ply + 1, variation, hash }, ...nodes.slice(end)];
}

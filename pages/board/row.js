// One row of the moves table: made once for a move, then filled as times come in.

// What is known of a program on a machine that is not here: no failure, and no time.
const WITHOUT_TIME = { untimed: "no time", verified: "✓ verified" };

class MoveRow {
  /** `changing`: attributes of a button that changes the game. */
  constructor(move, summary, changing) {
    const { text } = move;
    this.fill = el("span", { class: "fill" });
    this.whisker = el("span", { class: "whisker" });
    this.value = el("span", { class: "value" });
    this.root = el("div", { class: "row", role: "option", id: `move-${move.index}`, "data-move": text, "aria-selected": "false" },
      el("span", { class: "name", title: summary.replace(/`/g, "") }, move.name),
      el("span", { class: "place", title: move.place }, move.place),
      el("span", { class: "params", title: move.params ? text : null }, move.params),
      el("span", { class: "bar", "aria-hidden": "true" }, this.fill, this.whisker), this.value,
      el("button", { class: "small apply", type: "button", tabindex: "-1", "aria-label": `Apply ${text}`, ...changing }, "Apply"));
    this.shown = undefined;
  }

  /** `result`: what is known of the move (feed.py). Text and classes only: no row moves. */
  show(result) {
    const known = Array.isArray(result);
    const key = String(known ? result.join() : result);
    if (this.shown === key) return;
    this.shown = key;
    const timed = known && typeof result[0] === "number";
    this.root.dataset.state = known ? (timed ? "known" : WITHOUT_TIME[result[0]] ? "untimed" : "failed") : ["waiting", "measuring", "unmeasured"][result] || "waiting";
    this.fill.style.cssText = this.whisker.style.cssText = "";
    this.fill.className = "fill";
    this.value.className = "value";
    this.value.removeAttribute("title");
    if (timed) this.time(result);
    else if (known && WITHOUT_TIME[result[0]]) put(this.value, WITHOUT_TIME[result[0]]);
    else if (known) {
      this.value.classList.add("failure");
      this.value.title = FAILURE_SENTENCES[result[0]] || "";
      put(this.value, `✕ ${FAILURES[result[0]] || result[0]}`);
    } else put(this.value, result === 1 ? "measuring" : result === 2 ? "" : "…");
  }

  time(result) {
    const speed = Speed.of(result);
    if (speed === null) return put(this.value, duration(result[0]));
    const share = (g) => 50 + 50 * Math.max(-1, Math.min(1, Math.log2(g) / 2)); // log scale, two doublings to either side of 1.0
    const place = (part, from, to) => {
      part.style.left = `${Math.min(from, to)}%`;
      part.style.width = `max(1px, ${Math.abs(to - from)}%)`;
    };
    // The bar ends at the speed, where it is sure; the interval is drawn through it.
    place(this.fill, 50, speed.decided ? share(speed.value) : 50);
    place(this.whisker, share(speed.low), share(speed.high));
    this.fill.classList.add(speed.tone);
    this.value.classList.add(speed.tone);
    this.value.title = speed.sentence;
    put(this.value, speed.brief);
  }
}

/** A refused move: its reason stands where a time would. */
function blockedRow(blocked, summary, number, chosen) {
  return el("div", { class: "row blocked", role: "option", id: `blocked-${number}`, "data-move": blocked.text, "aria-selected": String(chosen) },
    el("span", { class: "name", title: `${blocked.text}: ${summary.replace(/`/g, "")}` }, blocked.text),
    el("span", { class: "why", title: blocked.sentence }, blocked.sentence));
}

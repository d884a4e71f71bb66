// Events on their way to the server. They go out numbered and are sent again until the feed acknowledges
// them; the server applies each number once and drops a move made on a position that is no longer current.
// So a lost message is repaired, a double click plays one move, and every quick step counts.
// Nothing goes out once the browser's Back has left for another page: each message names the page that
// Streamlit still shows, and would call it back.

const GAP = 120; // ms between two messages: a key held down must not keep the server from drawing
const AGAIN = 2500; // ms until what is not acknowledged is sent again
const HEIR = 30000; // ms for which the next one goes on where a closed one was: Streamlit drew the page anew

/** Which page the address names: Play has three names. */
function pageName() {
  const name = window.location.pathname.split("/").pop();
  return name === "" || name === "home" ? "play" : name;
}

class Events {
  /** `owner`: which part of the page sends them. */
  constructor(owner) {
    this.owner = owner;
    this.client = Math.random().toString(36).slice(2, 10);
    this.sequence = 0;
    this.pending = [];
    this.sent = 0;
    this.timer = null;
    this.component = null;
    this.way = null; // what sends them, where that is not Streamlit
    this.page = pageName();
    this.inherit();
    this.retry = setInterval(() => {
      if (this.pending.length && Date.now() - this.sent > AGAIN) this.flush();
    }, 1000);
  }

  close() {
    clearInterval(this.retry);
    clearTimeout(this.timer);
    const { client, sequence, pending, page } = this;
    window.dojoLeft = { ...window.dojoLeft, [this.owner]: { client, sequence, pending, page, at: Date.now() } };
  }

  /** Go on as the one before this, so that a click on a board that was just being drawn anew counts. */
  inherit() {
    const left = window.dojoLeft && window.dojoLeft[this.owner];
    if (!left || left.page !== this.page || Date.now() - left.at > HEIR) return;
    delete window.dojoLeft[this.owner]; // one heir: two would give their events the same numbers
    this.client = left.client;
    this.sequence = left.sequence;
    this.pending = left.pending;
  }

  /** The event, with its number. */
  add(event) {
    this.sequence += 1;
    const numbered = { seq: this.sequence, ...event };
    this.pending.push(numbered);
    this.flush();
    return numbered;
  }

  flush() {
    if (this.timer !== null) return;
    if (this.way) {
      this.sent = Date.now();
      return this.way();
    }
    const wait = this.sent + GAP - Date.now();
    const go = () => {
      this.timer = null;
      this.bySession();
    };
    if (wait > 0) this.timer = setTimeout(go, wait);
    else go();
  }

  /** By Streamlit, which draws the page anew. */
  bySession() {
    if (pageName() !== this.page) return;
    this.sent = Date.now();
    this.component.setTriggerValue("events", { client: this.client, events: this.pending });
  }

  acknowledge(numbers) {
    const last = numbers[this.client] || 0;
    this.pending = this.pending.filter((event) => event.seq > last);
  }

  /** Leave out events of a kind that have not arrived: a newer one takes their place. */
  withdraw(kind) {
    this.pending = this.pending.filter((event) => event.kind !== kind);
  }

  waits(test) {
    return this.pending.some(test);
  }
}

// The board's own way to the server: one message at a time, each with its answer (pages/door.py). What stands beside the
// board, a lesson, is told by the same answers.

const PATIENCE = 20000; // ms for an answer
const SHUT = 2500; // ms until a server that did not answer is asked again

class Door {
  constructor(board) {
    this.board = board;
    this.key = "";
    this.under = null; // the message that is under way
    this.again = false; // is there more to say, once it is answered?
    this.timer = null;
    this.beside = ""; // the digest of what stands beside the board
  }

  /** `key`: what the server knows this tab by; it is another one after a restart. */
  open(key = "") {
    if (key === this.key) return void this.ask(); // its session has brought another board
    this.key = key;
    const { events } = this.board;
    events.way = key ? () => this.ask() : null;
    if (key) this.ask();
  }

  close() {
    clearTimeout(this.timer);
    this.key = "";
  }

  async post(message) {
    const base = window.location.pathname.replace(/[^/]*$/, "");
    const answer = await fetch(`${base}exchange`, { method: "POST", body: JSON.stringify(message),
      headers: { "Content-Type": "application/json", "Dojo-Key": this.key }, signal: AbortSignal.timeout(PATIENCE) });
    if (answer.ok) return answer.json();
    // The server knows the tab no more: its session, or the next one, gets another key.
    if (answer.status === 410) this.board.events.bySession();
    throw new Error(`The server answered ${answer.status}.`);
  }

  /** Send what waits, hear what is new. */
  async ask() {
    clearTimeout(this.timer);
    this.again = Boolean(this.under);
    if (this.again || !this.key) return;
    const { events, ahead, told } = this.board;
    this.under = { client: events.client, events: [...events.pending], version: ahead.guess === null ? told : "", beside: this.beside };
    const key = this.key;
    let wait = SHUT;
    try {
      const answer = await this.post(this.under);
      if (key !== this.key) return;
      wait = answer.poll === null ? null : 1000 * answer.poll;
      this.hear(answer);
    } catch (fault) {
      console.info(fault); // it is asked again, and Streamlit's session tells that the server is gone
    } finally {
      this.under = null;
      if (this.again) this.ask();
      else if (wait !== null && this.key) this.timer = setTimeout(() => this.ask(), wait);
    }
  }

  hear({ board, feed, beside }) {
    const { game, embedded } = this.board.data || {};
    this.board.events.acknowledge(feed.acknowledged);
    if (board) {
      this.board.take({ ...board, key: this.key, embedded });
      // What stands around the board names the game: Streamlit draws it anew.
      if ((game && game.id) !== (board.game && board.game.id)) this.board.events.bySession();
    }
    if (beside) {
      this.beside = beside.digest;
      window.dispatchEvent(new CustomEvent("dojo:beside", { detail: beside.told }));
    }
    window.dojoFeed = feed;
    window.dispatchEvent(new Event("dojo:feed"));
  }

  /** Positions beside the one on the board: numbers of positions, texts of moves. */
  async fetch(wanted) {
    const { ahead } = this.board;
    try {
      const game = this.board.data.game.id;
      ahead.take(game, (await this.post({ ahead: wanted })).ahead);
    } catch (fault) {
      console.info(fault); // then the server is asked when somebody goes there
    }
  }
}

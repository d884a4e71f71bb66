// The address names the game, so that a reload brings it back; whose it is, it does not say. Going from the start
// screen to a game, or back, is a step in the browser's history; Back and Forward lead there again.

class Address {
  constructor(board) {
    this.board = board;
    this.heading = null; // where Back or Forward is on its way to
    this.travelled = false;
    this.first = true;
    this.listener = () => this.travel();
    window.addEventListener("popstate", this.listener);
  }

  close() {
    window.removeEventListener("popstate", this.listener);
  }

  static game() {
    return new URLSearchParams(window.location.search).get("g");
  }

  shown() {
    const data = this.board.data;
    return data.view === "play" ? data.game.id : null;
  }

  /** Does the address name a game here? On its way to another page it does not: that is Streamlit's to follow. */
  get ours() {
    return pageName() === this.board.events.page;
  }

  travel() {
    if (!this.ours) return;
    this.travelled = true;
    const game = Address.game();
    if (!this.board.data || this.board.data.embedded || (this.heading === null && game === this.shown())) return;
    const seq = game === null ? this.board.send("leave") : this.board.send("open", { game });
    this.heading = { game, seq };
  }

  /** New data on the board: the address follows. */
  update() {
    if (this.board.data.embedded || !this.ours) return; // the page around keeps it, or the page to come
    const game = this.shown();
    if (this.heading !== null) {
      if (this.heading.game !== game) return;
      this.heading = null;
    }
    this.write(game);
  }

  /** Back led to a game that is no longer there: the address tells what is shown. */
  acknowledged() {
    const heading = this.heading;
    if (heading === null || this.board.events.waits((event) => event.seq === heading.seq)) return;
    setTimeout(() => {
      if (this.heading !== heading) return;
      this.heading = null;
      this.write(this.shown(), true);
    }, 1500);
  }

  write(game, replace = false) {
    if (!this.ours) return;
    const search = game === null ? "" : `?g=${game}`;
    const first = this.first;
    this.first = false;
    if (window.location.search === search) return;
    const stays = replace || first || Address.game() === game;
    window.history[stays ? "replaceState" : "pushState"]({}, "", window.location.pathname + search);
    // Streamlit remembers the address of the last Back for its next session: it must hear of this one.
    if (this.travelled) window.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
  }
}

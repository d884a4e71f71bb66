// A sentence at the foot of the page that goes away by itself, with Undo where there is something to undo;
// and the one that stays for as long as the server does not answer.

const SILENT = "The Dojo's server does not answer. Start it again with make run; your game is saved.";

class Notice {
  constructor(board) {
    this.board = board;
    this.text = el("span", {});
    this.button = el("button", { class: "small", type: "button", hidden: true, onclick: () => this.act() });
    this.box = el("div", { class: "notice", role: "status", hidden: true }, this.text, this.button);
    this.silent = el("div", { class: "silent", role: "alert", hidden: true }, SILENT);
    this.root = el("div", {}, this.box, this.silent);
    this.box.addEventListener("mouseenter", () => clearTimeout(this.timer));
    this.box.addEventListener("mouseleave", () => this.leave(5000));
    this.watch();
  }

  close() {
    clearTimeout(this.timer);
    clearInterval(this.watching);
  }

  /** `action` is [words, what to do]. */
  tell(text, kind = "info", action = null) {
    put(this.text, text);
    this.action = action;
    put(this.button, action ? action[0] : "");
    show(this.button, action !== null);
    this.box.className = `notice ${kind}`;
    // What lies outside an open dialogue cannot be clicked.
    const { box } = this.board.dialogs;
    (box.open ? box : this.root).append(this.box);
    show(this.box, true);
    this.leave(action ? 20000 : kind === "error" ? 12000 : 6000);
  }

  leave(after) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.hide(), after);
  }

  hide() {
    show(this.box, false);
    this.action = null;
  }

  act() {
    const action = this.action;
    this.hide();
    if (action) action[1]();
  }

  /** Streamlit says at its root whether it is connected; its own dialogue about that is closed. */
  watch() {
    let lost = 0;
    this.watching = setInterval(() => {
      const app = document.querySelector("[data-test-connection-state]");
      const gone = app !== null && app.dataset.testConnectionState !== "CONNECTED";
      lost = gone ? lost + 1 : 0;
      show(this.silent, lost >= 2);
      const close = gone && document.querySelector("[data-testid=stDialog] button[aria-label=Close]");
      if (close) close.click();
    }, 700);
  }
}

// Projector mode: larger letters, and nothing but the board and the words beside it. By `?projector=1` in the address, or
// the bar's button; it holds for this tab, on all pages, until it is left. shell.css and the board's projector.css draw it.

const PROJECTED = "dojo-projector"; // the class of the document, and what the tab keeps

class Projector {
  constructor() {
    const asked = new URLSearchParams(window.location.search).get("projector") === "1";
    let kept = null;
    try {
      kept = window.sessionStorage.getItem(PROJECTED);
    } catch { /* what cannot be kept ends with the page */ }
    this.button = element("button", { type: "button", class: "projector", onclick: () => this.set(!this.on) });
    this.set(asked || kept !== null);
  }

  get on() {
    return document.documentElement.classList.contains(PROJECTED);
  }

  set(on) {
    document.documentElement.classList.toggle(PROJECTED, on);
    this.button.textContent = on ? "Leave projector mode" : "Projector";
    this.button.title = on ? "" : "Larger letters, and nothing but the board and the words beside it";
    try {
      if (on) window.sessionStorage.setItem(PROJECTED, "1");
      else window.sessionStorage.removeItem(PROJECTED);
    } catch { /* as above */ }
    const asked = new URLSearchParams(window.location.search);
    if (!on && asked.has("projector")) {
      asked.delete("projector");
      window.history.replaceState(window.history.state, "", `${window.location.pathname}${asked.size ? `?${asked}` : ""}`);
    }
    window.dispatchEvent(new Event("dojo:projector"));
  }
}

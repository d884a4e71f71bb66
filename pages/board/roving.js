// One tab stop a pane: Tab goes from pane to pane, to what had the focus there last, at first to the pane's text or
// list. Within one, Alt with ↑ or ↓ goes through all its controls, and ← and → go on from a button reached so.

const PANE_CONTROLS = ["button:not(.apply):not(.entry)", "input", "select", ".scroll[tabindex]"]
  .map((kind) => `${kind}:not(:disabled, [hidden], [hidden] *)`).join();

class Roving {
  /** `home` has the focus first, and wherever what had it goes away; null: the first control. */
  constructor(pane, home) {
    this.pane = pane;
    this.home = home;
    this.at = home;
    this.held = null; // what has the focus
    this.pointed = false; // is a pointer down in the pane?
    this.keyed = false; // did a key bring the focus where it is?
    pane.setAttribute("aria-keyshortcuts", "Alt+ArrowUp Alt+ArrowDown");
    pane.addEventListener("pointerdown", () => { this.pointed = true; this.keyed = false; });
    for (const end of ["pointerup", "pointercancel", "pointerleave"]) pane.addEventListener(end, () => { this.pointed = false; });
    pane.addEventListener("focusin", (event) => this.focused(event.target));
    // What is taken out of the page loses the focus just before: only afterwards is it seen to be gone.
    pane.addEventListener("focusout", ({ target }) => queueMicrotask(() => { if (target === this.held && target.isConnected) this.held = null; }));
    pane.addEventListener("keydown", (event) => this.key(event), true); // before a list takes the arrows
    new MutationObserver(() => this.settle())
      .observe(pane, { childList: true, subtree: true, attributes: true, attributeFilter: ["hidden", "disabled"] });
    this.settle();
  }

  get stops() {
    return [...this.pane.querySelectorAll(PANE_CONTROLS)];
  }

  focused(node) {
    this.keyed = !this.pointed;
    this.held = node;
    const stop = node.closest(PANE_CONTROLS);
    if (stop) this.at = stop;
    this.settle();
  }

  /** The one stop of the pane, after controls came or went. */
  settle() {
    const stops = this.stops;
    const gone = this.held !== null && !this.held.isConnected;
    if (!stops.includes(this.at)) {
      const drawnAnew = this.at && stops.find((stop) => stop.textContent === this.at.textContent && stop.ariaLabel === this.at.ariaLabel);
      this.at = drawnAnew || (stops.includes(this.home) ? this.home : stops[0] || null);
    }
    for (const stop of stops) {
      const value = stop === this.at ? 0 : -1;
      if (stop.tabIndex !== value) stop.tabIndex = value;
    }
    if (!gone) return;
    this.held = null;
    if (this.at !== null) this.at.focus({ preventScroll: true });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey) return;
    const along = this.keyed && event.target.matches("button") && !event.altKey;
    const step = event.altKey ? { ArrowUp: -1, ArrowDown: 1 }[event.key] : along && { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const stops = this.stops;
    const next = stops[stops.indexOf(event.target.closest(PANE_CONTROLS)) + step];
    if (next) next.focus();
    event.preventDefault();
    event.stopPropagation();
  }
}

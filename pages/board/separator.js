// The edge between two panes: it is dragged, or moved by the arrow keys, and a press without dragging moves it to the
// next of three places (WCAG 2.2, 2.5.7: whatever is dragged can be done by single presses).

const EDGE_STEP = 2; // per cent of the box, for an arrow key; Shift makes it five times as much

class Separator {
  /** `plan` gives what holds now: `name` (the CSS variable), `box` (what it divides), `upright` (or lying), `low`,
   * `high` (per cent of the box). `before` is the pane on its near side. */
  constructor(label, before, kept, plan) {
    this.kept = kept;
    this.plan = plan;
    this.root = el("div", { class: "separator", role: "separator", tabindex: "0", "aria-label": label, "aria-controls": before.id,
      title: `${label}: drag, or use the arrow keys; a press moves it to the next of three places` });
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("pointerdown", (event) => this.press(event));
    this.root.addEventListener("focus", () => this.tell());
  }

  /** Take up what was kept, for the panes as they stand now. */
  arrange() {
    const { name, box, upright } = this.plan();
    this.root.setAttribute("aria-orientation", upright ? "vertical" : "horizontal");
    const value = this.kept.get(name, (each) => each > 0 && each < 100, null);
    if (value !== null) box.style.setProperty(`--${name}`, `${value}%`);
  }

  /** Where it stands, in per cent of the box. */
  get value() {
    const { box, upright } = this.plan();
    const [here, around] = [this.root.getBoundingClientRect(), box.getBoundingClientRect()];
    return upright ? (100 * (here.left + here.width / 2 - around.left)) / around.width
      : (100 * (here.top + here.height / 2 - around.top)) / around.height;
  }

  move(value) {
    const { name, box, low, high } = this.plan();
    const rounded = Math.round(10 * Math.max(low, Math.min(high, value))) / 10;
    box.style.setProperty(`--${name}`, `${rounded}%`);
    this.kept.set(name, rounded);
    this.tell();
  }

  tell() {
    const { low, high } = this.plan();
    for (const [name, each] of [["valuemin", low], ["valuemax", high], ["valuenow", this.value]]) {
      this.root.setAttribute(`aria-${name}`, String(Math.round(each)));
    }
  }

  /** The next of three places, from the near side to the far one. */
  next() {
    const { low, high } = this.plan();
    const places = [0.2, 0.5, 0.8].map((share) => low + share * (high - low));
    this.move(places.find((place) => place > this.value + 1) ?? places[0]);
  }

  key(event) {
    const { low, high, upright } = this.plan();
    const by = event.shiftKey ? 5 * EDGE_STEP : EDGE_STEP;
    const moves = {
      [upright ? "ArrowLeft" : "ArrowUp"]: () => this.move(this.value - by),
      [upright ? "ArrowRight" : "ArrowDown"]: () => this.move(this.value + by),
      Home: () => this.move(low),
      End: () => this.move(high),
      Enter: () => this.next(),
    };
    const act = moves[event.key];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation(); // the arrows go through the line elsewhere
  }

  press(event) {
    if (event.button !== 0) return;
    const { box, upright } = this.plan();
    const around = box.getBoundingClientRect();
    const place = (at) => (upright ? (100 * (at.clientX - around.left)) / around.width : (100 * (at.clientY - around.top)) / around.height);
    const off = this.value - place(event);
    let dragged = false;
    const drag = (at) => {
      dragged = dragged || Math.abs(upright ? at.clientX - event.clientX : at.clientY - event.clientY) > 2;
      if (dragged) this.move(place(at) + off);
    };
    const end = (at) => {
      this.root.removeEventListener("pointermove", drag);
      this.root.classList.remove("dragged");
      if (at.type === "pointerup" && !dragged) this.next();
    };
    this.root.setPointerCapture(event.pointerId);
    this.root.classList.add("dragged");
    this.root.addEventListener("pointermove", drag);
    for (const name of ["pointerup", "pointercancel"]) this.root.addEventListener(name, end, { once: true });
  }
}

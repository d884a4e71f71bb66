// The order of the rows. It is frozen while results stream in: nothing jumps while the player reads, and
// "Update order" sorts anew by what is known then.

class Order {
  constructor(pane) {
    this.pane = pane;
    this.kind = "gain";
    this.list = [];
    this.settled = false; // is all that was known of this position on arrival in the order?
    this.select = el("select", { class: "field", "aria-label": "Order of the moves", onchange: () => this.choose(this.select.value) },
      el("option", { value: "gain" }, "Fastest first"), el("option", { value: "listed" }, "By kind"),
      el("option", { value: "place" }, "By place"));
    this.button = el("button", { class: "small", type: "button", title: "Sort the rows again by what has been measured",
      onclick: () => { this.update(); pane.list.scrollTop = 0; } }, "Update order");
  }

  choose(kind) {
    this.kind = kind;
    this.update();
    this.pane.draw();
    this.pane.list.scrollTop = 0;
  }

  /** The moves' texts as they would stand now. */
  sorted() {
    const { pane } = this;
    const order = [...pane.moves.keys()];
    if (this.kind === "gain") {
      const times = new Map(order.map((text) => [text, pane.cost(text) ?? Infinity]));
      order.sort((a, b) => (times.get(a) === times.get(b) ? 0 : times.get(a) - times.get(b)));
    } else if (this.kind === "place") {
      const key = (text) => { const m = pane.moves.get(text); return `${m.place} ${m.name} ${m.params}`; };
      order.sort((a, b) => key(a).localeCompare(key(b), "en", { numeric: true }));
    }
    return order;
  }

  update() {
    this.list = this.sorted();
    this.button.classList.remove("lit");
    this.pane.arrange();
  }

  /** Is somebody reading the rows? Then they stay where they are. */
  inUse() {
    const { list, chosen } = this.pane;
    return chosen !== null || list.scrollTop > 0 || list.matches(":hover") || list.getRootNode().activeElement === list;
  }

  /** New results: sort once by what is known on arrival, and once more when all is, if nobody reads. */
  settle() {
    const feed = this.pane.board.feed;
    if (this.kind !== "gain" || !feed || !feed.explored) return;
    const streaming = ["measuring", "waiting", "locked"].includes(feed.queue.state);
    if (!this.settled || (!streaming && this.button.classList.contains("lit") && !this.inUse())) {
      this.update();
      this.pane.keepInSight();
    }
    this.settled = true;
    const order = this.sorted();
    this.button.classList.toggle("lit", order.some((text, i) => text !== this.list[i]));
  }
}

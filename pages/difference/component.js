// The component of Compare: two programs with their times, and what differs in their texts.

class Pair {
  constructor(root) {
    this.layout = new LayoutSwitch(() => this.draw());
    this.versus = new Versus(["From", "to"], this.layout.root);
    this.difference = new Difference("Programs");
    this.frame = el("div", { class: "pair-of-texts" }, this.versus.root, this.difference.root);
    root.append(this.frame);
  }

  draw(data = this.data) {
    this.data = data;
    const { names, times, speed, kind, texts } = data;
    this.versus.tell(names, times, speed);
    this.difference.draw(texts[0], texts[1], { kind, layout: this.layout.value, names });
  }
}

export default function mount(component) {
  const root = component.parentElement;
  if (!root.dojoPair) root.dojoPair = new Pair(root);
  root.dojoPair.draw(component.data[0]);
}

// The text of a lesson from its data: spans and blocks become elements, a word of the glossary a button.
// Nothing is markup: words go in through textContent, drawings are rebuilt shape by shape.

class Prose {
  constructor(explain) {
    this.explain = explain; // shows what a word means
  }

  spans(spans) {
    return spans.map(([kind, words, target]) => {
      if (kind === "code") return el("code", {}, words);
      if (kind === "strong") return el("strong", {}, words);
      if (kind === "em") return el("em", {}, words);
      if (kind === "link") return el("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, words);
      if (kind === "term") {
        return el("button", { class: "term", type: "button", title: "What is that?", onclick: () => this.explain(target) }, words);
      }
      return words;
    });
  }

  paragraph(spans, props = {}) {
    return el("p", props, ...this.spans(spans));
  }

  blocks(blocks) {
    return blocks.map((block) => {
      if (block.kind === "list") return el("ul", {}, ...block.items.map((item) => el("li", {}, ...this.spans(item))));
      if (block.kind === "code") return el("pre", { class: "mono shown" }, block.text);
      if (block.kind === "tree") return el("div", { class: "tree", role: "img", "aria-label": "The program as boxes in boxes" }, ...this.tree(block.nodes));
      if (block.kind === "picture") return el("figure", { role: "img", "aria-label": block.alt }, this.drawing(block.drawing));
      return this.paragraph(block.spans);
    });
  }

  tree(nodes) {
    return nodes.map((node) => typeof node === "string" ? el("div", { class: "leaf mono" }, node)
      : el("div", { class: "box" }, el("span", { class: "size mono" }, node[0]), el("div", { class: "inside" }, ...this.tree(node[1]))));
  }

  drawing([name, attributes, words, children]) {
    const node = svg(name, attributes, words || null);
    for (const child of children) node.append(this.drawing(child));
    return node;
  }
}

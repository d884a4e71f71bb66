// A panel beside the board: it is told by Streamlit, or by the board's way to the server, and sends its events.

class BesidePanel {
  /** `name`: what its events are kept under while Streamlit draws the page anew. */
  constructor(name) {
    this.events = new Events(name);
    this.drawn = null;
    this.told = 0;
    this.heard = (event) => this.take(event.detail); // by the board's way to the server
  }

  /** `own`: is a key's press the panel's own business? Streamlit listens for C and R at the document, the board for its keys. */
  stand(parent, root, own) {
    this.root = root;
    root.addEventListener("keydown", (event) => { if (own(event) || /^[cr]$/i.test(event.key)) event.stopPropagation(); });
    parent.append(root);
    this.drawing = new Drawing(root);
    window.addEventListener("dojo:beside", this.heard);
  }

  close() {
    window.removeEventListener("dojo:beside", this.heard);
    for (const part of [this.drawing, this.events]) part.close();
    this.root.remove();
  }

  /** Streamlit calls this at every run of the page, also where nothing has changed. */
  update(component) {
    this.events.component = component;
    this.take(component.data);
  }

  /** What the server told at some time; an answer that is overtaken by a later one says nothing. */
  take({ acknowledged, told, ...data }) {
    if (told < this.told) return;
    this.told = told;
    this.events.acknowledge(acknowledged);
    this.drawing.next(() => this.draw(data));
  }

  /** Is it other than what was drawn last? */
  changed(data) {
    const words = JSON.stringify(data);
    const other = words !== this.drawn;
    this.drawn = words;
    return other;
  }

  tell(kind, fields = {}) {
    this.events.add({ kind, ...fields });
  }
}

// The page Class: one of its three views, and what was said last.

class ClassPage {
  constructor(parent) {
    this.views = { start: new StartView(this), teacher: new TeacherView(this), student: new StudentView(this) };
    this.said = el("p", { class: "said", role: "status" });
    this.root = el("div", { class: "classroom" }, this.said, ...Object.values(this.views).map((view) => view.root));
    // Streamlit listens for C and R at the document.
    this.root.addEventListener("keydown", (event) => { if (/^[cr]$/i.test(event.key)) event.stopPropagation(); });
    parent.append(this.root);
    this.drawing = new Drawing(this.root);
  }

  update(component) {
    this.component = component;
    this.drawing.next(() => this.draw(component.data));
  }

  draw(data) {
    for (const [name, view] of Object.entries(this.views)) show(view.root, name === data.view);
    this.views[data.view].update(data);
    // A look that the page takes by itself says nothing: what a press came to stays until the next one.
    const words = data.fault || data.said;
    if (words || this.pressed) {
      put(this.said, data.fault ? `✕ ${data.fault}` : data.said);
      this.said.classList.toggle("fault", Boolean(data.fault));
      this.pressed = false;
    }
    show(this.said, Boolean(this.said.textContent));
  }

  act(kind, fields = {}) {
    this.pressed = true;
    this.component.setTriggerValue("action", { n: `${Date.now()}-${Math.random()}`, kind, ...fields });
  }

  back() {
    return el("button", { type: "button", class: "ghost", onclick: () => this.act("go", { code: "", at: "" }) }, "‹ All classes");
  }

  close() {
    this.drawing.close();
    this.root.remove();
  }
}

export default mounting(ClassPage);

// A question at a position: as readers see it, and the form that it is written with.

const KINDS = [
  ["words", "A question in words", "Write the answers, and mark the right one."],
  ["move", "What would you play?", "The answers are moves: of those that you mark as right, each must be legal here."],
  ["refused", "Why is this move refused?", "Choose the move. What the Dojo says of it is told with the answer."],
];

class Asking {
  constructor(panel, at) {
    this.panel = panel;
    this.at = at; // gives the position that is asked at
    this.form = null;
    this.shown = new Part();
    this.root = el("section", { class: "asking", "aria-label": "Question" }, this.shown.node);
    this.legal = el("datalist", { id: "legal-moves" });
    this.blocked = el("datalist", { id: "blocked-moves" });
    this.root.append(this.legal, this.blocked);
  }

  update(here) {
    const key = `${here.chapter}/${here.moves}`;
    if (this.form && this.form.key !== key) this.close();
    this.shown.draw([Boolean(this.form), here.question, key], () => this.form ? el("div") : this.draw(here));
    for (const [list, moves] of [[this.legal, here.legal.map((move) => [move, ""])], [this.blocked, here.blocked || []]]) {
      if (list.children.length !== moves.length) list.replaceChildren(...moves.map(([move, why]) => el("option", { value: move }, why)));
    }
    if (this.form) {
      put(this.form.waits, here.blocked === null && this.form.kind.value === "refused" ? "The refused moves are being looked for…" : "");
      this.reasons = new Map(here.blocked || []);
      this.explain();
    }
  }

  draw(here) {
    const { question } = here;
    if (!question) return el("div", {}, el("button", { class: "small", type: "button", onclick: () => this.open(here) }, "Ask a question here"));
    return el("div", { class: "question" }, this.panel.prose.paragraph(question.words, { class: "asked" }),
      question.move ? el("p", {}, el("code", {}, question.move)) : "",
      el("ul", {}, ...question.answers.map((answer) => el("li", {}, `${answer.right ? "✓" : "✗"} ${answer.text}`))),
      question.refusal ? el("p", { class: "quiet" }, `Told with the answer: ${question.refusal}`) : "",
      el("div", { class: "row" }, el("button", { class: "small", type: "button", onclick: () => this.open(here) }, "Change the question"),
        el("button", { class: "small ghost", type: "button", onclick: () => this.panel.tell("question", { ...this.at(), remove: true }) }, "Take it out")));
  }

  open(here) {
    const asked = here.asked || { kind: "move", move: "", words: "What would you play?", answers: [] };
    const kind = el("select", { class: "field", "aria-label": "Kind of question" }, ...KINDS.map(([name, words]) => el("option", { value: name }, words)));
    kind.value = asked.kind || "words";
    const words = el("input", { class: "field", type: "text", "aria-label": "Question", value: asked.words });
    const move = el("input", { class: "field mono", list: "blocked-moves", "aria-label": "The refused move", placeholder: "vectorize y@0", value: asked.move });
    const about = el("p", { class: "quiet" }), reason = el("p", { class: "quiet" }), waits = el("p", { class: "quiet", role: "status" });
    const fault = el("p", { class: "told refused", role: "alert", hidden: true });
    const answers = el("div", { class: "answers" });
    this.form = { key: `${here.chapter}/${here.moves}`, kind, words, move, answers, waits, reason, fault };
    const arrange = () => {
      put(about, KINDS.find(([name]) => name === kind.value)[2]);
      show(move, kind.value === "refused");
      for (const field of answers.querySelectorAll("[data-answer]")) {
        if (kind.value === "move") field.setAttribute("list", "legal-moves");
        else field.removeAttribute("list");
      }
    };
    kind.addEventListener("change", () => {
      if (kind.value === "refused" && /^What would you play/.test(words.value)) words.value = "Why is this move refused?";
      arrange();
    });
    move.addEventListener("input", () => this.explain());
    const add = (answer = { text: "", right: false, why: "" }) => {
      const number = answers.children.length + 1;
      answers.append(el("div", { class: "answer-row" }, el("label", { class: "right" }, el("input", { type: "checkbox", "data-right": "", checked: answer.right }), "right"),
        el("input", { class: "field mono", "data-answer": "", "aria-label": `Answer ${number}`, placeholder: `Answer ${number}`, value: answer.text }),
        el("input", { class: "field", "data-why": "", "aria-label": `Why, of answer ${number}`, placeholder: "Why", value: answer.why })));
      arrange();
    };
    (asked.answers.length ? asked.answers : [{ text: "", right: true, why: "" }, undefined]).forEach((answer) => add(answer));
    this.box = el("form", { class: "question", onsubmit: (event) => { event.preventDefault(); this.save(); } },
      kind, about, words, move, waits, reason, answers, fault,
      el("div", { class: "row" }, el("button", { class: "small", type: "button", onclick: () => add() }, "Another answer"), el("span", { class: "spring" }),
        el("button", { class: "small", type: "button", onclick: () => { this.panel.tell("ask", { on: false }); this.close(); } }, "Cancel"),
        el("button", { class: "small primary", type: "submit" }, "Save the question")));
    this.root.append(this.box);
    this.shown.draw(["form"], () => el("div"));
    arrange();
    this.panel.tell("ask", { on: true });
    words.focus();
  }

  /** Why the move that is named is refused, where that is known. */
  explain() {
    put(this.form.reason, (this.reasons && this.reasons.get(this.form.move.value.trim())) || "");
  }

  save() {
    const { kind, words, move, answers, fault } = this.form;
    show(fault, false);
    const all = (name, take) => [...answers.querySelectorAll(`[${name}]`)].map(take);
    this.panel.tell("question", { ...this.at(), ask: kind.value, words: words.value, move: move.value,
      texts: all("data-answer", (field) => field.value), rights: all("data-right", (field) => field.checked), whys: all("data-why", (field) => field.value) });
    this.saving = true;
  }

  /** The server has heard of it: what is wrong with it stays in the form, to be corrected, and is told there. */
  heard(fault) {
    if (!this.saving) return;
    this.saving = false;
    if (!fault) return void this.close();
    put(this.form.fault, fault);
    show(this.form.fault, true);
    this.form.fault.scrollIntoView({ block: "nearest" });
  }

  /** Does the form tell of this fault? */
  tells(fault) {
    return this.form !== null && !this.form.fault.hidden && this.form.fault.textContent === fault;
  }

  close() {
    this.form = null;
    this.saving = false;
    this.box.remove();
    this.shown.shown = null;
  }
}

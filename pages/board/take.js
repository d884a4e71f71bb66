// Take away: one dialogue with all that a position can become elsewhere. What the server makes comes as soon as it
// opens, so that a press copies or saves at once: browsers take into the clipboard only what is at hand.

const PAPER = { width: 960, height: 420 }; // of the chart's picture, in pixels; as PNG twice as many

class TakeAway {
  constructor(board) {
    this.board = board;
    this.got = null; // what has come,
    this.number = null; // and which answer it is
    this.button = el("button", { class: "ghost take-away", type: "button", "aria-haspopup": "dialog",
      title: "Its C, a library, a PyTorch operator, a link, the line as text, a picture of the chart", onclick: () => this.open() }, "Take away");
    this.list = el("div", { class: "scroll take-list", tabindex: "0" });
    this.heading = el("h2", {});
    this.said = el("span", { class: "quiet", role: "status" });
    board.header.buttons.keys.before(this.button);
  }

  open() {
    this.got = this.number = null;
    put(this.said, "");
    this.board.send("take_away");
    this.draw();
    const foot = this.board.dialogs.foot();
    foot.prepend(this.said, el("span", { class: "spring" }));
    this.board.dialogs.open("take", this.heading, this.list, foot);
  }

  /** What was asked for has come, perhaps not for the first time. */
  arrived(taken) {
    if (!taken || taken.n === this.number || taken.client !== this.board.client) return;
    this.number = taken.n;
    this.got = taken;
    this.board.send("received");
    this.draw();
  }

  draw() {
    const { got } = this;
    put(this.heading, got ? `Take away ${got.title}, after ${plural(got.moves, "move")}` : "Take away");
    if (got === null) return this.list.replaceChildren(el("p", { class: "empty" }, "Writing it…"));
    const { code, library, link, line, game, study } = got;
    const address = `${window.location.origin}${window.location.pathname.replace(/[^/]*$/, "")}?g=${link.text}`;
    const moves = plural(got.moves, "move");
    const archive = library.error ? null : () => blobOf(library.zip);
    this.list.replaceChildren(
      this.part(`${code.called} of this position`, code.error || "One file with all that it needs, its program, its moves, its time and the machine.",
        !code.error && [["Copy", () => this.copy(code.text)], ["Download", () => this.save(code.name, new Blob([code.text]))]]),
      this.part("Library", library.error || "C with a header and CMake, a Python package for NumPy and PyTorch: pip install takes the archive.",
        archive && [["Download", () => this.save(library.name, archive())]]),
      this.part("PyTorch operator", library.error || "It is in the library, and stands inside torch.compile: this is how it is called.",
        archive && [["Copy the call", () => this.copy(library.use)], ["Download", () => this.save(library.name, archive())]]),
      this.part("Link", link.whole ? `Opens this very position, its ${moves} checked again; it holds no times.`
        : "The line is too long for a link: this one names the saved game, and works in this library only.",
      [["Copy", () => this.copy(address)]], el("a", { href: address, target: "_blank", rel: "noopener" }, "Open it")),
      this.part("The line as text", `The ${moves} to this position; pasted on the start screen they can be played again.`, [["Copy", () => this.copy(line.text)]]),
      this.part("The whole game", "With its variations, as a text that a person can read and mail, and paste on the start screen.",
        [["Copy", () => this.copy(game.text)], ["Download", () => this.save(game.name, new Blob([game.text]))]]),
      this.part("A study", "The moves and variations as a text to put your words, notes and questions into: a page that opens anywhere is built of it.",
        [["Copy", () => this.copy(study.text)], ["Download", () => this.save(study.name, new Blob([study.text]))]],
        el("a", { href: `${window.location.pathname.replace(/[^/]*$/, "")}study?g=${this.board.data.game.id}&begin=1` }, "Write it here")),
      this.part("Picture of the chart", this.charted ? "Speed-up over moves, in the colours that you see." : "There is no chart yet: measure the game first.",
        this.charted && [["PNG", () => this.picture("png")], ["SVG", () => this.picture("svg")]]));
  }

  /** `acts`: [words, what is done], or nothing where it cannot be made. */
  part(name, about, acts, ...more) {
    return el("section", { class: "take-part", "aria-label": name }, el("h3", {}, name), el("p", {}, about, ...more.flatMap((node) => [" ", node])),
      el("div", { class: "acts" }, (acts || []).map(([words, act]) =>
        el("button", { class: "small", type: "button", "aria-label": `${words}: ${name}`, onclick: act }, words))));
  }

  async copy(text) {
    put(this.said, "");
    put(this.said, (await copied(text, this.board.dialogs.box)) ? "Copied." : "This browser does not let a page copy: download it.");
  }

  save(name, blob) {
    const link = el("a", { href: URL.createObjectURL(blob), download: name });
    this.board.frame.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    put(this.said, `Saved ${name}.`);
  }

  get charted() {
    const { feed, data } = this.board;
    return Boolean(feed && feed.start > 0 && data.history && data.history.line.some((id) => typeof feed.times[id] === "number"));
  }

  /** The chart at a size of its own, whatever room it has on the board. */
  async picture(format) {
    const name = this.got.game.name.replace(/\.\w+$/, `.${format}`);
    const chart = new Chart(this.board);
    const sheet = el("div", { class: "sheet", style: `width: ${PAPER.width}px; height: ${PAPER.height}px` }, chart.root);
    this.board.frame.append(sheet);
    chart.draw();
    const text = new XMLSerializer().serializeToString(onPaper(chart.canvas, `${this.got.title}: speed-up over moves ${chart.basis.textContent}`));
    sheet.remove();
    const drawn = new Blob([text], { type: "image/svg+xml" });
    this.save(name, format === "svg" ? drawn : await rastered(text));
  }
}

const PAINTED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "text-anchor", "paint-order"];

/** A copy of a picture that needs no style sheet: with its colours, a ground and a title. */
function onPaper(picture, title) {
  const copy = picture.cloneNode(true);
  const [, , width, height] = picture.getAttribute("viewBox").split(" ").map(Number);
  const originals = picture.querySelectorAll("*"), copies = copy.querySelectorAll("*");
  originals.forEach((node, at) => {
    const style = getComputedStyle(node);
    for (const name of PAINTED) copies[at].setAttribute(name, style.getPropertyValue(name));
    copies[at].removeAttribute("class");
  });
  const style = getComputedStyle(picture.closest(".board"));
  for (const [name, value] of Object.entries({ xmlns: SVG, width, height: height + 30, viewBox: `0 -30 ${width} ${height + 30}` })) copy.setAttribute(name, value);
  copy.removeAttribute("class");
  copy.prepend(svg("rect", { x: 0, y: -30, width, height: height + 30, fill: style.backgroundColor }),
    svg("text", { x: 12, y: -9, fill: style.color, "font-family": style.fontFamily, "font-size": 15, "font-weight": 600 }, title));
  return copy;
}

/** An SVG's text as PNG, two pixels for each of its own. */
async function rastered(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = el("canvas", { width: 2 * image.width, height: 2 * image.height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** What base64 stands for, as an archive. */
function blobOf(base64) {
  return new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], { type: "application/zip" });
}

/** Put a text into the clipboard, within a press; where the page is not served securely, by way of a selection. */
async function copied(text, place) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* no clipboard here */ }
  const field = el("textarea", { class: "unseen" });
  field.value = text;
  place.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

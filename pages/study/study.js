// A study's page: its data unpacked, the words on one side, the board on the other.

/** The data of dojo_core/study/sheets.py's `packed`: each different string once. */
function unpacked([strings, data]) {
  const taken = (value) => {
    if (typeof value === "number") return strings[value];
    if (value === null || typeof value === "boolean") return value;
    if (!Array.isArray(value)) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, taken(each)]));
    return value[0] === "" ? value.slice(1).map(taken) : value[0];
  };
  return taken(data);
}

async function readStudy() {
  const packed = Uint8Array.from(atob(document.getElementById("study-data").textContent.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return unpacked(await new Response(stream).json());
}

/** Every stop as words and program, one under the other: what a printer gets. */
function printed(session, prose) {
  return session.data.chapters.flatMap((chapter) => [el("h2", {}, chapter.title), ...chapter.stops.flatMap((stop) => {
    const { history, sheets, game } = session.data.games[chapter.game];
    const node = history.find((each) => each.id === stop.at);
    const sheet = sheets[stop.at];
    const times = session.data.machines.map((each) => [each, each.seconds[sheet.position.hash], each.seconds[game.start]]).filter(([, here]) => here);
    return [el("section", { class: "stop" },
      ...(stop.title ? [el("h3", {}, stop.title)] : []),
      el("p", { class: "quiet" }, node.move === null ? "The start" : `Move ${node.ply}: ${node.move}`,
        ...times.map(([each, here, start]) => `; ${duration(here[0])}${start ? `, ${ratio(start[0] / here[0])}` : ""} (${each.machine}, ${each.date})`)),
      ...prose.blocks(stop.blocks),
      ...(stop.question ? [prose.paragraph(stop.question.words, { class: "asked" }), el("ul", {}, ...stop.question.answers.map((answer) => el("li", {}, answer.text)))] : []),
      el("pre", {}, [...sheet.program.head, ...sheet.program.lines].map((line) => line.text).join("\n")))];
  })]);
}

async function openStudy() {
  const data = await readStudy();
  const page = document.getElementById("study");
  const host = el("div", { class: "host" });
  const root = host.attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = document.getElementById("board-style").content.textContent;
  const parent = el("div", { class: "inside" });
  root.append(style, parent);
  let words = null;
  const session = new StudySession(data, () => words.moved());
  words = new StudyWords(session);
  session.fork = () => words.takeAway();
  const print = el("div", { class: "print", "aria-hidden": "true" });
  window.addEventListener("beforeprint", () => print.replaceChildren(el("h1", {}, data.study.title), el("p", {}, ...words.prose.spans(data.study.about)), ...printed(session, words.prose)));
  window.addEventListener("afterprint", () => print.replaceChildren());
  page.classList.toggle("slide", window.location.hash === "#slide");
  page.replaceChildren(words.root, host, print);
  session.mount(parent, new Board(parent));
  words.moved();
}

openStudy().catch((fault) => {
  console.error(fault);
  document.getElementById("study").replaceChildren(el("p", { class: "failure" }, "This browser cannot open the study: it takes one from 2023 or later (Chrome 103, Firefox 113, Safari 16.4)."));
});

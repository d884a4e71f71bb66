// A study's page: the words on one side, the board on the other.

/** Once what was drawn is on the screen. */
function shownOnScreen() {
  return new Promise((done) => { requestAnimationFrame(() => setTimeout(done, 0)); });
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
  window.addEventListener("beforeprint", () => print.replaceChildren(...printed(data, words.prose)));
  window.addEventListener("afterprint", () => print.replaceChildren());
  const present = () => page.classList.toggle("slide", window.location.hash === "#slide");
  window.addEventListener("hashchange", present);
  present();
  page.replaceChildren(words.root, host, print);
  words.moved(); // the words can be read while the board is drawn
  await shownOnScreen();
  session.mount(parent, new Board(parent));
  await shownOnScreen();
  await data.readRest();
  session.completed();
  page.dataset.whole = ""; // for who waits for all of it, as before it is printed
}

openStudy().catch((fault) => {
  console.error(fault);
  document.getElementById("study").replaceChildren(el("p", { class: "failure" }, "This browser cannot open the study: it takes one from 2023 or later (Chrome 103, Firefox 113, Safari 16.4)."));
});

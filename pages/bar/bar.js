// The bar. It sends `go` with a page's name, again until that page is there and stays, and `share`; where a page is opened in another tab, the links'
// own addresses name the game. Names go in through textContent alone.

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") node.textContent = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

const AGAIN = 2500; // ms until a page that has not come is asked for again
const TRIES = 8;
const RELOAD = 60000; // ms between two reloads that are to make a session know its browser
const STAYS = 1500; // ms: until then a message that was under way when the page was drawn may call the one before back

function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

class Bar {
  constructor(parent) {
    this.nav = element("nav", { "aria-label": "Pages" });
    this.game = element("span", { class: "fact game" });
    this.machine = element("span", { class: "fact machine" });
    this.queue = element("span", { class: "fact queue", role: "status" });
    this.share = element("button", { type: "button", text: "Share", onclick: () => this.ask() });
    this.projector = new Projector();
    this.version = element("span", { class: "version" });
    this.root = element("div", { class: "dojo-bar" }, element("span", { class: "brand", text: "The Dojo" }, this.version),
      this.nav, element("span", { class: "spring" }), this.game, this.machine, this.queue, this.projector.button, this.share);
    parent.append(this.root);
    this.links = new Map();
    this.wanted = null; // the page that was asked for, until it has come and stayed
    this.stage = ""; // of the way there: asked, here
    window.addEventListener("popstate", () => this.seek(null));
  }

  update(component) {
    this.component = component;
    const data = component.data;
    // The server has left for a page (shell.go). Told once: the window outlives the bar, and a reload begins a new session.
    if (data.going && data.going.n !== window.dojoGone) {
      window.dojoGone = data.going.n;
      this.seek(data.going.to);
    }
    this.watch();
    const names = data.pages.map((page) => page.name).join();
    if (names !== this.names) {
      this.names = names;
      this.links = new Map(data.pages.map((page) => [page.name, this.link(page)]));
      this.nav.replaceChildren(...this.links.values());
    }
    for (const page of data.pages) {
      const link = this.links.get(page.name);
      link.setAttribute("href", this.address(page));
      if (page.name === data.current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (data.current !== this.current) {
      this.current = data.current;
      const link = this.links.get(data.current); // in a small window the pages scroll
      this.nav.scrollLeft = link.offsetLeft - this.nav.offsetLeft - (this.nav.clientWidth - link.offsetWidth) / 2;
    }
    say(this.version, data.version);
    say(this.game, data.game);
    this.game.title = data.game;
    say(this.machine, data.machine);
    this.machine.title = [data.machine, data.advice].filter(Boolean).join("\n");
    say(this.queue, data.queue);
    this.share.disabled = !data.game_id;
    this.share.title = data.game_id ? "A link and a file of this game" : "Open a game first: then there is something to share";
    this.keepAddress(data);
    this.checkBrowser(data.browser);
    if (data.sharing && data.sharing.n !== this.shared) {
      this.shared = data.sharing.n;
      this.show(data.sharing);
    }
  }

  /** The dialog: a link, a file, and what each of them holds. */
  show(sharing) {
    if (this.dialog) this.dialog.remove();
    const link = (game, label) => {
      const address = `${window.location.origin}${this.base()}?g=${game}`;
      const field = element("input", { type: "text", readonly: "", value: address, "aria-label": label, onfocus: () => field.select() });
      const copy = element("button", { type: "button", text: "Copy link", onclick: () => {
        field.select();
        const done = () => say(copy, "Copied");
        if (navigator.clipboard) navigator.clipboard.writeText(address).then(done, () => document.execCommand("copy") && done());
        else if (document.execCommand("copy")) done();
      } });
      return { field, row: element("div", { class: "row" }, field, copy) };
    };
    const { field, row } = link(sharing.link, "Link");
    const moves = `${sharing.moves} move${sharing.moves === 1 ? "" : "s"}`;
    const about = sharing.whole
      ? `The link holds the ${moves} of the line to this position, and no times: whoever opens it has each move checked again.`
      : "This line is too long for a link: the link names the saved game, so it works in this library only, where others watch it and cannot change it. Send the file to others.";
    const save = element("a", { download: sharing.name, href: URL.createObjectURL(new Blob([sharing.file], { type: "text/plain" })), hidden: "" });
    this.dialog = element("dialog", { class: "dojo-share", "aria-label": "Share" },
      element("h2", { text: `Share ${sharing.title}` }),
      row,
      element("p", { text: about }),
      ...(sharing.whole ? [link(sharing.id, "For watching").row,
        element("p", { text: "Whoever opens this link here watches the game as it goes on, and cannot change it." })] : []),
      element("p", { text: "The .dojo file holds the whole game with its variations, as text; Library → Import reads it." }),
      save,
      element("div", { class: "foot" },
        element("button", { type: "button", text: "Download .dojo", onclick: () => save.click() }),
        element("button", { type: "button", text: "Close", onclick: () => this.dialog.close() })));
    this.dialog.addEventListener("close", () => { URL.revokeObjectURL(save.href); this.share.focus(); });
    this.dialog.style.colorScheme = getComputedStyle(this.root).colorScheme; // outside of the page, which has its theme
    document.body.append(this.dialog);
    this.dialog.showModal();
    field.select();
  }

  link(page) {
    const words = element("span", { "data-text": page.title, text: page.title });
    const go = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return; // another tab
      event.preventDefault();
      this.seek(page.name);
      this.watch();
    };
    return element("a", { title: page.about, onclick: go }, words);
  }

  seek(name) {
    clearTimeout(this.timer);
    this.wanted = name;
    this.stage = "";
  }

  /** Ask for the page that is wanted where it is not shown; want it no more once it has stayed. */
  watch() {
    if (this.wanted === null) return;
    const stage = this.component.data.current === this.wanted ? "here" : "asked";
    if (stage === this.stage) return;
    this.stage = stage;
    clearTimeout(this.timer);
    if (stage === "asked") this.go(TRIES);
    else this.timer = setTimeout(() => this.seek(null), STAYS);
  }

  /** A message is lost where the connection was: this one goes out until the page is there. */
  go(tries) {
    clearTimeout(this.timer);
    if (this.wanted === null || !tries || !this.root.isConnected) return;
    this.component.setTriggerValue("go", this.wanted);
    this.timer = setTimeout(() => this.go(tries - 1), AGAIN);
  }

  /** Relative to where the app is served; which game is played goes along. */
  address(page) {
    const { game_id: game } = this.component.data;
    return `${this.base()}${page.path}${game ? `?g=${game}` : ""}`;
  }

  /**
   * Does the session know this browser by the secret that it keeps? Not where it began without a page (a server that
   * was started anew), or where two first visits crossed: a reload then makes it so. Once, as cookies may be off.
   */
  checkBrowser(known) {
    if (known === null || !navigator.cookieEnabled) return;
    const mark = document.cookie.split("; ").find((each) => each.startsWith("dojo_browser_mark="));
    if (mark && mark.split("=")[1] === known) return;
    try {
      const tried = Number(window.sessionStorage.getItem("dojo-reloaded") || 0);
      if (Date.now() - tried < RELOAD) return;
      window.sessionStorage.setItem("dojo-reloaded", String(Date.now()));
    } catch {
      return;
    }
    window.location.reload();
  }

  base() {
    return window.location.pathname.replace(/[^/]*$/, "");
  }

  /** On all pages but Play, whose board keeps the address itself: a reload finds the player and the game again. */
  keepAddress(data) {
    const page = data.pages.find((each) => each.name === data.current);
    if (!page || !page.path || window.location.pathname !== this.base() + page.path) return;
    const wanted = new URLSearchParams(window.location.search);
    wanted.delete("p"); // of an earlier version
    if (data.game_id) wanted.set("g", data.game_id);
    else wanted.delete("g");
    const search = wanted.size ? `?${wanted}` : "";
    if (search !== window.location.search) window.history.replaceState(window.history.state, "", this.base() + page.path + search);
  }

  ask() {
    this.component.setTriggerValue("share", true);
  }
}

export default function mount(component) {
  const parent = component.parentElement;
  if (!parent.dojoBar) parent.dojoBar = new Bar(parent);
  parent.dojoBar.update({ ...component, data: component.data[0] });
}

// All saved games in one list: open, rename, delete (with Undo in the notice).

class GamesDialog {
  constructor(board) {
    this.board = board;
    this.renaming = null;
    this.list = el("div", { class: "scroll games", role: "list", tabindex: "0" });
  }

  open() {
    this.renaming = null;
    this.board.dialogs.open("games", el("h2", {}, "Saved games"), this.list, this.board.dialogs.foot());
    this.update();
  }

  update() {
    if (this.board.dialogs.shown !== "games") return;
    const { start } = this.board.data;
    if (!start) return this.board.dialogs.box.close();
    const games = start.games;
    const key = JSON.stringify([games, this.renaming]);
    if (key === this.drawn && this.list.children.length) return;
    this.drawn = key;
    const top = this.list.scrollTop;
    this.list.replaceChildren(...(games.length ? games.map((game) => this.row(game))
      : [el("p", { class: "empty" }, "There is no saved game with moves.")]));
    this.list.scrollTop = top;
    const field = this.list.querySelector("input");
    if (field && this.renaming !== null) { field.focus(); field.select(); }
  }

  row(game) {
    const send = (kind, fields = {}) => this.board.send(kind, { game: game.id, ...fields });
    const others = game.yours ? {} : { disabled: "", title: game.taken ? "A program plays this game: open it to take it over" : "This game is not yours: open it, and play on in a copy" };
    const erase = game.taken ? {} : others;
    const rename = (to) => { this.renaming = to; this.update(); };
    if (this.renaming === game.id) {
      const field = el("input", { class: "field", value: game.title, maxlength: "80", "aria-label": "Title" });
      const keep = () => { if (field.value.trim()) send("rename", { title: field.value }); rename(null); };
      field.addEventListener("keydown", (event) => {
        if (event.key === "Enter") keep();
        if (event.key === "Escape") { rename(null); event.preventDefault(); }
      });
      return el("div", { class: "game-row", role: "listitem" }, field,
        el("button", { class: "small primary", type: "button", onclick: keep }, "Rename"));
    }
    return el("div", { class: "game-row", role: "listitem", "data-game": game.id },
      el("button", { class: "game-open", type: "button", onclick: () => { this.board.dialogs.box.close(); send("open"); } },
        ...gameWords(game)),
      el("button", { class: "small", type: "button", "aria-label": `Rename ${game.title}`, onclick: () => rename(game.id), ...others }, "Rename"),
      el("button", { class: "small", type: "button", "aria-label": `Delete ${game.title}`, onclick: () => send("forget"), ...erase }, "Delete"));
  }
}

/** What tells two games of the same title apart. */
function gameWords(game) {
  const kernel = game.kernel && !game.title.includes(game.kernel) ? [game.kernel] : [];
  const best = game.best ? [`best ${ratio(game.best)}`] : [];
  const client = game.client ? [`played by ${game.client}`] : [];
  return [el("strong", {}, game.title),
    el("span", { class: "quiet" }, [...kernel, plural(game.moves, "move"), ...best, ...client, game.when].join(" · ")),
    el("code", { class: "quiet last", title: game.last }, `… ${game.last}`)];
}

// What a player chose of the board's look, kept in the browser. Where that keeps nothing, it holds for this page.

class KeptChoices {
  constructor(key) {
    this.key = key;
    this.values = {};
    try {
      const kept = JSON.parse(window.localStorage.getItem(key));
      if (kept !== null && typeof kept === "object") this.values = kept;
    } catch { /* no storage, or what lies there is not ours */ }
  }

  /** What was kept under a name, if `sound` says so of it: a browser's storage can be written by hand. */
  get(name, sound, otherwise) {
    return sound(this.values[name]) ? this.values[name] : otherwise;
  }

  set(name, value) {
    this.values[name] = value;
    try {
      window.localStorage.setItem(this.key, JSON.stringify(this.values));
    } catch { /* no storage, or it is full */ }
  }
}

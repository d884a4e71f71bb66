// What a study's page holds, unpacked: what is drawn first at once, the rest once that stands there, and of the rest each
// position when somebody goes there.

/** The data of a part of the page (dojo_core/study/page.py). */
async function partOf(name) {
  const node = document.getElementById(`study-${name}`);
  const letters = atob(node.textContent);
  node.remove();
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < letters.length; at += 1) bytes[at] = letters.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

/** Unpacks what dojo_core/study/sheets.py's `Packer` packed: each different string once over all parts. */
class Unpacker {
  constructor() {
    this.strings = [];
  }

  async part(name) {
    const [strings, data] = await partOf(name);
    for (const each of strings) this.strings.push(each);
    return data;
  }

  taken(value) {
    if (typeof value === "number") return this.strings[value];
    if (value === null || typeof value === "boolean") return value;
    if (!Array.isArray(value)) {
      const made = {};
      for (const key of Object.keys(value)) made[key] = this.taken(value[key]);
      return made;
    }
    if (value[0] !== "") return value[0];
    const made = new Array(value.length - 1);
    for (let at = 1; at < value.length; at += 1) made[at - 1] = this.taken(value[at]);
    return made;
  }

  /** An object whose values are unpacked when they are asked for. */
  lazily(values, known = {}) {
    return new Proxy(known, {
      get: (made, key) => {
        if (!Object.hasOwn(made, key) && Object.hasOwn(values, key)) made[key] = this.taken(values[key]);
        return made[key];
      },
    });
  }
}

/** The study as data, as far as it is drawn first; `complete`, a promise once the rest is asked for by `readRest`. */
async function readStudy() {
  const unpacker = new Unpacker();
  const data = unpacker.taken(await unpacker.part("first"));
  data.whole = false;
  data.readRest = async () => {
    const rest = await unpacker.part("rest");
    data.games.forEach((game, number) => {
      const { sheets, text } = rest.games[number + 1]; // the first of a packed list says that it is one
      game.sheets = unpacker.lazily(sheets, game.sheets);
      game.text = unpacker.taken(text);
    });
    data.machines.forEach((times, number) => {
      const { speeds, profiles } = rest.machines[number + 1];
      times.speeds = unpacker.taken(speeds);
      times.profiles = unpacker.lazily(profiles);
    });
    data.whole = true;
  };
  return data;
}

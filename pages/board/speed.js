// How fast a program is against another, as measure/speed.py says it: a verdict and an interval. Nothing is
// decided here. A sign stands beside every ratio, so that colour is never the only carrier.

const SIGNS = { faster: "▲", slower: "▼", equal: "≈", unsure: "?", undecided: "?" };

class Speed {
  constructor([verdict, value, low, high, rounds]) {
    Object.assign(this, { verdict, value, low, high, rounds });
  }

  /** Of a move's result (feed.py), null where there is none. */
  static of(result) {
    return Array.isArray(result) && result.length > 2 ? new Speed(result.slice(2)) : null;
  }

  get decided() { return this.verdict === "faster" || this.verdict === "slower" || this.verdict === "equal"; }

  /** The class of its colour. */
  get tone() { return this.decided ? this.verdict : "unsure"; }

  /** The fewest words: ▲ 1.23×, ≈ equal, 0.95–1.20×. */
  get brief() {
    if (this.verdict === "equal") return "≈ equal";
    return this.decided ? `${SIGNS[this.verdict]} ${ratio(this.value)}` : `? ${ratio(this.value)}`;
  }

  get words() {
    if (this.verdict === "equal") return "≈ about equal";
    return this.decided ? this.brief : this.verdict === "undecided" ? "? cannot be told now" : "? not sure yet";
  }

  /** ▲ 1.23×, between 1.18× and 1.27×, by 7 rounds in turns with the position on the board. */
  get sentence() {
    const open = this.high > 10 * this.low;
    const between = open ? "" : `between ${ratio(this.low)} and ${ratio(this.high)}, `;
    const from = this.rounds ? `${plural(this.rounds, "round")} in turns with the position on the board` : "two times of different moments";
    const endings = { unsure: " It is timed again.", undecided: " What else this machine does leaves it open: measure again when it is idle." };
    return `${this.words}, ${between}by ${from}.${endings[this.verdict] || ""}`;
  }
}

/** When a time was taken and what else the machine did; `about` has `taken` (seconds since 1970) and `machine`. */
function provenance(about) {
  return [moment(about.taken), about.machine].filter(Boolean).join(", ");
}

// Made once: each history entry and each dot of the chart tells a moment.
const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat([], { day: "numeric", month: "short" });

/** 14:05 of today, else the day too. */
function moment(seconds) {
  if (!seconds) return "";
  const date = new Date(seconds * 1000);
  const clock = CLOCK.format(date);
  return date.toDateString() === new Date().toDateString() ? clock
    : `${DAY.format(date)} ${clock}`;
}

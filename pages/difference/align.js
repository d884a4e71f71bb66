// Which lines of two texts belong together, and which words of two lines. Nothing here knows what the texts are:
// `keys` say which lines count as the same.

const MOST_CELLS = 4e6; // of a table of pairs: larger gaps between lines that occur once are all different
const MOST_PAIRED = 40000; // of a block of changed lines
const MOST_WORDS = 60000; // of two lines
const ALIKE = 50; // percent of the words that two lines share which are one line, changed

/** The pairs [i, j], in order, of n things with m things whose weights (whole numbers, 0: no pair) come to most. */
function heaviestPairs(n, m, weight) {
  const wide = m + 1;
  const best = new Uint32Array((n + 1) * wide);
  for (let i = n - 1; i >= 0; i -= 1) {
    for (let j = m - 1; j >= 0; j -= 1) {
      const at = i * wide + j, own = weight(i, j);
      best[at] = Math.max(best[at + wide], best[at + 1], own ? own + best[at + wide + 1] : 0);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < n && j < m;) {
    const at = i * wide + j, own = weight(i, j);
    if (own && best[at] === own + best[at + wide + 1]) pairs.push([i++, j++]);
    else if (best[at] === best[at + wide]) i += 1;
    else j += 1;
  }
  return pairs;
}

/** Places [i, j] of keys that occur once in either range, as many as keep their order (patience sorting). */
function anchors(before, from, to, after, start, end) {
  const once = (keys, first, last) => {
    const places = new Map();
    for (let at = first; at < last; at += 1) places.set(keys[at], places.has(keys[at]) ? -1 : at);
    return places;
  };
  const old = once(before, from, to), now = once(after, start, end);
  const piles = []; // of each the last card: its place, and the card that it lies on
  for (const [key, i] of old) {
    const j = now.get(key);
    if (i < 0 || j === undefined || j < 0) continue;
    let low = 0, high = piles.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (piles[middle].j < j) low = middle + 1;
      else high = middle;
    }
    piles[low] = { i, j, below: low ? piles[low - 1] : null };
  }
  const found = [];
  for (let card = piles[piles.length - 1] || null; card; card = card.below) found.push([card.i, card.j]);
  return found.reverse();
}

/** The pairs [i, j] of places, in order, at which two lists of keys are the same. */
function commonPlaces(before, after) {
  const found = [];
  const within = (from, to, start, end) => {
    while (from < to && start < end && before[from] === after[start]) found.push([from++, start++]);
    let same = 0;
    while (from < to - same && start < end - same && before[to - same - 1] === after[end - same - 1]) same += 1;
    const [last, stop] = [to - same, end - same];
    if (from < last && start < stop) {
      const fixed = anchors(before, from, last, after, start, stop);
      if (fixed.length) {
        let [i, j] = [from, start];
        for (const [a, b] of fixed) {
          within(i, a, j, b);
          found.push([a, b]);
          [i, j] = [a + 1, b + 1];
        }
        within(i, last, j, stop);
      } else if ((last - from) * (stop - start) <= MOST_CELLS) {
        const same = (i, j) => (before[from + i] === after[start + j] ? 1 : 0);
        for (const [i, j] of heaviestPairs(last - from, stop - start, same)) found.push([from + i, start + j]);
      }
    }
    for (let k = 0; k < same; k += 1) found.push([last + k, stop + k]);
  };
  within(0, before.length, 0, after.length);
  return found;
}

/** A function that gives texts numbers, those the same one whose `key` is. */
function numbering(key) {
  const numbers = new Map();
  return (text) => {
    const its = key(text);
    if (!numbers.has(its)) numbers.set(its, numbers.size);
    return numbers.get(its);
  };
}

function wordsOf(line) {
  return line.match(/\.?[A-Za-z_][\w$]*|\d[\w.]*|\s+|./g) || [];
}

/** How much two lines, as their names and numbers sorted, have in common, in percent; 0 where that is too little. */
function likeness(one, other) {
  let shared = 0;
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) { shared += 1; i += 1; j += 1; }
    else if (one[i] < other[j]) i += 1;
    else j += 1;
  }
  const percent = Math.round((200 * shared) / Math.max(1, one.length + other.length));
  return percent >= ALIKE ? percent : 0;
}

/**
 * Two texts as rows: [kind, i, j], kind "same", "changed", "removed" or "added"; i and j the numbers of the lines
 * before and after, null where there is none. Lines are the same whose `key` is.
 */
function alignedLines(before, after, key = (line) => line) {
  const numbered = numbering(key);
  const rows = [];
  let [i, j] = [0, 0];
  for (const [a, b] of [...commonPlaces(before.map(numbered), after.map(numbered)), [before.length, after.length]]) {
    rows.push(...changedLines(before, i, a, after, j, b));
    if (a < before.length) rows.push(["same", a, b]);
    [i, j] = [a + 1, b + 1];
  }
  return rows;
}

/** The rows of a block in which no line stayed: lines that are much alike are one, changed. */
function changedLines(before, from, to, after, start, end) {
  const [n, m] = [to - from, end - start];
  const words = (lines, first, last) => lines.slice(first, last).map((line) => (line.match(/\w+/g) || []).sort());
  let pairs = [];
  if (n && m && n * m <= MOST_PAIRED) {
    const old = words(before, from, to), now = words(after, start, end);
    pairs = heaviestPairs(n, m, (i, j) => likeness(old[i], now[j]));
  }
  const rows = [];
  let [i, j] = [0, 0];
  for (const [a, b] of [...pairs, [n, m]]) {
    while (i < a) rows.push(["removed", from + i++, null]);
    while (j < b) rows.push(["added", null, start + j++]);
    if (a < n && b < m) rows.push(["changed", from + i++, start + j++]);
  }
  return rows;
}

/** Two lines as pieces [text, differs], the words marked that only one of them has, by what `key` makes of them. */
function alignedWords(before, after, key = (word) => word) {
  const old = wordsOf(before), now = wordsOf(after);
  const numbered = numbering(key);
  const common = old.length * now.length > MOST_WORDS ? [] : commonPlaces(old.map(numbered), now.map(numbered));
  const pieces = (words, stayed) => {
    const made = [];
    words.forEach((word, at) => {
      const differs = !stayed.has(at);
      const last = made[made.length - 1];
      if (last && last[1] === differs) last[0] += word;
      else made.push([word, differs]);
    });
    return made;
  };
  return [pieces(old, new Set(common.map(([i]) => i))), pieces(now, new Set(common.map(([, j]) => j)))];
}

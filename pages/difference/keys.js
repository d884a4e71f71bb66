// What counts as the same line: of a program its text; of C all but the indentation, which a loop around it changes;
// of assembly the instruction, whatever its labels are called and wherever in the stack frame its operands lie.

/** The words that stand for an address: labels that one of the texts has, and the compiler's own. */
function withoutAddresses(...texts) {
  const labels = new Set(texts.flat().map((line) => (/^([.\w$]+):/.exec(line) || [])[1]).filter(Boolean));
  const named = (word) => (labels.has(word) || /^\.L/.test(word) ? "label" : word);
  return (line) => line.trim()
    .replace(/[.\w$]+/g, named)
    .replace(/-?\d*\[([er][sb]p)\]/g, "[$1]") // x86
    .replace(/\[(sp|x29), #?-?\d+\]/g, "[$1]") // Arm
    .replace(/-?\d+\((sp|s0)\)/g, "($1)"); // RISC-V
}

// By kind of text: `key` makes what is compared of a line, `shown` what is shown of it.
const TEXTS = {
  program: { key: () => (line) => line, shown: (line) => line },
  c: { key: () => (line) => line.trim(), shown: (line) => line },
  asm: { key: withoutAddresses, shown: (line) => line.replace(/^\s+/, "    ").replace(/(\S)\s{2,}/g, "$1 ") },
};

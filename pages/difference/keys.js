// What counts as the same line, and as the same word in it: of a program its text; of C all but the indentation, which
// a loop around it changes; of assembly the instruction, whatever its labels are called and wherever in the stack
// frame its operands lie.

/** Without the names of local labels, as compilers of all systems write them, and of places in the stack frame. */
function withoutAddresses(line) {
  return line.trim()
    .replace(/(?<![\w$])(?:[.$]L[\w$.]*|L(?:C|BB|tmp)?\d[\w$]*)/g, "label")
    .replace(/-?\d*\[([er][sb]p)\]/g, "[$1]") // x86
    .replace(/\[(sp|x29), #?-?\d+\]/g, "[$1]") // Arm
    .replace(/-?\d+\((sp|s0)\)/g, "($1)"); // RISC-V
}

// By kind of text: `key` makes what is compared of a line, `shown` what is shown of it.
const TEXTS = {
  program: { key: (line) => line, shown: (line) => line },
  c: { key: (line) => line.trim(), shown: (line) => line },
  asm: { key: withoutAddresses, shown: (line) => line.replace(/^\s+/, "  ").replace(/(\S)\s{2,}/g, "$1 ") },
};

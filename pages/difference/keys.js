// What counts as the same line: of a program its text; of C all but the indentation, which a loop around it changes;
// of assembly the instruction, whatever its labels are called and wherever its stack frame lies.

const SAME_BY = {
  program: () => (line) => line,
  c: () => (line) => line.trim(),
  asm: (...texts) => {
    const labels = new Set(texts.flat().map((line) => (/^([.\w$]+):/.exec(line) || [])[1]).filter(Boolean));
    const named = (word) => (labels.has(word) || /^\.L/.test(word) ? "label" : word);
    return (line) => line.trim().replace(/\s+/g, " ")
      .replace(/[.\w$]+/g, named)
      .replace(/-?\d*\((%[re][sb]p|sp|s0)(?=[,)])/g, "frame($1") // x86, RISC-V
      .replace(/\[(sp|x29)(, *#?-?\d+)?\]/g, "[$1]"); // Arm
  },
};

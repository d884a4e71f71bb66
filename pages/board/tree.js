// The program as a graph: scopes and the operations inside them, from left to right; one row an operation, in
// the order of the text, which is its alternative in words. Nodes select and light up as lines do.

const TREE_ROW = 30;

function treeOf(lines) {
  const nodes = new Map();
  const roots = [];
  lines.forEach((line, row) => {
    let above = null;
    const place = (path, made) => {
      let node = nodes.get(path);
      if (!node) {
        node = { path, children: [], ...made };
        nodes.set(path, node);
        (above ? above.children : roots).push(node);
      }
      return node;
    };
    line.slots.forEach((slot, depth) => {
      // A "|" in the text is the same scope as in the line above: it is there already.
      above = place(slot.path, { depth, slot, label: slot.text });
    });
    place(line.path, { depth: line.slots.length, row, line, label: line.op });
  });
  const settle = (node) => {
    node.children.forEach(settle);
    if (node.children.length) node.row = (node.children[0].row + node.children[node.children.length - 1].row) / 2;
  };
  roots.forEach(settle);
  return [...nodes.values()];
}

function drawTree(program) {
  const nodes = treeOf(program.lines);
  const wide = (node) => (node.slot ? node.label.length * 7.4 + 18 : 0);
  const columns = [];
  for (const node of nodes) columns[node.depth] = Math.max(columns[node.depth] || 0, wide(node) + 26);
  const left = (depth) => 14 + columns.slice(0, depth).reduce((sum, each) => sum + each, 0);
  const middle = (node) => 20 + node.row * TREE_ROW;
  const height = 40 + (program.lines.length - 1) * TREE_ROW;
  const width = Math.max(...nodes.map((node) => left(node.depth) + wide(node) + (node.line ? node.label.length * 7.6 + 30 : 0)));
  const edges = [];
  const marks = [];
  for (const node of nodes) {
    const [x, y] = [left(node.depth), middle(node)];
    for (const child of node.children) {
      const [from, to] = [x + wide(node), left(child.depth)];
      const bend = to - 13;
      edges.push(svg("path", { class: "edge", d: `M${from} ${y} H${bend} V${middle(child)} H${to}` }));
    }
    const group = svg("g", { "data-path": node.path, class: node.slot ? `scope mark-${node.slot.mark || "none"}` : `op leaf hue-${node.line.hue % HUES}` });
    if (node.slot) {
      group.append(svg("title", {}, slotTitle(node.slot)),
        svg("rect", { x, y: y - 11, width: wide(node), height: 22, rx: 11 }),
        svg("text", { x: x + wide(node) / 2, y: y + 4.5, "text-anchor": "middle" }, node.label));
    } else {
      group.append(svg("rect", { class: "ground", x: x - 4, y: y - 12, width: node.label.length * 7.6 + 30, height: 24, rx: 5 }),
        svg("circle", { cx: x + 6, cy: y, r: 5 }), svg("text", { x: x + 18, y: y + 4.5 }, node.label));
    }
    marks.push(group);
  }
  const picture = svg("svg", { class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `The program as a tree of ${nodes.length - program.lines.length} scopes and ${program.lines.length} operations; the tab Program has it as text.` });
  picture.append(...edges, ...marks);
  return picture;
}

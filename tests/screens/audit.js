// What can be computed of a page's look (WCAG 2.2 AA): contrast, texts cut off that nothing tells in full or that lie
// over each other, buttons on several lines, controls without a name, that are cut off, covered by others or too small
// to be met, a page wider than its window. Gives sentences.
() => {
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const colour = (text) => {
    if (!known.has(text)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = text;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const parent = (node) => node.assignedSlot || node.parentElement || (node.getRootNode() instanceof ShadowRoot ? node.getRootNode().host : null);
  const ground = (node) => {
    const layers = [];
    for (let at = node; at; at = parent(at)) {
      const style = getComputedStyle(at);
      const layer = colour(style.backgroundColor);
      if (layer[3] > 0) layers.push(layer);
      if (layer[3] === 1) break;
      if (style.backgroundImage !== "none") return null;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), colour(getComputedStyle(document.querySelector(".stApp") || document.body).backgroundColor).slice(0, 3));
  };
  const opacity = (node) => {
    let product = 1;
    for (let at = node; at; at = parent(at)) product *= Number(getComputedStyle(at).opacity);
    return product;
  };
  const modal = [];
  const all = [];
  const walk = (root) => {
    for (const node of root.querySelectorAll("*")) {
      all.push(node);
      if (node.matches("dialog[open]")) modal.push(node);
      if (node.shadowRoot) walk(node.shadowRoot);
    }
  };
  walk(document);
  const shown = (node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && (!modal.length || modal.some((m) => m.contains(node)));
  const told = new Map();
  const tell = (what, words) => { if (!told.has(what)) told.set(what, new Set()); told.get(what).add(words); };
  const short = (text) => text.trim().replace(/\s+/g, " ").slice(0, 44);
  const kind = (node) => `${node.tagName.toLowerCase()}${typeof node.className === "string" && node.className ? "." + node.className.trim().split(/\s+/).slice(0, 2).join(".") : ""}`;
  const scrolls = (style) => /auto|scroll/.test(style.overflowX);
  /** Is a control cut off sideways, where nothing can be scrolled to bring it in sight? */
  const cut = (node, box) => {
    for (let at = parent(node); at; at = parent(at)) {
      const style = getComputedStyle(at);
      if (scrolls(style)) return false;
      const edge = at.getBoundingClientRect();
      if (/hidden|clip/.test(style.overflowX) && (box.right > edge.right + 2 || box.left < edge.left - 2)) return true;
      if (style.position === "fixed") break;
    }
    return box.right > innerWidth + 1 || box.left < -1;
  };
  const at = (x, y) => {
    let node = document.elementFromPoint(x, y);
    while (node?.shadowRoot?.elementFromPoint(x, y) && node.shadowRoot.elementFromPoint(x, y) !== node) node = node.shadowRoot.elementFromPoint(x, y);
    return node;
  };
  const holds = (outer, node) => { for (let up = node; up; up = parent(up)) if (up === outer) return true; return false; };
  /** What lies over the middle of a control, where that middle is in sight. */
  const cover = (node, box) => {
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return null;
    for (let up = parent(node); up; up = parent(up)) {
      const edge = up.getBoundingClientRect();
      if (getComputedStyle(up).overflow !== "visible" && (x < edge.left || x > edge.right || y < edge.top || y > edge.bottom)) return null;
    }
    const over = at(x, y);
    if (!over || holds(node, over) || holds(over, node)) return null;
    for (let up = over; up && !holds(up, node); up = parent(up)) if (/fixed|sticky/.test(getComputedStyle(up).position)) return null; // scrolled away
    return over;
  };
  /** What of a rectangle the elements around it, and the window, let be seen; null: nothing. */
  const seen = (node, { left, top, right, bottom }) => {
    const box = { left: Math.max(left, 0), top: Math.max(top, 0), right: Math.min(right, innerWidth), bottom: Math.min(bottom, innerHeight) };
    for (let up = node; up; up = parent(up)) {
      if (getComputedStyle(up).overflow === "visible" || up instanceof SVGElement) continue;
      const edge = up.getBoundingClientRect();
      [box.left, box.top, box.right, box.bottom] = [Math.max(box.left, edge.left), Math.max(box.top, edge.top), Math.min(box.right, edge.right), Math.min(box.bottom, edge.bottom)];
    }
    return box.right - box.left > 2 && box.bottom - box.top > 2 ? box : null;
  };
  /** The nearest thing around it that stays while what is below it scrolls: what lies there lies over others. */
  const layer = (node) => { for (let up = node; up; up = parent(up)) if (/fixed|sticky/.test(getComputedStyle(up).position)) return up; return null; };
  /** Is it there for screen readers alone? */
  const unseen = (node) => { for (let up = node; up; up = parent(up)) if (getComputedStyle(up).clipPath === "inset(50%)") return true; return false; };
  const targets = all.filter((node) => node.matches("button, a[href], [role=tab], select, input:not([type=hidden]):not([type=file])") && shown(node) && !unseen(node))
    .map((node) => ({ node, box: node.getBoundingClientRect() })).filter(({ box }) => box.width > 1 && box.height > 1);
  /** Is a control under 24 pixels, and another one nearer to its middle than 12 (WCAG 2.2, 2.5.8)? */
  const crowded = ({ node, box }) => {
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    return targets.some(({ node: other, box: near }) => {
      if (other === node || holds(node, other) || holds(other, node)) return false;
      const [dx, dy] = [Math.max(near.left - x, x - near.right, 0), Math.max(near.top - y, y - near.bottom, 0)];
      return Math.hypot(dx, dy) < 12;
    });
  };
  for (const target of targets) {
    const { node, box } = target;
    const words = short(node.textContent || node.getAttribute("aria-label") || node.title || "");
    if (!node.matches("[type=radio], [type=checkbox]") && cut(node, box)) tell(`control cut off ${kind(node)}`, words);
    const over = node.matches("input") ? null : cover(node, box);
    if (over) tell(`control under ${kind(over)}`, words);
    const inline = getComputedStyle(node).display === "inline" || node.matches(".term");
    if (!inline && Math.min(box.width, box.height) < 23.5 && !node.matches("input") && crowded(target)) tell(`small target ${kind(node)}`, `${Math.round(box.width)} by ${Math.round(box.height)} ${words}`);
  }
  for (const node of all.filter((each) => each.matches("[role=separator][tabindex]") && shown(each))) {
    const box = node.getBoundingClientRect();
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    if (!holds(node, at(x, y))) continue; // out of the window, or below a dialogue
    const across = [...Array(60).keys()].map((n) => (box.width < box.height ? at(x - 30 + n, y) : at(x, y - 30 + n)));
    const thick = across.filter((each) => each && holds(node, each)).length;
    if (thick < 24) tell("thin edge", `${thick} px ${node.getAttribute("aria-label")}`);
  }
  const texts = []; // what is seen of each text: where, in which element
  for (const node of all) {
    if (!shown(node)) continue;
    const style = getComputedStyle(node);
    const own = [...node.childNodes].filter((c) => c.nodeType === 3 && c.textContent.trim()).map((c) => c.textContent).join(" ");
    const box = node.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const disabled = node.closest(":disabled, [aria-disabled=true]") || node.closest("label")?.control?.disabled || (node.getRootNode().host && node.getRootNode().host.closest(":disabled"));
    for (const part of own ? node.childNodes : []) {
      if (part.nodeType !== 3 || !part.textContent.trim()) continue;
      const range = document.createRange();
      range.selectNodeContents(part);
      texts.push(...[...range.getClientRects()].map((edge) => ({ node, edge: seen(node, edge) })).filter(({ edge }) => edge));
    }
    if (own && !disabled) {
      const svg = node instanceof SVGElement;
      const below = ground(svg ? node.ownerSVGElement || node : node);
      if (below) {
        const [r, g, b, a] = colour(svg ? style.fill : style.color);
        const front = over([r, g, b, a * opacity(node)], below);
        const [one, other] = [light(front), light(below)].sort((x, y) => y - x);
        const ratio = (one + 0.05) / (other + 0.05);
        const size = parseFloat(style.fontSize);
        const enough = own.trim() === "|" || size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
        if (ratio < enough - 0.02) tell(`contrast ${ratio.toFixed(1)} ${kind(node)}`, short(own));
      }
    }
    const named = (at) => at && (at.getAttribute("title") || named(parent(at)));
    if (own && style.textOverflow === "ellipsis" && node.scrollWidth > node.clientWidth + 1 && !named(node)) tell(`cut off ${kind(node)}`, short(own));
    // In less than the 320 pixels that a page of 1280 has at 400% a button may need two lines.
    if (innerWidth >= 320 && node.matches("button") && style.textAlign === "center" && node.textContent.trim() && box.height < 90 && !node.querySelector("*:not(span):not(p):not(div)")) {
      const range = document.createRange();
      range.selectNodeContents(node);
      const tops = [...range.getClientRects()].filter((r) => r.width > 1).map((r) => r.top);
      if (tops.length && Math.max(...tops) - Math.min(...tops) > parseFloat(style.fontSize)) tell(`on several lines ${kind(node)}`, short(node.textContent));
    }
    if (node.matches("button, a[href], input:not([type=hidden]):not([type=file]), select, textarea, [role=button], [role=listbox], [role=tab], [role=combobox], [role=slider]")) {
      const by = (node.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean).map((id) => node.getRootNode().getElementById?.(id)?.textContent || "").join("");
      const name = node.getAttribute("aria-label") || by || (node.matches("input, select, textarea") ? "" : node.textContent.trim()) || node.title
        || (node.labels && [...node.labels].map((l) => l.textContent).join("").trim());
      if (!name) tell(`no name ${kind(node)}`, node.placeholder || "");
    }
  }
  texts.sort((one, other) => one.edge.top - other.edge.top);
  for (const [place, { node, edge }] of texts.entries()) {
    for (let next = place + 1; next < texts.length && texts[next].edge.top < edge.bottom - 3; next += 1) {
      const { node: other, edge: near } = texts[next];
      if (other === node || Math.min(edge.right, near.right) - Math.max(edge.left, near.left) < 3) continue;
      if (Math.min(edge.bottom, near.bottom) - near.top < 0.4 * Math.min(edge.bottom - edge.top, near.bottom - near.top)) continue;
      if (layer(node) === layer(other)) tell(`text over ${kind(node)}`, `${short(other.textContent)} / ${short(node.textContent)}`);
    }
  }
  for (const page of [document.scrollingElement, ...document.querySelectorAll("[data-testid=stMain], [data-testid=stMainBlockContainer]")]) {
    if (page.scrollWidth > innerWidth + 1) tell("wider than the window", `${page.scrollWidth} px`);
  }
  return [...told].map(([what, words]) => `${what}: ${[...words].slice(0, 4).join(" | ")}${words.size > 4 ? ` (+${words.size - 4})` : ""}`);
}

// What can be computed of a page's look: contrast (WCAG 2.1 AA), texts cut off that nothing tells in full, buttons
// on several lines, controls without a name, a page wider than its window. Gives sentences.
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
  for (const node of all) {
    if (!shown(node)) continue;
    const style = getComputedStyle(node);
    const own = [...node.childNodes].filter((c) => c.nodeType === 3 && c.textContent.trim()).map((c) => c.textContent).join(" ");
    const box = node.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const disabled = node.closest(":disabled, [aria-disabled=true]") || (node.getRootNode().host && node.getRootNode().host.closest(":disabled"));
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
    if (node.matches("button") && node.textContent.trim() && box.height < 90 && !node.querySelector("*:not(span):not(p):not(div)")) {
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
  const page = document.scrollingElement;
  if (page.scrollWidth > innerWidth + 1) tell("wider than the window", `${page.scrollWidth} px`);
  return [...told].map(([what, words]) => `${what}: ${[...words].slice(0, 4).join(" | ")}${words.size > 4 ? ` (+${words.size - 4})` : ""}`);
}

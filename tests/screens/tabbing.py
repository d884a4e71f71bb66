"""A page by the Tab key alone: every stop has a name, shows that it has the focus, and is in sight (WCAG 2.2:
2.4.3, 2.4.7, 2.4.11)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MOST = 90  # stops; a page with more repeats itself

_HERE = """() => {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  if (!node || node === document.body) return null;
  const by = (node.getAttribute('aria-labelledby') || '').split(/\\s+/).filter(Boolean)
    .map((id) => node.getRootNode().getElementById?.(id)?.textContent || '').join(' ');
  const labels = node.labels ? [...node.labels].map((l) => l.textContent).join(' ') : '';
  const said = [node.getAttribute('aria-label'), by, labels, node.textContent, node.title];
  const name = said.find(Boolean) || '';
  const box = node.getBoundingClientRect();
  const rings = [];
  for (let at = node, up = 0; at && up < 5; at = at.parentElement, up += 1) {
    const style = getComputedStyle(at);
    if (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) rings.push('outline');
    if (style.boxShadow !== 'none') rings.push('shadow');
  }
  const field = node.matches('input, textarea, select');
  const at = (x, y) => {
    let over = document.elementFromPoint(x, y);
    for (let inner = over; inner; ) {
      over = inner;
      inner = over.shadowRoot?.elementFromPoint(x, y);
      if (inner === over) break;
    }
    return over;
  };
  const within = (outer, inner) => {
    while (inner && inner !== outer) inner = inner.parentElement || inner.getRootNode().host;
    return Boolean(inner);
  };
  const seen = [0.1, 0.5, 0.9].some((x) => [0.1, 0.5, 0.9].some((y) => {
    const over = at(box.left + x * box.width, box.top + y * box.height);
    return over && (within(node, over) || within(over, node) || field && within(node.parentElement, over));
  }));
  return { role: node.getAttribute('role') || node.tagName.toLowerCase(),
    name: name.trim().slice(0, 60).replace(/\\s+/g, ' '),
    ring: rings.length > 0 || field, seen };
}"""


@dataclass(frozen=True)
class Stop:
    role: str
    name: str
    ring: bool  # is the focus seen?
    seen: bool  # is some of it in the window, and nothing over it?

    @property
    def told(self) -> str:
        faults = ["NO NAME"] * (not self.name) + ["NO RING"] * (not self.ring) + ["UNSEEN"] * (not self.seen)
        return " ".join([f"{self.role} “{self.name}”", *faults])


def stops(page: Any) -> list[Stop]:
    """Where Tab leads, from the top, until it leaves the page or comes round."""
    found: list[Stop] = []
    page.evaluate("document.querySelector('a[href]').focus()")  # the scene may have left it far below
    for _ in range(MOST):
        page.keyboard.press("Tab")
        here = page.evaluate(_HERE)
        if here is None:
            break
        found.append(Stop(**here))
    return found

"""The look of all drawings: a box with its own style sheet, in light and in dark, with no script.

A notebook's theme is told by an attribute (JupyterLab, nbconvert) or a class (VS Code) of the page; elsewhere
the browser's preference counts. The box has its own ground, so that it can be read on any page.
"""

from __future__ import annotations

from html import escape

_LIGHT = (
    "--text:#1d2127;--ground:#ffffff;--edge:#d8dbe0;--quiet:#555c66;--accent:#2860c4;"
    "--green:#17753f;--red:#b2322a;--violet:#7b3fa0;--amber:#8a4b08;--came:#e3f3e8;color-scheme:light"
)
_DARK = (
    "--text:#e4e6ea;--ground:#16181c;--edge:#363a42;--quiet:#a5abb5;--accent:#6aa5f8;"
    "--green:#5cc58a;--red:#f0837b;--violet:#c79bf2;--amber:#e0b06a;--came:#173524;color-scheme:dark"
)
_RULES = """
.dojo{color:var(--text);background:var(--ground);border:1px solid var(--edge);border-radius:6px;
padding:8px 12px;font:14px/1.45 system-ui,sans-serif;overflow-x:auto;max-width:100%;box-sizing:border-box}
.dojo pre,.dojo code{font:13px/1.5 ui-monospace,Menlo,Consolas,monospace;color:inherit;background:none;
margin:0;padding:0;border:0;white-space:pre}
.dojo pre{margin:6px 0}
.dojo h4{font:600 14px/1.4 system-ui,sans-serif;margin:0 0 2px}
.dojo p{margin:2px 0}.dojo .quiet{color:var(--quiet)}
.dojo .good{color:var(--green)}.dojo .bad{color:var(--red)}.dojo .big{font-size:20px;font-weight:600}
.dojo .word{color:var(--violet)}.dojo .number{color:var(--amber)}.dojo .index{color:var(--accent)}
.dojo .function{color:var(--green)}.dojo .mark{color:var(--red);font-weight:600}
.dojo .came{background:var(--came)}
.dojo table{border-collapse:collapse;margin:6px 0;color:inherit;font-size:13px}
.dojo th,.dojo td{padding:2px 10px 2px 0;text-align:left;border:0;background:none;color:inherit;
vertical-align:baseline}
.dojo td.figure{text-align:right;font-variant-numeric:tabular-nums}
.dojo ol,.dojo ul{margin:2px 0;padding-left:26px}.dojo summary{cursor:pointer}
.dojo details{margin:2px 0}.dojo .here{font-weight:600;color:var(--accent)}
.dojo svg{display:block;max-width:100%;height:auto;margin:6px 0}
.dojo svg text{fill:var(--quiet);font:12px system-ui,sans-serif}
.dojo svg .told{fill:var(--text);font-weight:600}
.dojo svg .grid{stroke:var(--edge)}.dojo svg .even{stroke:var(--quiet);stroke-dasharray:4 3}
.dojo svg .line{fill:none;stroke:var(--accent);stroke-width:2}.dojo svg .dot{fill:var(--accent)}
.dojo svg .failed{fill:none;stroke:var(--red);stroke-width:2}
.dojo svg .ours{fill:var(--accent)}.dojo svg .theirs{fill:var(--quiet)}
"""
STYLE = (
    f"<style>.dojo{{{_LIGHT}}}@media (prefers-color-scheme:dark){{.dojo{{{_DARK}}}}}"
    f'[data-jp-theme-light="true"] .dojo,.vscode-light .dojo{{{_LIGHT}}}'
    f'[data-jp-theme-light="false"] .dojo,.vscode-dark .dojo{{{_DARK}}}'
    + _RULES.replace("\n", "")
    + "</style>"
)


def boxed(inside: str) -> str:
    """A drawing with its style."""
    return f'{STYLE}<div class="dojo">{inside}</div>'


def span(kind: str, text: str) -> str:
    return f'<span class="{kind}">{escape(text)}</span>' if kind else escape(text)


def heading(text: str, quiet: str = "") -> str:
    return f"<h4>{escape(text)}</h4>" + (f'<p class="quiet">{escape(quiet)}</p>' if quiet else "")


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def folded(summary: str, inside: str, opened: bool = False) -> str:
    """What is shown on a click; ``inside`` is HTML."""
    return f"<details{' open' * opened}><summary>{escape(summary)}</summary>{inside}</details>"

"""The colours of all pages and of our own components, as CSS variables: one set, light and dark.

They are those of Streamlit's theme (.streamlit/config.toml), so that its widgets and ours look alike.
``light-dark()`` follows the theme that the page shows. Variables are inherited into the components.
"""

from __future__ import annotations

from collections.abc import Callable

# Our names, and Streamlit's for the same colour.
COLOURS = {
    "text": "textColor",
    "ground": "backgroundColor",
    "raised": "secondaryBackgroundColor",
    "edge": "borderColor",
    "accent": "primaryColor",
    "green": "greenTextColor",
    "red": "redTextColor",
}
DERIVED = {
    # Under white words: the dark theme's accent, made to be read as text, is too light for that (WCAG AA).
    "fill": "light-dark(#2860c4, #3570d6)",
    "quiet": "color-mix(in srgb, var(--dojo-text) 72%, var(--dojo-ground))",
    "faint": "color-mix(in srgb, var(--dojo-text) 8%, var(--dojo-ground))",
    "font": '"Source Sans", system-ui, sans-serif',
    "code": '"Source Code Pro", ui-monospace, Menlo, Consolas, monospace',
}


def tokens(light: Callable[[str], str], dark: Callable[[str], str]) -> str:
    """``:root`` with a variable ``--dojo-NAME`` for each colour. ``light``, ``dark``: a colour of Streamlit's
    theme by its name there."""
    lines = [
        f"--dojo-{name}: light-dark({light(theirs)}, {dark(theirs)});" for name, theirs in COLOURS.items()
    ]
    lines += [f"--dojo-{name}: {value};" for name, value in DERIVED.items()]
    return ":root { " + " ".join(lines) + " }"

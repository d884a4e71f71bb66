"""Our own component beside the board: the studies, or the words of one, to be written."""

from pages.components import beside_the_board

study_editor = beside_the_board(
    "dojo_study",
    "study/editor.css",
    "study/here.js",
    "study/asking.js",
    "study/source.js",
    "study/whole.js",
    "study/editor.js",
)

"""Our own component beside the board: the list, a lesson's text with its goals and help, a review."""

from pages.components import beside_the_board

lesson_panel = beside_the_board(
    "dojo_lesson", "learn/learn.css", "learn/step.js", "learn/review.js", "learn/panel.js"
)

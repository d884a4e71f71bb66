"""The dojo as a school: lessons and puzzles from Markdown, goals that the app checks, progress, a review of
one's own games. Nothing in a lesson is run as code: it is text, positions, moves and goals."""

"""Puzzles from games and runs: where they are looked for, and how many tries programs need."""

"""Classes: a teacher gives lessons, puzzles and links, sees how far students came; students see their own."""

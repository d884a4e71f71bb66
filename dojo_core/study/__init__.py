"""Studies: games with words, as files that people write and pages that open anywhere (docs/studies.md)."""

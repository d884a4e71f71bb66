"""Texts of other languages as programs: recognised, translated where that is exact, checked (docs/own_kernel.md)."""

"""Texts of other languages as programs: recognised, translated where that is exact, and checked
(docs/own_kernel.md).
"""

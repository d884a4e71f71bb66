"""All that needs a GPU, in one run: ``python -m benchmarks.gpu --out DIR``."""

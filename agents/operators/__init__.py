"""The operators of ai.onnx as a tuned library for this machine: ``dojo library --onnx`` (docs/onnx.md).

``listed.py`` reads ``operators.toml``: every operator at two typical shapes. ``node.py`` makes a case a model
of one node and imports it; ``tuned.py`` plays the heuristic pass and searches; ``compared.py`` holds what
came of it against PyTorch and ONNX Runtime; ``library.py`` goes through all of them, keeps what it knows and
goes on; ``page.py`` shows it.
"""

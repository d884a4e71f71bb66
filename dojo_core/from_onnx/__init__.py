"""Models and operators of ONNX as kernels' texts (docs/onnx.md): a file, its nodes, one program.

The package ``onnx`` is an extra, imported when a model is read.
"""

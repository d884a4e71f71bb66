"""The core of the Dojo: representation, moves, game, code generation, kernels."""

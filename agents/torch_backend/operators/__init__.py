"""The operators of ATen, a file for each family. Importing this fills the table ``call.OPERATORS``."""

from agents.torch_backend.operators import (
    comparisons,
    contractions,
    convolutions,
    copies,
    creation,
    elementwise,
    gathering,
    normalisations,
    pooling,
    recurrent,
    reductions,
    resizing,
    scans,
    scattering,
    sorting,
    views,
)

__all__ = [
    "comparisons",
    "contractions",
    "convolutions",
    "copies",
    "creation",
    "elementwise",
    "gathering",
    "normalisations",
    "pooling",
    "recurrent",
    "reductions",
    "resizing",
    "scans",
    "scattering",
    "sorting",
    "views",
]

"""The operators of ONNX, a file for each family; importing this registers all of them.

Those that are missing here and that the standard defines by a function body go by that body.
"""

from dojo_core.from_onnx.operators import (  # noqa: F401
    comparisons,
    contractions,
    control,
    convolutions,
    copies,
    elementwise,
    gathering,
    generated,
    images,
    normalisations,
    pooling,
    quantisation,
    recurrent,
    reductions,
    scans,
    scattering,
    sequences,
    signals,
    text,
    views,
)

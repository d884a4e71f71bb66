"""Running sums and products."""

from __future__ import annotations

from dojo_core import primitives as p
from dojo_core.from_onnx.arrays import joint
from dojo_core.from_onnx.call import Call, operator
from dojo_core.primitives.array import Array


@operator("CumSum", "CumProd")
def cumulative(c: Call) -> Array:
    x = c.computed(0)
    axis = c.axis_of(c.integer(1), len(x.shape))
    x = c.convert(x, joint([x.dtype]))
    return p.scan(c.b, "+" if c.name == "CumSum" else "*", x, axis, c.flag("exclusive"), c.flag("reverse"))

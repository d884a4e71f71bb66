"""What the tests share: a target that does not depend on the machine they run on."""

import pytest

from dojo_core.targets.target import Target

# Wide vectors and two threads, whatever this machine has: legality tests must not change with it.
WIDE = Target(
    name="wide",
    title="a CPU with 512-bit vectors",
    vector_widths={"f32": (16, 8, 4), "f64": (8, 4, 2), "i32": (16, 8, 4)},
    marks=frozenset("upv"),
    locations=("heap", "stack", "register"),
    stack_bytes=1 << 20,
    register_cells=1024,
    unrolled_ops=2048,
    threads=2,
)


@pytest.fixture
def wide() -> Target:
    return WIDE

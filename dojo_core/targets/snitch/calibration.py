"""The model beside the hardware: the kernels that were measured on the RTL, as programs.

    python -m dojo_core.targets.snitch.calibration

prints the table that docs/snitch.md shows; a test keeps the two alike. The RTL's cycles are those of
hand-written assembly in the default configuration, f64, instruction cache warm.
"""

from __future__ import annotations

from dataclasses import dataclass

from dojo_core.program.text import parse
from dojo_core.targets.snitch.simulate import Run, judge


@dataclass(frozen=True)
class Measured:
    """A kernel in one form, with its cycles on the RTL."""

    name: str
    cycles: int
    text: str


def _vadd(body: str) -> str:
    return f"kernel vadd\nin x, w\nout y\nx f64 [256] heap\nw f64 [256] heap\ny f64 [256] heap\n{body}\n"


def _relu(body: str) -> str:
    return f"kernel relu\nin x\nout y\nx f64 [256] heap\ny f64 [256] heap\n{body}\n"


def _dot(body: str, partials: int = 1) -> str:
    buffers = "x f64 [256] heap\nw f64 [256] heap\ny f64 [] heap\n"
    registers = f"c f64 [{partials}] register\ns f64 [] register\n"
    whole = "s[] = 0\n" + f"{partials}:u s[] += c[{{0}}]\ny[] = s[]\n" if partials > 1 else "y[] = c[0]\n"
    registers = registers if partials > 1 else "c f64 [1] register\n"
    return f"kernel dot\nin x, w\nout y\n{buffers}{registers}{partials}:u c[{{0}}] = 0\n{body}\n{whole}"


def _gemm(body: str, shape: str) -> str:
    square = "f64 [16, 16] heap"
    return (
        f"kernel gemm\nin a, b\nout c\na {square}\nb {square}\nc {square}\nt f64 [{shape}] register\n{body}\n"
    )


MEASURED = (
    Measured("vadd 256, scalar", 2312, _vadd("256 y[{0}] = x[{0}] + w[{0}]")),
    Measured("vadd 256, SSR", 793, _vadd("256:s y[{0}] = x[{0}] + w[{0}]")),
    Measured(
        "vadd 256, SSR, unrolled by 4", 409, _vadd("64:s 4:u y[{0}*4+{1}] = x[{0}*4+{1}] + w[{0}*4+{1}]")
    ),
    Measured("vadd 256, SSR and FREP", 283, _vadd("1:s 256:f y[{1}] = x[{1}] + w[{1}]")),
    Measured("relu 256, scalar", 1799, _relu("256 y[{0}] = max(x[{0}],0)")),
    Measured("relu 256, SSR and FREP", 277, _relu("1:s 256:f y[{1}] = max(x[{1}],0)")),
    Measured("dot 256, scalar", 1802, _dot("256 c[0] += x[{0}]*w[{0}]")),
    Measured("dot 256, SSR", 1048, _dot("256:s c[0] += x[{0}]*w[{0}]")),
    Measured("dot 256, SSR and FREP, one accumulator", 1049, _dot("1:s 256:f c[0] += x[{1}]*w[{1}]")),
    Measured("dot 256, SSR and FREP, four", 292, _dot("1:s 64:f 4:u c[{2}] += x[{1}*4+{2}]*w[{1}*4+{2}]", 4)),
    Measured(
        "gemm 16x16x16, scalar",
        31063,
        _gemm(
            "16 16 t[{0},{1}] = 0\n| | 16 t[{0},{1}] += a[{0},{2}]*b[{2},{1}]\n| | c[{0},{1}] = t[{0},{1}]",
            "16:N, 16:N",
        ),
    ),
    Measured(
        "gemm 16x16x16, SSR and FREP, unrolled by 8",
        4716,
        _gemm(
            "16:s 2 8:u t[{0},{1},{2}] = 0\n"
            "| | 16:f 8:u t[{0},{1},{3}] += a[{0},{2}]*b[{2},{1}*8+{3}]\n"
            "| | 8:u c[{0},{1}*8+{2}] = t[{0},{1},{2}]",
            "16:N, 2:N, 8",
        ),
    ),
)


def simulated(measured: Measured) -> Run:
    """What the model says of it. Raises AssertionError where the result is wrong."""
    verdict = judge(parse(measured.text))
    assert verdict.status == "ok" and verdict.run is not None, (measured.name, verdict.message)
    return verdict.run


def table() -> str:
    """Model and RTL side by side, as Markdown."""
    lines = ["| kernel | RTL | model | | of FPU peak |", "|---|---:|---:|---:|---:|"]
    for each in MEASURED:
        run = simulated(each)
        off = run.cycles / each.cycles - 1
        lines.append(f"| {each.name} | {each.cycles} | {run.cycles} | {off:+.1%} | {run.utilisation:.0%} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")

"""Random programs of what the moves look for that take a temporary away, or nearly: partial results, a
reciprocal, a product, a value computed twice, a copy. The temporaries are often outputs, read elsewhere too,
or read by the very operation that writes them.
"""

from __future__ import annotations

import random

from dojo_core import parse
from dojo_core.program.expressions import TextError
from dojo_core.program.tree import Program
from dojo_core.program.validity import storage_fault
from tests import oracle

# The moves that take an array away, or a write of it.
TAKING = (
    "merge_reduction", "divide_again", "contract", "use_kept", "elide_copy", "forward", "drop_dead",
    "sum_squares_again", "sum_exp_again",
)  # fmt: skip


def random_temporaries(rng: random.Random) -> Program:
    """A program of one or two such patterns, valid by the oracle."""
    while True:
        try:
            program = parse(_Writer(rng).text())
        except TextError:
            continue
        outcome = oracle.run(program)
        if outcome.fault is None and outcome.defined and storage_fault(program) is None:
            return program


class _Writer:
    """Inputs x (rows by columns), w and v (rows); the first output is y."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rows, self.columns = rng.choice((1, 2, 3)), rng.choice((2, 3, 4))
        self.lines: list[str] = []
        self.shapes = {"x": f"{self.rows}, {self.columns}", "w": str(self.rows), "v": str(self.rows)}

    def usually(self, usual: str, *odd: str) -> str:
        return usual if not odd or self.rng.random() < 0.87 else self.rng.choice(odd)

    def nest(self, *operations: str) -> None:
        """Operations on each row, in one scope or in one each; ``/`` begins those on each column."""
        together = self.rng.random() < 0.85
        for number, operation in enumerate(operations):
            inner = f"{self.columns} " if operation.startswith("/") else ""
            outer = "|" if together and number else str(self.rows)
            self.lines.append(f"{outer} {inner}{operation.removeprefix('/')}")

    def array(self, name: str, whole: bool = False) -> str:
        """A new array, and its access in each row, or in each column of each row."""
        self.shapes[name] = self.shapes["x" if whole else "w"]
        return f"{name}[{{0}},{{1}}]" if whole else f"{name}[{{0}}]"

    def elsewhere(self, access: str) -> list[str]:
        """Perhaps another operation that reads or writes an array of rows."""
        return [
            self.usually(
                "", f"y[{{0}}] = y[{{0}}] + {access}", f"{access} = v[{{0}}]", f"y[{{0}}] += {access}"
            )
        ]

    def partials(self, n: int) -> None:
        p, s = self.array(f"p{n}"), self.array(f"s{n}")
        sign, start = self.rng.choice((("+", "0"), ("+", "0"), ("*", "1"), ("max", "-inf")))
        x = "x[{0},{1}]"
        term = self.usually(x, f"{x} - {p}", p, f"{x}*{s}", f"{p}*{p}", f"{x} if {{1}} < 1")
        combined = self.usually(p, f"{p}*2", f"{p} + v[{{0}}]", "v[{0}]")
        self.nest(f"{s} = {self.usually(start, 'v[{0}]')}")
        self.nest(
            f"{p} = {self.usually(start, '2')}",
            f"/{p} {sign}= {term}",
            *self.elsewhere(p),
            f"{self.usually(s, p)} {sign}= {combined}",
            *self.elsewhere(p),
        )
        self.nest(f"y[{{0}}] = {s}")

    def reciprocal(self, n: int) -> None:
        r, q = self.array(f"r{n}"), self.array(f"q{n}", True)
        factors = self.usually(f"x[{{0}},{{1}}]*{r}", f"{r}*{r}", f"{r}*x[{{0}},{{1}}]", f"{q}*{r}")
        self.nest(f"/{q} = x[{{0}},{{1}}]")
        divisor = self.usually("w[{0}]", "y[{0}]")
        self.nest(f"{r} = 1 / {divisor}", f"/{self.usually(q, r)} = {factors}", *self.elsewhere(r))
        self.nest(f"/y[{{0}}] += {q}")

    def product(self, n: int) -> None:
        t, a = self.array(f"t{n}"), self.array(f"a{n}")
        self.nest(f"{a} = v[{{0}}]")
        factors = self.usually("w[{0}]*v[{0}]", f"w[{{0}}]*{a}", "w[{0}]*y[{0}]")
        used = self.usually(f"{a} += {t}", f"{a} = {t} + w[{{0}}]", f"{t} = {t} + w[{{0}}]", f"{t} += {t}")
        self.nest(f"{t} = {factors}", *self.elsewhere(t), used, *self.elsewhere(t))
        self.nest(f"y[{{0}}] = {a}")

    def twice(self, n: int) -> None:
        k, r = self.array(f"k{n}"), self.array(f"c{n}")
        value = self.rng.choice(("exp(w[{0}])", "w[{0}]*v[{0}]", "w[{0}]"))
        self.nest(f"{k} = {value}", *self.elsewhere(k))
        used = self.usually(f"y[{{0}}] = {r}", f"y[{{0}}] = {r}*{r}", f"{r} = {r}*2", f"{r} += {r}")
        self.nest(f"{r} = {value}", used, *self.elsewhere(r))

    def copy(self, n: int) -> None:
        into, out = self.array(f"i{n}"), self.array(f"o{n}")
        used = self.usually(
            f"{out} = {into}*2", f"{into} = {into}*2", f"{out} = {into} + {into}", f"{out} = {into}"
        )
        self.nest(
            f"{into} = {self.usually('w[{0}]', 'y[{0}]')}", f"{out} = v[{{0}}]", used, *self.elsewhere(into)
        )
        self.nest(f"y[{{0}}] = {self.usually(out, into)}")

    def text(self) -> str:
        rng = self.rng
        self.array("y")
        self.nest("y[{0}] = v[{0}]")
        kinds = (self.partials, self.partials, self.reciprocal, self.product, self.twice, self.copy)
        for n in range(rng.choice((1, 1, 2))):
            rng.choice(kinds)(n)
        self.lines = [line for line in self.lines if not line.endswith("  ") and "=" in line]
        made = [name for name in self.shapes if name not in "xwv"]
        outputs = [name for name in made if name == "y" or rng.random() < 0.3]
        for name in made:
            if name not in outputs and rng.random() < 0.5:  # as moves make them
                self.shapes[name] = self.shapes[name].replace(str(self.rows), f"{self.rows}:N", 1)
        buffers = [f"{name} f32 [{shape}] heap" for name, shape in self.shapes.items()]
        return (
            "\n".join(["kernel k", "in x, w, v", f"out {', '.join(outputs)}", *buffers, *self.lines]) + "\n"
        )

"""PyTorch eager on the lines of a text: each line over whole arrays, by the function that PyTorch has for it.

Variants, of which the fastest that is right competes: line by line, with products by ``matmul`` or ``einsum``
and convolutions by PyTorch's own; and with what takes several lines by one function, where PyTorch has it:
a product with its bias, softmax, layer normalisation, GELU, a padded convolution.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch_operators
from protocol import Job, Unsupported, Variant, Variants, serve
from torch import Tensor
from torch.nn import functional as F

Tensors = dict[str, Tensor]
Step = Callable[[Tensors], None]
DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "i64": torch.int64, "i32": torch.int32,
}  # fmt: skip
IDENTITY = {"+": 0, "*": 1, "max": float("-inf"), "min": float("inf")}
REDUCED = {"+": torch.sum, "max": torch.amax, "min": torch.amin}
SIGNS = {
    "": lambda a: a, "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
    "neg": torch.neg, "pow": torch.pow, "max": lambda a, b: _limited(torch.maximum, torch.clamp_min, a, b),
    "min": lambda a, b: _limited(torch.minimum, torch.clamp_max, a, b), "fma": lambda a, b, c: a * b + c,
}  # fmt: skip
NAMED = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "sqrt", "rsqrt", "abs", "floor", "ceil", "trunc",
    "sigmoid", "sign",
)  # fmt: skip


def _limited(both: Callable, number: Callable, a: Any, b: Any) -> Tensor:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return both(a, b)
    return number(a, b) if isinstance(a, Tensor) else number(b, a)


class Place:
    """An element that a line names: the array, and the index of each dimension."""

    def __init__(self, named: list[Any]) -> None:
        self.array: str = named[0]
        self.index = [(const, {int(k): factor for k, factor in terms.items()}) for const, terms in named[1]]

    @property
    def iterators(self) -> list[int]:
        """In the order of the dimensions that use them."""
        return list(dict.fromkeys(k for _, terms in self.index for k in terms))

    def plain(self, sizes: list[int], shape: list[int]) -> bool:
        """Is all of the array named, each dimension by an iterator of its own?"""
        own = [next(iter(t)) for c, t in self.index if c == 0 and list(t.values()) == [1]]
        return len({*own}) == len(shape) and [sizes[k] for k in own] == shape


class Line:
    def __init__(self, told: dict[str, Any]) -> None:
        self.sizes: list[int] = told["sizes"]
        self.target = Place(told["target"])
        self.accumulate, self.function = told["accumulate"], told["function"]
        self.operands = [Place(o) if isinstance(o, list) else o for o in told["operands"]]

    @property
    def places(self) -> list[Place]:
        return [o for o in self.operands if isinstance(o, Place)]

    @property
    def fills(self) -> float | None:
        """The number that it writes, if it does nothing else."""
        number = not self.accumulate and not self.function and not isinstance(self.operands[0], Place)
        return self.operands[0] if number else None

    def computes(self, function: str, *operands: Any, accumulate: str = "") -> bool:
        """Is it that, of these arrays and numbers, in this order?"""
        given = [o.array if isinstance(o, Place) else o for o in self.operands]
        return (self.accumulate, self.function, given) == (accumulate, function, list(operands))


class Eager:
    """A program as calls of PyTorch; ``whole``: what takes several lines by one function."""

    def __init__(self, job: dict[str, Any], whole: bool) -> None:
        self.outputs = job["outputs"]
        self.shapes, self.dtypes = job["shapes"], job["dtypes"]
        self.lines = [Line(each) for each in job["lines"]]
        self.padded: dict[str, tuple[str, list[int]]] = {}
        self.steps: list[Step] = []
        at = 0
        rules = (self.softmax, self.layer_norm, self.gelu, self.biased, self.padding) if whole else ()
        while at < len(self.lines):
            at += next((taken for rule in rules if (taken := rule(at))), 0) or self.line(at)

    def __call__(self, given: Tensors) -> Tensor | tuple[Tensor, ...]:
        tensors = dict(given)
        for step in self.steps:
            step(tensors)
        results = tuple(tensors[name].contiguous() for name in self.outputs)
        return results[0] if len(results) == 1 else results

    # ------------------------------------------------------------------ a line

    def line(self, at: int) -> int:
        """One line; with it the accumulation that it begins."""
        line = self.lines[at]
        if not line.accumulate and len(line.target.iterators) < len(line.sizes):
            raise Unsupported("A line's results are written over: its iterations follow each other.")
        after = self.lines[at + 1] if at + 1 < len(self.lines) else None
        same = after is not None and after.accumulate and after.target.array == line.target.array
        whole = line.target.plain(line.sizes, self.shapes[line.target.array])
        if same and whole and not line.accumulate and not line.function:
            self.steps.append(self.accumulated(after, line))
            return 2
        self.steps.append(self.accumulated(line, None) if line.accumulate else self.written(line))
        return 1

    def written(self, line: Line) -> Step:
        function, kept = self.function(line.function), list(range(len(line.sizes)))
        reads = [self.read(o, line.sizes, kept) if isinstance(o, Place) else o for o in line.operands]
        if not line.places:
            dtype, sizes = DTYPES[self.dtypes[line.target.array]], line.sizes
            return self.stored(line, kept, lambda t: torch.full(sizes, function(*reads), dtype=dtype))
        if not line.function:  # a copy: what is written to it later leaves its source as it is
            return self.stored(line, kept, lambda t: reads[0](t).clone())
        return self.stored(line, kept, lambda t: function(*(r(t) if callable(r) else r for r in reads)))

    def accumulated(self, line: Line, first: Line | None) -> Step:
        """A sum or the like over what the target does not name, after what ``first`` wrote."""
        kept = sorted(line.target.iterators)
        windows = any(len(terms) > 1 for place in line.places for _, terms in place.index)
        if line.accumulate == "+" and line.function == "*" and len(line.places) == 2:
            value, kept = self.convolved(line) if windows else self.product(line)
        elif windows or line.accumulate not in REDUCED:
            raise Unsupported("PyTorch has no simple counterpart for a line that accumulates.")
        else:
            every = list(range(len(line.sizes)))
            function = self.function(line.function)
            reads = [self.read(o, line.sizes, every) if isinstance(o, Place) else o for o in line.operands]
            dims, reduce = [k for k in every if k not in kept], REDUCED[line.accumulate]

            def value(t: Tensors) -> Tensor:
                made = function(*(r(t) if callable(r) else r for r in reads))
                made = made if made.shape == torch.Size(line.sizes) else made.expand(line.sizes)
                return reduce(made, dims) if dims else made

        if first is not None and first.fills == IDENTITY[line.accumulate]:
            return self.stored(line, kept, value)
        begin = line.target if first is None else first.operands[0]
        combine = SIGNS[line.accumulate]
        if not isinstance(begin, Place):
            return self.stored(line, kept, lambda t: combine(value(t), begin))
        if first is not None:  # its iterators are its own: by the dimensions of the target
            own = {
                next(iter(t)): next(iter(u))
                for (_, t), (_, u) in zip(first.target.index, line.target.index, strict=True)
            }
            begin = Place([begin.array, [[c, {own[k]: f for k, f in t.items()}] for c, t in begin.index]])
        before = self.read(begin, line.sizes, kept)
        return self.stored(line, kept, lambda t: combine(value(t), before(t)))

    def function(self, name: str) -> Callable[..., Any]:
        if name in SIGNS:
            return SIGNS[name]
        if name in NAMED:
            return getattr(torch, name)
        if name in DTYPES:
            return lambda x: x.to(DTYPES[name])
        raise Unsupported(f"There is no counterpart for {name} here.")

    # ------------------------------------------------------------------ arrays

    def read(self, place: Place, sizes: list[int], kept: list[int]) -> Callable[[Tensors], Tensor]:
        """The array over iterators, in their order, to be broadcast: a view, no copy."""
        name, shape = place.array, self.shapes[place.array]
        if place.plain(sizes, shape):
            used = place.iterators
            order = [used.index(k) for k in sorted(used, key=kept.index)]
            ahead = [k in used for k in kept]
            while ahead and not ahead[0]:
                ahead.pop(0)
            if order == sorted(order) and all(ahead):
                return lambda t: t[name]
            missing = [k for k, there in enumerate(ahead) if not there]

            def view(t: Tensors) -> Tensor:
                x = t[name].permute(order)
                for dim in missing:
                    x = x.unsqueeze(dim)
                return x

            return view

        def strided(t: Tensors) -> Tensor:
            x = t[name].contiguous()
            steps = [0] * len(sizes)
            offset = 0
            for (const, terms), stride in zip(place.index, x.stride(), strict=True):
                offset += const * stride
                for k, factor in terms.items():
                    steps[k] += factor * stride
            return x.as_strided([sizes[k] for k in kept], [steps[k] for k in kept], offset)

        return strided

    def stored(self, line: Line, kept: list[int], value: Callable[[Tensors], Tensor]) -> Step:
        """Write a value over iterators to the line's target."""
        place, name = line.target, line.target.array
        shape, dtype = self.shapes[name], DTYPES[self.dtypes[name]]
        if place.plain(line.sizes, shape):
            order = [kept.index(k) for k in place.iterators]
            moved, sizes = order != sorted(order), [line.sizes[k] for k in kept]

            def whole(t: Tensors) -> None:
                made = value(t).to(dtype)
                made = made if list(made.shape) == sizes else made.expand(sizes)
                t[name] = made.permute(order) if moved else made

            return whole
        part = self.read(place, line.sizes, kept)

        def within(t: Tensors) -> None:
            t[name] = t[name].contiguous() if name in t else torch.empty(shape, dtype=dtype)
            part(t).copy_(value(t))

        return within

    # ------------------------------------------------------------------ products

    def product(self, line: Line) -> tuple[Callable[[Tensors], Tensor], list[int]]:
        kept, named = line.target.iterators, [place.iterators for place in line.places]
        reads = [self.read(p, line.sizes, used) for p, used in zip(line.places, named, strict=True)]
        first, second = reads
        a, b = named
        if len(a) == len(b) >= 2 and a[:-2] == b[:-2] == kept[:-2] and len(kept) == len(a):
            for (f, a_), (s, b_) in (((first, a), (second, b)), ((second, b), (first, a))):
                if a_[-2] == kept[-2] and kept[-1] in b_[-2:] and a_[-1] in b_[-2:] and a_[-1] != kept[-1]:
                    if b_[-1] == kept[-1]:
                        return lambda t, f=f, s=s: torch.matmul(f(t), s(t)), kept
                    return lambda t, f=f, s=s: torch.matmul(f(t), s(t).mT), kept
        letters = "".join(chr(97 + k) for k in range(len(line.sizes)))
        left, right, result = ("".join(letters[k] for k in used) for used in (a, b, kept))
        form = f"{left},{right}->{result}"
        return lambda t: torch.einsum(form, first(t), second(t)), kept

    def convolved(self, line: Line) -> tuple[Callable[[Tensors], Tensor], list[int]]:
        """A convolution in the order of PyTorch's dimensions, of one group or by channels."""
        strange = Unsupported("PyTorch has no simple counterpart for a line that accumulates over windows.")
        windowed = [any(len(terms) > 1 for _, terms in place.index) for place in line.places]
        if sorted(windowed) != [False, True]:
            raise strange
        x, w = (line.places[windowed.index(is_x)] for is_x in (True, False))
        rank = sum(len(terms) > 1 for _, terms in x.index)
        target, sizes = line.target.iterators, line.sizes
        batch = [k for k in target if k in x.iterators and k not in w.iterators and len(x.index) - rank == 2][
            :1
        ]
        spatial, taps = target[-rank:], w.iterators[-rank:]
        plain = w.plain(sizes, self.shapes[w.array]) and line.target.plain(
            sizes, self.shapes[line.target.array]
        )
        pairs = [terms for _, terms in x.index[-rank:]]
        padding: list[int] = [0] * rank
        name = x.array
        if name in self.padded:
            name, padding = self.padded[name]
        if (
            not plain
            or any({*p} != {s, k} for p, s, k in zip(pairs, spatial, taps, strict=True))
            or any(c for c, _ in x.index)
        ):
            raise strange
        channel = next(iter(x.index[-rank - 1][1]), None)
        depthwise = channel in target
        if w.iterators[:-rank] != ([channel] if depthwise else [target[len(batch)], channel]):
            raise strange
        convolve = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
        stride = [p[s] for p, s in zip(pairs, spatial, strict=True)]
        dilation = [p[k] for p, k in zip(pairs, taps, strict=True)]
        groups = sizes[channel] if depthwise else 1
        wanted = [sizes[k] for k in spatial]
        ahead = (slice(None),) * (2 if batch else 1)
        cut = (*ahead, *(slice(size) for size in wanted))

        def value(t: Tensors) -> Tensor:
            weight = t[w.array].unsqueeze(1) if depthwise else t[w.array]
            made = convolve(t[name], weight, None, stride, padding, dilation, groups)
            return made if list(made.shape[-rank:]) == wanted else made[cut]

        return value, target

    # ------------------------------------------------------------------ several lines

    def only_here(self, at: int, count: int, *names: str) -> bool:
        """Does nobody else read these arrays?"""
        others = [*self.lines[:at], *self.lines[at + count :]]
        read = {place.array for line in others for place in line.places}
        return not {*names} & {*read, *self.outputs}

    def run(self, at: int, count: int) -> list[Line]:
        """So many lines from one on, or none."""
        return self.lines[at : at + count] if at + count <= len(self.lines) else []

    def named(self, lines: list[Line]) -> list[str]:
        return [line.target.array for line in lines]

    def softmax(self, at: int) -> int:
        lines = self.run(at, 7)
        if not lines or not lines[1].places:
            return 0
        m, _, d, e, s, _, y = self.named(lines)
        x = lines[1].places[0].array
        fits = (
            lines[0].fills == float("-inf") and lines[1].computes("", x, accumulate="max")
            and lines[1].target.array == m and lines[2].computes("-", x, m) and lines[3].computes("exp", d)
            and lines[4].fills == 0 and lines[5].computes("", e, accumulate="+")
            and lines[5].target.array == s and lines[6].computes("/", e, s)
        )  # fmt: skip
        if not fits or not self.only_here(at, 7, m, d, e, s) or self.shapes[x] != self.shapes[y]:
            return 0
        summed = [k for k in lines[1].places[0].iterators if k not in lines[1].target.iterators]
        if len(summed) != 1:
            return 0
        dim = lines[1].places[0].iterators.index(summed[0])
        self.steps.append(lambda t: t.__setitem__(y, torch.softmax(t[x], dim)))
        return 7

    def layer_norm(self, at: int) -> int:
        lines = self.run(at, 13)
        if not lines or not lines[1].places or len(lines[8].operands) != 2:
            return 0
        s, _, m, c, q, v, _, f, g, h, k, scaled, y = self.named(lines)
        x, eps = lines[1].places[0].array, lines[8].operands[1]
        count, w, b = lines[2].operands[-1], lines[11].operands[-1], lines[12].operands[-1]
        fits = (
            lines[0].fills == 0 and lines[1].computes("", x, accumulate="+")
            and lines[2].computes("/", s, count) and lines[3].computes("-", x, m)
            and lines[4].computes("*", c, c) and lines[5].fills == 0
            and lines[6].computes("", q, accumulate="+") and lines[7].computes("/", v, count)
            and lines[8].computes("+", f, eps) and lines[9].computes("sqrt", g)
            and lines[10].computes("/", c, h)
            and isinstance(w, Place) and lines[11].computes("*", k, w.array)
            and isinstance(b, Place) and lines[12].computes("+", scaled, b.array)
        )  # fmt: skip
        if not fits or not self.only_here(at, 13, s, m, c, q, v, f, g, h, k, scaled):
            return 0
        over = self.shapes[w.array]
        if self.shapes[b.array] != over or self.shapes[x][-len(over) :] != over:
            return 0
        self.steps.append(lambda t: t.__setitem__(y, F.layer_norm(t[x], over, t[w.array], t[b.array], eps)))
        return 13

    def gelu(self, at: int) -> int:
        lines = self.run(at, 5)
        if not lines or not lines[0].places:
            return 0
        half, scaled, erf, one, y = self.named(lines)
        x = lines[0].places[0].array
        fits = (
            lines[0].computes("*", x, 0.5) and lines[1].computes("*", x, 0.5**0.5)
            and lines[2].computes("erf", scaled) and lines[3].computes("+", 1, erf)
            and lines[4].computes("*", half, one)
        )  # fmt: skip
        if not fits or not self.only_here(at, 5, half, scaled, erf, one):
            return 0
        self.steps.append(lambda t: t.__setitem__(y, F.gelu(t[x])))
        return 5

    def biased(self, at: int) -> int:
        """A product of two matrices and a bias along its rows."""
        lines = self.run(at, 3)
        if not lines or lines[0].fills != 0 or len(lines[1].places) != 2 or len(lines[2].places) != 2:
            return 0
        product, _, y = self.named(lines)
        a, b, (_, bias) = *lines[1].places, lines[2].places
        fits = (
            lines[1].computes("*", a.array, b.array, accumulate="+") and lines[1].target.array == product
            and lines[2].computes("+", product, bias.array) and self.only_here(at, 3, product)
            and [len(self.shapes[n]) for n in (a.array, b.array, product, bias.array)] == [2, 2, 2, 1]
            and lines[1].target.iterators == [0, 1] and a.iterators == [0, 2]
            and b.iterators in ([2, 1], [1, 2])
            and lines[2].target.iterators == [0, 1] and bias.iterators == [1]
        )  # fmt: skip
        if not fits:
            return 0
        turned = b.iterators == [1, 2]

        def step(t: Tensors) -> None:
            t[y] = torch.addmm(t[bias.array], t[a.array], t[b.array].T if turned else t[b.array])

        self.steps.append(step)
        return 3

    def padding(self, at: int) -> int:
        """Zeros around an array that convolutions alone read: they pad by themselves."""
        lines = self.run(at, 2)
        if not lines or lines[0].fills != 0 or len(lines[1].places) != 1 or lines[1].function:
            return 0
        name, inner = lines[1].target.array, lines[1].places[0]
        widths = [const for const, _ in lines[1].target.index]
        fits = (
            lines[0].target.array == name and not lines[1].accumulate
            and inner.plain(lines[1].sizes, self.shapes[inner.array])
            and inner.iterators == lines[1].target.iterators == list(range(len(widths)))
            and all(
                full == size + 2 * width
                for full, size, width in zip(self.shapes[name], self.shapes[inner.array], widths, strict=True)
            )
        )  # fmt: skip
        readers = [line for line in self.lines if name in [place.array for place in line.places]]
        if not fits or not any(widths) or name in self.outputs or any(r.accumulate != "+" for r in readers):
            return 0
        windows = [
            sum(len(terms) > 1 for _, terms in place.index)
            for line in readers
            for place in line.places
            if place.array == name
        ]
        rank = min(windows, default=0)
        if not rank or any(widths[:-rank]):
            return 0
        self.padded[name] = (inner.array, widths[-rank:])
        return 2


def prepare(job: Job) -> tuple[Variants, str]:
    torch_operators.settings()
    told = json.loads((job.folder / "job.json").read_text(encoding="utf-8"))
    sets = [
        {name: torch_operators.tensor(job, number, name) for name in job.inputs}
        for number in range(len(job.sets))
    ]

    def read(result: object) -> object:
        if isinstance(result, tuple):
            return tuple(torch_operators.numbers(each) for each in result)
        return torch_operators.numbers(result)

    def variant(whole: bool) -> Variant:
        program = Eager(told, whole)
        return Variant([partial(program, given) for given in sets], read)

    variants = {"line by line": lambda: variant(False), "PyTorch's own functions": lambda: variant(True)}
    return variants, torch_operators.version()


if __name__ == "__main__":
    serve(prepare, every_dtype=True)

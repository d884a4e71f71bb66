"""Operators of ONNX that are written as text, with their sizes open; checked against the standard's own
reference."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dojo_core.extras import NotInstalled, need
from dojo_core.from_code.onnx_calls import read_calls
from dojo_core.from_code.onnx_text import GRAPH, PRINTED, read_text
from dojo_core.from_code.onnx_written import Written
from dojo_core.from_code.recognise import ONNX_NODE, ONNX_PREFIX
from dojo_core.from_code.shapes import Came, axes_of_inputs, first_sizes
from dojo_core.from_code.source import SAY_SHAPES, Misfit, Source, Unchecked
from dojo_core.from_onnx.importer import Imported, NotImported, import_model
from dojo_core.program.expressions import TextError
from dojo_core.program.tree import Program

Values = dict[str, np.ndarray[Any, Any]]

_APART = (12, 10, 9, 8, 7, 6, 5, 4, 3, 2, 11, 13)  # sizes no two of which are alike


@dataclass(frozen=True)
class OnnxReading:
    """A graph of ONNX whose sizes are open."""

    tolerance: ClassVar[float] = 1e-5  # the standard's reference computes erf and attention in f32
    written: Written
    axes: Mapping[str, tuple[str, ...]]
    sizes: Mapping[str, int]
    notes: tuple[str, ...] = ()
    made: dict[tuple[int, ...], Imported] = field(default_factory=dict, repr=False)  # by sizes

    def imported(self, sizes: Mapping[str, int]) -> Imported:
        at = tuple(sizes.values())
        if at not in self.made:
            self.made[at] = _imported(self.written, _shapes(self.axes, sizes))
        return self.made[at]

    def program(self, sizes: Mapping[str, int]) -> Program:
        return self.imported(sizes).program

    def values(self, sizes: Mapping[str, int], inputs: Values) -> Values:
        from onnx.reference import ReferenceEvaluator

        if any(node.op_type in _MISCOMPUTED for node in self.written.nodes):
            raise Unchecked("the standard's reference is wrong for it")
        imported = self.imported(sizes)
        shapes = _shapes(self.axes, sizes)
        model = self.written.model(shapes, wide=True)
        feeds: Values = {}
        for name in self.written.inputs:
            port = next((p for p in imported.inputs if p.name == name and p.arrays), None)
            whole = self.written.element(name) not in ("f32", "f64", "f16", "bf16")
            values = np.ones(shapes[name]) if port is None else inputs[port.arrays[0]]
            feeds[name] = np.asarray(values, _WHOLE.get(self.written.element(name)) if whole else np.float64)
        outputs = [port for port in imported.outputs if port.arrays]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                results = ReferenceEvaluator(model).run([port.name for port in outputs], feeds)
        except Exception as fault:  # it raises what NumPy does, and refuses operators in ways of its own
            raise Unchecked("the standard's reference does not compute it") from fault
        return {port.arrays[0]: np.asarray(r) for port, r in zip(outputs, results, strict=True)}


_MISCOMPUTED = ("LRN",)  # onnx 1.23 goes through as many channels as there are images
_WHOLE = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
    "u32": np.uint32, "u64": np.uint64, "bool": np.bool_,
}  # fmt: skip


def read_onnx(text: str) -> OnnxReading:
    """Operators of ONNX as calls, or in a text format. Raises TextError."""
    try:
        need("onnx", "ONNX as text")
    except NotInstalled as missing:
        raise TextError("this is ONNX", f"{missing}.") from missing
    prefix = ONNX_PREFIX.match(text)
    begin = prefix.end() if prefix is not None else 0
    try:
        source = Source(text[begin:])
        textual = any(pattern.search(source.text) for pattern in (GRAPH, PRINTED, ONNX_NODE))
        written = read_text(source) if textual else read_calls(source)
        written.complete()
        axes = _axes(written)
        return OnnxReading(
            written,
            axes,
            first_sizes(axes, lambda sizes: _attempt(written, _shapes(axes, sizes)).fault is None),
        )
    except TextError as error:
        if begin and error.line == 1 and error.source:
            error.column, error.source = error.column + begin, text[:begin] + error.source
        raise


# ---------------------------------------------------------------------------- shapes

_TRIES = 24  # combinations of ranks: an operator may be many passes, made anew for each
_OF_FILES = ("Mend the model.", "Export the model again.")  # remedies for who has one
_IMAGE = ("BatchNormalization", "InstanceNormalization", "GroupNormalization", "GlobalAveragePool",
          "GlobalMaxPool", "GlobalLpPool", "LRN", "DepthToSpace", "SpaceToDepth")  # fmt: skip
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_MOSTLY = {
    "MatMul": (("m k", "k n"),),
    "Gemm": tuple((a, b, "n") for a in ("m k", "k m") for b in ("k n", "n k")),
    "LayerNormalization": (("m n", "n", "n"),),
    "RMSNormalization": (("m n", "n"),),
    "Attention": (("b h m d", "b h n d", "b h n d"),),
    "Gather": (("v d", "m"),),
    "PRelu": (("m n", "n"),),
    "QuantizeLinear": (("m n", "", ""),),
    "DequantizeLinear": (("m n", "", ""),),
    "Where": (("m n", "m n", "m n"),),
    "GridSample": (("n c h w", "n p q 2"),),
    "AffineGrid": (("n 2 3",),),
    "SwiGLU": (("m n", "m n"),),
    "OneHot": (("m", "", "2"),),
}


def _axes(written: Written) -> dict[str, tuple[str, ...]]:
    """The axes of each input: as the text says them, as the operators mostly have them where these go, else
    what is found by trying."""
    declared = written.declared
    usual = [dict(zip(node.input, forms, strict=False)) for node in written.nodes for forms in _usual(node)]
    for forms in usual:
        axes = {
            name: declared[name].axes if name in declared else tuple(forms[name].split())
            for name in written.inputs
            if name in declared or name in forms
        }
        names = dict.fromkeys(a for each in axes.values() for a in each if not a.isdigit())
        apart = dict(zip(names, _APART, strict=False))
        complete = len(axes) == len(written.inputs) and len(apart) == len(names)
        if complete and _attempt(written, _shapes(axes, apart)).fault is None:
            return axes
    if any(attribute.HasField("g") for node in written.nodes for attribute in node.attribute):
        _say_shapes(written)  # loops are unrolled, which is too long to be tried
    return axes_of_inputs(written.inputs, declared, lambda shapes: _attempt(written, shapes), _TRIES)


def _say_shapes(written: Written) -> None:
    for name in written.inputs:
        if name not in written.declared:
            written.source.fail(1, 1, f"the shape of {name} is not known", SAY_SHAPES)


def _usual(node: Any) -> Iterator[Sequence[str]]:
    """The axes that the inputs of an operator mostly have."""
    if node.op_type in _MOSTLY:
        yield from _MOSTLY[node.op_type]
    elif node.op_type in _IMAGE:
        yield ("n c h w", "c", "c", "c", "c")
    elif node.op_type in _GATES:
        said = {attribute.name: attribute for attribute in node.attribute}
        hidden = said["hidden_size"].i if "hidden_size" in said else 64
        ways = 2 if "direction" in said and said["direction"].s == b"bidirectional" else 1
        rows = _GATES[node.op_type] * hidden
        yield ("s b i", f"{ways} {rows} i", f"{ways} {rows} {hidden}", f"{ways} {2 * rows}")
    elif node.op_type in ("Conv", "ConvTranspose", "ConvInteger") or node.op_type.endswith("Pool"):
        said = {attribute.name: attribute for attribute in node.attribute}
        taps = list(said["kernel_shape"].ints) if "kernel_shape" in said else [3, 3]
        space, window = " ".join("dhw"[-len(taps) :]), " ".join(map(str, taps))
        groups = said["group"].i if "group" in said else 1
        channels, filters, inner = ("c", "f", "c") if groups == 1 else (f"{groups}", f"{groups}", "1")
        weights = f"{filters} {inner}" if node.op_type != "ConvTranspose" else f"{channels} {filters}"
        if groups > 1 and node.op_type == "ConvTranspose":
            weights = f"{channels} 1"
        yield (f"n {channels} {space}", f"{weights} {window}", filters)


def _shapes(axes: Mapping[str, tuple[str, ...]], sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(int(axis) if axis.isdigit() else sizes[axis] for axis in each)
        for name, each in axes.items()
    }


def _attempt(written: Written, shapes: Mapping[str, Sequence[int]]) -> Came:
    """How far the nodes go with these shapes: through, or as far as the first that is refused."""
    try:
        _imported(written, shapes)
    except Misfit as misfit:
        place = (misfit.line, misfit.column)
        return Came(written.places.index(place) if place in written.places else 0, misfit)
    return Came(math.inf)


def _imported(written: Written, shapes: Mapping[str, Sequence[int]]) -> Imported:
    """The graph at certain shapes. Raises Misfit where an operator does not take them."""
    try:
        return import_model(written.model(shapes))
    except NotImported as refused:
        reason = refused.reasons[0]
        place = next(
            (
                place
                for node, place in zip(written.nodes, written.places, strict=True)
                if reason.node in (node.name, *node.output) and reason.node
            ),
            (1, 1),
        )
        if reason.operator == "graph":
            written.source.fail(1, 1, reason.why.rstrip("."), "Take smaller sizes.", misfit=True)
        message = f"{reason.operator}: {reason.why}".rstrip(".")
        remedy = SAY_SHAPES if reason.remedy in ("", *_OF_FILES) else reason.remedy
        written.source.fail(*place, message, remedy, misfit=True)

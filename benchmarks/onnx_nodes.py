"""The standard's own judge: the node tests of the package onnx, in the interpreter and as compiled C.

    python -m benchmarks.onnx_nodes                       # all of ai.onnx, a table by operator, reasons
    python -m benchmarks.onnx_nodes Conv MaxPool          # some operators
    python -m benchmarks.onnx_nodes --test test_softmax_axis_0 --text
    python -m benchmarks.onnx_nodes --json judged.json --write docs/onnx.md
    python -m benchmarks.onnx_nodes --graphs              # each test as a graph of kernels, interpreted

A test passes where both ways of running give its outputs within its own tolerances. Its inputs are data: only
those that say a shape or a way of computing (``SAYS_SHAPE``) are taken for their values, and the judge fails
where another one was. Each test runs in a process that may crash or hang. Ends with 1 where one is wrong.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.guarded import guarded
from dojo_core.codegen.built import CompileError
from dojo_core.codegen.code import Code, NotGeneratable
from dojo_core.extras import NotInstalled, need
from dojo_core.faults import program_fault
from dojo_core.from_onnx.as_nodes import graph_of, nodes_of
from dojo_core.from_onnx.importer import Given, Imported, NotImported, Port, import_model
from dojo_core.from_onnx.values import FLOATS, Refusal, dtype_of, numpy_dtype
from dojo_core.graph.meaning import reference
from dojo_core.measure.pool import STORED, from_double, to_double
from dojo_core.program.interpret import interpret
from dojo_core.targets.cpu.build import build
from dojo_core.targets.cpu.codegen import generate

SECONDS = 40  # of one test, each way
PAPER = 0.83  # of the kernels of the specification, says the paper

# Inputs that say a shape or a way of computing, by operator; all others are data.
SAYS_SHAPE: dict[str, frozenset[str]] = {
    name: frozenset(inputs.split())
    for name, inputs in {
        "AffineGrid": "size", "BlackmanWindow": "size", "CenterCropPad": "shape",
        "Col2Im": "image_shape block_shape", "ConstantOfShape": "input", "CumSum": "axis", "CumProd": "axis",
        "DFT": "dft_length axis", "Dropout": "ratio training_mode", "Expand": "shape",
        "HammingWindow": "size", "HannWindow": "size", "If": "cond", "Loop": "M cond",
        "MaxUnpool": "output_shape",
        "MelWeightMatrix": "num_mel_bins dft_length sample_rate lower_edge_hertz upper_edge_hertz",
        "OneHot": "depth", "Pad": "pads axes", "Range": "start limit delta", "ReduceL1": "axes",
        "ReduceL2": "axes", "ReduceLogSum": "axes", "ReduceLogSumExp": "axes", "ReduceMax": "axes",
        "ReduceMean": "axes", "ReduceMin": "axes", "ReduceProd": "axes", "ReduceSum": "axes",
        "ReduceSumSquare": "axes", "Reshape": "shape", "Resize": "roi scales sizes",
        "STFT": "frame_step frame_length", "SequenceAt": "position", "SequenceErase": "position",
        "SequenceInsert": "position", "Slice": "starts ends axes steps", "Split": "split",
        "SplitToSequence": "split", "Squeeze": "axes", "Tile": "repeats", "TopK": "K", "Trilu": "k",
        "Unsqueeze": "axes", "Upsample": "scales",
    }.items()
}  # fmt: skip


# What some tests want is rounding noise where 0 is right: how far off a value may be to be told as that.
# They do not pass.
NOISE = {
    "test_dft_inverse": 1e-6,
    "test_dft_inverse_opset19": 1e-6,
}

# What operators compute that have no test in the package, and that its reference implementation cannot run.
BY_NUMPY: dict[str, Callable[..., np.ndarray]] = {
    "GlobalLpPool": lambda x: np.sqrt((x.astype(np.float64) ** 2).sum((2, 3), keepdims=True)).astype(x.dtype),
    "MaxRoiPool": lambda x, rois: max_roi_pool(x, rois, POOLED, SCALE),
    "Optional": np.negative,
}
POOLED, SCALE = (2, 3), 0.5  # of the one case of MaxRoiPool


@dataclass(frozen=True)
class Case:
    """A test: a model, its inputs, what it should give. ``operators`` are those it is about; ``says`` graph
    inputs that may be taken for their values."""

    name: str
    model: Any
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    rtol: float
    atol: float
    operators: tuple[str, ...]
    says: frozenset[str] = frozenset()
    ours: bool = False  # of an operator that the package has no test of (``own_cases``)


@dataclass
class Verdict:
    """What came of a test. ``interpreted`` and ``compiled`` are ok, refused, noise (``NOISE``),
    wrong, crash, timeout or fault."""

    name: str
    operators: tuple[str, ...]
    interpreted: str = "refused"
    compiled: str = "refused"
    reason: str = ""
    costly: tuple[str, ...] = ()
    specialised: dict[str, str] = field(default_factory=dict)
    ours: bool = False

    @property
    def ok(self) -> bool:
        return self.interpreted == self.compiled == "ok"

    @property
    def bad(self) -> bool:
        """Is it something that must not be: no refusal, and not right?"""
        return any(way not in ("ok", "refused", "noise") for way in (self.interpreted, self.compiled))


# ---------------------------------------------------------------------------- the tests


def collected(modules: Iterable[str] | None = None) -> list[Case]:
    """The package's node tests of ai.onnx, of all its operators or of some modules of it."""
    need("onnx", "The judge of operators")
    import importlib
    import warnings

    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if modules is None:
            tests = list(node.collect_testcases(None))
        else:
            for each in modules:
                importlib.import_module(f"onnx.backend.test.case.node.{each}")
            tests = list(node._NodeTestCases)
    cases: list[Case] = []
    plain = {t.name: t.model for t in tests if "_expanded" not in t.name}
    for test in tests:
        if not any(o.domain in ("", "ai.onnx") for o in test.model.opset_import):
            continue
        base = plain.get(test.name.partition("_expanded")[0], test.model)
        if any(n.domain not in ("", "ai.onnx") for n in test.model.graph.node):
            continue
        operators = tuple(dict.fromkeys(n.op_type for n in base.graph.node if n.domain in ("", "ai.onnx")))
        for inputs, outputs in test.data_sets:
            cases.append(
                Case(
                    test.name,
                    test.model,
                    tuple(inputs),
                    tuple(outputs),
                    test.rtol,
                    test.atol,
                    operators,
                    _says(base),
                )
            )
    return cases


def _says(model: Any) -> frozenset[str]:
    """The graph inputs that say a shape, by the operators that take them before the test is expanded."""
    import onnx.defs

    names: set[str] = set()
    versions = {o.domain: o.version for o in model.opset_import}
    for node in (n for n in model.graph.node if n.domain in ("", "ai.onnx")):
        schema = onnx.defs.get_schema(node.op_type, versions.get("", 1), "")
        formal = [i.name for i in schema.inputs]
        for k, name in enumerate(node.input):
            if formal and formal[min(k, len(formal) - 1)] in SAYS_SHAPE.get(node.op_type, ()):
                names.add(name)
    return frozenset(names)


def own_cases() -> list[Case]:
    """Operators that the package has no node test of, judged by its reference implementation; those that it
    cannot run (``BY_NUMPY``) by NumPy."""
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    rng = np.random.default_rng(33)
    x, y = (rng.standard_normal((2, 3, 4, 5)).astype(np.float32) for _ in range(2))
    at = np.array(1, np.int64)
    rois = np.array([[1, 1, 2, 7, 9], [0, -3, 0, 40, 3], [1, 20, 20, 30, 30]], np.float32)
    tensor = helper.make_tensor_value_info

    def node(name: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Any:
        return helper.make_node(name, inputs, outputs, **attributes)

    pair = node("SequenceConstruct", ["x", "y"], ["s"])
    graphs: dict[str, list[Any]] = {
        "ConcatFromSequence": [pair, node("ConcatFromSequence", ["s"], ["r"], axis=1)],
        "SequenceAt": [pair, node("SequenceAt", ["s", "at"], ["r"])],
        "SequenceConstruct": [pair, node("ConcatFromSequence", ["s"], ["r"], axis=0, new_axis=1)],
        "SequenceErase": [
            pair, node("SequenceErase", ["s", "at"], ["t"]), node("ConcatFromSequence", ["t"], ["r"], axis=0),
        ],
        "SequenceEmpty": [
            node("SequenceEmpty", [], ["e"]), node("SequenceInsert", ["e", "x"], ["t"]),
            node("ConcatFromSequence", ["t"], ["r"], axis=0),
        ],
        "SequenceLength": [pair, node("SequenceLength", ["s"], ["r"])],
        "Optional": [
            node("Optional", ["x"], ["o"]), node("OptionalGetElement", ["o"], ["e"]),
            node("Neg", ["e"], ["r"]),
        ],
        "GlobalLpPool": [node("GlobalLpPool", ["x"], ["r"], p=2)],
        "MaxRoiPool": [node("MaxRoiPool", ["x", "rois"], ["r"], pooled_shape=POOLED, spatial_scale=SCALE)],
    }  # fmt: skip
    cases = []
    for name, nodes in graphs.items():
        used = {i for n in nodes for i in n.input}
        given = {k: v for k, v in {"x": x, "y": y, "at": at, "rois": rois}.items() if k in used}
        inputs = [tensor(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in given.items()]
        kind = TensorProto.INT64 if name == "SequenceLength" else TensorProto.FLOAT
        graph = helper.make_graph(nodes, f"ours_{name.lower()}", inputs, [tensor("r", kind, None)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        by_numpy = BY_NUMPY.get(name)
        wanted = (
            ReferenceEvaluator(model).run(None, given) if by_numpy is None else [by_numpy(*given.values())]
        )
        cases.append(
            Case(
                f"ours_{name.lower()}",
                model,
                tuple(given.values()),
                tuple(wanted),
                1e-3,
                1e-7,
                (name,),
                frozenset(["at"]),
                True,
            )
        )
    return cases


def max_roi_pool(x: np.ndarray, rois: np.ndarray, pooled: tuple[int, int], scale: float) -> np.ndarray:
    """Fast R-CNN's: the largest of ``x`` [n, c, h, w] in each of ``pooled`` cells of each region, a
    picture's number and its corners; 0 in a cell without elements."""
    result = np.zeros((len(rois), x.shape[1], *pooled), x.dtype)
    for number, (image, *corners) in enumerate(rois):
        left, top, right, bottom = (
            int(np.sign(v) * np.floor(abs(v) + 0.5)) for v in np.multiply(corners, scale)
        )
        spans = []
        for first, last, cells, size in zip((top, left), (bottom, right), pooled, x.shape[2:], strict=True):
            cell = np.float32(max(last - first + 1, 1)) / np.float32(cells)
            ends = [(np.floor(k * cell), np.ceil((k + 1) * cell)) for k in map(np.float32, range(cells))]
            spans.append([slice(*(int(np.clip(end + first, 0, size)) for end in each)) for each in ends])
        for i, rows in enumerate(spans[0]):
            for j, columns in enumerate(spans[1]):
                window = x[int(image), :, rows, columns]
                if window.size:
                    result[number, :, i, j] = window.max((1, 2))
    return result


# ---------------------------------------------------------------------------- values in and out


def plain(value: Any) -> Any:
    """A test's value as NumPy arrays, lists of them, or None."""
    from onnx import SequenceProto, TensorProto, numpy_helper

    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return None if value is None else np.asarray(value)


def described(value: Any) -> Given:
    """What the importer is told of an input: its shape; its value, for those that say a shape."""
    if value is None:
        return Given(absent=True)
    if isinstance(value, list):
        return Given(items=tuple(described(v) for v in value))
    return Given(shape=value.shape, values=value)


def numbers(value: Any, element: str) -> Any:
    """An array of a test as the interpreter takes it."""
    if element in FLOATS:
        return (
            value.astype(np.float64)
            if value.dtype.kind == "f"
            else value.astype(np.float32).astype(np.float64)
        )
    return value if value.dtype.kind in "iub" else value.astype(np.int64)


def arrays_of(imported: Imported, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The text's input arrays by name, as numbers."""
    arrays: dict[str, Any] = {}

    def take(port: Port, value: Any) -> None:
        if port.sequence:
            for item, each in zip(port.items, value, strict=True):
                take(item, each)
        elif port.arrays:
            arrays[port.arrays[0]] = numbers(value, port.element)

    for port in imported.inputs:
        take(port, inputs[port.name])
    elements = {b: imported.program.buffer_of[b].dtype for b in imported.program.inputs}
    for name, values in imported.weights.items():
        arrays[name] = numbers(np.asarray(values), elements[name])
    shapes = {b: tuple(d.size for d in imported.program.buffer_of[b].dims) for b in imported.program.inputs}
    return {name: np.reshape(arrays[name], shapes[name]) for name in imported.program.inputs}


def results_of(outputs: Sequence[Port], arrays: Mapping[str, Any]) -> list[Any]:
    """A model's outputs as a test has them, from the text's."""

    def result(port: Port) -> Any:
        if port.absent:
            return None
        if port.sequence:
            return [result(item) for item in port.items]
        if not port.arrays:
            return port.values
        assert port.shape is not None
        with np.errstate(all="ignore"):
            return np.reshape(arrays[port.arrays[0]], port.shape).astype(numpy_dtype(port.element))

    return [result(port) for port in outputs]


def difference(given: Any, wanted: Any, rtol: float, atol: float) -> str:
    """What is unlike, by the rules of the package's own runner; empty where nothing is."""
    if wanted is None or given is None:
        return "" if wanted is given else "There is no value, or one too many."
    if isinstance(wanted, list):
        if len(wanted) != len(given):
            return f"A sequence of {len(given)}, not {len(wanted)}."
        return next(
            filter(None, (difference(g, w, rtol, atol) for g, w in zip(given, wanted, strict=True))), ""
        )
    if given.shape != wanted.shape:
        return f"The shape {list(given.shape)}, not {list(wanted.shape)}."
    if given.dtype != wanted.dtype:
        return f"The dtype {given.dtype}, not {wanted.dtype}."
    if given.dtype.kind not in "fiub":
        rtol = max(rtol, 2**-6) if given.dtype.name == "bfloat16" else rtol
        given, wanted = given.astype(np.float32), wanted.astype(np.float32)
    try:
        np.testing.assert_allclose(given, wanted, rtol=rtol, atol=atol)
    except AssertionError as unlike:
        return " ".join(str(unlike).split())[:300]
    return ""


# ---------------------------------------------------------------------------- the two ways


class Late(Exception):
    """A test took too long."""


def _late(*_: object) -> None:
    raise Late


@dataclass
class Prepared:
    """A test's kernel: its C and its inputs, for the second way."""

    verdict: Verdict
    outputs: tuple[Port, ...] = ()
    code: Code | None = None
    arrays: dict[str, Any] = field(default_factory=dict)


def prepare(case: Case, check: bool = True, graphs: bool = False) -> Prepared:
    """Import a test's model, interpret it, generate its C; or interpret it as a graph of kernels alone."""
    verdict = Verdict(case.name, case.operators, ours=case.ours)
    prepared = Prepared(verdict)
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(SECONDS)
    try:
        if graphs:
            _interpret_graph(case, verdict)
        else:
            _prepare(case, prepared, check)
    except NotImported as refused:
        if any(r.unforeseen for r in refused.reasons):
            verdict.interpreted = verdict.compiled = "fault"
        verdict.reason = "; ".join(dict.fromkeys(f"{r.operator}: {r.why}" for r in refused.reasons))
    except NotGeneratable as refused:
        verdict.compiled, verdict.reason = "refused", str(refused)
    except Late:
        way = "interpreted" if verdict.interpreted != "ok" else "compiled"
        setattr(verdict, way, "timeout")
        verdict.reason = f"It took more than {SECONDS} s."
    except Exception as fault:
        way = "interpreted" if verdict.interpreted != "ok" else "compiled"
        setattr(verdict, way, "fault")
        where = traceback.extract_tb(fault.__traceback__)[-1]
        verdict.reason = f"{type(fault).__name__}: {fault} ({Path(where.filename).name}:{where.lineno})"
    finally:
        signal.alarm(0)
    return prepared


def _inputs(case: Case) -> dict[str, Any]:
    initial = {t.name for t in case.model.graph.initializer}
    names = [
        i.name
        for i in case.model.graph.input
        if i.name not in initial or len(case.inputs) == len(case.model.graph.input)
    ]
    return dict(zip(names, map(plain, case.inputs), strict=False))


def _prepare(case: Case, prepared: Prepared, check: bool) -> None:
    verdict = prepared.verdict
    inputs = _inputs(case)
    try:
        imported = import_model(
            case.model, {n: described(v) for n, v in inputs.items()}, case.name.removeprefix("test_")
        )
    except Refusal as refused:
        verdict.reason = str(refused)
        return
    verdict.costly = imported.costly
    verdict.specialised = dict(imported.specialised)
    data = set(imported.specialised) - case.says
    if data:
        verdict.interpreted = verdict.compiled = "fault"
        verdict.reason = f"Data was taken for its values: {', '.join(sorted(data))} ({imported.specialised})."
        return
    prepared.outputs = imported.outputs
    if check:
        fault = program_fault(imported.program)
        if fault is not None:
            verdict.interpreted = verdict.compiled = "fault"
            verdict.reason = f"The text is refused: {fault}"
            return
    prepared.arrays = arrays_of(imported, inputs)
    given = results_of(imported.outputs, interpret(imported.program, prepared.arrays))
    _judged(case, verdict, "interpreted", given)
    prepared.code = generate(imported.program)


def _interpret_graph(case: Case, verdict: Verdict) -> None:
    inputs = _inputs(case)
    try:
        nodes = nodes_of(case.model, {n: described(v) for n, v in inputs.items()}, case.name)
    except Refusal as refused:
        verdict.reason = str(refused)
        return
    elements = {tensor.name: tensor.dtype for tensor in nodes.inputs}
    flat = {name: each for n, v in inputs.items() for name, each in _flat(n, v) if name in elements}
    given = reference(graph_of(nodes), {n: numbers(each, elements[n]) for n, each in flat.items()})
    wanted = dict(zip((o.name for o in case.model.graph.output), map(plain, case.outputs), strict=False))
    for name, each in (pair for n, v in wanted.items() for pair in _flat(n, v)):
        if each.size:  # of what has no elements nothing is computed
            with np.errstate(all="ignore"):
                ours = given[name].astype(each.dtype)
            unlike = difference(ours, each, case.rtol, NOISE.get(case.name, case.atol))
            if unlike:
                verdict.interpreted = verdict.compiled = "wrong"
                verdict.reason = f"{name}: {unlike}"
                return
    verdict.interpreted = verdict.compiled = "ok"


def _flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of a value by the names that a graph has for them."""
    if isinstance(value, list):
        for k, each in enumerate(value):
            yield from _flat(f"{name}_{k}", each)
    elif value is not None:
        yield name, value


def _judged(case: Case, verdict: Verdict, way: str, given: list[Any]) -> None:
    unlike = ""
    for k, (each, wanted) in enumerate(zip(given, map(plain, case.outputs), strict=True)):
        unlike = unlike or (
            f"output {k}: {said}" if (said := difference(each, wanted, case.rtol, case.atol)) else ""
        )
    setattr(verdict, way, "wrong" if unlike else "ok")
    if unlike and case.name in NOISE:
        close = (
            difference(g, w, case.rtol, NOISE[case.name])
            for g, w in zip(given, map(plain, case.outputs), strict=True)
        )
        if not any(close):
            setattr(verdict, way, "noise")
            unlike = "What it wants is the rounding noise of another implementation, in place of 0."
    if unlike:
        verdict.reason = f"{way}: {unlike}" if getattr(verdict, way) == "wrong" else unlike


def run_compiled(case: Case, prepared: Prepared, function: Any) -> Verdict:
    """The second way: call the compiled kernel (of ctypes) on the test's inputs."""
    verdict, code = prepared.verdict, prepared.code
    assert code is not None
    arrays = []
    for parameter in code.parameters:
        array = _aligned(parameter.shape, STORED[parameter.dtype], 77)
        if parameter.role == "in":
            array[...] = from_double(prepared.arrays[parameter.name], parameter.dtype)
        arrays.append(array)
    workspace = _aligned((code.workspace_bytes + 64,), np.uint8, 255)
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    function(pointers, ctypes.c_void_p(workspace.ctypes.data))
    results = {
        p.name: _read(a, p.dtype) for p, a in zip(code.parameters, arrays, strict=True) if p.role == "out"
    }
    _judged(case, verdict, "compiled", results_of(prepared.outputs, results))
    return verdict


def _read(array: Any, dtype: str) -> Any:
    return to_double(array, dtype) if dtype in FLOATS and dtype not in ("f64", "f32", "f16") else array


def _aligned(shape: Sequence[int], dtype: Any, garbage: int) -> Any:
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    raw = np.full(size + 64, garbage, np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + size].view(dtype).reshape(shape)


def judge(
    cases: Sequence[Case], jobs: int = 2, check: bool = True, compiled: bool = True, graphs: bool = False
) -> list[Verdict]:
    """Both ways, or as graphs alone, each test in a process that may crash."""
    prepared: list[Prepared] = []
    ways = guarded(lambda k: prepare(cases[k], check, graphs), len(cases), SECONDS + 20, jobs)
    for case, result in zip(cases, ways, strict=True):
        if isinstance(result, str):
            result = Prepared(
                Verdict(case.name, case.operators, result, result, f"The interpreter's process: {result}.")
            )
        prepared.append(result)
    if compiled:
        _run_all(cases, prepared, jobs)
    return [p.verdict for p in prepared]


def _run_all(cases: Sequence[Case], prepared: Sequence[Prepared], jobs: int) -> None:
    there = [k for k, p in enumerate(prepared) if p.code is not None]
    built = build([p.code for k in there if (p := prepared[k]).code is not None], jobs, beside=True)
    runnable: list[tuple[int, str, str]] = []
    for k, each in zip(there, built, strict=True):
        if isinstance(each, CompileError):
            prepared[k].verdict.compiled = "fault"
            prepared[k].verdict.reason = f"The C does not compile: {each.message[:200]}"
        else:
            runnable.append((k, each.library, each.symbol))

    def run(j: int) -> Verdict:
        k, library, symbol = runnable[j]
        return run_compiled(cases[k], prepared[k], getattr(ctypes.CDLL(library), symbol))

    for (k, _, _), result in zip(runnable, guarded(run, len(runnable), SECONDS, jobs), strict=True):
        if isinstance(result, str):
            prepared[k].verdict.compiled = result
            prepared[k].verdict.reason = f"The compiled kernel's process: {result}."
        else:
            prepared[k].verdict = result


# ---------------------------------------------------------------------------- the answer


def operators_of_the_standard() -> list[str]:
    """ai.onnx's operators in its newest opset that are not deprecated."""
    import onnx.defs

    return sorted(s.name for s in onnx.defs.get_all_schemas() if s.domain == "" and not s.deprecated)


@dataclass(frozen=True)
class Row:
    """An operator: how many of its tests pass, and what there is to say."""

    operator: str
    passed: int
    tests: int
    costly: tuple[str, ...]
    reasons: tuple[str, ...]
    ours: bool = False

    @property
    def done(self) -> bool:
        return self.passed > 0


def rows_of(verdicts: Sequence[Verdict], operators: Sequence[str]) -> list[Row]:
    by: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        for name in verdict.operators:
            by[name].append(verdict)
    rows = []
    for name in operators:
        tests = by[name]
        costly = tuple(dict.fromkeys(c for v in tests if v.ok for c in v.costly))
        reasons = tuple(dict.fromkeys(v.reason for v in tests if not v.ok))
        rows.append(
            Row(
                name,
                sum(v.ok for v in tests),
                len(tests),
                costly,
                reasons,
                bool(tests) and all(v.ours for v in tests),
            )
        )
    return rows


def summary(verdicts: Sequence[Verdict], rows: Sequence[Row]) -> list[str]:
    theirs = [v for v in verdicts if not v.ours]
    passed, ways = sum(v.ok for v in theirs), ("interpreted", "compiled")
    done = [r for r in rows if r.done]
    whole = [r for r in done if r.passed == r.tests]
    own = [r.operator for r in done if r.ours]
    by_numpy = [name for name in own if name in BY_NUMPY]
    costly = [v for v in theirs if v.ok and v.costly]
    bad = [v for v in verdicts if v.bad]
    lines = [
        f"{passed} of {len(theirs)} tests pass both ways ("
        + ", ".join(f"{sum(getattr(v, way) == 'ok' for v in theirs)} {way}" for way in ways) + ").",
        f"{len(done)} of {len(rows)} operators pass at least one test, {len(whole)} all of theirs; "
        f"{len(own)} of these have no test in the package, and are judged by its reference implementation"
        + (f", {' and '.join(by_numpy)} by values of NumPy." if by_numpy else "."),
        f"{len(done)} of {len(rows)} is {len(done) / len(rows):.1%}; the paper says {PAPER:.0%} "
        "of the kernels of the specification.",
        f"{len(costly)} of the tests that pass rest on an encoding that costs more than one pass over the "
        f"result; {sum(bool(r.costly) for r in done)} operators do.",
    ]  # fmt: skip
    if bad:
        lines.append(f"{len(bad)} tests are WRONG, or crash, hang or end in an internal fault.")
    return lines


def page(verdicts: Sequence[Verdict], rows: Sequence[Row], head: str) -> str:
    """docs/onnx.md: what is above its table, the summary, the table."""
    import onnx

    lines = [head.rstrip(), "", *(f"- {line}" for line in summary(verdicts, rows)), ""]
    lines += [
        f"Of the package onnx {onnx.__version__}, opset {onnx.defs.onnx_opset_version()}; "
        "`python -m benchmarks.onnx_nodes --write docs/onnx.md`.",
        "",
    ]
    lines += ["| operator | tests | rests on | why the others do not pass |", "|---|---:|---|---|"]
    for row in rows:
        tests = f"{row.passed}/{row.tests}" + (" (ours)" if row.ours else "") if row.tests else "none"
        reasons = "; ".join(row.reasons[:3]) + ("; …" if len(row.reasons) > 3 else "")
        lines.append(
            f"| {row.operator} | {tests} | {', '.join(row.costly)} | {reasons[:300].replace('|', '/')} |"
        )
    return "\n".join(lines) + "\n"


MARK = "## The judge's table"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.onnx_nodes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("operators", nargs="*", help="operators, all where none is named")
    parser.add_argument("--test", action="append", default=[], help="a test by name, or the beginning of one")
    parser.add_argument("--text", action="store_true", help="print the texts")
    parser.add_argument("--interpreted", action="store_true", help="the interpreter alone")
    parser.add_argument("--graphs", action="store_true", help="as graphs of kernels, the interpreter alone")
    parser.add_argument("--no-check", action="store_true", help="leave out what dojo check asks of each text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the verdicts there")
    parser.add_argument("--write", type=Path, help="write the table into this page, below its head")
    options = parser.parse_args(arguments)
    try:
        cases = [*collected(), *own_cases()]
    except NotInstalled as absent:
        print(absent)
        return 2
    if options.operators:
        cases = [c for c in cases if set(c.operators) & set(options.operators)]
    if options.test:
        cases = [c for c in cases if any(c.name.startswith(t) for t in options.test)]
    started = time.monotonic()
    compiled = not (options.interpreted or options.graphs)
    verdicts = judge(cases, options.jobs, not options.no_check, compiled, options.graphs)
    rows = rows_of(
        verdicts, [o for o in operators_of_the_standard() if not options.operators or o in options.operators]
    )
    for verdict in verdicts:
        if not verdict.ok:
            sign = "WRONG  " if verdict.bad else "refused"
            print(f"{sign} {verdict.name} ({verdict.interpreted}, {verdict.compiled}): {verdict.reason}")
    if options.text:
        _print_texts(cases)
    if options.graphs:
        print(f"{sum(v.ok for v in verdicts)} of {len(verdicts)} tests pass as graphs of kernels.")
    else:
        print("\n".join(summary(verdicts, rows)))
    print(f"{time.monotonic() - started:.0f} s.")
    if options.json:
        options.json.write_text(json.dumps([asdict(v) for v in verdicts], indent=1), encoding="utf-8")
    if options.write:
        head = (
            options.write.read_text(encoding="utf-8").partition(MARK)[0]
            if options.write.exists()
            else "# ONNX\n\n"
        )
        options.write.write_text(page(verdicts, rows, head + MARK), encoding="utf-8")
    return 1 if any(v.bad for v in verdicts) else 0


def _print_texts(cases: Sequence[Case]) -> None:
    for case in cases:
        try:
            print(
                import_model(case.model, {n: described(v) for n, v in _inputs(case).items()}, case.name).text
            )
        except NotImported as refused:
            print(refused)


__all__ = ["Case", "Verdict", "collected", "dtype_of", "judge", "own_cases"]

if __name__ == "__main__":
    sys.exit(main())

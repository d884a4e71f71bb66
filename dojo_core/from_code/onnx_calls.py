"""ONNX as calls, ``y = Gemm(a, b, c, transB=1)`` or ``make_node("Gemm", …)``: read by Python's parser."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from dojo_core.from_code.onnx_written import Place, Written, newest, schema_of, usual_dtype
from dojo_core.from_code.plain import fail
from dojo_core.from_code.python import parsed, shapes_said
from dojo_core.from_code.source import Declared, Source, axes_of
from dojo_core.from_onnx.values import ELEMENTS, numpy_dtype
from dojo_core.spelling import meant

_ALONE = 2  # inputs of an operator of any number of them that is written without names

# Element types as onnx.TensorProto calls them.
_CODES = {
    "FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BOOL": 9,
    "FLOAT16": 10, "DOUBLE": 11, "UINT32": 12, "UINT64": 13, "BFLOAT16": 16,
}  # fmt: skip


def read_calls(source: Source) -> Written:
    """Calls of operators, or of ``make_node``, as nodes. Raises TextError."""
    tree = parsed(source)
    calls = _Calls(source, tree)
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) == "make_node"]
    if made:
        calls.script(tree, made)
        return calls.written
    body: Sequence[ast.stmt] = [
        node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)
    ]
    for node in body:
        if isinstance(node, ast.FunctionDef):
            calls.parameters(node)
            body = node.body
    for statement in body:
        calls.statement(statement)
    return calls.written


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


class _Calls:
    """Statements of calls, one node each; values that are written out are constants."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.written = Written(source, {"": newest()}, declared=shapes_said(source))
        self.literals: dict[str, Any] = {}  # by name
        self.arrays: dict[str, str] = {}  # by name: its name in the graph, where each is given once
        self.taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}

    def place(self, node: ast.expr | ast.keyword) -> Place:
        line = self.source.lines[node.lineno - 1] if node.lineno <= len(self.source.lines) else ""
        # Python counts bytes.
        return node.lineno, len(line.encode()[: node.col_offset].decode(errors="ignore")) + 1

    def parameters(self, function: ast.FunctionDef) -> None:
        """What a function's annotations say: ``x: FLOAT["m", 64]``."""
        self.written.name = function.name
        for each in function.args.args:
            match each.annotation:
                case ast.Subscript(ast.Name(element), axes) if element in _CODES:
                    parts = axes.elts if isinstance(axes, ast.Tuple) else [axes]
                    named = tuple(str(part.value) for part in parts if isinstance(part, ast.Constant))
                    if len(named) == len(parts):
                        self.written.declared[each.arg] = Declared(named, ELEMENTS[_CODES[element]])

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign([ast.Name() | ast.Tuple() as target], ast.Call() as call):
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                names = [part.id for part in parts if isinstance(part, ast.Name)]
                if len(names) < len(parts):
                    fail(self.source, target, "a result that is no name", "Write: y = Relu(x)")
                self.node(call, names, assigned=True)
            case ast.Assign([ast.Name(name)], value):
                self.literals[name] = self.literal(value)
            case ast.Expr(ast.Call() as call):
                self.node(call, [self.fresh("y")])
            case ast.Return(ast.Call() as call):
                self.written.outputs.append(self.node(call, [self.fresh("y")]))
            case ast.Return(ast.Name(name)):
                self.written.outputs.append(self.array(name))
            case ast.Return(ast.Tuple(parts)) if all(isinstance(part, ast.Name) for part in parts):
                self.written.outputs += [self.array(part.id) for part in parts if isinstance(part, ast.Name)]
            case ast.Expr(ast.Constant(str())):
                pass  # a docstring
            case _:
                fail(
                    self.source, statement, "no call of an operator of ONNX", "Write: y = Softmax(x, axis=-1)"
                )

    def array(self, name: str) -> str:
        """What an array is called in the graph now."""
        return self.arrays.setdefault(name, name)

    def node(self, call: ast.Call, outputs: list[str], assigned: bool = False) -> str:
        """A call as a node; the name of its first output. A name that is ``assigned`` anew is another in the
        graph."""
        operator, place = _called(call), self.place(call)
        schema = schema_of(self.source, place, operator, self.written.opsets[""])
        inputs = [self.input(schema, k, each) for k, each in enumerate(call.args)]
        attributes: dict[str, Any] = {}
        formal = {each.name.lower(): k for k, each in enumerate(schema.inputs)}
        for keyword in call.keywords:
            if keyword.arg is None:
                self.source.fail(*self.place(keyword), "attributes by **", "Write each: axis=-1.")
            name = keyword.arg
            if name in schema.attributes:
                attributes[name] = self.literal(keyword.value)
            elif name.lower() in formal:
                k = formal[name.lower()]
                inputs += [""] * (k + 1 - len(inputs))
                inputs[k] = self.input(schema, k, keyword.value)
            else:
                known = [*schema.attributes, *(each.name for each in schema.inputs)]
                remedy = meant(name, known) or f"{operator} has {', '.join(known)}."
                self.source.fail(*self.place(keyword), f"{operator} has no attribute {name}", remedy)
        if not call.args:
            inputs = self.unnamed(schema, inputs)
        if assigned:
            named = [self.fresh(name) if name in self.arrays else name for name in outputs]
            self.arrays |= dict(zip(outputs, named, strict=True))
            outputs = named
        self.written.node(operator, inputs, outputs, attributes, place)
        return outputs[0]

    def unnamed(self, schema: Any, inputs: Sequence[str]) -> list[str]:
        """Inputs of an operator that is written without them, as the standard calls them."""
        names: list[str] = []
        for k, each in enumerate(schema.inputs):
            if k < len(inputs) and inputs[k]:
                names.append(inputs[k])
            elif each.option.name == "Variadic":
                names += [self.fresh(each.name) for _ in range(_ALONE)]
            else:
                names.append(self.fresh(each.name) if each.option.name == "Single" else "")
        while names and not names[-1]:
            names.pop()
        return names

    def input(self, schema: Any, k: int, value: ast.expr) -> str:
        """The name of an input: an array, what a call inside gives, or a constant; empty where it is left
        out."""
        match value:
            case ast.Constant(None):
                return ""
            case ast.Name(name) if name not in self.literals:
                return self.array(name)
            case ast.Call() as call:
                return self.node(call, [self.fresh(_called(call).lower())])
        from onnx import numpy_helper

        literal = self.literals[value.id] if isinstance(value, ast.Name) else self.literal(value)
        if not schema.inputs:
            fail(self.source, value, f"{schema.name} takes no inputs", "Leave it out.")
        formal = schema.inputs[min(k, len(schema.inputs) - 1)]
        types = set(formal.types)
        try:
            values = np.asarray(literal, numpy_dtype(usual_dtype(types)))
        except (ValueError, TypeError, OverflowError):
            fail(self.source, value, "a value that is no array of numbers", "Write numbers, such as [1, 2].")
        if types == {"tensor(int64)"} or formal.name in _OF_ONE_AXIS:
            values = np.atleast_1d(values)
        name = self.fresh("constant")
        self.written.constants[name] = numpy_helper.from_array(values, name)
        return name

    def literal(self, value: ast.expr) -> Any:
        """Numbers, texts and lists of them, as they are written."""
        try:
            return ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            fail(
                self.source,
                value,
                "neither an array nor a number",
                "Give numbers and lists of numbers, or the name of an array.",
            )

    def fresh(self, stem: str) -> str:
        """A name that the text has not."""
        name, number = stem, 0
        while name in self.taken:
            number += 1
            name = f"{stem}{number}"
        self.taken.add(name)
        return name

    # ------------------------------------------------------------------ onnx.helper

    def script(self, tree: ast.Module, made: Sequence[ast.Call]) -> None:
        """The calls of ``make_node`` in a script, with the shapes and the opset that it says beside them."""
        for node in ast.walk(tree):
            match node:
                case ast.Call(args=[ast.Constant(str(name)), ast.Attribute(attr=element), sizes]) if (
                    _called(node) == "make_tensor_value_info" and element in _CODES
                ):
                    axes = self.literal(sizes)
                    if isinstance(axes, list | tuple):
                        shape = axes_of(", ".join(map(str, axes)))
                        self.written.declared[name] = Declared(shape, ELEMENTS[_CODES[element]])
                case ast.Call(args=[ast.Constant(""), ast.Constant(int(version))]) if _called(node) in (
                    "make_opsetid",
                    "make_operatorsetid",
                ):
                    self.written.opsets[""] = version
        for call in sorted(made, key=lambda call: (call.lineno, call.col_offset)):
            values = dict(zip(("op_type", "inputs", "outputs"), call.args, strict=False))
            values |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
            said = {name: self.literal(value) for name, value in values.items()}
            operator, inputs, outputs = (said.pop(each, None) for each in ("op_type", "inputs", "outputs"))
            for beside in ("name", "doc_string"):
                said.pop(beside, None)
            if not isinstance(operator, str) or not _names(inputs) or not _names(outputs):
                example = 'Write: make_node("Softmax", ["x"], ["y"], axis=-1)'
                fail(self.source, call, "a call of make_node without names of inputs and outputs", example)
            self.written.node(operator, inputs, outputs, said, self.place(call))


_OF_ONE_AXIS = ("starts", "ends", "axes", "steps")  # inputs that are lists, also where one number is written


def _names(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)

"""A walk through a kernel in NumPy or PyTorch with an algebra of arrays: nothing of the text is run.

What is not on the lists here and in the files of functions is a fault, marked in the text.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from dojo_core.from_code import views
from dojo_core.from_code.functions import FUNCTIONS, Algebra, Never, elementwise, is_array, is_number
from dojo_core.from_code.plain import fail
from dojo_core.from_code.python import MODULES, Kernel
from dojo_core.primitives import BuildError
from dojo_core.program.expressions import TextError

MOST_STEPS = 4000  # expressions and statements that are gone through, those of loops again each time
MOST_DEPTH = 120  # of expressions within one another

_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "pow", ast.Mod: "mod",
    ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "shl", ast.RShift: "shr",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.USub: "neg", ast.Invert: "not",
}  # fmt: skip

_NAMES: dict[str, Any] = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan, "newaxis": None}
_DTYPES = {
    "float32": "f32", "float64": "f64", "float": "f32", "double": "f64", "int32": "i32", "int64": "i64",
    "int": "i32", "long": "i64", "bool": "bool", "bool_": "bool",
}  # fmt: skip
_SAME = {"contiguous", "copy", "clone", "detach", "item", "cpu", "numpy", "asarray", "array", "tensor"}

_BUILTINS: dict[str, Callable[..., Any]] = {
    "len": lambda m, x: m.shape(x)[0] if is_array(x) else len(x),
    "range": lambda m, *limits: list(_range(limits)),
    "float": lambda m, x: float(x) if is_number(x) else x,
    "int": lambda m, x: int(x) if is_number(x) else x,
    "tuple": lambda m, x=(): tuple(_several(x)),
    "list": lambda m, x=(): list(_several(x)),
}


def _several(x: Any) -> Any:
    if not isinstance(x, tuple | list):
        raise Never("An array is not gone through element by element.")
    return x


def _range(limits: Sequence[int]) -> range:
    whole = range(*limits)
    if len(whole) > 64:
        raise Never("A loop of more than 64 rounds is not unrolled: write over whole arrays, or a loop in C.")
    return whole


# What is written in place of functions that there are not.
_INSTEAD = {
    "dropout": "In inference it is its input: leave it out.",
    "cross_entropy": "Write -(t * log_softmax(x, axis=-1)).sum(axis=-1) with t of 0 and 1.",
    "nll_loss": "Write -(t * x).sum(axis=-1) with t of 0 and 1.",
    "zip": "Write it over whole arrays: a * b in place of [p * q for p, q in zip(a, b)].",
}


class Pair(tuple[Any, Any]):
    """What PyTorch's max over one axis gives: values and places."""

    values = property(lambda self: self[0])
    indices = property(lambda self: self[1])


class _Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


@dataclass
class Walk:
    """Goes through a kernel with an algebra. Raises TextError (Misfit where shapes do not go together)."""

    kernel: Kernel
    m: Algebra
    steps: int = 0
    depth: int = 0
    names: dict[str, Any] = field(default_factory=dict)

    def results(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs by name, of the inputs by name."""
        kernel = self.kernel
        self.names = {} if kernel.main else dict(inputs)
        value: Any = None
        try:
            value = self.block(kernel.body)
        except _Return as returned:  # outside of functions, too
            value = returned.value
        last: ast.AST = kernel.body[-1] if kernel.body else kernel.main  # type: ignore[assignment]
        if kernel.main is not None:
            last = kernel.main
            value = self.call(kernel.main, kernel.main, [], dict(inputs))
        return self._named(last, value)

    def _named(self, node: ast.AST, value: Any) -> dict[str, Any]:
        outputs = value if isinstance(value, dict) else None
        if outputs is None:
            parts = list(value) if isinstance(value, tuple | list) else [value]
            given = self.kernel.results
            names = list(given) if len(given) == len(parts) else [""] * len(parts)
            taken = set(self.kernel.inputs)
            for k, name in enumerate(names):
                wished = [name, "y" if len(parts) == 1 else f"y{k}", *(f"out{j}" for j in range(99))]
                names[k] = next(each for each in wished if each and each not in taken)
                taken.add(names[k])
            outputs = dict(zip(names, parts, strict=True))
        for each in outputs.values():
            if not is_array(each):
                self.fail(node, "what comes out is no array", "Return an array, several, or a dict of them.")
        return outputs

    def fail(self, node: ast.AST, message: str, remedy: str, misfit: bool = False) -> NoReturn:
        fail(self.kernel.source, node, message, remedy, misfit)

    # -------------------------------------------------------------- statements

    def statement(self, node: ast.stmt) -> Any:
        """Its value, where it has one."""
        self.step(node)
        match node:
            case ast.Expr(value):
                return self.value(value)
            case ast.Assign(targets, value):
                result = self.value(value)
                for target in targets:
                    self.assign(target, result)
                return result
            case ast.AnnAssign(target, _, value) if value is not None:
                result = self.value(value)
                self.assign(target, result)
                return result
            case ast.AugAssign(target, sign, value):
                before, more = self.value_of_target(target), self.value(value)
                with self.marked(node):
                    result = self.binary(node, sign, before, more)
                self.assign(target, result)
                return result
            case ast.Return(value):
                raise _Return(self.value(value) if value is not None else None)
            case ast.If(test, body, otherwise):
                return self.block(body if self.truth(test) else otherwise)
            case ast.For(target, over, body, []):
                parts = self.value(over)
                if not isinstance(parts, tuple | list):
                    self.fail(over, "a loop over an array", "Write over whole arrays, or the loops in C.")
                for part in parts:
                    self.assign(target, part)
                    self.block(body)
                return None
            case ast.Pass() | ast.Assert() | ast.Import() | ast.ImportFrom():
                return None
        self.fail(
            node,
            f"{_word(node)}, which is not translated",
            "Write assignments and a return over whole arrays; np.where(c, a, b) in place of a condition.",
        )

    def block(self, body: Sequence[ast.stmt]) -> Any:
        value = None
        for node in body:
            value = self.statement(node)
        return value

    def truth(self, test: ast.expr) -> bool:
        value = self.value(test)
        if is_array(value):
            self.fail(
                test, "a condition on an array's values", "Write np.where(condition, a, b) in its place."
            )
        return bool(value)

    def assign(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(name):
                self.names[name] = value
            case ast.Tuple(parts) | ast.List(parts):
                if not isinstance(value, tuple | list) or len(value) != len(parts):
                    self.fail(
                        target, f"{len(parts)} names for what are not as many values", "Name each value."
                    )
                for part, each in zip(parts, value, strict=True):
                    self.assign(part, each)
            case _:
                self.fail(
                    target,
                    "an assignment to a part of an array",
                    "Make the whole array, with np.where or np.concatenate, or write the loops in C.",
                )

    def value_of_target(self, target: ast.expr) -> Any:
        if isinstance(target, ast.Name):
            return self.name(target, target.id)
        self.assign(target, None)  # says that a part of an array is not assigned to
        return None

    # -------------------------------------------------------------- expressions

    def step(self, node: ast.AST) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            self.fail(node, f"more than {MOST_STEPS} steps", "Translate a smaller function.")

    def value(self, node: ast.expr) -> Any:
        self.step(node)
        self.depth += 1
        if self.depth > MOST_DEPTH:
            self.fail(node, f"more than {MOST_DEPTH} expressions within one another", "Name parts of it.")
        try:
            with self.marked(node):
                return self._value(node)
        finally:
            self.depth -= 1

    @contextmanager
    def marked(self, node: ast.AST) -> Iterator[None]:
        """What goes wrong inside is told at this node."""
        try:
            yield
        except Never as error:
            self.fail(node, _sentence(error), "Write it otherwise here.")
        except BuildError as error:
            self.fail(node, _sentence(error), "Look at the shapes here.", misfit=True)
        except (ValueError, LookupError, TypeError, ArithmeticError) as error:
            if isinstance(error, TextError):
                raise
            self.fail(node, _sentence(error), "Look at the shapes here.", misfit=True)

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value) if value is None or value is Ellipsis or isinstance(value, str | bool):
                return value
            case ast.Constant(int() | float() as value) if abs(value) < 2**62 or math.isinf(value):
                return value
            case ast.Name(name):
                return self.name(node, name)
            case ast.Tuple(parts) | ast.List(parts):
                return (tuple if isinstance(node, ast.Tuple) else list)(self.parts(parts))
            case ast.Dict(keys, values):
                return {self.word(key): self.value(each) for key, each in zip(keys, values, strict=True)}
            case ast.BinOp(left, sign, right):
                return self.binary(node, sign, self.value(left), self.value(right))
            case ast.UnaryOp(ast.Not(), operand):
                return not self.truth(operand)
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.value(operand)
            case ast.UnaryOp(sign, operand):
                return elementwise(self.m, _SIGNS[type(sign)], self.value(operand))
            case ast.BoolOp(sign, values):
                return self.either(sign, values)
            case ast.Compare(left, signs, rights):
                return self.comparison(node, left, signs, rights)
            case ast.IfExp(test, yes, no):
                return self.value(yes if self.truth(test) else no)
            case ast.Subscript(of, index):
                return self.subscript(node, self.value(of), index)
            case ast.Slice(start, stop, step):
                return slice(*(None if each is None else self.value(each) for each in (start, stop, step)))
            case ast.Attribute(of, name):
                return self.attribute(node, of, name)
            case ast.Call(called, arguments, keywords):
                return self.called(node, called, arguments, keywords)
            case ast.Lambda():
                return node
            case ast.ListComp(part, [ast.comprehension(target, over, [], 0)]):
                return [self.with_part(target, each, part) for each in self.value(over)]
        self.fail(node, f"{_word(node)}, which is not translated", "Write calls, signs, names and numbers.")

    def with_part(self, target: ast.expr, value: Any, part: ast.expr) -> Any:
        self.assign(target, value)
        return self.value(part)

    def parts(self, nodes: Sequence[ast.expr]) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.value(node.value)
            else:
                yield self.value(node)

    def word(self, key: ast.expr | None) -> str:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            return key.value
        self.fail(key or self.kernel.body[-1], "a key that is no text", "Name the outputs as texts.")

    def name(self, node: ast.expr, name: str) -> Any:
        if name in self.names:
            return self.names[name]
        if name in self.kernel.definitions or name in FUNCTIONS or name in _BUILTINS or name in _DTYPES:
            return name  # handed on, as in map or astype
        if name in _NAMES:
            return _NAMES[name]
        self.kernel.source.unknown(
            node.lineno,
            node.col_offset + 1,
            "name",
            name,
            {**self.names, **FUNCTIONS},
        )

    def either(self, sign: ast.boolop, values: Sequence[ast.expr]) -> Any:
        value: Any = None
        for each in values:
            value = self.value(each)
            if is_array(value):
                self.fail(each, "and or or of arrays", "Write & or | between them, each in brackets.")
            if bool(value) == isinstance(sign, ast.Or):
                return value
        return value

    def comparison(
        self, node: ast.expr, left: ast.expr, signs: Sequence[ast.cmpop], rights: Sequence[ast.expr]
    ) -> Any:
        if len(signs) > 1:
            self.fail(node, "several comparisons in one", "Write (a < b) & (b < c).")
        a, b = self.value(left), self.value(rights[0])
        match signs[0]:
            case ast.Is():
                return a is b
            case ast.IsNot():
                return a is not b
            case sign if type(sign) in _SIGNS:
                if not (is_array(a) or is_array(b)) and not (is_number(a) and is_number(b)):
                    return (a == b) == isinstance(sign, ast.Eq)
                return elementwise(self.m, _SIGNS[type(sign)], a, b)
        self.fail(node, "in, which is not translated", "Compare with == or <.")

    def binary(self, node: ast.AST, sign: ast.operator, a: Any, b: Any) -> Any:
        if isinstance(sign, ast.MatMult):
            return FUNCTIONS["matmul"](self.m, [a, b], {})
        if isinstance(sign, ast.FloorDiv):
            if isinstance(a, int) and isinstance(b, int):
                return a // b
            return elementwise(self.m, "floor", elementwise(self.m, "/", a, b))
        if isinstance(a, tuple) and isinstance(b, tuple) and isinstance(sign, ast.Add):
            return (*a, *b)
        if isinstance(a, tuple) and isinstance(b, int) and isinstance(sign, ast.Mult) and len(a) * b <= 12:
            return a * b
        if type(sign) not in _SIGNS:
            self.fail(node, f"{_word(sign)}, which is not translated", "Write + - * / ** @.")
        return elementwise(self.m, _SIGNS[type(sign)], a, b)

    def subscript(self, node: ast.expr, of: Any, index: ast.expr) -> Any:
        if isinstance(of, tuple | list):
            return of[self.value(index)]
        if not is_array(of):
            self.fail(node, "an index of what is no array", "Index arrays, tuples and shapes.")
        asked = list(self.parts(index.elts)) if isinstance(index, ast.Tuple) else [self.value(index)]
        return self.places(node, of, asked)

    def places(self, node: ast.expr, x: Any, asked: list[Any]) -> Any:
        """``x[...]`` as views: slices, numbers, new axes, and one array of integers."""
        m = self.m
        rank = len(m.shape(x))
        used = sum(each is not None and each is not Ellipsis for each in asked)
        if used > rank or len(asked) > 16 or sum(each is Ellipsis for each in asked) > 1:
            raise BuildError(f"{used} indices of an array of {rank} axes.")
        whole = [slice(None)] * (rank - used)
        at = next((k for k, each in enumerate(asked) if each is Ellipsis), len(asked))
        asked = [*asked[:at], *whole, *asked[at + 1 :]]
        axis = 0
        shape: list[int] = []
        gathered: tuple[int, Any] | None = None
        for each in asked:
            if each is None:
                shape.append(1)
                continue
            if isinstance(each, slice):
                parts = (each.start, each.stop, each.step)
                if not all(part is None or isinstance(part, int) for part in parts):
                    self.fail(node, "a slice whose ends are no numbers", "Write whole numbers.")
                x = m.slice(x, axis, each.start, each.stop, 1 if each.step is None else each.step)
                shape.append(m.shape(x)[axis])
            elif isinstance(each, int):
                size = m.shape(x)[axis]
                if not -size <= each < size:
                    raise BuildError(f"There is no place {each} in an axis of {size}.")
                x = m.slice(x, axis, each % size, each % size + 1, 1)
                shape.append(0)  # goes
            elif is_array(each) and not m.is_float(each) and gathered is None:
                gathered = (axis, each)
                shape.append(m.shape(x)[axis])
            else:
                self.fail(
                    node,
                    "an index that is neither a number, a slice nor one array of integers",
                    "Write np.where in place of a mask; of an index, # i[n] i32 says that it holds integers.",
                )
            axis += 1
        if gathered is not None:
            if 1 in shape or 0 in shape:
                self.fail(node, "an array of indices beside numbers or new axes", "Take one after the other.")
            return m.take(x, gathered[1], gathered[0])
        return (
            m.reshape(x, [size for size in shape if size])
            if 0 in shape or any(each is None for each in asked)
            else x
        )

    def attribute(self, node: ast.expr, of: ast.expr, name: str) -> Any:
        if self.is_module(of):
            if name in _NAMES:
                return _NAMES[name]
            if name in FUNCTIONS or name in _DTYPES:
                return name
            self.kernel.source.unknown(
                node.lineno, (node.end_col_offset or 0) - len(name) + 1, "function", name, FUNCTIONS
            )
        value = self.value(of)
        if isinstance(value, Pair) and name in ("values", "indices"):
            return getattr(value, name)
        if is_array(value):
            sizes = self.m.shape(value)
            match name:
                case "shape":
                    return tuple(sizes)
                case "ndim":
                    return len(sizes)
                case "size":
                    return math.prod(sizes)
                case "T":
                    return views.transposed(self.m, value)
                case "mT":
                    return views.swapaxes(self.m, value, -1, -2)
                case "dtype" | "device":
                    return None
        self.fail(node, f"an attribute {name}, which is not known", "Known are shape, ndim, size, T and mT.")

    def is_module(self, node: ast.expr) -> bool:
        """``np``, ``torch.nn.functional``: a module's name that no line gives a value."""
        while isinstance(node, ast.Attribute):
            if node.attr not in MODULES:
                return False
            node = node.value
        return isinstance(node, ast.Name) and node.id in MODULES and node.id not in self.names

    # -------------------------------------------------------------- calls

    def called(
        self, node: ast.Call, called: ast.expr, arguments: Sequence[ast.expr], keywords: Sequence[ast.keyword]
    ) -> Any:
        given = list(self.parts(arguments))
        named = {each.arg or "**": self.value(each.value) for each in keywords}
        if "**" in named:
            self.fail(node, "arguments from a dict", "Write each argument.")
        match called:
            case ast.Name(name) if isinstance(self.names.get(name), ast.Lambda):
                return self.lambda_(node, self.names[name], given)
            case ast.Name(name) if name in self.kernel.definitions:
                return self.call(node, self.kernel.definitions[name], given, named)
            case ast.Name(name) if name in _BUILTINS and not named:
                return _BUILTINS[name](self.m, *given)
            case ast.Name(name):
                return self.known(node, called, name, given, named, of_array=False)
            case ast.Attribute(of, name) if self.is_module(of):
                return self.known(node, called, name, given, named, of_array=False)
            case ast.Attribute(of, name):
                value = self.value(of)
                if not is_array(value):
                    self.fail(node, f"a method {name} of what is no array", "Call functions of arrays.")
                return self.known(node, called, name, [value, *given], named, of_array=True)
        self.fail(node, "a call of what is no function's name", "Call functions by their names.")

    def known(
        self,
        node: ast.Call,
        called: ast.expr,
        name: str,
        given: list[Any],
        named: dict[str, Any],
        of_array: bool,
    ) -> Any:
        """A function of NumPy or PyTorch, or a method of an array; where both differ, as the text's does."""
        if name in _SAME and given and is_array(given[0]):
            return given[0]
        if name in ("astype", "type", "to") and len(given) == 2:
            device = name == "to" and isinstance(given[1], str) and given[1] not in _DTYPES
            return given[0] if device else self.converted(node, given[0], given[1])
        if name in ("float", "double", "int", "long", "bool") and of_array:
            return self.converted(node, given[0], name)
        named.pop("dtype", None)
        named.pop("device", None)
        if name == "size" and of_array:
            sizes = self.m.shape(given[0])
            return sizes[given[1]] if len(given) == 2 else sizes
        if name == "transpose" and self.torch_swaps(given):
            name = "swapaxes"
        if (
            name in ("var", "std")
            and self.kernel.torch
            and not {"unbiased", "correction", "ddof"} & named.keys()
        ):
            named["ddof"] = 1
        if name not in FUNCTIONS:
            column = (called.end_col_offset or 0) - len(name) + 1
            if name in _INSTEAD:
                self.kernel.source.fail(called.lineno, column, f"{name} is not translated", _INSTEAD[name])
            self.kernel.source.unknown(called.lineno, column, "function", name, FUNCTIONS)
        if name in ("max", "min") and len(given) == 2 and is_array(given[1]) and self.kernel.torch:
            name = {"max": "maximum", "min": "minimum"}[name]
        result = FUNCTIONS[name](self.m, given, named)
        along = "dim" in named or (len(given) == 2 and isinstance(given[1], int))
        if name in ("max", "min") and self.kernel.torch and along:
            return Pair((result, FUNCTIONS[f"arg{name}"](self.m, given, named)))
        return result

    def torch_swaps(self, given: Sequence[Any]) -> bool:
        return self.kernel.torch and len(given) == 3 and isinstance(given[1], int)

    def converted(self, node: ast.AST, x: Any, dtype: Any) -> Any:
        if dtype not in _DTYPES:
            self.fail(node, "a conversion to a dtype that is not translated", f"Take {', '.join(_DTYPES)}.")
        return self.m.convert(x, _DTYPES[dtype])

    def lambda_(self, node: ast.AST, function: ast.Lambda, given: list[Any]) -> Any:
        parameters = [each.arg for each in function.args.args]
        if len(parameters) != len(given):
            self.fail(node, f"{len(given)} arguments for {len(parameters)} parameters", "Give each one.")
        return self.inside(dict(zip(parameters, given, strict=True)), lambda: self.value(function.body))

    def call(self, node: ast.AST, function: ast.FunctionDef, given: list[Any], named: dict[str, Any]) -> Any:
        """A function of the text, its body gone through with these arguments."""
        a = function.args
        positional = [each.arg for each in (*a.posonlyargs, *a.args)]
        values: dict[str, Any] = {}
        defaults = dict(zip(positional[len(positional) - len(a.defaults) :], a.defaults, strict=True))
        defaults |= {
            each.arg: default for each, default in zip(a.kwonlyargs, a.kw_defaults, strict=True) if default
        }
        for name, default in defaults.items():
            values[name] = self.value(default)
        values |= dict(zip(positional, given, strict=False))
        values |= named
        known = {*positional, *(each.arg for each in a.kwonlyargs)}
        if len(given) > len(positional) or set(values) != known:
            self.fail(node, f"arguments that {function.name} does not take", f"It takes {', '.join(known)}.")

        def run() -> Any:
            try:
                self.block(function.body)
            except _Return as returned:
                return returned.value
            self.fail(function, f"{function.name} returns nothing", "Return the array that it computes.")

        return self.inside(values, run)

    def inside(self, values: dict[str, Any], run: Callable[[], Any]) -> Any:
        """With names of a function's own, and the text's."""
        if self.depth > MOST_DEPTH // 2:
            self.fail(
                self.kernel.main or self.kernel.body[0],
                "functions that call one another too deeply",
                "Write them out.",
            )
        before = self.names
        self.names = {**before, **values}
        self.depth += 8
        try:
            return run()
        finally:
            self.names = before
            self.depth -= 8


def _sentence(error: Exception) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text[:300].rstrip(".")


_WORDS = {
    ast.While: "a while loop", ast.Try: "try", ast.With: "with", ast.Raise: "raise", ast.Delete: "del",
    ast.Global: "global", ast.Nonlocal: "nonlocal", ast.FunctionDef: "a function within a function",
    ast.ClassDef: "a class", ast.For: "a loop with else", ast.Match: "match", ast.Break: "break",
    ast.Continue: "continue", ast.Await: "await", ast.Yield: "yield", ast.JoinedStr: "a formatted text",
    ast.GeneratorExp: "a generator", ast.SetComp: "a set", ast.DictComp: "a dict", ast.Set: "a set",
    ast.NamedExpr: ":=", ast.Constant: "a constant", ast.ListComp: "a list with conditions",
}  # fmt: skip


def _word(node: ast.AST) -> str:
    return _WORDS.get(type(node), type(node).__name__)

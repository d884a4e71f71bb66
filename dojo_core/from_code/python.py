"""NumPy and PyTorch, read by Python's own parser: what of a text is the kernel, a function or lines of it."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from dojo_core.from_code.plain import fail, plain
from dojo_core.from_code.source import Declared, Source, axes_of, shapes_of_comment

MOST_INPUTS = 12

MODULES = {
    "np", "numpy", "jnp", "tf", "torch", "F", "math", "nn", "jax", "cp", "linalg", "functional", "special",
    "scipy",
}  # fmt: skip  # their names
# What makes arrays of values that nobody wrote down: of such a line an input is made.
_DRAWN = {"rand", "randn", "random", "normal", "standard_normal", "uniform", "random_sample", "randint"}


@dataclass(frozen=True)
class Kernel:
    """What of a text is a kernel: its inputs, and how its result comes about."""

    source: Source
    name: str
    inputs: tuple[str, ...]
    declared: Mapping[str, Declared]
    body: tuple[ast.stmt, ...]  # of the text, outside of functions
    main: ast.FunctionDef | None  # called with the inputs, where it is a function
    definitions: Mapping[str, ast.FunctionDef]
    torch: bool  # PyTorch's meaning, where a name has another in NumPy

    @property
    def results(self) -> tuple[str, ...]:
        """Names for its results: those that the text gives them."""
        last = (self.main.body if self.main else self.body)[-1]
        match last:
            case ast.Return(ast.Tuple(parts)) | ast.Expr(ast.Tuple(parts)):
                return tuple(part.id if isinstance(part, ast.Name) else "" for part in parts)
            case ast.Return(ast.Name(name)) | ast.Expr(ast.Name(name)):
                return (name,)
            case ast.Assign([ast.Name(name)]) | ast.AugAssign(ast.Name(name)) | ast.AnnAssign(ast.Name(name)):
                return (name,)
        return ()


def read(source: Source) -> Kernel:
    """Which kernel a text is. Raises TextError."""
    tree = parsed(source)
    definitions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    comments = shapes_said(source)
    body: list[ast.stmt] = []
    main: ast.FunctionDef | None = None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            main = node
        elif isinstance(node, ast.ClassDef | ast.AsyncFunctionDef):
            fail(source, node, "a class", "Write what it computes as a function over arrays.")
        elif not isinstance(node, ast.Import | ast.ImportFrom) and not _is_text(node):
            body.append(node)
            if main is not None and not _is_constant(node):
                main = None
    drawn = _drawn(body)
    torch = _of_torch(tree)
    if main is not None:
        inputs, declared = _parameters(source, main)
        name = main.name
    elif body:
        inputs, declared = (*drawn, *_free(body, {*definitions, *drawn})), drawn
        last = body[-1]
        name = (
            last.targets[0].id
            if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name)
            else "own"
        )
    else:
        source.fail(1, 1, "nothing is computed", "Write an expression over arrays, such as: y = x @ w")
    if len(inputs) > MOST_INPUTS:
        source.fail(1, 1, f"{len(inputs)} inputs", f"A kernel that is translated has {MOST_INPUTS} at most.")
    kept = tuple(node for node in body if _target(node) not in drawn)
    if not kept and main is None:
        source.fail(1, 1, "nothing is computed of the arrays", "Write an expression over them below.")
    said = {name: each for name, each in comments.items() if name in inputs}
    return Kernel(source, name, inputs, {**declared, **said}, kept, main, definitions, torch)


def parsed(source: Source) -> ast.Module:
    """The syntax tree. Raises TextError at the place where it is no Python."""
    try:
        tree = ast.parse(source.text)
    except SyntaxError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        source.fail(
            error.lineno or 1, error.offset or 1, message, "Python's parser stops here: mend this place."
        )
    except (ValueError, RecursionError, MemoryError):
        source.fail(1, 1, "a text that Python's parser does not take", "Write shorter expressions.")
    return plain(source, tree)


def shapes_said(source: Source) -> dict[str, Declared]:
    """What comments, and text that stands alone, say of arrays."""
    declared: dict[str, Declared] = {}
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
            if token.type == tokenize.COMMENT or (
                token.type == tokenize.STRING and token.string[:3] in ('"""', "'''")
            ):
                declared.update(shapes_of_comment(token.string))
    return declared


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)


def _target(node: ast.stmt) -> str:
    match node:
        case ast.Assign([ast.Name(name)]) | ast.AnnAssign(ast.Name(name)):
            return name
    return ""


def _drawn(body: Sequence[ast.stmt]) -> dict[str, Declared]:
    """Inputs that a script draws, ``x = np.random.rand(64, 512)``, with their shapes."""
    inputs: dict[str, Declared] = {}
    for node in body:
        name, value = _target(node), getattr(node, "value", None)
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr == "astype"
        ):
            value = value.func.value
        if not name or not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
            continue
        if value.func.attr not in _DRAWN:
            continue
        given = [k.value for k in value.keywords if k.arg in ("size", "shape")] or list(value.args)
        if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
            given = list(given[0].elts)
        sizes = [
            each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, int)
        ]
        if len(sizes) == len(given):
            inputs[name] = Declared(tuple(map(str, sizes)), "i32" if value.func.attr == "randint" else "f32")
    return inputs


def _of_torch(tree: ast.Module) -> bool:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    words = {k.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for k in node.keywords}
    imported = any(
        alias.name.startswith("torch") or (getattr(node, "module", None) or "").startswith("torch")
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )
    return imported or bool(names & {"torch", "F"}) or bool(words & {"dim", "keepdim"})


def _parameters(source: Source, main: ast.FunctionDef) -> tuple[tuple[str, ...], dict[str, Declared]]:
    """The inputs of a function: parameters without a default."""
    a = main.args
    if a.vararg or a.kwarg:
        fail(source, main, "a function of any number of arguments", "Name each array that it takes.")
    positional = [*a.posonlyargs, *a.args]
    without = positional[: len(positional) - len(a.defaults)]
    without += [each for each, default in zip(a.kwonlyargs, a.kw_defaults, strict=True) if default is None]
    declared: dict[str, Declared] = {}
    for each in without:
        for node in ast.walk(each.annotation) if each.annotation else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip():
                declared[each.arg] = Declared(axes_of(node.value.strip("[]() ")))
            elif isinstance(node, ast.Name) and node.id in ("float", "int"):
                declared[each.arg] = Declared((), "i32" if node.id == "int" else "f32")
    return tuple(each.arg for each in without), declared


def _free(body: Sequence[ast.stmt], known: set[str]) -> list[str]:
    """Names that lines read before they give them a value, in order: the inputs of a script."""
    bound = set(known)
    found: list[str] = []
    for node in body:
        called = {id(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
        parts = sorted(
            (n for n in ast.walk(node) if isinstance(n, ast.Name)), key=lambda n: (n.lineno, n.col_offset)
        )
        inner = {a.arg for n in ast.walk(node) if isinstance(n, ast.Lambda) for a in n.args.args}
        for part in parts:
            read = isinstance(part.ctx, ast.Load) or (isinstance(node, ast.AugAssign) and part is node.target)
            known_here = bound | inner | MODULES | {"inf", "nan", "pi", *found}
            if read and part.id not in known_here and id(part) not in called:
                found.append(part.id)
        bound |= {part.id for part in parts if isinstance(part.ctx, ast.Store)} - set(found)
    return found

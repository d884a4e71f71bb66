"""Python without what stands around a kernel and means nothing for it: contexts, print, a module's self."""

from __future__ import annotations

import ast
from typing import NoReturn

from dojo_core.from_code.source import Source

_CONTEXTS = {"no_grad", "inference_mode", "errstate", "profile", "record_function"}
_PARALLEL = {"prange": "range"}  # Numba's, which means the same


def plain(source: Source, tree: ast.Module) -> ast.Module:
    """The tree, changed in place: the lines within ``with torch.no_grad():`` stand for themselves, as does
    what is printed; ``self.scale`` is an array ``scale``. Raises TextError for layers that self holds."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        match node:
            case ast.Call(ast.Attribute(ast.Name("self"), name)):
                fail(
                    source,
                    node,
                    f"self.{name}, a layer whose weights are not in this text",
                    "Write what it computes, with its weights as arrays: F.linear(x, w, b).",
                )
        if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].arg == "self":
            _without_self(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(node, name, [new for each in value for new in _replaced(each)])
        if isinstance(node, ast.Name):
            node.id = _PARALLEL.get(node.id, node.id)
        stack.extend(ast.iter_child_nodes(node))
    return tree


def _replaced(node: object) -> list[object]:
    match node:
        case ast.With(items, body) if all(_called(item.context_expr) in _CONTEXTS for item in items):
            return [new for each in body for new in _replaced(each)]
        case ast.Expr(ast.Call(ast.Name("print"), [printed], [])) as statement:
            statement.value = printed
    return [node]


def _called(node: ast.expr) -> str:
    match node:
        case ast.Call(ast.Attribute(attr=name) | ast.Name(name)):
            return name
    return ""


def _without_self(function: ast.FunctionDef) -> None:
    """A method as a function: what it reads of self are parameters."""
    held: dict[str, None] = {}
    for node in ast.walk(function):
        called = node.func if isinstance(node, ast.Call) else None
        for field, value in ast.iter_fields(node):
            match value:
                case ast.Attribute(ast.Name("self"), name) if value is not called:
                    setattr(node, field, ast.copy_location(ast.Name(name, value.ctx), value))
                    held[name] = None
                case list():
                    for k, each in enumerate(value):
                        match each:
                            case ast.Attribute(ast.Name("self"), name):
                                value[k] = ast.copy_location(ast.Name(name, each.ctx), each)
                                held[name] = None
    known = {each.arg for each in function.args.args}
    parameters = [ast.copy_location(ast.arg(name), function) for name in held if name not in known]
    own = len(function.args.args) - len(function.args.defaults)  # those with a default come last
    function.args.args[own:own] = parameters
    del function.args.args[0]


def fail(source: Source, node: ast.AST, message: str, remedy: str, misfit: bool = False) -> NoReturn:
    """Raise a TextError at a node."""
    line = getattr(node, "lineno", 1)
    text = source.lines[line - 1] if line <= len(source.lines) else ""
    column = len(
        text.encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore")
    )  # Python counts bytes
    source.fail(line, column + 1, message, remedy, misfit)

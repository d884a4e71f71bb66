"""Operators that the standard defines by others: their bodies, with what a node leaves out bound.

The package's own inliner leaves default attributes unbound and fails on inputs that are left out; here a body
is read for one node, whose types it may hang on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dojo_core.from_onnx.values import CODES, Nothing, Sequence_, Tensor, Value

if TYPE_CHECKING:
    import onnx


def body_of(
    node: onnx.NodeProto, schema: Any, inputs: Sequence[Value | None], opset: int
) -> tuple[onnx.FunctionProto, dict[str, Any]] | None:
    """The function that defines a node's operator in an opset, and the values of its attributes; None: there
    is none."""
    import onnx

    filled = onnx.NodeProto()
    filled.CopyFrom(node)
    given = {a.name for a in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.type:
            filled.attribute.append(attribute.default_value)
    attributes = {a.name: a for a in filled.attribute}
    function = onnx.FunctionProto()
    version = _newest(schema.function_opset_versions, opset)
    if version is not None:
        function.ParseFromString(schema.get_function_with_opset_version(version))
        return function, attributes
    version = _newest(schema.context_dependent_function_opset_versions, opset)
    if version is None:
        return None
    types = [_type_of(value).SerializeToString() for value in inputs]
    body = schema.get_context_dependent_function_with_opset_version(
        version, filled.SerializeToString(), types
    )
    if not body:
        return None
    function.ParseFromString(body)
    return function, attributes


def _newest(versions: Sequence[int], opset: int) -> int | None:
    """The last body that is not newer than the opset; where all are, the first."""
    if not versions:
        return None
    return max((v for v in versions if v <= opset), default=min(versions))


def _type_of(value: Value | None) -> onnx.TypeProto:
    from onnx import TypeProto, helper

    if isinstance(value, Tensor):
        return helper.make_tensor_type_proto(CODES[value.element], value.shape)
    if isinstance(value, Sequence_):
        of = value.items[0] if value.items else Tensor(value.element, ())
        return helper.make_sequence_type_proto(_type_of(of))
    if isinstance(value, Nothing):
        return helper.make_optional_type_proto(helper.make_tensor_type_proto(1, ()))
    return TypeProto()


# ---------------------------------------------------------------------------- nodes of a body


def bound(node: onnx.NodeProto, attributes: Mapping[str, Any]) -> onnx.NodeProto:
    """A node of a function's body with the function's attributes in place of their names."""
    if not any(_refers(a) for a in node.attribute):
        return node
    import onnx

    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    del bound.attribute[:]
    for attribute in node.attribute:
        bound.attribute.extend(_attribute(attribute, attributes))
    return bound


def _refers(attribute: Any) -> bool:
    if attribute.ref_attr_name:
        return True
    return attribute.HasField("g") and any(_refers(a) for n in attribute.g.node for a in n.attribute)


def _attribute(attribute: Any, attributes: Mapping[str, Any]) -> list[Any]:
    import onnx

    if attribute.ref_attr_name:
        if attribute.ref_attr_name not in attributes:
            return []
        value = onnx.AttributeProto()
        value.CopyFrom(attributes[attribute.ref_attr_name])
        value.name = attribute.name
        return [value]
    if not _refers(attribute):
        return [attribute]
    value = onnx.AttributeProto()
    value.CopyFrom(attribute)
    for inner in value.g.node:
        inner.CopyFrom(bound(inner, attributes))
    return [value]


def without_inputs(node: onnx.NodeProto, absent: set[str]) -> onnx.NodeProto:
    """A node of a body whose function was called without some inputs: it is without them too."""
    if not absent.intersection(node.input):
        return node
    import onnx

    changed = onnx.NodeProto()
    changed.CopyFrom(node)
    changed.input[:] = ["" if name in absent else name for name in node.input]
    return changed

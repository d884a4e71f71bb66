"""The values of a model's tensors: those that are in the model, and those in files of its folder.

What lies in a file is mapped, not read: a page comes into memory when somebody looks at it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dojo_core.from_onnx.values import Numbers, Refusal, bits, dtype_of, numpy_dtype

if TYPE_CHECKING:
    import onnx

EXTERNAL = 1  # TensorProto.DataLocation
SAVE_INSIDE = "Save it as one file: onnx.save(onnx.load('model.onnx'), 'whole.onnx')."
AGAIN = "Export the model again."


def values_of(tensor: onnx.TensorProto, folder: Path | None) -> Numbers | None:
    """A tensor's values; None where they lie in a file and no folder is given to look for it.

    Raises Refusal where they cannot be read.
    """
    if tensor.data_location == EXTERNAL:
        return _mapped(tensor, folder) if folder is not None else None
    from onnx import numpy_helper

    try:
        return numpy_helper.to_array(tensor)
    except Exception:  # what a damaged one raises is not said anywhere
        raise Refusal(f"The values of {tensor.name or 'a constant'} cannot be read.", AGAIN) from None


def place_of(tensor: onnx.TensorProto, folder: Path) -> Path:
    """The file that a tensor's values lie in. Raises Refusal where it is not in the model's folder."""
    said = {e.key: e.value for e in tensor.external_data}
    location = said.get("location", "")
    place = Path(location)
    inside = bool(location) and not place.is_absolute() and ".." not in place.parts and "\0" not in location
    file = folder / place
    if not inside or not file.resolve().is_relative_to(folder.resolve()):
        raise Refusal(
            f"The initializer {tensor.name} is said to lie in {location!r}, outside of the model's folder, "
            "where nothing is read.",
            SAVE_INSIDE,
        )
    if not file.is_file():
        raise Refusal(
            f"The initializer {tensor.name} lies in the file {location}, which is not beside the model.",
            f"Copy it to {file}, or delete the initializer and give its name among the graph's inputs: "
            "weights are inputs of a kernel.",
        )
    return file


def _mapped(tensor: onnx.TensorProto, folder: Path) -> Numbers:
    file, said = place_of(tensor, folder), {e.key: e.value for e in tensor.external_data}
    element, shape = dtype_of(tensor.data_type), tuple(tensor.dims)
    count = math.prod(shape)
    wanted = math.ceil(count * bits(element) / 8)
    size = file.stat().st_size
    try:
        offset = int(said.get("offset") or 0)
        length = int(said.get("length") or wanted)
    except ValueError:
        offset = length = -1
    if offset < 0 or length != wanted or offset + length > size:
        raise Refusal(
            f"The initializer {tensor.name} says {count:,} elements ({wanted:,} bytes) from byte "
            f"{said.get('offset') or 0} of {file.name} on, of {said.get('length') or wanted} bytes; the file "
            f"has {size:,}: it is cut off, or another model's.",
            AGAIN,
        )
    if not count:
        return np.zeros(shape, numpy_dtype(element))
    if bits(element) < 8:
        return _unpacked(tensor, file, offset, length)
    return np.memmap(file, numpy_dtype(element), "r", offset, shape)  # little-endian, as our processors are


def _unpacked(tensor: onnx.TensorProto, file: Path, offset: int, length: int) -> Numbers:
    """Several elements a byte, as NumPy has them."""
    from onnx import TensorProto, numpy_helper

    inside = TensorProto(data_type=tensor.data_type, dims=tensor.dims)
    with file.open("rb") as source:
        source.seek(offset)
        inside.raw_data = source.read(length)
    return numpy_helper.to_array(inside)

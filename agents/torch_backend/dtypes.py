"""PyTorch's dtypes in the Dojo's words."""

from __future__ import annotations

import torch

from agents.torch_backend.refusal import Refusal

WORDS: dict[torch.dtype, str] = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
    torch.uint64: "u64", torch.uint32: "u32", torch.uint16: "u16", torch.uint8: "u8", torch.bool: "bool",
}  # fmt: skip


def word_of(dtype: torch.dtype) -> str:
    """The Dojo's word. Raises Refusal for a dtype that texts do not have (complex, quantised, 8-bit floats)."""
    if dtype not in WORDS:
        name = str(dtype).removeprefix("torch.")
        raise Refusal(f"texts have no dtype {name}", "convert it to one of " + ", ".join(WORDS.values()))
    return WORDS[dtype]

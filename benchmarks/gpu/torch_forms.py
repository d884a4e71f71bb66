"""PyTorch's own of each kernel: eager, compiled, with CUDA graphs; float32, TF32 off unless told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

PRODUCTS = ("matmul", "bmm", "conv", "swiglu")  # which TF32 would make faster, and less exact


def in_torch(name: str, inputs: Mapping[str, Any]) -> dict[str, Callable[[], None]]:
    """Runs by title, on the legacy default stream as ours; none without PyTorch or a GPU for it."""
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    t = {n: torch.from_numpy(a).cuda() for n, a in inputs.items()}
    f = torch.nn.functional
    forms: dict[str, Callable[[], Any]] = {
        "add": lambda: t["x"] + t["y"],
        "mul": lambda: t["x"] * t["y"],
        "relu": lambda: torch.relu(t["x"]),
        "relu_ffn": lambda: torch.relu(t["x"] * t["w"][:, None, None] + t["b"][:, None, None]),
        "batchnorm": lambda: f.batch_norm(t["x"], None, None, t["g"], t["b"], True, 0.0, 1e-5),
        "reducemean": lambda: t["x"].mean(-1),
        "softmax": lambda: torch.softmax(t["x"], -1),
        "layernorm": lambda: f.layer_norm(t["x"], t["x"].shape[-1:], t["g"], t["h"], 1e-5),
        "rmsnorm": lambda: f.rms_norm(t["x"], t["x"].shape[-1:], t["g"], 1e-6),
        "matmul": lambda: t["a"] @ t["b"],
        "bmm": lambda: t["a"] @ t["b"],
        "conv": lambda: f.conv2d(t["x"], t["w"]),
        "swiglu": lambda: f.silu(t["x"] @ t["w"]) * (t["x"] @ t["v"]),
    }
    form = forms[name]
    runs = {
        "torch eager": form,
        "torch.compile": torch.compile(form),
        "torch.compile, CUDA graphs": torch.compile(form, mode="reduce-overhead"),
    }
    if name in PRODUCTS:
        runs["torch eager, TF32"] = _with_tf32(form)
    return {title: _dropping(run) for title, run in runs.items()}


def _with_tf32(form: Callable[[], Any]) -> Callable[[], Any]:
    import torch

    def run() -> Any:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        try:
            return form()
        finally:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    return run


def _dropping(run: Callable[[], Any]) -> Callable[[], None]:
    def dropped() -> None:
        run()

    return dropped

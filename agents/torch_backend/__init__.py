"""PyTorch models: ``torch.compile(model, backend="dojo")``, and programs of ``torch.export``.

Importing this registers the backend; an installed Dojo is found by its entry point without.
"""

from torch._dynamo import list_backends, register_backend

from agents.torch_backend.backend import dojo
from agents.torch_backend.left_out import listen

listen()
if "dojo" not in list_backends(exclude_tags=()):
    register_backend(dojo, name="dojo")

__all__ = ["dojo"]

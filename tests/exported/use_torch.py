"""Run by a test with the exported package on the path and nothing of the Dojo: NumPy, as in the script beside
this one, then PyTorch with the arrays that this leaves."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from kept import torch_ops

before = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("use_python.py"))))
refused, x, raw, lam = before.refused, before.x, before.raw, before.lam
table, picks, zeros = before.table, before.picks, before.zeros

tensor = torch.from_numpy(x)
wanted = torch.softmax(tensor, -1)
torch.testing.assert_close(torch_ops.softmax(tensor), wanted)
torch.testing.assert_close(torch.ops.kept.softmax(tensor.T.contiguous().T), wanted)
torch.testing.assert_close(
    torch_ops.softmax(torch.frombuffer(raw, dtype=torch.float32, offset=1).view(64, 64)), wanted
)
halves, counts = torch_ops.pair(tensor[:6, :32], torch.from_numpy(lam))
assert counts.tolist() == lam.sum(1).tolist()
assert torch_ops.softmax(tensor.to("meta")).shape == (64, 64)
rows = map(torch.from_numpy, (table, picks, zeros))
torch.testing.assert_close(torch_ops.rows(*rows).numpy(), table[picks - 2] + table[0])
beyond = [torch.from_numpy(each) for each in (table, picks + 1, zeros)]
refused(ValueError, "a value beyond", lambda: torch_ops.rows(*beyond))

refused(ValueError, "softmax was exported for", lambda: torch_ops.softmax(tensor[:3]))
refused(TypeError, "x of softmax is float64", lambda: torch_ops.softmax(tensor.double()))
soon = ("test_schema", "test_faketensor")
everything = (*soon, "test_autograd_registration", "test_aot_dispatch_dynamic")
torch.library.opcheck(torch.ops.kept.softmax.default, (tensor,), test_utils=everything)
two = (tensor[:6, :32], torch.from_numpy(lam))
torch.library.opcheck(torch.ops.kept.pair.default, two, test_utils=soon)


class Attend(torch.nn.Module):
    """Our operator among matrix products, for which PyTorch has code: a sum would be compiled for long."""

    def __init__(self):
        super().__init__()
        self.before, self.after = (torch.nn.Linear(64, 64, bias=False) for _ in range(2))
        self.softmax = torch_ops.softmax

    def forward(self, x):
        return self.after(self.softmax(self.before(x)))


model = Attend()
compiled = torch.compile(model, fullgraph=True, backend=sys.argv[1])
with torch.inference_mode():
    result = compiled(tensor)
    model.softmax = lambda x: torch.softmax(x, -1)
    torch.testing.assert_close(result, model(tensor))
learning = tensor.clone().requires_grad_()
refused(
    NotImplementedError, "kept::softmax has no gradient", lambda: torch_ops.softmax(learning).sum().backward()
)

# the worker of a DataLoader is forked after a call; of more PyTorch warns where there is one core
rows = torch.utils.data.DataLoader(
    [tensor] * 3, batch_size=None, num_workers=1, timeout=300,
    multiprocessing_context="fork", collate_fn=torch_ops.softmax,
)  # fmt: skip
for result in rows:
    torch.testing.assert_close(result, wanted)

"""Programs of torch.export: imported as graphs, or all reasons why they are not."""

import re

import pytest
import torch
from torch import nn

from agents.cli import app  # noqa: F401  (brings what reads .pt2)
from dojo_core.cli.foreign import reader
from dojo_core.cli.importing import import_onnx
from dojo_core.cli.terminal import Failure
from dojo_core.from_onnx.ports import NotImported
from dojo_core.graph import Model
from dojo_core.graph.store import load

pytestmark = pytest.mark.xdist_group("dynamo")  # which one process imports


@pytest.fixture(scope="module", autouse=True)
def backend():
    """TorchDynamo comes with it, in seconds: only where these tests run, not wherever they are collected."""
    global graph_of, graph_of_file
    from agents.torch_backend.exported import graph_of, graph_of_file


class Words(nn.Module):
    """Numbers of words to a distribution."""

    def __init__(self):
        super().__init__()
        self.embedding, self.linear = nn.Embedding(10, 8), nn.Linear(8, 8)
        self.register_buffer("scale", torch.tensor([2.0]))

    def forward(self, words):
        x = self.embedding(words)
        return ((x + self.linear(x).relu()) * self.scale).softmax(-1)


class Middle(Words):
    def forward(self, words):
        values, places = torch.median(super().forward(words), 1)
        return torch.histc(values, 2), places


WORDS = torch.tensor([[0, 9, 3], [4, 4, 1]])


def exported(model, **options):
    return torch.export.export(model.eval(), (WORDS,), **options)


def test_an_exported_program_is_imported_and_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    model, file, to = Words(), tmp_path / "words.pt2", tmp_path / "words.dojo"
    torch.export.save(exported(model), file)
    assert reader(file) is graph_of_file
    import_onnx(file, to=to)
    graph = load(to)
    assert "words" in graph.inputs and graph.tensors["words"].domain == (0, 9)
    (ours,) = Model(graph).run({"words": WORDS.numpy()}).values()
    torch.testing.assert_close(torch.from_numpy(ours), model(WORDS))


def test_all_reasons_are_told_at_once(tmp_path):
    with pytest.raises(NotImported) as refused:
        graph_of(exported(Middle()), "middle")
    assert [str(reason) for reason in refused.value.reasons] == [
        "median.dim (median): The Dojo has no such operator.",
        "histc.default (histc): The Dojo has no such operator.",
    ]


def test_sizes_that_are_open_and_files_that_are_no_programs_are_told(tmp_path):
    program = exported(Words(), dynamic_shapes={"words": {0: torch.export.Dim("rows")}})
    with pytest.raises(NotImported, match=re.escape("Export it without dynamic_shapes.")):
        graph_of(program, "words")
    file = tmp_path / "damaged.pt2"
    file.write_bytes(b"no archive")
    with pytest.raises(Failure, match="no exported program that this PyTorch"):
        import_onnx(file)
    with pytest.raises(Failure, match="leave --shape, --value and --kernel out"):
        import_onnx(file, shapes=["x=1"])

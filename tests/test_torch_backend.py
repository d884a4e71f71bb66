"""torch.compile(model, backend="dojo"): models beside PyTorch, what stays there, and what is kept."""

from importlib.metadata import EntryPoint

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from agents import played
from agents.played import heuristic
from dojo_core import game, moves
from dojo_core.measure import sealed
from dojo_core.measure.machine import this_machine
from dojo_core.measure.records import Record, Records, Sample
from dojo_core.primitives import Builder, elementwise
from dojo_core.program.tree import Program
from tests.drawn import Drawn
from tests.homes import with_objects

pytestmark = [
    pytest.mark.usefixtures("kept_workers"),
    pytest.mark.xdist_group("dynamo"),  # which one process imports
]


@pytest.fixture(scope="module", autouse=True)
def backend():
    """TorchDynamo comes with it, in seconds: only where these tests run, not wherever they are collected."""
    global compiling, dojo, searching, graph_key, listen, Part, Settings
    from agents.torch_backend import compiling, dojo, searching  # registers the backend
    from agents.torch_backend.keys import graph_key
    from agents.torch_backend.left_out import listen
    from agents.torch_backend.part import Part
    from agents.torch_backend.settings import Settings


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return with_objects(tmp_path_factory.mktemp("home"))


@pytest.fixture(autouse=True)
def fresh(home, monkeypatch):
    """What one test compiled is no other's; all keep what they compile in one place."""
    monkeypatch.setenv("DOJO_HOME", str(home))
    torch.compiler.reset()
    torch.manual_seed(0)


@pytest.fixture
def parts(monkeypatch):
    """The parts that the Dojo compiled."""
    made = []
    begin = Part.__init__
    monkeypatch.setattr(Part, "__init__", lambda self, *given: (begin(self, *given), made.append(self))[0])
    return made


@pytest.fixture
def told(caplog):
    """What the backend said in the log."""
    return lambda: [r.getMessage() for r in caplog.records if r.name.startswith("agents.")]


def small():
    return nn.Sequential(
        nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 4)
    ).eval()


def alike(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_model_gives_what_pytorch_gives(parts, told):
    model, x = small(), torch.randn(2, 2, 6, 6)
    compiled = torch.compile(model, backend="dojo")
    with torch.inference_mode():
        alike(compiled(x), model(x))
        alike(compiled(x.permute(0, 1, 3, 2)), model(x.permute(0, 1, 3, 2)))  # other strides
    assert not told()
    assert len(parts) == 2  # TorchDynamo compiles for the strides too


def test_the_backend_is_found_by_its_name():
    points = EntryPoint("dojo", "agents.torch_backend.backend:dojo", "torch_dynamo_backends")
    assert points.load() is dojo
    assert "dojo" in torch._dynamo.list_backends(exclude_tags=())


def test_what_compiling_took_is_in_the_log(caplog):
    with caplog.at_level("INFO", "agents.torch_backend"), torch.no_grad():
        torch.compile(lambda x: x + 1, backend="dojo")(torch.ones(3))
    (record,) = [r for r in caplog.records if r.getMessage().startswith("Compiled: ")]
    assert set(record.args) == {"build", "play", "compile", "prepare"}
    assert 0 < record.args["compile"] < 600


def test_results_that_are_constants_or_arguments_are_given_too():
    def model(x):
        return x * 2, torch.ones(2, 3), x

    compiled, x = torch.compile(model, backend="dojo"), torch.randn(2, 3)
    with torch.no_grad():
        for ours, theirs in zip(compiled(x), model(x), strict=True):
            alike(ours, theirs)


def test_tensors_lie_as_pytorch_has_them_and_nothing_is_copied(parts):
    def model(image):
        return (
            image.relu().permute(0, 2, 3, 1),
            image[:, 0] * 2,
            image.sum(1, keepdim=True).expand(2, 4, 3, 5),
        )

    image = torch.randn(2, 4, 3, 5).to(memory_format=torch.channels_last)
    compiled = torch.compile(model, backend="dojo")
    with torch.no_grad():
        *ours, expanded = compiled(image)
        *theirs, spread = model(image)
    for each, wanted in zip(ours, theirs, strict=True):
        assert torch.equal(each, wanted)
        assert each.stride() == wanted.stride()
    alike(expanded, spread)
    (part,) = parts
    (given,) = part.model.graph.inputs
    assert part.model.graph.tensors[given].shape == (2, 3, 5, 4)  # the channels lie together


def test_what_the_dojo_has_not_stays_in_pytorch_and_one_line_says_so(parts, told):
    def model(x):
        values, places = torch.median(x.relu() * 2, 1)
        return values + 1, places, (x * 3).T

    x = torch.randn(4, 5)
    with torch.no_grad():
        ours = torch.compile(model, backend="dojo")(x)
    for each, wanted in zip(ours, model(x), strict=True):
        assert torch.equal(each, wanted)
        assert each.stride() == wanted.stride()
    assert parts
    (line,) = told()
    assert line.startswith("1 of 6 operations stay in PyTorch. median.dim: the Dojo has no such operator")


def test_what_has_no_elements_splits_no_model(parts, told):
    def model(x):
        kept = torch.tensor([])  # as a cache of attention's keys begins
        return torch.cat([kept, x * 2, x[:, :0]], -1) + 1

    x = torch.randn(4, 5)
    with torch.no_grad():
        alike(torch.compile(model, backend="dojo")(x), model(x))
    assert len(parts) == 1 and not told()


def test_inputs_without_elements_or_without_axes_are_as_in_pytorch():
    def model(x):
        return x * 2 + 1, x.sum(), x.T if x.dim() == 2 else x.exp()

    with torch.no_grad():
        for x in (torch.randn(0, 3), torch.tensor(0.5), torch.randn(2, 0)):
            torch.compiler.reset()
            for ours, theirs in zip(torch.compile(model, backend="dojo")(x), model(x), strict=True):
                alike(ours, theirs)


def test_a_model_of_nothing_that_the_dojo_has_is_pytorchs(parts, told):
    x = torch.randn(4)
    with torch.no_grad():
        compiled = torch.compile(lambda x: torch.fft.rfft(x).abs(), backend="dojo")
        alike(compiled(x), torch.fft.rfft(x).abs())
    assert not parts
    assert "texts have no dtype complex64" in told()[0]


class Recurrent(nn.Module):
    def __init__(self, layer, **options):
        super().__init__()
        self.layer, self.last = layer(3, 4, **options), nn.Linear(4, 2)

    def forward(self, x):
        history, _ = self.layer(x)
        return self.last(history[:, -1])


def test_recurrent_layers_are_loops_over_time(parts, told):
    model, x = Recurrent(nn.RNN, batch_first=True).eval(), torch.randn(2, 5, 3)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        alike(torch.compile(model, backend="dojo")(x), model(x))
    assert not told()
    (part,) = parts
    assert [call.nodes for call in part.model.graph.calls].count(("rnn",)) == 1


def test_products_of_both_directions_read_their_input_alike(parts):
    model, x = nn.LSTM(3, 4, bidirectional=True).eval(), torch.randn(5, 2, 3)
    with torch.no_grad(), torch._dynamo.config.patch(allow_rnn=True):
        alike(torch.compile(model, backend="dojo")(x)[0], model(x)[0])
    (part,) = parts
    graph = part.model.graph
    products = [call.kernel for call in graph.calls if graph.tensors[call.outputs[0]].size == 5 * 2 * 16]
    assert len(products) == 2
    assert len(set(products)) == 1


def test_what_torchdynamo_leaves_out_is_told(parts, told):
    listen()
    model, x = Recurrent(nn.GRU).eval(), torch.randn(2, 5, 3)
    with torch.no_grad():
        torch.compile(model, backend="dojo")(x)
    assert not parts
    (line,) = told()
    assert line.endswith("Set torch._dynamo.config.allow_rnn = True.")


@pytest.mark.soak
def test_functions_that_write_in_place_on_their_way(parts, told):
    """Of these only the whole way through PyTorch's own gives operators that write nothing."""

    def model(x):
        near = F.cosine_similarity(x, x.flip(0)) + F.hinge_embedding_loss(x, x.sign())
        return F.rms_norm(x, (5,)) + near[:, None], F.instance_norm(x[None])

    x = torch.randn(4, 5)
    with torch.no_grad():
        alike(torch.compile(model, backend="dojo")(x), model(x))
    assert parts and not told()


def test_where_gradients_are_wanted_the_model_stays_in_pytorch(parts, told):
    model = nn.Linear(3, 2)
    torch.compile(model, backend="dojo")(torch.randn(4, 3)).sum().backward()
    assert model.weight.grad is not None
    assert not parts
    assert "gradients are wanted" in told()[0]


def test_statistics_of_a_batch_are_written_as_pytorch_writes_them():
    model, other, x = small().train(), small().train(), torch.randn(3, 2, 6, 6)
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        alike(torch.compile(model, backend="dojo")(x), other(x))
    alike(model[1].running_var, other[1].running_var)
    assert model[1].num_batches_tracked == 1


def test_each_shape_is_compiled_for_itself(parts):
    model = nn.Linear(3, 2)
    compiled = torch.compile(model, backend="dojo")
    with torch.no_grad():
        for rows in (2, 5, 7, 5):
            x = torch.randn(rows, 3)
            alike(compiled(x), model(x))
    assert len(parts) == 3  # 5 was compiled before


def test_numbers_of_a_graph_of_any_shape_are_those_of_the_call(parts):
    norm = nn.LayerNorm(3, eps=0.5)
    compiled = torch.compile(norm, backend="dojo", dynamic=True, fullgraph=True)
    with torch.no_grad():
        for norm.eps in (0.5, 2.0, 0.5):
            alike(compiled(x := torch.randn(2, 3)), norm(x))
    assert len(parts) == 2


def test_weights_are_constants_where_it_is_asked_for(parts):
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    compiled = torch.compile(model, backend="dojo", options={"freeze": True})
    with torch.no_grad():
        alike(compiled(x), model(x))
        (part,) = parts
        assert len(part.model.graph.inputs) == 1
        model.weight.mul_(2)  # in place: what was laid out is laid out anew
        alike(compiled(x), model(x))
        model.bias = nn.Parameter(torch.ones(2))
        alike(compiled(x), model(x))


def test_half_precision_and_autocast():
    model, x = nn.Sequential(nn.Linear(8, 8), nn.GELU()), torch.randn(4, 8)
    compiled = torch.compile(model, backend="dojo")
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        ours, theirs = compiled(x), model(x)
    assert ours.dtype == theirs.dtype == torch.bfloat16
    torch.testing.assert_close(ours, theirs, rtol=2e-2, atol=2e-2)


def test_places_beyond_an_embedding_are_an_index_error():
    model = nn.Embedding(5, 3)
    compiled = torch.compile(model, backend="dojo")
    with torch.no_grad():
        alike(compiled(torch.tensor([[4, 0]])), model(torch.tensor([[4, 0]])))
        with pytest.raises(IndexError, match="has elements beyond 0 to 4"):
            compiled(torch.tensor([[5, 0]]))


def test_kernels_run_on_as_many_threads_as_pytorchs(monkeypatch):
    counts = []
    monkeypatch.setattr("agents.torch_backend.part._threads", counts.append)
    compiled, before = torch.compile(torch.relu, backend="dojo"), torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            compiled(torch.randn(4))
    finally:
        torch.set_num_threads(before)
    assert counts == [1, 2]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"options": {"bugdet": 3}}, "no option 'bugdet': it has budget, records, freeze, policy"),
        ({"options": {"budget": "many"}}, "The option budget is of int"),
        ({"options": {"budget": -1}}, "a number of programs, not -1"),
        ({"options": {"policy": "wild"}}, "The option policy is one of "),
        ({"mode": "max-autotune"}, "mode='max-autotune' is Inductor's"),
    ],
)
def test_options_that_there_are_not(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        dojo(torch.fx.symbolic_trace(nn.ReLU()), [torch.ones(1)], **given)


def test_a_budget_is_spent_once_and_what_it_found_lies_in_the_records(entries, parts, monkeypatch):
    def call():
        x = torch.randn(64)
        alike(torch.compile(torch.exp, backend="dojo", options={"budget": 2})(x), x.exp())

    call()
    (kernel,) = parts[0].model.graph.kernels.values()
    with Records() as records:
        best = records.best(kernel.program.hash, "cpu", this_machine().fingerprint, "reassoc")
    assert best is not None and best.verified and best.player == searching.AGENT
    monkeypatch.setattr(searching, "timed", lambda *given: pytest.fail("It is timed again."))
    torch.compiler.reset()
    call()
    lost = searching.lost(parts[0].model.graph, Settings(budget=2))
    assert lost is not None  # what is not surely faster than the pass's on these inputs
    ran = [p.hash for p in parts[1].model.programs.values()]
    assert best.program_hash in lost or ran == [best.program_hash]


def test_a_kernel_whose_pass_has_more_moves_than_a_game_is_not_searched(entries, parts, monkeypatch, caplog):
    """A search would begin from the part of the line that a game keeps."""
    monkeypatch.setattr(game, "MAX_MOVES", 1)
    monkeypatch.setattr(searching, "Tuning", lambda *given, **named: pytest.fail("It is searched."))
    x = torch.randn(64, 64)
    with caplog.at_level("INFO", logger=searching.log.name):
        alike(torch.compile(torch.sigmoid, backend="dojo", options={"budget": 2})(x), x.sigmoid())
    assert "the pass's line has more moves than a game keeps" in caplog.text


def test_what_a_search_found_stays_where_it_is_faster_in_the_model(entries, parts, monkeypatch):
    """On its own inputs: a record may say that the start program is faster than the pass's."""

    def programs():
        return [program for part in parts for program in part.model.programs.values()]

    x = torch.randn(300, 300)
    torch.compile(torch.tanh, backend="dojo")(x)
    (passed,) = programs()
    (start,) = (kernel.program for kernel in parts[0].model.graph.kernels.values())
    with Records() as records:
        for program, seconds in (start, 1e-9), (passed, 1.0):
            records.add(
                Record(
                    program.hash, program.text, start.hash, "", "", "f32", "reassoc", "", "cpu",
                    this_machine().fingerprint, "", "code", "ok", True, seconds, (Sample(seconds),),
                )
            )  # fmt: skip
    monkeypatch.setattr(searching, "search", lambda *given: None)
    for _ in range(2):  # and in the next process
        torch.compiler.reset()
        alike(torch.compile(torch.tanh, backend="dojo", options={"budget": 2})(x), x.tanh())
    assert programs() == [passed] * 3


def test_the_fastest_record_runs_where_it_is_asked_for(entries, parts):
    x = torch.randn(4, 6)
    torch.compile(torch.neg, backend="dojo")(x)
    (start,) = (kernel.program for kernel in parts[0].model.graph.kernels.values())
    program = moves.apply(start, "interchange y1@0", target="cpu")
    with Records() as records:
        records.add(
            Record(
                program.hash, program.text, start.hash, "", "", "f32", "reassoc", "", "cpu",
                this_machine().fingerprint, "", "code", "ok", True, 1e-9, (Sample(1.0),),
            )
        )  # fmt: skip
    torch.compiler.reset()
    alike(torch.compile(torch.neg, backend="dojo", options={"records": True})(x), -x)
    first, second = ([p.hash for p in part.model.programs.values()] for part in parts)
    assert second == [program.hash] != first


def test_what_the_pass_played_is_kept(monkeypatch):
    b = Builder("k")
    b.output("y", elementwise(b, "exp", b.input("x", "f32", (64,))))
    start = b.program()
    first = heuristic(start)
    assert first != start
    monkeypatch.setattr(played, "_played", lambda start, policy: pytest.fail("It plays again."))
    assert heuristic(start) == first


# ---------------------------------------------------------------------------- a second process


@pytest.fixture
def again(monkeypatch):
    """Forget what this process traced; from then on nothing can be translated."""

    def forget():
        torch.compiler.reset()
        monkeypatch.setattr(compiling, "split", lambda *given: pytest.fail("It is translated again."))

    return forget


@pytest.fixture
def entries(tmp_path, monkeypatch):
    """The entries of a cache of the test's own."""
    monkeypatch.setenv("DOJO_HOME", str(with_objects(tmp_path)))
    return lambda: list((tmp_path / "cache" / "graphs").glob("*.graph"))


def mixed(x, places):
    """A constant, a table, places that are data, and a result in another order."""
    table = torch.tensor([0.5, 2.0, -1.0])
    return (x.T + table).relu() * 3, F.embedding(places, x).permute(1, 0, 2)


def test_a_graph_that_was_translated_is_not_translated_again(again, entries):
    x, places = torch.randn(3, 4), torch.tensor([[0, 2], [1, 1]])
    with torch.no_grad():
        wanted = mixed(x, places)
        torch.compile(mixed, backend="dojo")(x, places)
        again()
        for ours, theirs in zip(torch.compile(mixed, backend="dojo")(x, places), wanted, strict=True):
            alike(ours, theirs)
            assert ours.stride() == theirs.stride()
        with pytest.raises(IndexError, match="beyond 0 to 2"):
            torch.compile(mixed, backend="dojo")(x, places + 2)
    assert len(entries()) == 1


def test_shapes_of_a_graph_are_kept_each(again, entries):
    def call():
        compiled = torch.compile(torch.tanh, backend="dojo", dynamic=True)
        for rows in (2, 5):
            x = torch.randn(rows, 3)
            alike(compiled(x), torch.tanh(x))

    call()
    assert len(entries()) == 2
    again()
    call()


@pytest.mark.parametrize("damage", [lambda text: text[:-9], lambda text: b"{}\n", lambda text: b""])
def test_a_damaged_entry_is_none(entries, parts, damage):
    x = torch.randn(3)
    torch.compile(torch.tanh, backend="dojo")(x)
    (entry,) = entries()
    sealed.keep(entry, damage(bytes(sealed.read(entry))))  # as somebody would who knows the seal
    torch.compiler.reset()
    alike(torch.compile(torch.tanh, backend="dojo")(x), torch.tanh(x))
    assert len(parts) == 2


def test_what_a_graph_hangs_on_is_in_its_key():
    def key(function, *given):
        traced = torch.fx.symbolic_trace(function)
        return graph_key(traced, given)

    x = torch.randn(4, 4)
    keys = [
        key(lambda x: x.sum(0), x),
        key(lambda x: x.sum(1), x),
        key(lambda x: x.sum(True), x),
        key(lambda x: x.sum(0), x.T),
        key(lambda x: x.sum(0), x.double()),
        key(lambda x: x.prod(0), x),
        key(lambda x: F.max_pool1d(x, 2), x),
        key(lambda x: F.adaptive_max_pool1d(x, 2), x),
    ]
    with torch.no_grad():
        keys.append(key(lambda x: x.sum(0), x))
    with torch.autocast("cpu", torch.bfloat16):
        keys.append(key(lambda x: x.sum(0), x))
    assert None not in keys and len(set(keys)) == len(keys)
    assert keys[0] == key(lambda y: y.sum(0), x + 1)  # neither names nor values


def test_what_a_text_does_not_tell_has_no_key():
    class Own(torch.Tensor):
        pass

    traced = torch.fx.symbolic_trace(lambda x: torch.relu(x))
    assert graph_key(traced, [torch.ones(2)])
    assert graph_key(traced, [torch.ones(2).as_subclass(Own)]) is None
    assert graph_key(traced, [torch.ones(2).to_sparse()]) is None
    assert graph_key(torch.fx.symbolic_trace(nn.Sequential(nn.ReLU())), [torch.ones(2)]) is None  # a module
    for node in traced.graph.nodes:
        if node.op == "call_function":
            node.target = alike  # of this file, which may change
    assert graph_key(traced, [torch.ones(2)]) is None


@pytest.mark.parametrize(
    "model", [lambda x: x.add_(1), lambda x: (x[0], x * 2), lambda x: x.median(0)[0] + 1]
)
def test_a_call_that_is_more_than_the_model_is_not_kept(entries, model):
    x = torch.randn(3, 4)
    y = x.clone()
    with torch.no_grad():
        for ours, theirs in zip(torch.compile(model, backend="dojo")(x), model(y), strict=True):
            alike(ours, theirs)
    alike(x, y)
    assert not entries()


def test_the_pass_hears_which_inputs_are_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    from agents.torch_backend.programs import choice
    from agents.torch_backend.settings import Settings

    heard = list[frozenset[str]]()

    def plays(start: Program, policy: str, constants: frozenset[str]) -> Program:
        heard.append(constants)
        return start

    monkeypatch.setattr("agents.torch_backend.programs.heuristic", plays)
    m = Drawn()
    graph = m.model(m.matmul(m.input("x", 8, 12), m.weight("w", 12, 16)))
    (kernel,) = graph.kernels.values()
    assert choice(graph, Settings())(kernel.program) is kernel.program
    assert heard == [frozenset({kernel.program.inputs[1]})]

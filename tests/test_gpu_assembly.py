"""The machine code of GPU programs, linked to the lines of the program."""

import re

import pytest

from dojo_core import kernels
from dojo_core.game import Game
from dojo_core.line import lines_folder, read_line
from dojo_core.targets.cuda import build as cuda
from dojo_core.targets.hip import build as hip
from dojo_core.targets.registry import backend
from tests.test_cli import dojo

MISSING = "%s is missing: pip install 'dojo[gpu]'"


def softmax(target):
    recorded = read_line((lines_folder("cuda") / "softmax.line").read_text(), "softmax")
    game = Game.new(kernels.get("softmax").program((64, 512)), "softmax", "64x512", target, "reassoc")
    recorded.play(game, {})
    return game.current.program


def linked(target, instruction):
    """The lines of the generated code that instructions of a kind come from."""
    program = softmax(target)
    made = backend(target).assembly(program, "reassoc")
    lines = backend(target).generate(program, "reassoc").text.splitlines()
    assert not any(row.lstrip().startswith((".loc", "//", "/*")) for row in made.lines)
    assert len(made.lines) == len(made.nodes) == len(made.c_lines)
    found = zip(made.lines, made.c_lines, strict=True)
    return {lines[n].strip() for row, n in found if n is not None and re.search(instruction, row)}


@pytest.mark.skipif(cuda.compiler() is None, reason=MISSING % "A CUDA compiler")
@pytest.mark.skipif(cuda.disassembler() is None, reason=MISSING % "nvdisasm")
def test_wide_loads_come_from_the_lines_that_load_vectors():
    wide = linked("cuda", r"LDG\S*\.128")
    assert wide and all("f32x4" in line for line in wide)
    assert all("SHUFFLE_XOR" in line for line in linked("cuda", "SHFL"))


@pytest.mark.skipif(hip.compiler() is None, reason="clang is missing: apt-get install clang-19")
def test_so_they_do_on_an_amd_gpu():
    wide = linked("hip", "global_load_dwordx4")
    assert wide and all("f32x4" in line for line in wide)


def test_what_is_missing_is_told_with_the_way_to_get_it(monkeypatch):
    monkeypatch.setattr(cuda, "compiler", lambda: cuda.Compiler("NVRTC"))
    monkeypatch.setattr(cuda, "disassembler", lambda: None)
    said = dojo("play", "softmax:64x512", "--line", "softmax", "--target", "cuda", "--asm", code=1).output
    assert "There is no assembly to show. The disassembler" in said and "dojo[gpu]" in said

"""Processors as values: known ones, their limits, what a machine tells of its own, code for each anywhere."""

import json
from dataclasses import replace

import pytest

from dojo_core import parse
from dojo_core.codegen.code import NotGeneratable
from dojo_core.targets.cpu.codegen import generate, preamble
from dojo_core.targets.cpu.excerpt import needed
from dojo_core.targets.cpu.limits import cpu, limits_of
from dojo_core.targets.cpu.processor import (
    KNOWN,
    NotAProcessor,
    UnknownProcessor,
    from_json,
    host,
    known,
    toolchain_for,
)

COPY = """\
kernel k
in x
out y
x f32 [64] heap
y f32 [64] heap
4 16:v y[{0}*16+{1}] = x[{0}*16+{1}]
"""


def test_this_machine_is_one_of_them():
    assert cpu() == limits_of(host()) and host() is host()
    assert host().toolchain is None and host().threads >= 1
    assert len({*KNOWN.values(), host()}) == len(KNOWN) + 1
    with pytest.raises(UnknownProcessor, match=r"There is no processor 'z80'\. Those known are: x86-64-v2, "):
        known("z80")


def test_what_is_legal_is_what_there_is_code_for():
    program = parse(COPY)
    for processor in KNOWN.values():
        if 16 in limits_of(processor).vector_widths["f32"]:
            assert "f32x16_store(" in generate(program, processor=processor).text
            assert needed("f32x16_store(p, x)", preamble(processor))
        else:
            with pytest.raises(NotGeneratable, match="16 is no vector width of this processor for f32"):
                generate(program, processor=processor)


@pytest.mark.parametrize("name", KNOWN)
def test_json_both_ways(name):
    assert from_json(known(name).json) == known(name)


def test_a_machines_own_comes_back_with_the_toolchain_that_is_here():
    told = from_json(host().json)
    assert replace(told, toolchain=None) == host() and told.toolchain == toolchain_for(host())


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("name", "", "a name of at most 200"),
        ("name", "a\nb", "a name of at most 200"),
        ("name", 7, "a name of at most 200"),
        ("features", ["-march=native -o /etc/passwd"], "words"),
        ("features", ["a"] * 2000, "at most 1024 words"),
        ("features", "avx2", "words"),
        ("instruction_set", None, "one word"),
        ("instruction_set", "x86 64", "one word"),
        ("model", ["haswell"], "one word"),
        ("vectors", [], "64, 32, 16 bytes, widest first"),
        ("vectors", [[16, 32], [32, 32]], "widest first"),
        ("vectors", [[8, 32]], "widest first"),
        ("vectors", [[16, 0]], "registers are a whole number"),
        ("vectors", [[16]], "pairs"),
        ("vectors", {}, "pairs"),
        ("caches", [1, 2], "three caches"),
        ("caches", [1, 2, -1], "whole number"),
        ("caches", [1, 2, 1 << 50], "whole number"),
        ("register_bytes", 0, "whole number"),
        ("threads", True, "threads are a whole number"),
        ("threads", 1.5, "threads are a whole number"),
    ],
)
def test_what_no_processor_is_is_told(key, value, sentence):
    told = json.loads(known("armv8-a").json)
    told[key] = value
    with pytest.raises(NotAProcessor, match=sentence):
        from_json(json.dumps(told))
    del told[key]
    if key != "model":
        with pytest.raises(NotAProcessor):
            from_json(json.dumps(told))


@pytest.mark.parametrize("text", ["", "[]", "7", "{", "[" * 60000, '{"name": "' + "a" * 70000 + '"}'])
def test_what_is_no_json_of_a_processor_is_told(text):
    with pytest.raises(NotAProcessor):
        from_json(text)


def test_a_wire_brings_no_commands():
    told = json.loads(known("armv8-a").json) | {"toolchain": {"compiler": "rm", "flags": ["-rf", "/"]}}
    assert from_json(json.dumps(told)).toolchain == known("armv8-a").toolchain


def test_missing_tools_are_told_with_what_brings_them():
    here = known("armv8-a").toolchain
    assert here is not None
    absent = replace(here, compiler="no-such-gcc", emulator=("no-such-qemu", "-L", "/"))
    assert absent.missing == (
        "no-such-gcc and no-such-qemu are not here. This brings it: "
        "apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
    )


def test_x86_is_compiled_by_a_cross_compiler_where_the_machine_is_none(monkeypatch):
    own = known("x86-64-v4").toolchain
    monkeypatch.setattr("dojo_core.system.platform.machine", lambda: "aarch64")
    elsewhere = toolchain_for(known("x86-64-v4"))
    assert elsewhere is not None and elsewhere.compiler == "x86_64-linux-gnu-gcc"
    assert elsewhere.install == "apt-get install gcc-x86-64-linux-gnu"
    monkeypatch.setattr("dojo_core.system.platform.machine", lambda: "x86_64")
    here = toolchain_for(known("x86-64-v4"))
    assert here is not None and here.compiler == "gcc" and here.flags == elsewhere.flags
    assert own in (here, elsewhere)

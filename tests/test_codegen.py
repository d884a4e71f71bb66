# ruff: noqa: E501  (the C and where each line comes from stand side by side)
"""The C of a program: its text line by line, names, and what it computes against the interpreter."""

import contextlib
import random
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dojo_core import TextError, apply, kernels, parse
from dojo_core.codegen.code import NotGeneratable, Parameter
from dojo_core.game import Game
from dojo_core.line import recorded_lines
from dojo_core.moves.examples import WIDE
from dojo_core.moves.legality import all_candidates, context, is_legal
from dojo_core.program.dtypes import ARITHMETIC, INTEGERS, arithmetic, dtypes_of
from dojo_core.program.interpret import interpret
from dojo_core.program.target import VECTOR_DTYPES
from dojo_core.program.tree import DTYPE_BYTES, Program
from dojo_core.targets.cpu.chains import BARRIER
from dojo_core.targets.cpu.codegen import STRICT, WRITTEN_OUT, generate
from dojo_core.targets.cpu.processor import host, known
from tests.compiled import PREAMBLE, load, random_inputs, run, run_program
from tests.test_moves import kernel
from tests.thorough import covering, group
from tests.tiny import TINY

# Vectors that every machine has: what is played must not depend on where the tests run.
NARROW = replace(WIDE, name="narrow", vector_widths={"f32": (4,), "f64": (2,), "i32": (4,)})


def program(body: str, buffers: str):
    return parse(kernel(body, buffers))


def told(code) -> str:
    """Each line of C behind the path of the node it comes from."""
    return "\n".join(
        f"{'.'.join(map(str, node or ())):10}{line}".rstrip()
        for node, line in zip(code.nodes, code.text.splitlines(), strict=True)
    )


GOLDEN = {
    "scopes, a parallel one, a temporary in the workspace": (
        "x f32 [4, 40] heap\ny f32 [4] heap\nt f32 [4, 40] heap",
        "4 40 t[{0},{1}] = x[{0},-{1}+39]\n4:p y[{0}] = 0\n| 40 y[{0}] += t[{0},{1}]",
        """
          void kernel_k(void *const *arrays, void *workspace) {
              const f32 *restrict x = arrays[0];
              f32 *restrict y = arrays[1];
              f32 *restrict t = (void *)((char *)workspace + 0);
0             for (int i0 = 0; i0 < 4; ++i0) {
0.0               for (int i1 = 0; i1 < 40; ++i1) {
0.0.0                 // t[{0},{1}] = x[{0},-{1}+39]
0.0.0                 t[i0*40 + i1] = x[i0*40 - i1 + 39];
0.0               }
0             }
1             #pragma omp parallel for schedule(static)
1             for (int i0 = 0; i0 < 4; ++i0) {
1.0               // y[{0}] = 0
1.0               y[i0] = 0.0f;
1.1               for (int i1 = 0; i1 < 40; ++i1) {
1.1.0                 // y[{0}] += t[{0},{1}]
1.1.0                 y[i0] += t[i0*40 + i1];
1.1               }
1             }
          }
        """,
    ),
    "unrolled, each copy with its own stack buffer; guards lose what is known": (
        "x f32 [4] heap\ny f32 [4] heap\nt f32 [4:N] stack",
        "2 2:u t[{0}*2+{1}] = x[{0}*2+{1}]*{1}\n| | y[{0}*2+{1}] = t[{0}*2+{1}] if {0}*2+{1} < 3\n2 2:u y[{0}*2+{1}] = 0 if {1} >= 1 and {0} == 1",
        """
          void kernel_k(void *const *arrays, void *workspace) {
              const f32 *restrict x = arrays[0];
              f32 *restrict y = arrays[1];
              (void)workspace;
0             for (int i0 = 0; i0 < 2; ++i0) {
0.0               {
0.0                   f32 t[1] __attribute__((aligned(64)));
0.0.0                 // t[{0}*2+{1}] = x[{0}*2+{1}]*{1}
0.0.0                 t[0] = x[i0*2] * 0.0f;
0.0.1                 // y[{0}*2+{1}] = t[{0}*2+{1}] if {0}*2+{1} < 3
0.0.1                 if (i0*2 < 3) y[i0*2] = t[0];
0.0               }
0.0               {
0.0                   f32 t[1] __attribute__((aligned(64)));
0.0.0                 t[0] = x[i0*2 + 1] * 1.0f;
0.0.1                 if (i0*2 < 2) y[i0*2 + 1] = t[0];
0.0               }
0             }
1             for (int i0 = 0; i0 < 2; ++i0) {
1.0.0             // y[{0}*2+{1}] = 0 if {1} >= 1 and {0} == 1
1.0.0             if (i0 == 1) y[i0*2 + 1] = 0.0f;
1             }
          }
        """,
    ),
    "vectors, a reduction over their lanes, registers, a prefetch": (
        "x f32 [8, 16] heap\ny f32 [8] heap\np f32 [8:N, 2, 4] register",
        "8 2:u 4:v p[{0},{1},{2}] = 0\n"
        "| 2 2:u 4:v p[{0},{2},{3}] max= x[{0},{1}*8+{2}*4+{3}] !prefetch(x[{0}+1,{1}*8+{2}*4+{3}])\n"
        "| y[{0}] = 0\n"
        "| 4:v y[{0}] += p[{0},0,{1}]",
        """
          void kernel_k(void *const *arrays, void *workspace) {
              const f32 *restrict x = arrays[0];
              f32 *restrict y = arrays[1];
              (void)workspace;
0             for (int i0 = 0; i0 < 8; ++i0) {
0                 f32x4 p_0, p_1;
0.0.0.0           // p[{0},{1},{2}] = 0
0.0.0.0           p_0 = f32x4_splat(0.0f);
0.0.0.0           p_1 = f32x4_splat(0.0f);
0.1               for (int i1 = 0; i1 < 2; ++i1) {
0.1.0.0.0             // p[{0},{2},{3}] max= x[{0},{1}*8+{2}*4+{3}] !prefetch(x[{0}+1,{1}*8+{2}*4+{3}])
0.1.0.0.0             prefetch(x, 4*((i64)i0*16 + i1*8 + 16));
0.1.0.0.0             p_0 = f32x4_max(f32x4_load(&x[i0*16 + i1*8]), p_0);
0.1.0.0.0             prefetch(x, 4*((i64)i0*16 + i1*8 + 20));
0.1.0.0.0             p_1 = f32x4_max(f32x4_load(&x[i0*16 + i1*8 + 4]), p_1);
0.1               }
0.2               // y[{0}] = 0
0.2               y[i0] = 0.0f;
0.3.0             // y[{0}] += p[{0},0,{1}]
0.3.0             y[i0] += f32x4_sum(p_0);
0             }
          }
        """,
    ),
    "truth in registers that only selections of as wide numbers read is a mask": (
        "x f32 [8] heap\ny f32 [8] heap\nb bool [2:N, 4] register",
        "2 4:v b[{0},{1}] = isnan(x[{0}*4+{1}])\n| 4:v y[{0}*4+{1}] = select(b[{0},{1}],0,x[{0}*4+{1}])",
        """
          void kernel_k(void *const *arrays, void *workspace) {
              const f32 *restrict x = arrays[0];
              f32 *restrict y = arrays[1];
              (void)workspace;
0             for (int i0 = 0; i0 < 2; ++i0) {
0                 i32x4 b;
0.0.0             // b[{0},{1}] = isnan(x[{0}*4+{1}])
0.0.0             b = (i32x4)(f32x4_load(&x[i0*4]) != f32x4_load(&x[i0*4]));
0.1.0             // y[{0}*4+{1}] = select(b[{0},{1}],0,x[{0}*4+{1}])
0.1.0             f32x4_store(&y[i0*4], f32x4_select(b, f32x4_splat(0.0f), f32x4_load(&x[i0*4])));
0             }
          }
        """,
    ),
    "a vector times one number, streamed; the prefetch of an output": (
        "x f32 [8, 16] heap\nw f32 [8] heap\ny f32 [8, 16] heap",
        "8 4 4:v y[{0},{1}*4+{2}] = x[{0},{1}*4+{2}]*w[{0}] !prefetch(y[{0}+1,{1}*4+{2}]) !stream",
        """
          void kernel_k(void *const *arrays, void *workspace) {
              const f32 *restrict x = arrays[0];
              const f32 *restrict w = arrays[1];
              f32 *restrict y = arrays[2];
              (void)workspace;
0             for (int i0 = 0; i0 < 8; ++i0) {
0.0               for (int i1 = 0; i1 < 4; ++i1) {
0.0.0.0               // y[{0},{1}*4+{2}] = x[{0},{1}*4+{2}]*w[{0}] !prefetch(y[{0}+1,{1}*4+{2}]) !stream
0.0.0.0               prefetch_write(y, 4*((i64)i0*16 + i1*4 + 16));
0.0.0.0               f32x4_stream(&y[i0*16 + i1*4], f32x4_load(&x[i0*16 + i1*4]) * w[i0]);
0.0               }
0             }
          }
        """,
    ),
    "several dtypes; scalars in registers": (
        "x f64 [8, 16] heap\nw i32 [8] heap\ny bf16 [8] heap\nb bool [8:N] stack\nm f64 [8:N] register\nc bf16 [8:N, 2] register\ns i32 [8:N] register",
        "8 m[{0}] = -inf\n| 16 m[{0}] max= x[{0},{1}]\n| 2:u c[{0},{1}] = bf16(m[{0}])\n"
        "| b[{0}] = m[{0}] < w[{0}]\n| s[{0}] = i32(m[{0}])\n| s[{0}] += s[{0}]*w[{0}]\n| y[{0}] = select(b[{0}],c[{0},1],2.5)\n| y[{0}] += c[{0},0]",
        """
          void kernel_k(void *const *arrays, void *workspace) {
              const f64 *restrict x = arrays[0];
              const i32 *restrict w = arrays[1];
              bf16 *restrict y = arrays[2];
              (void)workspace;
0             for (int i0 = 0; i0 < 8; ++i0) {
0                 f64 m;
0                 bf16 c_0, c_1;
0                 u8 b[1] __attribute__((aligned(64)));
0                 i32 s;
0.0               // m[{0}] = -inf
0.0               m = -__builtin_inf();
0.1               for (int i1 = 0; i1 < 16; ++i1) {
0.1.0                 // m[{0}] max= x[{0},{1}]
0.1.0                 m = f64_max(x[i0*16 + i1], m);
0.1               }
0.2.0             // c[{0},{1}] = bf16(m[{0}])
0.2.0             c_0 = bf16_from_f32((f32)m);
0.2.0             c_1 = bf16_from_f32((f32)m);
0.3               // b[{0}] = m[{0}] < w[{0}]
0.3               b[0] = m < (f64)w[i0];
0.4               // s[{0}] = i32(m[{0}])
0.4               s = i32_from_f64(m);
0.5               // s[{0}] += s[{0}]*w[{0}]
0.5               s = i32_add(s, i32_multiply(s, w[i0]));
0.6               // y[{0}] = select(b[{0}],c[{0},1],2.5)
0.6               y[i0] = bf16_from_f32(b[0] != 0 ? f32_from_bf16(c_1) : 2.5f);
0.7               // y[{0}] += c[{0},0]
0.7               y[i0] = bf16_from_f32(f32_from_bf16(y[i0]) + f32_from_bf16(c_0));
0             }
          }
        """,
    ),
    "vectors of several dtypes": (
        "x bf16 [32] heap\nw i8 [32] heap\ny i32 [] heap\nf f32 [16] stack\nv f16 [16] heap",
        "y[] = 0\n4 4:v f[{0}*4+{1}] = x[{0}*4+{1}]*w[{0}*4+{1}]\n| 4:v v[{0}*4+{1}] = f16(f[{0}*4+{1}])\n4 4:v y[] += i32(v[{0}*4+{1}])",
        """
          void kernel_k(void *const *arrays, void *workspace) {
              const bf16 *restrict x = arrays[0];
              const i8 *restrict w = arrays[1];
              i32 *restrict y = arrays[2];
              f16 *restrict v = (void *)((char *)workspace + 0);
0             // y[] = 0
0             y[0] = 0;
1             for (int i0 = 0; i0 < 4; ++i0) {
1                 f32 f[16] __attribute__((aligned(64)));
1.0.0             // f[{0}*4+{1}] = x[{0}*4+{1}]*w[{0}*4+{1}]
1.0.0             f32x4_store(&f[i0*4], bf16x4_f32(bf16x4_load(&x[i0*4])) * __builtin_convertvector(__builtin_convertvector(i8x4_load(&w[i0*4]), i32x4), f32x4));
1.1.0             // v[{0}*4+{1}] = f16(f[{0}*4+{1}])
1.1.0             f16x4_store(&v[i0*4], f32x4_f16(f32x4_load(&f[i0*4])));
1             }
2             for (int i0 = 0; i0 < 4; ++i0) {
2.0.0             // y[] += i32(v[{0}*4+{1}])
2.0.0             y[0] = i32_add(y[0], i32x4_sum(f32x4_i32(f16x4_f32(f16x4_load(&v[i0*4])))));
2             }
          }
        """,
    ),
}


@pytest.mark.parametrize(("buffers", "body", "text"), GOLDEN.values(), ids=GOLDEN)
def test_the_c_of_each_line(buffers, body, text):
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    code = generate(program(body, buffers), processor=known("x86-64-v4"))
    assert told(code).splitlines() == [line for line in lines if line]


def test_strict_fuses_nothing_but_a_multiply_accumulate():
    text = generate(
        program(
            "8 y[{0}] = 0\n8 4 y[{0}] += x[{0},{1}]*x[{0},{1}]\n8 t[{0}] = y[{0}]*2\n8 y[{0}] = t[{0}] + 1",
            "x f32 [8, 4] heap\ny f32 [8] heap\nt f32 [8] heap",
        ),
        "strict",
    ).text
    assert text.startswith('__attribute__((optimize("fp-contract=off"))) void kernel_k(')
    assert "y[i0] = f32_fma(x[i0*4 + i1], x[i0*4 + i1], y[i0]);" in text
    assert text.count("fma") == 1


def test_a_scope_or_an_index_beyond_31_bits_is_wide():
    loop = generate(program("3000000000 y[{0}] = x[{0}]", "x u8 [3000000000] heap\ny u8 [3000000000] heap"))
    assert "for (i64 i0 = 0; i0 < 3000000000; ++i0) {" in loop.text
    square = generate(
        program("65536 65536 y[{0},{1}] = x[{0},{1}]", "x u8 [65536, 65536] heap\ny u8 [65536, 65536] heap")
    )
    assert "y[(i64)i0*65536 + i1] = x[(i64)i0*65536 + i1];" in square.text


def test_what_the_caller_hands_in():
    code = generate(
        program(
            "5 3 t[{0},{1}] = exp(x[{0},{1}])\n5 3 u[{0},{1}] = sqrt(t[{0},{1}])\n5 y[{0}] = 0\n5 3 y[{0}] += f32(u[{0},{1}])",
            "x f32 [5, 3] heap\ny f32 [5] heap\nt f32 [5, 3] heap\nu f64 [5, 3] heap",
        )
    )
    assert code.parameters == (Parameter("x", "f32", (5, 3), "in"), Parameter("y", "f32", (5,), "out"))
    assert code.workspace_bytes == 64 + 128  # 60 and 120 bytes, each piece on a cache line of its own
    assert "f64 *restrict u = (void *)((char *)workspace + 64);" in code.text
    assert code.error_bound == pytest.approx(1.9e-7 + 1e-15)  # exp in f32, sqrt in f64


# ------------------------------------------------------------------------------- names


def line_end():
    """The recorded softmax line, on a tiny shape and with vectors that every machine has."""
    game = Game.new(kernels.get("softmax").program((6, 16)), "softmax", policy="algebraic")
    report = recorded_lines()["softmax"].play(game, {"block": 8, "lanes": 4})
    assert all(entry.applies for entry in report.entries)
    return game.current.program


def without_names(text: str, names: list[str]) -> str:
    """The C with the k-th array's name, also in its registers' ``name_0_1``, written ``<k>``."""
    pattern = re.compile(rf"\b({'|'.join(names)})((?:_\d+)*)\b")
    return pattern.sub(lambda m: f"<{names.index(m.group(1))}>{m.group(2)}", text)


@pytest.mark.parametrize("end", [False, True], ids=["start", "end of the line"])
def test_renaming_the_arrays_changes_nothing_but_names(end):
    before = line_end() if end else kernels.get("softmax").program((6, 16))
    old = list(dict.fromkeys(a for b in before.buffers for a in (b.name, *b.arrays)))
    new = [*old[1:], old[0]]  # every array gets its neighbour's name: no name keeps its meaning
    text = re.sub(rf"\b({'|'.join(old)})\b", lambda m: new[old.index(m.group())], before.text)
    after = parse(text)
    assert after.hash != before.hash
    assert without_names(generate(after).text, new) == without_names(generate(before).text, old)


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("4 y[{0}] = {0}*1000000000 - 2000000000", "(i64)i0*1000000000 - 2000000000"),  # 3*10**9 on the way
        ("4 y[{0}] = x[{0}]*1e-50", "x[i0] * 0.0f"),
        ("4 y[{0}] = x[{0}]*-1e-50", "x[i0] * (-0.0f)"),
        ("4 y[{0}] = x[{0}]*1e-45", "x[i0] * 1e-45f"),
        ("4 y[{0}] = x[{0}] !prefetch(x[{0}+1000])", "prefetch(x, 4*((i64)i0 + 1000));"),
    ],
)
def test_numbers_near_the_ends_of_their_types(body, shown):
    """Compiled without a warning, and what the program says."""
    program = parse(f"kernel k\nin x\nout y\nx f32 [4] heap\ny f32 [4] heap\n{body}\n")
    assert shown in generate(program).text
    inputs = random_inputs(program)
    np.testing.assert_allclose(
        run_program(program, inputs)["y"], interpret(program, inputs)["y"], 1e-6, 1e-44
    )


def test_a_prefetch_that_has_no_address_is_left_out():
    """Moves may bring one: a scope that becomes longer, a padded dimension."""
    head = "kernel k\nin x\nout y\nx f32 [4, 4] heap\ny f32 [4, 4] heap\n"
    program = parse(head + "4 4 y[{0},{1}] = x[{0},{1}] !prefetch(x[{0}*80000000000000000,{1}])\n")
    assert "prefetch(x, " in generate(program).text
    x, rest = program.buffers[0], program.buffers[1:]
    longer = replace(x, dims=(x.dims[0], replace(x.dims[1], size=16)))
    assert "prefetch(x, " not in generate(program.edit(buffers=(longer, *rest))).text


def test_shorts_are_multiplied_without_signs():
    """As int their product would leave int, which C does not define."""
    program = parse("kernel k\nin x\nout y\nx i16 [4] heap\ny i16 [4] heap\n4 y[{0}] = x[{0}]*x[{0}]\n")
    x = np.array([-1, 32767, -32768, 255], np.int16)
    assert "i16_multiply(i16 a, i16 b) { return (i16)((u32)a * (u32)b); }" in PREAMBLE
    np.testing.assert_array_equal(run_program(program, {"x": x})["y"], x * x)


def test_names_that_c_or_we_have_taken_are_changed():
    names = ["int", "arrays", "workspace", "prefetch", "i0", "f32x4_exp", "kernel_k", "_x", "acc_0"]
    lines = ["kernel k", "in x", "out y", "x f32 [4] heap", "y f32 [4] heap", "acc f32 [4:N, 2] register"]
    lines += [f"{name} f32 [4] heap" for name in names]
    lines += ["4 acc[{0},0] = x[{0}]", *(f"| {name}[{{0}}] = x[{{0}}] + 1" for name in names)]
    lines += ["| y[{0}] = acc[{0},0]", *(f"| y[{{0}}] += {name}[{{0}}]" for name in names)]
    found = parse("\n".join(lines))
    text = generate(found).text
    for name in ("int_", "arrays_", "workspace_", "prefetch_", "v_i0", "v_f32x4_exp", "v_kernel_k", "v__x"):
        assert f"f32 *restrict {name} = " in text
    assert "f32 acc__0;" in text
    inputs = random_inputs(found)
    np.testing.assert_allclose(run_program(found, inputs)["y"], inputs["x"] * 10 + 9, rtol=1e-5)


@pytest.mark.thorough  # test_same_c.py has its bytes
def test_the_same_program_gives_the_same_c_in_every_process():
    script = (
        "from dojo_core import kernels\n"
        "from dojo_core.targets.cpu.codegen import STRICT, WRITTEN_OUT, generate\n"
        "for name in kernels.names(): print(generate(kernels.get(name).program(kernels.get(name).shapes[0])).text)"
    )
    elsewhere = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONHASHSEED": "1", "PATH": "/usr/bin:/bin"},  # here it is another one, drawn at random
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    starts = (kernels.get(name).program(kernels.get(name).shapes[0]) for name in kernels.names())
    here = "".join(f"{generate(start).text}\n" for start in starts)
    assert elsewhere == here
    assert here.count("void kernel_") == len(kernels.names())


# ------------------------------------------------------------------------------- numbers


def agree(found: list[tuple[Program, str]], start: Program) -> None:
    """The C of each position, compiled together under its policy, computes what the start program means."""
    codes = [generate(replace(each, name=f"k{n}"), policy) for n, (each, policy) in enumerate(found)]
    library, inputs = load("\n".join(code.text for code in codes)), random_inputs(start)
    meant = interpret(start, inputs)
    for code in codes:
        got = run(code, inputs, library)
        for name, expected in meant.items():
            np.testing.assert_allclose(
                got[name].reshape(expected.shape), expected, rtol=1e-4, atol=1e-4, err_msg=code.text
            )


@cache
def walk(start, seed: int):
    """A position reached by a handful of random legal moves, drawn by name first, and the moves' names."""
    drawn, names, here = random.Random(seed), [], start
    for _ in range(12):
        at = context(here, NARROW, "algebraic")
        by_name: dict[str, list] = {}
        for move in all_candidates(at):
            by_name.setdefault(move.name, []).append(move)
        # Judged as they are drawn: most of a long program's candidates are never asked about.
        names_drawn = drawn.sample(sorted(by_name), len(by_name))
        shuffled = (m for n in names_drawn for m in drawn.sample(by_name[n], len(by_name[n])))
        move = next(m for m in shuffled if is_legal(at, m))
        here = apply(here, move, NARROW, "algebraic")
        names.append(move.name)
    return here, names


@pytest.mark.parametrize("seeds", [(0,), pytest.param((1, 2), marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", covering(TINY, group))
def test_each_start_and_positions_after_a_handful_of_moves_compute_what_it_means(name, seeds):
    start = kernels.get(name).program(TINY[name])
    ends = [walk(start, seed)[0] for seed in seeds]
    policies = {"strict": [start], "algebraic": [start, *ends]}
    found = [(each, policy) for policy, positions in policies.items() for each in positions]
    agree(found, start)


@pytest.mark.thorough  # of the walks that make thorough compiles: above
def test_the_walks_meet_every_mark_and_place():
    names = {n for name, shape in TINY.items() for n in walk(kernels.get(name).program(shape), 0)[1]}
    assert {"unroll", "parallelize", "vectorize", "prefetch", "set_location", "split_reduction"} <= names


def test_the_end_of_the_line_computes_softmax():
    agree([(line_end(), "algebraic")], kernels.get("softmax").program((6, 16)))


FORMS = [
    *(f"x[{{0}}] {sign} w[{{0}}]" for sign in ("+", "-", "*", "<", "<=", ">", ">=", "==", "!=")),
    *(f"x[{{0}}] {sign} {n}" for sign in ("+", "*", "<", "==") for n in (2, 2.5)),
    *("x[{0}] / ({0}+1)", "7 / ({0}+1)", "max(x[{0}],w[{0}])", "min(x[{0}],{0}*99)", "fma(x[{0}],w[{0}],3)"),
    *("-x[{0}]", "abs(x[{0}])", "floor(x[{0}])", "round(x[{0}])", "select(x[{0}],w[{0}],3)", "x[{0}]"),
    *(
        "bool(x[{0}])",
        "f64(x[{0}])",
        "i32(x[{0}])",
        "sigmoid(x[{0}])",
        "{0}*{0}",
        "2",
        "2.5",
        "x[{0}] < 300",
        "max(x[{0}],-200)",
    ),
    *("xor(x[{0}],{0})", "not(x[{0}])", "shl(x[{0}],{0})", "shr(w[{0}],x[{0}])", "fmod(x[{0}],w[{0}])"),
    *("isnan(x[{0}])", "isinf(w[{0}])", "sign(x[{0}])"),
]
TYPES = [(d, d, d) for d in ARITHMETIC] + [
    *(("u8", "i8", "i16"), ("u8", "i8", "i32"), ("i32", "i64", "f64"), ("i8", "f32", "f64"), ("bool", "i8", "i32")),
    *(("f32", "f64", "f64"), ("i16", "bool", "f64"), ("bf16", "f32", "f32"), ("f16", "u8", "f16"), ("f32", "f32", "bool")),
]  # fmt: skip
ROUNDING = {"f16": 2e-3, "bf16": 2e-2}  # of a few operations, one after the other


def agree_all(found: list) -> None:
    """The same for many programs, compiled together; integers exactly, and of their full range too."""
    named = [replace(each, name=f"k{number}") for number, each in enumerate(found)]
    codes = [generate(each) for each in named]
    library = load("\n".join(code.text for code in codes))
    whole = [(e, c) for e, c in zip(named, codes, strict=True) if e.buffer_of["x"].dtype in INTEGERS]
    for each, code, full in (
        *((e, c, False) for e, c in zip(named, codes, strict=True)),
        *((e, c, True) for e, c in whole),
    ):
        inputs = random_inputs(each, full=full)
        got, expected = run(code, inputs, library)["y"], interpret(each, inputs)["y"]
        dtype = each.buffer_of["y"].dtype
        if dtype in INTEGERS:
            np.testing.assert_array_equal(got, expected, err_msg=each.text)
            continue
        allowed = max(ROUNDING.get(d, 1e-5) for d in dtypes_of(each).values())
        np.testing.assert_allclose(got, expected, rtol=allowed, atol=0.1 * allowed, err_msg=each.text)


def sound(body: str, buffers: str):
    """The program, or None where its mix of dtypes is refused."""
    try:
        return program(body, buffers)
    except TextError:
        return None


# Every second of each form's dtypes, which are every second of each dtype's forms; every sixth where they are
# accumulated, made as what is assigned. make soak tries all.
@pytest.mark.parametrize(
    ("sign", "each"),
    [("=", 2), ("+=", 6), *(pytest.param(sign, 1, marks=pytest.mark.soak) for sign in ("=", "+="))],
)
def test_every_function_agrees_with_the_interpreter_in_every_dtype(sign, each):
    found = [
        sound(
            f"9 y[{{0}}] = 1\n| y[{{0}}] += {form}" if sign == "+=" else f"9 y[{{0}}] = {form}",
            f"x {x} [9] heap\nw {w} [9] heap\ny {y} [9] heap",
        )
        for number, (x, w, y) in enumerate(TYPES)
        for form in FORMS[number % each :: each]
    ]
    assert sum(sounding is not None for sounding in found) > 0.7 * len(found)
    agree_all([sounding for sounding in found if sounding is not None])


@pytest.mark.parametrize(
    ("form", "expected"),
    [("max(x[0],w[0])", 200), ("x[0] < w[0]", 0), ("x[0] / w[0]", -200), ("x[0] / 0", 0)],
)
def test_bytes_with_and_without_a_sign_meet_in_a_wider_dtype(form, expected):
    found = program(f"y[0] = {form}", "x u8 [1] heap\nw i8 [1] heap\ny i16 [1] heap")
    assert run_program(found, {"x": np.uint8([200]), "w": np.int8([-1])})["y"] == [expected]


# Every second of each form's signs, which are every second of each sign's forms; make soak tries all.
@pytest.mark.parametrize("each", [2, pytest.param(1, marks=pytest.mark.soak)])
def test_vectors_of_every_dtype_agree_with_the_interpreter(each):
    found = []
    for dtype in filter(ARITHMETIC.__contains__, VECTOR_DTYPES):
        lanes = 16 // DTYPE_BYTES[arithmetic(dtype)]
        at = f"[{{0}}*{lanes}+{{1}}]"
        buffers = "\n".join(f"{name} {dtype} [{2 * lanes}] heap" for name in "xwy")
        forms = ("x + w", "x - w", "-x", "abs(x)", "max(x,w)", "min(x,{1}*2+1)", "fma(x,w,2)", "x*3")
        for number, form in enumerate(forms):
            body = re.sub(r"\b([xw])\b", rf"\1{at}", form)
            for sign in ("=", "*=", "+=", "max=")[number % each :: each]:
                found.append(program(f"2 {lanes}:v y{at} = 3\n2 {lanes}:v y{at} {sign} {body}", buffers))
    agree_all(found)


def test_truth_in_registers_whoever_reads_it():
    """Selections among numbers of several sizes, and what else reads it beside them, which rules a mask out."""
    buffers = "x f32 [32] heap\nw {0} [32] heap\ny {0} [32] heap\nb bool [2:N, 16] register"
    compared = "2 16:v b[{0},{1}] = x[{0}*16+{1}] > 0\n"
    chosen = "| 16:v y[{0}*16+{1}] = select(b[{0},{1}],w[{0}*16+{1}],1)\n"
    found = []
    for dtype in ("f16", "f32", "i32", "u8"):
        for more in ("", "| 16:v y[{0}*16+{1}] += b[{0},{1}]\n"):
            with contextlib.suppress(NotGeneratable):  # where vectors are narrower
                generate(each := program(compared + chosen + more, buffers.replace("{0}", dtype)))
                found.append(each)
    agree_all(found)


def test_a_prefetch_of_a_stack_buffer_out_of_its_scope_is_no_code():
    found = program(
        "8 t[{0}] = x[{0}]\n| y[{0}] = t[{0}]\n8 y[{0}] += x[{0}] !prefetch(t[{0}])",
        "x f32 [8] heap\ny f32 [8] heap\nt f32 [8:N] stack",
    )
    assert "prefetch(t" not in generate(found).text.replace("!prefetch(t[{0}])", "")
    agree([(found, "reassoc")], found)


# ------------------------------------------------------------------------------- refusals

X = "x f32 [8] heap\ny f32 [8] heap"
REFUSED = [
    # buffers, body, what the sentence says
    (X + "\nt f32 [8] shared", "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "t lies in shared, which the CPU target has not: use heap, stack, register."),
    (X, "8:g y[{0}] = x[{0}]", "The CPU target knows no :g scopes; it knows :p, :u and :v."),
    (X + "\nt f32 [8] register", "8 t[{0}] = x[{0}]\n8 y[{0}] = t[{0}]", "t[{0}] moves with a scope that is not unrolled"),
    (X + "\nt f32 [8] register", "8:u t[{0}] = x[{0}]\n2 4:v y[{0}*4+{1}] = 0\n| y[{0}*4] = t[{0}*4]", "unroll the scope or move the buffer to the stack"),
    (X + "\nt f32 [8] heap", "2 4:v t[{0}*4+{1}] = x[{0}*4+{1}]\n| | y[{0}*4+{1}] = t[{0}*4+{1}]", "A :v scope wraps exactly one operation."),
    (X.replace("y f32", "y f64"), "4 2:v y[{0}*2+{1}] = x[{0}*2+{1}]", "2 is no vector width of this processor for f64 and f32"),
    ("x bool [16] heap\ny bool [16] heap", "16:v y[{0}] = x[{0}]*x[{0}]", "* has no vector form for bool."),
    (X, "2 4:v y[{0}*4+{1}] = select({1},x[{0}*4+{1}],0)", "select has no vector form in f32, nor where it chooses by what is no array's element."),
    (X.replace("f32", "i32"), "2 4:v y[{0}*4+{1}] = x[{0}*4+{1}] / 3", "/ has no vector form for i32: no processor divides so."),
    (X.replace("f32", "i32"), "2 4:v y[{0}*4+{1}] = fmod(x[{0}*4+{1}],3)", "fmod has no vector form for i32: no processor divides so."),
    (X, "4 2:v y[{0}*2+{1}] = x[{0}*2+{1}]", "2 is no vector width of this processor for f32"),
    (X, "2 4:v y[{0}*4+{1}] = pow(x[{0}*4+{1}],2)", "pow has no vector form."),
    (X, "2 4:v y[{0}*4+{1}] = x[{0}*4+{1}] if {1} < 3", "The guard of a vector operation depends on the lane."),
    ("x f32 [40] heap\ny f32 [8] heap", "2 4:v y[{0}*4+{1}] = x[{1}*5+{0}]", "are 5 cells apart; they must be neighbours or one cell, or in memory at most 4 apart."),
    (X, "2 4:v y[{1}*2+{0}] = x[{0}*4+{1}]", "must be neighbours to be written at once."),
    (X, "8 y[{0}] = 0\n2 4:v y[{0}] = x[{0}*4+{1}]", "All lanes would write the same cell y[{0}]."),
    ("x f32 [20000] heap\ny f32 [20000] heap", "20000:u y[{0}] = x[{0}]", "The C would be longer than 8192 lines: unroll less or a smaller scope."),
]  # fmt: skip


@pytest.mark.parametrize(("buffers", "body", "sentence"), REFUSED, ids=[r[2] for r in REFUSED])
def test_what_has_no_c_is_a_sentence(buffers, body, sentence):
    with pytest.raises(NotGeneratable, match=re.escape(sentence)) as raised:
        generate(program(body, buffers))
    assert str(raised.value).endswith(".")


def test_guarded_loops_that_the_compiler_vectorises():
    """Found by a search: where gcc 12 gathered x under the guard, it loaded nothing, so rows had no maximum."""
    buffers = "x f32 [64, 512] heap\ny f32 [64] heap\np f32 [64:N, 512] stack"
    body = (
        "4 64 512 p[{0}*64+{1},{2}] = -inf if {0} < 1\n| | y[{0}*64+{1}] = -inf if {0} < 1\n"
        "| | 512 p[{0}*64+{1},{2}] max= x[{0}*64+{1},{2}] if {0} < 1\n"
        "| | 512 y[{0}*64+{1}] max= p[{0}*64+{1},{2}] if {0} < 1"
    )
    guarded = program(body, buffers)
    inputs = random_inputs(guarded)
    np.testing.assert_array_equal(run_program(guarded, inputs)["y"], inputs["x"].max(1))


SUM = "64 y[{0}] = 0\n"


@pytest.mark.parametrize(
    "body",
    [
        "| 256 y[{0}] += x[{0},{1}*2+1]\n| | y[{0}] += x[{0},{1}*2]",
        "| 256 1 y[{0}] += x[{0},{1}*2+{2}+1]\n| | 1 y[{0}] += x[{0},{1}*2+{2}]",
        "| 256 2:u y[{0}] += x[{0},{1}*2-{2}+1]",
        "| 256 t[{0},{1}] = x[{0},{1}*2+1]*2\n| | y[{0}] += t[{0},{1}]\n| | t[{0},{1}] = x[{0},{1}*2]*2\n"
        "| | y[{0}] += t[{0},{1}]",
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_sums_that_the_compiler_would_vectorise_wrongly(body, dtype):
    """Found by a search: where gcc 12 met a sum's elements in descending order, it added others."""
    buffers = f"x {dtype} [64, 512] heap\ny {dtype} [64] heap\nt {dtype} [64:N, 256:N] stack"
    buffers = buffers if "t[" in body else buffers.rpartition("\n")[0]
    backwards = program(SUM + body, buffers)
    assert BARRIER in generate(backwards).text
    inputs = random_inputs(backwards)
    expected = inputs["x"].sum(1, dtype="f8") * (2 if "t[" in body else 1)
    np.testing.assert_allclose(run_program(backwards, inputs)["y"], expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(
    "body",
    [
        "| 256 y[{0}] += x[{0},{1}*2]\n| | y[{0}] += x[{0},{1}*2+1]",
        "| 511 y[{0}] += x[{0},{1}+1]\n| | y[{0}] += x[{0},{1}]",
        "| 512 y[{0}] += x[{0},{1}]",
    ],
)
def test_sums_that_the_compiler_gets_right_are_left_to_it(body):
    assert BARRIER not in generate(program(SUM + body, "x f32 [64, 512] heap\ny f32 [64] heap")).text


@pytest.mark.parametrize(
    ("body", "long"),
    [
        ("| 65:u 8 y[{0}] += x[{0},{1}*8+{2}]", True),  # gcc writes a loop of 8 out by itself
        ("| 64:u 8 y[{0}] += x[{0},{1}*8+{2}]", False),
        ("| 65:u 17 y[{0}] += x[{0},{1}*17+{2}]", False),  # but none of 17
        ("| 1024:u y[{0}] += x[{0},{1}]", False),  # one sum only
        ("| 284:u 4:v t[{0},{1}*4+{2}] = x[{0},{1}*4+{2}]\n| y[{0}] += t[{0},3]", False),  # vectors already
    ],
)
def test_many_short_sums_are_kept_from_gccs_search_for_vectors(body, long):
    """It would for half a minute."""
    buffers = "x f32 [4, 1136] heap\ny f32 [4] heap" + "\nt f32 [4, 1136] stack" * ("t[" in body)
    written = program("4 y[{0}] = 0\n" + body, buffers)
    assert generate(written).text.startswith(WRITTEN_OUT) == long
    assert generate(written, "strict").text.startswith(STRICT + WRITTEN_OUT * long)
    agree([(written, "reassoc")], written)


def test_an_iterator_as_a_truth_value():
    """Any but 0 is true, also one whose last eight bits are 0."""
    counted = parse(
        "kernel k\nout y\ny i32 [300] heap\nb bool [300] heap\n300 b[{0}] = {0}\n300 y[{0}] = b[{0}]\n"
    )
    expected = [0] + [1] * 299
    assert interpret(counted, {})["y"].tolist() == expected
    assert run_program(counted, {})["y"].tolist() == expected


def test_iterators_beyond_32_bits_in_lanes():
    far = parse(
        "kernel k\nout y, z\ny f64 [4] heap\nz f64 [4] heap\n2 2:v y[{0}*2+{1}] = {1}+2147483647\n"
        "2 2:v z[{0}*2+{1}] = {0}*2147483640+{1}*3+5\n"
    )
    found = run_program(far, {})
    assert found["y"].tolist() == [2147483647, 2147483648] * 2
    assert found["z"].tolist() == [5, 8, 2147483645, 2147483648]


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_halves_stored_past_the_caches(dtype):
    buffers = f"x {dtype} [16] heap\ny {dtype} [16] heap"
    lanes = min(8, host().vector_bytes[0] // 4)
    text = f"{16 // lanes} {lanes}:v y[{{0}}*{lanes}+{{1}}] = x[{{0}}*{lanes}+{{1}}] !stream"
    streamed = program(text, buffers)
    x = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(run_program(streamed, {"x": x})["y"], x)

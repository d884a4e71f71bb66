"""Sums of exponentials in one pass, about a running maximum (online softmax); and back."""

from __future__ import annotations

from dojo_core.moves.core import Context, Refusal, register, structural
from dojo_core.moves.onepass import (
    LOWEST,
    OnePass,
    Parts,
    TwoPasses,
    Writer,
    difference_of,
    source,
    unchanged,
)
from dojo_core.moves.places import Place
from dojo_core.program.codes import Code
from dojo_core.program.tree import Access, Leaf, Number, Op, Program

# Where these rewrites are worst: a maximum that grows with each element or never, and minus infinity, which
# is no number to begin with.
MAXIMA = (
    "rising", "masked", "falling", "outlier first", "outlier last", "large mean", "overflow of squares",
    "constant",
)  # fmt: skip


def _exponent(program: Program, leaf: Leaf) -> tuple[Access, Access] | Refusal:
    """(x, shift) of the difference whose exponential an instruction takes."""
    if not leaf.op.reads:
        return structural(Code.OTHER_FORM, "The exponent is no array element.", leaf.path)
    return difference_of(program, leaf, leaf.op.reads[0])


@register
class OnlineRescale(OnePass):
    """Sum exponentials about a running maximum: the maximum need not be known first (online softmax).

    ``online_rescale OP@S NAME``: OP is ``s += e`` with ``e = exp(d)`` and ``d = x - m``.

    Before::

        8 64 d[{0},{1}] = x[{0},{1}] - m[{0}]
        8 64 e[{0},{1}] = exp(d[{0},{1}])
        8 s[{0}] = 0
        | 64 s[{0}] += e[{0},{1}]
        8 y[{0}] = s[{0}]

    After ``online_rescale s#1@1 o``::

        8 64 d[{0},{1}] = x[{0},{1}] - m[{0}]
        8 64 e[{0},{1}] = exp(d[{0},{1}])
        8 s[{0}] = 0
        | o[{0}] = -3.4028234663852886e+38
        | os[{0}] = 0
        | 64 on[{0},{1}] = max(o[{0}],x[{0},{1}])
        | | of[{0},{1}] = o[{0}] - on[{0},{1}]
        | | of[{0},{1}] = exp(of[{0},{1}])
        | | os[{0}] = os[{0}]*of[{0},{1}]
        | | of[{0},{1}] = x[{0},{1}] - on[{0},{1}]
        | | of[{0},{1}] = exp(of[{0},{1}])
        | | os[{0}] = os[{0}] + of[{0},{1}]
        | | o[{0}] = on[{0},{1}]
        | o[{0}] = o[{0}] - m[{0}]
        | o[{0}] = exp(o[{0}])
        | s[{0}] += os[{0}]*o[{0}]
        8 y[{0}] = s[{0}]

    The sum about the running maximum is scaled each time that it grows, and at the end from the maximum
    found to m, whatever m is. The maximum begins at the lowest finite number, so elements may be -inf.

    Promises what a sum in another order does, for every m but minus infinity and wherever the maximum stands,
    with two roundings more for each time that it grows. Promises nothing for elements that are plus infinity.

    Legal iff
      1. the policy is algebraic;
      2. OP is an unguarded ``s += e`` in f32 or f64;
      3. S and the scopes in it hold OP alone, unmarked, and s uses none of their iterators;
      4. one ``e = exp(d)`` surely defines what OP reads, one ``d = x - m`` what that reads, x and m unchanged
         in between;
      5. m uses none of these iterators either;
      6. NAME, NAMEs, NAMEn and NAMEf are new.

    Source: M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018.
    """

    name = "online_rescale"
    rewrites = "exp"
    worst_inputs = MAXIMA
    back = "sum_exp_again"
    suffixes = ("", "s", "n", "f")

    def fits(self, op: Op) -> bool:
        return op.accumulate == "+" and not op.function and isinstance(op.operands[0], Access)

    def difference(self, program: Program, leaf: Leaf) -> tuple[Access, Access] | Refusal:
        outer = source(program, leaf, leaf.op.reads[0], "exp")
        if isinstance(outer, Refusal):
            return outer
        parts = _exponent(program, outer.write.leaf)
        if isinstance(parts, Refusal):
            return parts
        changed = unchanged(program, outer, parts)  # from the exponential on as well
        if changed is not None:
            return changed
        x, shift = parts
        return outer.here(x), outer.here(shift)

    def plan(self, context: Context, arguments: tuple[Place, str]) -> Program | Refusal:
        total = self.sum_at(context, arguments)
        if isinstance(total, Refusal):
            return total
        make = Writer(context, total, arguments[1])
        o, s = make.array(""), make.array("s")
        n, f = make.array("n", inner=True), make.array("f", inner=True)
        nodes = (
            make.op(o, "", LOWEST[make.dtype]),
            make.op(s, "", Number(0)),
            make.nest(
                make.op(n, "max", o, total.x),
                make.op(f, "-", o, n),
                make.op(f, "exp", f),
                make.op(s, "*", s, f),
                make.op(f, "-", total.x, n),
                make.op(f, "exp", f),
                make.op(s, "+", s, f),
                make.op(o, "", n),
            ),
            make.op(o, "-", o, total.shift),
            make.op(o, "exp", o),
            make.op(total.leaf.op.target, "*", s, o, accumulate="+"),
        )
        return make.program(context.program, nodes)


@register
class SumExpAgain(TwoPasses):
    """Sum kept exponentials, in a second pass: takes online_rescale back.

    ``sum_exp_again NAME T``: NAME is the first of the arrays that online_rescale made; T holds the
    exponentials.

    Before::

        d f32 [8, 64] heap
        e f32 [8, 64] heap
        o f32 [8:N] stack
        os f32 [8:N] stack
        on f32 [8:N, 64:N] stack
        of f32 [8:N, 64:N] stack
        8 64 d[{0},{1}] = x[{0},{1}] - m[{0}]
        8 64 e[{0},{1}] = exp(d[{0},{1}])
        8 s[{0}] = 0
        | o[{0}] = -3.4028234663852886e+38
        | os[{0}] = 0
        | 64 on[{0},{1}] = max(o[{0}],x[{0},{1}])
        | | of[{0},{1}] = o[{0}] - on[{0},{1}]
        | | of[{0},{1}] = exp(of[{0},{1}])
        | | os[{0}] = os[{0}]*of[{0},{1}]
        | | of[{0},{1}] = x[{0},{1}] - on[{0},{1}]
        | | of[{0},{1}] = exp(of[{0},{1}])
        | | os[{0}] = os[{0}] + of[{0},{1}]
        | | o[{0}] = on[{0},{1}]
        | o[{0}] = o[{0}] - m[{0}]
        | o[{0}] = exp(o[{0}])
        | s[{0}] += os[{0}]*o[{0}]
        8 y[{0}] = s[{0}]

    After ``sum_exp_again o e``::

        d f32 [8, 64] heap
        e f32 [8, 64] heap
        8 64 d[{0},{1}] = x[{0},{1}] - m[{0}]
        8 64 e[{0},{1}] = exp(d[{0},{1}])
        8 s[{0}] = 0
        | 64 s[{0}] += e[{0},{1}]
        8 y[{0}] = s[{0}]

    Promises what a sum in another order does, for elements that are infinite too.

    Legal iff
      1. the policy is algebraic;
      2. NAME, NAMEs, NAMEn and NAMEf are used as online_rescale uses them, and nowhere else;
      3. some write of T makes the exponentials;
      4. online_rescale of the result gives this program back.

    Source: M. Milakov and N. Gimelshein, Online normalizer calculation for softmax, 2018 (safe softmax).
    """

    name = "sum_exp_again"
    rewrites = "exp"
    worst_inputs = MAXIMA
    forward = OnlineRescale()
    nodes = 6

    def parts(self, made: tuple[Leaf, ...]) -> Parts | None:
        match made:
            case (
                _, _, Leaf(Op(operands=(_, Access() as x)), scopes=(_, *_) as scopes), _, _, _, _, _, _, _,
                Leaf(Op(operands=(_, Access() as shift))), _, Leaf(Op(target)),
            ):  # fmt: skip
                return scopes, x, shift, target
        return None

    def kept(self, program: Program, leaf: Leaf) -> tuple[Access, Access] | None:
        parts = _exponent(program, leaf)
        return None if isinstance(parts, Refusal) or leaf.op.function != "exp" else parts

    def total(self, target: Access, term: Access) -> Op:
        return Op(target, "+", "", (term,))

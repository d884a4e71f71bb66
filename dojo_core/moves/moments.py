"""Second moments in one pass: squares summed block by block, each about its own mean; and back."""

from __future__ import annotations

from dojo_core.moves.core import Context, Refusal, register
from dojo_core.moves.onepass import LOWEST, OnePass, Parts, TwoPasses, Writer, difference_of
from dojo_core.moves.places import Place
from dojo_core.program.tree import Access, Leaf, Number, Op, Program

# Where these rewrites are worst: an outlier at each special place, digits lost to a mean, an overflow.
MOMENTS = (
    "outlier first", "zero before a large mean", "outlier last", "outlier in the middle",
    "outlier at a block", "large mean", "overflow of squares", "constant", "zeros",
)  # fmt: skip


@register
class ExpandMoment(OnePass):
    """Sum squares block by block, each about its own mean: the mean of them all need not be known first.

    ``expand_moment OP@S NAME``: OP is ``v += d*d`` with ``d = x - u``; S and the scopes in it are a block.

    Before::

        x f32 [2, 4, 64] heap
        d f32 [2, 4, 64] heap
        2 4 64 d[{0},{1},{2}] = x[{0},{1},{2}] - u[{0}]
        2 v[{0}] = 0
        | 4 64 v[{0}] += d[{0},{1},{2}]*d[{0},{1},{2}]
        2 y[{0}] = v[{0}]

    After ``expand_moment v#1@2 o``::

        x f32 [2, 4, 64] heap
        d f32 [2, 4, 64] heap
        2 4 64 d[{0},{1},{2}] = x[{0},{1},{2}] - u[{0}]
        2 v[{0}] = 0
        | 4 o[{0},{1}] = 0
        | | 64 o[{0},{1}] += x[{0},{1},{2}]*0.015625
        | | ot[{0},{1}] = 0
        | | 64 oe[{0},{1},{2}] = x[{0},{1},{2}] - o[{0},{1}]
        | | | ot[{0},{1}] += oe[{0},{1},{2}]*0.015625
        | | | v[{0}] += oe[{0},{1},{2}]*oe[{0},{1},{2}]
        | | ow[{0},{1}] = o[{0},{1}] - u[{0}]
        | | ot[{0},{1}] += ow[{0},{1}]*0.5
        | | ow[{0},{1}] = ow[{0},{1}]*ot[{0},{1}]
        | | ow[{0},{1}] = ow[{0},{1}]*128
        | | v[{0}] += max(ow[{0},{1}],-3.4028234663852886e+38)
        2 y[{0}] = v[{0}]

    Over a block of n, the sum of (x-u)² is that of (x-o)² plus 2n(o-u)(t + (o-u)/2), with t the mean of x-o:
    for any u and any o. So o may be the block's mean as it was rounded, and t, what that is off by, makes up
    for it: no single element decides, and nothing cancels but what the rounding was. Where squares overflow,
    what is added must not be minus infinity. A block that fits a cache is fetched from memory once.

    Promises what a sum in another order does, for every u, wherever an outlier stands and however large the
    mean is against the deviation; infinite where squares overflow. Promises nothing for a block that holds an
    infinity, or whose mean, or an element less that mean, overflows.

    Legal iff
      1. the policy is algebraic;
      2. OP is an unguarded ``v += d*d`` in f32 or f64;
      3. S and the scopes in it hold OP alone, unmarked, and v uses none of their iterators;
      4. one ``d = x - u`` surely defines what OP reads, x and u unchanged in between;
      5. u uses none of these iterators either;
      6. NAME, NAMEt, NAMEe and NAMEw are new.

    Source: T. F. Chan, G. H. Golub and R. J. LeVeque, The American Statistician 1983.
    """

    name = "expand_moment"
    rewrites = "*"
    worst_inputs = MOMENTS
    back = "sum_squares_again"
    suffixes = ("", "t", "e", "w")

    def fits(self, op: Op) -> bool:
        squared = op.function == "*" and op.operands[0] == op.operands[1]
        return op.accumulate == "+" and squared and isinstance(op.operands[0], Access)

    def difference(self, program: Program, leaf: Leaf) -> tuple[Access, Access] | Refusal:
        return difference_of(program, leaf, leaf.op.reads[0])

    def plan(self, context: Context, arguments: tuple[Place, str]) -> Program | Refusal:
        total = self.sum_at(context, arguments)
        if isinstance(total, Refusal):
            return total
        make = Writer(context, total, arguments[1])
        mean, rest, w = (make.array(suffix) for suffix in ("", "t", "w"))
        e = make.array("e", inner=True)
        v, count = total.leaf.op.target, total.count
        share = Number(1 / count)  # of each, so that no mean overflows on the way
        nodes = (
            make.op(mean, "", Number(0)),
            make.nest(make.op(mean, "*", total.x, share, accumulate="+")),
            make.op(rest, "", Number(0)),
            make.nest(
                make.op(e, "-", total.x, mean),
                make.op(rest, "*", e, share, accumulate="+"),
                make.op(v, "*", e, e, accumulate="+"),
            ),
            make.op(w, "-", mean, total.shift),
            make.op(rest, "*", w, Number(0.5), accumulate="+"),
            make.op(w, "*", w, rest),
            make.op(w, "*", w, Number(2 * count)),
            make.op(v, "max", w, LOWEST[make.dtype], accumulate="+"),
        )
        return make.program(context.program, nodes)


@register
class SumSquaresAgain(TwoPasses):
    """Sum the squares of kept differences, in a second pass: takes expand_moment back.

    ``sum_squares_again NAME T``: NAME is the first of the arrays that expand_moment made; T holds the
    differences.

    Before::

        d f32 [8, 64] heap
        o f32 [8:N] stack
        ot f32 [8:N] stack
        ow f32 [8:N] stack
        oe f32 [8:N, 64:N] stack
        8 64 d[{0},{1}] = x[{0},{1}] - u[{0}]
        8 v[{0}] = 0
        | o[{0}] = 0
        | 64 o[{0}] += x[{0},{1}]*0.015625
        | ot[{0}] = 0
        | 64 oe[{0},{1}] = x[{0},{1}] - o[{0}]
        | | ot[{0}] += oe[{0},{1}]*0.015625
        | | v[{0}] += oe[{0},{1}]*oe[{0},{1}]
        | ow[{0}] = o[{0}] - u[{0}]
        | ot[{0}] += ow[{0}]*0.5
        | ow[{0}] = ow[{0}]*ot[{0}]
        | ow[{0}] = ow[{0}]*128
        | v[{0}] += max(ow[{0}],-3.4028234663852886e+38)
        8 y[{0}] = v[{0}]

    After ``sum_squares_again o d``::

        d f32 [8, 64] heap
        8 64 d[{0},{1}] = x[{0},{1}] - u[{0}]
        8 v[{0}] = 0
        | 64 v[{0}] += d[{0},{1}]*d[{0},{1}]
        8 y[{0}] = v[{0}]

    Promises what a sum in another order does, for elements that are infinite too.

    Legal iff
      1. the policy is algebraic;
      2. NAME, NAMEt, NAMEe and NAMEw are used as expand_moment uses them, and nowhere else;
      3. some write of T makes the differences;
      4. expand_moment of the result gives this program back.

    Source: T. F. Chan et al., The American Statistician 1983 (the two-pass algorithm).
    """

    name = "sum_squares_again"
    rewrites = "*"
    worst_inputs = MOMENTS
    forward = ExpandMoment()
    nodes = 9

    def parts(self, made: tuple[Leaf, ...]) -> Parts | None:
        match made:
            case (
                _, _, _, Leaf(Op(operands=(Access() as x, _)), scopes=(_, *_) as scopes), _, _,
                Leaf(Op(operands=(_, Access() as shift))), _, _, _, Leaf(Op(target)),
            ):  # fmt: skip
                return scopes, x, shift, target
        return None

    def kept(self, program: Program, leaf: Leaf) -> tuple[Access, Access] | None:
        match leaf.op:
            case Op(function="-", operands=(Access() as x, Access() as shift)):
                return x, shift
        return None

    def total(self, target: Access, term: Access) -> Op:
        return Op(target, "+", "*", (term, term))

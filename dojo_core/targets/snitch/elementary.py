"""Functions that Snitch's FPU has no instruction for, as sequences of those that it has: division, roots,
exp, log, sigmoid, tanh and erf.

As a C library does them: the number is brought to a small range, a polynomial with fmadd computes the
function there, and the power of two that was split off is multiplied back. The integer core makes that power
of two. A number passes to it with fmv.x.w, or through memory where its upper half is wanted, which RV32 has
no move for; back it passes through memory. No step hangs on the value but for zeros, infinities, NaN and
denormals, so that a program takes the same cycles on all others. All is computed in f64: of f32 the operands
are widened and the result is rounded.

Sources: Tang, "Table-driven implementation of the exponential function in IEEE floating-point arithmetic",
ACM TOMS 15(2), 1989, for its reduction; FDLIBM (Sun Microsystems, 1993), e_log.c, for log; Markstein, "IA-64
and elementary functions", 2000, for quotients and roots by fused multiplications. The polynomials are
minimax, by the Remez exchange in 60 digits. docs/snitch.md has what each function is off by.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

from dojo_core.program.tree import Path
from dojo_core.targets.snitch.listing import Listing

SCRATCH_BYTES = 24  # in memory: two powers of two and a number to be split
REGISTERS = ("t0", "t1", "t2", "t3", "t4")  # of the integer core: what a function writes over
_FIRST, _SECOND, _NUMBER = 0, 8, 16  # offsets of these three
LOWER_HALVES = (_FIRST, _SECOND)  # words that are to be 0: of a power of two
_UPPER = 4  # bytes from a number to its upper half: sign, exponent and 20 bits of the mantissa
_BIAS, _SPECIAL = 1023, 2047  # of an exponent; the exponent field of infinities and NaN
_INFINITY, _MINUS_INFINITY, _NAN = 0x7FF00000, -0x100000, 0x7FF80000  # upper halves
_MANTISSA = 20  # bits of it in an upper half
_SCALE = 64  # denormals are multiplied by 2**64 first
_SQRT_HALF = 0x3FE6A09E  # the upper half of sqrt(1/2)

_ROUNDING = 1.5 * 2.0**52  # a number added to it has its nearest integer in the lower half
_LN2_HIGH = 6.93147180369123816490e-01  # times an integer below 2**21 it is exact
_LN2_LOW = 1.90821492927058770002e-10
_ZERO_BELOW, _INFINITE_ABOVE = -746.0, 710.0  # where e**x is 0 and infinite in f64
_ONE_ABOVE = {"tanh": 22.0, "erf": 6.0}  # where they are 1
# (e**r - 1 - r)/r**2 for |r| <= ln(2)/2, off by 4e-18 of e**r
_EXPONENTIAL = (
    0.5000000000000012, 0.166666666666667, 0.0416666666665153, 0.008333333333307198, 0.0013888888947050885,
    0.00019841269917403125, 2.4801489903130397e-05, 2.7557216279177034e-06, 2.763129518891394e-07,
    2.5117869265110395e-08,
)  # fmt: skip
# ln(1 - erf(a))/a for 0 <= a <= 6, off by what is 2.2e-17 of erf(a)
_ERF = (
    -1.1283791670955126, -0.6366197723675909, -0.1027726033013153, 0.019128446993091068,
    0.00020919485397122035, -0.0016962076702520918, 0.0005901324321432078, -2.5904506789251967e-05,
    -6.442045425228808e-05, 2.9575634067638987e-05, -3.1696228904427004e-06, -3.1330182901263794e-06,
    2.0372395224231727e-06, -5.706693378927655e-07, 1.1729324086751742e-08, 6.572397795762948e-08,
    -3.458142846930028e-08, 1.077239045364981e-08, -2.360306111300898e-09, 3.76036743602646e-10,
    -4.301370431313311e-11, 3.364003667873807e-12, -1.6146933525024482e-13, 3.591772274026091e-15,
)  # fmt: skip
# (ln((1+s)/(1-s)) - 2*s)/s**3 in s**2, for |s| <= 0.1716, off by 8e-21 of the logarithm
_LOGARITHM = (
    0.6666666666666666, 0.4000000000000625, 0.2857142856908618, 0.22222222646749976, 0.1818177566936722,
    0.15387090584590282, 0.13250122116579252, 0.13251292211361423,
)  # fmt: skip
_RECIPROCAL = {  # of m between the two: c0 + c1*m, off by a 13th and by a 53rd
    (1.0, 2.0): (1.4328358208955223, -0.47761194029850745),
    (1.7071, 2.4143): (0.9887391857431247, -0.23990371857697013),
}
_INVERSE_ROOT = (1.3354183474022712, -0.4106701535076011, 0.05120534361701806)  # of 1 to 4, off by a 41st


class Elementary:
    """Writes a function's instructions into a listing, for the program's operation at ``path``.

    ``scratch``: the address register of ``SCRATCH_BYTES``; ``free`` hands out FPU registers; ``explained``:
    is there a comment at each step?
    """

    def __init__(
        self, out: Listing, scratch: str, free: Callable[[], str], path: Path, explained: bool
    ) -> None:
        self.out, self.scratch, self.free, self.path, self.explained = out, scratch, free, path, explained
        self.spare: deque[str] = deque()  # FPU registers that a step before this one had

    def write(self, function: str, result: str, sources: Sequence[str]) -> None:
        """The function of what is in FPU registers, in f64, into another one. A register of ``sources`` is
        read as a stream where it is one; ``result`` is written once, by the last instruction."""
        _WRITTEN[function](self, result, *sources)

    # ------------------------------------------------------------------ lines and registers

    def _emit(self, name: str, *operands: str | int) -> None:
        self.out.emit(name, *operands, path=self.path)

    def _step(self, text: str) -> None:
        if self.explained:
            self.out.comment(f"  {text}", self.path)

    def _register(self) -> str:
        return self.spare.popleft() if self.spare else self.free()

    def _computed(self, name: str, *sources: str) -> str:
        result = self._register()
        self._emit(name, result, *sources)
        return result

    def _address_constants(self) -> None:
        """t2 points to the constants, until the integer core needs it again."""
        self._emit("la", "t2", "constants")

    def _constant(self, value: float, into: str = "") -> str:
        register = into or self._register()
        self._emit("fld", register, self.out.stored(value), "t2")
        return register

    def _copied(self, source: str, added: float = -0.0) -> str:
        """A register that may be read again: a stream gives each element once. Adding 0 makes 0 of -0."""
        zero = self._constant(added)
        self._emit("fadd.d", zero, source, zero)
        return zero

    def _waiting(self) -> None:
        """The integer core waits until the FPU has stored what it was told to."""
        self._emit("fmv.x.w", "t0", "ft3")
        self._emit("mv", "t0", "t0")

    def _unless(self, branch: str, *operands: str) -> Callable[[], None]:
        """A branch over what is written until the result is called."""
        label = self.out.label()
        self._emit(branch, *operands, label.name)
        return lambda: self.out.add(label, self.path)

    # ------------------------------------------------------------------ powers of two

    def _number(self, upper: str, at: int) -> str:
        """The number whose upper half is in an integer register, by way of memory."""
        self._emit("sw", upper, at + _UPPER, self.scratch)
        register = self._register()
        self._emit("fld", register, at, self.scratch)
        return register

    def _upper_of_power(self, exponent: str) -> None:
        """The upper half of 2**exponent in place of the exponent, which a normal number has."""
        self._emit("addi", exponent, exponent, _BIAS)
        self._emit("slli", exponent, exponent, _MANTISSA)

    def _first_of_two(self, k: str, half: str) -> str:
        """2**k is denormal or infinite for some k: the power of half of k, whose other half stays there."""
        self._emit("srai", half, k, 1)
        self._emit("sub", k, k, half)
        self._upper_of_power(half)
        return self._number(half, _FIRST)

    # ------------------------------------------------------------------ polynomials

    def _polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Of an even number of coefficients. Its even and its odd terms are two sums by Horner's rule in
        x**2: an instruction of each, with the loads of what comes next, fills the FPU's four cycles."""
        square = self._computed("fmul.d", x, x)
        even, odd = (self._constant(c) for c in coefficients[-2:])
        next_even, next_odd = (self._constant(c) for c in coefficients[-4:-2])
        for at in range(len(coefficients) - 4, -1, -2):
            self._emit("fmadd.d", even, even, square, next_even)
            if at:
                self._constant(coefficients[at - 2], next_even)
            self._emit("fmadd.d", odd, odd, square, next_odd)
            if at:
                self._constant(coefficients[at - 1], next_odd)
        self._emit("fmadd.d", even, odd, x, even)
        self.spare += square, odd, next_even, next_odd
        return even

    def _reciprocal(self, m: str, between: tuple[float, float]) -> str:
        """1/m within a unit: of what a line is off by, e, steps leave the third power and the ninth, and the
        last what rounding leaves."""
        self._step(
            f"1/m, m from {between[0]:g} to {between[1]:g}: a line, then y += y*(e + e**2), e = 1 - m*y"
        )
        self._address_constants()
        y, error, one = (self._constant(c) for c in (*_RECIPROCAL[between], 1.0))
        self._emit("fmadd.d", y, m, error, y)
        for _ in range(2):
            self._emit("fnmsub.d", error, m, y, one)
            self._emit("fmadd.d", error, error, error, error)
            self._emit("fmadd.d", y, y, error, y)
        self._emit("fnmsub.d", error, m, y, one)
        self._emit("fmadd.d", y, y, error, y)
        self.spare += error, one
        return y

    # ------------------------------------------------------------------ the exponential

    def _exponential(self, x: str, checked: str) -> str:
        """``e**r - 1`` of ``x = k*ln(2) + r``, x no NaN: k into t0, and into t1 -1 where ``checked`` is NaN,
        else 0. ``x`` is free behind it."""
        self._step("k, the integer next to x/ln(2), is the lower half of 1.5*2**52 + x/ln(2)")
        rounding, k = self._constant(_ROUNDING), self._constant(1 / math.log(2))
        self._emit("fmadd.d", k, x, k, rounding)
        self._emit("fmv.x.w", "t0", k)
        self._emit("feq.d", "t1", checked, checked)
        self._step("r = x - k*ln(2), ln(2) in two parts")
        self._emit("fsub.d", k, k, rounding)
        part = self._constant(_LN2_HIGH)
        self._emit("fnmsub.d", x, k, part, x)
        self._constant(_LN2_LOW, part)
        self._emit("fnmsub.d", x, k, part, x)
        self.spare += rounding, k, part
        self._step("e**r - 1 = r + r**2*p(r)")
        square = self._computed("fmul.d", x, x)
        p = self._polynomial(x, _EXPONENTIAL)
        self._emit("fmadd.d", x, p, square, x)
        self.spare += p, square
        self._emit("addi", "t1", "t1", -1)
        return x

    def _exp(self, x: str, checked: str, result: str = "") -> str:
        """e**x of any x but NaN, which it is where ``checked`` is. ``x`` is free behind it."""
        less_one = self._exponential(x, checked)
        self._step("2**k, two factors, the second NaN where x is")
        first = self._first_of_two("t0", "t2")
        self._upper_of_power("t0")
        self._emit("or", "t0", "t0", "t1")
        second = self._number("t0", _SECOND)
        self._emit("fmadd.d", first, first, less_one, first)
        self._emit("fmul.d", result or first, first, second)
        self.spare += less_one, second
        return result or first

    def _expm1(self, x: str, checked: str) -> str:
        """``e**x - 1`` of x from -80 to 0, NaN where ``checked`` is. ``x`` is free behind it."""
        less_one = self._exponential(x, checked)
        self._step("2**k*(e**r - 1) + (2**k - 1), 2**k NaN where x is")
        self._upper_of_power("t0")
        self._emit("or", "t0", "t0", "t1")
        power = self._number("t0", _FIRST)
        self._address_constants()
        rest = self._constant(1.0)
        self._emit("fsub.d", rest, power, rest)
        self._emit("fmadd.d", rest, power, less_one, rest)
        self.spare += less_one, power
        return rest

    # ------------------------------------------------------------------ exponent and mantissa

    def _split(self, x: str) -> None:
        """The upper half of x into t0, its sign and exponent field into t1, and x into memory. A denormal is
        multiplied first, which t3 tells: by 2**t3."""
        self._step("the upper half of the number, its sign and exponent, by way of memory")
        self._emit("fsd", x, _NUMBER, self.scratch)
        self._waiting()
        self._emit("lw", "t0", _NUMBER + _UPPER, self.scratch)
        self._emit("li", "t3", 0)
        self._emit("srli", "t1", "t0", _MANTISSA)
        denormal = self._unless("bnez", "t1")
        scale = self._constant(2.0**_SCALE)
        self._emit("fmul.d", scale, x, scale)
        self._emit("fsd", scale, _NUMBER, self.scratch)
        self.spare.append(scale)
        self._waiting()
        self._emit("lw", "t0", _NUMBER + _UPPER, self.scratch)
        self._emit("li", "t3", _SCALE)
        self._emit("srli", "t1", "t0", _MANTISSA)
        denormal()

    def _mantissa(self, upper: str) -> None:
        """An upper half without sign and exponent."""
        self._emit("slli", upper, upper, 32 - _MANTISSA)
        self._emit("srli", upper, upper, 32 - _MANTISSA)

    def _specials(self, *where_infinite: tuple[str | int, ...], zero: int, negative: bool = False) -> None:
        """The upper half in t2 is another one where the number that was split is infinite or NaN, as some
        instructions make it; where it is 0; NaN where it is less, if that is ``negative``."""
        self._step("infinities, NaN and 0")
        self._emit("li", "t4", _SPECIAL)
        finite = self._unless("bne", "t1", "t4")
        for name, *operands in where_infinite:
            self._emit(str(name), *operands)
        finite()
        other = self._unless("bnez", "t1")
        self._emit("li", "t2", zero)
        other()
        if negative:
            positive = self._unless("bge", "t0", "zero")
            self._emit("li", "t2", _NAN)
            positive()

    # ------------------------------------------------------------------ functions

    def exp(self, result: str, x: str) -> None:
        self._address_constants()
        x = self._copied(x)
        self._step("x between what gives 0 and what gives infinity")
        least, most = self._constant(_ZERO_BELOW), self._constant(_INFINITE_ABOVE)
        self._emit("fmax.d", least, least, x)
        self._emit("fmin.d", least, least, most)
        self.spare.append(most)
        self._exp(least, x, result)

    def sigmoid(self, result: str, x: str) -> None:
        """With z = e**-|x|: 1/(1 + z), and z/(1 + z) where x is negative."""
        self._address_constants()
        x = self._copied(x)
        self._step("-|x|, and no less than what gives 0")
        bounded, least = self._computed("fsgnjx.d", x, x), self._constant(_ZERO_BELOW)
        self._emit("fsgnjn.d", bounded, bounded, bounded)
        self._emit("fmax.d", bounded, bounded, least)
        self.spare.append(least)
        z = self._exp(bounded, x)
        self._address_constants()
        one = self._constant(1.0)
        m = self._computed("fadd.d", z, one)
        y = self._reciprocal(m, (1.0, 2.0))
        self._step("times 1, or times z")
        self._emit("fsgnj.d", one, one, x)
        self._emit("fmax.d", z, z, one)
        self._emit("fmul.d", result, z, y)

    def tanh(self, result: str, x: str) -> None:
        """With w = e**(-2*|x|) - 1: -w/(2 + w), with the sign of x."""
        self._address_constants()
        x = self._copied(x)
        self._step("-2*|x|, |x| no more than what gives 1")
        a, bound = self._computed("fsgnjx.d", x, x), self._constant(_ONE_ABOVE["tanh"])
        self._emit("fmin.d", a, a, bound)
        self._constant(-2.0, bound)
        self._emit("fmul.d", a, a, bound)
        self.spare.append(bound)
        w = self._expm1(a, x)
        two = self._constant(2.0)
        self._emit("fadd.d", two, two, w)
        y = self._reciprocal(two, (1.0, 2.0))
        self._emit("fmul.d", y, y, w)
        self._emit("fsgnj.d", result, y, x)

    def erf(self, result: str, x: str) -> None:
        """1 - e**(a*p(a)), a = |x|, with the sign of x."""
        self._address_constants()
        x = self._copied(x)
        self._step("a = |x|, no more than what gives 1; ln(1 - erf(a)) = a*p(a)")
        a, bound = self._computed("fsgnjx.d", x, x), self._constant(_ONE_ABOVE["erf"])
        self._emit("fmin.d", a, a, bound)
        self.spare.append(bound)
        p = self._polynomial(a, _ERF)
        self._emit("fmul.d", a, a, p)
        self.spare.append(p)
        self._emit("fsgnj.d", result, self._expm1(a, x), x)

    def log(self, result: str, x: str) -> None:
        """x = 2**k*(1 + f), 1 + f from sqrt(1/2) to sqrt(2); with s = f/(2 + f) and z = s**2,
        ln(1 + f) = f - s*(f - z*p(z)) (FDLIBM, e_log.c)."""
        self._address_constants()
        x = self._copied(x, 0.0)
        self._split(x)
        self._step("k into t3, and 1 + f")
        self._emit("li", "t4", (_BIAS << _MANTISSA) - _SQRT_HALF)
        self._emit("add", "t2", "t0", "t4")
        self._emit("srli", "t4", "t2", _MANTISSA)
        self._emit("sub", "t3", "t4", "t3")
        self._emit("addi", "t3", "t3", -_BIAS)
        self._mantissa("t2")
        self._emit("li", "t4", _SQRT_HALF)
        self._emit("add", "t2", "t2", "t4")
        f = self._number("t2", _NUMBER)
        k = self._computed("fcvt.d.w", "t3")
        self._address_constants()
        one = self._constant(1.0)
        m = self._computed("fadd.d", f, one)
        self._emit("fsub.d", f, f, one)
        self.spare += one, x
        s = self._reciprocal(m, (1.7071, 2.4143))
        self._step("k*ln(2) + (f - (s*(f - z*p(z)) - k*ln(2)'s lower part))")
        self._emit("fmul.d", s, s, f)
        self._emit("fmul.d", m, s, s)
        p = self._polynomial(m, _LOGARITHM)
        self._emit("fnmsub.d", p, p, m, f)
        part = self._constant(_LN2_LOW)
        self._emit("fmul.d", m, k, part)
        self._emit("fmsub.d", p, s, p, m)
        self._emit("fsub.d", f, f, p)
        self._constant(_LN2_HIGH, part)
        self._emit("fmadd.d", f, k, part, f)
        self.spare += s, m, p, k, part
        self._emit("li", "t2", 0)
        self._specials(("mv", "t2", "t0"), zero=_MINUS_INFINITY, negative=True)
        self._emit("fadd.d", result, f, self._number("t2", _FIRST))

    def quotient(self, result: str, dividend: str, divisor: str) -> None:
        """|divisor| = 2**-k*m, m from 1 to 2: the dividend times 1/m times 2**k."""
        self._address_constants()
        divisor = self._copied(divisor)
        m = self._computed("fsgnjx.d", divisor, divisor)
        self._split(m)
        self.spare.append(m)
        self._step("m")
        self._emit("mv", "t2", "t0")
        self._mantissa("t2")
        self._emit("li", "t4", _BIAS << _MANTISSA)
        self._emit("or", "t2", "t2", "t4")
        m = self._number("t2", _NUMBER)
        y = self._reciprocal(m, (1.0, 2.0))
        self._step("2**k, two factors")
        self._emit("li", "t2", _BIAS)
        self._emit("sub", "t2", "t2", "t1")
        self._emit("add", "t2", "t2", "t3")
        first = self._first_of_two("t2", "t3")
        self._upper_of_power("t2")
        self._specials(("li", "t2", _INFINITY), ("sub", "t2", "t2", "t0"), zero=_INFINITY)
        second = self._number("t2", _SECOND)
        self._emit("fmul.d", y, y, second)
        self._emit("fmul.d", first, first, dividend)  # exact where k > 0: a denormal loses nothing
        self._emit("fmul.d", y, y, first)
        self._emit("fsgnjx.d", result, y, divisor)

    def sqrt(self, result: str, x: str) -> None:
        root, _, _ = self._roots(x)
        self._emit("mv", "t2", "t3")
        self._upper_of_power("t2")
        self._specials(("mv", "t2", "t0"), zero=0, negative=True)
        self._emit("fmul.d", result, root, self._number("t2", _FIRST))

    def rsqrt(self, result: str, x: str) -> None:
        _, half, m = self._roots(x)
        self._step("1/sqrt(m) is twice that, and half of what it is off by")
        self._address_constants()
        one, y = self._constant(1.0), self._computed("fadd.d", half, half)
        self._emit("fmul.d", m, m, y)
        self._emit("fnmsub.d", m, m, y, one)
        self._emit("fmadd.d", y, m, half, y)
        self._emit("sub", "t2", "zero", "t3")
        self._upper_of_power("t2")
        self._specials(("li", "t2", _INFINITY), ("sub", "t2", "t2", "t0"), zero=_INFINITY, negative=True)
        self._emit("fmul.d", result, y, self._number("t2", _FIRST))

    def _roots(self, x: str) -> tuple[str, str, str]:
        """x = 4**k*m, m from 1 to 4, k in t3: sqrt(m) within a unit, 1/(2*sqrt(m)) nearly, and m."""
        self._address_constants()
        x = self._copied(x, 0.0)
        self._split(x)
        self.spare.append(x)
        self._step("m, and k into t3")
        self._emit("mv", "t2", "t0")
        self._mantissa("t2")
        self._emit("addi", "t4", "t1", 1)
        self._emit("andi", "t4", "t4", 1)
        self._upper_of_power("t4")
        self._emit("or", "t2", "t2", "t4")
        m = self._number("t2", _NUMBER)
        self._emit("sub", "t3", "t1", "t3")
        self._emit("addi", "t3", "t3", -_BIAS)
        self._emit("srai", "t3", "t3", 1)
        self._step("y near 1/sqrt(m); g = m*y, h = y/2, then g += g*e and h += h*e, e = 1/2 - g*h")
        self._address_constants()
        g, slope, curve, half = (self._constant(c) for c in (*_INVERSE_ROOT, 0.5))
        self._emit("fmadd.d", slope, curve, m, slope)
        self._emit("fmadd.d", g, slope, m, g)
        self._emit("fmul.d", slope, g, half)
        self._emit("fmul.d", g, g, m)
        for _ in range(4):
            self._emit("fnmsub.d", curve, g, slope, half)
            self._emit("fmadd.d", g, g, curve, g)
            self._emit("fmadd.d", slope, slope, curve, slope)
        self._emit("fnmsub.d", curve, g, g, m)
        self._emit("fmadd.d", g, curve, slope, g)
        self.spare += curve, half
        return g, slope, m


_WRITTEN: dict[str, Callable[..., None]] = {
    "/": Elementary.quotient,
    "sqrt": Elementary.sqrt,
    "rsqrt": Elementary.rsqrt,
    "exp": Elementary.exp,
    "log": Elementary.log,
    "sigmoid": Elementary.sigmoid,
    "tanh": Elementary.tanh,
    "erf": Elementary.erf,
}
SOFTWARE = tuple(_WRITTEN)

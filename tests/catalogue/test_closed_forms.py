"""Values and derivatives of elementwise functions against mpmath, in fifty digits, over their whole domain.

A function f is differentiated in each operand, up to the third order, by nestings of forward and reverse mode, at
large, small and ordinary points; so is x f, where the cotangent of x is a sum: a term that a rule adds for the value
alone would cancel in it, with a loss of the others. The error allowed is that of some roundings of x.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import isfinite
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from fnad.backends.cpu.executor import compile_program
from fnad.ir.axes import Elementwise
from fnad.ir.builder import inline, trace
from fnad.ir.primitive import PRIMITIVES, Linear, NoFormula, Partials
from fnad.ir.program import Program
from fnad.ir.types import DTYPES, Aval
from fnad.ops.shape import ones_like
from fnad.testing import Run, assert_close, marks, tolerance
from fnad.transforms.dce import dce
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import joint
from fnad.transforms.jvp import jvp
from tests.catalogue.cases import SMOOTH
from tests.together import in_groups, some_of, together

PLANE = (0.5 + 0.3j, -1.2 + 0.7j, 0.1 - 2.0j, -0.6 - 0.4j)
SMALL = (1e-300, 1e-30, 1e-16, 1e-8, 1e-3)
MIDDLE = (0.3, 1.0, 2.5, 7.9, 20.0)
LARGE = (1e3, 1e9, 1e16, 1e30, 1e150, 1e300)
POSITIVE = SMALL + MIDDLE + LARGE
UNIT = (*SMALL, 0.3, 0.5, 0.7, 0.999, 1 - 1e-12)


def both(points: Sequence[float]) -> tuple[float, ...]:
    """Return the points and their opposites."""
    return (*points, *(-x for x in points))


LINE, MODERATE, INSIDE = both(POSITIVE), both(SMALL + MIDDLE), both(UNIT)
SPECIAL = (1e-16, 1e-3, *MIDDLE)
QUADRANT = tuple(product((1e-300, 1e-30, 0.3, 1e30, 1e300), repeat=2))
QUADRANTS = tuple((x * (-1) ** i, y * (-1) ** (i // 2)) for i, (x, y) in enumerate(QUADRANT))
ENTROPY = (*QUADRANT[::2], (4.0, 5e-324), (5e-324, 4.0), (0.3, 0.3 * (1 + 1e-12)), (1e30, 1e-30))


@pytest.fixture(autouse=True)
def fifty_digits() -> Generator[None, None, None]:
    with mpmath.workdps(50):
        yield


@dataclass(frozen=True)
class Function:
    """A function of real operands, points of its domain, and points of the plane if it takes complex numbers."""

    truth: Callable[..., Any]
    points: Sequence[Any]
    plane: tuple[complex, ...] = ()

    def at(self, dtype: np.dtype[Any]) -> list[tuple[float, ...]]:
        """Return the points as the dtype has them, without those that overflow or become 0."""
        with np.errstate(all="ignore"):
            found = [tuple(float(dtype.type(x)) for x in np.atleast_1d(point)) for point in self.points]
        return [point for point in found if all(x and isfinite(x) for x in point)]


def logistic(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def log_quotient(x: Any, y: Any) -> Any:
    return mpmath.log(x) - mpmath.log(y)


def scaled_airy(function: Callable[[Any], Any], sign: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.exp(sign * 2 * x ** mpf(1.5) / 3) * function(x)


def faddeeva(z: Any) -> Any:
    return mpmath.exp(-z * z) * mpmath.erfc(-1j * z)


def scaled_bessel(function: Callable[..., Any], order: int, sign: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.exp(sign * x) * function(order, x)


FUNCTIONS: dict[str, Function] = {
    "exp": Function(mpmath.exp, LINE, PLANE),
    "exp2": Function(lambda x: mpmath.power(2, x), LINE, PLANE),
    "exp10": Function(lambda x: mpmath.power(10, x), LINE),
    "expm1": Function(mpmath.expm1, LINE, PLANE),
    "log": Function(mpmath.log, POSITIVE, PLANE),
    "log2": Function(lambda x: mpmath.log(x) / mpmath.log(2), POSITIVE, PLANE),
    "log10": Function(mpmath.log10, POSITIVE, PLANE),
    "log1p": Function(mpmath.log1p, (*POSITIVE, -1e-16, -1e-8, -0.3, -0.999, -1 + 1e-12), PLANE),
    "complex_log1p": Function(mpmath.log1p, (), (*PLANE, 1e-9 + 1e-9j, -1e-12 + 1e-20j)),
    "sqrt": Function(mpmath.sqrt, POSITIVE, PLANE),
    "cbrt": Function(lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), LINE),
    "sin": Function(mpmath.sin, LINE, PLANE),
    "cos": Function(mpmath.cos, LINE, PLANE),
    "tan": Function(mpmath.tan, LINE, PLANE),
    "arcsin": Function(mpmath.asin, INSIDE, PLANE),
    "arccos": Function(mpmath.acos, INSIDE, PLANE),
    "arctan": Function(mpmath.atan, LINE, PLANE),
    "sinh": Function(mpmath.sinh, LINE, PLANE),
    "cosh": Function(mpmath.cosh, LINE, PLANE),
    "tanh": Function(mpmath.tanh, LINE, PLANE),
    "sech2": Function(lambda x: mpmath.sech(x) ** 2, LINE),
    "arcsinh": Function(mpmath.asinh, LINE, PLANE),
    "arccosh": Function(mpmath.acosh, (1 + 1e-12, 1.001, 2.5, 20.0, *LARGE), PLANE),
    "arctanh": Function(mpmath.atanh, INSIDE, PLANE),
    "logistic": Function(logistic, LINE),
    "logit": Function(lambda p: mpmath.log(p) - mpmath.log1p(-p), UNIT),
    "erf": Function(mpmath.erf, MODERATE),
    "erfc": Function(mpmath.erfc, MODERATE),
    "erfcx": Function(lambda x: mpmath.exp(x * x) * mpmath.erfc(x), (*SPECIAL, 5.6, 7.1, 1e3, -0.3, -2.5)),
    "erfi": Function(mpmath.erfi, SPECIAL),
    "dawsn": Function(
        lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x), both((*SPECIAL, 5.6, 7.1))
    ),
    "erfinv": Function(mpmath.erfinv, (1e-16, 1e-3, 0.3, -0.7, 0.999)),
    "ndtr": Function(mpmath.ncdf, MODERATE),
    "log_ndtr": Function(lambda x: mpmath.log1p(-mpmath.ncdf(-x)), (*SPECIAL, -2.5, -19.0, -25.0)),
    "exprel": Function(lambda x: mpmath.expm1(x) / x, both(SPECIAL)),
    "real_exprel_slope": Function(
        lambda x: (mpmath.exp(x) * (x - 1) + 1) / x**2,
        (*both(SPECIAL), -0.9999, -1.0, -1.2, 0.9999, -40.0, -1e20, -1e154, 705.0, 715.0),
    ),
    "real_sinc": Function(lambda x: mpmath.sin(x) / x, both(SPECIAL)),
    "real_sinhc": Function(lambda x: mpmath.sinh(x) / x, both(SPECIAL)),
    "real_log_ratio": Function(lambda x: mpmath.log(x) / (x - 1), (*SPECIAL, 0.999, 1.0000001, 1e300)),
    "cosm1": Function(lambda x: mpmath.cos(x) - 1, both(SPECIAL)),
    "entr": Function(lambda x: -x * mpmath.log(x), POSITIVE),
    "gamma": Function(mpmath.gamma, (*SPECIAL, 100.0, -0.3, -2.5)),
    "gammaln": Function(lambda x: mpmath.log(abs(mpmath.gamma(x))), (*SPECIAL, 1e3, -0.3, -2.5)),
    "rgamma": Function(mpmath.rgamma, (1e-30, *SPECIAL, 100.0, -1e-3, -0.3, -2.5, -3 + 1e-9)),
    "psi": Function(mpmath.digamma, (*SPECIAL, 1e3)),
    "j0": Function(lambda x: mpmath.besselj(0, x), SPECIAL),
    "j1": Function(lambda x: mpmath.besselj(1, x), SPECIAL),
    "i0": Function(lambda x: mpmath.besseli(0, x), both(SPECIAL)),
    "i1": Function(lambda x: mpmath.besseli(1, x), both(SPECIAL)),
    "i1_ratio": Function(lambda x: mpmath.besseli(1, x) / x, both(SPECIAL)),
    "i0e": Function(scaled_bessel(mpmath.besseli, 0, -1), (*SPECIAL, 31.0, 1e3)),
    "i1e": Function(scaled_bessel(mpmath.besseli, 1, -1), (*SPECIAL, 31.0, 1e3)),
    "airy_ai": Function(mpmath.airyai, (*SPECIAL, -0.3, -2.5)),
    "airy_bi": Function(mpmath.airybi, (*SPECIAL, -0.3, -2.5)),
    "airye_ai": Function(scaled_airy(mpmath.airyai, 1), (1e-3, 0.3, 2.5, 13.0, 1e3)),
    "airye_bi": Function(scaled_airy(mpmath.airybi, -1), (1e-3, 0.3, 2.5, 13.0, 1e3)),
    "voigt_profile": Function(
        lambda x, s, g: mpmath.re(faddeeva((x + 1j * g) / (s * mpmath.sqrt(2)))) / (s * mpmath.sqrt(2 * mpmath.pi)),
        ((0.3, 0.7, 0.2), (-1.0, 0.5, 0.5), (1e3, 2.5, 0.3), (3.0, 1.0, 20.0)),
    ),
    "expi": Function(mpmath.ei, SPECIAL),
    "exp1": Function(mpmath.e1, SPECIAL),
    "si": Function(mpmath.si, SPECIAL),
    "shi": Function(mpmath.shi, SPECIAL),
    "ellipk": Function(mpmath.ellipk, (1e-16, 1e-3, 0.3, 0.7, 0.999, -2.5)),
    "ellipe": Function(mpmath.ellipe, (1e-16, 1e-3, 0.3, 0.7, 0.999, -2.5)),
    "mul": Function(lambda x, y: x * y, QUADRANTS),
    "div": Function(lambda x, y: x / y, QUADRANTS),
    "pow": Function(
        mpmath.power,
        tuple(
            product(
                (1e-300, 0.3, 2.5, 1e30, 1e300),
                (-3.5, -1.0, -1e-8, 1e-30, 1e-8, 0.5, 1.0, 1.5, 2.0, 3.5),
            )
        ),
    ),
    "hypot": Function(mpmath.hypot, QUADRANTS),
    "arctan2": Function(mpmath.atan2, QUADRANTS),
    "logaddexp": Function(
        lambda x, y: max(x, y) + mpmath.log1p(mpmath.exp(-abs(x - y))),
        tuple(product((1e-8, 0.3, -2.5, 20.0, -300.0), repeat=2)),
    ),
    "xlogy": Function(lambda x, y: x * mpmath.log(y), QUADRANT),
    "xlog1py": Function(lambda x, y: x * mpmath.log1p(y), QUADRANT),
    "log_quotient": Function(log_quotient, ENTROPY),
    "rel_entr": Function(lambda x, y: x * log_quotient(x, y), ENTROPY),
    "kl_div": Function(lambda x, y: x * log_quotient(x, y) - x + y, ENTROPY),
    "pseudo_huber": Function(
        lambda delta, r: r * r / (mpmath.sqrt(1 + (r / delta) ** 2) + 1),
        tuple(product((1e-30, 1e-8, 0.3, 2.5, 1e3, 1e9), repeat=2)),
    ),
    "huber": Function(
        lambda delta, r: r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2),
        [(d, r) for d, r in QUADRANTS if d > 0 and d != abs(r)],
    ),
    "remainder": Function(lambda x, y: x - mpmath.floor(x / y) * y, ((2.3, 0.9), (1e3, 7.0), (-2.3, 0.9), (0.3, 1e3))),
    "maximum": Function(max, [(x, y) for x, y in QUADRANTS if x != y]),
}


# ---- every nesting ---------------------------------------------------------------------------------------------------

ORDER = 3
"""The highest derivative of x f; of f, and where nestings are compared among themselves, it is lower by one."""


STENCILS = ((0, 0, 1, 0, 0), (0, -0.5, 0, 0.5, 0), (0, 1, -2, 1, 0), (-0.5, 1, 0, -1, 0.5), (1, -4, 6, -4, 1))
"""The weights of central differences, by order."""


@cache
def exactly(name: str, point: tuple[float, ...], operand: int) -> list[Any]:
    """Return the derivatives in one operand by differences; None at a singular point, and of what is only their noise.

    Two steps that find the same digits suffice; otherwise the precision is that of sums, and the step that of waves.
    """
    xs = [mpf(x) for x in point]
    x, sums = abs(xs[operand]), 100 + len(xs) * max(abs(int(mpmath.mag(x))) for x in xs)
    orders = range(len(STENCILS))
    found = before = [(mpf(0), mpf(0)) for _ in orders]
    quick = ((100, x, 70), (160, x, 90)) if sums > 500 else ()
    for precision, scale, bits in (*quick, (sums, min(x, mpf(1)), 70)):
        with mpmath.workprec((precision + 20) * len(orders)):
            try:
                found = differences(FUNCTIONS[name].truth, xs, operand, scale * mpf(2) ** -bits)
            except (ValueError, ZeroDivisionError):
                return [None for _ in orders]
        pairs = [(f, b) for (f, _), (b, _) in zip(found, before, strict=True)]
        if all(isinstance(f, mpf) and abs(f - b) < abs(f) * mpf(2) ** -80 for f, b in pairs):
            return [f for f, _ in found]
        before = found
    return [f if isinstance(f, mpf) and mpmath.isfinite(f) and abs(f) >= noise else None for f, noise in found]


def differences(function: Callable[..., Any], xs: list[Any], operand: int, step: Any) -> list[tuple[Any, Any]]:
    """Return the derivatives in one operand and the size of the noise of each, at the current precision."""
    values = [function(*xs[:operand], xs[operand] + k * step, *xs[operand + 1 :]) for k in (-2, -1, 0, 1, 2)]
    lost = abs(values[2]) * mpf(2) ** (20 - mpmath.mp.prec)
    return [
        (sum(w * y for w, y in zip(weights, values, strict=True) if w) / step**n, lost / step**n if n else mpf(0))
        for n, weights in enumerate(STENCILS)
    ]


def by_every_nesting(program: Program, operand: int, highest: int, name: str) -> dict[str, Program]:
    """Return the derivatives up to the highest by their modes, f forward and r reverse, the outermost first.

    Of third order are two of fff, frf, rfr and rrr, which the name draws: in these four each mode follows each mode in
    the first two steps and in the last two.
    """
    found, last = {"": program}, {"": program}
    for order in range(highest):
        ways = [(mode, way) for way in last for mode in "fr" if len(way) < 2 or mode == way[1]]
        ways = some_of(ways, name, 2) if order == 2 else ways
        last = {mode + way: differentiated(mode, last[way], operand) for mode, way in ways}
        found |= last
    return found


def differentiated(mode: str, program: Program, operand: int) -> Program:
    wrt = [i == operand for i in range(len(program.inputs))]
    whole = (jvp if mode == "f" else joint)(program, wrt)
    return dce(trace(lambda *xs: [inline(whole, [*xs, ones_like(xs[operand])])[-1]], *program.in_avals))


MARGIN = 1e-6
"""The distance of what is compared from under- and overflow, as a factor."""


def up_to(highest: int, name: str, point: tuple[float, ...], operand: int, limits: np.finfo[Any]) -> list[Any]:
    """Return the value and the derivatives in one operand, up to one that is singular or near under- or overflow."""
    smallest, largest = float(limits.tiny) / MARGIN, float(limits.max) * MARGIN
    found: list[Any] = []
    for order in range(highest + 1):
        found.append(exactly(name, point, operand)[order])
        if found[-1] is None or not (found[-1] == 0 or smallest < abs(found[-1]) < largest):
            break
    return found


@dataclass(frozen=True)
class Expected:
    """The derivatives of f in one operand at a point, and of x f, as long as they are far from under- and overflow."""

    x: Any
    derivatives: list[Any]
    limits: np.finfo[Any]

    def check(self, found: float, order: int, *, times_x: bool) -> str:
        """Return what is wrong."""
        orders = self.derivatives[: order + 2]
        if len(orders) < order + 2 or orders[-1] is None:
            return ""
        terms = [orders[-2], self.x * orders[-1]]
        exact = orders[-2]
        if times_x:
            below = order * orders[-3] if order else mpf(0)
            exact, terms = self.x * exact + below, [self.x * exact, below, self.x * self.x * orders[-1]]
        size = sum(map(abs, terms))
        if size > float(self.limits.max) * MARGIN:
            return ""
        error = abs(mpf(float(found)) - exact)
        allowed = 64 * 10**order * float(self.limits.eps) * size + float(self.limits.tiny)
        return "" if error <= allowed else f"{found} for {mpmath.nstr(exact, 8)}"


def has_slope(name: str, operand: int) -> bool:
    derivative = PRIMITIVES[name].derivative
    return not (isinstance(derivative, Partials) and isinstance(derivative.functions[operand], NoFormula | None))


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", [name for name, function in FUNCTIONS.items() if function.points])
def test_derivatives_by_every_nesting(name: str, dtype: str):
    kind, primitive = DTYPES[dtype], PRIMITIVES[name]
    step = 1 if dtype == "f64" else 3  # in single precision the rules are the same
    points = FUNCTIONS[name].at(kind)[::step]
    columns = [np.array(column, kind) for column in zip(*points, strict=True)]
    avals = [Aval(kind, column.shape) for column in columns]
    operands = list(filter(partial(has_slope, name), range(len(columns))))
    program = trace(lambda *xs: [primitive(*xs)], *avals)
    of_itself = {operand: by_every_nesting(program, operand, ORDER - 1, name) for operand in operands}
    compiled_ways = ("r", "rr") if dtype in some_of(["f64", "f32"], name) else ()
    native = {(operand, way): ways[way] for operand, ways in of_itself.items() for way in compiled_ways}
    whole = trace(lambda *xs: [inline(p, xs)[0] for p in native.values()], *avals)
    with np.errstate(all="ignore"):
        compiled = dict(zip(native, compile_program(whole)(columns), strict=True)) if native else {}
    with together() as check:
        for operand in operands:
            expected = [
                Expected(mpf(p[operand]), up_to(ORDER + 1, name, p, operand, np.finfo(kind)), np.finfo(kind))
                for p in points
            ]
            forms = [(False, of_itself[operand])]
            if dtype == "f64":
                product = trace(lambda *xs, i=operand: [xs[i] * primitive(*xs)], *avals)
                forms.append((True, by_every_nesting(product, operand, ORDER, name)))
            for times_x, ways in forms:
                with np.errstate(all="ignore"):
                    found = {f"{way}, interpreted": interpret(p, columns)[0] for way, p in ways.items()}
                if not times_x:
                    found |= {f"{way}, compiled": values for (i, way), values in compiled.items() if i == operand}
                for way, values in found.items():
                    order = len(way.split(",")[0])
                    wrong = {
                        p: e.check(v, order, times_x=times_x) for p, e, v in zip(points, expected, values, strict=True)
                    }
                    with check(f"{'x ' * times_x}{name} in operand {operand}: {way}"):
                        assert not any(wrong.values()), {p: text for p, text in wrong.items() if text}


# ---- where mpmath has no such function -------------------------------------------------------------------------------

EXTREME = np.array(both((1e-30, 1e-8, 1e-3, 0.3, 1.0, 2.5, 7.9, 50.0, 1e3)))
OTHERS = {
    case.primitive.name: case
    for case in SMOOTH
    if case.primitive.name not in FUNCTIONS
    and isinstance(case.primitive.axes, Elementwise)
    and not isinstance(case.primitive.derivative, Linear)
    and {operand.dtype for operand in case.operands} <= {DTYPES["f64"], DTYPES["i64"]}
}


@pytest.mark.slow
@in_groups("name", OTHERS)
def test_nestings_agree_at_extreme_operands(name: str):
    """Of x f, up to roundings of the lower derivatives over powers of x, which cancel in some slopes."""
    case, primitive = OTHERS[name], PRIMITIVES[name]
    with together() as check:
        for operand, values in enumerate(case.operands):
            if values.dtype.kind != "f" or not has_slope(name, operand):
                continue
            xs = np.concatenate([EXTREME, values.ravel()])
            columns = [xs if i == operand else np.resize(column, xs.shape) for i, column in enumerate(case.operands)]
            program = trace(
                lambda *a, i=operand: [a[i] * primitive(*a, **case.sample.params)],
                *[Aval(column.dtype, xs.shape) for column in columns],
            )
            with np.errstate(all="ignore"):
                ways = by_every_nesting(program, operand, ORDER - 1, name)
                found = {way: interpret(p, columns)[0] for way, p in ways.items()}
                scales = np.abs([xs**n * found["f" * n] for n in range(ORDER)])
                ordinary = np.logical_and.accumulate((scales > 1e-250) & (scales < 1e250))
                for way, slopes in found.items():
                    n = len(way)
                    error = np.abs(slopes - found["f" * n]) * np.abs(xs) ** n
                    wrong = ordinary[n] & ~(error <= 1e-12 * 10**n * np.max(scales[: n + 1], axis=0))
                    with check(f"x {name} in operand {operand}: {way}"):
                        assert not wrong.any(), f"at {[column[wrong] for column in columns]}: {slopes[wrong]}"


# ---- in the plane ----------------------------------------------------------------------------------------------------


def derivative(run: Run, name: str, dtype: str, point: tuple[Any, ...], ways: tuple[int, ...]) -> Any:
    """Return the mixed derivative in the variables `ways`, by that many nestings of forward mode."""
    xs = [DTYPES[dtype].type(x) for x in point]
    program = trace(lambda *operands: [PRIMITIVES[name](*operands)], *[Aval(DTYPES[dtype])] * len(xs), name=name)
    inputs = xs
    for way in ways:
        tangents = [x.dtype.type(i == way) for i, x in enumerate(inputs)]
        program, inputs = jvp(program, marks(program)), [*inputs, *tangents]
    return run(program, inputs)[-1]


def of_sine(x: Any) -> tuple[Any, Any, Any]:
    rest = 1 - x * x
    return rest**-0.5, x * rest**-1.5, (1 + 2 * x * x) * rest**-2.5


def of_cosine(x: Any) -> tuple[Any, Any, Any]:
    first, second, third = of_sine(x)
    return -first, -second, -third


def of_tangent(x: Any) -> tuple[Any, Any, Any]:
    rest = 1 - x * x
    return 1 / rest, 2 * x / rest**2, (2 + 6 * x * x) / rest**3


INVERSES = {"arcsin": of_sine, "arccos": of_cosine, "arctanh": of_tangent}
"""The first three derivatives, from 1 - x² in fifty digits."""


@pytest.mark.parametrize("name", INVERSES)
def test_small_numbers_are_not_lost_beside_one(name: str, run: Run):
    for x in (0.0, 1e-20, -3e-9, 1e-4, 0.4999, 0.5001, -0.9, 1 - 1e-9):
        for order, expected in enumerate(INVERSES[name](mpmath.mpf(x)), 1):
            found = derivative(run, name, "f64", (x,), (0,) * order)
            assert_close(found, np.asarray(float(expected)), 1e-13, 0.0)
    for z in (1e-20j, 1e-9 + 1e-9j, -1e-12 + 0.3j):
        for order, expected in enumerate(INVERSES[name](mpmath.mpc(z)), 1):
            found = derivative(run, name, "c128", (z,), (0,) * order)
            assert_close(found, np.asarray(complex(expected)), 1e-13, 0.0)


@pytest.mark.parametrize("order", [0, 1, 2])
@in_groups("name", [name for name, function in FUNCTIONS.items() if function.plane])
def test_derivatives_in_the_plane_are_mpmaths(name: str, order: int, run: Run):
    function = FUNCTIONS[name]
    for z in function.plane:
        expected = complex(mpmath.diff(function.truth, mpmath.mpc(z), order))
        found = derivative(run, name, "c128", (z,), (0,) * order)
        assert_close(found, np.asarray(expected), tolerance(found.dtype, order))

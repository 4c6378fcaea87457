"""Functions of math, cmath and statistics, and Python's own, on traced numbers: under any name, as on numbers."""

import cmath
import codecs
import contextlib
import functools
import math
import operator
import os
import statistics
import struct
import subprocess
import sys
import types
from collections.abc import Callable
from math import copysign, exp, pi
from math import log as ln
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentTypeError, RetraceWarning, TracerEscapeError
from fnad.trace.standard import STANDARD
from tests.together import in_groups

DTYPE, OF_FLOATS = np.float64, float

SMOOTH = {
    **dict.fromkeys(("acos", "asin", "atanh"), (0.3,)),
    **dict.fromkeys(("sqrt", "log", "log2", "log10", "log1p", "gamma", "lgamma", "cbrt", "fabs", "acosh"), (1.7,)),
    **dict.fromkeys(("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "atan"), (-0.4,)),
    **dict.fromkeys(("erf", "erfc", "degrees", "radians"), (-0.4,)),
    **dict.fromkeys(("atan2", "pow", "hypot", "copysign", "fmod", "remainder"), (2.6, 1.1)),
    "ldexp": (0.3, 2),
    "nextafter": (0.3, 1.0),
    **dict.fromkeys(("fmax", "fmin") if hasattr(math, "fmax") else (), (2.6, 1.1)),
}
"""A point for each function of math of one result that has a derivative."""

CASES = {
    **{name: (getattr(math, name), point) for name, point in SMOOTH.items()},
    "log to a base": (math.log, (2.6, 1.9)),
    "dist": (lambda x, y: math.dist([x, 2.0], (0.5, y)), (2.6, 1.1)),
    "frexp": (lambda x: math.frexp(x)[0] * math.frexp(x)[1], (2.6,)),
    "fsum": (lambda x, y: math.fsum(v * v for v in (x, y, 1.0)), (2.6, 1.1)),
    "hypot of three": (lambda x, y: math.hypot(x, y, -1.0), (2.6, 1.1)),
    "modf": (lambda x: math.modf(x)[0] ** 2 + math.modf(x)[1], (2.6,)),
    "prod": (lambda x, y: math.prod([x, y, x]), (2.6, 1.1)),
    "bound before": (lambda x, y: exp(-pi * x) * ln(y) + copysign(max(1e-300, abs(x)), y), (0.3, -1.1 + 2.5)),
    "float": (lambda x: float(x) ** 2 + OF_FLOATS(x), (1.7,)),
    "numpy.float64": (lambda x: DTYPE(x) * DTYPE(2) * x, (1.7,)),
    "complex": (lambda x, y: abs(complex(x, y) ** 2 + complex(y)), (0.3, 1.1)),
    "cmath": (lambda x, y: (cmath.exp(x * 1j) * cmath.sqrt(complex(-x, y)) / cmath.phase(x + y * 1j)).imag, (0.3, 1.1)),
    "polar": (lambda x, y: cmath.rect(*reversed(cmath.polar(complex(x, y)))).real, (0.3, 1.1)),
    "map": (lambda x, y: sum(map(exp, map(float, [x, y]))), (0.3, 1.1)),
    "choices": (lambda x, y: max(x, y) * min([x, y, 3]) + max((v * v for v in (x, y)), default=0), (0.3, 1.1)),
    "rounded": (
        lambda x: x * (round(x) + int(x) + math.floor(x) + math.ceil(x) + math.trunc(x) + divmod(x, 2)[0]),
        (2.6,),
    ),
    "power": (lambda x, y: pow(x, y) + round(x, 1) * y, (2.6, 1.1)),
    "statistics": (
        lambda x, y: statistics.stdev([x, y, 2.0]) + statistics.mean((x, y)) * statistics.fmean([y, x]),
        (0.3, 1.1),
    ),
    "of two": (
        lambda x, y: statistics.covariance([x, y, 2], [1, x, y]) / statistics.correlation([x, y, 2], [1, x, y]),
        (0.3, 1.1),
    ),
    "means": (lambda x, y: statistics.geometric_mean([x, y]) * statistics.harmonic_mean([x, y]), (0.3, 1.1)),
    "by name": (
        lambda x, y: (
            statistics.stdev([x, y, 2.0], xbar=x * y) * statistics.pvariance(data=(x, y), mu=y)
            + statistics.fmean([x, 2.0], weights=(y, x)) * statistics.harmonic_mean((x, y), weights=[1, y])
        ),
        (0.3, 1.1),
    ),
    "variances": (
        lambda x, y: statistics.variance([x, y], 0.5) + statistics.pvariance([x, y]) * statistics.pstdev([x, y]),
        (0.3, 1.1),
    ),
}


def difference(f, point, i):
    """Return the partial derivative by differences of two steps, to about ten digits."""

    def slope(h):
        shifted = [[x + s if k == i else x for k, x in enumerate(point)] for s in (h, -h)]
        return (f(*shifted[0]) - f(*shifted[1])) / (2 * h)

    return (4 * slope(5e-4) - slope(1e-3)) / 3


def derivatives(f, point, places):
    return [difference(f, point, i) for i in places]


@in_groups("name", CASES)
def test_values_and_derivatives(name):
    f, point = CASES[name]
    floats = tuple(i for i, x in enumerate(point) if isinstance(x, float))
    found, gradient = fnad.value_and_grad(f, floats)(*point)
    assert found == pytest.approx(f(*point), rel=1e-14)
    np.testing.assert_allclose(gradient, derivatives(f, point, floats), rtol=1e-9, atol=1e-10)
    numpys = [np.float64(x) if isinstance(x, float) else x for x in point]
    assert fnad.value_and_grad(f)(*numpys)[0] == found


@in_groups("name", CASES)
def test_where_no_value_is_known(name):
    """In the body of a loop the same function has the same values and derivatives."""
    f, point = CASES[name]

    def looped(x, y):
        return fnad.scan(lambda c, _: (f(c, y) if len(point) == 2 else f(c), None), x, length=1)[0]

    x, y = (*point, 0.0)[:2]
    with fnad.config.override(executor="interpreter"):
        found, slope = fnad.value_and_grad(looped)(x, y)
    assert found == pytest.approx(f(*point), rel=1e-14)
    np.testing.assert_allclose(slope, difference(f, point, 0), rtol=1e-9, atol=1e-10)


def test_functions_of_math_compile_to_their_values():
    """All of them in one compiled function, and of float32 a Python float."""
    cases = [case for case in CASES.values() if all(isinstance(x, float) for x in case[1])]
    fast = fnad.jit(
        lambda points: [f(p[0], p[1]) if len(p) > 1 else f(p[0]) for (f, _), p in zip(cases, points, strict=True)]
    )
    points = [point for _, point in cases]
    for _ in range(2):
        np.testing.assert_allclose(fast(points), [f(*point) for f, point in cases], rtol=1e-14)
    assert np.ones(2, np.float32).dtype == fnad.jit(lambda x: exp(x) * np.ones(2, np.float32))(np.float32(0.3)).dtype
    assert fnad.jit(exp)(np.float32(0.3)).dtype == fnad.jit(float)(np.float32(0.3)).dtype == np.float64
    assert fnad.jit(exp)(np.float32(0.3)) == exp(np.float32(0.3))
    assert fnad.jit(lambda x: DTYPE(x) * np.ones(2, np.float32))(1).dtype == np.float64


TESTS = ("isfinite", "isinf", "isnan", "ulp", "fabs", "modf", "frexp", "isnormal", "issubnormal", "signbit")


@pytest.mark.parametrize("x", [0.0, -0.0, 1.5, -3.0, math.inf, -math.inf, math.nan, 3, True, 1e308, 5e-324])
def test_at_special_points(x):
    """What math returns, or raises, at each point, with and without a path that knows it."""
    names = {name for name in (*SMOOTH, *TESTS) if len(SMOOTH.get(name, "x")) == 1 and hasattr(math, name)}
    functions = [getattr(math, name) for name in sorted(names - ({"lgamma"} if x in (-math.inf, 5e-324) else set()))]
    functions += [
        lambda x: (math.isclose(x, 1.5), math.isclose(x, -math.inf), math.isclose(x, 3.1, rel_tol=0.1)),
        lambda x: (math.remainder(x, 2), math.remainder(x, math.inf)),
        *(lambda x: math.remainder(5.0, x), lambda x: math.fmod(x, math.inf), lambda x: math.fmod(1.0, x)),
        *(lambda x: math.pow(x, 1.5), lambda x: math.pow(2.0, x), lambda x: math.log(x, 2), lambda x: math.log(2.0, x)),
        *(lambda x: math.atan2(x, -0.0), lambda x: math.hypot(x, math.nan), lambda x: math.fsum([x, -math.inf])),
        *(lambda x: math.ldexp(x, 3000), lambda x: math.dist([x], [1.0]), lambda x: math.nextafter(x, 1.0)),
        *(lambda x: complex(x, math.inf), lambda x: complex(1.0, x), lambda x: cmath.log(x), lambda x: cmath.sqrt(-x)),
    ]
    for f in functions:
        expected = outcome(f, x)
        with np.errstate(all="ignore"):
            found = outcome(fnad.jit(f), x)
        if isinstance(expected, type):
            assert found is expected, f
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-14, err_msg=str(f))


def outcome(f, x):
    try:
        return f(x)
    except (ValueError, ArithmeticError) as error:
        return type(error)


def test_errors_of_math_and_where_there_are_none():
    fast = fnad.jit(lambda x: math.sqrt(x) * 2)
    for _ in range(2):
        assert fast(4.0) == 4.0
        with pytest.raises(ValueError, match=r"math domain error|expected a nonnegative input, got -1\.0"):
            fast(-1.0)
    with np.errstate(all="ignore"):
        assert np.isnan(fnad.vmap(lambda x: math.sqrt(x))(np.array([-1.0, 4.0]))).tolist() == [True, False]
    for f in (math.exp, float, lambda x: math.atan2(1.0, x)):
        for x in (np.ones(2), 1j):
            with pytest.raises(
                ArgumentTypeError, match=r"(only 0-dim|only length-1|must be real|real number).*\n.*test_math.py"
            ):
                fnad.jit(lambda x: f(x))(x)  # noqa: B023
    with pytest.raises(TypeError, match="must be real number, not str"):
        fnad.jit(lambda x: x * math.atan2(x, "1"))(1.0)
    with pytest.raises(statistics.StatisticsError):
        fnad.jit(lambda x: statistics.stdev([x]))(1.0)


def test_item_and_tolist_keep_traced_elements():
    assert fnad.grad(lambda x: x[1].item() ** 2 * x.tolist()[0] + x.item(2))(np.array([2.0, 3.0, 5.0])).tolist() == [
        9,
        12,
        1,
    ]
    compiled = fnad.jit(lambda x: [x.item(1, 0), x.item(-1), x.tolist()])
    assert compiled(np.eye(2, dtype="f4") * 2) == [0.0, 2.0, [[2.0, 0.0], [0.0, 2.0]]]
    assert fnad.jit(lambda x: np.ones(1, "f4") * x.item())(np.array([3.0])).dtype == np.float32
    for f in (lambda x: x.item(), lambda x: x.item(7)):
        with pytest.raises((ValueError, IndexError)):
            fnad.jit(f)(np.ones(3))


# ---- names bound before fnad is imported -----------------------------------------------------------------------------

HELPER = """
import functools
from math import exp as e
import math

import numpy as np

kind, called = np.float32, []

def wraps(f):
    @functools.wraps(f)
    def run(*args):
        return f(*args)
    return run

def gauss(x, mu=0.0):
    called.append(x)
    return e(-(x - mu) ** 2 / 2)

def narrow(x):
    return kind(x) * kind(2)

@wraps
def nested(x):
    inner = lambda y: [float(z) * e(z) for z in (y, y)]
    return sum(inner(x))

class Model:
    scale = 2.0

    def __call__(self, x):
        return self.value(x) * Model.of(x) * self.one

    def value(self, x):
        return self.scale * max(1e-3, float(x))

    @staticmethod
    def of(x):
        return e(x)

    @property
    def one(self):
        return math.cos(0.0 if isinstance(self.scale, float) else float("nan"))
"""

PROGRAM = """
import helper
from helper import gauss

code = gauss.__code__
import numpy as np
import fnad

with fnad.config.override(executor="interpreter"):
    for wrap in (fnad.grad, lambda f: fnad.jit(fnad.grad(f))):
        assert abs(wrap(lambda x: gauss(x, 0.5))(1.5) + np.exp(-0.5)) < 1e-15
        assert abs(wrap(helper.nested)(1.0) - 4 * np.e) < 1e-14
        assert abs(wrap(helper.Model())(1.0) - 4 * np.e) < 1e-14
        assert wrap(lambda x: helper.narrow(x) ** 2)(1.0) == 8.0
    assert fnad.jit(helper.narrow)(1.0).dtype == np.float32
    helper.called.clear()
    fast = fnad.jit(gauss)
    assert fast(0.0) == 1.0 and len(helper.called) == 1, helper.called
    assert fast(1.0) == helper.e(-0.5) and len(helper.called) == 1
    helper.e = lambda x: 7.0
    assert fast(1.0) == fnad.jit(gauss)(1.0) == 7.0
assert gauss.__code__ is code and helper.e(1) == 7.0
"""


def test_names_bound_before_fnad(tmp_path):
    (tmp_path / "helper.py").write_text(HELPER)
    (tmp_path / "program.py").write_text(PROGRAM)
    ran = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def counted(x):
    RUNS.append(x)
    return exp(x)


RUNS: list[object] = []


def test_a_function_runs_once():
    runs = [fnad.grad(counted), fnad.jit(counted), fnad.grad(lambda x: fnad.jit(counted)(x))]
    for run in (runs[0], *runs, runs[-1]):
        RUNS.clear()
        run(0.5)
        assert len(RUNS) == 1


def test_functions_that_a_c_function_returns():
    runs = []
    register: Callable[[str, Any], None] = codecs.register_error
    found: Callable[[str], Any] = codecs.lookup_error
    for number in range(4):
        register(f"times {number}", lambda x, number=number: exp(number * x))

    def f(x):
        runs.append(x)
        return sum(found(f"times {number}")(x) for number in range(4))

    assert fnad.grad(f)(0.5) == pytest.approx(sum(number * exp(number * 0.5) for number in range(4)), rel=1e-14)
    assert len(runs) == 1
    assert fnad.grad(f)(0.0) == 6.0


def test_a_handler_of_type_errors_is_not_reached():
    def f(x):
        try:
            return float(x) * 2
        except TypeError:
            return 100.0 * x

    assert fnad.grad(f)(1.0) == fnad.jit(fnad.grad(f))(1.0) == 2.0


def test_a_name_that_is_not_pythons():
    space = {"float": lambda x: 3 * x, "exp": np.exp}
    exec("def f(x):\n    return float(x) * exp(x)", space)
    assert fnad.grad(space["f"])(0.0) == 3.0


def check_scalar(f, compiled_at):
    """Value and derivative at 0.7 against Python's, and the compiled value where no trace was."""
    value, slope = fnad.value_and_grad(f)(0.7)
    assert value == pytest.approx(f(0.7), rel=1e-14)
    np.testing.assert_allclose(slope, difference(f, (0.7,), 0), rtol=1e-9)
    np.testing.assert_allclose(fnad.jit(f)(compiled_at), f(compiled_at), rtol=1e-14)


EXP, TWO_TO, NUMBER, LARGEST = (
    *(functools.partial(exp), functools.partial(math.pow, 2.0), functools.partial(float)),
    functools.partial(functools.partial(max, key=lambda x: -float(x)), 0.8),
)
PARTIALS = {
    "one argument": lambda x: EXP(x),
    "one given": lambda x: TWO_TO(x) + [TWO_TO(x) for _ in range(2)][1],
    "class": lambda x: NUMBER(x) ** 2,
    "of a partial, by keyword": lambda x: LARGEST(x) ** 2,
    "in map": lambda x: sum(map(EXP, (x, 2 * x))) + next(map(NUMBER, [x])),
    "of a class": lambda x: Powers.exp(x) * x,
}


class Powers:
    exp = functools.partial(math.exp)


@pytest.mark.parametrize("name", PARTIALS)
def test_partial_calls_of_math_compute_as_math(name):
    check_scalar(PARTIALS[name], 0.5)


def test_a_partial_call_that_is_bound_anew():
    global TWO_TO  # noqa: PLW0603
    before = TWO_TO
    f = PARTIALS["one given"]
    assert fnad.grad(f)(0.0) == 2 * math.log(2.0)
    try:
        TWO_TO = functools.partial(math.pow, 5.0)
        assert fnad.grad(f)(0.0) == 2 * math.log(5.0)
    finally:
        TWO_TO = before


class Holder:
    root = math.sqrt
    number = float

    def __init__(self):
        self.log, self.fs, self.table = math.log, [math.sin], {"cos": math.cos}

    def run(self, x):
        return self.log(x) * self.fs[0](x) + self.table["cos"](x)


def decorated(f):
    @functools.wraps(f)
    def run(*args, **options):
        return f(*args, **options)

    return run


def rebinding(x):
    f = math.exp
    first = f(*[x])
    f = math.sin
    return first * f(*(x,))


def unbound(x):
    if x > 5.0:
        f = math.exp
    return NESTED.exp(x) * decorated(math.exp)(x) * f(*[x])  # pyright: ignore[reportPossiblyUnboundVariable]


DECORATED = decorated(math.hypot)

HOLDER: Any
LISTED: Any
TABLE: Any
HOLDER, LISTED, TABLE = Holder(), [math.exp], {"exp": math.exp}
NESTED = types.SimpleNamespace(exp=exp, inner=types.SimpleNamespace(sin=math.sin), power=functools.partial(pow, 2.0))
MODULE: Any
MODULE = types.ModuleType("holding")
MODULE.exp, MODULE.hypot, MODULE.number = math.exp, math.hypot, float
MET = {
    "a module's names": lambda x: MODULE.exp(x) * MODULE.hypot(*[x, 2.0]) + math.sin(x) * MODULE.number(x),
    "attributes": lambda x: NESTED.exp(x) + NESTED.inner.sin(x) + (_held := NESTED.exp)(x),
    "of an instance": lambda x: HOLDER.log(x) * HOLDER.run(x),
    "of a class": lambda x: HOLDER.root(x) + Holder.root(x) * HOLDER.number(x),
    "elements": lambda x: LISTED[0](x) + TABLE["exp"](x) + TABLE.get("exp")(x) + HOLDER.fs[0](x),
    "partial": lambda x: NESTED.power(x),
    "default arguments": lambda x, f=math.exp, *, g=math.sin: f(x) * g(x),
    "NumPy beside them": lambda x: (
        NESTED.exp(x) * np.exp([x, x])[1] + np.array([x, 1.0]).sum() + np.zeros(2).tolist()[0]
    ),
    "comprehensions": lambda x: sum(f(x) for f in (NESTED.exp, HOLDER.log)) + [HOLDER.root(v) for v in (x,)][0],
    "functions inside": lambda x: (lambda y: NESTED.exp(y))(x) + max([x, 2 * x], key=lambda v: NESTED.exp(v)),
    "unpacked arguments": lambda x: NESTED.exp(*[x]) + HOLDER.root(*(NESTED.inner.sin(*[x]),)),
    "unpacked arguments of a variable": lambda x, f=math.exp, *, g=max: f(*[x]) * g(*[[x, 2.0]], key=lambda v: -v),
    "decorated": lambda x: decorated(math.exp)(x) + DECORATED(x, 2.0) * decorated(decorated(math.sin))(x),
    "a variable of two functions": rebinding,
    "the order of a call": lambda x: (box := types.SimpleNamespace(f=math.exp)).f([x, setattr(box, "f", math.sin)][0]),
}


@pytest.mark.parametrize("name", MET)
def test_functions_that_objects_hold(name):
    check_scalar(MET[name], 0.9)


class Quantity:
    """Tells its number to Python's functions, which want one of Python's."""

    def __init__(self, value):
        self.value = value

    def __float__(self):
        return self.value * 1.0

    def __int__(self):
        return int(self.value)

    def __complex__(self):
        return complex(self.value, self.value)


class Converted(Quantity):
    def __float__(self):
        return float(self.value)


TELLING = {
    "float": (lambda x, q: float(q(x)) ** 2, lambda x: x**2),
    "another name": (lambda x, q: OF_FLOATS(q(x)) ** 2, lambda x: x**2),
    "math": (lambda x, q: math.exp(q(x)) * math.hypot(q(x), q(1.0)), lambda x: exp(x) * math.hypot(x, 1.0)),
    "a name of math": (lambda x, q: copysign(q(x), -1.0) + ln(q(x)), lambda x: ln(x) - x),
    "several": (lambda x, q: math.fsum([q(x), q(x)]) + math.dist([q(x)], [1.0]), lambda x: 2.0 * x + abs(x - 1.0)),
    "complex": (lambda x, q: abs(complex(q(x))), lambda x: math.sqrt(2.0) * x),
    "int": (lambda x, q: x * int(q(x)), lambda x: x * math.trunc(x)),
}


@pytest.mark.parametrize("transform", [lambda f: f, fnad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("kind", [Quantity, Converted])
@pytest.mark.parametrize("name", TELLING)
def test_an_object_that_tells_a_traced_number(name, kind, transform):
    """Python's functions refuse a number that a method tells them and that is none of Python's."""
    f, plain = TELLING[name]
    value, slope = transform(fnad.value_and_grad(lambda x: f(x, kind)))(2.6)
    assert value == pytest.approx(f(2.6, kind), rel=1e-15)
    assert slope == pytest.approx((plain(2.6 + 1e-5) - plain(2.6 - 1e-5)) / 2e-5, rel=1e-7)


def test_an_object_that_tells_a_number_to_numpy():
    words = r"(returned non-float|must return a float, not a traced value)"
    message = rf"{words}.*test_math.py:\d+ in .*take the number from an attribute"
    with pytest.raises(ArgumentTypeError, match=f"(?s){message}"):
        fnad.grad(lambda x: np.float64(Quantity(x)))(2.6)
    with pytest.raises(TypeError, match="must be real number, not Holder"):
        fnad.grad(lambda x: x * math.exp(HOLDER))(2.6)


def test_an_attribute_that_changes():
    held = types.SimpleNamespace(f=math.exp)
    compiled = fnad.jit(lambda x: held.f(x))
    assert compiled(1.0) == math.e
    held.f = math.sin
    assert compiled(1.0) == math.sin(1.0)


SIZES = types.SimpleNamespace(of=os.stat)
READING = {
    "a variable": lambda path: lambda x, stat=os.stat: stat(path).st_size * NESTED.exp(x),
    "unpacked arguments": lambda path: lambda x, stat=os.stat: stat(*[path]).st_size * NESTED.exp(x),
    "an attribute": lambda path: lambda x: SIZES.of(path).st_size * NESTED.exp(x),
    "an attribute, unpacked": lambda path: lambda x: SIZES.of(*[path]).st_size * NESTED.exp(x),
}


@pytest.mark.parametrize("name", READING)
def test_a_file_is_read_again(name, tmp_path):
    path = tmp_path / "file"
    compiled = fnad.jit(READING[name](str(path)))

    def read(text):
        path.write_text(text)
        return compiled(0.0), compiled(0.0)

    with pytest.warns(RetraceWarning, match="a file is read"):
        found = [read("ab"), read("abcd")]
    assert found == [(2.0, 2.0), (4.0, 4.0)]


def test_variables_that_hold_functions():
    square = np.vectorize(lambda t: t * t)

    def f(x, each=square, text=str, has=hasattr):
        squares = np.sum(each(*[x])) * NESTED.exp(0.0 * np.sum(x))
        return squares * len(text(*[squares > 0])) * (2.0 if has(*[squares, "__array__"]) else 3.0)

    for transform in (lambda f: f, fnad.jit):
        value, slope = transform(fnad.value_and_grad(f))(np.array([1.0, 2.0]))
        assert value == f(np.array([1.0, 2.0])) == 5.0 * 4 * 2
        np.testing.assert_array_equal(slope, [16.0, 32.0])


def test_converted_code_raises_the_errors_of_python():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        fnad.grad(lambda x: NESTED.exp(x) + NESTED.nothing(x))(1.0)
    with pytest.raises(NameError, match="name 'undefined' is not defined"):
        fnad.grad(lambda x: NESTED.exp(x) + undefined[0](x))(1.0)  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
    with pytest.raises(UnboundLocalError, match="variable 'f'"):
        fnad.grad(unbound)(0.9)
    for f in (lambda x: NESTED.exp(x) + NESTED.exp(), lambda x: NESTED.exp(x) + NESTED.exp(*[])):
        with pytest.raises(TypeError, match="exactly one argument"):
            fnad.grad(f)(1.0)


def test_c_functions_that_read_a_number_are_an_error():
    with pytest.raises(TracerEscapeError, match=r"test_math.py:\d+ in <lambda>"):
        fnad.grad(lambda x: struct.unpack("d", struct.pack("d", x))[0])(1.0)


def test_a_methodcaller_calls_as_code_does():
    assert fnad.grad(lambda x: operator.methodcaller("exp", x)(NESTED))(1.0) == math.exp(1.0)


def test_all_are_covered():
    """Each function of math that takes a float has a rule, or asks for an integer or a number by Python's protocols.

    `fma` of Python 3.13 rounds once, which no operation here does: it is refused, as what asks for a number is.
    """
    public = {f for name, f in vars(math).items() if callable(f) and not name.startswith("_")}
    named = {"comb", "factorial", "fma", "gcd", "isqrt", "lcm", "perm", "prod", "sumprod"}
    assert {f.__name__ for f in public - STANDARD.keys()} <= named
    assert {name for name in vars(cmath) if callable(vars(cmath)[name])} >= {"exp", "rect"}
    assert {f for name, f in vars(cmath).items() if callable(f) and not name.startswith("_")} <= STANDARD.keys()


@contextlib.contextmanager
def doubled(x):
    yield float(x) * 2.0


def in_a_block(x):
    with doubled(x) as y:
        return exp(y) * x


@functools.singledispatch
def dispatched(x):
    return x


@dispatched.register
def _(x: float):
    return exp(x) * 2.0


@pytest.mark.parametrize("f", [in_a_block, lambda x: dispatched(x)], ids=["contextmanager", "singledispatch"])
def test_functions_behind_decorators_of_the_standard_library(f):
    for run in (fnad.grad(f), fnad.jit(fnad.grad(f))):
        assert run(1.3) == pytest.approx((f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6)

"""Formulas of functions: their accuracy, special values, and that loops of them vectorise."""

from __future__ import annotations

import ctypes
import ctypes.util
import platform
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import llvmlite.ir as ir
import mpmath
import numpy as np
import pytest
import scipy.special

from fnad.backends.cpu import codegen, vector_math
from fnad.backends.cpu.loader import link
from fnad.backends.llvm.formulas.catalogue import ELEMENTARY, ELEMENTARY_F32, OWN, SPECIAL, SPECIAL_F32
from fnad.backends.llvm.formulas.definition import Formula, defined
from fnad.backends.llvm.scalar import llvm_type
from fnad.scalar.operations import OPERATIONS
from tests.kernel_text import compile_source
from tests.together import in_groups, some_of

Array = np.ndarray[Any, Any]
INF, NAN = np.inf, np.nan
LONG = ir.IntType(64)


class Case(NamedTuple):
    """A formula in some dtypes, the same in mpmath, SciPy or NumPy, and the largest error in units in the last place.

    Arguments are from these intervals, on a logarithmic scale if they begin with a positive number.
    """

    name: str
    true: Callable[[Any], Any]
    ulps: float
    intervals: tuple[tuple[float, float], ...]
    values: tuple[tuple[float, float], ...]
    dtypes: str = "fd"

    def formula(self, dtype: np.dtype[Any]) -> Formula:
        of_any = ELEMENTARY | SPECIAL | OWN
        return (of_any if dtype.itemsize == 8 else of_any | ELEMENTARY_F32 | SPECIAL_F32)[self.name]

    @property
    def f64(self) -> Callable[[Array], Array]:
        if self.name in OWN or self.name in ("sici_0", "sici_1"):
            return {
                "trigamma": trigamma_by_reflection,
                "i1_ratio": lambda x: np.where(x, scipy.special.i1(x) / x, 0.5),
                "sech2": lambda x: 1 / np.square(np.cosh(x)),
                "exprel_slope": OPERATIONS["exprel_slope"].plain,
                "sici_0": lambda x: scipy.special.sici(x)[0],
                "sici_1": lambda x: scipy.special.sici(x)[1],
            }[self.name]
        return getattr(np, self.name, None) or getattr(scipy.special, self.name)


def scaled_bessel(order: int) -> Callable[[Any], Any]:
    return lambda x: mpmath.besseli(order, x) * mpmath.exp(-abs(x))


def erfcx(x: Any) -> Any:
    return mpmath.exp(x * x) * mpmath.erfc(x)


def dawson(x: Any) -> Any:
    """Return Dawson's integral; of large numbers the first terms of its series."""
    if abs(x) > 1e3:
        return (1 + 1 / (2 * x**2) + 3 / (4 * x**4)) / (2 * x)
    return mpmath.exp(-x * x) * mpmath.erfi(x) * mpmath.sqrt(mpmath.pi) / 2


def trigamma(x: Any) -> Any:
    return mpmath.polygamma(1, x)


def trigamma_by_reflection(x: Array) -> Array:
    """Return the trigamma function; of negative numbers by its reflection, because SciPy counts down to them."""
    above = scipy.special.polygamma(1, np.where(x < 0, 1 - x, x))
    return np.where(x < 0, (np.pi / np.sin(np.pi * (x - np.round(x)))) ** 2 - above, above)


def exprel_slope(x: Any) -> Any:
    return ((x - 1) * mpmath.exp(x) + 1) / x**2


def logit(p: Any) -> Any:
    return mpmath.log(p / (1 - p))


def ndtri(p: Any) -> Any:
    return -mpmath.sqrt(2) * erfcinv(2 * p)


def ndtr(x: Any) -> Any:
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def log_ndtr(x: Any) -> Any:
    return mpmath.log1p(-ndtr(-x)) if x > 0 else mpmath.log(ndtr(x))


def erfcinv(y: Any) -> Any:
    """Return the inverse of erfc, by Newton's method in the logarithm where erfinv(1 - y) has no digits."""
    x = mpmath.mpf(float(scipy.special.erfcinv(float(y))))
    for _ in range(4):
        x += (mpmath.erfc(x) - y) * mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(x * x)
    return x


AT_0, AT_NAN, UP = ((0, 0), (-0.0, -0.0)), (NAN, NAN), (INF, INF)
TO_1 = (*AT_0, (INF, 1), (-INF, -1), AT_NAN)
NOWHERE = ((INF, NAN), (-INF, NAN), AT_NAN)
NEAR, POSITIVE = ((-3, 3), (1e-30, 1)), ((0.05, 5), (1e-300, 1e305))
P = ((0.05, 0.95), (1e-300, 1))

# fmt: off
CASES = (
    Case("sin", mpmath.sin, 0.85, NEAR, (*AT_0, *NOWHERE), "f"),
    Case("cos", mpmath.cos, 0.85, NEAR, ((0, 1), *NOWHERE), "f"),
    Case("tan", mpmath.tan, 1.2, NEAR, (*AT_0, *NOWHERE), "f"),
    Case("exp", mpmath.exp, 1.0, ((-745, 709), *NEAR), ((0, 1), (-INF, 0), (1e5, INF), UP, AT_NAN)),
    Case("expm1", mpmath.expm1, 0.9, ((-40, 709), *NEAR), (*AT_0, (-INF, -1), UP, AT_NAN)),
    Case("tanh", mpmath.tanh, 1.5, ((-20, 20), *NEAR), TO_1),
    Case("sech2", lambda x: mpmath.sech(x) ** 2, 2.5, ((-372, 372), *NEAR), ((0, 1), (INF, 0), (-INF, 0), AT_NAN)),
    Case("log", mpmath.log, 0.7, ((1e-320, 1e300), (0.5, 2)), ((0, -INF), (-0.0, -INF), (1, 0), (-1, NAN), UP)),
    Case("exp2", lambda x: mpmath.power(2, x), 0.8, ((-1070, 1020), *NEAR), ((-INF, 0), (3, 8), (1e5, INF), UP)),
    Case("sinh", mpmath.sinh, 1.0, ((-710, 710), *NEAR), (*AT_0, (-INF, -INF), UP, AT_NAN)),
    Case("cosh", mpmath.cosh, 1.0, ((-710, 710), *NEAR), ((0, 1), (-INF, INF), UP, AT_NAN)),
    Case("log2", lambda x: mpmath.log(x, 2), 0.7, ((1e-320, 1e300), (0.5, 2)), ((0, -INF), (8, 3), (-1, NAN), UP)),
    Case("log10", mpmath.log10, 0.7, ((1e-320, 1e300), (0.5, 2)), ((0, -INF), (1000, 3), (-1, NAN), UP)),
    Case("log1p", mpmath.log1p, 0.7, ((1e-30, 1e300), (-1, 1)), (*AT_0, (-1, -INF), (-2, NAN), UP, AT_NAN)),
    Case("erf", mpmath.erf, 1.1, ((-6, 6), *NEAR), TO_1),
    Case("erfc", mpmath.erfc, 1.2, ((-6, 27), *NEAR), ((0, 1), (INF, 0), (-INF, 2), AT_NAN)),
    Case("erfcx", erfcx, 1.0, ((-26, 30), *NEAR), ((0, 1), (INF, 0), (-INF, INF), (-1e4, INF), AT_NAN)),
    Case("dawsn", dawson, 1.4, ((-7, 7), (1e-300, 1e300)), (*AT_0, (INF, 0), (-INF, -0.0), AT_NAN)),
    Case("expi", mpmath.ei, 1.3, ((-730, 716), (-4, 6), (0.3, 0.4)), ((0, -INF), (-0.0, -INF), (-INF, -0.0), UP)),
    Case("exp1", mpmath.e1, 1.3, ((1e-320, 1), (1, 730), (1, 5)), ((0, INF), (-0.0, INF), (-1, NAN), (INF, 0), AT_NAN)),
    Case("ndtr", ndtr, 1.1, ((-38, 8), *NEAR), ((0, 0.5), (INF, 1), (-INF, 0), AT_NAN)),
    Case("log_ndtr", log_ndtr, 1.1, ((-40, 38), *NEAR), ((INF, -0.0), (-INF, -INF), AT_NAN)),
    Case("erfinv", mpmath.erfinv, 1.2, ((-1, 1), (1e-30, 1)), (*AT_0, (1, INF), (-1, -INF), (2, NAN), *NOWHERE)),
    Case("erfcinv", erfcinv, 1.2, P, ((0, INF), (2, -INF), (1, 0), (-1, NAN), (3, NAN), *NOWHERE)),
    Case("ndtri", ndtri, 1.2, P, ((0, -INF), (1, INF), (0.5, 0), (-1, NAN), (2, NAN), *NOWHERE)),
    Case("gammaln", mpmath.loggamma, 1.0, POSITIVE, ((0, INF), (-0.0, INF), (1, 0), (-3, INF), (-INF, -INF), UP)),
    Case("psi", mpmath.digamma, 2.0, POSITIVE, ((0, -INF), (-0.0, INF), (-3, NAN), (-INF, NAN), UP, AT_NAN)),
    Case("trigamma", trigamma, 2.0, POSITIVE, ((0, INF), (-0.0, INF), (-3, INF), (-INF, INF), (INF, 0), AT_NAN)),
    Case("gamma", mpmath.gamma, 0.51, (), ((0, INF), (-0.0, -INF), (-3, NAN), (-INF, NAN), (4, 6), UP, AT_NAN), "f"),
    Case("spence", mpmath.polylog, 0.51, (), ((0, np.pi**2 / 6), (1, 0), (-1, NAN), (INF, NAN), AT_NAN), "f"),
    Case("sici_0", mpmath.si, 0.51, (), ((0, 0), (-0.0, 0), (INF, np.pi / 2), (-INF, -np.pi / 2), AT_NAN), "f"),
    Case("sici_1", mpmath.ci, 0.51, (), ((0, -INF), (-0.0, -INF), (INF, 0), (-INF, NAN), AT_NAN), "f"),
    Case("exprel_slope", exprel_slope, 4.5, ((-40, 715), (-2, 2), (1e-30, 1)), ((0, 0.5), (-INF, 0), UP, AT_NAN)),
    Case("logit", logit, 0.8, ((1e-300, 1), (0.4, 0.6)), ((0, -INF), (1, INF), (0.5, 0), (2, NAN), *NOWHERE)),
    Case("i0", lambda x: mpmath.besseli(0, x), 1.2, ((-713, 713), *NEAR), ((0, 1), (1e5, INF), *NOWHERE)),
    Case("i1", lambda x: mpmath.besseli(1, x), 1.4, ((-713, 713), *NEAR), (*AT_0, (1e5, INF), *NOWHERE)),
    Case("i0e", scaled_bessel(0), 1.2, ((-10, 10), (1e-30, 1e5)), ((0, 1), (INF, 0), (-INF, 0), AT_NAN)),
    Case("i1e", scaled_bessel(1), 1.2, ((-10, 10), (1e-30, 1e5)), (*AT_0, (INF, 0), (-INF, -0.0), AT_NAN)),
    Case("i1_ratio", lambda x: mpmath.besseli(1, x) / x, 2.0, ((-713, 713), *NEAR), ((0, 0.5), (1e5, INF), *NOWHERE)),
)
# fmt: on
BY_DTYPE = {f"{case.name}-{letter}": (case, letter) for case in CASES for letter in case.dtypes}


def loop_of(case: Case, dtype: np.dtype[Any]) -> ir.Module:
    """Return the module of a function run(x, y, n) that computes y[i] for each x[i]."""
    module, number = codegen.new_module("formula"), llvm_type(dtype)
    pointer = number.as_pointer()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer, pointer, LONG]), name="run")
    x, y, count = function.args
    x.add_attribute("noalias")
    y.add_attribute("noalias")
    before, body, end = map(function.append_basic_block, ("before", "body", "end"))
    ir.IRBuilder(before).branch(body)
    builder = ir.IRBuilder(body)
    index = builder.phi(LONG)
    value = defined(case.name, case.formula(dtype), builder, [dtype], [builder.load(builder.gep(x, [index]))])
    builder.store(value, builder.gep(y, [index]))
    following = builder.add(index, LONG(1))
    index.add_incoming(LONG(0), before)
    index.add_incoming(following, body)
    builder.cbranch(builder.icmp_signed("<", following, count), body, end)
    ir.IRBuilder(end).ret_void()
    return module


@cache
def optimized(case: Case, dtype: np.dtype[Any]) -> tuple[str, Any]:
    """Return the text of the optimised loop, and the loop itself; two of three tests take what the first one made."""
    module = codegen.optimized(loop_of(case, dtype))
    return str(module), link(codegen.object_code(module))


def evaluated(engine: Any, x: Array) -> Array:
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(engine.get_function_address("run"))
    y = np.empty_like(x)
    run(x.ctypes.data, y.ctypes.data, x.size)
    return y


def errors(found: Array, true: Array, floor: Array | float) -> Array:
    """Return the distances in units in the last place; infinite where infinities or nans differ."""
    rounded = true.astype(found.dtype)
    unit = np.spacing(np.maximum(np.abs(rounded), np.asarray(floor, found.dtype))).astype(true.dtype)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    finite = np.isfinite(found) & np.isfinite(rounded)
    return np.where(finite, np.abs(found.astype(true.dtype) - true) / unit, np.where(same, 0, INF))


def arguments(case: Case) -> Array:
    rng = np.random.default_rng(0)
    columns = [
        np.exp(rng.uniform(np.log(low), np.log(high), 60)) if low > 0 else rng.uniform(low, high, 60)
        for low, high in case.intervals
    ]
    return np.concatenate(columns)


def floor_of(case: Case, x: Array) -> Array:
    """Return the least value whose unit in the last place an error is relative to."""
    tiny = np.finfo(x.dtype).tiny
    if case.name not in ("gammaln", "psi"):
        return np.full(x.shape, tiny)
    return np.where(x < 0, np.maximum(1, np.log(np.maximum(np.abs(x), tiny))), tiny)


@pytest.mark.parametrize(("case", "letter"), BY_DTYPE.values(), ids=[*BY_DTYPE])
def test_formulas_are_as_accurate_as_stated(case: Case, letter: str) -> None:
    dtype = np.dtype(letter)
    if letter == "f":
        x = np.arange(0, 2**32, 120_011, np.uint64).astype(np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            true = case.f64(x.astype("f8"))
    else:
        x = arguments(case)
        with mpmath.workprec(250):
            true = np.array([mpmath.nstr(case.true(mpmath.mpf(v)), 25) for v in x.tolist()]).astype(np.longdouble)
    found = evaluated(optimized(case, dtype)[1], x)
    with np.errstate(all="ignore"):
        distances = errors(found, true, floor_of(case, x))
    worst = distances.argmax()
    assert distances[worst] <= case.ulps, (x[worst], found[worst], true[worst])


PARTS = [Case(name, mpmath.exp, 1.0, (), ()) for name in ("exp_high", "exp_low")]


@pytest.mark.parametrize(("letter", "least"), [("d", -775.0), ("f", -127.0)])
def test_the_parts_of_an_exponential_add_up_to_more_digits(letter: str, least: float) -> None:
    """2**100 exp(x) is normal, compiled and in NumPy; 2**100 itself is exact."""
    x = np.append(np.linspace(least, 0, 300), -np.logspace(-20, 0, 60)).astype(letter)
    compiled = [evaluated(optimized(part, x.dtype)[1], x) for part in PARTS]
    plain = [OPERATIONS[part.name](x) for part in PARTS]
    for high, low in (compiled, plain):
        assert (high[299], low[299]) == (2.0**100, 0.0)
        with mpmath.workprec(250):
            true = [mpmath.ldexp(mpmath.exp(mpmath.mpf(float(v))), 100) for v in x]
            total = [mpmath.mpf(float(a)) + mpmath.mpf(float(b)) for a, b in zip(high, low, strict=True)]
            worst = max(abs(a / b - 1) for a, b in zip(total, true, strict=True))
        assert worst < 0.25 * float(np.finfo(letter).eps)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flag has another number")
def test_no_product_within_an_exponential_in_f32_is_subnormal() -> None:
    """Some processors take hundreds of cycles for each; an addition raises no flag of an underflow."""
    libm, underflow = ctypes.CDLL(ctypes.util.find_library("m")), 0x10
    _, engine = optimized(next(case for case in CASES if case.name == "exp"), np.dtype("f"))
    x = np.linspace(-103.9, -80.0, 1000, dtype="f")
    libm.feclearexcept(underflow)
    found = evaluated(engine, x)
    assert not libm.fetestexcept(underflow)
    assert ((found > 0.0) & (found < np.finfo("f").tiny)).sum() > 100


@in_groups(("case", "letter"), BY_DTYPE.values(), ids=[*BY_DTYPE])
def test_special_values_are_those_of_c99(case: Case, letter: str) -> None:
    """Also without LLVM's passes, in one precision."""
    x, expected = (np.array(column, letter) for column in zip(*case.values, strict=True))
    engines = [optimized(case, x.dtype)[1]]
    if letter in some_of(case.dtypes, case.name):
        engines.append(link(codegen.object_code(codegen.plain(loop_of(case, x.dtype)))))
    for engine in engines:
        found = evaluated(engine, x)
        np.testing.assert_array_equal(found, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@in_groups(("case", "letter"), BY_DTYPE.values(), ids=[*BY_DTYPE])
def test_loops_of_formulas_vectorise(case: Case, letter: str) -> None:
    module, _ = optimized(case, np.dtype(letter))
    sizes = {np.dtype(letter).itemsize, 8} if case.name in SPECIAL_F32 else {np.dtype(letter).itemsize}
    assert any(f"store <{vector_math.preferred_bytes() // size} x " in module for size in sizes)
    assert "define internal" not in module


@pytest.mark.parametrize(("letter", "lanes"), [("f", 4), ("d", 8)])
def test_sums_of_formulas_take_whole_vectors(letter: str, lanes: int) -> None:
    """Loops of 16 are not unrolled, and functions of f32 take no fewer numbers for the sake of a sum in f64."""
    dtype = np.dtype(letter)
    source = """
def program(x, y, out):
    for i in range(0, 1000):
        acc = f64(0.0)
        for j in range(0, 16):
            v = scipy_psi(x[16 * i + j])
            y[16 * i + j] = v
            acc = accumulate(acc, f64(v))
        out[i] = acc
"""
    function = compile_source(source, "program", [dtype, dtype, np.dtype("f8")])
    assert f"store <{vector_math.widest_bytes() // lanes} x " in function.llvm()
    x, y, out = np.linspace(0.5, 9, 16_000).astype(letter), np.empty(16_000, letter), np.empty(1000)
    function.call(x, y, out)
    np.testing.assert_allclose(y, scipy.special.psi(x), rtol=8 * np.finfo(letter).eps, atol=1e-7)
    np.testing.assert_allclose(out, y.reshape(1000, 16).astype("f8").sum(1), rtol=1e-12)


def zeta(s: Array, q: Array) -> tuple[Array, str]:
    """Return Hurwitz's zeta function, compiled, and the code of its loop."""
    source = """
def program(s, q, y):
    for i in range(0, N):
        y[i] = scipy__zeta(s[i], q[i])
""".replace("N", str(s.size))
    program, y = compile_source(source, "program", [s.dtype] * 3), np.empty_like(s)
    program.call(s, q, y)
    return y, program.llvm()


@pytest.mark.slow
@pytest.mark.parametrize("letter", "fd")
def test_zeta_is_accurate_on_vectors(letter: str) -> None:
    """Also where the argument is large, the exponent next to 1, and the function close to its first term."""
    rng, n = np.random.default_rng(0), 16
    s = np.concatenate([rng.uniform(1, 4, n), rng.uniform(1, 60, n), 1.001 + np.exp(rng.uniform(-9, 3, n))])
    q = np.concatenate([rng.uniform(0, 4, n), rng.uniform(0, 60, n), np.exp(rng.uniform(-3, 10, n))])
    s, q = (np.maximum(x, 2.0**-10).astype(letter) for x in (s, q))
    with mpmath.workdps(150):
        pairs = zip(s.tolist(), q.tolist(), strict=True)
        true = np.array([mpmath.nstr(mpmath.zeta(*map(mpmath.mpf, pair)), 25) for pair in pairs]).astype(np.longdouble)
    found, code = zeta(s, q)
    with np.errstate(over="ignore", under="ignore"):
        assert errors(found, true, float(np.finfo(letter).tiny)).max() <= 2
    assert f"store <{vector_math.widest_bytes() // s.itemsize} x " in code


def by_elements(name: str, *operands: Array) -> tuple[Array, str]:
    """Return a ufunc of SciPy, compiled, and the code of its loop."""
    names = "abc"[: len(operands)]
    source = f"""
def program({", ".join(names)}, y):
    for i in range(0, {operands[0].size}):
        y[i] = scipy_{name}({", ".join(f"{letter}[i]" for letter in names)})
"""
    dtypes = [operands[0].dtype] * (len(operands) + 1)
    program, y = compile_source(source, "program", dtypes), np.empty_like(operands[0])
    program.call(*operands, y)
    return y, program.llvm()


OF_PAIRS = {
    "beta": mpmath.beta,
    "betaln": lambda a, b: mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b),
    "poch": mpmath.rf,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OF_PAIRS)
def test_functions_of_pairs_are_accurate_on_vectors_of_f32(name: str) -> None:
    """Also where one argument is much larger than the other; next to zeros, errors are relative to a larger number."""
    rng, n = np.random.default_rng(0), 96
    exponents = np.concatenate([rng.uniform(-3, 3, (n, 2)), rng.uniform(-60, 60, (n, 2))])
    a, b = np.append(np.exp(exponents), 1 + rng.uniform(-1e-6, 1e-6, (n, 2)), axis=0).astype("f4").T.copy()
    with mpmath.workdps(100):
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        true = np.array([float(mpmath.re(OF_PAIRS[name](*map(mpmath.mpf, pair)))) for pair in pairs])
    found, code = by_elements(name, a, b)
    floor = 2.0**-24 if name == "betaln" else float(np.finfo("f4").tiny)
    with np.errstate(all="ignore"):
        distances = errors(found, true, floor)
    worst = distances.argmax()
    assert distances[worst] <= 0.51, (a[worst], b[worst], found[worst], true[worst])
    assert f"fnad.scipy_{name}_outside" in code


@pytest.mark.parametrize("name", ["betaln", "poch"])
def test_functions_of_pairs_are_accurate_on_vectors_of_f64(name: str) -> None:
    """Also of large arguments, where SciPy subtracts logarithms that are nearly equal."""
    rng, n = np.random.default_rng(0), 300
    a, b = np.exp(rng.uniform(-13, 13, (2, n)))
    b = np.where(rng.random(n) < 0.5, 0.5, np.exp(-b)) if name == "poch" else b
    with mpmath.workdps(60):
        pairs = zip(a.tolist(), b.tolist(), strict=True)
        texts = [mpmath.nstr(mpmath.re(OF_PAIRS[name](*map(mpmath.mpf, pair))), 25) for pair in pairs]
    true = np.array(texts).astype(np.longdouble)
    found, code = by_elements(name, a, b)
    distances = errors(found, true, 1.0 if name == "betaln" else 0.0)
    worst = distances.argmax()
    assert distances[worst] <= 64, (a[worst], b[worst], found[worst], true[worst])
    assert f"fnad.scipy_{name}_outside" in code


@pytest.mark.parametrize("letter", "fd")
@pytest.mark.parametrize("name", OF_PAIRS)
def test_functions_of_pairs_have_the_special_values_of_scipy(name: str, letter: str) -> None:
    """Where one lane is outside of the formula, too, and others are within."""
    values = np.array([0.0, -0.0, 1, 2.5, -1.5, -2, 1e30, INF, -INF, NAN], letter)
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(a, b)
    np.testing.assert_allclose(by_elements(name, a, b)[0], expected, rtol=2e-7)


@pytest.mark.parametrize("name", ["betainc", "betaincc"])
def test_incomplete_beta_functions_are_accurate_on_vectors_of_f32(name: str) -> None:
    """SciPy's are in f64; where one lane is outside of the formula, too."""
    rng, n = np.random.default_rng(0), 20_000
    a, b = np.exp(rng.uniform(np.log(2.0**-10), np.log(32), (2, n))).astype("f4")
    x = np.where(rng.random(n) < 0.5, rng.random(n), np.exp(rng.uniform(-20, 0, n))).astype("f4")
    function = getattr(scipy.special, name)
    true = function(*(operand.astype("f8") for operand in (a, b, x)))
    found, code = by_elements(name, a, b, x)
    with np.errstate(all="ignore"):
        distances = errors(found, true, float(np.finfo("f4").tiny))
    worst = distances.argmax()
    assert distances[worst] <= 0.51, (a[worst], b[worst], x[worst], found[worst], true[worst])
    assert f"fnad.scipy_{name}_outside" in code
    values = np.array([0.0, 2.0**-11, 0.5, 1, 33, -2, INF, NAN], "f4")
    a, b, x = (operand.ravel() for operand in np.meshgrid(values, values, values))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(by_elements(name, a, b, x)[0], function(a, b, x), rtol=2e-7)


POWERS = {"boxcox": 0, "boxcox1p": 1}


@pytest.mark.parametrize("letter", "fd")
@pytest.mark.parametrize("name", POWERS)
def test_box_cox_transforms_are_accurate_on_vectors(name: str, letter: str) -> None:
    """Also where λL is small, and where the power overflows before the division by λ."""
    rng, n = np.random.default_rng(0), 400
    x = np.concatenate([rng.uniform(0.01, 5, n), np.exp(rng.uniform(-60, 60, n)), rng.uniform(0.999, 1.001, n)])
    x = (x - POWERS[name]).astype(letter)
    power = np.concatenate([rng.uniform(-2, 2, 2 * n), np.exp(rng.uniform(-50, 5, n))]).astype(letter)
    rng.shuffle(power)
    with mpmath.workprec(420):
        base = [mpmath.mpf(v) + POWERS[name] for v in x.tolist()]
        true = [(mpmath.power(v, p) - 1) / p for v, p in zip(base, map(mpmath.mpf, power.tolist()), strict=True)]
        wide = np.array([mpmath.nstr(v, 25) for v in true]).astype(np.longdouble)
    found, code = by_elements(name, x, power)
    with np.errstate(all="ignore"):
        distances = errors(found, wide, float(np.finfo(letter).tiny))
    worst = distances.argmax()
    assert distances[worst] <= 1.6, (x[worst], power[worst], found[worst], wide[worst])
    assert f"store <{vector_math.widest_bytes() // x.itemsize} x " in code


@pytest.mark.slow
@pytest.mark.parametrize("letter", "fd")
def test_zeta_has_the_special_values_of_scipy(letter: str) -> None:
    """Left of 0, too, where others in a vector are right of it."""
    rows = [(2, 0), (2, -1), (2.5, -1.5), (3, -1.5), (2, -1.5), (1, -0.5), (0.5, -0.5), (2, -0.0), (np.inf, -1.5)]
    rows += [(1, 2), (0.5, 2), (-1, 2), (2, 2), (np.inf, 0.5), (np.inf, 1), (2, np.inf), (np.nan, 1), (2, np.nan)]
    s, q = np.array(
        [*rows, (2, 1e30), (1e5, 1), (1, np.inf), (0.5, np.inf), (np.inf, np.inf), (3, -0.3)], letter
    ).T.copy()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(zeta(s, q)[0], scipy.special.zeta(s, q), rtol=4 * float(np.finfo(letter).eps))
    assert zeta(np.array([np.inf, 1e30], letter), np.array([2, 2], letter))[0].tolist() == [0, 0]

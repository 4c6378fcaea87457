"""The runtime of emitted code: every operation compiled against its plain meaning, and what compilation must
achieve."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

import fnad
from fnad.backends.cpu import blas, functions, vector_math
from fnad.backends.cpu.compiler import NativeFunction, module_of
from fnad.kernel.python_source import namespace
from fnad.kernel.routines import ROUTINES
from fnad.scalar.operation import OperandError
from tests.kernel_text import compile_source, parse_kernel
from tests.together import in_groups, together

FLOATS = ("f4", "f8")
COMPLEX = ("c8", "c16")
SIGNED = ("i1", "i2", "i4", "i8")
UNSIGNED = ("u1", "u2", "u4", "u8")
INTEGERS = SIGNED + UNSIGNED
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """Special values make NumPy warn."""
    with np.errstate(all="ignore"):
        yield


def epsilon(dtype: str) -> float:
    return float(np.finfo(dtype).eps)


def elementwise(expressions: Sequence[str], arity: int, size: int) -> str:
    """Return a program that stores expressions of a, b, c (the elements of its inputs) for each element."""
    names = "abc"[:arity]
    outputs = [f"out{n}" for n in range(len(expressions))]
    loads = [f"{name} = {name}{name}[i]" for name in names]
    stores = [f"{output}[i] = {expression}" for output, expression in zip(outputs, expressions, strict=True)]
    parameters = ", ".join([*(2 * name for name in names), *outputs])
    return "\n        ".join([f"def program({parameters}):\n    for i in range(0, {size}):", *loads, *stores, ""])


def run_native(expressions: Mapping[str, str], *arrays: Array) -> list[Array]:
    """Return the results of expressions, given with their dtypes, which one program computes."""
    outs = [np.empty(arrays[0].size, dtype) for dtype in expressions.values()]
    source = elementwise([*expressions], len(arrays), arrays[0].size)
    compile_source(source, "program", [array.dtype for array in (*arrays, *outs)]).call(*arrays, *outs)
    return outs


def run_plain(source: str, *arrays: Array) -> None:
    words = namespace()
    exec(source, words)
    words["program"](*arrays)  # type: ignore[operator]


def special(dtype: str) -> Array:
    """Return the values where functions go wrong."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return np.array([False, True])
    if kind.kind in "iu":
        info = np.iinfo(kind)
        values = {info.min, info.min + 1, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 15, 31, 63, 64, info.max - 1, info.max}
        return np.array([v for v in sorted(values) if info.min <= v <= info.max], kind)
    if kind.kind == "c":
        parts = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, np.inf, -np.inf, np.nan], f"f{kind.itemsize // 2}")
        return np.array([complex(a, b) for a, b in itertools.product(parts, parts)], kind)
    info = np.finfo(kind)
    positive = [0.0, info.smallest_subnormal, info.tiny, info.eps, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, np.pi, 7.5, 1e5, 1e22]
    positive += [info.max, np.inf]
    return np.array([sign * v for v in positive for sign in (1, -1)] + [np.nan], kind)


def pairs(dtype: str, other: str | None = None) -> tuple[Array, Array]:
    """Return every pair of special values."""
    left, right = special(dtype), special(other or dtype)
    return np.repeat(left, right.size), np.tile(right, left.size)


def assert_same(got: Array, want: Array, ulps: float = 0.0) -> None:
    """Assert equal dtypes and values, infinities and nan included; finite floats may differ by `ulps`, zeros in
    sign."""
    assert got.dtype == want.dtype
    if want.dtype.kind == "c":
        part = f"f{want.dtype.itemsize // 2}"
        assert_same(got.view(part), want.view(part), ulps)
        return
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want)
        return
    assert np.array_equal(np.isnan(got), np.isnan(want))
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    distance = np.abs(got[finite] - want[finite]) / np.spacing(np.abs(want[finite]))
    assert distance.max(initial=0) <= ulps


def assert_as_plain(
    expressions: Mapping[str, Callable[..., Any]], output: str, *arrays: Array, ulps: float = 0.0
) -> None:
    found = run_native(dict.fromkeys(expressions, output), *arrays)
    with together() as check:
        for (expression, plain), got in zip(expressions.items(), found, strict=True):
            with check(expression):
                assert_same(got, np.asarray(plain(*arrays)).astype(output, copy=False), ulps)


# ---- scalars -----------------------------------------------------------------------------------------------------

NAMES = {
    np.dtype(d).str[1:]: f"{np.dtype(d).kind}{8 * np.dtype(d).itemsize}" for d in (*INTEGERS, *FLOATS, *COMPLEX)
} | {"b1": "bool_"}


@pytest.mark.parametrize("source", NAMES)
def test_casts_are_astype(source: str) -> None:
    values = special(source)
    finite = values[np.abs(values) < 2.0**15] if values.dtype.kind in "fc" else values  # see tests/ops/test_conversion
    for targets, given in ((INTEGERS, finite), ((*FLOATS, *COMPLEX, "b1"), values)):
        found = run_native({f"{NAMES[target]}(a)": target for target in targets}, given)
        for target, got in zip(targets, found, strict=True):
            assert_same(got, (given if target in (*COMPLEX, "b1") else given.real).astype(target))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_truth_as_a_number_is_chosen(dtype: str) -> None:
    """To convert the masks of a vector takes four instructions."""
    name = {"f4": "f32", "f8": "f64"}[dtype]
    text = str(module_of(parse_kernel(elementwise([f"{name}(a < b)"], 2, 8), "program", [np.dtype(dtype)] * 3)))
    assert "select" in text
    assert "uitofp" not in text


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX])
def test_compiled_operators_compute_as_numpy(dtype: str) -> None:
    arrays, ulps = pairs(dtype), 2.0
    assert_as_plain({"a + b": np.add, "a - b": np.subtract, "-a": lambda a, _: -a}, dtype, *arrays)
    others: dict[str, Callable[..., Any]] = {"a * b": np.multiply}
    if np.dtype(dtype).kind in "fc":
        others |= {"a / b": np.divide}
    else:
        others |= {"a & b": np.bitwise_and, "a | b": np.bitwise_or, "a ^ b": np.bitwise_xor, "~a": lambda a, _: ~a}
    assert_as_plain(others, dtype, *arrays, ulps=ulps)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX, "b1"])
def test_compiled_comparisons_answer_as_numpy(dtype: str) -> None:
    answers: dict[str, Callable[..., Any]] = {"a == b": np.equal, "a != b": np.not_equal}
    answers |= dict.fromkeys(("logical_not(a)", "not a"), lambda a, _: np.logical_not(a))
    if np.dtype(dtype).kind != "c":
        answers |= {"a < b": np.less, "a <= b": np.less_equal, "a > b": np.greater, "a >= b": np.greater_equal}
    assert_as_plain(answers, "?", *pairs(dtype))


def test_operands_of_two_dtypes_are_refused() -> None:
    with pytest.raises(OperandError, match="operands need one dtype, not float32, float64: cast them first"):
        compile_source("def program(x, out):\n    out[0] = x[0] * 2.0\n", "program", [np.dtype("f4"), np.dtype("f4")])


# ---- division, powers, choices -----------------------------------------------------------------------------------


DIVISIONS = ("floor_divide", "remainder", "fmod")


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_compiled_divisions_round_and_sign_as_numpy(dtype: str) -> None:
    arrays, divide = pairs(dtype), {f"{name}(a, b)": getattr(np, name) for name in DIVISIONS}
    assert_as_plain(divide, dtype, *arrays)
    if dtype in INTEGERS:
        return
    t, kind, rng = NAMES[dtype], np.dtype(dtype).type, np.random.default_rng(0)

    def of_zero(ufunc: Callable[..., Any], zero: float) -> Callable[[Array], Array]:
        return lambda a: ufunc(kind(zero), np.where(a > 0, a, kind(np.nan)))

    of_zeros = {  # LLVM detects that the divisor is not 0, and must not take it for a number
        f"{name}({t}({zero}), select(a > {t}(0), a, {t}(nan)))": of_zero(getattr(np, name), zero)
        for name, zero in itertools.product(DIVISIONS, (0.0, -0.0))
    }
    assert_as_plain(of_zeros, dtype, special(dtype))
    many = [(rng.standard_normal(2000) * 10.0 ** rng.integers(-3, 4, 2000)).astype(dtype) for _ in range(2)]
    assert_as_plain(divide, dtype, *many)
    finite = np.isfinite(arrays[0]) & np.isfinite(arrays[1]) & (arrays[1] != 0)
    found = run_native(dict.fromkeys(divide, dtype), *(array[finite] for array in arrays))
    for got, ufunc in zip(found, divide.values(), strict=True):
        np.testing.assert_array_equal(np.signbit(got), np.signbit(ufunc(*(array[finite] for array in arrays))))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_power_and_shifts(dtype: str) -> None:
    base, exponent = pairs(dtype)
    natural = exponent >= 0
    assert_as_plain({"power(a, b)": np.power}, dtype, base[natural], exponent[natural])
    left = dict.fromkeys(("left_shift(a, b)", "a << b"), np.left_shift)
    assert_as_plain(left | {"right_shift(a, b)": np.right_shift}, dtype, base, exponent)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "b1"])
def test_compiled_extrema_choose_as_numpy(dtype: str) -> None:
    extrema = {f"{name}(a, b)": getattr(np, name) for name in ("minimum", "maximum", "fmin", "fmax")}
    assert_as_plain(extrema, dtype, *pairs(dtype))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_sign_and_abs(dtype: str) -> None:
    signs = {"sign(a)": np.sign, "abs(a)": np.abs}
    assert_as_plain(signs if dtype not in UNSIGNED else {"sign(a)": np.sign}, dtype, special(dtype))


@pytest.mark.parametrize("exponents", ["i4", "i8"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp_is_rounded_once(dtype: str, exponents: str) -> None:
    """Most results are subnormal."""
    (x,), rng = arguments(dtype, 1), np.random.default_rng(0)
    numbers, far = np.finfo(dtype), np.iinfo(exponents)
    powers = numbers.minexp - np.frexp(x)[1] - rng.integers(-2, numbers.nmant + 3, x.size)
    powers[::9] = rng.choice([far.min, far.max, -3000, 3000, 0], powers[::9].size)
    assert_as_plain({"ldexp(a, b)": np.ldexp}, dtype, x, powers.astype(exponents))


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_compiled_isnan_isinf_isfinite_and_signbit_answer_as_numpy(dtype: str) -> None:
    names = ("isnan", "isinf", "isfinite", "signbit")[: 4 if dtype in FLOATS else 3]
    assert_as_plain({f"{name}(a)": getattr(np, name) for name in names}, "?", special(dtype))


@pytest.mark.parametrize("dtype", ["i4", *FLOATS, *COMPLEX])
def test_strong_multiply_gives_zero_for_zero(dtype: str) -> None:
    def strong(cotangent: Array, partial: Array) -> Array:
        return np.where(cotangent == 0, cotangent.dtype.type(0), cotangent * partial)

    assert_as_plain({"strong_multiply(a, b)": strong}, dtype, *pairs(dtype), ulps=2.0)


@pytest.mark.parametrize("dtype", ["b1", "u1", *FLOATS, *COMPLEX])
def test_compiled_select_chooses_as_where(dtype: str) -> None:
    left, right = pairs(dtype)
    condition = np.arange(left.size) % 3 == 0
    assert_as_plain({"select(a, b, c)": np.where}, dtype, condition, left, right)


# ---- functions ---------------------------------------------------------------------------------------------------


def arguments(dtype: str, arity: int) -> list[Array]:
    """Return special values, values of every magnitude, and values where functions turn, for each operand."""
    rng, bits = np.random.default_rng(1), np.dtype(f"u{np.dtype(dtype).itemsize}")
    size = 4096
    any_bits = rng.integers(0, np.iinfo(bits).max, size, bits, endpoint=True).view(dtype)
    scales = [rng.uniform(-s, s, size).astype(dtype) for s in (1, 3, 10, 100, 1e5)]
    near_one = (1 + rng.uniform(-1, 1, size) * 10.0 ** rng.uniform(-7, 0, size)).astype(dtype)
    columns = [np.concatenate([any_bits, *scales, np.abs(scales[1]), near_one]) for _ in range(arity)]
    for column in columns[1:]:
        rng.shuffle(column)
    return [
        np.concatenate(both)
        for both in zip(columns, pairs(dtype)[:arity] if arity > 1 else [special(dtype)], strict=True)
    ]


def ulps_from(got: Array, want: Array) -> Array:
    """Return the distance in units in the last place from a wider reference; infinite where nan or infinities
    disagree."""
    rounded = want.astype(got.dtype)
    unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(got.dtype).tiny)).astype(want.dtype)
    distance = np.abs(got.astype(want.dtype) - want) / unit
    agree = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    either = ~np.isfinite(got) | ~np.isfinite(rounded)
    return np.where(either, np.where(agree, 0, np.inf), distance)


def wide(function: functions.LibmFunction, arrays: Sequence[Array]) -> Array:
    """Return the function in a wider dtype; NumPy has erf and erfc in none, mpmath has."""
    if function.name in ("erf", "erfc"):
        return np.array([exact(function.name, float(v)) for v in arrays[0]], np.longdouble)
    dtype = np.float64 if arrays[0].dtype == np.float32 else np.longdouble
    return ROUTINES[function.name].plain(*(array.astype(dtype) for array in arrays))


def exact(name: str, value: float) -> np.longdouble:
    if not abs(value) < 30:  # nan, or saturated
        return np.longdouble(getattr(math, name)(value))
    with mpmath.workprec(120):
        return np.longdouble(mpmath.nstr(getattr(mpmath, name)(mpmath.mpf(value)), 25))


@pytest.mark.parametrize("arity", [1, 2])
@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_are_as_accurate_as_stated(dtype: str, arity: int) -> None:
    arrays, operands = arguments(dtype, arity), ", ".join("ab"[:arity])
    listed = [f for f in (*functions.FUNCTIONS, functions.POWER) if f.arity == arity]
    found = run_native({f"{f.name}({operands})": dtype for f in listed}, *arrays)
    with together() as check:
        for function, got in zip(listed, found, strict=True):
            with check(function.name):
                if function.name == "nextafter":
                    assert_same(got, np.nextafter(*arrays))
                    continue
                places = slice(-6000, None, 20) if function.name in ("erf", "erfc") else slice(None)  # mpmath is slow
                distances = ulps_from(got[places], wide(function, [array[places] for array in arrays]))
                assert distances.max() <= function.ulps[FLOATS[::-1].index(dtype)]


@pytest.mark.parametrize("dtype", FLOATS)
def test_exactly_rounded_functions(dtype: str) -> None:
    names, values = ("sqrt", "floor", "ceil", "trunc", "rint"), np.linspace(-5, 5, 41).astype(dtype)
    rounded = {f"{name}(a)": getattr(np, name) for name in names}
    assert_as_plain(rounded, dtype, np.concatenate([special(dtype), values]))
    assert_as_plain({"copysign(a, b)": np.copysign}, dtype, *pairs(dtype))


OF_COMPLEX = {
    **dict.fromkeys(("exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh"), 6.0),
    **dict.fromkeys(("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"), 6.0),
    **dict.fromkeys(("exp2", "expm1", "log2", "log10", "log1p"), None),
}
"""The rounding error of each part, or None where the error is relative to the whole number."""


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_functions_are_numpys(dtype: str) -> None:
    rng, part = np.random.default_rng(2), f"f{np.dtype(dtype).itemsize // 2}"
    values = (rng.standard_normal(500) * 3 + 1j * rng.standard_normal(500)).astype(dtype)
    values = np.concatenate([special(dtype), values])
    found = run_native({f"{name}(a)": dtype for name in OF_COMPLEX}, values)
    with together() as check:
        for (name, ulps), got in zip(OF_COMPLEX.items(), found, strict=True):
            want = getattr(np, name)(values)
            with check(name):
                if ulps is not None:
                    assert_same(got, want, ulps)
                    continue
                np.testing.assert_allclose(got[-500:], want[-500:], rtol=8 * epsilon(dtype))
                np.testing.assert_allclose(got[:-500].view(part), want[:-500].view(part), rtol=8 * epsilon(dtype))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_power_is_numpys(dtype: str) -> None:
    rng = np.random.default_rng(3)
    base = (rng.standard_normal(400) + 1j * rng.standard_normal(400)).astype(dtype)
    exponent = (rng.standard_normal(400) + 1j * rng.standard_normal(400)).astype(dtype)
    exponent[:200] = rng.integers(-20, 20, 200)
    base[:20] = 0
    (got,) = run_native({"power(a, b)": dtype}, base, exponent)
    want = np.power(base, exponent)
    np.testing.assert_allclose(got, want, rtol=20 * epsilon(dtype))


@pytest.mark.parametrize("dtype", COMPLEX)
def test_parts_of_compiled_complex_numbers_are_numpys(dtype: str) -> None:
    real = f"f{np.dtype(dtype).itemsize // 2}"
    values = special(dtype)
    assert_as_plain({"real(a)": np.real, "imag(a)": np.imag}, real, values)
    assert_as_plain({"abs(a)": np.abs}, real, values, ulps=1.3)
    assert_as_plain({"conjugate(a)": np.conjugate, "make_complex(real(a), imag(a))": lambda v: v}, dtype, values)


# ---- sums --------------------------------------------------------------------------------------------------------

SUM = """
def program(x, out):
    total, rest = {0}(0.0), {0}(0.0)
    for i in range(0, {1}):
        total, rest = compensated_add(total, rest, x[i])
    out[0] = total + rest
"""


def compensated_sum(values: Array) -> Any:
    out = np.empty(1, values.dtype)
    source = SUM.format(NAMES[values.dtype.str[1:]], values.size)
    compile_source(source, "program", [values.dtype] * 2).call(values, out)
    plain = np.empty_like(out)
    run_plain(source, values, plain)
    np.testing.assert_array_equal(out, plain)
    return out[0]


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_compensated_sum_is_exact_to_rounding(dtype: str) -> None:
    big = 1 / epsilon(dtype) ** 2
    values = np.array([1, big, 1, -big, 0.5] * 50, dtype)
    assert compensated_sum(values) == 125


@pytest.mark.parametrize("dtype", FLOATS)
def test_compensated_sum_of_infinities(dtype: str) -> None:
    assert compensated_sum(np.array([1, np.inf, 2], dtype)) == np.inf
    assert np.isnan(compensated_sum(np.array([np.inf, 1, -np.inf], dtype)))
    assert np.isnan(compensated_sum(np.array([1, np.nan], dtype)))
    assert compensated_sum(np.array([np.finfo(dtype).max] * 2, dtype)) == np.inf


# ---- matrix products ---------------------------------------------------------------------------------------------

GEMM = """
def program(a, b, c):
    gemm(a, {ao}, {lda}, {at}, b, {bo}, {ldb}, {bt}, c, {co}, {ldc}, {m}, {n}, {k}, {name}({alpha}), {name}({beta}))
"""


def random(dtype: str, size: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(size)
    return (values + 1j * rng.standard_normal(size) if dtype in COMPLEX else values).astype(dtype)


PRODUCT = """
def program(a, b, c, sizes, transposed, factors):
    gemm(
        a, sizes[0], sizes[1], transposed[0], b, sizes[2], sizes[3], transposed[1], c, sizes[4], sizes[5],
        sizes[6], sizes[7], sizes[8], factors[0], factors[1],
    )
"""


@cache
def compiled(source: str, dtype: str) -> Callable[..., None]:
    """Return the program of a product whose sizes, transpositions and factors are arguments."""
    kinds = [np.dtype(d) for d in (dtype, dtype, dtype, "i8", "?", dtype)]
    return compile_source(source, "program", kinds).call


ORDERS = list(itertools.product([False, True], repeat=2))
SIZES = [(3, 4, 5), (1, 1, 7), (0, 3, 2), (3, 0, 2), (3, 2, 0), (17, 9, 33)]


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
@in_groups(("sizes", "transposed"), itertools.product(SIZES, ORDERS), ids=str)
def test_gemm_multiplies_any_layout_into_any_rows(
    sizes: tuple[int, int, int], transposed: tuple[bool, bool], dtype: str
) -> None:
    (m, n, k), (at, bt) = sizes, transposed
    a_shape, b_shape = ((k, m) if at else (m, k)), ((n, k) if bt else (k, n))
    lda, ldb, ldc = a_shape[1] + 2, b_shape[1] + 1, n + 3
    a, b, c = (
        random(dtype, 500 + a_shape[0] * lda),
        random(dtype, 500 + b_shape[0] * ldb, 1),
        random(dtype, 500 + m * ldc, 2),
    )
    for alpha, beta in ((1.0, 0.0), (-0.5, 2.0)):
        want, got = c.copy(), c.copy()
        numbers = np.array([5, lda, 6, ldb, 7, ldc, m, n, k]), np.array(transposed), np.array([alpha, beta], dtype)
        run_plain(PRODUCT, a, b, want, *numbers)
        compiled(PRODUCT, dtype)(a, b, got, *numbers)
        np.testing.assert_allclose(got, want, rtol=0, atol=100 * epsilon(dtype))
        left = a[5 : 5 + a_shape[0] * lda].reshape(a_shape[0], lda)[:, : a_shape[1]]
        right = b[6 : 6 + b_shape[0] * ldb].reshape(b_shape[0], ldb)[:, : b_shape[1]]
        product = (left.T if at else left) @ (right.T if bt else right)
        into = c[7 : 7 + m * ldc].reshape(m, ldc)[:, :n]
        np.testing.assert_allclose(
            got[7 : 7 + m * ldc].reshape(m, ldc)[:, :n],
            alpha * product + beta * into,
            rtol=0,
            atol=100 * epsilon(dtype),
        )


LARGE = [(150, 300, 211), (300, 150, 1000), (150, 100, 160), (1030, 3, 400), (33, 47, 1024), (700, 20, 512)]


@pytest.mark.parametrize("dtype", FLOATS)
@in_groups(("sizes", "transposed"), itertools.product(LARGE, ORDERS), ids=str)
def test_large_products_add_to_what_the_output_had(
    sizes: tuple[int, int, int], transposed: tuple[bool, bool], dtype: str
) -> None:
    (m, n, k), (at, bt) = sizes, transposed
    a, b, c = random(dtype, m * k), random(dtype, k * n, 1), random(dtype, m * (n + 3), 2)
    left = a.reshape(k, m).T if at else a.reshape(m, k)
    right = b.reshape(n, k).T if bt else b.reshape(k, n)
    want = c.reshape(m, n + 3).astype("f8")
    want[:, :n] = left.astype("f8") @ right.astype("f8") - want[:, :n] / 2
    numbers = np.array([0, m if at else k, 0, k if bt else n, 0, n + 3, m, n, k])
    compiled(PRODUCT, dtype)(a, b, c, numbers, np.array(transposed), np.array([1.0, -0.5], dtype))
    np.testing.assert_allclose(c.reshape(m, n + 3), want, rtol=0, atol=100 * np.sqrt(k) * epsilon(dtype))


def alone(a: Array, b: Array, transposed: tuple[bool, bool]) -> Array:
    """Return the product of two matrices, of which the transposed ones are stored by columns."""
    at, bt = transposed
    (m, k), n, dtype = a.shape, b.shape[1], a.dtype.str[1:]
    stored = [np.ravel(x.T if is_turned else x).copy() for x, is_turned in ((a, at), (b, bt))]
    numbers, out = np.array([0, m if at else k, 0, k if bt else n, 0, n, m, n, k]), np.empty(m * n, dtype)
    compiled(PRODUCT, dtype)(*stored, out, numbers, np.array(transposed), np.array([1.0, 0.0], dtype))
    return out.reshape(m, n)


@pytest.mark.skipif(not blas.multiplies_in_place(), reason="OpenBLAS copies the operands of every product here")
@in_groups(("sizes", "transposed"), itertools.product(LARGE, ORDERS), ids=str)
def test_large_products_round_as_their_parts_do(sizes: tuple[int, int, int], transposed: tuple[bool, bool]) -> None:
    """Unless they are whole: OpenBLAS adds the terms of a long sum in another order then."""
    (m, n, k), (at, bt) = sizes, transposed
    a, b = random("f8", m * k).reshape(m, k), random("f8", k * n, 1).reshape(k, n)
    found = alone(a, b, transposed)
    parts = np.empty((m, n))
    for i, j in itertools.product(range(0, m, 48), range(0, n, 16)):
        parts[i : i + 48, j : j + 16] = alone(a[i : i + 48], b[:, j : j + 16], transposed)
    is_divided = 48 * n * k <= 10**6 and k <= 512 and (at or not bt)
    if is_divided or k > 512:
        assert (np.mean(found == parts) > 0.9) == is_divided


def test_gemm_does_not_read_what_it_overwrites() -> None:
    a, b, c = np.eye(2).ravel(), np.arange(4.0), np.full(4, np.nan)
    source = "def program(a, b, c):\n    gemm(a, 0, 2, False, b, 0, 2, False, c, 0, 2, 2, 2, 2, f64(1.0), f64(0.0))\n"
    compile_source(source, "program", [np.dtype("f8")] * 3).call(a, b, c)
    np.testing.assert_array_equal(c, b)


def test_gemm_in_a_batch_loop_takes_offsets_at_run_time() -> None:
    source = """
def program(a, b, c):
    for i in range(0, 6):
        gemm(a, i * 6, 3, False, b, i * 12, 4, False, c, i * 8, 4, 2, 4, 3, f64(1.0), f64(0.0))
"""
    a, b, c = random("f8", 36), random("f8", 72), np.empty(48)
    compile_source(source, "program", [np.dtype("f8")] * 3).call(a, b, c)
    np.testing.assert_allclose(c.reshape(6, 2, 4), a.reshape(6, 2, 3) @ b.reshape(6, 3, 4), rtol=1e-13)


VECTOR_PRODUCT = """
def program(a, x, y, sizes, transposed, factors):
    gemv(a, 3, sizes[0], transposed[0], x, 4, 2, y, 5, sizes[1], sizes[2], factors[0], factors[1])
"""


@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
@in_groups(("sizes", "transposed"), itertools.product([(4, 3), (1, 5), (0, 3), (3, 0)], [False, True]), ids=str)
def test_gemv_multiplies_strided_vectors(sizes: tuple[int, int], transposed: bool, dtype: str) -> None:
    m, n = sizes
    rows, columns = (n, m) if transposed else (m, n)
    a, x, y = random(dtype, 3 + rows * (columns + 2)), random(dtype, 4 + 2 * n, 1), random(dtype, 5 + m, 2)
    for alpha, beta in ((1.0, 0.0), (2.0, -1.0)):
        numbers = np.array([columns + 2, m, n]), np.array([transposed]), np.array([alpha, beta], dtype)
        got, plain = y.copy(), y.copy()
        compiled(VECTOR_PRODUCT, dtype)(a, x, got, *numbers)
        run_plain(VECTOR_PRODUCT, a, x, plain, *numbers)
        np.testing.assert_allclose(got, plain, rtol=0, atol=100 * epsilon(dtype))
        matrix = a[3:].reshape(rows, columns + 2)[:, :columns]
        want = alpha * ((matrix.T if transposed else matrix) @ x[4::2]) + beta * y[5:]
        np.testing.assert_allclose(got[5:], want, rtol=0, atol=100 * epsilon(dtype))


def test_products_of_a_kernel_share_their_preparation():
    line = "    gemv(a, 0, 3, False, x, 0, 1, y, {place}, 3, 3, f64(1.0), f64(0.0))"

    def blocks(count: int) -> int:
        source = "\n".join(["def program(a, x, y):", *[line.format(place=3 * n) for n in range(count)]])
        kernel = parse_kernel(source, "program", [np.dtype("f8")] * 3)
        return sum(len(function.blocks) for function in module_of(kernel).functions)

    assert blocks(1) == blocks(5)


# ---- compilation -------------------------------------------------------------------------------------------------

WHOLE = """
def program(x, flags, w, total, y, t, count):
    whole, rest = f64(0.0), f64(0.0)
    for b in range(0, 1000, 256):
        part = f64(0.0)
        for i in range(b, min(b + 256, 1000)):
            v = sin(x[i])
            part = part + v * x[i]
            y[i] = select(flags[i], v, cos(v) * f64(3.0))
        whole, rest = compensated_add(whole, rest, part)
    total[0] = whole + rest
    gemm(w, 0, 100, False, x, 0, 100, True, t, 0, 10, 8, 10, 100, f64(1.0), f64(0.0))
    n = i64(0)
    while n < i64(1000) and not x[n] > f64(0.9):
        n = n + 1
    if n == 1000:
        count[0] = i32(-1)
    else:
        count[0] = i32(n)
"""


def test_a_whole_program_runs_the_same_compiled_and_as_plain_python() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.random(1000), rng.random(1000) > 0.5, rng.random(800)
    outputs = [(np.empty(1), np.empty(1000), np.empty(80), np.empty(1, np.int32)) for _ in range(2)]
    dtypes = [array.dtype for array in (*inputs, *outputs[0])]
    compile_source(WHOLE, "program", dtypes).call(*inputs, *outputs[0])
    run_plain(WHOLE, *inputs, *outputs[1])
    for native, plain in zip(*outputs, strict=True):
        np.testing.assert_allclose(native, plain, rtol=1e-14)
    assert outputs[0][3][0] == np.argmax(inputs[0] > 0.9)


PLAIN = {
    "f8": ["f32(a)", "i8(a)", "bool_(a)", "c64(a)", "select(a > b, a, b)", "strong_multiply(a, b)", "sin(a)", "erf(a)"],
    "c16": ["f32(a)", "c64(a)", "bool_(a)", "abs(a)", "make_complex(imag(a), real(a))", "strong_multiply(a, b)"],
    "i4": ["i32(a + b)", "u8(a)", "floor_divide(a, b)", "a // b", "a % b", "left_shift(a, b)", "f64(a) / f64(b)"],
}


@pytest.mark.parametrize("dtype", PLAIN)
def test_expressions_mean_the_same_compiled_and_plain(dtype: str) -> None:
    rng = np.random.default_rng(0)
    a, b = ((rng.standard_normal(50) * 5).astype(dtype) for _ in range(2))
    a[:2] = 0
    names = namespace()
    plain = [
        np.array([eval(expression, {**names, "a": x, "b": y}) for x, y in zip(a, b, strict=True)])
        for expression in PLAIN[dtype]
    ]
    found = run_native({e: want.dtype.str[1:] for e, want in zip(PLAIN[dtype], plain, strict=True)}, a, b)
    for got, want in zip(found, plain, strict=True):
        assert_same(got, want, 4.0)


def many_arrays(count: int) -> NativeFunction:
    """Return a loop over `count` arrays, which vectorises only if they are known not to overlap."""
    names = [f"a{k}" for k in range(count)]
    body = "".join(f"        a{k}[i] = a{k - 1}[i] * f64(1.5) + a{(k + 3) % count}[i]\n" for k in range(1, count))
    return compile_source(
        f"def program({', '.join(names)}):\n    for i in range(0, 4096):\n{body}", "program", [np.dtype("f8")] * count
    )


def has_wide_vectors(assembly: str) -> bool:
    return re.search(r"%[yz]mm|\bv\d+\.(2d|4s)", assembly) is not None  # ARM64 has no wider ones than these


@pytest.mark.skipif(not vector_math.available(), reason="the CPU has no wide vectors, or libmvec is not there")
def test_a_loop_over_many_arrays_vectorises() -> None:
    assert has_wide_vectors(many_arrays(12).asm())


@pytest.mark.skipif(not vector_math.available(), reason="the CPU has no wide vectors, or libmvec is not there")
def test_a_maximum_over_an_array_vectorises() -> None:
    source = """
def program(x, out):
    acc = x[0]
    for i in range(1, 4096):
        acc = maximum(acc, x[i])
    out[0] = acc
"""
    function = compile_source(source, "program", [np.dtype("f8")] * 2)
    assert has_wide_vectors(function.asm())
    assert "call nsz <" in function.llvm(), "which of two zeros is larger is not asked"
    x, out = np.random.default_rng(0).standard_normal(4096), np.empty(1)
    function.call(x, out)
    assert out[0] == x.max()
    x[1234] = np.nan
    function.call(x, out)
    assert np.isnan(out[0])


@pytest.mark.skipif(not vector_math.available(), reason="the CPU has no wide vectors, or libmvec is not there")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("extremum", "least"), [("maximum", "-inf"), ("minimum", "inf")])
def test_an_extremum_of_some_elements_vectorises(dtype: str, extremum: str, least: str) -> None:
    name = NAMES[dtype]
    source = f"""
def program(x, keeps, out):
    acc = {name}({least})
    for i in range(0, 4096):
        acc = {extremum}(acc, select(keeps[i], x[i], {name}({least})))
    out[0] = acc
"""
    function = compile_source(source, "program", [np.dtype(dtype), np.dtype(bool), np.dtype(dtype)])
    assert re.search(rf"call nsz <\d+ x \w+> @llvm.{extremum}", function.llvm())
    x, keeps = np.random.default_rng(0).standard_normal(4096).astype(dtype), np.arange(4096) % 3 > 0
    out = np.empty(1, dtype)
    x[3], x[7] = np.nan, -np.inf
    function.call(x, keeps, out)
    assert out[0] == getattr(np, extremum).reduce(x[keeps])
    x[4] = np.nan
    function.call(x, keeps, out)
    assert np.isnan(out[0])
    function.call(x, np.zeros(4096, bool), out)
    assert out[0] == float(least)


@pytest.mark.skipif(not vector_math.available(), reason="the CPU has no wide vectors, or libmvec is not there")
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [16, 24, 32])
@pytest.mark.parametrize("row", ["i", "rows[i]"])
def test_the_lanes_of_a_short_row_are_its_elements(dtype: str, size: int, row: str) -> None:
    """LLVM would unroll the inner loop, and take a column of eight rows by a gather."""
    name = NAMES[dtype]
    source = f"""
def program(x, rows, squares, largest, twice):
    for i in range(0, 4096):
        acc = {name}(0.0)
        for j in range(0, {size}):
            acc = accumulate(acc, x[{size} * {row} + j] * x[{size} * {row} + j])
            twice[{size} * (i - 0) + j] = {name}(2.0) * x[{size} * {row} + j]
        squares[i] = acc
        most = x[{size} * {row}]
        for j in range(0, {size}):
            most = maximum(most, x[{size} * {row} + j])
        largest[i] = most
"""
    number = np.dtype(dtype)
    function = compile_source(source, "program", [number, np.dtype("i8"), *[number] * 3])
    assembly = function.asm()
    assert has_wide_vectors(assembly)
    assert "gather" not in assembly
    assert "scatter" not in assembly
    x, rows = np.random.default_rng(0).standard_normal((4096, size)).astype(dtype), np.arange(4096)[::-1].copy()
    squares, largest, twice = np.empty(4096, dtype), np.empty(4096, dtype), np.empty((4096, size), dtype)
    function.call(x, rows, squares, largest, twice)
    x = x if row == "i" else x[::-1]
    np.testing.assert_allclose(squares, (x**2).sum(1), rtol=32 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(largest, x.max(1))
    np.testing.assert_array_equal(twice, 2 * x)


@pytest.mark.skipif(not vector_math.available(), reason="the CPU has no wide vectors, or libmvec is not there")
@pytest.mark.parametrize("index", ["4096 * j + i", "i + j"])
def test_the_lanes_of_a_sum_of_columns_are_the_columns(index: str) -> None:
    source = f"""
def program(x, out):
    for i in range(0, 4096):
        acc = f64(0.0)
        for j in range(0, 16):
            acc = accumulate(acc, x[{index}])
        out[i] = acc
"""
    function = compile_source(source, "program", [np.dtype("f8")] * 2)
    assert "llvm.loop.unroll.disable" not in str(module_of(function.kernel))
    assert has_wide_vectors(function.asm())


@pytest.mark.skipif(not vector_math.available(), reason="libmvec is not there")
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_fused_loop_with_functions_vectorises(dtype: str) -> None:
    name = NAMES[dtype]
    source = f"""
def program(x, y, out):
    acc = {name}(0.0)
    for i in range(0, 4096):
        v = exp(sin(x[i])) * x[i]
        y[i] = v + arctan(v) + power(v, x[i])
        acc = accumulate(acc, v)
    out[0] = acc
"""
    function = compile_source(source, "program", [np.dtype(dtype)] * 3)
    assembly = function.asm()
    assert has_wide_vectors(assembly)
    for symbol in ("sin", "atan", "pow"):
        assert any(
            f"_{symbol}{'f' if dtype == 'f4' else ''}\n" in line + "\n"
            for line in assembly.replace(",", "\n").splitlines()
            if "_ZGV" in line
        )
    assert "define" in function.llvm()
    assert function.kernel.name == "program"


@pytest.mark.skipif(not vector_math.available(), reason="libmvec is not there")
def test_vectors_on_the_stack_are_within_lines() -> None:
    """What a loop keeps while it calls a function is stored there in each iteration, and loaded."""
    source = """
def program(x, out):
    acc = f64(0.0)
    for i in range(0, 4096):
        acc = accumulate(acc, tanh(x[i]))
    out[0] = acc
"""
    kept = re.findall(
        r"(vmov\w+)\s+%[yz]mm\d+, -?\d*\(%rsp\)", compile_source(source, "program", [np.dtype("f8")] * 2).asm()
    )
    assert set(kept) <= {"vmovaps", "vmovapd"}


NESTED = """for j in range(0, 16):
            for k in range(0, 64):
                out[1024 * i + 64 * j + k] = acc * y[16 * i + j]"""


@pytest.mark.skipif(not vector_math.available(), reason="libmvec is not there")
@pytest.mark.parametrize("rest", ["out[i] = acc", NESTED])
def test_functions_in_short_loops_vectorise(rest: str) -> None:
    """LLVM unrolls such a loop, and then vectorises the one around it, unless that has more in it."""
    source = f"""
def program(x, y, out):
    for i in range(0, 1000):
        acc = f64(0.0)
        for j in range(0, 16):
            v = sin(x[16 * i + j])
            y[16 * i + j] = v
            acc = accumulate(acc, v)
        {rest}
"""
    function = compile_source(source, "program", [np.dtype("f8")] * 3)
    assert "_ZGV" in function.asm()
    x, y, out = np.random.default_rng(0).standard_normal((1000, 16)), np.empty((1000, 16)), np.empty(1024000)
    function.call(x, y, out)
    np.testing.assert_allclose(y, np.sin(x), rtol=1e-14)
    sums = np.sin(x).sum(axis=1)
    expected = sums if rest == "out[i] = acc" else np.repeat(sums[:, None] * y, 64)
    np.testing.assert_allclose(out[: expected.size], expected.ravel(), rtol=1e-12, atol=1e-14)


SUMMED = ("acc = accumulate(acc, f64(sin(x[i])))", True)
MULTIPLIED = ("acc = acc * f64(sin(x[i]))", False)
BOTH = (f"{SUMMED[0]}; product = product * x[i]", False)


@pytest.mark.skipif("avx2" not in vector_math.describe(), reason="no functions of eight numbers")
@pytest.mark.parametrize(("step", "is_wide"), [SUMMED, MULTIPLIED, BOTH])
def test_a_sum_of_doubles_does_not_narrow_functions_of_single_precision(step: str, is_wide: bool) -> None:
    """LLVM would take half as many at a time; but told to take all, it would change the order of a product."""
    steps = "\n        ".join(step.split("; "))
    source = f"""
def program(x, out):
    acc = f64(1.0)
    product = f32(1.0)
    for i in range(0, 3008):
        {steps}
    out[0] = acc
    out[1] = f64(product)
"""
    function = compile_source(source, "program", [np.dtype("f4"), np.dtype("f8")])
    assert (f"N{vector_math.widest_bytes() // 4}v_sinf" in function.asm()) == is_wide
    x, out = np.sin(np.arange(3008, dtype="f4")), np.empty(2)
    function.call(x, out)
    values = np.sin(x).astype("f8")
    expected = 1 + np.sum(values) if "accumulate" in step else np.prod(values)
    np.testing.assert_allclose(out[0], expected, rtol=1e-4)


@pytest.mark.skipif("avx2" not in vector_math.describe(), reason="no functions of eight numbers")
def test_no_more_is_left_over_by_the_widest_vectors_than_by_half() -> None:
    """What is left over runs one by one."""
    source = """
def program(x, out):
    acc = f64(0.0)
    for i in range(1000):
        acc = accumulate(acc, f64(sin(x[i])))
    out[0] = acc
"""
    asm = compile_source(source, "program", [np.dtype("f4"), np.dtype("f8")]).asm()
    assert "N8v_sinf" in asm
    assert "N16v_sinf" not in asm


@pytest.mark.skipif("avx2" not in vector_math.describe(), reason="no vectors of four numbers")
def test_vectors_go_along_the_loop_within_one_over_a_span() -> None:
    """LLVM would unroll it, and make vectors of iterations that hardly ever run together."""
    source = """
def program(x, first, last, out):
    for i in range(200):
        for j in span(first[i], last[i]):
            for d in range(16):
                out[16 * j + d] = out[16 * j + d] + x[16 * i + d]
"""
    function = compile_source(source, "program", [np.dtype(d) for d in ("f8", "i8", "i8", "f8")])
    assert re.search(r"fadd[ a-z]* <\d+ x double>", function.llvm())
    assert "gather" not in function.llvm()
    x, out = np.random.default_rng(0).standard_normal((200, 16)), np.zeros((7, 16))
    first = np.arange(200) % 7
    last = np.where(np.arange(200) % 5, first + 1, 7)
    function.call(x, first, last, out)
    inside = (first[:, None] <= np.arange(7)) & (np.arange(7) < last[:, None])
    np.testing.assert_allclose(out, inside.T @ x, rtol=1e-12, atol=1e-14)


@pytest.mark.skipif("avx2" not in vector_math.describe(), reason="no functions of eight numbers")
def test_vectors_are_as_wide_as_preferred() -> None:
    function = compile_source(elementwise(["a + a"], 1, 4000), "program", [np.dtype("f4")] * 2)
    assert {int(n) for n in re.findall(r"<(\d+) x float>", function.llvm())} == {vector_math.preferred_bytes() // 4}


@pytest.mark.skipif("avx2" not in vector_math.describe(), reason="no functions of eight numbers")
@pytest.mark.parametrize(("dtype", "count", "lanes"), [("f4", 4000, 4), ("f8", 4000, 8), ("f4", 7, 0), ("f8", 3, 0)])
def test_loops_of_functions_take_the_widest_vectors(dtype: str, count: int, lanes: int) -> None:
    """LLVM chooses the lanes of loops that have fewer iterations."""
    kernel = parse_kernel(elementwise(["tanh(a)"], 1, count), "program", [np.dtype(dtype)] * 2)
    widths = re.findall(r'"llvm.loop.vectorize.width", i32 (\d+)', str(module_of(kernel)))
    assert widths == ([str(vector_math.widest_bytes() // lanes)] if lanes else [])


@pytest.mark.skipif(vector_math.widest_bytes() < 64, reason="no masks of eight doubles")
@pytest.mark.parametrize(
    ("dtype", "count", "is_masked"),
    [
        *[("f8", count, True) for count in (14, 22, 100)],
        *[("f8", count, False) for count in (12, 17, 20)],
        *[("f4", count, True) for count in (22, 127)],
        *[("f4", count, False) for count in (18, 24, 143)],
    ],
)
def test_functions_of_what_is_left_over_run_under_a_mask(dtype: str, count: int, is_masked: bool) -> None:
    """One or two left over, and whole vectors of half the lanes, take no mask."""
    source = f"""
def program(x, y, out):
    for i in range(200):
        acc = {dtype.replace("f4", "f32").replace("f8", "f64")}(0.0)
        for j in range({count}):
            value = tanh(x[{count} * i + j] + y[j])
            y[j] = value
            acc = accumulate(acc, value)
        out[i] = acc
"""
    function = compile_source(source, "program", [np.dtype(dtype)] * 3)
    assert ("masked.store" in function.llvm()) == is_masked
    x, y = np.random.default_rng(0).standard_normal((200, count)).astype(dtype), np.ones(count, dtype)
    out, wanted, state = np.zeros(200, dtype), np.zeros(200), np.ones(count)
    function.call(x, y, out)
    for i, row in enumerate(x):
        state = np.tanh(row + state)
        wanted[i] = np.sum(state)
    np.testing.assert_allclose(y, state, atol=1e-14 if dtype == "f8" else 1e-6)
    np.testing.assert_allclose(out, wanted, atol=1e-12 if dtype == "f8" else 1e-4)


WITHOUT_VECTOR_FUNCTIONS = """
import llvmlite.binding as llvm
import numpy as np
import fnad

def load(name, load_any=llvm.load_library_permanently):
    if "mvec" in name:
        raise RuntimeError(name)
    load_any(name)

llvm.load_library_permanently = load
f = fnad.jit(lambda a, b: np.exp(a) + a**b)
a, b = np.linspace(0.1, 3, 100), np.linspace(-2, 2, 100)
print("_ZGV" in f.lower(a, b).as_text("asm"))
with fnad.config.override(executor="compiled"):
    np.testing.assert_allclose(f(a, b), np.exp(a) + a**b, rtol=1e-14)
"""


def test_without_vector_functions_calls_are_scalar_and_right() -> None:
    """As on a system without libmvec."""
    command = [sys.executable, "-c", WITHOUT_VECTOR_FUNCTIONS]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"


def test_compilation_is_thread_safe() -> None:
    results: list[float] = []

    def work(k: int) -> None:
        out = np.empty(1)
        compile_source(f"def program(out):\n    out[0] = exp(f64({k}.0))\n", "program", [np.dtype("f8")]).call(out)
        results.append(float(np.log(out[0])))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose(sorted(results), range(8), atol=1e-12)


def test_a_function_outlives_what_made_it() -> None:
    call = compile_source("def program(out):\n    out[0] = f64(3.0)\n", "program", [np.dtype("f8")]).call
    out = np.zeros(1)
    call(out)
    assert out[0] == 3


def test_small_products_take_one_thread_and_give_back_the_others() -> None:
    library = ctypes.CDLL(blas.cython_module("cython_blas").__file__)
    threads = getattr(library, "scipy_openblas_get_num_threads", None)
    if threads is None:
        pytest.skip("not SciPy's own OpenBLAS")
    before = threads()
    library.scipy_openblas_set_num_threads(2)
    shape = {
        "ao": 0,
        "lda": 90,
        "at": False,
        "bo": 0,
        "ldb": 90,
        "bt": False,
        "co": 0,
        "ldc": 90,
        "m": 90,
        "n": 90,
        "k": 90,
    }
    source = GEMM.format(**shape, name="f64", alpha=1, beta=0)
    multiply = compile_source(source, "program", [np.dtype("f8")] * 3)
    a, b = random("f8", 8100), random("f8", 8100, 1)
    seen = threading.Event()

    def work(out: np.ndarray[Any, Any]) -> None:
        for _ in range(1_000_000):
            multiply.call(a, b, out)
            if seen.is_set():
                return

    workers = [threading.Thread(target=work, args=(np.empty(8100),)) for _ in range(2)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        if threads() == 1:
            seen.set()
    assert seen.is_set()
    assert threads() == 2
    library.scipy_openblas_set_num_threads(before)


def test_a_short_loop_is_not_unrolled_into_long_code() -> None:
    """It has 1,036 lines, at the third level of LLVM 1,356, where it takes more time to compile and is no faster."""

    def layer(w: Any, x: Any) -> Any:
        y = np.arctan(w @ x)
        return y * np.sin(y) + np.cos(y**2)

    w, x = np.ones((1000, 10)), np.ones(10)
    assembly = fnad.jit(fnad.jacobian(layer, 1)).lower(w, x).as_text("asm")
    assert 200 < len(assembly.splitlines()) < 1050


FAULTS = """
def program(cotangents, partials, places, out, status):
    for i in range({size}):
        place = places[i]
        if place < 0:
            status[{index}] = i64(1)
            place = i64(0)
        a = cotangents[place]
        out[i] = strong_multiply(a, partials[i]) + strong_multiply(a, partials[place])
"""
"""Two strong products of one cotangent in a loop that LLVM does not vectorise, since a branch stores a fault."""


@pytest.mark.parametrize("dtype", [*FLOATS, "c16"])
def test_strong_products_beside_a_fault_are_those_of_numpy(dtype: str) -> None:
    cotangents, partials = pairs(dtype)
    size, kind = cotangents.size, np.dtype(dtype)
    places, out, expected = np.arange(size), np.empty(size, dtype), np.empty(size, dtype)
    source = FAULTS.format(size=size, index=0)
    dtypes = [kind, kind, np.dtype("i8"), kind, np.dtype("i8")]
    compile_source(source, "program", dtypes).call(cotangents, partials, places, out, np.zeros(4, "i8"))
    run_plain(source, cotangents, partials, places, expected, np.zeros(4, "i8"))
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(np.signbit(out.real[out == 0]), np.signbit(expected.real[out == 0]))


@pytest.mark.parametrize(("index", "is_mask"), [("0", True), ("i", False)])
def test_strong_products_are_masks_where_no_loop_is_vectorised(index: str, is_mask: bool) -> None:
    """LLVM writes a branch for each of several selects by one comparison."""
    dtypes = [np.dtype(d) for d in ("f8", "f8", "i8", "f8", "i8")]
    compiled = compile_source(FAULTS.format(size=1000, index=index), "program", dtypes)
    assert ("<2 x double>" in str(module_of(compiled.kernel))) == is_mask


LOOPS = {
    "a place before": ("v = exp(y[i])\ny[i + 1] = v", False),
    "two places": ("v = exp(x[i])\ny[i] = v\ny[i + 3] = v", False),
    "two places, as far apart as an argument says": ("v = exp(x[i])\ny[i] = v\ny[i + m] = v", False),
    "a place that is stored again": ("v = exp(x[i])\ny[i] = v\ny[m] = v", False),
    "what another iteration stores": ("v = exp(y[m])\ny[i] = v", False),
    "one place": ("v = exp(x[i])\ny[m] = exp(y[m]) * v", False),
    "places from a table": ("v = exp(y[j[i]])\ny[i] = v", False),
    "places that come again": ("v = exp(y[i % m])\ny[i] = v", False),
    "a chain of places": ("v = exp(y[i + m])\ny[i] = v\ny[i + 3 * m] = y[i + m * m]", False),
    "the same place": ("v = exp(x[i] + y[i])\ny[i] = v", True),
    "one store": ("v = exp(x[i])\ny[2 * i + m] = v", True),
    "a neighbour loaded behind a store": ("w = exp(x[i])\ny[i] = w\nv = w * x[i + 1]", True),
    "a neighbour loaded behind a store of it": ("w = x[i + 1]\nx[i] = exp(w)\nv = w * x[i]", False),
    "neighbours loaded before a store": ("v = exp(x[i]) * x[i + 1]\ny[i] = v", True),
    "no store": ("v = exp(x[i] + x[i + 1])", True),
    "arithmetic": ("v = (x[i] * x[i + 1] - y[i]) * (x[i] + y[i])", True),
    "arithmetic on places that come again": ("v = (x[i] * x[i + 1] - y[j[i]]) * (x[i] + y[i])\ny[i] = v", False),
}


@pytest.mark.parametrize("numbers", ["k[0], k[1]", "1000, 7"])
@pytest.mark.parametrize("name", LOOPS)
def test_llvm_prints_nothing_on_loops_that_it_cannot_vectorise(
    name: str, numbers: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A sum of doubles over singles says how many lanes there are, unless iterations depend on each other."""
    body, is_apart = LOOPS[name]
    n, m = numbers.split(", ")
    lines = [f"        {line}" for line in body.splitlines()]
    source = "\n".join(
        ["def program(x, y, k, j, out):", f"    m = {m}", "    a = f64(0.0)", f"    for i in range({n}):", *lines,
         "        a = accumulate(a, f64(v))", "    out[0] = a", ""]
    )  # fmt: skip
    compiled = compile_source(source, "program", [np.dtype(d) for d in ("f4", "f4", "i8", "i8", "f8")])
    assert capfd.readouterr().err == ""
    assert ("llvm.loop.vectorize.width" in str(module_of(compiled.kernel))) == is_apart


@pytest.mark.parametrize(
    "body",
    [
        "w = x[i] * 3.0\ny[i] = w\nv = w * x[i + 1]\nz[i] = v",
        "w = x[i] * 3.0\ny[i] = a\na = a + w * x[i + 1]\nz[i] = a",
        "w = x[i] * 3.0\nx[i + 1] = w\nv = x[i + 1] * 2.0\nz[i] = v",
        "w = x[i] * 3.0\ny[i] = w + x[i + 1]\nz[i] = y[i] + x[i + 1]",
        "w = x[i] * 3.0\ny[0] = w\ny[0] = y[0] * x[i + 1]\nv = y[0] + x[i + 2]\nz[i] = v",
        "w = x[i] * 3.0\ny[i] = w\nif i < 4:\n    z[i] = x[i + 1]",
    ],
)
def test_stores_before_loads_of_neighbours_store_what_python_stores(body: str) -> None:
    """They are put behind the loads, unless what is loaded or computed there would be another value."""
    lines = [f"        {line}" for line in body.splitlines()]
    source = "\n".join(["def program(x, y, z):", "    a = 0.5", "    for i in range(40):", *lines, ""])
    ours, pythons = ([np.cos(np.arange(42.0) + n) for n in range(3)] for _ in range(2))
    compile_source(source, "program", [np.dtype("f8")] * 3).call(*ours)
    scope: dict[str, Any] = {}
    exec(source, scope)
    scope["program"](*pythons)
    np.testing.assert_allclose(ours, pythons, rtol=1e-14)


WORK = {
    "x[i]": False,
    "x[i] * x[i]": False,
    "(x[i] * x[i + 1] - y[i]) * x[i]": True,
    "f32(f64(x[i]) * f64(y[i]))": False,
}


@pytest.mark.parametrize("term", WORK)
def test_much_work_in_single_precision_fills_vectors(term: str) -> None:
    """A short sum of doubles keeps the lanes that it has room for."""
    source = f"""
def program(x, y, out):
    a = f64(0.0)
    for i in range(1000):
        a = accumulate(a, f64({term}))
    out[0] = a
"""
    text = str(module_of(parse_kernel(source, "program", [np.dtype(d) for d in ("f4", "f4", "f8")])))
    assert ("llvm.loop.vectorize.width" in text) == WORK[term]


@pytest.mark.parametrize("wide", [True, False])
def test_sums_in_single_precision_beside_a_wide_one_fill_vectors(wide: bool, capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM chooses the lanes where all sums are in single precision."""
    kind = "f64" if wide else "f32"
    source = f"""
def program(x, y, out):
    a = {kind}(0.0)
    b = f32(0.0)
    for i in range(1000):
        v = (x[i] * x[i + 1] - y[i]) * x[i]
        a = accumulate(a, {kind}(v))
        b = accumulate(b, v * y[i])
    out[0] = f64(a)
    out[1] = f64(b)
"""
    compiled = compile_source(source, "program", [np.dtype(d) for d in ("f4", "f4", "f8")])
    assert ("llvm.loop.vectorize.width" in str(module_of(compiled.kernel))) == wide
    rng, out = np.random.default_rng(0), np.empty(2)
    x, y = (rng.uniform(1, 2, size).astype("f4") for size in (1001, 1000))
    compiled.call(x, y, out)
    v = (x[:-1].astype("f8") * x[1:] - y) * x[:-1]
    np.testing.assert_allclose(out, [v.sum(), (v * y).sum()], rtol=1e-4)
    assert capfd.readouterr().err == ""


OF_ZEROS: dict[str, Callable[..., Any]] = {
    "minimum": lambda x: np.minimum(1.0, 0.0 + x),
    "maximum": lambda x: np.maximum(x - -0.0, -1.0),
    "a difference": lambda x: np.minimum(1.0, 0.0 - x),
    "a choice": lambda x: np.minimum(1.0, np.where(x < 0.5, 0.0 + x, 2.0)),
    "between": lambda x: np.clip(0.0 + x, -1.0, 1.0),
    "nested": lambda x: np.minimum(np.minimum(0.0 + x, 1.0), 2.0) * 1.0,
    "over an axis": lambda x: np.max(0.0 + x),
}


@pytest.mark.parametrize("shape", [(), (5,)])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OF_ZEROS)
def test_an_extremum_leaves_the_sum_with_a_zero_its_sign(name: str, dtype: str, shape: Any) -> None:
    f, x = OF_ZEROS[name], np.full(shape, -0.0, dtype)
    with fnad.config.override(executor="compiled"):
        np.testing.assert_array_equal(np.signbit(fnad.jit(f)(x)), np.signbit(f(x)))


def test_any_byte_but_zero_is_true() -> None:
    """A view of bytes as booleans has any byte; LLVM takes the lowest bits of neighbours that lie apart one by one."""
    source = """
def program(chosen, x, out):
    for i in range(100):
        out[2 * i] = select(chosen[2 * i], x[i], f64(0.0))
        out[2 * i + 1] = select(chosen[2 * i + 1], x[i], f64(-1.0))
"""
    function = compile_source(source, "program", [np.dtype(d) for d in ("?", "f8", "f8")])
    assert "pextrb" not in function.asm()
    chosen, x, out = (np.arange(200) % 5).astype("u1").view("?"), np.arange(100.0), np.zeros(200)
    function.call(chosen, x, out)
    np.testing.assert_array_equal(out, np.where(np.arange(200) % 5, np.repeat(x, 2), np.tile([0.0, -1.0], 100)))
    np.testing.assert_array_equal(fnad.jit(lambda b: np.sum(b))(chosen), 160)

"""Primitives at extreme operands of every dtype: compiled code computes the numbers of the interpreter.

Operands are limits of the dtype, subnormal numbers, infinities and nan, and numbers around which formulas change; of
functions of matrices, numbers of very different sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.linalg

import fnad
from fnad.backends.cpu.executor import compile_program
from fnad.errors import FnadError
from fnad.ir.axes import Elementwise, Stacked
from fnad.ir.builder import trace
from fnad.ir.primitive import Bilinear, Scalar
from fnad.ir.types import Aval, is_inexact
from tests.catalogue.cases import CASES, Case, by_primitives, one_of_each_kind, over, some
from tests.together import together

Array = np.ndarray[Any, Any]

MOST, FEW = 4000, 400
"""The most operands of a case, drawn from all combinations: all pairs of real numbers, and some of complex ones."""

ULPS = 8
"""The distance of two functions, each with an error of its own."""

FURTHER = {
    ("weighted_exp", "f"): 800.0,
    ("pow", "c"): 800.0,
    ("boxcox", "f"): 1500.0,
    ("boxcox1p", "f"): 1500.0,
    ("gamma_slope", "f"): 1500.0,
    ("gammainc_a", "f"): 1e5,
    ("logaddexp", "f"): 64.0,
    ("kl_div", "f"): 128.0,
    ("poch", "f"): 1e6,
    ("betaln", "f"): 1e7,
}
"""The distance of functions that round an exponent, whose error is multiplied by its size, or whose terms cancel.

The last two are SciPy's, which the interpreter takes; compiled code is compared with mpmath in `test_special.py`.
"""

EITHER_ZERO = frozenset(("minimum", "maximum", "fmin", "fmax", "gammainc_a"))
"""Functions that return either zero: of zeros of both signs, as in NumPy, or where a slope underflows."""

UNDERFLOWING = frozenset(("gammainc_a",))
"""Functions whose interpreted results are zero at some pairs where compiled ones are subnormal; few are drawn."""

OF_SCIPY = frozenset(("erf", "erfc", "erfcx", "ndtr", "log_ndtr", "zeta"))
"""Functions that the interpreter takes from SciPy, which is less accurate than compiled code."""

REFUSING = frozenset(("pbd", "pbd_slope", "pbv", "pbv_slope"))
"""Functions of SciPy that raise for an infinite order."""

OF_SOFTMAX = frozenset(("exp_high", "exp_low", "muladd"))
"""Operations that a softmax applies to numbers up to 0, or to products that are finite."""

LARGEST_OF_SCIPY, MOST_OF_SCIPY = 709.0, 120

MAGNITUDES = (
    *(0.0, 1e-30, 1e-3, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.9, 20.0),
    *(88.5, 103.0, 170.5, 709.0, 745.0, 1e3, 2.0**31, 1e19),
)


def limits(dtype: np.dtype[Any]) -> Array:
    """Return the extreme numbers of a dtype."""
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        found = [0, 1, 2, 3, 7, 31, 32, 63, 64, most, most - 1, most // 2, most // 2 + 1]
        found += [-1, -2, -3, -64, least, least + 1]
        return np.array([x for x in dict.fromkeys(found) if least <= x <= most], dtype)
    part = np.zeros(0, dtype).real.dtype
    info = np.finfo(part)
    ends = (info.smallest_subnormal, info.tiny, info.eps / 3, 1 - info.eps, 1 + info.eps, info.max / 2, info.max)
    found = np.array([*MAGNITUDES, *map(float, ends), float(info.max) ** 0.5], part)
    if dtype.kind == "c":  # products of the largest numbers overflow in one part, or not, by their rounding
        found = np.concatenate([found[:-8:3], found[-8:-3], found[-1:]])
        return np.array([complex(x, y) for x, y in product([*found, *-found], repeat=2)], dtype)
    return np.concatenate([found, -found, np.array([np.inf, -np.inf, np.nan], part)])


def moderate(dtype: np.dtype[Any]) -> Array:
    """Return numbers for functions of SciPy, whose time grows with integers and orders."""
    if dtype.kind in "biu":
        return np.array([0, 1, 2, 3, 7, 31]).astype(dtype)
    part = np.zeros(0, dtype).real.dtype
    info, large = np.finfo(part), np.array([np.inf, np.nan], part)
    found = np.array([x for x in MAGNITUDES if x <= LARGEST_OF_SCIPY], part)
    if dtype.kind == "c":
        found = np.concatenate([found[::2], large])
        return np.array([complex(x, y) for x, y in product([*found, *-found], repeat=2)], dtype)
    ends = np.array([info.smallest_subnormal, info.tiny, info.eps / 3, 1 - info.eps, 1 + info.eps], part)
    return np.concatenate([found, ends, -found, -ends, large, -large[:1]])


def drawn(case: Case, numbers: Callable[[np.dtype[Any]], Array], most: int) -> list[Array]:
    """Return operands of a case: all combinations of numbers, or some of them."""
    columns = [numbers(aval.dtype) for aval in case.avals]
    if case.primitive.name in UNDERFLOWING or any(aval.dtype.kind == "c" for aval in case.avals):
        most = min(most, FEW)
    count = int(np.prod([column.size for column in columns]))
    rng = np.random.default_rng(case.number)
    chosen = np.arange(count) if count <= most else rng.integers(0, count, most)
    places = np.unravel_index(chosen, [column.size for column in columns])
    return [column[place] for column, place in zip(columns, places, strict=True)]


def distances(found: Array, expected: Array) -> Array:
    """Return the distances in units in the last place, of complex numbers in that of the magnitude."""
    if expected.dtype.kind in "biu":
        return np.where(found == expected, 0.0, np.inf)
    with np.errstate(all="ignore"):
        size = np.abs(expected)
        info = np.finfo(size.dtype)
        unit = np.spacing(np.clip(size, info.tiny, info.max / 2))
        units = np.abs(found - expected) / unit
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    if expected.dtype.kind == "c":
        either = np.isfinite(found) & np.isfinite(expected)
        return np.where(either, units, np.where(np.isfinite(found) == np.isfinite(expected), 0.0, np.inf))
    return np.where(same, 0.0, np.where(np.isfinite(units), units, np.inf))


def is_elementwise(case: Case) -> bool:
    is_run = case.operands and not case.sample.regions and case.primitive.name not in OF_SCIPY | REFUSING | OF_SOFTMAX
    return bool(is_run) and isinstance(case.primitive.axes, Elementwise)


def is_of_numpy(case: Case) -> bool:
    """True for elementwise primitives by functions of NumPy or formulas; others call SciPy or Python."""
    lower = case.primitive.lower
    return is_elementwise(case) and isinstance(lower, Scalar) and "scipy_" not in str(lower.template)


def distinct(is_swept: Callable[[Case], bool]) -> list[Case]:
    """Return cases, one for each primitive, dtypes and parameters."""
    found: dict[Any, Case] = {}
    for case in filter(is_swept, CASES):
        found.setdefault((case.primitive.name, tuple(a.dtype for a in case.avals), repr(case.sample.params)), case)
    return list(found.values())


def check_extremes(cases: list[Case], numbers: Callable[[np.dtype[Any]], Array] = limits, most: int = MOST) -> None:
    """Compile the cases of some primitives as one program, and compare each."""
    operands = [drawn(case, numbers, most) for case in cases]
    flat = [x for xs in operands for x in xs]

    def applied(*inputs: Any) -> list[Any]:
        left = iter(inputs)
        return [result for case in cases for result in case.applied([next(left) for _ in case.operands])]

    results = iter(compile_program(trace(applied, *[Aval(x.dtype, x.shape) for x in flat]))(flat))
    with together() as check:
        for case, xs in zip(cases, operands, strict=True):
            expected = case.evaluate(*xs)
            for right in expected if isinstance(expected, tuple) else (expected,):
                found = next(results)
                with check(case):
                    check_numbers(case, xs, found, right)
    assert not list(results)


def check_numbers(case: Case, operands: list[Array], found: Array, right: Array) -> None:
    assert found.dtype == right.dtype
    units = distances(found, right)
    name = case.primitive.name
    if found.dtype.kind == "f" and is_of_numpy(case) and name not in EITHER_ZERO:
        units[(found == 0) & (right == 0) & (np.signbit(found) != np.signbit(right))] = np.inf
    worst = int(np.argmax(units))
    allowed = FURTHER.get((name, found.dtype.kind), ULPS)
    assert units[worst] <= allowed, ([x[worst] for x in operands], found[worst], right[worst])


# ---- what is not elementwise ----------------------------------------------------------------------------------------

POOLS = {
    "special": (0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 5e-324, 1e-45, -1e-40, 1e-7, np.inf, -np.inf, np.nan),
    "finite": (0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 5e-324, 1e-45, -1e-40, 1e-7),
    "scaled": (1e-30, 1e30, -1.0, 2.0, 3e-5, 7e8, -1e12),
}
"""Elements of arrays. Sums of the largest numbers overflow, or not, by their order; so these are not among them."""

SIZE_OF_SUMS = 256
"""The distance of sums in another order, in units of the largest term."""

SIZE_OF_RESIDUALS = 16
"""The distance of a matrix from its decomposition, in units of the largest element times the size."""

SYSTEMS = ("solve", "inv", "inv_or_nan")

OFF_BY_THE_CONDITION = ("lstsq", "pinv", "logm", "logm_frechet", "signm", "expm", "expm_frechet")
ROUNDED_OTHERWISE = frozenset(
    {
        *("qr", "qr_r", "lu", "revealing_lu"),  # the order of rows and the signs follow from what rounding leaves
        *("eig", "eigh", "eigvalsh", "svd", "svdvals", "cofactor"),  # NumPy computes in double
        *("solve_triangular", *SYSTEMS),  # short ones are computed by formulas
        *("solve_continuous_are", "solve_discrete_are", *OFF_BY_THE_CONDITION),
    }
)
"""Functions of matrices that no two programs compute alike if the elements are of such sizes.

Decompositions are compared by what they are made of, and others for matrices that are scaled as a whole; not so
logarithms, as SciPy takes pivots below 1e-20 for 1e-20.
"""

RUN_BY_PYTHON = frozenset({"callback", "external", "guard", "integral", "ode", "implicit", "directions"})


def is_of_arrays(case: Case) -> bool:
    """True for primitives without regions that are not elementwise."""
    is_plain = case.operands and not case.sample.regions and not isinstance(case.primitive.axes, Elementwise)
    return bool(is_plain) and case.primitive.name not in ROUNDED_OTHERWISE | RUN_BY_PYTHON


OF_ARRAYS = some(distinct(is_of_arrays), 2)


def filled(case: Case, pool: str, rng: np.random.Generator) -> list[Array]:
    """Return the operands of a case, floating-point ones with elements of a pool; others are places and sizes."""

    def array(operand: Any) -> Any:
        x = np.asarray(operand)
        if not is_inexact(x.dtype):
            return x
        numbers = np.array(POOLS[pool])
        if pool == "scaled" and x.real.itemsize == 4:  # squares are numbers, too
            numbers = np.sign(numbers) * np.abs(numbers) ** 0.25
        parts = [rng.choice(numbers, x.shape) for _ in range(1 + (x.dtype.kind == "c"))]
        found = np.empty(x.shape, x.dtype)
        found.real[...] = parts[0]
        if x.dtype.kind == "c":
            found.imag[...] = parts[1]
        return found

    with np.errstate(all="ignore"):
        operands = list(map(array, case.operands))
    if case.primitive.name == "searchsorted":
        operands[0].sort()
    return operands


def assert_alike(found: Array, right: Array, size: float) -> None:
    assert (found.dtype, found.shape) == (right.dtype, right.shape)
    if right.dtype.kind in "biu":
        np.testing.assert_array_equal(found, right)
        return
    np.testing.assert_array_equal(np.isnan(found), np.isnan(right))
    is_finite = np.isfinite(right)
    np.testing.assert_array_equal(np.isfinite(found), is_finite)
    if right.dtype.kind == "f":
        np.testing.assert_array_equal(found[~is_finite], right[~is_finite])
    units = np.finfo(right.dtype).eps * np.maximum(np.abs(right[is_finite]), size)
    assert np.all(np.abs(found[is_finite] - right[is_finite]) <= SIZE_OF_SUMS * units)


def size_of_terms(case: Case, operands: list[Array]) -> float:
    """Return the size of the terms of a sum: the largest elements, multiplied where they are factors."""
    largest = [float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0)) for x in operands if is_inexact(x.dtype)]
    is_product = isinstance(case.primitive.derivative, Bilinear)
    return float(np.prod(largest)) if is_product else max(largest, default=0.0)


def outcome(call: Callable[[], Any]) -> Any:
    """Return the results of a call, or the class of its error."""
    try:
        results = call()
    except FnadError as error:
        return type(error)
    return results if isinstance(results, (tuple, list)) else (results,)


def check_arrays(case: Case) -> None:
    run = compile_program(trace(lambda *inputs: case.applied(inputs), *case.avals, name=case.primitive.name))
    rng = np.random.default_rng(case.number)
    of_matrices = isinstance(case.primitive.axes, Stacked)
    for pool in ("scaled",) * 2 if of_matrices else ("special", "finite"):
        operands = filled(case, pool, rng)
        expected, results = outcome(lambda: case.evaluate(*operands)), outcome(lambda: run(operands))  # noqa: B023
        if isinstance(expected, type):
            assert results is expected, operands
            continue
        for found, right in zip(results, expected, strict=True):
            if case.primitive.name == "irfft":  # which adds and subtracts an infinite element
                right = np.where(np.isfinite(found), right, found)  # noqa: PLW2901
            assert_alike(np.asarray(found), np.asarray(right), size_of_terms(case, operands))


@pytest.mark.slow
@by_primitives(one_of_each_kind(distinct(is_of_numpy)))
def test_primitives_compile_to_the_interpreters_extreme_values(cases: list[Case]) -> None:
    check_extremes(cases)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@by_primitives(one_of_each_kind(case for case in distinct(is_elementwise) if not is_of_numpy(case)))
def test_extreme_operands_of_functions_of_scipy(cases: list[Case]) -> None:
    check_extremes(cases, moderate, MOST_OF_SCIPY)


# ---- exponentials of matrices with elements of different sizes -------------------------------------------------------


def diagonal(*numbers: float) -> Array:
    return np.diag(np.array(numbers))


def between(x: float, y: float) -> float:
    """Return the divided difference of the exponential."""
    return float(mpmath.mpf(1) * (mpmath.exp(x) - mpmath.exp(y)) / (mpmath.mpf(x) - mpmath.mpf(y)))


def exponential(matrix: Array) -> Array:
    """Return the exponential of a triangular matrix of two rows by its closed form, of others by eigenvalues."""
    with mpmath.workdps(100):
        if matrix.shape == (2, 2) and matrix[1, 0] == 0:
            (x, off), (_, y) = matrix.tolist()
            slope = float(mpmath.exp(x)) if x == y else between(x, y)
            return np.array([[float(mpmath.exp(x)), off * slope], [0.0, float(mpmath.exp(y))]])
        values, vectors = mpmath.eig(mpmath.matrix(matrix.tolist()))
        found = vectors * mpmath.diag([mpmath.exp(value) for value in values]) * vectors**-1
        return np.array(found.apply(mpmath.re).tolist(), float)


EXPONENTS = {
    "halved a hundred times": diagonal(-1e30, 1.0),
    "powers that overflow": diagonal(-1e80, -1e80, -2e80),
    "beside powers that overflow": diagonal(-1e70, 1.0),
    "triangular": np.array([[1.0, 1e200], [0.0, 1.0]]),
    "triangular and decaying": np.array([[-1e60, 1e60], [0.0, 0.5]]),
    "nilpotent": np.array([[0.0, 1e100], [0.0, 0.0]]),
    "one that decays fast": np.array([[-1e10, 1.0, 0.0], [1.0, -1.0, 2.0], [0.0, 3.0, 0.5]]),
    "several sizes": np.array([[1.0, 1e8, 1e-8], [1e-9, 2.0, 1e6], [0.0, 1e-7, -3.0]]),
    "tiny": 1e-300 * np.ones((2, 2)),
}


@pytest.mark.slow
def test_exponentials_of_badly_scaled_matrices() -> None:
    derivative = fnad.jit(lambda a: fnad.jvp(scipy.linalg.expm, (a,), (a,)))
    with together() as named, fnad.config.override(executor="compiled"):
        for name, matrix in EXPONENTS.items():
            with named(name):
                expected = exponential(matrix)
                found, slope = derivative(matrix)
                np.testing.assert_allclose(found, expected, 1e-13, 1e-290)
                step = 2.0**-20
                ratio = (exponential(matrix * (1 + step)) - exponential(matrix * (1 - step))) / (2 * step)
                np.testing.assert_allclose(slope, ratio, 1e-6, 1e-290)


# ---- decompositions, by what they are made of ------------------------------------------------------------------------


def adjoint(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def exchanged(a: Array, pivots: Array) -> Array:
    """Return a matrix with row i exchanged with row pivots[i], one after the other."""
    a = a.copy()
    for places in np.ndindex(a.shape[:-2]):
        for i, other in enumerate(pivots[places]):
            a[places][[i, other]] = a[places][[other, i]]
    return a


def by_svd(a: Array, u: Array, s: Array, vh: Array) -> tuple[Array, Array]:
    return a, u[..., : s.shape[-1]] * s[..., None, :] @ vh[..., : s.shape[-1], :]


def by_lu(a: Array, packed: Array, pivots: Array) -> tuple[Array, Array]:
    least = min(a.shape[-2:])
    lower = np.tril(packed, -1)[..., :least] + np.eye(a.shape[-2], least, dtype=a.dtype)
    return exchanged(a, pivots), lower @ np.triu(packed)[..., :least, :]


REBUILT: dict[str, Callable[..., tuple[Array, Array]]] = {
    "qr": lambda a, q, r: (a, q @ r),
    "lu": by_lu,
    "svd": by_svd,
    "eigh": lambda a, values, vectors: (a @ vectors, vectors * values[..., None, :]),
    "svdvals": lambda a, values: (np.linalg.svd(a.astype(np.result_type(a, float)), compute_uv=False), values),
    "eigvalsh": lambda a, values: (np.linalg.eigvalsh(a.astype(np.result_type(a, float))), values),
}
"""What is equal for the results of functions of a matrix, though the results themselves are not the only ones.

Those of `eig` are not: LAPACK balances a matrix first, which loses small elements.
"""

DECOMPOSED = distinct(lambda case: case.primitive.name in REBUILT and all(np.size(x) for x in case.operands))


def check_decomposition(case: Case) -> None:
    run = compile_program(trace(lambda *inputs: case.applied(inputs), *case.avals, name=case.primitive.name))
    rng = np.random.default_rng(case.number)
    for _ in range(2):
        (a,) = filled(case, "scaled", rng)
        if case.primitive.name.startswith("eigh") or case.primitive.name == "eigvalsh":
            a = a + adjoint(a)
        allowed = SIZE_OF_RESIDUALS * np.finfo(a.dtype).eps * a.shape[-1] * np.max(np.abs(a))
        for results in (outcome(lambda: run([a])), outcome(lambda: case.evaluate(a))):  # noqa: B023
            assert not isinstance(results, type), results
            left, right = REBUILT[case.primitive.name](a, *results)
            assert np.max(np.abs(left - right)) <= allowed, (a, results)


@pytest.mark.slow
@over(DECOMPOSED)
def test_decompositions_of_badly_scaled_matrices(case: Case) -> None:
    check_decomposition(case)


SCALED = distinct(
    lambda case: case.primitive.name in ("lstsq", "pinv", "signm", "eig", *SYSTEMS) and all(map(np.size, case.operands))
)


def check_scaled(case: Case) -> None:
    """Compare for a matrix of moderate numbers times a power of two, by which elements do not round."""
    run = compile_program(trace(lambda *inputs: case.applied(inputs), *case.avals, name=case.primitive.name))
    single = case.avals[0].dtype.itemsize == (8 if case.avals[0].dtype.kind == "c" else 4)
    for power in (-100, 100) if single else (-900, -100, 100, 900):
        matrix, *others = map(np.asarray, case.operands)
        operands = [(matrix * 2.0**power).astype(matrix.dtype), *others]
        expected, results = outcome(lambda: case.evaluate(*operands)), outcome(lambda: run(operands))  # noqa: B023
        for found, right in zip(results, expected, strict=True):
            assert np.isfinite(right).all()
            distance = np.max(np.abs(found - right)) / np.max(np.abs(right))
            assert distance < (1e-4 if single else 1e-12), (power, found, right)


@pytest.mark.slow
@over(SCALED)
def test_functions_of_matrices_that_are_scaled_as_a_whole(case: Case) -> None:
    check_scaled(case)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@over(OF_ARRAYS)
def test_extreme_elements_of_arrays(case: Case) -> None:
    check_arrays(case)

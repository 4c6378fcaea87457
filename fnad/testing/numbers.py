"""Checks of programs and derivatives against independent numbers.

Derivatives are compared with differences of the function itself, taken in extended precision, so that no rule takes
part in its own check. Along directions u and v, with weights making the error O(h⁴) (Abramowitz & Stegun 25.3.6, and
Richardson's extrapolation of the mixed difference 25.3.26):

    D f(x)[u]      = (8 (f(x+hu) - f(x-hu)) - (f(x+2hu) - f(x-2hu))) / 12h
    D² f(x)[u, v]  = (4 m(h) - m(2h)) / 3,  m(h) = (f(x+h(u+v)) - f(x+h(u-v)) - f(x-h(u-v)) + f(x-h(u+v))) / 4h²

Cotangents pair with tangents without conjugation: <ct, dy> = Re Σ ct·dy. Every tolerance comes from a dtype, here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.ir.program import Program
from fnad.ir.types import Aval, Dtype, is_inexact, real_dtype
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.interpret import interpret
from fnad.transforms.joint import cotangent_avals

Array: TypeAlias = Any
Arrays: TypeAlias = Sequence[Array]
Function: TypeAlias = Callable[..., Array]
Run: TypeAlias = Callable[[Program, Arrays], list[Array]]

EXECUTORS: dict[str, Run] = {"interpreter": interpret}
"""The executors that the tests use."""

# ---- tolerances --------------------------------------------------------------------------------------------------

SCALE = 1e-3
"""The least magnitude expected of values of order 1 and their derivatives, apart from cancellation."""

ULPS = (64.0, 4096.0, 262144.0)
"""The rounding errors allowed for values, first and second derivatives, in units of the dtype's precision."""


def precision(dtype: Dtype) -> float:
    """The distance from 1 to the next number of an inexact dtype.

    >>> precision(np.dtype(np.complex64)) == precision(np.dtype(np.float32)) == 2.0**-23
    True
    """
    return float(np.finfo(dtype).eps)


def tolerance(dtype: Dtype, order: int = 0) -> float:
    """The relative error allowed of a value (order 0) or a derivative of this order; 0 for integers and bools.

    >>> tolerance(np.dtype(np.int64))
    0.0
    """
    return ULPS[order] * precision(dtype) if is_inexact(dtype) else 0.0


def assert_close(found: Array, expected: Array, allowed: float, scale: float = 0.0) -> None:
    """Compare an array with the expected one: its shape, and its values to a relative error.

    The error is measured against the largest finite element, as of a vector, or against `scale` if that is larger; inf
    and nan must be in the same places. Raises AssertionError.

    >>> assert_close(np.array([1.0, 1e-20]), np.array([1.0, 0.0]), 1e-15)
    """
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"shape {found.shape} instead of {expected.shape}"
    largest = float(np.max(np.abs(expected), initial=scale, where=np.isfinite(expected))) if allowed else 0.0
    np.testing.assert_allclose(found, expected, rtol=allowed, atol=allowed * largest)


# ---- differences -------------------------------------------------------------------------------------------------


def extended(x: Array) -> Array:
    """An inexact array in the widest precision NumPy has, any other as it is.

    >>> extended(np.ones(3)).dtype == np.longdouble, extended(np.arange(3)).dtype == np.int64
    (True, True)
    """
    if not is_inexact(x.dtype):
        return x
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble)


def step(eps: float, order: int) -> tuple[float, float]:
    """The step of differences of this order in a precision, and the relative error to expect.

    The step balances h⁴ against eps / h**order for functions that vary over lengths of a tenth.

    >>> h, error = step(2.0**-52, 1)
    >>> h < 1e-3, error < 1e-9
    (True, True)
    """
    h = eps ** (1 / (4 + order)) / 10
    return h, 30 * eps / h**order


def moved(xs: Arrays, *steps: tuple[float, Arrays]) -> list[Array]:
    """The points xs plus multiples of directions, in the precision of xs; those without a direction are unchanged.

    >>> moved([np.array([1.0, 2.0])], (0.5, [np.array([1.0, 0.0])]))
    [array([1.5, 2. ])]
    """
    out = list(xs)
    for h, dxs in steps:
        out = [x if dx is None else x + x.dtype.type(h) * dx.astype(x.dtype) for x, dx in zip(out, dxs, strict=True)]
    return out


def difference(function: Function, xs: Arrays, us: Arrays, h: float) -> Array:
    """The directional derivative D f(xs)[us].

    >>> abs(float(difference(np.sin, [np.longdouble(0.0)], [np.longdouble(1.0)], 1e-3)) - 1.0) < 1e-12
    True
    """
    near = function(*moved(xs, (h, us))) - function(*moved(xs, (-h, us)))
    far = function(*moved(xs, (2 * h, us))) - function(*moved(xs, (-2 * h, us)))
    return (8 * near - far) / (12 * np.longdouble(h))


def mixed_difference(function: Function, xs: Arrays, us: Arrays, vs: Arrays, h: float) -> Array:
    """The second directional derivative D² f(xs)[us, vs].

    >>> one = [np.longdouble(1.0)]
    >>> abs(float(mixed_difference(lambda x: x**3, one, one, one, 1e-3)) - 6.0) < 1e-9
    True
    """

    def cross(step: float) -> Array:
        plus = function(*moved(xs, (step, us), (step, vs))) - function(*moved(xs, (step, us), (-step, vs)))
        minus = function(*moved(xs, (-step, us), (step, vs))) - function(*moved(xs, (-step, us), (-step, vs)))
        return (plus - minus) / (4 * np.longdouble(step) ** 2)

    return (4 * cross(h) - cross(2 * h)) / 3


# ---- directions and pairings -------------------------------------------------------------------------------------


def direction(aval: Aval, seed: int) -> Array:
    """A random array of the aval, of order 1.

    >>> direction(Aval(np.dtype(np.float32), (2, 3)), seed=0).shape
    (2, 3)
    """
    rng = np.random.default_rng(seed)
    real, imaginary = rng.uniform(0.5, 1.5, (2, *aval.shape)) * rng.choice([-1.0, 1.0], (2, *aval.shape))
    return np.asarray(real + 1j * imaginary if aval.dtype.kind == "c" else real).astype(aval.dtype)


def pairing(cts: Arrays, dys: Arrays) -> float:
    """The pairing Re Σ ct·dy over all arrays, in extended precision.

    >>> pairing([np.array([1.0, 2.0])], [np.array([3.0, -1.0])])
    1.0
    """
    return float(sum(np.sum(extended(ct) * extended(dy)).real for ct, dy in zip(cts, dys, strict=True)))


def magnitude(cts: Arrays, dys: Arrays) -> float:
    """The sum Σ |ct|·|dy|, against which rounding errors of a pairing are measured.

    >>> magnitude([np.array([1.0, 2.0])], [np.array([3.0, -1.0])])
    5.0
    """
    return float(sum(np.sum(np.abs(extended(ct)) * np.abs(extended(dy))) for ct, dy in zip(cts, dys, strict=True)))


# ---- derivatives of programs -------------------------------------------------------------------------------------


def marks(program: Program) -> tuple[bool, ...]:
    """Mark every input that can carry a derivative.

    >>> from fnad.ir.parser import parse_program
    >>> marks(parse_program("f(a: f64[], b: i64[]) -> f64[] { return a }"))
    (True, False)
    """
    return tuple(is_inexact(aval.dtype) for aval in program.in_avals)


def pushforward(run: Run, program: Program, xs: Arrays, dxs: Arrays) -> list[Array]:
    """The tangents of the inexact outputs, given those of the inexact inputs.

    >>> from fnad.ir.parser import parse_program
    >>> square = parse_program("square(a: f64[]) -> f64[] { b: f64[] = mul(a, a) return b }")
    >>> [float(dy) for dy in pushforward(interpret, square, [np.array(3.0)], [np.array(1.0)])]
    [6.0]
    """
    return run(jvp(program, marks(program)), [*xs, *dxs])[len(program.outputs) :]


def pullback(run: Run, program: Program, xs: Arrays, cts: Arrays) -> list[Array]:
    """The cotangents of the inexact inputs, given those of the inexact outputs.

    >>> from fnad.ir.parser import parse_program
    >>> square = parse_program("square(a: f64[]) -> f64[] { b: f64[] = mul(a, a) return b }")
    >>> [float(ct) for ct in pullback(interpret, square, [np.array(3.0)], [np.array(1.0)])]
    [6.0]
    """
    return run(joint(program, marks(program)), [*xs, *cts])[len(program.outputs) :]


def check_transposed(run: Run, program: Program, xs: Arrays) -> None:
    """Assert <ct, J dx> = <Jᵀ ct, dx> in random directions, and the avals of both; raises AssertionError.

    >>> from fnad.ir.parser import parse_program
    >>> square = parse_program("square(a: f64[]) -> f64[] { b: f64[] = mul(a, a) return b }")
    >>> check_transposed(interpret, square, [np.array(3.0)])
    """
    dxs = [direction(aval, seed) for seed, aval in enumerate(program.in_avals) if is_inexact(aval.dtype)]
    check_pullback(run, program, xs, dxs, pushforward(run, program, xs, dxs))


def check_pullback(run: Run, program: Program, xs: Arrays, dxs: Arrays, dys: Arrays, order: int = 1) -> None:
    """Assert <ct, dys> = <Jᵀ ct, dxs> for tangents of a program, and the avals of both; raises AssertionError.

    >>> from fnad.ir.parser import parse_program
    >>> square = parse_program("square(a: f64[]) -> f64[] { b: f64[] = mul(a, a) return b }")
    >>> check_pullback(interpret, square, [np.array(3.0)], [np.array(1.0)], [np.array(6.0)])
    """
    cts = [direction(aval, -seed - 1 & 0xFFFF) for seed, aval in enumerate(cotangent_avals(program))]
    x_cts = pullback(run, program, xs, cts)
    for derivative, primal in zip([*dys, *x_cts], [*cts, *dxs], strict=True):
        assert (derivative.dtype, derivative.shape) == (primal.dtype, primal.shape), "a derivative has another aval"
    narrowest = max((real_dtype(x.dtype) for x in [*dxs, *cts]), key=precision, default=np.dtype(np.float64))
    allowed = tolerance(narrowest, order) * max(magnitude(cts, dys), magnitude(x_cts, dxs))
    assert abs(pairing(cts, dys) - pairing(x_cts, dxs)) <= allowed, "reverse mode is not the transpose of forward mode"

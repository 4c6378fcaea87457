"""Loops and branches against the same functions written as Python loops, to second order, in every way to run them.

The Python function is evaluated in extended precision and its derivatives are differences of it, so that no rule of
fnad takes part in them. One jitted function computes all that is compared: the value, the derivative along u in both
modes, and the second derivative along u and v in the four nestings of the modes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

import fnad
from fnad.api.leaves import flatten
from fnad.ir.types import aval_of, is_inexact, real_dtype
from fnad.testing import assert_close, difference, direction, extended, mixed_difference, precision, step, tolerance

Function: TypeAlias = Callable[..., Any]

SECOND = ("forward over reverse", "reverse over reverse", "reverse over forward", "forward over forward")


def check(f: Function, in_python: Function, *args: Any, order: int = 2, same_dtypes: bool = True) -> None:
    """Compare values and derivatives up to this order with those of the same function in Python."""
    xs = [np.asarray(arg)[()] for arg in args]
    us, vs = ([_along(x, seed + i) for i, x in enumerate(xs)] for seed in (1, 100))
    expected = truth(in_python, xs, us, vs, order)
    derived = fnad.jit(lambda *given: found(f, given, us, vs, order))
    compare_values(f(*args), in_python(*args), same_dtypes)
    for executor in ("interpreter", "compiled"):
        with fnad.config.override(executor=executor):
            compare_values(fnad.jit(f)(*args), in_python(*args), same_dtypes)
            _compare(derived(*xs), expected, _precision(xs))


def compare_values(result: Any, expected: Any, same_dtypes: bool = True) -> None:
    """Assert that two pytrees have the same structure and leaves."""
    (leaves, structure), (wanted, like) = flatten(result), flatten(expected)
    assert structure == like
    for leaf, value in zip(map(np.asarray, leaves), map(np.asarray, wanted), strict=True):
        assert not same_dtypes or leaf.dtype == value.dtype
        assert_close(leaf, value, tolerance(leaf.dtype))


def _compare(results: dict[str, Any], expected: tuple[Any, ...], eps: float) -> None:
    first, second = expected[0], expected[1:]
    for name, result in results.items():
        is_second = name in SECOND
        error = step(float(np.finfo(np.longdouble).eps), 2 if is_second else 1)[1]
        wanted = second[0] if is_second else first
        allowed = max(error, (262144 if is_second else 4096) * eps)
        assert abs(result - wanted) <= allowed * max(abs(wanted), 1.0), f"{name}: {result} instead of {wanted}"


def _precision(xs: Sequence[Any]) -> float:
    return max((precision(real_dtype(x.dtype)) for x in xs if is_inexact(x.dtype)), default=0.0)


def _along(x: Any, seed: int) -> Any:
    return direction(aval_of(x), seed)[()] if is_inexact(x.dtype) else None


# ---- the truth -------------------------------------------------------------------------------------------------------


def truth(in_python: Function, args: Sequence[Any], us: Any, vs: Any, order: int) -> tuple[float, ...]:
    """Return the derivative of the weighed sum of a function's results along u, and the second along u and v."""
    wide = [extended(np.asarray(arg))[()] for arg in args]
    total = weighed(in_python)
    eps = float(np.finfo(np.longdouble).eps)
    first = float(difference(total, wide, us, step(eps, 1)[0]))
    return (first, float(mixed_difference(total, wide, us, vs, step(eps, 2)[0]))) if order == 2 else (first,)


def weighed(f: Function) -> Function:
    """Return the function that sums the results of another, each element with a weight of its own."""

    def total(*args: Any) -> Any:
        leaves = [leaf for leaf in flatten(f(*args))[0] if hasattr(leaf, "dtype") and leaf.dtype.kind in "fc"]
        return sum(np.real(np.sum(leaf * weights(leaf, seed))) for seed, leaf in enumerate(leaves))

    return total


def weights(leaf: Any, seed: int) -> Any:
    """Return weights of the shape of an array, which every dtype holds exactly; complex ones where it is complex."""
    rng = np.random.default_rng(1000 + seed)
    real, imaginary = rng.integers(4, 12, (2, *leaf.shape)) / 8
    return (real + 1j * imaginary).astype(np.complex64) if leaf.dtype.kind == "c" else real.astype(np.float32)


# ---- what fnad says --------------------------------------------------------------------------------------------------


def found(f: Function, args: Sequence[Any], us: Sequence[Any], vs: Sequence[Any], order: int) -> dict[str, Any]:
    """Return the derivatives by each mode and nesting of modes, by name."""
    total = weighed(f)
    places = tuple(i for i, u in enumerate(us) if u is not None)
    on = lambda *xs: total(*_filled(args, places, xs))  # noqa: E731
    xs, us, vs = ([values[i] for i in places] for values in (args, us, vs))
    gradient = fnad.grad(on, tuple(range(len(places))))
    forward = lambda *xs: fnad.jvp(on, tuple(xs), tuple(us))[1]  # noqa: E731
    reverse = lambda *xs: pair(gradient(*xs), us)  # noqa: E731
    results = {"forward": forward(*xs), "reverse": reverse(*xs)}
    if order == 2:
        every = tuple(range(len(places)))
        seconds = (
            pair(fnad.jvp(gradient, tuple(xs), tuple(vs))[1], us),
            pair(fnad.grad(reverse, every)(*xs), vs),
            pair(fnad.grad(forward, every)(*xs), vs),
            fnad.jvp(forward, tuple(xs), tuple(vs))[1],
        )
        results.update(zip(SECOND, seconds, strict=True))
    return results


def _filled(args: Sequence[Any], places: Sequence[int], xs: Sequence[Any]) -> list[Any]:
    put = dict(zip(places, xs, strict=True))
    return [put.get(i, arg) for i, arg in enumerate(args)]


def pair(cts: Sequence[Any], dxs: Sequence[Any]) -> Any:
    """Return Re Σ ct·dx."""
    return sum(np.real(np.sum(ct * dx)) for ct, dx in zip(cts, dxs, strict=True))

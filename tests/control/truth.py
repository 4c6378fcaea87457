"""Loops and branches against the same functions written as Python loops, to second order, in every way to run them.

The Python function is evaluated in extended precision and its derivatives are differences of it, so that no rule of
fnad takes part in them. Compared are the value, the derivative along u in both modes, and the second derivative along u
and v in the four nestings of the modes. One jitted function computes all of an order, in the interpreter and compiled;
a program of second derivatives is large, so that few of them are compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import fnad
from fnad.api.staging.leaves import flatten
from fnad.ir.types import aval_of, is_inexact, real_dtype
from fnad.testing import (
    ULPS,
    assert_close,
    difference,
    direction,
    extended,
    mixed_difference,
    precision,
    step,
    tolerance,
)

Function: TypeAlias = Callable[..., Any]

WIDE = float(np.finfo(np.longdouble).eps)


def check(f: Function, in_python: Function, *args: Any, order: int = 2, compiled: int = 1) -> None:
    """Compare values and derivatives up to this order with those of Python; compile what is up to order `compiled`."""
    check_each(f, in_python, [args], order=order, compiled=compiled)


def check_each(
    f: Function, in_python: Function, cases: Sequence[Sequence[Any]], order: int = 2, compiled: int = 1
) -> None:
    """Compare the same for several arguments of the same shapes and dtypes, which share jitted functions."""
    arguments = [[np.asarray(arg)[()] for arg in args] for args in cases]
    us, vs = ([_along(x, seed + i) for i, x in enumerate(arguments[0])] for seed in (1, 100))
    expected = [truth(in_python, xs, us, vs, order) for xs in arguments]
    for args in cases:
        compare_values(f(*args), in_python(*args))
    for n, ways in enumerate((first_derivatives, second_derivatives)[:order], start=1):
        derived = fnad.jit(lambda *given, ways=ways: (f(*given), ways(f, given, us, vs)))
        for executor, (xs, true) in product(
            ("interpreter", "compiled")[: 1 + (n <= compiled)], zip(arguments, expected, strict=True)
        ):
            with fnad.config.override(executor=executor):
                value, found = derived(*xs)
            compare_values(value, in_python(*xs))
            _compare(found, true[n - 1], n, max([precision(real_dtype(x.dtype)) for x in xs if is_inexact(x.dtype)]))


def compare_values(result: Any, expected: Any) -> None:
    """Assert that two pytrees have the same structure and leaves."""
    (leaves, structure), (wanted, like) = flatten(result), flatten(expected)
    assert structure == like
    for leaf, value in zip(map(np.asarray, leaves), map(np.asarray, wanted), strict=True):
        assert leaf.dtype == value.dtype
        assert_close(leaf, value, tolerance(leaf.dtype))


def _compare(found: dict[str, Any], expected: float, order: int, eps: float) -> None:
    allowed = max(step(WIDE, order)[1], ULPS[order] * eps) * max(abs(expected), 1.0)
    for name, derivative in found.items():
        assert abs(derivative - expected) <= allowed, f"{name}: {derivative} instead of {expected}"


def _along(x: Any, seed: int) -> Any:
    return direction(aval_of(x), seed)[()] if is_inexact(x.dtype) else None


# ---- the truth -------------------------------------------------------------------------------------------------------


def truth(in_python: Function, args: Sequence[Any], us: Any, vs: Any, order: int) -> tuple[float, ...]:
    """Return the derivative of the weighed sum of a function's results along u, and the second along u and v."""
    wide = [extended(np.asarray(arg))[()] for arg in args]
    total = weighed(in_python)
    first = float(difference(total, wide, us, step(WIDE, 1)[0]))
    return (first, float(mixed_difference(total, wide, us, vs, step(WIDE, 2)[0]))) if order == 2 else (first,)


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


def first_derivatives(f: Function, args: Sequence[Any], us: Sequence[Any], vs: Sequence[Any]) -> dict[str, Any]:
    """Return the derivative along u by each mode, by name; v does not matter."""
    modes = _modes(f, args, us)
    return {"forward": modes.forward(*modes.xs), "reverse": modes.reverse(*modes.xs)}


def second_derivatives(f: Function, args: Sequence[Any], us: Sequence[Any], vs: Sequence[Any]) -> dict[str, Any]:
    """Return the derivative along u and v by each nesting of the modes, by name."""
    modes = _modes(f, args, us)
    xs, every = modes.xs, tuple(range(len(modes.xs)))
    vs = [v for v in vs if v is not None]
    return {
        "forward over reverse": fnad.jvp(modes.reverse, tuple(xs), tuple(vs))[1],
        "reverse over reverse": pair(fnad.grad(modes.reverse, every)(*xs), vs),
        "reverse over forward": pair(fnad.grad(modes.forward, every)(*xs), vs),
        "forward over forward": fnad.jvp(modes.forward, tuple(xs), tuple(vs))[1],
    }


class Modes(NamedTuple):
    """The derivative along u by either mode, as functions of what can be differentiated in, and where that is now."""

    forward: Function
    reverse: Function
    xs: list[Any]


def _modes(f: Function, args: Sequence[Any], us: Sequence[Any]) -> Modes:
    total = weighed(f)
    places = [i for i, u in enumerate(us) if u is not None]
    on = lambda *xs: total(*_filled(args, places, xs))  # noqa: E731
    given = tuple(us[i] for i in places)
    gradient = fnad.grad(on, tuple(range(len(places))))
    return Modes(
        lambda *xs: fnad.jvp(on, xs, given)[1], lambda *xs: pair(gradient(*xs), given), [args[i] for i in places]
    )


def _filled(args: Sequence[Any], places: Sequence[int], xs: Sequence[Any]) -> list[Any]:
    put = dict(zip(places, xs, strict=True))
    return [put.get(i, arg) for i, arg in enumerate(args)]


def pair(cts: Sequence[Any], dxs: Sequence[Any]) -> Any:
    """Return Re Σ ct·dx."""
    return sum(np.real(np.sum(ct * dx)) for ct, dx in zip(cts, dxs, strict=True))

"""SciPy's integrals of functions by their own names, in a trace: `fnad.control.integral` of what the function computes.

The function is traced once; SciPy's `quad`, or `quad_vec`, evaluates it when the program runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fnad.api.solvers.roots import as_tuple, solver
from fnad.api.staging.inlining import traced
from fnad.api.staging.marshalling import LeafType
from fnad.api.staging.regions import Region, calling, region_of
from fnad.control.integral import NUMBER, integrated
from fnad.errors import NonScalarOutputError, ShapeError
from fnad.ir.builder import current_builder, inline
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.numpy import array
from fnad.ops.conversion import convert_to
from fnad.ops.shape import reshape_to
from fnad.trace.hooks import callee
from fnad.trace.source import current_source
from fnad.trace.tracing import symbol_of

Function = Callable[..., Any]


def _inside(a: Any, b: Any) -> Any:
    """A place between two limits, which may be infinite."""
    ends = [end for end in (a, b) if not (isinstance(end, (int, float)) and math.isinf(end))]
    match ends:
        case []:
            return 0.25
        case [end]:
            return end + 0.75 if end is a else end - 0.75
        case _:
            return a + 0.375 * (b - a)


@solver("scipy.integrate.quad", lambda given: (_inside(given["a"], given["b"]),))
def quad(func: Any, a: Any, b: Any, args: Any, epsabs: Any, epsrel: Any, limit: Any, points: Any) -> tuple[Any, Any]:
    """The integral and an estimate of its error, as SciPy's."""
    region = _integrand(func, args)
    if region is None or region.program.out_avals[0].size != 1:
        raise NonScalarOutputError(
            "scipy.integrate.quad takes a function that returns one real number",
            remedy="return a number, for complex ones real and imaginary part by themselves",
        )
    found = _integrals(region, a, b, points, epsabs=float(epsabs), epsrel=float(epsrel), limit=int(limit))
    value, error = [traced(reshape_to(symbol, ())) for symbol in found]
    return value, error


@solver("scipy.integrate.quad_vec", lambda given: (_inside(given["a"], given["b"]),))
def quad_vec(
    f: Any, a: Any, b: Any, epsabs: Any, epsrel: Any, norm: Any, limit: Any, points: Any, args: Any
) -> tuple[Any, Any]:
    """The integrals of the elements of an array, and an estimate of the norm of their errors, as SciPy's."""
    region = _integrand(f, args)
    if region is None or not region.program.out_avals[0].size:
        raise NonScalarOutputError(
            "scipy.integrate.quad_vec takes a function that returns an array of real numbers",
            remedy="return an array, for complex ones real and imaginary part by themselves",
        )
    options = {"epsabs": float(epsabs), "epsrel": float(epsrel), "limit": int(limit), "norm": str(norm)}
    values, errors = _integrals(region, a, b, points, **options)
    each: Any = traced(errors)
    return traced(reshape_to(values, region.program.out_avals[0].shape)), each[0]


def _integrand(func: Any, args: Any) -> Region | None:
    """A function of one number as a region; None where it does not return a real array."""
    region = region_of(func, calling(func, lambda xs: (xs[0], *as_tuple(args))), [LeafType(NUMBER, weak=True)])
    is_real = region.structure.is_leaf() and region.program.out_avals[0].dtype.kind != "c"
    return region if is_real else None


def _integrals(region: Region, a: Any, b: Any, points: Any, **options: Any) -> Any:
    """The integrals of the elements of what a region returns, as a vector, and their errors."""
    size = region.program.out_avals[0].size

    def integrand(x: Symbol) -> list[Symbol]:
        return [reshape_to(convert_to(inline(region.program, [x, *region.consts])[0], F64), (size,))]

    current_builder().source = current_source()
    between = symbol_of(np.ravel(array([] if points is None else points)).astype(F64))
    return integrated(integrand, _limit(a), _limit(b), between, **options)


def _limit(value: Any) -> Symbol:
    limit = symbol_of(value)
    if limit.shape:
        raise ShapeError(
            f"a limit of an integral is {limit.aval}, not a number",
            remedy="integrate between each pair of limits with fnad.vmap",
        )
    return convert_to(limit, F64)


# ---- several variables -----------------------------------------------------------------------------------------------


def _ends(limits: Any, *given: Any) -> Any:
    return callee(limits)(*given) if callable(limits) else limits


def _places(given: dict[str, Any]) -> tuple[Any, ...]:
    """A place for each variable, of which the last is the outermost."""
    places: tuple[Any, ...] = ()
    for limits in reversed(given["ranges"]):
        places = (_inside(*_ends(limits, *places, *as_tuple(given.get("args", ())))), *places)
    return places


@solver("scipy.integrate.nquad", _places)
def nquad(func: Any, ranges: Any, args: Any, opts: Any) -> tuple[Any, Any]:
    """The integral over several variables; the estimate of its error is that of the outermost one, the last."""
    more = as_tuple(args)

    def over(axis: int, *outer: Any) -> tuple[Any, Any]:
        inner = (lambda x: callee(func)(x, *outer, *more)) if axis == 0 else (lambda x: over(axis - 1, x, *outer)[0])
        own = opts[axis] if isinstance(opts, (list, tuple)) else opts
        return quad(inner, *_ends(ranges[axis], *outer, *more), **(_ends(own, *outer, *more) or {}))

    return over(len(ranges) - 1)


@solver("scipy.integrate.dblquad", lambda given: _places({**given, "ranges": _of_two(given)}))
def dblquad(func: Any, a: Any, b: Any, gfun: Any, hfun: Any, args: Any, epsabs: Any, epsrel: Any) -> tuple[Any, Any]:
    """The integral over y from gfun(x) to hfun(x), then over x."""
    return nquad(func, _of_two(locals()), args, {"epsabs": epsabs, "epsrel": epsrel})


@solver("scipy.integrate.tplquad", lambda given: _places({**given, "ranges": _of_three(given)}))
def tplquad(
    func: Any, a: Any, b: Any, gfun: Any, hfun: Any, qfun: Any, rfun: Any, args: Any, epsabs: Any, epsrel: Any
) -> tuple[Any, Any]:
    """The integral over z from qfun(x, y) to rfun(x, y), then over y from gfun(x) to hfun(x), then over x."""
    return nquad(func, _of_three(locals()), args, {"epsabs": epsabs, "epsrel": epsrel})


def _of_two(given: dict[str, Any]) -> list[Any]:
    lower, upper = given["gfun"], given["hfun"]
    return [lambda x, *_: (_ends(lower, x), _ends(upper, x)), (given["a"], given["b"])]


def _of_three(given: dict[str, Any]) -> list[Any]:
    lower, upper = given["qfun"], given["rfun"]
    return [lambda y, x, *_: (_ends(lower, x, y), _ends(upper, x, y)), *_of_two(given)]


# ---- given points ----------------------------------------------------------------------------------------------------


@solver("scipy.integrate.fixed_quad", lambda given: (np.array([_inside(given["a"], given["b"])]),))
def fixed_quad(func: Any, a: Any, b: Any, args: Any, n: Any) -> tuple[Any, None]:
    """The sum over the points of Gauss and Legendre, as SciPy's."""
    places, weights = np.polynomial.legendre.leggauss(n)
    half = (b - a) / 2.0
    return half * np.sum(weights * callee(func)(half * (places + 1) + a, *as_tuple(args)), axis=-1), None

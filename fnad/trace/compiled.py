"""Functions that Numba compiles, on traced values: the Python function in them is called.

Numba's own call wants memory and numbers. A function runs as Python, and a ufunc (`numba.vectorize`,
`numba.guvectorize`) on one element or core after the other, as `np.vectorize` does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from fnad.errors import UnsupportedFunctionError
from fnad.trace.conversion import unconverted
from fnad.trace.dispatch import call_function, on_traced
from fnad.trace.parts import compiled_from
from fnad.trace.vectorized import vectorized
from fnad.upward import UPWARD

Call = Callable[..., Any]

# ---- what is called --------------------------------------------------------------------------------------------------


def function_of(compiled: Any) -> Call | None:
    """The user's function in a compiled one; Numba makes some of its own, too."""
    function = compiled_from(compiled)
    return function if function is not None and function.__module__ is not None else None


def of_elements(ufunc: Any) -> Call:
    """A ufunc by its function of elements."""
    elements = np.vectorize(ufunc._dispatcher.py_func)
    return writing(lambda *args: vectorized(elements, args, {}), ufunc.nin)


def of_cores(ufunc: Any) -> Call:
    """A generalized ufunc by its function, which writes its results into arrays; a number is in an array of one."""
    builder = ufunc.gufunc_builder
    declared = builder._sigs[0].args if builder._sigs else ()

    def one(*given: Any) -> Any:
        named = [pair for x, core in zip(given, ins, strict=True) for pair in zip(core, np.shape(x), strict=True)]
        extents, dtype = dict(named), np.result_type(*given)
        results = [call_function(np.zeros, ([extents[name] for name in core] or [1], dtype), {}) for core in outs]
        ranks = [getattr(kind, "ndim", 0) for kind in declared] or [len(core) for core in ins]
        taken = [
            np.reshape(x, [1]) if rank > len(core) else x for x, core, rank in zip(given, ins, ranks, strict=False)
        ]
        builder.py_func(*taken, *results)
        found = [result if core else result[0] for result, core in zip(results, outs, strict=True)]
        return found[0] if len(found) == 1 else tuple(found)

    cores = np.vectorize(one, signature=builder.signature)
    ins, outs = cores._in_and_out_core_dims  # type: ignore[attr-defined]
    return writing(lambda *args: vectorized(cores, args, {}), len(ins))


def writing(compute: Call, count: int) -> Call:
    """A ufunc of so many operands, which writes its results into the arrays that are given for them."""

    def call(*args: Any, out: Any = None, **options: Any) -> Any:
        if options:
            raise UnsupportedFunctionError(f"a ufunc that Numba compiled has no rule for {', '.join(options)}")
        results = compute(*args[:count])
        places = list(args[count:] or (out if isinstance(out, tuple) else [out]))
        if all(place is None for place in places):
            return results
        for place, result in zip(places, results if isinstance(results, tuple) else (results,), strict=True):
            place[...] = result
        return places[0] if len(places) == 1 else tuple(places)

    return call


COMPILED: dict[str, Callable[[Any], Call | None]] = {
    "Dispatcher": function_of,
    "DUFunc": of_elements,
    "GUFunc": of_cores,
}
"""Numba's classes by name, each with the function that makes what is called on traced values of an instance."""


def of_numba(function: FunctionType) -> Any:
    """A function of Numba, which compiles code: it is given user functions without hooks."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*map(unconverted, args), **kwargs)
        return of_numba(found) if isinstance(found, FunctionType) else found  # as `njit(parallel=True)`

    return call


def of_compiled(function: Any) -> Any:
    """The callee for a Numba object: for traced values, the Python function in it."""
    make = next((COMPILED[name] for base in type(function).__mro__ if (name := base.__name__) in COMPILED), None)
    inner = None if make is None else make(function)
    return function if inner is None else converted_on_traced(function, inner)


def converted_on_traced(function: Any, inner: Any) -> Call:
    """A function whose `inner` one runs, converted, if an argument is traced."""
    return on_traced(function, lambda *args, **kwargs: UPWARD.callee(inner)(*args, **kwargs))  # noqa: PLW0108  # when called

"""A program of numbers or of one array as a scipy.LowLevelCallable, for integrators and filters."""

from __future__ import annotations

import ctypes
from typing import Any

from fnad.backends.standalone.native import filter_function, scalar_function
from fnad.backends.standalone.program import Standalone
from fnad.errors import ExportError

NUMBER = ctypes.POINTER(ctypes.c_double)


def low_level_callable(program: Standalone) -> Any:
    """The `double f(int, double *)` of numbers, or the filter `int f(double *, intptr_t, double *, void *)`.

    It keeps its code. Raises `ExportError` unless the program takes numbers of f64, or one axis of them, to one number.
    """
    from scipy import LowLevelCallable  # noqa: PLC0415 - other forms do without SciPy

    given, result = [p.aval for p in program.arguments], [str(p.aval) for p in program.results]
    if result == ["f64[]"] and all(str(aval) == "f64[]" for aval in given):
        function, signature = scalar_function(program), "double (int, double *)"
        kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, NUMBER)
    elif result == ["f64[]"] and [(str(aval.dtype), len(aval.shape)) for aval in given] == [("float64", 1)]:
        function, signature = filter_function(program), "int (double *, npy_intp, double *, void *)"
        kind = ctypes.CFUNCTYPE(ctypes.c_int, NUMBER, ctypes.c_ssize_t, NUMBER, ctypes.c_void_p)
    else:
        raise ExportError(
            f"{program.name} does not take numbers of f64, or one axis of them, to one number of f64",
            remedy="call .cfunc()",
        )
    made: Any = kind(function.address)
    made.function = function
    return LowLevelCallable(made, signature=signature)

"""A program of numbers as a scipy.LowLevelCallable, for integrators."""

from __future__ import annotations

import ctypes
from typing import Any

from fnad.backends.standalone.native import scalar_function
from fnad.backends.standalone.program import Standalone


def low_level_callable(program: Standalone) -> Any:
    """The `double f(int, double *)` of a program, which keeps its code.

    Raises `ExportError` unless the program takes numbers of f64 to one number of f64.
    """
    from scipy import LowLevelCallable  # noqa: PLC0415 - other forms do without SciPy

    kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.POINTER(ctypes.c_double))
    function = scalar_function(program)
    made: Any = kind(function.address)
    made.function = function
    return LowLevelCallable(made)

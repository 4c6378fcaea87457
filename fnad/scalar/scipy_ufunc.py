"""The ufuncs of scipy.special as scalar operations: `scipy_jv` is jv, `scipy_sici_0` the first result of sici.

There is no list of them: a name says which ufunc it is. The last operand, which may be complex, decides on the dtype;
the others are i64, or real numbers of its size. SciPy is imported when the first of them is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from fnad.scalar.operation import INDEX, Kind, OperandError, Operation, real_dtype

PREFIX = "scipy_"

UFUNC = "scipy ufunc"
"""The name of a target's instructions for all SciPy ufuncs: a function from operation to emitter."""


@dataclass(frozen=True, slots=True, eq=False)
class UfuncOperation(Operation):
    """A result of a ufunc of SciPy, its only one if `output` is None."""

    ufunc: str = ""
    output: int | None = None


def operation_name(ufunc: str, output: int | None) -> str:
    """The name of the operation that is a result of a ufunc."""
    return f"{PREFIX}{ufunc}" if output is None else f"{PREFIX}{ufunc}_{output}"


@cache
def ufunc_operation(name: str) -> UfuncOperation | None:
    """The operation of this name, None where the name is not of this form."""
    found = re.fullmatch(rf"{PREFIX}(\w+?)(?:_(\d))?", name)
    if found is None:
        return None
    ufunc, output = found[1], None if found[2] is None else int(found[2])
    evaluate = scipy_call(ufunc, output)
    return UfuncOperation(name, partial(_result, name), lambda *x: evaluate(*x)[()], ufunc=ufunc, output=output)


def _result(name: str, *kinds: Kind) -> Kind:
    last = kinds[-1]
    if isinstance(last, np.dtype) and last.kind in "fc" and {*kinds[:-1]} <= {INDEX, real_dtype(last)}:
        return last
    raise OperandError(f"{name} does not take operands of {', '.join(map(str, kinds))}")


@cache
def scipy_function(name: str) -> Callable[..., Any]:
    """The function of scipy.special of this name; private ones start with an underscore."""
    return getattr(import_module("scipy.special._ufuncs" if name.startswith("_") else "scipy.special"), name)


def _gammaln(found: Any, x: Any) -> Any:
    """SciPy's is infinite where 1 / x overflows, and has few digits near its zeros, which the complex one has."""
    found = np.where(np.isinf(found) & (x != 0) & (np.abs(x) < 1), -np.log(np.abs(x)), found)
    return np.where(np.abs(np.abs(x - 1.5) - 0.5) < 0.1, scipy_function("loggamma")(x + 0j).real + 0.0, found)


def _erfcinv(found: Any, x: Any) -> Any:
    """SciPy's is infinite where half the argument is 0."""
    return np.where(
        (found == np.inf) & (x > 0), scipy_function("ndtri_exp")(np.log(x) - np.log(2)) / -np.sqrt(2), found
    )


def _psi(found: Any, x: Any) -> Any:
    """SciPy's has no digits near its poles, because it rounds their distance, times π."""
    distance = x - np.rint(x)
    is_near = (x < 0) & (np.abs(distance) < NEAR_POLES) & (distance != 0)
    return np.where(is_near, scipy_function("psi")(1 - x) - np.pi / np.tan(np.pi * distance), found)


def _zeta(found: Any, s: Any, q: Any) -> Any:
    """SciPy's is nan where all terms are 0, of large s."""
    return np.where((s > 1e3) & (q > 1) & np.isnan(found), 0.0, found)


NEAR_POLES = 0.01
MENDED: dict[str, Callable[..., Any]] = {"gammaln": _gammaln, "erfcinv": _erfcinv, "psi": _psi, "_zeta": _zeta}
"""Functions of real numbers that are far off in SciPy at some: from its results and the operands to the right ones."""


def scipy_call(name: str, output: int | None = None) -> Callable[..., Any]:
    """A call of a function of SciPy that gives its result, or the one of this number, in the last operand's dtype."""

    def evaluate(*operands: Any) -> Any:
        results = scipy_function(name)(*operands)
        if name in MENDED and operands[-1].dtype.kind == "f":
            with np.errstate(all="ignore"):
                results = MENDED[name](results, *operands)
        return np.asarray(results if output is None else results[output], operands[-1].dtype)

    return evaluate

"""The ufuncs of scipy.special as scalar operations: `scipy_jv` is jv, `scipy_sici_0` the first result of sici.

There is no list of them: a name says which ufunc it is. The last operand, which may be complex, decides on the dtype;
the others are i64, or real numbers of its size. SciPy is imported when the first of them is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from fnad.records import dataclass
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


def scipy_call(name: str, output: int | None = None) -> Callable[..., Any]:
    """A call of a function of SciPy that gives its result, or the one of this number, in the last operand's dtype."""

    def evaluate(*operands: Any) -> Any:
        results = scipy_function(name)(*operands)
        return np.asarray(results if output is None else results[output], operands[-1].dtype)

    return evaluate

"""A NumPy function, traced and interpreted, beside NumPy itself: values, dtypes, shapes, errors."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import optree
import pytest

from fnad.errors import DtypeError
from fnad.ir.types import DTYPES, Aval, aval_of
from fnad.numpy.operands import PYTHON_DTYPES
from fnad.testing import precision
from fnad.trace.handle import Handle
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret

NAMES = list(DTYPES)
ULPS = 16


def sample(shape: Any, dtype: Any, seed: int = 0) -> Any:
    """Return an array of small numbers: 0 … 6 for integers, in (0.1, 0.9) for floats."""
    rng, dtype = np.random.default_rng(seed), DTYPES.get(dtype, dtype)
    if np.dtype(dtype).kind in "biu":
        return rng.integers(0, 7, shape).astype(dtype)
    real = 0.1 + 0.8 * rng.random(shape)
    return (real + 1j * rng.random(shape) if np.dtype(dtype).kind == "c" else real).astype(dtype)


def is_weak(value: Any) -> bool:
    return type(value) in PYTHON_DTYPES


def traced(function: Callable[..., Any], *args: Any) -> tuple[Any, list[bool]]:
    """Trace a function on all its arguments; return what it computes, and which of the results are scalars."""
    return _traced(function, args, [None] * len(args))


def traced_at_hand(function: Callable[..., Any], *args: Any) -> tuple[Any, list[bool]]:
    """The same where what the arguments are may be asked for, as in every trace but those of loops."""
    return _traced(function, args, [np.asarray(a) for a in args])


def _traced(function: Callable[..., Any], args: Any, values: Any) -> tuple[Any, list[bool]]:
    avals = [Aval(PYTHON_DTYPES[type(a)]) if is_weak(a) else aval_of(np.asarray(a)) for a in args]
    found: dict[str, Any] = {}

    def call(leaves: Any) -> Any:
        results, found["tree"] = optree.tree_flatten(function(*leaves))
        found["scalars"] = [r.is_scalar if isinstance(r, Handle) else not isinstance(r, np.ndarray) for r in results]
        return results

    weak, arrays = [is_weak(a) for a in args], [isinstance(a, np.ndarray) and not a.shape for a in args]
    trace = trace_function(call, avals, name="f", weak=weak, arrays=arrays, values=values)
    inputs = [np.asarray(a, aval.dtype) for a, aval in zip(args, avals, strict=True)]
    outputs = interpret(trace.program, [*inputs, *trace.captured])
    for output, aval in zip(outputs, trace.program.out_avals, strict=True):
        assert (output.dtype, output.shape) == (aval.dtype, aval.shape)
    return optree.tree_unflatten(found["tree"], outputs), found["scalars"]


def check(function: Callable[..., Any], *args: Any) -> None:
    """Compare a traced function with NumPy, scalars against arrays without dimensions included."""
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        expected, tree = optree.tree_flatten(function(*copy.deepcopy(args)))
        actual, scalars = traced(function, *args)
    assert optree.tree_structure(actual) == tree
    for a, e, is_scalar in zip(optree.tree_leaves(actual), expected, scalars, strict=True):
        check_value(a, np.asarray(e))
        assert is_scalar == (not isinstance(e, np.ndarray))


def check_value(actual: Any, expected: Any) -> None:
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    allowed = ULPS * precision(expected.dtype) if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(actual, expected, rtol=allowed, atol=allowed / 8, equal_nan=True)


def check_error(function: Callable[..., Any], *args: Any) -> None:
    """Check that an error of NumPy's is one here too, to be caught by the same `except`."""
    with pytest.raises(Exception) as expected, np.errstate(all="ignore"):  # noqa: PT011
        function(*copy.deepcopy(args))
    builtin = next(c for c in expected.type.__mro__ if c.__module__ == "builtins")
    with pytest.raises(builtin):
        traced(function, *args)


def check_or_refused(function: Callable[..., Any], *args: Any) -> None:
    """Compare with NumPy, or see that what NumPy can do is refused by an error of fnad's."""
    try:
        with np.errstate(all="ignore"):
            function(*copy.deepcopy(args))
    except Exception:  # noqa: BLE001
        check_error(function, *args)
        return
    if not refused(function, *args):
        check(function, *args)


def refused(function: Callable[..., Any], *args: Any) -> bool:
    """Say whether fnad refuses the call by naming a dtype."""
    try:
        traced(function, *args)
    except DtypeError as error:
        return "not supported" in str(error) or "does not take" in str(error)
    return False

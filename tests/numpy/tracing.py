"""Running a NumPy function through a trace and the interpreter of the IR."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import optree

from fnad.ir.types import Aval, aval_of
from fnad.numpy.operands import PYTHON_DTYPES
from fnad.trace.handle import Handle
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret


def is_weak(value: Any) -> bool:
    return type(value) in PYTHON_DTYPES


def traced(function: Any, *args: Any) -> Any:
    """Return what the function returns when it is traced on all its arguments, and which results were scalars."""
    avals = [Aval(PYTHON_DTYPES[type(a)]) if is_weak(a) else aval_of(np.asarray(a)) for a in args]
    found: dict[str, Any] = {}

    def call(leaves: Any) -> Any:
        results, found["tree"] = optree.tree_flatten(function(*leaves))
        found["scalars"] = [r.is_scalar if isinstance(r, Handle) else np.ndim(r) == 0 for r in results]
        return results

    program = trace_function(call, avals, name="f", weak=[is_weak(a) for a in args])
    inputs = [np.asarray(a, aval.dtype) for a, aval in zip(args, avals, strict=True)]
    outputs = interpret(program.program, [*inputs, *program.captured])
    for output, aval in zip(outputs, program.program.out_avals, strict=True):
        assert output.dtype == aval.dtype
        assert output.shape == aval.shape
    return optree.tree_unflatten(found["tree"], outputs), found["scalars"]


TOLERANCE = {np.dtype(t): eps for t, eps in (("f4", 1e-6), ("c8", 1e-6), ("f8", 4e-15), ("c16", 4e-15))}


def assert_same(actual: Any, expected: Any) -> None:
    """Check dtype, shape and value: exactly for integers and bools, else to a few ulps of the largest element."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    tolerance = TOLERANCE.get(expected.dtype)
    if tolerance is None:
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(actual, expected, rtol=tolerance * 4, atol=tolerance, equal_nan=True)


def check(function: Any, *args: Any) -> None:
    """Compare a traced function with NumPy: values, dtypes, shapes, scalars against arrays of no dimensions."""
    with np.errstate(all="ignore"):
        expected, tree = optree.tree_flatten(function(*copy.deepcopy(args)))
        actual, scalars = traced(function, *args)
    for a, e, is_scalar in zip(optree.tree_leaves(actual), expected, scalars, strict=True):
        assert_same(a, e)
        assert is_scalar == (not isinstance(e, np.ndarray)), (is_scalar, type(e))
    assert optree.tree_structure(actual) == tree

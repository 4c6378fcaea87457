"""Derivatives of array functions: forward mode against central differences of NumPy's own, reverse against forward."""

import warnings

import numpy as np
import optree
import pytest

from fnad.ir.types import aval_of
from fnad.testing import assert_close, check_transposed, direction, precision, pushforward
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret
from tests.numpy.calls import CASES, EINSUM

EINSUM_CASES = {text: (lambda *xs, text=text: np.einsum(text, *xs), *xs) for text, *xs in EINSUM}


def is_smooth(case):
    return all(np.asarray(x).dtype in (np.float64, np.complex128) and np.isfinite(x).all() for x in case[1:])


DIFFERENTIABLE = {name: case for name, case in (CASES | EINSUM_CASES).items() if is_smooth(case)}


def inexact(values):
    return [np.asarray(v) for v in optree.tree_leaves(values) if np.asarray(v).dtype.kind in "fc"]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivative(name):
    function, *xs = DIFFERENTIABLE[name]
    xs = [np.asarray(x) for x in xs]
    traced = trace_function(lambda leaves: optree.tree_leaves(function(*leaves)), list(map(aval_of, xs)), name="f")
    program = traced.program
    captured = [np.zeros_like(c) if c.dtype.kind in "fc" else None for c in traced.captured]
    dxs = [direction(aval_of(x), seed) for seed, x in enumerate(xs)]

    def moved(h):
        with warnings.catch_warnings(action="ignore"):
            return inexact(function(*[x + h * dx for x, dx in zip(xs, dxs, strict=True)]))

    h = 1e-4
    found = pushforward(interpret, program, [*xs, *traced.captured], [*dxs, *[c for c in captured if c is not None]])
    for tangent, up, down, far, low in zip(found, moved(h), moved(-h), moved(2 * h), moved(-2 * h), strict=True):
        allowed = precision(up.dtype) / h**2
        assert_close(tangent, (8 * (up - down) - (far - low)) / (12 * h), allowed, scale=1e-2)
    check_transposed(interpret, program, [*xs, *traced.captured])

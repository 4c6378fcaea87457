"""What cancels out of the results gets no derivative; what does not, keeps it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fnad
from fnad.ir.types import aval_of
from fnad.ops.autodiff import stop_gradient
from fnad.trace.tracing import trace_function
from fnad.transforms.cancellation import without_cancelled

X = np.random.default_rng(0).standard_normal((3, 4))
C = np.random.default_rng(1).standard_normal((3, 4))
V = np.random.default_rng(2).standard_normal((4, 2))


def logsumexp(x: Any) -> Any:
    largest = np.max(x)
    return largest + np.log(np.sum(np.exp(x - largest)))


def logsumexp_of_rows(x: Any) -> Any:
    largest = x.max(axis=1)
    return np.sum(np.sin(largest + np.log(np.exp(x - largest[:, None]).sum(1))))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(1, keepdims=True))
    return np.sum(C * (e / e.sum(1, keepdims=True)) ** 2)


def cross_entropy_of_columns(x: Any) -> Any:
    shifted = (x.T - x.max(0)[:, None]) / 3.0
    return np.mean(np.log(np.exp(shifted).sum(1)) - shifted[:, 1])


def attention(x: Any) -> Any:
    e = np.exp(x - x.max(1)[:, None])
    return np.sum(np.tanh(e @ V / e.sum(1)[:, None]))


def attention_in_blocks(x: Any) -> Any:
    first = x[:, :2].max(1)
    e = np.exp(x[:, :2] - first[:, None])
    largest = np.maximum(first, x[:, 2:].max(1))
    rest, scale = np.exp(x[:, 2:] - largest[:, None]), np.exp(first - largest)
    total = e.sum(1) * scale + rest.sum(1)
    return np.sum(np.cos(((e @ V[:2]) * scale[:, None] + rest @ V[2:]) / total[:, None]))


def spread(x: Any) -> Any:
    """The geometric mean of two exponentials in the place of their sum, and a mean in the place of the maximum."""
    e = np.exp(x - np.mean(x))
    return np.mean(x) + np.log(np.sqrt(np.sum(e[0]) * np.sum(e[1])))


def cross_entropy_by_labels(x: Any) -> Any:
    shifted = x - x.max(1, keepdims=True)
    return np.sum(np.sin(np.log(np.exp(shifted).sum(1)) - shifted[np.arange(3), [2, 0, 3]]))


def of_labels_of_columns(x: Any) -> Any:
    e = np.exp(x - x.max(0))
    return np.sum(np.cos(e[[[2], [0], [1], [2]], np.arange(4)[:, None]][:, 0] / e.sum(0)))


def not_added(x: Any) -> Any:
    return np.log(np.sum(np.exp(x - np.max(x))))


def added_twice(x: Any) -> Any:
    return logsumexp(x) + np.max(x)


def of_another_axis(x: Any) -> Any:
    e = np.exp(x - x.max(0))
    return np.sum(C * e / e.sum(1, keepdims=True))


def of_labels_of_other_rows(x: Any) -> Any:
    shifted = x - x.max(1, keepdims=True)
    return np.sum(np.sin(np.log(np.exp(shifted).sum(1)) - shifted[[2, 0, 1], [2, 0, 3]]))


def of_a_number(x: Any) -> Any:
    return np.exp(x[0, 0] - x[1, 1]) + np.exp(x[1, 2])


def in_a_sum(x: Any) -> Any:
    e = np.exp(x - np.max(x))
    return np.log(np.sum(e) + 1.0) + np.max(x)


def weighted(x: Any) -> Any:
    """The weights add up to 1, which the program does not say."""
    shifted, weights = x - x.max(0), np.abs(C) / np.abs(C).sum(0)
    return np.mean(np.log(np.exp(shifted).sum(0)) - (weights * shifted).sum(0))


CANCELLED = (
    logsumexp,
    logsumexp_of_rows,
    softmax,
    cross_entropy_of_columns,
    attention,
    attention_in_blocks,
    spread,
    cross_entropy_by_labels,
    of_labels_of_columns,
)
KEPT = (weighted, not_added, added_twice, of_another_axis, of_labels_of_other_rows, of_a_number, in_a_sum)


def stops(function: Any) -> int:
    program = trace_function(lambda leaves: [function(*leaves)], [aval_of(X)], name="f").program
    program = without_cancelled(program)
    return sum(equation.primitive is stop_gradient for equation in program.equations)


def by_complex_step(function: Any) -> Any:
    steps = 1e-40j * np.eye(X.size).reshape(-1, *X.shape)
    return np.array([function(X + step).imag for step in steps]).reshape(X.shape) / 1e-40


@pytest.mark.parametrize("function", CANCELLED)
def test_what_cancels_is_a_constant(function: Any) -> None:
    assert stops(function) >= 1
    np.testing.assert_allclose(fnad.grad(function)(X), by_complex_step(function), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("function", KEPT)
def test_what_does_not_cancel_keeps_its_derivative(function: Any) -> None:
    assert stops(function) == 0
    np.testing.assert_allclose(fnad.grad(function)(X), by_complex_step(function), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_cancelled_sums_of_empty_arrays_have_a_gradient(shape: tuple[int, int]) -> None:
    def f(x: Any) -> Any:
        centred = x - np.sum(x, axis=1, keepdims=True)
        return np.sum(np.sum(centred, axis=1)) + np.sum(np.exp(centred))

    assert fnad.grad(f)(np.ones(shape)).shape == shape

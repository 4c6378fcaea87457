"""Products on a device that scale what they compute and add it to an array, by alpha and beta of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from tests.gpu import Simulated, simulated

DRAWN = np.random.default_rng(0)
SIZE = 20
W, A, B = DRAWN.standard_normal((3, SIZE, SIZE))
STACKS = DRAWN.standard_normal((2, 3, SIZE, SIZE))

Args = tuple[Any, ...]
Case = tuple[Callable[..., Any], Args, list[tuple[float, float]]]


@pytest.fixture
def device() -> Iterator[Simulated]:
    with simulated() as device:
        yield device


def in_loop(body: Callable[..., Any]) -> Callable[..., Any]:
    return lambda w, a, b: fnad.fori_loop(0, 3, lambda i, c: body(c, a[i], b[i]), w)


def descent(w: Any, x: Any, y: Any) -> Any:
    return fnad.fori_loop(0, 3, lambda i, w: w - 0.125 * (x.T @ np.tanh(x @ w - y)), w)


def of_two(p: Any, x: Any) -> Any:
    """A step of descent, in which the first gradient is computed last."""
    loss = fnad.grad(lambda p: np.sum(np.tanh(np.tanh(x @ p[0]) @ p[1])))
    return [w - 0.25 * g for w, g in zip(p, loss(p), strict=True)]


KEEP = (1.0, 0.0)
SCALED: dict[str, Case] = {
    "a factor": (lambda a, b: 3.0 * (a @ b), (A, B), [(3, 0)]),
    "factors and signs": (lambda a, b: -(2.0 * -(0.5 * (a @ b.T))) * 3.0, (A, B), [(3, 0)]),
    "stacked": (lambda a, b: (a @ b) * 0.5, tuple(STACKS), [(0.5, 0)]),
    "a sum": (lambda a, b: a @ b - 2.0 * (b.T @ a), (A, B), [KEEP, (-2, 1)]),
    "a sum of stacked ones": (lambda a, b: a @ b - b @ a, tuple(STACKS), [KEEP, (-1, 1)]),
    "in a loop": (in_loop(lambda c, a, b: c + a @ b), (W, *STACKS), [(1, 1)] * 3),
    "in a loop, decaying": (in_loop(lambda c, a, b: 0.5 * c - a.T @ b.T), (W, *STACKS), [(-1, 0.5)] * 3),
    "two in a loop": (in_loop(lambda c, a, b: c + a @ b + 2.0 * (b @ a)), (W, *STACKS), [(1, 1), (2, 1)] * 3),
    "descent": (descent, (W, A, B), [KEEP, (-0.125, 1)] * 3),
}
GIVEN: dict[str, Case] = {
    "descent": (lambda w, a, b: w - 0.1 * (a.T @ b), (W, A, B), [(-0.1, 1)]),
    "decay": (lambda w, a, b: 0.9 * w + a @ b, (W, A, B), [(1, 0.9)]),
    "two": (lambda w, a, b: a @ b + (w - b @ a), (W, A, B), [(1, 1), (-1, 1)]),
    "a loop": (descent, (W, A, B), [KEEP, (-0.125, 1)] * 3),
}
AS_BEFORE: dict[str, Case] = {
    "what it is added to is not given": (lambda w, a, b: w + a @ b, (W, A, B), [KEEP]),
    "read elsewhere": (lambda a, b: ((t := a @ b) * 2.0, t), (A, B), [KEEP]),
    "read twice": (lambda a, b: (t := a @ b) + 2.0 * t.T, (A, B), [KEEP]),
    "transposed": (in_loop(lambda c, a, b: c + (a @ b)[:, ::-1]), (W, *STACKS), [KEEP] * 3),
    "an operand is the accumulator": (in_loop(lambda c, a, b: c + c @ a / 4), (W, *STACKS), [KEEP] * 3),
    "a factor of an array": (lambda a, b: (a @ b) * b[0, 0], (A, B), [KEEP]),
    "zero times it": (lambda a, b: 0.0 * (a @ b), (A * np.inf, B), [KEEP]),
    "zero times a sum": (in_loop(lambda c, a, b: 0.0 * c + a @ b), (W * np.inf, *STACKS), [KEEP] * 3),
    "an infinite factor": (lambda a, b: np.inf * (a @ b), (A, B), [KEEP]),
    "complex": (in_loop(lambda c, a, b: c + a @ b), (W * np.inf, *(STACKS * 1j)), [KEEP] * 3),
    "more than a sum": (in_loop(lambda c, a, b: np.tanh(c + a @ b)), (W, *STACKS), [KEEP] * 3),
    "only a part": (lambda a, b: (a @ b)[:5] * 2.0, (A, B), [KEEP]),
    "of integers": (in_loop(lambda c, a, b: c + a @ b), (W.astype(int), *STACKS.astype(int)), []),
}


def check(device: Simulated, case: Case, dtype: Any, *, given: bool = False) -> None:
    f, args, scales = case
    args = tuple(x.astype(dtype) if x.dtype == np.float64 else x for x in args)
    jitted = fnad.jit(f, device="cuda", donate_argnums=(0,) if given else ())
    device.scales.clear()
    with np.errstate(all="ignore"):
        wanted = f(*args)
        found = fnad.to_host(jitted(*fnad.to_device(args)))
    tolerance = 1e-4 if np.dtype(dtype) == np.float32 else 1e-12
    for x, y in zip(fnad.tree.leaves(found), fnad.tree.leaves(wanted), strict=True):
        assert x.dtype == np.asarray(y).dtype
        assert_allclose(x, y, tolerance, tolerance)
    assert_allclose(np.reshape(device.scales, (-1, 2)), np.reshape(scales, (-1, 2)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SCALED)
def test_a_product_is_scaled_and_added_by_the_library(device: Simulated, name: str, dtype: Any) -> None:
    check(device, SCALED[name], dtype)


@pytest.mark.parametrize("name", GIVEN)
def test_a_product_is_added_to_an_argument_that_is_given(device: Simulated, name: str) -> None:
    check(device, GIVEN[name], np.float64, given=True)
    launches = device.calls.count("launch")
    assert launches == (3 if name == "a loop" else 0)


@pytest.mark.parametrize("name", AS_BEFORE)
def test_other_products_are_as_they_were(device: Simulated, name: str) -> None:
    check(device, AS_BEFORE[name], np.float64)


def test_an_argument_that_is_given_and_read_elsewhere_is_copied(device: Simulated) -> None:
    w, a = fnad.to_device((W, A))
    f = fnad.jit(lambda w, x, a: w - 0.5 * (x @ a), device="cuda", donate_argnums=0)
    assert_allclose(fnad.to_host(f(w, w, a)), W - 0.5 * (W @ A), 1e-12)
    late = fnad.jit(lambda w, a: (v := w + a @ a, v.sum() + np.sum(w * w.T)), device="cuda", donate_argnums=0)
    found, total = fnad.to_host(late(fnad.to_device(W), a))
    assert_allclose(found, W + A @ A, 1e-12)
    assert_allclose(total, np.sum(W + A @ A) + np.sum(W * W.T), 1e-12)


def test_a_stack_that_is_given_is_changed_in_place_by_a_kernel(device: Simulated) -> None:
    f = fnad.jit(lambda w, a, b: w + a @ b, device="cuda", donate_argnums=0)
    w, *args = fnad.to_device((STACKS[0] + 1, *STACKS))
    found = f(w, *args)
    assert found is w
    assert_allclose(fnad.to_host(found), STACKS[0] + 1 + STACKS[0] @ STACKS[1], 1e-12)


def test_a_step_of_several_layers_changes_each_when_nobody_reads_it_any_more(device: Simulated) -> None:
    wanted = of_two([W, B], A)
    found = fnad.jit(of_two, device="cuda", donate_argnums=0)(fnad.to_device([W, B]), fnad.to_device(A))
    for x, y in zip(fnad.to_host(found), wanted, strict=True):
        assert_allclose(x, y, 1e-12, 1e-12)
    assert device.scales.count((-0.25, 1)) == 2


def test_a_gradient_in_a_loop_is_summed_by_products(device: Simulated) -> None:
    def loss(w: Any, xs: Any) -> Any:
        return np.sum(fnad.scan(lambda h, x: (np.tanh(h @ w + x), None), xs[0], xs)[0] ** 2)

    found = fnad.to_host(fnad.jit(fnad.grad(loss), device="cuda")(*fnad.to_device((W / 4, STACKS[0]))))
    step = 1e-6 * B
    slope = (loss(W / 4 + step, STACKS[0]) - loss(W / 4 - step, STACKS[0])) / 2e-6
    assert_allclose(np.sum(found * B), slope, 1e-6)
    assert device.scales.count((1, 1)) == 3


def test_iterations_behind_the_end_of_a_loop_add_nothing(device: Simulated) -> None:
    def f(w: Any, a: Any) -> Any:
        return fnad.while_loop(lambda c: c[1] < 5, lambda c: (c[0] + a @ a, c[1] + 1), (w, 0))[0]

    found = fnad.to_host(fnad.jit(f, device="cuda")(*fnad.to_device((W, A))))
    assert_allclose(found, f(W, A), 1e-12)
    assert {*device.scales} == {KEEP}


def test_a_product_that_is_only_scaled_reads_nothing_of_its_result(device: Simulated) -> None:
    f = fnad.jit(lambda a, b: 2.0 * (a @ b), device="cuda")
    args = fnad.to_device((A, B))
    first = fnad.to_host(f(*args))
    assert np.isfinite(first).all()
    assert_array_equal(fnad.to_host(f(*args)), first)

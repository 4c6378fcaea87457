"""k-means by Newton's method: the gradient in the centres, divided by the diagonal Hessian, of squared distances."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

SIZES = ((10, 10_000, 8), (100, 10_000, 16), (1000, 10_000, 16))  # centres, points, dimensions
BLOCK = 128


def cost(np: Any, points: Any, centres: Any) -> Any:
    """Return the sum over points of the squared distance from the nearest centre."""
    squares = np.sum(points**2, axis=1)[:, None] + np.sum(centres**2, axis=1) - 2 * points @ centres.T
    return np.sum(np.min(squares, axis=1))


def cost_by_torch(torch: Any, points: Any, centres: Any) -> Any:
    squares = (points**2).sum(1)[:, None] + (centres**2).sum(1) - 2 * points @ centres.T
    return squares.min(1).values.sum()


def step_by_hand(native: Any) -> Any:
    """One GEMM a block of points; the nearest centre is kept, and the points are added up by it."""
    gemm = native.gemm

    @native.njit
    def step(points, centres):
        (n, d), k = points.shape, centres.shape[0]
        counts, sums, halves = np.zeros(k), np.zeros((k, d)), np.empty(k)
        for j in range(k):
            halves[j] = 0.5 * (centres[j] ** 2).sum()
        products, least, nearest = np.empty((k, BLOCK)), np.empty(BLOCK), np.empty(BLOCK, np.int64)
        for start in range(0, n, BLOCK):
            block = points[start : start + BLOCK]
            size = block.shape[0]
            products = products if size == BLOCK else np.empty((k, size))
            gemm(1.0, centres, False, block, True, 0.0, products)
            for i in range(size):
                least[i], nearest[i] = np.inf, 0
            for j in range(k):
                row, half = products[j], halves[j]
                for i in range(size):
                    distance = half - row[i]
                    closer = distance < least[i]
                    least[i] = distance if closer else least[i]
                    nearest[i] = j if closer else nearest[i]
            for i in range(size):
                counts[nearest[i]] += 1
                for j in range(d):
                    sums[nearest[i], j] += block[i, j]
        for j in range(k):
            for i in range(d):
                sums[j, i] = centres[j, i] - sums[j, i] / counts[j]
        return sums

    return step


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for k, n, d in SIZES:
        points = rng.standard_normal((n, d))
        arguments = points, points[rng.choice(n, k, replace=False)] + 0.01
        yield Case(f"k = {k}, n = {n}, d = {d}", contenders(*arguments), tolerance=1e-9, rounds=11)


def contenders(points: np.ndarray, centres: np.ndarray) -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        @fnad.jit
        def step(points: np.ndarray, centres: np.ndarray) -> Any:
            gradient, curvature = fnad.jvp(fnad.grad(partial(cost, np, points)), (centres,), (np.ones_like(centres),))
            return gradient / curvature

        return lambda: step(points, centres)

    def with_jax(jax: Any) -> Thunk:
        @jax.jit
        def step(points: Any, centres: Any) -> Any:
            gradient = jax.grad(partial(cost, jax.numpy, points))
            slope, curvature = jax.jvp(gradient, (centres,), (jax.numpy.ones_like(centres),))
            return slope / curvature

        arrays = [jax.numpy.asarray(points), jax.numpy.asarray(centres)]
        return lambda: jax.block_until_ready(step(*arrays))

    def with_torch(torch: Any) -> Thunk:
        given, variable = torch.from_numpy(points), torch.from_numpy(centres).requires_grad_()

        def step() -> Any:
            (gradient,) = torch.autograd.grad(cost_by_torch(torch, given, variable), variable, create_graph=True)
            (curvature,) = torch.autograd.grad(gradient.sum(), variable)
            return (gradient / curvature).detach()

        return step

    def with_autograd(autograd: Any) -> Thunk:
        gradient = autograd.grad(partial(cost, autograd.numpy, points))
        curvature = autograd.grad(lambda centres: autograd.numpy.sum(gradient(centres)))
        return lambda: gradient(centres) / curvature(centres)

    def by_hand(native: Any) -> Thunk:
        step = step_by_hand(native)
        return lambda: step(points, centres)

    return [
        Call("fnad jit", "fnad", with_fnad),
        Call("JAX jit", "jax", with_jax),
        Call("PyTorch eager", "torch", with_torch),
        Call("autograd", "autograd", with_autograd),
        Call("Numba by hand", "numba", by_hand),
    ]

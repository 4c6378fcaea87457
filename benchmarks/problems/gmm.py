"""The log-posterior of a Gaussian mixture with precision factors and a Wishart prior; and its gradient."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.case import Case
from benchmarks.gradients import contenders

SIZES = ((10, 25, 1000), (32, 25, 1000), (64, 100, 1000))  # dimensions, components, points
GAMMA, EXCESS = 1.0, 0  # of the Wishart prior


def places(d: int) -> np.ndarray:
    """Return where each element of a factor is among its diagonal, what is below it by columns, and a zero."""
    index = np.full((d, d), d * (d + 1) // 2)
    index[np.diag_indices(d)] = np.arange(d)
    index.T[np.triu_indices(d, 1)] = np.arange(d, d * (d + 1) // 2)
    return index


def log_posterior(np: Any, weights: Any, means: Any, factors: Any, points: Any) -> Any:
    (n, d), k = points.shape, len(weights)
    logs, below = factors[:, :d], factors[:, d:]
    diagonals = np.exp(logs)
    q = np.concatenate([diagonals, below, np.zeros((k, 1))], axis=1)[:, places(d)]
    scaled = np.matmul(points - means[:, None], np.swapaxes(q, 1, 2))
    terms = weights[:, None] + np.sum(logs, axis=1)[:, None] - 0.5 * np.sum(scaled**2, axis=2)
    prior = 0.5 * GAMMA**2 * (np.sum(diagonals**2) + np.sum(below**2)) - EXCESS * np.sum(logs)
    return np.sum(logsumexp(np, terms)) - n * logsumexp(np, weights) + prior + constant(n, d, k)


def logsumexp(np: Any, x: Any) -> Any:
    """Return log Σ exp x over the first axis."""
    largest = np.max(x, axis=0)
    return largest + np.log(np.sum(np.exp(x - largest), axis=0))


def constant(n: int, d: int, k: int) -> float:
    """Return what does not depend on the parameters: the Gaussians' and Wishart's normalization."""
    freedom = d + EXCESS + 1
    log_gammas = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma((freedom - j) / 2) for j in range(d))
    return -0.5 * n * d * math.log(2 * math.pi) - k * (freedom * d * (math.log(GAMMA) - 0.5 * math.log(2)) - log_gammas)


def by_torch(torch: Any, weights: Any, means: Any, factors: Any, points: Any) -> Any:
    (n, d), k = points.shape, len(weights)
    logs, below = factors[:, :d], factors[:, d:]
    diagonals = torch.exp(logs)
    q = torch.cat([diagonals, below, torch.zeros((k, 1), dtype=logs.dtype)], dim=1)[:, torch.from_numpy(places(d))]
    scaled = (points - means[:, None]) @ q.mT
    terms = weights[:, None] + logs.sum(1)[:, None] - 0.5 * (scaled**2).sum(2)
    prior = 0.5 * GAMMA**2 * ((diagonals**2).sum() + (below**2).sum()) - EXCESS * logs.sum()
    likelihood = torch.logsumexp(terms, 0).sum() - n * torch.logsumexp(weights, 0)
    return likelihood + prior + constant(n, d, k)


def by_hand(native: Any) -> Any:
    """Two GEMMs a component: y = (x - μ) Q', and of Q the cotangent y' r (x - μ), where r is the share of the point."""
    exp, log, gemm = native.exp, native.log, native.gemm

    @native.njit
    def value_and_gradient(weights, means, q, factors, points, index):
        (n, d), k = points.shape, weights.size
        scaled, centered, terms = np.empty((k, n, d)), np.empty((n, d)), np.empty((k, n))
        for c in range(k):
            center(points, means[c], centered)
            gemm(1.0, centered, False, q[c], True, 0.0, scaled[c])
            offset = weights[c] + factors[c, :d].sum()
            for i in range(n):
                total = 0.0
                for j in range(d):
                    total += scaled[c, i, j] * scaled[c, i, j]
                terms[c, i] = offset - 0.5 * total
        value = shares(terms)
        columns, of_weights = weights.copy().reshape(k, 1), np.empty(k)
        value -= n * shares(columns)
        of_means, of_factors, of_q, sums = np.empty((k, d)), np.empty_like(factors), np.empty((d, d)), np.empty(d)
        for c in range(k):
            center(points, means[c], centered)
            share = terms[c].sum()
            of_weights[c] = share - n * columns[c, 0]
            sums[:] = 0.0
            for i in range(n):
                for j in range(d):
                    scaled[c, i, j] *= terms[c, i]
                    sums[j] += scaled[c, i, j]
            gemm(-1.0, scaled[c], True, centered, False, 0.0, of_q)
            of_means[c] = 0.0
            for i in range(d):
                for j in range(i + 1):
                    of_means[c, j] += sums[i] * q[c, i, j]
                    of_factors[c, index[i, j]] = of_q[i, j] + GAMMA**2 * q[c, i, j]
            for j in range(d):
                of_factors[c, j] = of_factors[c, j] * q[c, j, j] + share - EXCESS
            value += 0.5 * GAMMA**2 * (q[c] ** 2).sum() - EXCESS * factors[c, :d].sum()
        return value, of_weights, of_means, of_factors

    @native.njit
    def center(points, mean, out):
        for i in range(points.shape[0]):
            for j in range(mean.size):
                out[i, j] = points[i, j] - mean[j]

    @native.njit
    def shares(terms):
        """Turn `terms` into their softmax over the first axis, and return the sum of their logsumexp."""
        largest, total = terms[0].copy(), np.zeros(terms.shape[1])
        for c in range(1, terms.shape[0]):
            for i in range(total.size):
                largest[i] = max(largest[i], terms[c, i])
        for c in range(terms.shape[0]):
            for i in range(total.size):
                terms[c, i] = exp(terms[c, i] - largest[i])
                total[i] += terms[c, i]
        value = 0.0
        for i in range(total.size):
            value += largest[i] + log(total[i])
            total[i] = 1.0 / total[i]
        for c in range(terms.shape[0]):
            for i in range(total.size):
                terms[c, i] *= total[i]
        return value

    @native.njit
    def unpacked(factors, index):
        k, d = len(factors), len(index)
        q = np.zeros((k, d, d))
        for c in range(k):
            for i in range(d):
                q[c, i, i] = np.exp(factors[c, i])
                for j in range(i):
                    q[c, i, j] = factors[c, index[i, j]]
        return q

    def run(weights: Any, means: Any, factors: Any, points: Any) -> Any:
        index = places(points.shape[1])
        value, *gradient = value_and_gradient(weights, means, unpacked(factors, index), factors, points, index)
        return value + constant(*points.shape, weights.size), *gradient

    return run


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for d, k, n in SIZES:
        factors = 0.3 * rng.standard_normal((k, d * (d + 1) // 2)) / math.sqrt(d)
        arguments = rng.standard_normal(k), rng.standard_normal((k, d)), factors, rng.standard_normal((n, d))
        title = f"d = {d}, k = {k}, n = {n}"
        yield Case(title, contenders(log_posterior, arguments, by_torch, by_hand, wanted=3), tolerance=1e-9, rounds=11)

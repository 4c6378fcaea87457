"""A tanh recurrence of 16 units over 20,000 steps: the mean squared error of its readings, and the gradient of that.

The function is one text for NumPy with `fnad.scan` and for `jax.numpy` with `jax.lax.scan`.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

STEPS, INPUTS, UNITS = 20_000, 4, 16

Parameters = dict[str, np.ndarray]


def loss(np: Any, scan: Any, parameters: Parameters, xs: Any, targets: Any) -> Any:
    """Return the mean of (v · h - target)² over h' = tanh(h W + x U + b)."""

    def step(h: Any, x: Any) -> tuple[Any, Any]:
        h = np.tanh(h @ parameters["W"] + x @ parameters["U"] + parameters["b"])
        return h, h @ parameters["v"]

    _, readings = scan(step, np.zeros_like(parameters["b"]), xs)
    return np.mean((readings - targets) ** 2)


def inputs(dtype: type) -> tuple[Parameters, np.ndarray, np.ndarray]:
    """Return parameters for which neither states nor cotangents vanish, a signal, and that signal delayed."""
    rng = np.random.default_rng(0)
    orthogonal = np.linalg.qr(rng.standard_normal((UNITS, UNITS)))[0]
    parameters = {
        "W": 0.95 * orthogonal,
        "U": rng.standard_normal((INPUTS, UNITS)) / np.sqrt(INPUTS),
        "b": 0.1 * rng.standard_normal(UNITS),
        "v": rng.standard_normal(UNITS) / np.sqrt(UNITS),
    }
    xs = 0.5 * rng.standard_normal((STEPS, INPUTS))
    targets = np.roll(xs[:, 0], 3)
    return {name: array.astype(dtype) for name, array in parameters.items()}, xs.astype(dtype), targets.astype(dtype)


def cases() -> Iterator[Case]:
    for dtype, tolerance in ((np.float64, 1e-10), (np.float32, 1e-3)):
        title = f"value and gradient, {np.dtype(dtype).name}"
        yield Case(title, contenders(*inputs(dtype)), tolerance, rounds=11, per=(STEPS, "step"))


def contenders(parameters: Parameters, xs: np.ndarray, targets: np.ndarray) -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        value_and_grad = fnad.jit(fnad.value_and_grad(partial(loss, np, fnad.scan)))
        return lambda: value_and_grad(parameters, xs, targets)

    def with_jax(jax: Any) -> Thunk:
        value_and_grad = jax.jit(jax.value_and_grad(partial(loss, jax.numpy, jax.lax.scan)))
        arguments = jax.tree.map(jax.numpy.asarray, (parameters, xs, targets))
        return lambda: jax.block_until_ready(value_and_grad(*arguments))

    def by_hand(native: Any) -> Thunk:
        value_and_grad = hand_written(native)

        def run() -> tuple[Any, Parameters]:
            value, *gradient = value_and_grad(*(parameters[name] for name in "WUbv"), xs, targets)
            return xs.dtype.type(value), dict(zip("WUbv", gradient, strict=True))

        return run

    return [
        Call("fnad jit and scan", "fnad", with_fnad),
        Call("JAX jit and scan", "jax", with_jax),
        Call("Numba by hand", "numba", by_hand),
    ]


def hand_written(native: Any) -> Any:
    """Return value and gradient with all that does not recur outside of the loops, as products of matrices."""
    tanh, gemm = native.tanh, native.gemm

    @native.njit
    def value_and_grad(w, u, b, v, xs, targets):
        zero, one = b.dtype.type(0), b.dtype.type(1)
        steps, units = xs.shape[0], b.size
        states = np.empty((steps + 1, units), b.dtype)
        states[0] = zero
        gemm(one, xs, False, u, False, zero, states[1:])
        for t in range(steps):
            advance(states[t], w, b, states[t + 1])

        errors = states[1:] @ v - targets
        value = np.mean(errors**2)
        errors *= b.dtype.type(2 / steps)

        slopes = np.empty((steps, units), b.dtype)
        transposed = np.ascontiguousarray(w.T)
        carried = np.zeros(units, b.dtype)
        for t in range(steps - 1, -1, -1):
            go_back(errors[t], v, states[t + 1], transposed, slopes[t], carried)

        w_ct, u_ct, b_ct = np.empty_like(w), np.empty_like(u), np.zeros_like(b)
        gemm(one, states[:-1], True, slopes, False, zero, w_ct)
        gemm(one, xs, True, slopes, False, zero, u_ct)
        for t in range(steps):
            b_ct += slopes[t]
        return value, w_ct, u_ct, b_ct, states[1:].T @ errors

    @native.njit
    def advance(state, w, b, out):
        """Turn `out`, which holds the input's share, into the next state."""
        out += b
        for i in range(state.size):
            for j in range(out.size):
                out[j] += state[i] * w[i, j]
        for j in range(out.size):
            out[j] = tanh(out[j])

    @native.njit
    def go_back(error, v, state, transposed, slope, carried):
        """Set `slope` to the cotangent before tanh, and `carried` to that of the state before."""
        for j in range(slope.size):
            slope[j] = (carried[j] + error * v[j]) * (1 - state[j] * state[j])
            carried[j] = 0
        for j in range(slope.size):
            for i in range(carried.size):
                carried[i] += slope[j] * transposed[j, i]

    return value_and_grad

"""An epoch of a 64-128-10 tanh MLP with softmax cross-entropy: 28 SGD steps on batches of 64, f32, bound by GEMM."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

STEPS, BATCH, INPUTS, HIDDEN, CLASSES = 28, 64, 64, 128, 10
RATE = np.float32(0.1)

Parameters = dict[str, np.ndarray]


def loss(parameters: Parameters, x: np.ndarray, y: np.ndarray) -> Any:
    hidden = np.tanh(x @ parameters["W1"] + parameters["b1"])
    logits = hidden @ parameters["W2"] + parameters["b2"]
    logits = logits - np.max(logits, axis=1, keepdims=True)
    log_probabilities = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
    return -np.mean(np.sum(y * log_probabilities, axis=1))


def initial_parameters() -> Parameters:
    """Return weights of variance 1 / fan-in and biases of zero."""
    rng = np.random.default_rng(0)
    return {
        "W1": (rng.standard_normal((INPUTS, HIDDEN)) / np.sqrt(INPUTS)).astype(np.float32),
        "b1": np.zeros(HIDDEN, np.float32),
        "W2": (rng.standard_normal((HIDDEN, CLASSES)) / np.sqrt(HIDDEN)).astype(np.float32),
        "b2": np.zeros(CLASSES, np.float32),
    }


def batches() -> tuple[np.ndarray, np.ndarray]:
    """Return the epoch's inputs f32[28,64,64] and one-hot targets f32[28,64,10]."""
    rng = np.random.default_rng(1)
    labels = rng.integers(CLASSES, size=(STEPS, BATCH))
    return rng.standard_normal((STEPS, BATCH, INPUTS), np.float32), np.eye(CLASSES, dtype=np.float32)[labels]


def jax_loss(jax: Any, parameters: Parameters, x: Any, y: Any) -> Any:
    """Return `loss` as JAX's users write it."""
    hidden = jax.numpy.tanh(x @ parameters["W1"] + parameters["b1"])
    logits = hidden @ parameters["W2"] + parameters["b2"]
    return -jax.numpy.mean(jax.numpy.sum(y * jax.nn.log_softmax(logits), axis=1))


def jax_step(jax: Any) -> Any:
    """Return a step of gradient descent as JAX's users write it."""
    gradient = jax.grad(lambda parameters, x, y: jax_loss(jax, parameters, x, y))

    def step(parameters: Any, x: Any, y: Any) -> Any:
        return jax.tree.map(lambda p, g: p - RATE * g, parameters, gradient(parameters, x, y))

    return step


def cases() -> Iterator[Case]:
    problem = initial_parameters(), *batches()
    yield Case("epoch of 28 steps", step_by_step(*problem), tolerance=1e-4)
    yield Case("epoch in one call", in_one_call(*problem), tolerance=1e-4)


def step_by_step(start: Parameters, xs: np.ndarray, ys: np.ndarray) -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        @fnad.jit
        def step(parameters: Parameters, x: np.ndarray, y: np.ndarray) -> Parameters:
            gradient = fnad.grad(loss)(parameters, x, y)
            return {name: parameters[name] - RATE * gradient[name] for name in parameters}

        return lambda: epoch(step, start, xs, ys)

    def with_jax(jax: Any) -> Thunk:
        step = jax.jit(jax_step(jax))
        data = jax.tree.map(jax.numpy.asarray, (start, list(xs), list(ys)))
        return lambda: jax.block_until_ready(epoch(step, *data))

    def with_torch(torch: Any) -> Thunk:
        parameters = {name: torch.from_numpy(value.copy()).requires_grad_() for name, value in start.items()}
        optimizer = torch.optim.SGD(parameters.values(), lr=float(RATE))
        inputs, labels = torch.from_numpy(xs), torch.from_numpy(ys.argmax(axis=2))

        def train() -> Any:
            with torch.no_grad():
                for name, value in parameters.items():
                    value.copy_(torch.from_numpy(start[name]))
            for x, y in zip(inputs, labels, strict=True):
                optimizer.zero_grad()
                hidden = torch.tanh(x @ parameters["W1"] + parameters["b1"])
                logits = hidden @ parameters["W2"] + parameters["b2"]
                torch.nn.functional.cross_entropy(logits, y).backward()
                optimizer.step()
            return {name: value.detach() for name, value in parameters.items()}

        return train

    def with_autograd(autograd: Any) -> Thunk:
        anp = autograd.numpy

        def autograd_loss(parameters: Parameters, x: Any, y: Any) -> Any:
            hidden = anp.tanh(x @ parameters["W1"] + parameters["b1"])
            logits = hidden @ parameters["W2"] + parameters["b2"]
            logits = logits - anp.max(logits, axis=1, keepdims=True)
            return -anp.mean(anp.sum(y * (logits - anp.log(anp.sum(anp.exp(logits), axis=1, keepdims=True))), axis=1))

        gradient = autograd.grad(autograd_loss)

        def step(parameters: Parameters, x: np.ndarray, y: np.ndarray) -> Parameters:
            slope = gradient(parameters, x, y)
            return {name: parameters[name] - RATE * slope[name] for name in parameters}

        return lambda: epoch(step, start, xs, ys)

    def by_hand(native: Any) -> Thunk:
        step = step_by_hand(native)

        def train() -> Parameters:
            parameters = {name: value.copy() for name, value in start.items()}
            hidden, logits = np.empty((BATCH, HIDDEN), np.float32), np.empty((BATCH, CLASSES), np.float32)
            for x, y in zip(xs, ys, strict=True):
                step(*parameters.values(), x, y, hidden, np.empty_like(hidden), logits)
            return parameters

        return train

    return [
        Call("fnad jit, step by step", "fnad", with_fnad),
        Call("JAX jit, step by step", "jax", with_jax),
        Call("PyTorch eager", "torch", with_torch),
        Call("autograd", "autograd", with_autograd),
        Call("Numba by hand", "numba", by_hand),
    ]


def in_one_call(start: Parameters, xs: np.ndarray, ys: np.ndarray) -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        @fnad.jit
        def train(parameters: Parameters, xs: np.ndarray, ys: np.ndarray) -> Parameters:
            def step(parameters: Parameters, batch: tuple[np.ndarray, np.ndarray]) -> tuple[Parameters, None]:
                gradient = fnad.grad(loss)(parameters, *batch)
                return {name: parameters[name] - RATE * gradient[name] for name in parameters}, None

            return fnad.scan(step, parameters, (xs, ys))[0]

        return lambda: train(start, xs, ys)

    def with_jax_scan(jax: Any) -> Thunk:
        step = jax_step(jax)
        data = jax.tree.map(jax.numpy.asarray, (start, xs, ys))
        train = jax.jit(lambda p, xs, ys: jax.lax.scan(lambda p, batch: (step(p, *batch), None), p, (xs, ys))[0])
        return lambda: jax.block_until_ready(train(*data))

    def by_hand(native: Any) -> Thunk:
        step = step_by_hand(native)

        @native.njit
        def train(w1, b1, w2, b2, xs, ys, hidden, hidden_ct, logits):
            for i in range(xs.shape[0]):
                step(w1, b1, w2, b2, xs[i], ys[i], hidden, hidden_ct, logits)

        def run() -> Parameters:
            parameters = {name: value.copy() for name, value in start.items()}
            hidden, logits = np.empty((BATCH, HIDDEN), np.float32), np.empty((BATCH, CLASSES), np.float32)
            train(*parameters.values(), xs, ys, hidden, np.empty_like(hidden), logits)
            return parameters

        return run

    return [
        Call("fnad jit and scan", "fnad", with_fnad),
        Call("JAX jit and scan", "jax", with_jax_scan),
        Call("Numba by hand", "numba", by_hand),
    ]


def epoch(step: Any, parameters: Any, xs: Any, ys: Any) -> Any:
    """Return the parameters after a step on each batch."""
    for x, y in zip(xs, ys, strict=True):
        parameters = step(parameters, x, y)
    return parameters


def step_by_hand(native: Any) -> Any:
    """Return a compiled SGD step, in place: the update of the weights rides on the GEMMs' alpha and beta."""
    exp, tanh, gemm = native.exp, native.tanh, native.gemm
    zero, one = np.float32(0), np.float32(1)

    @native.njit
    def step(w1, b1, w2, b2, x, y, hidden, hidden_ct, logits):
        gemm(one, x, False, w1, False, zero, hidden)
        for i in range(hidden.shape[0]):
            row = hidden[i]
            for j in range(row.size):
                row[j] = tanh(row[j] + b1[j])

        gemm(one, hidden, False, w2, False, zero, logits)
        for i in range(logits.shape[0]):
            softmax_minus(logits[i], b2, y[i])
        scale = -RATE / np.float32(logits.shape[0])

        gemm(one, logits, False, w2, True, zero, hidden_ct)
        gemm(scale, hidden, True, logits, False, one, w2)
        for i in range(hidden.shape[0]):
            row, row_ct = hidden[i], hidden_ct[i]
            for j in range(row.size):
                row_ct[j] *= one - row[j] * row[j]
        gemm(scale, x, True, hidden_ct, False, one, w1)
        add_rows(scale, logits, b2)
        add_rows(scale, hidden_ct, b1)

    @native.njit
    def softmax_minus(row, bias, target):
        row += bias
        largest = row.max()
        for j in range(row.size):
            row[j] = exp(row[j] - largest)
        inverse = one / row.sum()
        for j in range(row.size):
            row[j] = row[j] * inverse - target[j]

    @native.njit
    def add_rows(scale, rows, out):
        for i in range(rows.shape[0]):
            row = rows[i]
            for j in range(row.size):
                out[j] += scale * row[j]

    return step

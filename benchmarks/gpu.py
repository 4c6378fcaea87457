"""Problems for a GPU: value and gradient where the data is on the device, beside JAX, PyTorch and a copy by CuPy.

A copy moves the bytes of all arguments and gradients once: what is bound by memory cannot be faster. Each call is
waited for. `python -m benchmarks --device cuda`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import fnad
from benchmarks.calls import Call, Stopwatch, Thunk
from benchmarks.case import Case, Reading
from benchmarks.problems import elementwise, gmm, layers
from benchmarks.problems.mlp import batches, initial_parameters, jax_step
from benchmarks.problems.mlp import loss as small_loss

Function = Callable[..., Any]
RATE = np.float32(0.1)


class OnDevice(Call):
    """A call whose result is on the device: it is copied to be compared."""

    def start(self) -> Stopwatch:
        return Copied(super().start().run)


class Copied(Stopwatch):
    """Times a call, and copies the result of the first one."""

    def first(self) -> Reading:
        reading = super().first()
        return Reading(reading.seconds, fnad.to_host(reading.result), reading.note)


def contenders(function: Function, by_torch: Function, arguments: Sequence[np.ndarray], wanted: int) -> list[Call]:
    """Return the contenders for the value and the gradient in the first `wanted` arguments."""
    argnums = tuple(range(wanted))

    def with_fnad(fnad: Any) -> Thunk:
        run = fnad.jit(fnad.value_and_grad(partial(function, np), argnums), device="cuda")
        arrays = fnad.to_device(list(arguments))
        return lambda: fnad.block_until_ready(run(*arrays))

    def with_jax(jax: Any) -> Thunk:
        run = jax.jit(jax.value_and_grad(partial(function, jax.numpy), argnums))
        arrays = [jax.device_put(argument) for argument in arguments]
        return lambda: jax.block_until_ready(run(*arrays))

    def with_torch(torch: Any, *, compiled: bool) -> Thunk:
        tensors = [torch.from_numpy(argument).to("cuda") for argument in arguments]
        variables = [tensor.requires_grad_() for tensor in tensors[:wanted]]
        value_of = partial(by_torch, torch)
        value_of = torch.compile(value_of) if compiled else value_of

        def run() -> Any:
            value = value_of(*tensors)
            gradient = torch.autograd.grad(value, variables)
            torch.cuda.synchronize()
            return value.detach(), gradient

        return run

    return [
        OnDevice("fnad jit", "fnad", with_fnad),
        OnDevice("JAX jit", "jax", with_jax),
        OnDevice("PyTorch eager", "torch", partial(with_torch, compiled=False)),
        OnDevice("PyTorch compiled", "torch", partial(with_torch, compiled=True)),
        copy(sum(argument.nbytes for argument in (*arguments, *arguments[:wanted]))),
    ]


def copy(nbytes: int) -> Call:
    """Return the copy of half as many bytes, each of which is read and written."""

    def with_cupy(cupy: Any) -> Thunk:
        source, target = cupy.ones(nbytes // 8, np.float32), cupy.empty(nbytes // 8, np.float32)

        def run() -> None:
            cupy.copyto(target, source)
            cupy.cuda.get_current_stream().synchronize()

        return run

    return OnDevice("copy by CuPy", "cupy", with_cupy)


# ---- training --------------------------------------------------------------------------------------------------------


def network_loss(np: Any, parameters: Any, x: Any, labels: Any) -> Any:
    for n in range(len(parameters) // 2 - 1):
        x = np.maximum(x @ parameters[2 * n] + parameters[2 * n + 1], np.float32(0))
    logits = x @ parameters[-2] + parameters[-1]
    logits = logits - np.max(logits, axis=1, keepdims=True)
    log_probabilities = logits - np.log(np.sum(np.exp(logits), axis=1, keepdims=True))
    return -np.mean(np.sum(labels * log_probabilities, axis=1))


def network(widths: Sequence[int], batch: int) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Return parameters, a batch and one-hot labels."""
    rng = np.random.default_rng(0)
    parameters: list[np.ndarray] = []
    for rows, columns in pairwise(widths):
        parameters += [rng.standard_normal((rows, columns), np.float32) / np.sqrt(np.float32(rows))]
        parameters += [np.zeros(columns, np.float32)]
    labels = np.eye(widths[-1], dtype=np.float32)[rng.integers(widths[-1], size=batch)]
    return parameters, rng.standard_normal((batch, widths[0]), np.float32), labels


def step(widths: Sequence[int], batch: int) -> list[Call]:
    """Return the contenders of one step of gradient descent."""
    start, x, labels = network(widths, batch)

    def with_fnad(fnad: Any) -> Thunk:
        @fnad.jit(device="cuda")
        def run(parameters: Any, x: Any, labels: Any) -> Any:
            gradient = fnad.grad(partial(network_loss, np))(parameters, x, labels)
            return [p - RATE * g for p, g in zip(parameters, gradient, strict=True)]

        given = fnad.to_device((start, x, labels))
        return lambda: fnad.block_until_ready(run(*given))

    def with_jax(jax: Any) -> Thunk:
        def run(parameters: Any, x: Any, labels: Any) -> Any:
            gradient = jax.grad(partial(network_loss, jax.numpy))(parameters, x, labels)
            return [p - RATE * g for p, g in zip(parameters, gradient, strict=True)]

        jitted, given = jax.jit(run), jax.device_put((start, x, labels))
        return lambda: jax.block_until_ready(jitted(*given))

    def with_torch(torch: Any) -> Thunk:
        parameters = [torch.from_numpy(p).to("cuda").requires_grad_() for p in start]
        inputs, classes = torch.from_numpy(x).to("cuda"), torch.from_numpy(labels.argmax(axis=1)).to("cuda")

        def run() -> Any:
            hidden = inputs
            for n in range(len(parameters) // 2 - 1):
                hidden = torch.relu(hidden @ parameters[2 * n] + parameters[2 * n + 1])
            logits = hidden @ parameters[-2] + parameters[-1]
            value = torch.nn.functional.cross_entropy(logits, classes)
            gradient = torch.autograd.grad(value, parameters)
            result = [(p - float(RATE) * g).detach() for p, g in zip(parameters, gradient, strict=True)]
            torch.cuda.synchronize()
            return result

        return run

    return [
        OnDevice("fnad jit", "fnad", with_fnad),
        OnDevice("JAX jit", "jax", with_jax),
        OnDevice("PyTorch eager", "torch", with_torch),
    ]


def epoch() -> list[Call]:
    """Return the contenders of an epoch of a small network in one call."""
    given = initial_parameters(), *batches()

    def with_fnad(fnad: Any) -> Thunk:
        def step(parameters: Any, batch: Any) -> Any:
            gradient = fnad.grad(small_loss)(parameters, *batch)
            return {name: parameters[name] - RATE * gradient[name] for name in parameters}, None

        train = fnad.jit(lambda p, xs, ys: fnad.scan(step, p, (xs, ys))[0], device="cuda")
        placed = fnad.to_device(given)
        return lambda: fnad.block_until_ready(train(*placed))

    def with_jax(jax: Any) -> Thunk:
        step, placed = jax_step(jax), jax.device_put(given)
        train = jax.jit(lambda p, xs, ys: jax.lax.scan(lambda p, batch: (step(p, *batch), None), p, (xs, ys))[0])
        return lambda: jax.block_until_ready(train(*placed))

    return [OnDevice("fnad jit and scan", "fnad", with_fnad), OnDevice("JAX jit and scan", "jax", with_jax)]


# ---- cases -----------------------------------------------------------------------------------------------------------


def fused(elements: int) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    n = elements // 5
    bounds = ((50, 150), (0.1, 2), (0.01, 0.1), (0.1, 0.5), (50, 150))
    options = [rng.uniform(*bound, n).astype(np.float32) for bound in bounds]
    scholes = elementwise.black_scholes
    yield Case(f"Black–Scholes, {n:,} options, f32", contenders(scholes, scholes, options, 4), 2e-3)
    x = rng.standard_normal(elements, np.float32)
    banana = elementwise.rosenbrock
    yield Case(f"Rosenbrock, {elements:,} f32", contenders(banana, banana, [x], 1), 2e-3)


def rows(elements: int) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    width = min(1000, elements)
    x, wanted = (rng.standard_normal((elements // width, width), np.float32) for _ in range(2))
    labels = rng.integers(width, size=len(x))
    given = contenders(layers.cross_entropy, layers.cross_entropy_by_torch, [x, labels], 1)
    yield Case(f"softmax cross-entropy of {len(x):,} x {width}, f32", given, 2e-3)
    arguments = [x, np.ones(width, np.float32), np.zeros(width, np.float32), wanted]
    given = contenders(layers.layer_norm, layers.layer_norm_by_torch, arguments, 3)
    yield Case(f"layer norm of {len(x):,} x {width}, f32", given, 2e-3)


def training(elements: int) -> Iterator[Case]:
    scale = max(1, round((10**8 / elements) ** 0.5))
    widths, batch = [max(8, width // scale) for width in (4096, 8192, 8192, 1000)], max(8, 8192 // scale)
    yield Case(f"step of {'-'.join(map(str, widths))}, batch {batch}, f32", step(widths, batch), 2e-3)
    yield Case("epoch of 28 steps in one call", epoch(), 1e-3)


def mixture(elements: int) -> Iterator[Case]:
    d, k = 64, 100
    n = max(10, elements // 1000)
    rng = np.random.default_rng(0)
    shapes = ((k,), (k, d), (k, d * (d + 1) // 2), (n, d))
    arguments = [rng.standard_normal(shape) * 0.1 for shape in shapes]
    given = contenders(gmm.log_posterior, by_torch_on_device, arguments, 3)
    yield Case(f"Gaussian mixture, d = {d}, k = {k}, n = {n:,}, f64", given, 1e-9)


def by_torch_on_device(torch: Any, *arguments: Any) -> Any:
    with torch.device("cuda"):
        return gmm.by_torch(torch, *arguments)


PROBLEMS: dict[str, Callable[[int], Iterator[Case]]] = {
    "fused": fused, "rows": rows, "training": training, "mixture": mixture,
}  # fmt: skip
"""By name, the cases of a number of elements."""

ELEMENTS = 10**8

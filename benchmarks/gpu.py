"""Problems for a GPU: value and gradient where the data is on the device, beside JAX, PyTorch and a copy by CuPy.

A copy moves the bytes of all arguments and gradients once: what is bound by memory cannot be faster. Each call is
waited for, but where the launch alone is timed. `python -m benchmarks --device cuda`.
"""

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

import fnad
from benchmarks.calls import Call, Stopwatch, Thunk
from benchmarks.case import PEERS, Case, Reading
from benchmarks.measure import leaves
from benchmarks.problems import elementwise, gmm, kmeans, layers, lorenz, rnn
from benchmarks.problems.mlp import batches, initial_parameters, jax_step
from benchmarks.problems.mlp import loss as small_loss
from benchmarks.processes import Process
from fnad.backends.cuda import driver
from fnad.errors import DeviceError

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


def step(widths: Sequence[int], batch: int, precision: str = "float32") -> list[Call]:
    """Return the contenders of one step of gradient descent, with matrix products of a precision."""
    start, x, labels = network(widths, batch)

    def with_fnad(fnad: Any) -> Thunk:
        @fnad.jit(device="cuda")
        def run(parameters: Any, x: Any, labels: Any) -> Any:
            gradient = fnad.grad(partial(network_loss, np))(parameters, x, labels)
            return [p - RATE * g for p, g in zip(parameters, gradient, strict=True)]

        given = fnad.to_device((start, x, labels))

        def timed() -> Any:
            with fnad.config.override(matmul_precision=precision):
                return fnad.block_until_ready(run(*given))

        return timed

    def with_jax(jax: Any) -> Thunk:
        def run(parameters: Any, x: Any, labels: Any) -> Any:
            gradient = jax.grad(partial(network_loss, jax.numpy))(parameters, x, labels)
            return [p - RATE * g for p, g in zip(parameters, gradient, strict=True)]

        jitted, given = jax.jit(run), jax.device_put((start, x, labels))

        def timed() -> Any:
            with jax.default_matmul_precision(precision):
                return jax.block_until_ready(jitted(*given))

        return timed

    def with_torch(torch: Any) -> Thunk:
        parameters = [torch.from_numpy(p).to("cuda").requires_grad_() for p in start]
        inputs, classes = torch.from_numpy(x).to("cuda"), torch.from_numpy(labels.argmax(axis=1)).to("cuda")

        def run() -> Any:
            torch.set_float32_matmul_precision("highest" if precision == "float32" else "high")
            hidden = inputs
            for n in range(len(parameters) // 2 - 1):
                hidden = torch.relu(hidden @ parameters[2 * n] + parameters[2 * n + 1])
            logits = hidden @ parameters[-2] + parameters[-1]
            value = torch.nn.functional.cross_entropy(logits, classes)
            gradient = torch.autograd.grad(value, parameters)
            result = [(p - float(RATE) * g).detach() for p, g in zip(parameters, gradient, strict=True)]
            torch.cuda.synchronize()
            torch.set_float32_matmul_precision("highest")
            return result

        return run

    return [
        OnDevice("fnad jit", "fnad", with_fnad),
        OnDevice("JAX jit", "jax", with_jax),
        OnDevice("PyTorch eager", "torch", with_torch),
    ]


def epoch(steps: int, batch: int) -> list[Call]:
    """Return the contenders of so many steps of a small network in one call."""
    given = initial_parameters(), *(array[:steps, :batch] for array in batches())

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

    def with_torch(torch: Any) -> Thunk:
        parameters = {name: torch.from_numpy(array).to("cuda") for name, array in given[0].items()}
        inputs, labels = torch.from_numpy(given[1]).to("cuda"), torch.from_numpy(given[2].argmax(axis=2)).to("cuda")

        @torch.compile
        def loss_of(p: Any, x: Any, y: Any) -> Any:
            hidden = torch.tanh(x @ p["W1"] + p["b1"])
            return torch.nn.functional.cross_entropy(hidden @ p["W2"] + p["b2"], y)

        def run() -> Any:
            p = parameters
            for x, y in zip(inputs, labels, strict=True):
                p = {name: array.detach().requires_grad_() for name, array in p.items()}
                gradient = torch.autograd.grad(loss_of(p, x, y), list(p.values()))
                p = {name: q - float(RATE) * g for (name, q), g in zip(p.items(), gradient, strict=True)}
            torch.cuda.synchronize()
            return {name: array.detach() for name, array in p.items()}

        return run

    return [
        OnDevice("fnad jit and scan", "fnad", with_fnad),
        OnDevice("JAX jit and scan", "jax", with_jax),
        OnDevice("PyTorch compiled, step by step", "torch", with_torch),
    ]


# ---- cases -----------------------------------------------------------------------------------------------------------


def fused(elements: int) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    n = elements // 5
    bounds = ((50, 150), (0.1, 2), (0.01, 0.1), (0.1, 0.5), (50, 150))
    options = [rng.uniform(*bound, n).astype(np.float32) for bound in bounds]
    scholes = elementwise.black_scholes
    yield Case(f"Black–Scholes, {n:,} options, f32", contenders(scholes, scholes, options, 4), 2e-3, rounds=11)
    x = rng.standard_normal(elements, np.float32)
    banana = elementwise.rosenbrock
    yield Case(f"Rosenbrock, {elements:,} f32", contenders(banana, banana, [x], 1), 2e-3, rounds=11)


def cross_entropy(np: Any, logits: Any, labels: Any) -> Any:
    """Return the mean cross-entropy; of each row one element is picked, which the compilers can see."""
    shifted = logits - np.max(logits, axis=1, keepdims=True)
    picked = np.take_along_axis(shifted, labels[:, None], axis=1)[:, 0]
    return np.mean(np.log(np.sum(np.exp(shifted), axis=1)) - picked)


def rows(elements: int) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    width = min(1000, elements)
    x, wanted = (rng.standard_normal((elements // width, width), np.float32) for _ in range(2))
    labels = rng.integers(width, size=len(x))
    given = contenders(cross_entropy, layers.cross_entropy_by_torch, [x, labels], 1)
    yield Case(f"softmax cross-entropy of {len(x):,} x {width}, f32", given, 2e-3, rounds=11)
    arguments = [x, np.ones(width, np.float32), np.zeros(width, np.float32), wanted]
    given = contenders(layers.layer_norm, layers.layer_norm_by_torch, arguments, 3)
    yield Case(f"layer norm of {len(x):,} x {width}, f32", given, 2e-3, rounds=11)


def training(elements: int) -> Iterator[Case]:
    scale = max(1, round((10**8 / elements) ** 0.5))
    widths, batch = [max(8, width // scale) for width in (4096, 8192, 8192, 1000)], max(8, 8192 // scale)
    title = f"step of {'-'.join(map(str, widths))}, batch {batch}"
    yield Case(f"{title}, f32", step(widths, batch), 2e-3, rounds=5)
    yield Case(f"{title}, f32 with products in TF32", step(widths, batch, "tensorfloat32"), 2e-2, rounds=5)
    steps, batch = (28, 64) if elements >= 10**6 else (2, 4)
    yield Case(f"{steps} steps of 64-128-10, batch {batch}, in one call", epoch(steps, batch), 1e-3)


def mixture(elements: int) -> Iterator[Case]:
    (d, k), n = (64, 100) if elements >= 10**6 else (4, 3), max(10, elements // 100)
    batches = max(1, n // 10_000)  # all points at once would take 51 GB for an array of f64[k, n, d]
    rng = np.random.default_rng(0)
    shapes = ((k,), (k, d), (k, d * (d + 1) // 2), (batches, n // batches, d))
    arguments = [rng.standard_normal(shape) * 0.1 for shape in shapes]
    title = f"Gaussian mixture, d = {d}, k = {k}, n = {n:,} in {batches} batches, f64"
    yield Case(title, in_batches(gmm.log_posterior, by_torch_on_device, arguments), 1e-9, rounds=5)


def by_torch_on_device(torch: Any, *arguments: Any) -> Any:
    with torch.device("cuda"):
        return gmm.by_torch(torch, *arguments)


def in_batches(function: Function, by_torch: Function, arguments: Sequence[np.ndarray]) -> list[Call]:
    """Return the contenders for value and gradient of a sum over batches, in one loop."""
    *parameters, points = arguments
    argnums = tuple(range(len(parameters)))

    def total(np: Any, system: Any, scan: Any, points: Any, *parameters: Any) -> Any:
        value_and_grad = system.value_and_grad(partial(function, np), argnums)

        def step(total: Any, batch: Any) -> Any:
            return system.tree.map(lambda a, b: a + b, total, value_and_grad(*parameters, batch)), None

        start = np.zeros_like(points[0, 0, 0]), tuple(map(np.zeros_like, parameters))
        return scan(step, start, points)[0]

    def with_fnad(fnad: Any) -> Thunk:
        run = fnad.jit(partial(total, np, fnad, fnad.scan), device="cuda")
        placed = fnad.to_device([points, *parameters])
        return lambda: fnad.block_until_ready(run(*placed))

    def with_jax(jax: Any) -> Thunk:
        run = jax.jit(partial(total, jax.numpy, jax, jax.lax.scan))
        placed = jax.device_put([points, *parameters])
        return lambda: jax.block_until_ready(run(*placed))

    def with_torch(torch: Any) -> Thunk:
        variables = [torch.from_numpy(array).to("cuda").requires_grad_() for array in parameters]
        data = torch.from_numpy(points).to("cuda")

        def run() -> Any:
            totals = None
            for batch in data:
                value = by_torch(torch, *variables, batch)
                found = [value.detach(), *torch.autograd.grad(value, variables)]
                totals = found if totals is None else [a + b for a, b in zip(totals, found, strict=True)]
            torch.cuda.synchronize()
            return totals

        return run

    return [
        OnDevice("fnad jit and scan", "fnad", with_fnad),
        OnDevice("JAX jit and scan", "jax", with_jax),
        OnDevice("PyTorch eager", "torch", with_torch),
    ]


def clusters(elements: int) -> Iterator[Case]:
    n, d = max(30, elements // 100), 16
    k = min(1000, n // 10)
    rng = np.random.default_rng(0)
    points = rng.standard_normal((n, d), np.float32)
    centres = points[rng.choice(n, k, replace=False)] + np.float32(0.01)

    def newton(np: Any, system: Any, points: Any, centres: Any) -> Any:
        gradient = system.grad(partial(kmeans.cost, np, points))
        slope, curvature = system.jvp(gradient, (centres,), (np.ones_like(centres),))
        return slope / curvature

    def with_fnad(fnad: Any) -> Thunk:
        run, placed = fnad.jit(partial(newton, np, fnad), device="cuda"), fnad.to_device((points, centres))
        return lambda: fnad.block_until_ready(run(*placed))

    def with_jax(jax: Any) -> Thunk:
        run, placed = jax.jit(partial(newton, jax.numpy, jax)), jax.device_put((points, centres))
        return lambda: jax.block_until_ready(run(*placed))

    def with_torch(torch: Any) -> Thunk:
        data, variable = torch.from_numpy(points).to("cuda"), torch.from_numpy(centres).to("cuda").requires_grad_()

        def run() -> Any:
            cost = kmeans.cost_by_torch(torch, data, variable)
            (gradient,) = torch.autograd.grad(cost, variable, create_graph=True)
            (curvature,) = torch.autograd.grad(gradient.sum(), variable)
            torch.cuda.synchronize()
            return (gradient / curvature).detach()

        return run

    calls = [
        OnDevice("fnad jit", "fnad", with_fnad),
        OnDevice("JAX jit", "jax", with_jax),
        OnDevice("PyTorch eager", "torch", with_torch),
    ]
    # The nearest centre of a point between two of them is that which rounding says.
    yield Case(f"k-means by Newton, {n:,} x {d}, k = {k}, f32", calls, 2e-2, rounds=11)


def bodies(elements: int) -> Iterator[Case]:
    n = max(10, elements // 1000)
    places = [array.astype(np.float32) for array in np.random.default_rng(0).standard_normal((3, n))]
    yield Case(f"n-body, energy and forces of {n:,}, f32", contenders(energy, energy, places, 3), 2e-3, rounds=5)


def energy(np: Any, x: Any, y: Any, z: Any) -> Any:
    """Return the energy of all pairs, softened; one text for NumPy, JAX and PyTorch."""
    dx, dy, dz = x[:, None] - x, y[:, None] - y, z[:, None] - z
    return -0.5 * np.sum(1 / np.sqrt(dx * dx + dy * dy + dz * dz + 1e-2))


def ensembles(elements: int) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    members, steps = max(2, elements // 25_000), min(500, max(3, elements // 1000))
    parameters, xs, targets = rnn.inputs(np.float32)
    spread = {
        name: array * (1 + 0.01 * rng.standard_normal((members, *[1] * array.ndim), np.float32))
        for name, array in parameters.items()
    }
    given = spread, xs[:steps], targets[:steps]
    yield Case(
        f"{members:,} RNNs of 16 units, {steps} steps, f32", mapped(rnn.loss, given, (0, None, None)), 1e-2, rounds=5
    )
    members, steps = max(2, elements // 1000), min(1000, max(3, elements // 1000))
    starts = lorenz.START + 0.01 * rng.standard_normal((members, 3))
    function = partial(lorenz.height, steps=steps)
    given = lorenz.PARAMETERS, starts
    yield Case(f"{members:,} Lorenz systems, {steps} steps, f64", mapped(function, given, (None, 0)), 1e-9, rounds=5)


def mapped(function: Function, arguments: Sequence[Any], axes: Sequence[int | None]) -> list[Call]:
    """Return the contenders for value and gradient of a loop for each member; PyTorch has no loop to compile."""

    def with_fnad(fnad: Any) -> Thunk:
        run = fnad.jit(fnad.vmap(fnad.value_and_grad(partial(function, np, fnad.scan)), axes), device="cuda")
        placed = fnad.to_device(list(arguments))
        return lambda: fnad.block_until_ready(run(*placed))

    def with_jax(jax: Any) -> Thunk:
        run = jax.jit(jax.vmap(jax.value_and_grad(partial(function, jax.numpy, jax.lax.scan)), tuple(axes)))
        placed = jax.device_put(list(arguments))
        return lambda: jax.block_until_ready(run(*placed))

    return [
        OnDevice("fnad jit, vmap and scan", "fnad", with_fnad),
        OnDevice("JAX jit, vmap and scan", "jax", with_jax),
    ]


def launch(_: int) -> Iterator[Case]:
    given = np.linspace(0, 1, 10, dtype=np.float32)

    def small(x: Any) -> Any:
        return x * 2 + 1

    def with_fnad(fnad: Any) -> Thunk:
        run, x = fnad.jit(small, device="cuda"), fnad.to_device(given)
        return lambda: run(x)

    def with_jax(jax: Any) -> Thunk:
        run, x = jax.jit(small), jax.device_put(given)
        return lambda: run(x)

    def with_torch(torch: Any, *, compiled: bool) -> Thunk:
        run, x = torch.compile(small) if compiled else small, torch.from_numpy(given).to("cuda")
        return lambda: run(x)

    def with_cupy(cupy: Any) -> Thunk:
        x = cupy.asarray(given)
        return lambda: small(x)

    calls = [
        OnDevice("fnad jit", "fnad", with_fnad),
        OnDevice("JAX jit", "jax", with_jax),
        OnDevice("PyTorch eager", "torch", partial(with_torch, compiled=False)),
        OnDevice("PyTorch compiled", "torch", partial(with_torch, compiled=True)),
        OnDevice("CuPy", "cupy", with_cupy),
    ]
    yield Case("call of a small program, not waited for", calls, 1e-6, unit="µs")


def cold(elements: int) -> Iterator[Case]:
    names = {"fnad jit": "fnad", "JAX jit": "jax", "PyTorch eager": "torch", "PyTorch compiled": "torch"}
    calls = [Process(name, peer, ["-m", "benchmarks.gpu", name], reports=True) for name, peer in names.items()]
    yield Case(
        "first value and gradient in a new process, Black–Scholes, 1,000 options, f32", calls, 2e-3, "s", rounds=3
    )


def first_call(system: str) -> dict[str, Any]:
    """Return the reading of a system's first call; the first use of the GPU, which takes all alike, is before it."""
    (case,) = [case for case in fused(5000) if case.title.startswith("Black")]
    (contender,) = [contender for contender in case.contenders if contender.system == system]
    run = contender.prepare(import_module(PEERS[contender.peer]))
    start = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "result": [np.ravel(x).tolist() for x in leaves(fnad.to_host(result))], "note": ""}


def absence() -> str:
    """Return why there is no GPU, and what to do; nothing if there is one."""
    try:
        driver.current()
    except DeviceError as error:
        return str(error)
    return ""


def free() -> None:
    """Give back the memory of the device that the systems keep, unless it can do nothing any more: rows tell that."""
    gc.collect()
    with suppress(RuntimeError):  # which errors of CUDA are, CuPy's and PyTorch's
        if cupy := sys.modules.get("cupy"):
            cupy.get_default_memory_pool().free_all_blocks()
        if torch := sys.modules.get("torch"):
            torch.cuda.empty_cache()


PROBLEMS: dict[str, Callable[[int], Iterator[Case]]] = {
    "launch": launch, "fused": fused, "rows": rows, "training": training, "ensembles": ensembles, "clusters": clusters,
    "mixture": mixture, "bodies": bodies, "cold": cold,
}  # fmt: skip
"""By name, the cases of a number of elements."""

ELEMENTS = 10**8


if __name__ == "__main__":
    print(json.dumps(first_call(sys.argv[1])))

"""The gradient of the MLP's loss for a hundred batch sizes, each called so many times, in a fresh process.

`python -m benchmarks.problems.sizes SYSTEM TIMES` is that process.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.case import PEERS, Case
from benchmarks.problems.mlp import BATCH, CLASSES, INPUTS, Parameters, initial_parameters, jax_loss, loss
from benchmarks.processes import Process

SIZES = range(BATCH, BATCH + 100)


def with_fnad(fnad: Any) -> Callable[..., Any]:
    return fnad.jit(fnad.grad(loss))


def with_fnad_alone(fnad: Any) -> Callable[..., Any]:
    return fnad.grad(loss)


def with_jax(jax: Any) -> Callable[..., Any]:
    gradient = jax.jit(jax.grad(lambda parameters, x, y: jax_loss(jax, parameters, x, y)))
    return lambda *arguments: jax.block_until_ready(gradient(*arguments))


SYSTEMS: dict[str, tuple[str, Callable[..., Any]]] = {
    "fnad jit": ("fnad", with_fnad),
    "fnad without jit": ("fnad", with_fnad_alone),
    "JAX jit": ("jax", with_jax),
}


def cases() -> Iterator[Case]:
    for times, title in ((1, "once"), (10, "ten times")):
        contenders = [
            Process(system, peer, ["-m", "benchmarks.problems.sizes", system, str(times)], reports=True)
            for system, (peer, _) in SYSTEMS.items()
        ]
        yield Case(f"100 sizes, {title}", contenders, tolerance=1e-4, unit="s", rounds=3, per=(100, "size"))


def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    for size in SIZES:
        labels = rng.integers(CLASSES, size=size)
        yield rng.standard_normal((size, INPUTS), np.float32), np.eye(CLASSES, dtype=np.float32)[labels]


def all_sizes(system: str, times: int) -> dict[str, Any]:
    """Return the reading of a system's calls, with the sum of the gradients as the result."""
    peer, prepare = SYSTEMS[system]
    parameters: Parameters = initial_parameters()
    data = list(batches())
    gradient = prepare(importlib.import_module(PEERS[peer]))
    start = time.perf_counter()
    found = [[gradient(parameters, x, y) for _ in range(times)][-1] for x, y in data]
    seconds = time.perf_counter() - start
    sums = [np.sum([np.asarray(each[name]) for each in found], axis=0) for name in sorted(parameters)]
    return {"seconds": seconds, "result": [np.ravel(total).tolist() for total in sums], "note": ""}


if __name__ == "__main__":
    print(json.dumps(all_sizes(sys.argv[1], int(sys.argv[2]))))

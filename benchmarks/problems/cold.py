"""The first value and gradient of the MLP's loss in a fresh process, nothing cached: tracing, compiling, running.

`python -m benchmarks.problems.cold SYSTEM` is that process. The system's import is timed apart.
"""

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Thunk
from benchmarks.case import PEERS, Case
from benchmarks.problems.mlp import Parameters, batches, initial_parameters, jax_loss, loss
from benchmarks.processes import Process


def with_fnad_jit(fnad: Any, *arguments: Any) -> Thunk:
    value_and_grad = fnad.jit(fnad.value_and_grad(loss))
    return lambda: value_and_grad(*arguments)


def with_fnad(fnad: Any, *arguments: Any) -> Thunk:
    value_and_grad = fnad.value_and_grad(loss)
    return lambda: value_and_grad(*arguments)


def with_jax(jax: Any, *arguments: Any) -> Thunk:
    value_and_grad = jax.jit(jax.value_and_grad(lambda parameters, x, y: jax_loss(jax, parameters, x, y)))
    return lambda: jax.block_until_ready(value_and_grad(*arguments))


SYSTEMS: dict[str, tuple[str, Callable[..., Thunk]]] = {
    "fnad jit": ("fnad", with_fnad_jit),
    "fnad without jit": ("fnad", with_fnad),
    "JAX jit": ("jax", with_jax),
}


def cases() -> Iterator[Case]:
    contenders = [
        Process(system, peer, ["-m", "benchmarks.problems.cold", system], reports=True)
        for system, (peer, _) in SYSTEMS.items()
    ]
    yield Case("first value_and_grad", contenders, tolerance=1e-4, unit="s", rounds=9)


def first_call(system: str) -> dict[str, Any]:
    """Return the reading of a system's first call."""
    peer, prepare = SYSTEMS[system]
    xs, ys = batches()
    arguments: tuple[Parameters, np.ndarray, np.ndarray] = initial_parameters(), xs[0], ys[0]
    before_import = time.perf_counter()
    call = prepare(importlib.import_module(PEERS[peer]), *arguments)
    before_call = time.perf_counter()
    value, gradient = call()
    seconds = time.perf_counter() - before_call
    return {
        "seconds": seconds,
        "result": [np.ravel(array).tolist() for array in (value, *(gradient[name] for name in sorted(gradient)))],
        "note": f"import {before_call - before_import:.2f} s after NumPy",
    }


if __name__ == "__main__":
    print(json.dumps(first_call(sys.argv[1])))

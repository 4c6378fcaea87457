"""Calls in a notebook that holds 500 lists of 500 floats and 1,000 records, after a new name each."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

TABLE = [[float(i * j) for j in range(500)] for i in range(500)]
RECORDS = [{"id": i, "name": f"record {i}", "values": [1.0, 2.0, {"a": i}]} for i in range(1000)]
NUMBERS = count()


def f(x: np.ndarray) -> Any:
    return np.sum(np.sin(x) * x)


def cases() -> Iterator[Case]:
    x = np.array([0.5, 1.0, 2.0])
    calls = {
        "grad": lambda fnad: lambda: fnad.grad(f)(x),
        "vjp": lambda fnad: lambda: fnad.vjp(f, x)[0],
        "vmap": lambda fnad: lambda: fnad.vmap(f)(x[:, None]),
        "first jit": lambda fnad: lambda: fnad.jit(f)(x),
    }
    for name, of in calls.items():
        yield Case(name, [Call("fnad", "fnad", after_a_new_name(of))], tolerance=1e-12)


def after_a_new_name(of: Any) -> Any:
    def prepare(fnad: Any) -> Thunk:
        call = of(fnad)

        def run() -> Any:
            globals()[f"name{next(NUMBERS)}"] = None
            return call()

        return run

    return prepare

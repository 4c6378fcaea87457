"""Long programs: the work for each operation does not grow with their number."""

from __future__ import annotations

import cProfile
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fnad.api.staging.leaves import leaf_of
from fnad.api.staging.stage import stage
from fnad.backends.cpu.compiler import by_position, module_of
from fnad.backends.cpu.target import CPU
from fnad.backends.reference import interpreter
from fnad.ir.content import content_key
from fnad.kernel.plan import Plan
from fnad.lower.lowering import lower
from fnad.transforms.differentiation import gradient
from fnad.transforms.pipeline import simplify

FEW, MANY = 30, 90
X = np.linspace(0.1, 1.0, 10)


def chain(n: int, x: Any) -> Any:
    for _ in range(n):
        x = np.sin(x) * 1.1
    return np.sum(x)


def updates(n: int, x: Any) -> Any:
    u = x.copy()
    for _ in range(n // 2):
        u[1:-1] += 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return np.sum(u)


def elements(n: int, x: Any) -> Any:
    return sum(x[k : k + 3].sum() * x[k] for k in range(n))


def a_list(n: int, x: Any) -> Any:
    found, y = [], x[0]
    for k in range(n):
        y = y * 0.5 + x[k % 10]
        found.append(np.sin(y))
    return np.sum(np.stack(found))


def library(n: int, x: Any) -> Any:
    for _ in range(n):
        x = np.sort(x) * 0.9
    return np.sum(x)


def scalars(n: int, x: Any) -> Any:
    """Operations in an order that does not repeat, on numbers."""
    draw, found = random.Random(0), [x[0], x[1]]
    for _ in range(n):
        a, b, c = found[-1], draw.choice(found[-20:]), draw.random()
        found.append([a + b * c, a * b, np.sin(a) + b, np.tanh(a) - b, a / (2.0 + b * b), np.cos(b) * a][int(6 * c)])
    return found[-1]


def arrays(n: int, x: Any) -> Any:
    """The same on arrays, with views, reductions and products of matrices."""
    draw, found, w = random.Random(0), [x, 0.5 * x], np.diag(0.1 * X)
    for _ in range(n // 2):
        a, b, k = found[-1], draw.choice(found[-20:]), draw.randrange(1, 9)
        ways: list[Callable[[], Any]] = [
            lambda a=a, b=b, k=k: np.concatenate([a[k:], b])[:10],
            lambda a=a: np.tanh(w @ a),
            lambda a=a, b=b, k=k: (a[:, None] * b[None, :]).sum(axis=k % 2) / k,
            lambda a=a, b=b: np.sin(a) + 0.1 * np.mean(b),
            lambda a=a, b=b, k=k: np.where(a > 0.1 * k, a, np.cos(b)),
        ]
        found.append(draw.choice(ways)())
    return np.sum(found[-1])


IRREGULAR = (scalars, arrays)


def counted(run: Callable[[], Any], calls: dict[str, int], name: str) -> Any:
    """Return what `run` returns; note how many functions it called."""
    profile = cProfile.Profile()
    result = profile.runcall(run)
    calls[name] = sum(entry.callcount for entry in profile.getstats())
    return result


def work(function: Callable[[int, Any], Any], n: int, x: Any) -> dict[str, int]:
    """Return the calls that each stage of a gradient of `n` operations takes."""
    calls: dict[str, int] = {}

    def call(tracers: Sequence[Any]) -> Any:
        return function(n, *tracers)

    staged = counted(lambda: stage(call, [leaf_of(x)], call), calls, "trace")
    wrt = [position == 0 for position in range(len(staged.program.inputs))]
    derived = counted(lambda: gradient(staged.program, wrt), calls, "derive")
    counted(lambda: hash(content_key(derived)), calls, "key")
    counted(lambda: interpreter(derived)([x, *staged.operands[1:]]), calls, "interpret")
    simplified = counted(lambda: simplify(derived), calls, "simplify")
    lowered = counted(lambda: lower(simplified, CPU), calls, "lower")
    plan = counted(lambda: Plan(lowered, CPU), calls, "plan")
    if function in IRREGULAR:  # the others are one nest while they are short, in which hardly anything is stored
        modules = [str(module_of(by_position(kernel))) for kernel in plan.kernels.values()]
        calls["text"] = sum(map(len, modules))
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("function", [chain, updates, elements, a_list, library, *IRREGULAR])
def test_work_is_linear(function: Callable[[int, Any], Any]):
    x = np.linspace(0.1, 1.0, MANY + 3) if function is elements else X
    work(function, 10, x)
    few, many = work(function, FEW, x), work(function, MANY, x)
    growth = {stage: many[stage] / few[stage] for stage in few}
    assert max(growth.values()) < 1.25 * MANY / FEW, growth

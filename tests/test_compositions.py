"""Every transform of every other, three deep: against differences in 130 digits.

Each transform is used as one that makes a function of three numbers to three of another, so that any may follow any.
What it means is stated beside it in plain arithmetic on mpmath's numbers, where a derivative is a central difference
with a step of 1e-16: no rule of differentiation is used. Programs are written once, for both.

    python -m tests.test_compositions [i/n]        run all of them, or the i-th of n parts, in a process each
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, product
from random import Random
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import mpmath
import numpy as np
import pytest

import fnad

Vector: TypeAlias = Any
Function: TypeAlias = Callable[[Vector], Vector]

DIGITS, STEP = 130, mpmath.mpf(10) ** -16
X = np.array([0.3, -0.5, 0.8])
V = np.array([1.0, -0.5, 0.25])
SCALES = np.array([1.0, -0.75])
A = np.array([[0.5, -1.0, 0.25], [0.75, 0.5, -0.5], [-0.25, 1.0, 0.5]])


# ---- what transforms are -----------------------------------------------------------------------------------------


def derivative(f: Function, x: Vector, v: Vector) -> Vector:
    return (f(x + STEP * v) - f(x - STEP * v)) / (2 * STEP)


def unit(i: int) -> Vector:
    return np.array([mpmath.mpf(i == j) for j in range(3)])


def same(f: Function) -> Function:
    return f


def along(f: Function) -> Function:
    return lambda x: derivative(f, x, V)


def gradient(f: Function) -> Function:
    return lambda x: np.array([np.dot(V, derivative(f, x, unit(i))) for i in range(3)])


def second(f: Function) -> Function:
    return lambda x: derivative(partial(derivative, f, v=V), x, V)


def curvature(f: Function) -> Function:
    return lambda x: derivative(gradient(f), x, V)


def trace(f: Function) -> Function:
    return lambda x: sum(derivative(partial(derivative, f, v=unit(i)), x, unit(i)) for i in range(3))


def rows(f: Function) -> Function:
    return lambda x: sum(f(s * x) for s in SCALES)


class Transform(NamedTuple):
    use: Callable[[Function], Function]
    meaning: Callable[[Function], Function]


def weighted(f: Function) -> Function:
    return lambda x: np.dot(V, f(x))


TRANSFORMS = {
    "jit": Transform(lambda f: fnad.jit(f), same),
    "checkpoint": Transform(lambda f: fnad.checkpoint(f), same),
    "jvp": Transform(lambda f: lambda x: fnad.jvp(f, (x,), (V,))[1], along),
    "linearize": Transform(lambda f: lambda x: fnad.linearize(f, x)[1](V), along),
    "jacfwd": Transform(lambda f: lambda x: fnad.jacfwd(f)(x) @ V, along),
    "jacobian": Transform(lambda f: lambda x: fnad.jacobian(f)(x) @ V, along),
    "grad": Transform(lambda f: fnad.grad(weighted(f)), gradient),
    "value_and_grad": Transform(lambda f: lambda x: fnad.value_and_grad(weighted(f))(x)[1], gradient),
    "vjp": Transform(lambda f: lambda x: fnad.vjp(f, x)[1](V)[0], gradient),
    "jacrev": Transform(lambda f: lambda x: V @ fnad.jacrev(f)(x), gradient),
    "linear_transpose": Transform(
        lambda f: lambda x: fnad.linear_transpose(fnad.linearize(f, x)[1], x)(V)[0], gradient
    ),
    "hessian": Transform(lambda f: lambda x: fnad.hessian(weighted(f))(x) @ V, curvature),
    "hvp": Transform(lambda f: lambda x: fnad.hvp(weighted(f), (x,), (V,))[0], curvature),
    "jet": Transform(lambda f: lambda x: fnad.jet(f, (x,), ([V, np.zeros(3)],))[1][1], second),
    "laplacian": Transform(lambda f: fnad.laplacian(f), trace),
    "vmap": Transform(lambda f: lambda x: np.sum(fnad.vmap(f)(np.outer(SCALES, x)), axis=0), rows),
    "vectorize": Transform(
        lambda f: lambda x: np.sum(fnad.vectorize(f, signature="(n)->(n)")(np.outer(SCALES, x)), axis=0), rows
    ),
    "map": Transform(lambda f: lambda x: np.sum(fnad.map(f, np.outer(SCALES, x)), axis=0), rows),
}

OUTERMOST = {"sparse_jacobian": Transform(lambda f: lambda x: fnad.sparse_jacobian(f)(x) @ V, along)}
"""What returns something else than arrays."""


# ---- programs ----------------------------------------------------------------------------------------------------


class Plain:
    """The functions that programs use, on mpmath's numbers, with Python's own control flow."""

    exp, sin, tanh = (np.frompyfunc(getattr(mpmath, name), 1, 1) for name in ("exp", "sin", "tanh"))

    @staticmethod
    def cond(pred: Any, one: Any, other: Any, *operands: Any) -> Any:
        return (one if pred else other)(*operands)

    @staticmethod
    def while_loop(test: Any, body: Any, carry: Any) -> Any:
        while test(carry):
            carry = body(carry)
        return carry

    @staticmethod
    def scan(f: Any, carry: Any, xs: Any) -> Any:
        ys: list[Any] = []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)

    solve = staticmethod(
        lambda a, b: np.array(list(mpmath.lu_solve(mpmath.matrix(a.tolist()), mpmath.matrix(b.tolist()))))
    )


class Traced:
    """The same names in NumPy and fnad."""

    exp, sin, tanh = np.exp, np.sin, np.tanh
    cond, while_loop, scan = map(staticmethod, (fnad.cond, fnad.while_loop, fnad.scan))
    solve = staticmethod(np.linalg.solve)


def layer(m: Any, x: Vector) -> Vector:
    return m.tanh(A @ x) * x + m.sin(x[::-1]) * x[0]


def assigned(m: Any, x: Vector) -> Vector:
    y = x * x
    y[1:] = y[:2] * m.exp(x[1:])
    y[0] += np.sum(x**3)
    return y


def branching(m: Any, x: Vector) -> Vector:
    return m.cond(np.sum(x * x) > 0.5, lambda x: m.exp(x) * x[1], lambda x: m.sin(x) * x[2], x)


def scanned(m: Any, x: Vector) -> Vector:
    return m.scan(lambda c, a: (m.sin(c) * a + c, c * c * a), x[0], x)[1]


def looping(m: Any, x: Vector) -> Vector:
    return m.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * m.sin(c[1][::-1]) + c[1]), (0, x))[1]


def solved(m: Any, x: Vector) -> Vector:
    return m.solve(np.outer(x, x) + 2 * np.eye(3), m.sin(x))


PROGRAMS = {f.__name__: f for f in (layer, assigned, branching, scanned, looping, solved)}
Names: TypeAlias = tuple[str, ...]

MEANINGS: dict[str, list[str]] = {}
"""The transforms of each meaning."""
for _name, _transform in TRANSFORMS.items():
    MEANINGS.setdefault(_transform.meaning.__name__, []).append(_name)


# ---- the check ---------------------------------------------------------------------------------------------------

_TRUTHS: dict[tuple[str, Names], Vector] = {}


def composed(f: Function, transforms: list[Callable[[Function], Function]]) -> Function:
    """The last of the transforms of the one before, and so on."""
    for transform in transforms:
        f = transform(f)
    return f


def truth(program: str, names: Names) -> Vector:
    """What a composition is, from the differences; those that mean the same are computed once."""
    meanings = [(TRANSFORMS | OUTERMOST)[name].meaning for name in names]
    key = program, tuple(meaning.__name__ for meaning in meanings if meaning is not same)
    if key not in _TRUTHS:
        with mpmath.workdps(DIGITS):
            exact = np.array([mpmath.mpf(x) for x in X])
            found = composed(partial(PROGRAMS[program], Plain), meanings)(exact)
            _TRUTHS[key] = np.array([float(x) for x in found])
    return _TRUTHS[key]


def check(program: str, names: Names) -> None:
    f = composed(partial(PROGRAMS[program], Traced), [(TRANSFORMS | OUTERMOST)[name].use for name in names])
    expected = truth(program, names)
    np.testing.assert_allclose(f(X), expected, rtol=1e-9, atol=1e-10 * np.max(np.abs(expected)), err_msg=f"{names}")


def compositions() -> Iterator[tuple[str, Names]]:
    """All of them, three deep."""
    for program, *names, last in product(PROGRAMS, TRANSFORMS, TRANSFORMS, TRANSFORMS | OUTERMOST):
        yield program, (*names, last)


def covering() -> list[tuple[str, Names]]:
    """Some, in which every meaning is of every other at least once, by transforms and on programs in turn."""
    every, random = TRANSFORMS | OUTERMOST, Random(1)
    left = set(product(MEANINGS, repeat=2))
    chosen = list[tuple[str, Names]]()
    while left:
        inner, middle = random.choice(sorted(left))
        outer = random.choice(sorted(last for first, last in left if first == middle) or list(MEANINGS))
        left -= {(inner, middle), (middle, outer)}
        names = [random.choice(MEANINGS[meaning]) for meaning in (inner, middle, outer)]
        chosen.append((list(PROGRAMS)[len(chosen) % len(PROGRAMS)], tuple(names)))
    unused = set(every) - {name for _, names in chosen for name in names}
    return [*chosen, *[(random.choice(list(PROGRAMS)), ("jit", "jacrev", name)) for name in sorted(unused)]]


@pytest.mark.parametrize("program", PROGRAMS)
def test_transforms_of_transforms(program: str) -> None:
    with fnad.config.override(executor="interpreter"):
        for chosen, names in covering():
            if chosen == program:
                check(program, names)


def test_loops_whose_residuals_cross_transforms() -> None:
    """Loops of unknown length, saved by one transform and gone over by the next: under `vmap`, as a sparse matrix."""
    chosen = [
        ("jacobian", "hessian"),
        ("vjp", "jacrev", "jvp"),
        ("grad", "sparse_jacobian"),
        ("vmap", "linear_transpose"),
    ]
    with fnad.config.override(executor="interpreter"):
        for names in chosen:
            check("looping", names)


def run(part: int, parts: int) -> int:
    """How many compositions of a part fail; they and how far it is are printed."""
    chosen, failed, begin = list(islice(compositions(), part, None, parts)), 0, perf_counter()
    for count, (program, names) in enumerate(chosen, 1):
        try:
            check(program, names)
        except Exception as error:  # noqa: BLE001 whatever it is, the others are run too
            failed += 1
            print(program, "-".join(names), type(error).__name__, str(error)[:600], flush=True)
        if count % 500 == 0 or count == len(chosen):
            print(f"{count} of {len(chosen)}, {failed} failed, {perf_counter() - begin:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    part, parts = map(int, sys.argv[1].split("/")) if len(sys.argv) > 1 else (0, 1)
    with fnad.config.override(executor="interpreter"):
        sys.exit(run(part, parts) > 0)

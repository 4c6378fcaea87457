"""Values, gradients and Hessians in every way a user can ask for them; all have to say the same.

A function is given as a user writes it, with arguments that are arrays or numbers. Its gradient is one flat vector over
all of them, its Hessian a matrix. Each transform is run by itself, in the interpreter and compiled, and all of them
together as one jitted function. And all of it once more where the function is called in a loop or a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fnad import cond, config, grad, jit, jvp, value_and_grad, vjp, while_loop
from fnad import map as fnad_map

Function: TypeAlias = Callable[..., Any]
Way: TypeAlias = Callable[[Function, Sequence[Any], Sequence[Any]], dict[str, Any]]
"""From a function, its arguments and a direction to results by name."""


def check(
    f: Function,
    *xs: Any,
    value: Any,
    gradient: Sequence[Any],
    forward: Sequence[Any] | None = None,
    hessian: Any = None,
    rtol: float = 0.0,
    inside: bool = True,
) -> None:
    """Assert the value and derivatives of a function with one output element.

    `forward` is the gradient by forward mode, where that is another. With `hessian`, the second derivative is compared
    by each nesting of the modes. Where Python decides by a traced value, it cannot be in a loop: `inside` is False.
    """
    check_value(f, xs, value, rtol)
    if inside:
        check_inside(f, xs, value, gradient, forward, hessian, rtol)
    for name, found in by_directions(first_derivatives, f, xs).items():
        if name.endswith("jvp"):
            compare(name, found, gradient if forward is None else forward, rtol)
        else:
            for row in found:
                compare(name, row, gradient, rtol)
    if hessian is not None:
        for name, found in by_directions(second_derivatives, f, xs).items():
            compare(name, found, hessian, rtol)


def check_inside(
    f: Function, xs: Sequence[Any], value: Any, gradient: Any, forward: Any, hessian: Any, rtol: float
) -> None:
    """Assert the same of the function called in loops and in a branch; in a scan, to first order, compiled too."""
    for place, enclose in INSIDE.items():
        g = enclose(f)
        with config.override(executor="interpreter"):
            compare(f"grad {place}", flat(grad(g, every(xs))(*xs)), gradient, rtol)
            along = [np.sum(jvp(g, xs, dxs)[1]) for dxs in basis(xs)]
            compare(f"jvp {place}", along, gradient if forward is None else forward, rtol)
            if hessian is not None:
                rows = [second_derivatives(g, xs, dxs)["reverse over reverse"] for dxs in basis(xs)[:1]]
                compare(f"second derivatives {place}", rows, np.asarray(hessian)[:1], rtol)
        with config.override(executor="compiled" if enclose is in_a_scan else "interpreter"):
            found, compiled = jit(partial(value_and_flat_gradient, g))(*xs)
        compare(f"value {place}", found, value, rtol)
        compare(f"jit grad {place}", compiled, gradient, rtol)


def value_and_flat_gradient(f: Function, *xs: Any) -> tuple[Any, Any]:
    """Return the value of a function and its gradient as a vector."""
    value, parts = value_and_grad(f, every(xs))(*xs)
    return value, flat(parts)


def compare(name: str, found: Any, expected: Any, rtol: float) -> None:
    """Compare arrays; inf and nan have to stand in the same places."""
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol, err_msg=name)


def check_value(f: Function, xs: Sequence[Any], value: Any, rtol: float) -> None:
    """Assert the value, by NumPy alone and through fnad, where it has NumPy's shape and dtype."""
    with np.errstate(all="ignore"):
        plain = f(*xs)
    compare("numpy", plain, value, rtol)
    for executor in ("interpreter", "compiled"):
        with config.override(executor=executor):
            for found in (jit(f)(*xs), value_and_grad(f, every(xs))(*xs)[0]):
                compare(executor, found, value, rtol)
                assert (np.shape(found), np.asarray(found).dtype) == (np.shape(plain), np.asarray(plain).dtype)


def by_directions(way: Way, f: Function, xs: Sequence[Any]) -> dict[str, Any]:
    """Return what a way says of each direction with a single 1, one row for each, alone and within `jit`."""
    xs = tuple(xs)
    compiled = jit(lambda xs, dxs: way(f, xs, dxs))
    rows: list[dict[str, Any]] = []
    for dxs in basis(xs):
        with config.override(executor="interpreter"):
            interpreted = {**way(f, xs, dxs), **named("jit ", compiled(xs, dxs))}
        rows.append({**interpreted, **named("compiled jit ", compiled(xs, dxs))})
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def named(prefix: str, results: dict[str, Any]) -> dict[str, Any]:
    """Return results under longer names."""
    return {prefix + name: result for name, result in results.items()}


# ---- ways ------------------------------------------------------------------------------------------------------------


def first_derivatives(f: Function, xs: Sequence[Any], dxs: Sequence[Any]) -> dict[str, Any]:
    """Return the gradient by reverse mode, and its product with the direction by forward mode."""
    output, pullback = vjp(f, *xs)
    found = {
        "grad": grad(f, every(xs))(*xs),
        "grad of jit": grad(jit(f), every(xs))(*xs),
        "value_and_grad": value_and_grad(f, every(xs))(*xs)[1],
        "vjp": pullback(np.ones_like(output)),
    }
    for parts in found.values():
        for part, x in zip(parts, xs, strict=True):
            assert (np.shape(part), part.dtype) == (np.shape(x), x.dtype)
    return {**{name: flat(parts) for name, parts in found.items()}, "jvp": np.sum(jvp(f, xs, dxs)[1])}


def second_derivatives(f: Function, xs: Sequence[Any], dxs: Sequence[Any]) -> dict[str, Any]:
    """Return the product of the Hessian and the direction, by each nesting of the modes."""
    gradient = grad(f, every(xs))
    directional = lambda *xs: np.sum(jvp(f, xs, dxs)[1])  # noqa: E731

    def along(*xs: Any) -> Any:
        return sum(np.sum(g * dx) for g, dx in zip(gradient(*xs), dxs, strict=True))

    return {
        "forward over reverse": flat(jvp(gradient, xs, dxs)[1]),
        "reverse over reverse": flat(grad(along, every(xs))(*xs)),
        "reverse over forward": flat(grad(directional, every(xs))(*xs)),
        "forward over forward": np.stack([jvp(directional, xs, vs)[1] for vs in basis(xs)]),
    }


# ---- in loops and branches -------------------------------------------------------------------------------------------


def in_a_scan(f: Function) -> Function:
    """Return the function as the second step of a loop over two rows."""
    twice = lambda x: np.stack([x, x])  # noqa: E731
    return lambda *xs: fnad_map(lambda row: f(*row), tuple(map(twice, xs)))[1]


def in_a_while_loop(f: Function) -> Function:
    """Return the function in the body of a loop that takes one step, and whose carries change places."""

    def run(*xs: Any) -> Any:
        body = lambda s: (s[0] + 1, s[2], s[1], f(*s[1]))  # noqa: E731
        return while_loop(lambda s: s[0] < 1, body, (0, xs, xs, np.zeros_like(f(*xs))))[3]

    return run


def in_a_branch(f: Function) -> Function:
    """Return the function in the branch that is taken, which is not known before."""

    def run(*xs: Any) -> Any:
        decisive = np.ravel(xs[0])[0]
        return cond((decisive > 0) | ~(decisive > 0), f, lambda *xs: np.zeros_like(f(*xs)), *xs)

    return run


INSIDE = {"in a scan": in_a_scan, "in a while_loop": in_a_while_loop, "in a branch": in_a_branch}


# ---- arguments -------------------------------------------------------------------------------------------------------


def every(xs: Sequence[Any]) -> tuple[int, ...]:
    """Return the positions of all arguments."""
    return tuple(range(len(xs)))


def basis(xs: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the directions with a single 1, element by element of every argument."""
    directions: list[tuple[Any, ...]] = []
    for i, x in enumerate(xs):
        for position in range(x.size):
            parts = [np.zeros(x.shape, x.dtype) for x in xs]
            parts[i].flat[position] = 1
            directions.append(tuple(part[()] for part in parts))
    return directions


def flat(arrays: Sequence[Any]) -> Any:
    """Return arrays as one vector."""
    return np.concatenate([np.ravel(array) for array in arrays])

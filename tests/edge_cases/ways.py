"""Values, gradients and Hessians in every way a user can ask for them; all have to say the same.

A function is given as a user writes it, with arguments that are arrays or numbers. Its gradient is one flat vector over
all of them, its Hessian a matrix. Each transform is run by itself, in the interpreter and compiled, and all of them
together as one jitted function. And all of it once more where the function is called in a loop or in a branch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from random import Random
from typing import Any, TypeAlias

import numpy as np

from fnad import cond, config, grad, jit, jvp, to_host, value_and_grad, vjp, while_loop
from fnad import map as fnad_map
from fnad.backends.cuda import driver
from tests import together
from tests.cuda.native import Compiled
from tests.gpu import Simulated

DEVICE = os.environ.get("FNAD_TEST_DEVICE")
"""Where all is to be run, too: on "cuda", "simulated", or "native", as LLVM compiles kernels for a GPU.

If it is not set, a third of the functions is run on a simulated device.
"""

Function: TypeAlias = Callable[..., Any]


def check(
    f: Function,
    *xs: Any,
    value: Any,
    gradient: Sequence[Any],
    forward: Sequence[Any] | None = None,
    hessian: Any = None,
    rtol: float = 0.0,
    atol: float = 0.0,
    inside: bool = True,
) -> None:
    """Assert the value and derivatives of a function with one output element.

    `forward` is the gradient by forward mode, where that is another. With `hessian`, the second derivative is compared
    by each nesting of the modes. Where Python decides by a traced value, it cannot be in a loop: `inside` is False.
    What loops and branches do is the same for all dtypes: arguments in float32 are not taken there, and not to the
    simulated device, where one direction is enough.
    """
    compare = partial(np.testing.assert_allclose, rtol=rtol, atol=atol)
    with np.errstate(all="ignore"):
        plain = f(*xs)
    compare(plain, value, err_msg="numpy")
    along = first_derivative if hessian is None else both_derivatives
    expected = dict.fromkeys(GRADIENTS, gradient) | {"value": value}
    rows = {"jvp": gradient if forward is None else forward} | dict.fromkeys(NESTINGS, hessian)
    compiled = jit(lambda xs, dxs: reverse(f, xs) | along(f, xs, dxs))
    if inside and all(np.asarray(x).dtype != np.float32 for x in xs):
        check_inside(compare, f, xs, value, gradient, rows["jvp"], hessian)
    with config.override(executor="interpreter"):
        backwards = reverse(f, xs)
    assert_like(backwards["value"], plain)
    for name, found in backwards.items():
        compare(found, expected[name], err_msg=name)
    for n, dxs in enumerate(basis(xs)):
        expected |= {name: row[n] for name, row in rows.items() if row is not None}
        with config.override(executor="interpreter"):
            ways = {"jit ": compiled(tuple(xs), dxs)}
            if n == 0:  # the trace is the same in all directions
                ways[""] = along(f, xs, dxs)
        with config.override(executor="compiled"):
            ways["compiled jit "] = compiled(tuple(xs), dxs)
        if DEVICE or (n == 0 and xs[0].dtype != np.float32 and is_for_a_device(f, xs)):
            check_on_device(compiled, (tuple(xs), dxs), expected, max(rtol, 1e-11), max(atol, 1e-13))
        for prefix, results in ways.items():
            for name, found in results.items():
                compare(found, expected[name], err_msg=prefix + name)
        assert_like(ways["jit "]["value"], plain)
        assert_like(ways["compiled jit "]["value"], plain)


def name_of(f: Function) -> str:
    return getattr(f, "__qualname__", "")


def is_for_a_device(f: Function, xs: Sequence[Any]) -> bool:
    """True for a third of the functions, which their names draw: kernels are alike."""
    return not Random(f"device {name_of(f)} {xs} {together.DRAW}").randrange(3)


def check_on_device(
    compiled: Function, args: tuple[Any, ...], expected: dict[str, Any], rtol: float, atol: float
) -> None:
    """Assert the same of what a device computes, whose functions may round in another way."""
    with device(), config.override(device="cuda", executor="compiled"):
        found = to_host(compiled(*args))
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=rtol, atol=atol, err_msg=f"on the device {name}")


def device() -> AbstractContextManager[Any]:
    """The device that programs are to run on."""
    match DEVICE:
        case "cuda":
            return nullcontext()
        case "native":
            return driver.using(Compiled())
        case _:
            return driver.using(Simulated())


def check_inside(
    compare: Function, f: Function, xs: Sequence[Any], value: Any, gradient: Any, forward: Any, hessian: Any
) -> None:
    """Assert the same of the function called in one place that its name draws; in a scan, to first order, compiled too.

    A rule that is wrong in one of the places is wrong for many functions.
    """
    place, enclose = Random(f"{name_of(f)} {xs} {together.DRAW}").choice(list(INSIDE.items()))
    g = enclose(f)
    with config.override(executor="interpreter"):
        first = basis(xs)[0]
        compare(np.sum(jvp(g, xs, first)[1]), forward[0], err_msg=f"jvp {place}")
        if hessian is not None:
            compare(along_gradient(g, xs, first), hessian[0], err_msg=f"second derivatives {place}")
    with config.override(executor="compiled" if enclose is in_a_scan else "interpreter"):
        found, compiled = jit(partial(value_and_flat_gradient, g))(*xs)
    compare(found, value, err_msg=f"value {place}")
    compare(compiled, gradient, err_msg=f"jit grad {place}")


def value_and_flat_gradient(f: Function, *xs: Any) -> tuple[Any, Any]:
    """Return the value of a function and its gradient as a vector."""
    value, parts = value_and_grad(f, every(xs))(*xs)
    return value, flat(parts)


def assert_like(found: Any, plain: Any) -> None:
    """Assert that a value has the shape and dtype of NumPy's."""
    assert (np.shape(found), np.asarray(found).dtype) == (np.shape(plain), np.asarray(plain).dtype)


# ---- ways ------------------------------------------------------------------------------------------------------------

GRADIENTS = ("grad", "grad of jit", "value_and_grad", "vjp")
NESTINGS = ("forward over reverse", "reverse over reverse", "reverse over forward", "forward over forward")


def reverse(f: Function, xs: Sequence[Any]) -> dict[str, Any]:
    """Return the value, and the gradient by each function of reverse mode."""
    output, pullback = vjp(f, *xs)
    value, gradient = value_and_grad(f, every(xs))(*xs)
    found = (grad(f, every(xs))(*xs), grad(jit(f), every(xs))(*xs), gradient, pullback(np.ones_like(output)))
    for parts in found:
        for part, x in zip(parts, xs, strict=True):
            assert (np.shape(part), part.dtype) == (np.shape(x), x.dtype)
    return {"value": value, **dict(zip(GRADIENTS, map(flat, found), strict=True))}


def first_derivative(f: Function, xs: Sequence[Any], dxs: Sequence[Any]) -> dict[str, Any]:
    """Return the product of the gradient and the direction, by forward mode."""
    return {"jvp": np.sum(jvp(f, xs, dxs)[1])}


def second_derivative(f: Function, xs: Sequence[Any], dxs: Sequence[Any]) -> dict[str, Any]:
    """Return the product of the Hessian and the direction, by each nesting of the modes."""
    directional = lambda *xs: np.sum(jvp(f, xs, dxs)[1])  # noqa: E731
    found = (
        flat(jvp(grad(f, every(xs)), xs, dxs)[1]),
        along_gradient(f, xs, dxs),
        flat(grad(directional, every(xs))(*xs)),
        np.stack([jvp(directional, xs, vs)[1] for vs in basis(xs)]),
    )
    return dict(zip(NESTINGS, found, strict=True))


def along_gradient(f: Function, xs: Sequence[Any], dxs: Sequence[Any]) -> Any:
    """Return the gradient of the product of the gradient and the direction."""

    def along(*xs: Any) -> Any:
        return sum(np.sum(g * dx) for g, dx in zip(grad(f, every(xs))(*xs), dxs, strict=True))

    return flat(grad(along, every(xs))(*xs))


def both_derivatives(f: Function, xs: Sequence[Any], dxs: Sequence[Any]) -> dict[str, Any]:
    return first_derivative(f, xs, dxs) | second_derivative(f, xs, dxs)


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

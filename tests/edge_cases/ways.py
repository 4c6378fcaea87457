"""Values, gradients and Hessians in every way a user can ask for them; all have to say the same.

A function is given as a user writes it, with arguments that are arrays or numbers. Its gradient is one flat vector over
all of them, its Hessian a matrix. All transforms are run together as one jitted function, in the interpreter and
compiled, and some by themselves. And some once more where the function is called in a loop or in a branch.
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
    by each nesting of the modes under `jit`, and by one that is drawn without it. Where Python decides by a traced
    value, it cannot be in a loop: `inside` is False.
    What nestings, loops and branches do is the same for all dtypes: arguments in float32 take one nesting and are not
    taken there, nor to the simulated device, where one direction is enough.
    """
    compare = partial(np.testing.assert_allclose, rtol=rtol, atol=atol)
    with np.errstate(all="ignore"):
        plain = f(*xs)
    compare(plain, value, err_msg="numpy")
    drawn = {} if hessian is None else dict([drawn_of(NESTINGS, f, xs)])
    nestings = NESTINGS if drawn and xs[0].dtype != np.float32 else drawn
    compiled = jit(lambda xs, dxs: value_and_flat_gradient(f, *xs) | along(f, xs, dxs, nestings))
    if inside and all(np.asarray(x).dtype != np.float32 for x in xs):
        check_inside(compare, f, xs, value, gradient, gradient if forward is None else forward, hessian)
    with config.override(executor="interpreter"):
        way, by_way = drawn_of(GRADIENTS, f, xs)
        compare(flat_like(by_way(f, xs), xs), gradient, err_msg=way)
    for n, dxs in enumerate(basis(xs)):
        expected = {"value": value, "gradient": gradient, "jvp": (gradient if forward is None else forward)[n]}
        if hessian is not None:
            expected |= dict.fromkeys(NESTINGS, hessian[n]) | {"forward over forward": hessian[n][-1]}
        with config.override(executor="interpreter"):
            ways = {"jit ": compiled(tuple(xs), dxs)}
            if n == 0:  # the trace is the same in all directions
                ways[""] = value_and_flat_gradient(f, *xs) | along(f, xs, dxs, drawn)
                assert_like(ways[""]["value"], plain)
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
    place, enclose = drawn_of(INSIDE, f, xs)
    g = enclose(f)
    with config.override(executor="interpreter"):
        first = basis(xs)[0]
        compare(np.sum(jvp(g, xs, first)[1]), forward[0], err_msg=f"jvp {place}")
        if hessian is not None:
            compare(along_gradient(g, xs, first), hessian[0], err_msg=f"second derivatives {place}")
    with config.override(executor="compiled" if enclose is in_a_scan else "interpreter"):
        found = jit(partial(value_and_flat_gradient, g))(*xs)
    compare(found["value"], value, err_msg=f"value {place}")
    compare(found["gradient"], gradient, err_msg=f"jit grad {place}")


def value_and_flat_gradient(f: Function, *xs: Any) -> dict[str, Any]:
    """Return the value of a function and its gradient as a vector."""
    value, parts = value_and_grad(f, every(xs))(*xs)
    return {"value": value, "gradient": flat_like(parts, xs)}


def assert_like(found: Any, plain: Any) -> None:
    """Assert that a value has the shape and dtype of NumPy's."""
    assert (np.shape(found), np.asarray(found).dtype) == (np.shape(plain), np.asarray(plain).dtype)


# ---- ways ------------------------------------------------------------------------------------------------------------

GRADIENTS: dict[str, Callable[[Function, Sequence[Any]], Any]] = {
    "grad": lambda f, xs: grad(f, every(xs))(*xs),
    "grad of jit": lambda f, xs: grad(jit(f), every(xs))(*xs),
    "vjp": lambda f, xs: by_pullback(f, xs),
}
"""The functions of reverse mode beside `value_and_grad`, of which one is drawn."""

NESTINGS: dict[str, Callable[[Function, Sequence[Any], Sequence[Any]], Any]] = {
    "forward over reverse": lambda f, xs, dxs: flat(jvp(grad(f, every(xs)), xs, dxs)[1]),
    "reverse over reverse": lambda f, xs, dxs: along_gradient(f, xs, dxs),
    "reverse over forward": lambda f, xs, dxs: flat(grad(directional(f, dxs), every(xs))(*xs)),
    "forward over forward": lambda f, xs, dxs: jvp(directional(f, dxs), xs, basis(xs)[-1])[1],
}
"""The ways to the product of the Hessian and a direction; the last one is to its last element."""


def drawn_of(ways: dict[str, Any], f: Function, xs: Sequence[Any]) -> tuple[str, Any]:
    """Return one of some ways, which the name of the function draws."""
    return Random(f"{name_of(f)} {xs} {together.DRAW}").choice(list(ways.items()))


def by_pullback(f: Function, xs: Sequence[Any]) -> Any:
    output, pullback = vjp(f, *xs)
    return pullback(np.ones_like(output))


def directional(f: Function, dxs: Sequence[Any]) -> Function:
    """Return the product of the gradient and the direction, by forward mode."""
    return lambda *xs: np.sum(jvp(f, xs, dxs)[1])


def along_gradient(f: Function, xs: Sequence[Any], dxs: Sequence[Any]) -> Any:
    """Return the gradient of the product of the gradient and the direction."""

    def along(*xs: Any) -> Any:
        return sum(np.sum(g * dx) for g, dx in zip(grad(f, every(xs))(*xs), dxs, strict=True))

    return flat(grad(along, every(xs))(*xs))


def along(f: Function, xs: Sequence[Any], dxs: Sequence[Any], nestings: dict[str, Any]) -> dict[str, Any]:
    """Return the derivatives in a direction: by forward mode, and by each of these nestings."""
    return {"jvp": directional(f, dxs)(*xs)} | {name: nesting(f, xs, dxs) for name, nesting in nestings.items()}


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


def flat_like(parts: Sequence[Any], xs: Sequence[Any]) -> Any:
    """Return a gradient as one vector, which has the shapes and dtypes of the arguments."""
    for part, x in zip(parts, xs, strict=True):
        assert (np.shape(part), part.dtype) == (np.shape(x), x.dtype)
    return flat(parts)


def flat(arrays: Sequence[Any]) -> Any:
    """Return arrays as one vector."""
    return np.concatenate([np.ravel(array) for array in arrays])

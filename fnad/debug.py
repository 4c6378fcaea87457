"""A look into compiled programs, under JAX's names: `print`, `callback`."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from fnad.api.functions.callback import callback as call_host
from fnad.api.staging.leaves import Function, check_function, flatten
from fnad.trace.tracer import Tracer
from fnad.tracebacks import boundary

__all__ = ["callback", "print"]


@boundary
def print(fmt: str, *args: Any, **kwargs: Any) -> None:  # noqa: A001 JAX's name
    """Print `fmt.format(*args, **kwargs)` each time the program comes here, with ordinary numbers and arrays.

    It prints in order, in loops and branches too; derivatives pass by it. The arguments are pytrees of anything.

    >>> import numpy as np, fnad
    >>> @fnad.jit
    ... def halved(x):
    ...     def step(x):
    ...         fnad.debug.print("x = {x:.2f}", x=x)
    ...         return x / 2
    ...     return fnad.while_loop(lambda x: x > 1, step, x)
    >>> halved(3.0)
    x = 3.00
    x = 1.50
    np.float64(0.75)
    """
    callback(_show, fmt, *args, **kwargs)


def _show(fmt: str, *args: Any, **kwargs: Any) -> None:
    builtins.print(fmt.format(*args, **kwargs))


@boundary
def callback(f: Function, *args: Any, **kwargs: Any) -> None:
    """Call `f(*args, **kwargs)` each time the program comes here, with ordinary numbers and arrays, for its effect.

    What `f` returns is dropped. The arguments are pytrees of anything. All else is as for `fnad.callback`.

    >>> import numpy as np, fnad
    >>> seen = []
    >>> fnad.grad(lambda x: fnad.debug.callback(seen.append, x) or x**2)(3.0), seen
    (np.float64(6.0), [np.float64(3.0)])
    """
    check_function(f, "callback")
    values, structure = flatten((args, kwargs))
    traced = [i for i, value in enumerate(values) if isinstance(value, Tracer)]
    rest = {i: as_it_is_now(value) for i, value in enumerate(values) if i not in traced}

    def run(*numbers: Any) -> None:
        found = rest | dict(zip(traced, numbers, strict=True))
        positional, named = structure.unflatten([found[i] for i in range(len(found))])
        f(*positional, **named)

    call_host(run, *[values[i] for i in traced])


def as_it_is_now(value: Any) -> Any:
    """A value that nobody writes into."""
    return value.copy() if isinstance(value, np.ndarray) else value

"""A look into compiled programs: `print` and `callback`, under JAX's names, `progress` and `profile`."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from fnad.api.functions.callback import callback as call_host
from fnad.api.functions.profile import profile
from fnad.api.staging.leaves import Function, check_function, flatten, leaves_of, type_name
from fnad.control.progress import progress as count_step
from fnad.errors import ArgumentTypeError
from fnad.ir.builder import is_tracing
from fnad.ir.types import I64
from fnad.numpy.operands import as_symbol
from fnad.ops.conversion import convert_to
from fnad.ops.shape import constant
from fnad.trace.meters import LABEL, step
from fnad.trace.tracer import Tracer
from fnad.tracebacks import boundary

__all__ = ["callback", "print", "profile", "progress"]


@boundary
def print(fmt: str, *args: Any, **kwargs: Any) -> None:  # noqa: A001 JAX's name
    """Print `fmt.format(*args, **kwargs)` each time the program comes here, with ordinary numbers and arrays.

    It prints in order, in loops and branches too; derivatives pass by it.

    Parameters:
        fmt (str): A text with fields for the arguments, as `str.format` has them.
        *args, **kwargs (pytrees): The arguments of the format.
    Raises:
        IndexError, KeyError: If the format has a field without an argument.
    Examples:
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

    The result of `f` is discarded. All else is as for `fnad.callback`.

    Parameters:
        f (function): Any Python function.
        *args, **kwargs (pytrees): Its arguments.
    Raises:
        ArgumentTypeError: If `f` is not callable.
    Examples:
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


@boundary
def progress(total: Any = None, label: str = LABEL) -> None:
    """Count a step of a loop, which is shown while it runs, if it takes more than two seconds.

    A terminal and a notebook have the steps so far, their number and the time that is left; elsewhere the logger `fnad`
    has a line every ten seconds. It belongs at the end of a step, in `scan`, `fori_loop`, `while_loop` and loops in
    Python, traced or not. Compiled, a step only adds to a number that a thread reads. Nothing is shown of loops on a
    device. Derivatives, `vmap` and `checkpoint` count each step of the function once.

    Parameters:
        total (int, optional): The number of steps, which may be traced.
        label (str): A name for the steps; loops under way at the same time have different ones.
    Raises:
        ArgumentTypeError: If `total` is not an integer, or `label` not a string.
    Examples:
        >>> import numpy as np, fnad
        >>> @fnad.jit
        ... def fitted(w):
        ...     def step(i, w):
        ...         fnad.debug.progress(1000, "step")
        ...         return w - 0.1 * np.sin(w)
        ...     return fnad.fori_loop(0, 1000, step, w)
        >>> round(fitted(1.0), 6)
        np.float64(0.0)
    """
    if not isinstance(label, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentTypeError.here(f"the label of progress is {label!r}, not a string")
    (number,), _ = leaves_of((-1 if total is None else total,), lambda _: "total")
    if number.aval.dtype.kind not in "iu" or number.aval.shape:
        raise ArgumentTypeError.here(
            f"the total of progress is {type_name(total)}, not an integer",
            remedy="give the number of steps, or None if it is not known",
        )
    value = number.value
    if not is_tracing():
        step(label, int(np.asarray(value)))
    elif isinstance(value, np.ndarray):
        count_step(constant(value, I64), label=label)
    else:
        count_step(convert_to(as_symbol(value), I64), label=label)


def as_it_is_now(value: Any) -> Any:
    """A value that nobody writes into."""
    return value.copy() if isinstance(value, np.ndarray) else value

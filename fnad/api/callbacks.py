"""Functions of the host, called from compiled programs: `callback`."""

from __future__ import annotations

from typing import Any

from fnad.api.leaves import Function, check_function, flatten, function_name, leaves_of, to_user
from fnad.api.running import traced
from fnad.api.staging import output_leaves
from fnad.control.callback import Host
from fnad.control.callback import callback as callback_primitive
from fnad.errors import CallbackError
from fnad.ir.builder import current_builder, is_tracing
from fnad.numpy.operands import as_symbol
from fnad.trace.source import current_source


def callback(f: Function, *args: Any, result: Any = None) -> Any:
    """Call `f(*args)` when the program comes here, with ordinary arrays; return its result.

    The arguments are pytrees of arrays and numbers. `result` is a pytree of arrays or numbers of the dtypes and shapes
    that `f` returns; by default it returns None. Calls happen once each time the program passes, in order, also inside
    of loops and branches (so `fnad.cond(i % 100 == 0, report, skip, i, loss)` reports every hundred steps), and on one
    thread; what reverse mode runs again, as `checkpoint` has it, calls again only for a result that it reads. An
    exception of `f` ends the program and reaches the caller. Outside of a trace, `f` is called at once.

    The derivative of `f` is not known: state it by `custom_vjp` or `custom_jvp` around the call, or take the arguments
    through `stop_gradient`.

    Raises `CallbackError` for a result that is not as announced, and where its derivative is required;
    `ArgumentTypeError`.

    >>> import numpy as np, fnad
    >>> @fnad.jit
    ... def total(xs):
    ...     def step(s, x):
    ...         fnad.callback(print, s)
    ...         return s + x, None
    ...     return fnad.scan(step, 0.0, xs)[0]
    >>> total(np.array([1.0, 2.0]))
    0.0
    1.0
    np.float64(3.0)
    """
    check_function(f, "callback")
    if not is_tracing():
        return f(*args)
    leaves, structure = leaves_of(args, lambda i: f"args[{i}]")
    announced, shape = leaves_of((result,), lambda _: "result")
    source = current_source()

    def run(*arrays: Any) -> list[Any]:
        returned = f(*structure.unflatten([to_user(array) for array in arrays]))
        found, like = flatten((returned,))
        if like != shape:
            raise CallbackError(
                f"{function_name(f)} returned another pytree than `result` announces",
                source=source,
                remedy="return what `result` says, or give result=None and return None",
            )
        return output_leaves(tuple(found), f)[0]

    avals = tuple((leaf.aval.dtype, leaf.aval.shape) for leaf in announced)
    operands = [as_symbol(leaf.value) for leaf in leaves]
    current_builder().source = source
    found = callback_primitive(*operands, host=Host.of(run, function_name(f)), results=avals)
    return shape.unflatten(map(traced, found))[0]

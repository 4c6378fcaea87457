"""Functions of the host, called from compiled programs: `callback`."""

from __future__ import annotations

from typing import Any

from fnad.api.functions.lowered import leaves_or_types
from fnad.api.staging.inlining import traced
from fnad.api.staging.leaves import Function, check_function, flatten, function_name, leaves_of, to_user
from fnad.api.staging.stage import output_leaves
from fnad.control.callback import Host
from fnad.control.callback import callback as callback_primitive
from fnad.errors import CallbackError
from fnad.ir.builder import current_builder, is_tracing
from fnad.numpy.operands import as_symbol
from fnad.trace.source import current_source


def callback(f: Function, *args: Any, result: Any = None) -> Any:
    """Call a Python function with ordinary arrays each time a program passes this line.

    The calls are made in order and on one thread, in loops and branches too. If reverse mode computes a part again
    (`checkpoint`), only a callback with a result is called again. Outside a trace, `f` is called at once.

    Parameters:
        f (function): Any Python function.
        *args (pytrees of arrays and numbers): The arguments of `f`.
        result (pytree of arrays and numbers): The structure, shapes and dtypes of what `f` returns; None if `f` returns
            None.
    Returns:
        pytree: The result of `f`. It has no derivative unless a `custom_vjp` or `custom_jvp` around the call states
            one, or the arguments go through `stop_gradient`.
    Raises:
        CallbackError: If `f` returns another structure, shape or dtype than `result`, or if the derivative is required.
        ArgumentTypeError: If a leaf is not an array or number.
    Examples:
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
    announced, shape = leaves_or_types((result,), ["result"])
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

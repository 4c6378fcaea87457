"""Whole fits by SciPy's minimizers, over pytrees of parameters: `minimize`."""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any

import numpy as np

from fnad.api.functions.grad import value_and_grad
from fnad.api.functions.jit import jit
from fnad.api.staging.leaves import Function, check_function, function_name
from fnad.debug import progress
from fnad.errors import DtypeError, UnsupportedFunctionError
from fnad.flatten_util import ravel_pytree
from fnad.ir.builder import is_tracing
from fnad.trace.meters import counting
from fnad.tracebacks import boundary
from fnad.upward import UPWARD

EVALUATION = "evaluation"


@boundary
def minimize(f: Function, params: Any, *args: Any, method: str = "L-BFGS-B", **options: Any) -> Any:
    """The parameters at which `f(params, *args)` is smallest near the given ones, found by `scipy.optimize.minimize`.

    Value and gradient are compiled together. `fnad.minimize` is part of a program and has derivatives; this is not.

    Parameters:
        f (function): Returns one real element.
        params (pytree): The start: real arrays and numbers; integers and bools stay as they are.
        *args (pytrees): Further arguments of `f`.
        method (str): A method of `scipy.optimize.minimize`.
        **options: Its other options (`tol`, `bounds`, `options`, …), in terms of `ravel_pytree(params)[0]`.
    Returns:
        OptimizeResult: SciPy's result (`fun`, `nit`, `success`, `message`, …), with `x` a pytree like `params`.
    Raises:
        DtypeError: If the parameters are complex, or have integers and bools only.
        UnsupportedFunctionError: Inside a trace.
        NonScalarOutputError: If `f` does not return one real element.
    Examples:
        >>> import numpy as np, fnad
        >>> x, y = np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0])
        >>> loss = lambda p: np.mean((p["slope"] * x + p["start"] - y) ** 2)
        >>> fit = fnad.optim.minimize(loss, {"slope": 0.0, "start": 0.0})
        >>> fit.success, round(fit.x["slope"], 4), round(fit.x["start"], 4)
        (True, np.float64(2.0), np.float64(1.0))
    """
    check_function(f, "minimize")
    if is_tracing():
        raise UnsupportedFunctionError.here(
            f"fnad.optim.minimize of {function_name(f)} runs SciPy, which is not part of a program",
            remedy="call fnad.minimize inside jit and other transforms",
        )
    start, unravel = ravel_pytree(params)
    if start.dtype.kind != "f":
        raise DtypeError.here(
            f"the parameters of {function_name(f)} are {start.dtype} and not real floats",
            remedy="start with floats, and with real and imaginary part for complex numbers",
        )

    @wraps(f)  # errors name it
    def of_vector(vector: Any, *args: Any) -> Any:
        return UPWARD.callee(f)(unravel(vector), *args)

    step = jit(value_and_grad(of_vector))

    def counted(vector: Any, *args: Any) -> Any:
        progress(label=EVALUATION)
        return step(vector, *args)

    scipy_minimize = import_module("scipy.optimize").minimize
    with counting([EVALUATION], [[0, -1]]):
        found = scipy_minimize(counted, start.astype(np.float64), args, method, jac=True, **options)
    found.x = unravel(found.x)
    return found

"""SciPy's solvers of differential equations by their own names, in a trace: `fnad.odeint` solves.

Note [Steps]
    Without `t_eval`, `solve_ivp` returns the solution at its own steps, of which there are as many as it needs. A trace
    has to know how many, so SciPy is run while tracing, on the values at hand; its steps are the times, and the path
    holds for these values alone. Derivatives are at fixed times, but for the ends, which may be traced.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import resolve_name
from typing import Any

import numpy as np

from fnad.api.functions.ode import odeint as odeint_here
from fnad.api.solvers.roots import as_tuple, equation_of, solver, vector
from fnad.errors import ConvergenceError, TracerEscapeError, UnsupportedFunctionError
from fnad.ir.known import known_value
from fnad.numpy import array
from fnad.ops.autodiff import stop_gradient
from fnad.trace import guards
from fnad.trace.hooks import callee
from fnad.trace.tracing import symbol_of

METHODS = ("RK45", "RK23", "DOP853", "LSODA")
"""The methods for equations that are not stiff."""

TIGHT = 1e-8
"""The tolerances are at most this: the solution is not that of SciPy's steps, whose errors it need not have."""

TIMES = "give the times as t_eval="

Field = Callable[..., Any]


@solver("scipy.integrate.solve_ivp", lambda given: (given["t_span"][0], np.asarray(given["y0"], float)))
def solve_ivp(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    **options: Any,
) -> Any:
    """The solution at t_eval, or at SciPy's steps, as SciPy's result with traced t and y. See Note [Steps]."""
    _check(method, events)

    def slope(y: Any, t: Any, *args: Any) -> Any:
        return np.ravel(np.atleast_1d(array(callee(fun)(t, y, *args))))

    def at(times: Any) -> Any:
        whole = np.concatenate([np.reshape(array(t_span[0]), (1,)), times]).astype(np.float64)
        return odeint_here(slope, start, whole, *more, rtol=min(rtol, TIGHT), atol=min(float(np.min(atol)), TIGHT))

    start, more = vector(y0), as_tuple(args)
    options |= {"method": method, "rtol": rtol, "atol": atol}
    times = _steps(slope, t_span, start, more, options) if t_eval is None else array(t_eval)
    kind = import_module("scipy.integrate._ivp.ivp").OdeResult
    message = "The solver successfully reached the end of the integration interval."
    sol = _dense(at, t_span) if dense_output else None
    y = at(times)[1:].T
    return kind(t=times, y=y, sol=sol, t_events=None, y_events=None, status=0, message=message, success=True)


def _check(method: Any, events: Any) -> None:
    if method not in METHODS:
        raise UnsupportedFunctionError(
            f"scipy.integrate.solve_ivp has no rule for method={method!r} on traced values",
            remedy=f"give one of {', '.join(METHODS)}: equations that are not stiff have a rule",
        )
    if events is not None:
        raise UnsupportedFunctionError(
            "scipy.integrate.solve_ivp has no rule for the option events=",
            remedy="leave it out: the time of an event is a root, fnad.root, of what it looks for in the solution",
        )


def _steps(slope: Field, t_span: Any, start: Any, more: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The times of SciPy's steps for the values at hand, of which the ends are traced."""

    def field(z: Any, *args: Any) -> Any:
        return np.concatenate([np.ones(1), slope(z[1:], z[0], *args)])

    ends = vector(t_span)
    system, _, at = equation_of(field, np.concatenate([ends[:1], start]), more)
    *captured, (first, last), y0 = map(_at_hand, [*system.captured, symbol_of(ends), symbol_of(start)])
    whole = at(captured)
    result = resolve_name("scipy.integrate.solve_ivp")(lambda t, y: whole([t, *y])[1:], (first, last), y0, **options)
    if not result.success:
        raise ConvergenceError(f"scipy.integrate.solve_ivp did not succeed: {result.message}")
    return np.concatenate([ends[:1], result.t[1:-1], ends[1:]])


def _at_hand(symbol: Any) -> Any:
    """The value of a symbol, for which alone the path holds."""
    if (known := known_value(symbol)) is not None:
        return known
    value = guards.value_at_hand(symbol)
    if value is None:
        raise TracerEscapeError.here(
            "scipy.integrate.solve_ivp without t_eval= takes steps that depend on arguments without numbers yet",
            remedy=TIMES,
        )
    guards.content(stop_gradient(symbol), value, None, TIMES)  # nothing is decided that has a derivative
    return value


def _dense(at: Field, t_span: Any) -> Field:
    """The solution as a function of the time, an array of times or a number, in any order."""

    def sol(t: Any) -> Any:
        times = np.ravel(array(t))
        order = np.argsort(times if t_span[0] <= t_span[1] else -times)
        y = at(times[order])[1:][np.argsort(order)].T
        return np.reshape(y, (len(y), *np.shape(t)))

    return sol


def _odeint_call(given: dict[str, Any]) -> tuple[Any, Any]:
    y, t = np.atleast_1d(given["y0"]), given["t"][0]
    return (t, y) if given.get("tfirst") else (y, t)


@solver("scipy.integrate.odeint", _odeint_call)
def odeint(func: Any, y0: Any, t: Any, args: Any, rtol: Any, atol: Any, mxstep: int, tfirst: bool) -> Any:
    """The solution by `fnad.scipy.integrate.odeint`."""
    options = {"rtol": rtol, "atol": atol, "mxstep": mxstep, "tfirst": tfirst}
    return import_module("fnad.scipy.integrate").odeint(func, y0, t, as_tuple(args), **options)

"""SciPy's solvers by their own names, in a trace: they find the solution, and its derivative is that of the equation.

The user's function is traced once. When the program runs, SciPy's own solver is called with it on ordinary
numbers, so that the solution is SciPy's; by the implicit function theorem (`fnad.control.implicit`) its derivatives are
those of the equation that it solves, of any order. Where nothing that the function uses is traced, SciPy is called at
once. The function may not decide by the unknown with Python's `if`: it has no number while tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial, wraps
from importlib import import_module
from inspect import signature
from pkgutil import resolve_name
from typing import Any

import numpy as np

from fnad.api.functions.implicit import System, square_system
from fnad.api.staging.inlining import traced
from fnad.control.callback import Host
from fnad.control.callback import callback as on_host
from fnad.control.implicit import implicitly
from fnad.errors import ConvergenceError, DomainError, FnadError, ShapeError, TracerEscapeError
from fnad.ir.builder import current_builder, inline, is_tracing
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.numpy import array
from fnad.numpy.registry import Bound
from fnad.trace.hooks import callee
from fnad.trace.source import current_source
from fnad.trace.tracing import symbol_of, trace_function
from fnad.trace.wrapping import has_traced
from fnad.trace.writes import undone_writes, without_outer_writes
from fnad.transforms.differentiation import jvp
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify

Rule = Callable[..., Any]
NEARER = "start nearer, or give other options, a larger tol= for example"
COUNTS = ((I64, ()), (I64, ()))
"""Of a SciPy result: its status, and how often the function was called."""


def solver(path: str, probe: Callable[[dict[str, Any]], tuple[Any, ...]]) -> Callable[[Rule], Rule]:
    """Enter the rule of a solver, which takes SciPy's arguments and gets SciPy's defaults.

    `probe` makes of the arguments those of a call of the user's function.
    """

    def enter(rule: Rule) -> Rule:
        @cache
        def as_scipys() -> Rule:
            return Bound(rule, resolve_name(path), path)

        @wraps(rule)
        def solve(*args: Any, **kwargs: Any) -> Any:
            if not is_tracing():
                return resolve_name(path)(*args, **kwargs)
            given = signature(resolve_name(path)).bind(*args, **kwargs).arguments
            if not has_traced(given):
                with undone_writes(*given.values()):
                    is_untraced = bool(_untraced(partial(_ask, given, probe)))
                if is_untraced and (found := _untraced(partial(resolve_name(path), *args, **kwargs))):
                    return found[0]
            try:
                with without_outer_writes(*given.values()):
                    return as_scipys()(*args, **kwargs)
            except FnadError as error:
                raise error.at(current_source()) from None

        return solve

    return enter


def _ask(given: dict[str, Any], probe: Callable[[dict[str, Any]], tuple[Any, ...]]) -> Any:
    """Call the user's function once: most need no more to tell that they use traced values."""
    function = next(iter(given.values()))
    return callee(function)(*probe(given), *as_tuple(given.get("args", ()))) if callable(function) else None


def _untraced(call: Callable[[], Any]) -> list[Any]:
    """The result of a call, alone in a list; an empty list if the call uses traced values, even in a decision."""
    found: list[Any] = []

    def run(_: Any) -> list[Any]:
        found.append(call())
        return []

    try:
        inner = trace_function(run, [], name="call")
    except TracerEscapeError:
        return []
    is_traced = has_traced(found) or any(isinstance(value, Symbol) for value in inner.captured)
    return [] if is_traced else found


def as_tuple(args: Any) -> tuple[Any, ...]:
    """The `args=` of SciPy as a tuple."""
    return args if isinstance(args, tuple) else () if args is None else (args,)


# ---- one equation ----------------------------------------------------------------------------------------------------


def solution(
    system: System, residual: Callable[..., list[Symbol]], find: Rule, given: Sequence[Any] = (), more: Any = ()
) -> list[Symbol]:
    """The results of `find` when the program runs: the unknowns, where the residual is 0, and more.

    It is called with the values of what was captured, the starts, and the values of what else was given.
    """
    captured, others = system.captured, [symbol_of(value) for value in given]
    unknowns = [t.aval for t in system.types]

    def solve(*start: Symbol) -> list[Symbol]:
        def run(*values: Any) -> list[Any]:
            found = find(values[: len(captured)], *values[len(captured) :])
            return [np.asarray(v, d).reshape(s) for v, (d, s) in zip(found, results, strict=True)]

        results = (*[(aval.dtype, aval.shape) for aval in unknowns], *more)
        return list(on_host(*captured, *start, *others, host=Host.of(run), results=results))

    current_builder().source = current_source()
    return implicitly(solve, residual, system.x.operands(system.types), unknowns)


def equation_of(f: Rule, x: Any, args: Any) -> tuple[System, Callable[..., list[Symbol]], Rule]:
    """A function of the unknown, as a system, as an equation, and on the values of what it captured."""
    system = square_system(f, x, as_tuple(args))
    shape, dtype = system.types[0].aval.shape, system.types[0].aval.dtype

    def at(captured: Sequence[Any]) -> Rule:
        return lambda x: interpret(system.program, [*captured, np.asarray(x, dtype).reshape(shape)])[0]

    return system, lambda *x: inline(system.program, [*system.captured, *x]), at


def _slope_at(system: System, captured: Sequence[Any], order: int) -> Rule:
    """The first or second derivative of a function of each element by itself."""
    pushed, aval = jvp(system.program, system.unknowns), system.types[0].aval
    program = simplify(pushed if order == 1 else jvp(pushed, [*system.unknowns, False]))

    def slope(x: Any) -> Any:
        point = np.asarray(x, aval.dtype).reshape(aval.shape)
        return interpret(program, [*captured, point, *[np.ones_like(point)] * order])[-1][()]

    return slope


def _jacobian_at(system: System, captured: Sequence[Any]) -> Rule:
    pushed, aval = simplify(jvp(system.program, system.unknowns)), system.types[0].aval

    def jacobian(x: Any) -> Any:
        point = np.asarray(x, aval.dtype).reshape(aval.shape)
        columns = [
            interpret(pushed, [*captured, point, unit])[1] for unit in np.eye(aval.size).reshape(-1, *aval.shape)
        ]
        return np.stack([column.ravel() for column in columns], axis=1)

    return jacobian


# ---- roots of one variable -------------------------------------------------------------------------------------------


def _bracketing(name: str) -> Rule:
    path = f"scipy.optimize.{name}"

    def rule(f: Any, a: Any, b: Any, args: Any, xtol: Any, rtol: Any, maxiter: Any, full_output: Any) -> Any:
        _check_ends(name, a, b)
        system, residual, at = equation_of(f, _number(a), args)

        def find(captured: Any, start: Any, end: Any) -> list[Any]:
            function, options = at(captured), {"xtol": xtol, "rtol": rtol, "maxiter": maxiter}
            found = resolve_name(path)(
                lambda x: float(function(x)), float(start), float(end), full_output=True, **options
            )
            return [found[0], found[1].iterations, found[1].function_calls]

        return _root_of(solution(system, residual, find, [b], more=COUNTS), name, full_output)

    return solver(path, lambda given: (given["a"],))(rule)


def _root_of(found: Sequence[Symbol], method: str, full_output: Any) -> Any:
    """A root, with SciPy's record of how it was found where that is asked for."""
    root, iterations, calls = map(traced, found)
    record = import_module("scipy.optimize").RootResults
    return (root, record(root, iterations, calls, 0, method)) if full_output else root


def _check_ends(name: str, *ends: Any) -> None:
    if any(np.ndim(end) for end in ends):
        raise ShapeError.here(
            f"{name} looks for a number between two, and was given an array",
            remedy="solve for several numbers at once with fnad.root, or for each with fnad.vmap",
        )


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, (int, np.integer)) else value


brentq, brenth, ridder, bisect, toms748 = map(_bracketing, ("brentq", "brenth", "ridder", "bisect", "toms748"))


@solver("scipy.optimize.newton", lambda given: (given["x0"],))
def newton(
    func: Any,
    x0: Any,
    fprime: Any,
    args: Any,
    tol: Any,
    maxiter: Any,
    fprime2: Any,
    x1: Any,
    rtol: Any,
    full_output: Any,
) -> Any:
    """The root that SciPy's method of Newton, Halley or secants finds; derivatives that are given are those of func."""
    if full_output:
        _check_ends("newton with full_output=True", x0)
    system, residual, at = equation_of(func, _number(x0), args)

    def find(captured: Any, start: Any, *second: Any) -> list[Any]:
        options = _slopes(system, captured, fprime, fprime2) | {"x1": second[0] if second else None}
        options |= {"tol": tol, "maxiter": maxiter, "rtol": rtol}
        found = resolve_name("scipy.optimize.newton")(
            lambda x: at(captured)(x)[()], start[()], full_output=not start.ndim, **options
        )
        return [found, 0, 0] if start.ndim else [found[0], found[1].iterations, found[1].function_calls]

    slopes = [f for f in (fprime, fprime2) if f is not None]
    method = ("secant", "newton", "halley")[len(slopes)]
    return _root_of(solution(system, residual, find, [] if x1 is None else [x1], more=COUNTS), method, full_output)


@solver("scipy.optimize.root_scalar", lambda given: (_start_of(given.get("bracket"), given.get("x0")),))
def root_scalar(
    f: Any,
    args: Any,
    method: Any,
    bracket: Any,
    fprime: Any,
    fprime2: Any,
    x0: Any,
    x1: Any,
    xtol: Any,
    rtol: Any,
    maxiter: Any,
    options: Any,
) -> Any:
    """SciPy's result with a traced root; derivatives that are given, or returned beside values, are those of f."""
    is_several = (fprime is not None and not callable(fprime)) or (fprime2 is not None and not callable(fprime2))
    function = (lambda x, *args: callee(f)(x, *args)[0]) if is_several and (fprime or fprime2) else f
    ends = [] if bracket is None else list(bracket[:2])
    others = [*ends, *([] if x0 is None else [x0]), *([] if x1 is None else [x1])]
    _check_ends("root_scalar", *others)
    system, residual, at = equation_of(function, _number(_start_of(bracket, x0)), args)
    limits = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": options, "method": method}

    def find(captured: Any, _: Any, *given: Any) -> list[Any]:
        numbers = iter(map(float, given))
        places: dict[str, Any] = {"bracket": [next(numbers), next(numbers)]} if ends else {}
        places |= {name: next(numbers) for name, value in (("x0", x0), ("x1", x1)) if value is not None}
        slopes = _slopes(system, captured, fprime or None, fprime2 or None)
        result = resolve_name("scipy.optimize.root_scalar")(
            lambda x: float(at(captured)(x)), **places, **slopes, **limits
        )
        check_success("root_scalar", result.converged, result.flag)
        return [result.root, result.iterations, result.function_calls]

    root, iterations, calls = map(traced, solution(system, residual, find, others, more=COUNTS))
    return import_module("scipy.optimize").RootResults(root, iterations, calls, 0, method)


def _start_of(bracket: Any, x0: Any) -> Any:
    if bracket is None and x0 is None:
        raise DomainError("unable to select a solver as neither bracket nor starting point provided")
    return x0 if bracket is None else bracket[0]


def _slopes(system: System, captured: Sequence[Any], fprime: Any, fprime2: Any) -> dict[str, Any]:
    """The derivatives of a function of one variable, for those that the user gave."""
    orders = {"fprime": (fprime, 1), "fprime2": (fprime2, 2)}
    return {name: _slope_at(system, captured, order) for name, (f, order) in orders.items() if f is not None}


# ---- systems of equations --------------------------------------------------------------------------------------------


def _vector_function(f: Rule, x: Any, args: tuple[Any, ...], *, is_pair: bool = False) -> Rule:
    """A function whose result is an array, of the first of two results if it returns the Jacobian too."""
    if isinstance(callee(f)(x, *args), (list, tuple)) or np.ndim(x) == 0 or is_pair:
        return lambda x, *args: np.atleast_1d(array(callee(f)(x, *args)[0] if is_pair else callee(f)(x, *args)))
    return f


def vector(x: Any) -> Any:
    return np.ravel(np.atleast_1d(array(x))).astype(np.float64)


@solver("scipy.optimize.fsolve", lambda given: (np.atleast_1d(given["x0"]),))
def fsolve(func: Any, x0: Any, args: Any, fprime: Any, full_output: Any, xtol: Any, maxfev: Any) -> Any:
    """The root that SciPy finds; a Jacobian that is given is replaced by that of func.

    What is found with `full_output` is a root: where there is none that is an error.
    """
    start = vector(x0)
    system, residual, at = equation_of(_vector_function(func, start, as_tuple(args)), start, args)

    def find(captured: Any, start: Any) -> list[Any]:
        slopes = None if fprime is None else _jacobian_at(system, captured)
        own_fsolve = partial(resolve_name("scipy.optimize.fsolve"), fprime=slopes, xtol=xtol, maxfev=maxfev)
        if not full_output:
            return [own_fsolve(at(captured), start), 0]
        found, record, status, message = own_fsolve(at(captured), start, full_output=True)
        check_success("fsolve", status == 1, message)
        return [found, record["nfev"]]

    x, calls = solution(system, residual, find, more=COUNTS[:1])
    if not full_output:
        return traced(x)
    record = {"nfev": traced(calls), "fvec": traced(residual(x)[0])}
    return traced(x), record, 1, "The solution converged."


@solver("scipy.optimize.root", lambda given: (np.atleast_1d(given["x0"]),))
def root(fun: Any, x0: Any, args: Any, method: str, jac: Any, tol: Any, options: Any) -> Any:
    """SciPy's result with a traced x, fun, status and nfev."""
    start = vector(x0)
    function = _vector_function(fun, start, as_tuple(args), is_pair=jac is True)
    system, residual, at = equation_of(function, start, args)

    def find(captured: Any, start: Any) -> list[Any]:
        slopes = _jacobian_at(system, captured) if jac else None
        result = resolve_name("scipy.optimize.root")(
            at(captured), start, method=method, jac=slopes, tol=tol, options=options
        )
        return [result.x, *counts_of("root", result)]

    x, *counts = solution(system, residual, find, more=COUNTS)
    return result_of(x, counts, fun=traced(residual(x)[0]))


def check_success(name: str, success: Any, message: str) -> None:
    """Raise if a solver did not succeed, because a point that is not a solution has no derivative."""
    if not success:
        raise ConvergenceError(f"scipy.optimize.{name} did not succeed: {message}", remedy=NEARER)


def counts_of(name: str, result: Any) -> list[Any]:
    """The numbers of a result that are kept."""
    check_success(name, result.success, result.message)
    return [result.get("status", 0), result.get("nfev", 0)]


def result_of(x: Symbol, counts: Sequence[Symbol], **more: Any) -> Any:
    status, nfev = map(traced, counts)
    kind = import_module("scipy.optimize").OptimizeResult
    return kind(x=traced(x), success=True, status=status, nfev=nfev, message="The solver succeeded.", **more)

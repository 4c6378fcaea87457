"""SciPy's `minimize` and `least_squares` by their own names, in a trace, with bounds and constraints.

The solution is SciPy's. Its derivative is that of the conditions of Karush, Kuhn and Tucker (Nocedal & Wright,
"Numerical Optimization", 2006, theorem 12.1), with L = f - λ·c:

    ∂L/∂x = 0, but x = bound where x is at one;  c = 0, but λ = 0 where an inequality holds by more

What is active is held (Fiacco, "Sensitivity analysis for nonlinear programming using penalty methods", 1976). Where it
cannot be told whether it stays, since the multiplier is 0 or there is no telling it from 0, the derivative is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import signature
from pkgutil import resolve_name
from typing import Any, NamedTuple

import numpy as np

from fnad.api.functions.implicit import System, caller_of, check_scalar, system_of
from fnad.api.functions.jacobian import jacfwd
from fnad.api.solvers.roots import COUNTS, Rule, as_tuple, check_success, counts_of, result_of, solution, solver, vector
from fnad.api.staging.inlining import traced
from fnad.api.staging.marshalling import Tree
from fnad.api.staging.regions import region_of
from fnad.errors import DomainError, ShapeError, UnsupportedFunctionError
from fnad.ir.builder import inline
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.numpy import array
from fnad.ops.requirement import require
from fnad.trace.hooks import callee
from fnad.trace.tracing import symbol_of, trace_function
from fnad.trace.wrapping import has_traced
from fnad.transforms.differentiation import gradient, jvp
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify

NEAR, SMALL = 1e-6, 1e-8
"""The distance at which a bound or constraint is met; the part of the largest multiplier that counts as zero."""

DEGENERATE = "the solution lies at a bound or constraint whose multiplier cannot be told from 0: it has no derivative"
UNLESS = "give a smaller tol= if it is not 0, or leave the bound or constraint out"


# ---- the conditions --------------------------------------------------------------------------------------------------


def _ends_met(x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    near = NEAR * (1 + np.abs(x))
    return x - low <= near, high - x <= near


def _at_bounds(x: Any, slope: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """The residual that is 0 at a solution within bounds, and the condition under which it has a derivative."""
    at_low, at_high = _ends_met(x, low, high)
    is_free = ~(at_low | at_high)
    holds = (low == high) | is_free | (np.where(at_low, slope, -slope) > _noise(slope, is_free))
    return np.where(is_free, slope, x - np.where(at_low, low, high)), holds


def _noise(slope: Any, is_free: Any) -> Any:
    """The tolerance for slopes that are to be 0: their error, or a small part of the largest slope."""
    size = np.abs(slope)
    return np.maximum(np.max(np.where(is_free, size, 0.0)), SMALL * np.max(size))


def _at_constraints(values: Any, multipliers: Any, is_equation: Any) -> tuple[Any, Any]:
    """The same of constraints, of which the inequalities are that values are not negative."""
    is_met = is_equation | (values <= NEAR)
    holds = is_equation | ~is_met | (multipliers > NEAR * np.max(np.abs(multipliers)))
    return np.where(is_met, values, multipliers), holds


def _conditions(function: Callable[..., tuple[Any, Any]], *operands: Symbol) -> Symbol:
    """One of these in the program, where it holds."""
    found = trace_function(lambda given: list(function(*given)), [value.aval for value in operands], name="conditions")
    residual, holds = inline(found.program, operands)
    return require(residual, holds, message=DEGENERATE, remedy=UNLESS)


# ---- the problem -----------------------------------------------------------------------------------------------------


class _Bounds(NamedTuple):
    """The limits of each unknown."""

    low: Symbol
    high: Symbol

    @classmethod
    def of(cls, bounds: Any, size: int) -> _Bounds | None:
        """The bounds of SciPy's `minimize`: a `Bounds`, or pairs in which None is no limit."""
        if bounds is None:
            return None
        if hasattr(bounds, "lb"):
            return cls.between(bounds.lb, bounds.ub, size)
        pairs = [(-np.inf if low is None else low, np.inf if high is None else high) for low, high in bounds]
        if len(pairs) != size:
            raise ShapeError(f"there are {len(pairs)} bounds of {size} unknowns", remedy="give a pair for each")
        low, high = zip(*pairs, strict=True)
        return cls.between(list(low), list(high), size)

    @classmethod
    def between(cls, low: Any, high: Any, size: int) -> _Bounds | None:
        """Limits for all or each; none where all are infinite."""
        if not has_traced((low, high)) and np.all(np.isinf(low)) and np.all(np.isinf(high)):
            return None
        return cls(*[symbol_of(np.broadcast_to(array(end), (size,)).astype(np.float64)) for end in (low, high)])


class _Constraints(NamedTuple):
    """Functions of the unknowns, in one vector: equations are 0, inequalities not negative."""

    function: Callable[[Any], Any]
    is_equation: np.ndarray[Any, Any]

    @classmethod
    def of(cls, given: Any, start: Any) -> _Constraints | None:
        """The constraints of SciPy's `minimize`."""
        parts = [part for one in (given if isinstance(given, (list, tuple)) else [given]) for part in _parts(one)]
        if not parts:
            return None
        kinds = [np.full(np.shape(function(start)), is_equation) for is_equation, function in parts]
        return cls(lambda x: np.concatenate([function(x) for _, function in parts]), np.concatenate(kinds))


def _parts(constraint: Any) -> list[tuple[bool, Callable[[Any], Any]]]:
    """The functions of a constraint, each with whether it is an equation."""
    if isinstance(constraint, dict):
        f, args = constraint["fun"], as_tuple(constraint.get("args", ()))
        return [(constraint["type"].lower() == "eq", lambda x: np.ravel(array(callee(f)(x, *args))))]
    low, high = np.broadcast_arrays(np.atleast_1d(constraint.lb), np.atleast_1d(constraint.ub))

    def values(x: Any) -> Any:
        found = np.ravel(array(constraint.A @ x if hasattr(constraint, "A") else callee(constraint.fun)(x)))
        return np.broadcast_to(found, np.broadcast_shapes(np.shape(found), low.shape))

    same = low == high
    sides = [
        (True, same, low, 1.0),
        (False, ~same & np.isfinite(low), low, 1.0),
        (False, ~same & np.isfinite(high), high, -1.0),
    ]
    return [(kind, _side(values, flags, end, sign)) for kind, flags, end, sign in sides if np.any(flags)]


def _side(values: Rule, flags: Any, end: Any, sign: float) -> Rule:
    """The distances of the marked values from an end, positive on the right side."""

    def function(x: Any) -> Any:
        found = values(x)
        marked = np.flatnonzero(np.broadcast_to(flags, np.shape(found)))
        return sign * (found[marked] - np.broadcast_to(end, np.shape(found))[marked])

    return function


class _Problem(NamedTuple):
    """The Lagrangian of a problem as a system in x, and in the multipliers if there are any, with its gradient."""

    system: System
    slopes: Program
    bounds: _Bounds | None
    constraints: _Constraints | None

    @classmethod
    def of(cls, f: Rule, start: Any, bounds: _Bounds | None, constraints: _Constraints | None) -> _Problem:
        """Trace the function and the constraints."""

        def lagrangian(x: Any, *multipliers: Any) -> Any:
            return f(x) - multipliers[0] @ constraints.function(x) if constraints else f(x)

        more = [] if constraints is None else [np.zeros(constraints.is_equation.shape)]
        tree = Tree.of("x0", (start, *more))
        region = region_of(f, caller_of(lambda xs: lagrangian(*xs), tree, ()), tree.types)
        check_scalar(f, region)
        system = system_of(f, region, tree, tree.types)
        return cls(system, simplify(gradient(system.program, system.unknowns)), bounds, constraints)

    def residual(self, x: Symbol, *multipliers: Symbol) -> list[Symbol]:
        """The residual that is 0 at a solution."""
        slope, *minus = inline(self.slopes, [*self.system.captured, x, *multipliers])
        first = slope if self.bounds is None else _conditions(_at_bounds, x, slope, *self.bounds)
        if self.constraints is None:
            return [first]
        kinds = symbol_of(self.constraints.is_equation)
        return [first, _conditions(_at_constraints, -minus[0], *multipliers, kinds)]

    def at(self, captured: Any, multipliers: Sequence[Any]) -> _OnNumbers:
        """The problem on numbers."""
        return _OnNumbers(self, captured, [np.zeros_like(values) for values in multipliers])


class _OnNumbers(NamedTuple):
    problem: _Problem
    captured: Any
    none: list[Any]

    def value(self, x: Any) -> float:
        return float(interpret(self.problem.system.program, [*self.captured, x, *self.none])[0])

    def slope(self, x: Any, *multipliers: Any) -> Any:
        return interpret(self.problem.slopes, [*self.captured, x, *(multipliers or self.none)])[0]

    def constraint(self, x: Any) -> Any:
        return -interpret(self.problem.slopes, [*self.captured, x, *self.none])[1]

    def constraint_slopes(self, x: Any) -> Any:
        none = self.slope(x)
        return np.stack([none - self.slope(x, unit) for unit in np.eye(self.none[0].size)])

    def for_slsqp(self) -> list[dict[str, Any]]:
        """The constraints as SciPy takes them."""
        kinds = self.problem.constraints.is_equation if self.problem.constraints else np.empty(0, bool)
        return [
            {
                "type": name,
                "fun": lambda x, rows=rows: self.constraint(x)[rows],
                "jac": lambda x, rows=rows: self.constraint_slopes(x)[rows],
            }
            for name, rows in (("eq", kinds), ("ineq", ~kinds))
            if np.any(rows)
        ]

    def multipliers(self, x: Any, low: Any, high: Any) -> list[Any]:
        """Those of the constraints that are met: what combines their slopes to that of the function, but at bounds."""
        if self.problem.constraints is None:
            return []
        is_met = self.problem.constraints.is_equation | (self.constraint(x) <= NEAR)
        at_low, at_high = _ends_met(x, low, high)
        found = np.zeros(is_met.shape)
        rows = self.constraint_slopes(x)[is_met][:, ~(at_low | at_high)]
        found[is_met] = np.linalg.lstsq(rows.T, self.slope(x)[~(at_low | at_high)], rcond=None)[0]
        return [found]


# ---- minimize --------------------------------------------------------------------------------------------------------

WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
"""Methods that take no gradient."""

AT_BOUNDS = ("none", "l-bfgs-b", "tnc", "slsqp", "nelder-mead")
"""Methods whose solutions lie at a bound, not near it."""


def _check_method(method: str, bounds: Any, constraints: Any) -> None:
    known = ("none", "slsqp") if constraints else AT_BOUNDS if bounds else (method,)
    if method not in known:
        raise UnsupportedFunctionError(
            f"scipy.optimize.minimize has no rule for method={method!r} with "
            f"{'constraints' if constraints else 'bounds'} on traced values",
            remedy="leave the method out: SciPy's own choice has a rule",
        )


@solver("scipy.optimize.minimize", lambda given: (np.atleast_1d(given["x0"]),))
def minimize(
    fun: Any,
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    options: Any = None,
) -> Any:
    """SciPy's result with a traced x, fun, status and nfev.

    Methods that use a gradient are given the exact one, whatever `jac` is.
    """
    start, more = vector(x0), as_tuple(args)
    limits, conditions = _Bounds.of(bounds, start.size), _Constraints.of(constraints, start)
    name = str(method).lower()
    _check_method(name, limits, conditions)
    f = (lambda x: callee(fun)(x, *more)[0]) if jac is True else (lambda x: callee(fun)(x, *more))
    problem = _Problem.of(f, start, limits, conditions)
    count = 0 if conditions is None else 1

    def find(captured: Any, start: Any, *others: Any) -> list[Any]:
        here, ends = problem.at(captured, others[:count]), others[count:]
        given: dict[str, Any] = {"bounds": list(zip(*ends, strict=True))} if ends else {}
        given |= {"constraints": here.for_slsqp()} if count else {}
        exact = None if name in WITHOUT_GRADIENT else here.slope
        result = resolve_name("scipy.optimize.minimize")(
            here.value, start, method=method, jac=exact, tol=tol, options=options, **given
        )
        low, high = ends or (-np.inf, np.inf)
        return [result.x, *here.multipliers(result.x, low, high), *counts_of("minimize", result)]

    ends = [] if limits is None else list(map(traced, limits))
    x, *found = solution(problem.system, problem.residual, find, ends, more=COUNTS)
    (value,) = inline(problem.system.program, [*problem.system.captured, x, *found[:count]])
    return result_of(x, found[count:], fun=traced(value))


MINIMIZE: Rule = vars(minimize)["__wrapped__"]


# ---- minimize under older names --------------------------------------------------------------------------------------


def _by_values(name: str, method: str, tolerances: tuple[str, str]) -> Rule:
    def rule(func: Any, x0: Any, args: Any, xtol: Any, ftol: Any, maxiter: Any, maxfun: Any, disp: Any) -> Any:
        options = dict(zip(tolerances, (xtol, ftol), strict=True))
        options |= {"maxiter": maxiter, "maxfev": maxfun, "disp": disp}
        return MINIMIZE(func, x0, args, method, options=options).x

    return solver(f"scipy.optimize.{name}", lambda given: (np.atleast_1d(given["x0"]),))(rule)


fmin = _by_values("fmin", "Nelder-Mead", ("xatol", "fatol"))
fmin_powell = _by_values("fmin_powell", "Powell", ("xtol", "ftol"))


def _by_slopes(name: str, method: str) -> Rule:
    def rule(f: Any, x0: Any, fprime: Any, args: Any, gtol: Any, norm: Any, maxiter: Any, disp: Any) -> Any:
        options = {"gtol": gtol, "norm": norm, "maxiter": maxiter, "disp": disp}
        return MINIMIZE(f, x0, args, method, options=options).x

    return solver(f"scipy.optimize.{name}", lambda given: (np.atleast_1d(given["x0"]),))(rule)


fmin_bfgs, fmin_cg = _by_slopes("fmin_bfgs", "BFGS"), _by_slopes("fmin_cg", "CG")


@solver("scipy.optimize.fmin_l_bfgs_b", lambda given: (np.atleast_1d(given["x0"]),))
def fmin_l_bfgs_b(
    func: Any,
    x0: Any,
    fprime: Any,
    args: Any,
    approx_grad: Any,
    bounds: Any,
    m: Any,
    factr: Any,
    pgtol: Any,
    maxfun: Any,
    maxiter: Any,
    maxls: Any,
) -> Any:
    """The minimum that L-BFGS-B finds, the value there, and a record of how."""
    options = {"maxcor": m, "ftol": factr * np.finfo(float).eps, "gtol": pgtol}
    options |= {"maxfun": maxfun, "maxiter": maxiter, "maxls": maxls}
    is_pair = fprime is None and not approx_grad
    result = MINIMIZE(func, x0, args, "L-BFGS-B", is_pair, bounds, options=options)
    return result.x, result.fun, {"warnflag": 0, "funcalls": result.nfev, "task": result.message}


# ---- of one variable -------------------------------------------------------------------------------------------------

NEWTON = 1e-3
"""The longest Newton step at a minimum, relative to it and 1: at a bound, or a kink, the step is longer."""

NO_MINIMUM = "the derivative is not 0 where scipy.optimize.{} ends, as at a bound or a kink: it has no derivative"
WITHIN = "give bounds with the minimum inside, or minimize with bounds= by scipy.optimize.minimize"


def _minimum(name: str, f: Rule, args: Any, run: Rule, given: Sequence[Any] = ()) -> Any:
    """SciPy's result for a function of one variable.

    `run` finds it from the function of numbers and the values of what is given.
    """
    more = as_tuple(args)
    problem = _Problem.of(lambda x: callee(f)(x, *more), np.float64(0.0), None, None)
    bent = jvp(problem.slopes, problem.system.unknowns)

    def find(captured: Any, _: Any, *values: Any) -> list[Any]:
        result = run(problem.at(captured, ()).value, *map(float, values))
        check_success(name, result.success, result.message)
        slope, curvature = interpret(bent, [*captured, np.float64(result.x), np.float64(1.0)])
        if not abs(slope) <= NEWTON * (1 + abs(result.x)) * curvature:
            raise DomainError(NO_MINIMUM.format(name), remedy=WITHIN)
        return [result.x, result.nit, result.nfev]

    x, *counts = solution(problem.system, problem.residual, find, given, more=COUNTS)
    (value,) = inline(problem.system.program, [*problem.system.captured, x])
    nit, nfev = map(traced, counts)
    kind = import_module("scipy.optimize").OptimizeResult
    return kind(
        x=traced(x), fun=traced(value), nit=nit, nfev=nfev, status=0, success=True, message="The solver succeeded."
    )


def _scalar(name: str, f: Any, args: Any, ends: dict[str, Any], **options: Any) -> Any:
    """The result of SciPy's `minimize_scalar`, in a bracket or between bounds."""
    ((where, places),) = ends.items()
    given = [] if places is None else list(places)

    def run(f: Rule, *values: float) -> Any:
        return resolve_name("scipy.optimize.minimize_scalar")(f, **{where: values or None}, **options)

    return _minimum(name, f, args, run, given)


def _inside(*places: Any) -> tuple[float]:
    """The points at which the function may be evaluated."""
    known = [float(place) for place in places if not has_traced(place)]
    return (sum(known) / len(known) if known else 0.0,)


@solver("scipy.optimize.minimize_scalar", lambda given: _inside(*(given.get("bounds") or given.get("bracket") or ())))
def minimize_scalar(fun: Any, bracket: Any, bounds: Any, args: Any, method: Any, tol: Any, options: Any) -> Any:
    """SciPy's result with a traced x, fun, nit and nfev."""
    ends = {"bracket": bracket} if bounds is None else {"bounds": bounds}
    return _scalar("minimize_scalar", fun, args, ends, method=method, tol=tol, options=options)


def _bracketed(name: str) -> Rule:
    def rule(func: Any, args: Any, brack: Any, tol: Any, full_output: Any, maxiter: Any) -> Any:
        options = {"xtol": tol, "maxiter": maxiter}
        found = _scalar(name, func, args, {"bracket": brack}, method=name, options=options)
        return (found.x, found.fun, found.nit, found.nfev) if full_output else found.x

    return solver(f"scipy.optimize.{name}", lambda given: _inside(*(given.get("brack") or ())))(rule)


brent, golden = _bracketed("brent"), _bracketed("golden")


@solver("scipy.optimize.fminbound", lambda given: _inside(given["x1"], given["x2"]))
def fminbound(func: Any, x1: Any, x2: Any, args: Any, xtol: Any, maxfun: Any, full_output: Any, disp: Any) -> Any:
    """The minimum between two numbers that SciPy finds."""
    options = {"xatol": xtol, "maxiter": maxfun, "disp": disp}
    found = _scalar("fminbound", func, args, {"bounds": (x1, x2)}, method="bounded", options=options)
    return (found.x, found.fun, found.status, found.nfev) if full_output else found.x


# ---- least squares ---------------------------------------------------------------------------------------------------


def fitted(residuals: Rule, start: Any, limits: _Bounds | None, run: Rule) -> tuple[Symbol, Any, Sequence[Symbol]]:
    """The unknowns for which the sum of squares is least, the residuals there, and the status and count of calls.

    `run` finds them, with the status and the count, from the residuals and their Jacobian as functions of numbers, the
    start and the bounds.
    """
    problem = _Problem.of(lambda x: 0.5 * np.sum(residuals(x) ** 2), start, limits, None)
    tree = Tree.of("x0", start)
    region = region_of(residuals, caller_of(residuals, tree, ()), tree.types)
    many, of_many = region.consts_first(), region.consts

    def find(_: Any, start: Any, *others: Any) -> list[Any]:
        captured, ends = others[: len(of_many)], others[len(of_many) :]
        pushed = simplify(jvp(many, [i >= len(of_many) for i in range(len(many.inputs))]))

        def jacobian(x: Any) -> Any:
            return np.stack([interpret(pushed, [*captured, x, unit])[1] for unit in np.eye(x.size)], axis=1)

        return list(run(lambda x: interpret(many, [*captured, x])[0], jacobian, start, ends))

    ends = [] if limits is None else list(map(traced, limits))
    found, *counts = solution(problem.system, problem.residual, find, [*map(traced, of_many), *ends], more=COUNTS)
    (values,) = inline(many, [*of_many, found])
    return found, traced(values), counts


def bounds_of_fit(bounds: Any, size: int) -> _Bounds | None:
    """The bounds of SciPy's `least_squares` and `curve_fit`."""
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    return _Bounds.between(low, high, size)


def squares(jac: Any, method: Any, **options: Any) -> Rule:
    """The solver of SciPy's `least_squares`."""

    def run(f: Rule, jacobian: Rule, start: Any, ends: Any) -> list[Any]:
        given: dict[str, Any] = {"bounds": ends} if ends else {}
        given |= {"jac": jacobian if callable(jac) or ends else jac, **options}
        result = resolve_name("scipy.optimize.least_squares")(f, start, method=method, **given)
        if ends and method == "trf":
            result = resolve_name("scipy.optimize.least_squares")(f, result.x, method="dogbox", **given)
        return [result.x, *counts_of("least_squares", result)]

    return run


@solver("scipy.optimize.least_squares", lambda given: (np.atleast_1d(given["x0"]),))
def least_squares(
    fun: Any,
    x0: Any,
    jac: Any,
    bounds: Any,
    method: Any,
    ftol: Any,
    xtol: Any,
    gtol: Any,
    x_scale: Any,
    max_nfev: Any,
    args: Any,
) -> Any:
    """SciPy's result with a traced x, fun, cost, status and nfev, of plain squares.

    Where there are bounds, what `trf` finds in their inside is taken to them by `dogbox`.
    """
    start, more = vector(x0), as_tuple(args)
    given: dict[str, Any] = {} if x_scale is None else {"x_scale": x_scale}
    run = squares(jac, method, ftol=ftol, xtol=xtol, gtol=gtol, max_nfev=max_nfev, **given)
    limits = bounds_of_fit(bounds, start.size)
    found, fun_at, counts = fitted(lambda x: np.atleast_1d(array(callee(fun)(x, *more))), start, limits, run)
    return result_of(found, counts, fun=fun_at, cost=0.5 * np.sum(fun_at**2))


def levenberg(has_jacobian: Any, **options: Any) -> Rule:
    """The solver of SciPy's `leastsq`."""

    def run(f: Rule, jacobian: Rule, start: Any, _: Any) -> list[Any]:
        slopes = jacobian if has_jacobian else None
        found, _, record, message, status = resolve_name("scipy.optimize.leastsq")(
            f, start, (), slopes, True, **options
        )
        check_success("leastsq", status in (1, 2, 3, 4), message)
        return [found, status, record["nfev"]]

    return run


def covariance(residuals: Rule, x: Symbol) -> Any:
    """The inverse of J'J at a solution; MINPACK's, of the Jacobian before its last step, differs by some 1e-5."""
    jacobian = jacfwd(residuals)(traced(x))
    return np.linalg.inv(jacobian.T @ jacobian)


@solver("scipy.optimize.leastsq", lambda given: (np.atleast_1d(given["x0"]),))
def leastsq(
    func: Any,
    x0: Any,
    args: Any,
    Dfun: Any,  # noqa: N803
    full_output: Any,
    ftol: Any,
    xtol: Any,
    gtol: Any,
    maxfev: Any,
) -> Any:
    """The result of SciPy's `leastsq`; a given Jacobian is replaced by the derivative of func.

    The status is 1, whichever tolerance was met: what is no solution is an error.
    """
    more = as_tuple(args)

    def residuals(x: Any) -> Any:
        return np.atleast_1d(array(callee(func)(x, *more)))

    run = levenberg(Dfun is not None, ftol=ftol, xtol=xtol, gtol=gtol, maxfev=maxfev)
    x, values, (_, calls) = fitted(residuals, vector(x0), None, run)
    if not full_output:
        return traced(x), 1
    record = {"nfev": traced(calls), "fvec": values}
    return traced(x), covariance(residuals, x), record, "The solver succeeded.", 1


TOLERANCES = ("ftol", "xtol", "gtol", "maxfev", "max_nfev")
"""Options of `curve_fit` for what it calls."""


def _start_of_fit(f: Any, p0: Any, bounds: Any = (-np.inf, np.inf)) -> Any:
    """SciPy's choice where none is given: between the bounds, or 1 from the only one, or 1."""
    if p0 is not None:
        return vector(p0)
    known = [p for p in signature(f).parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(known) < 2:
        raise DomainError("the number of parameters to fit is not known", remedy="give p0=, where to start")
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    low, high = (np.broadcast_to(np.asarray(end, float), (len(known) - 1,)) for end in (low, high))
    with np.errstate(invalid="ignore"):
        inside = np.where(np.isfinite(high), np.where(np.isfinite(low), (low + high) / 2, high - 1), low + 1)
    return np.where(np.isfinite(low) | np.isfinite(high), inside, 1.0)


@solver("scipy.optimize.curve_fit", lambda given: (given["xdata"], *_start_of_fit(given["f"], given.get("p0"))))
def curve_fit(
    f: Any,
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: Any = False,
    check_finite: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: Any = None,
    jac: Any = None,
    **options: Any,
) -> Any:
    """The parameters that SciPy finds and their covariance; a Jacobian that is given is replaced by that of f."""
    unknown = [name for name in options if name not in TOLERANCES]
    if unknown:
        raise UnsupportedFunctionError(f"scipy.optimize.curve_fit has no rule for the option {unknown[0]}=")
    start = _start_of_fit(f, p0, bounds)
    limits, wanted = bounds_of_fit(bounds, start.size), array(ydata)
    places = array(xdata) if isinstance(xdata, (list, tuple)) else xdata
    weigh = _weighing(sigma)

    def residuals(p: Any) -> Any:
        return weigh(np.ravel(array(callee(f)(places, *p)) - wanted))

    how = method or ("lm" if limits is None else "trf")
    run = levenberg(callable(jac), **options) if how == "lm" else squares(jac or "2-point", how, **options)
    x, values, _ = fitted(residuals, start, limits, run)
    found = covariance(residuals, x)
    if not absolute_sigma:
        free = values.size - start.size
        found = found * (np.sum(values**2) / free) if free > 0 else np.full(found.shape, np.inf)
    return traced(x), found


def _weighing(sigma: Any) -> Rule:
    """The weighting of residuals by standard deviations or a covariance."""
    if sigma is None:
        return lambda r: r
    spread = array(sigma)
    if spread.ndim < 2:
        return lambda r: r / spread
    factor = np.linalg.cholesky(spread)
    return lambda r: np.linalg.solve(factor, r)

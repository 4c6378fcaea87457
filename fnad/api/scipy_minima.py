"""SciPy's `minimize` and `least_squares` by their own names, in a trace, with bounds and constraints.

The solution is SciPy's. Its derivative is that of the conditions of Karush, Kuhn and Tucker (Nocedal & Wright,
"Numerical Optimization", 2006, theorem 12.1), with L = f - λ·c:

    ∂L/∂x = 0, but x = bound where x is at one;  c = 0, but λ = 0 where an inequality holds by more

What is active is held (Fiacco, "Sensitivity analysis for nonlinear programming using penalty methods", 1976). Where it
cannot be told whether it stays, since the multiplier is 0 or there is no telling it from 0, the derivative is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fnad.api.implicit import System, caller_of, check_scalar, system_of
from fnad.api.marshalling import Tree
from fnad.api.regions import region_of
from fnad.api.running import traced
from fnad.api.scipy_solvers import COUNTS, Rule, as_tuple, counts_of, result_of, solution, solver, vector
from fnad.errors import ShapeError, UnsupportedFunctionError
from fnad.ir.builder import inline
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.numpy import array
from fnad.numpy.bodies import own
from fnad.ops.requirement import require
from fnad.records import NamedTuple
from fnad.trace.dispatch import has_traced
from fnad.trace.tracing import symbol_of, trace_function
from fnad.transforms.differentiation import gradient, jvp
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify

NEAR, SMALL = 1e-6, 1e-8
"""How near a bound or constraint is one that is met; which part of the largest multiplier is none."""

DEGENERATE = "the solution lies at a bound or constraint whose multiplier cannot be told from 0: it has no derivative"
UNLESS = "give a smaller tol= if it is not 0, or leave the bound or constraint out"


# ---- the conditions --------------------------------------------------------------------------------------------------


def _ends_met(x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    near = NEAR * (1 + np.abs(x))
    return x - low <= near, high - x <= near


def _at_bounds(x: Any, slope: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """What is 0 at a solution within bounds, and what holds where it has a derivative."""
    at_low, at_high = _ends_met(x, low, high)
    is_free = ~(at_low | at_high)
    holds = (low == high) | is_free | (np.where(at_low, slope, -slope) > _noise(slope, is_free))
    return np.where(is_free, slope, x - np.where(at_low, low, high)), holds


def _noise(slope: Any, is_free: Any) -> Any:
    """What may be 0: the error of the slopes that are to be, or a small part of the largest one."""
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
        """What SciPy takes as bounds of `minimize`: a `Bounds`, or pairs of which None is no limit."""
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
        """What SciPy takes as constraints."""
        parts = [part for one in (given if isinstance(given, (list, tuple)) else [given]) for part in _parts(one)]
        if not parts:
            return None
        kinds = [np.full(np.shape(function(start)), is_equation) for is_equation, function in parts]
        return cls(lambda x: np.concatenate([function(x) for _, function in parts]), np.concatenate(kinds))


def _parts(constraint: Any) -> list[tuple[bool, Callable[[Any], Any]]]:
    """The functions of a constraint, each with whether it is an equation."""
    if isinstance(constraint, dict):
        f, args = constraint["fun"], as_tuple(constraint.get("args", ()))
        return [(constraint["type"].lower() == "eq", lambda x: np.ravel(array(f(x, *args))))]
    low, high = np.broadcast_arrays(np.atleast_1d(constraint.lb), np.atleast_1d(constraint.ub))

    def values(x: Any) -> Any:
        found = np.ravel(array(constraint.A @ x if hasattr(constraint, "A") else constraint.fun(x)))
        return np.broadcast_to(found, np.broadcast_shapes(np.shape(found), low.shape))

    same = low == high
    sides = [
        (True, same, low, 1.0),
        (False, ~same & np.isfinite(low), low, 1.0),
        (False, ~same & np.isfinite(high), high, -1.0),
    ]
    return [(kind, _side(values, flags, end, sign)) for kind, flags, end, sign in sides if np.any(flags)]


def _side(values: Rule, flags: Any, end: Any, sign: float) -> Rule:
    """How far values lie on the right side of an end, those that are marked."""

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
        """What is 0 at a solution."""
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
    f = (lambda x: fun(x, *more)[0]) if jac is True else (lambda x: fun(x, *more))
    problem = _Problem.of(f, start, limits, conditions)
    count = 0 if conditions is None else 1

    def find(captured: Any, start: Any, *others: Any) -> list[Any]:
        here, ends = problem.at(captured, others[:count]), others[count:]
        given: dict[str, Any] = {"bounds": list(zip(*ends, strict=True))} if ends else {}
        given |= {"constraints": here.for_slsqp()} if count else {}
        exact = None if name in WITHOUT_GRADIENT else here.slope
        result = own("scipy.optimize.minimize")(
            here.value, start, method=method, jac=exact, tol=tol, options=options, **given
        )
        low, high = ends or (-np.inf, np.inf)
        return [result.x, *here.multipliers(result.x, low, high), *counts_of("minimize", result)]

    ends = [] if limits is None else list(map(traced, limits))
    x, *found = solution(problem.system, problem.residual, find, ends, more=COUNTS)
    (value,) = inline(problem.system.program, [*problem.system.captured, x, *found[:count]])
    return result_of(x, found[count:], fun=traced(value))


# ---- least_squares ---------------------------------------------------------------------------------------------------


@solver("scipy.optimize.least_squares", lambda given: (np.atleast_1d(given["x0"]),))
def least_squares(
    fun: Any,
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = (-np.inf, np.inf),
    method: Any = "trf",
    ftol: Any = 1e-8,
    xtol: Any = 1e-8,
    gtol: Any = 1e-8,
    x_scale: Any = None,
    max_nfev: Any = None,
    args: Any = (),
) -> Any:
    """SciPy's result with a traced x, fun, cost, status and nfev, of plain squares.

    Where there are bounds, what `trf` finds in their inside is taken to them by `dogbox`.
    """
    start, more = vector(x0), as_tuple(args)
    low, high = (bounds.lb, bounds.ub) if hasattr(bounds, "lb") else bounds
    limits = _Bounds.between(low, high, start.size)

    def residuals(x: Any) -> Any:
        return np.atleast_1d(array(fun(x, *more)))

    problem = _Problem.of(lambda x: 0.5 * np.sum(residuals(x) ** 2), start, limits, None)
    tree = Tree.of("x0", start)
    region = region_of(residuals, caller_of(residuals, tree, ()), tree.types)
    many, of_many = region.consts_first(), region.consts

    def find(_: Any, start: Any, *others: Any) -> list[Any]:
        captured, ends = others[: len(of_many)], others[len(of_many) :]
        pushed = simplify(jvp(many, [i >= len(of_many) for i in range(len(many.inputs))]))

        def jacobian(x: Any) -> Any:
            return np.stack([interpret(pushed, [*captured, x, unit])[1] for unit in np.eye(x.size)], axis=1)

        given: dict[str, Any] = {} if x_scale is None else {"x_scale": x_scale}
        given |= {"bounds": ends} if ends else {}
        given |= {"ftol": ftol, "xtol": xtol, "gtol": gtol, "max_nfev": max_nfev}
        given["jac"] = jacobian if callable(jac) or ends else jac
        f = lambda x: interpret(many, [*captured, x])[0]  # noqa: E731
        result = own("scipy.optimize.least_squares")(f, start, method=method, **given)
        if ends and method == "trf":
            result = own("scipy.optimize.least_squares")(f, result.x, method="dogbox", **given)
        return [result.x, *counts_of("least_squares", result)]

    ends = [] if limits is None else list(map(traced, limits))
    found, *counts = solution(problem.system, problem.residual, find, [*map(traced, of_many), *ends], more=COUNTS)
    (values,) = inline(many, [*of_many, found])
    fun_at: Any = traced(values)
    return result_of(found, counts, fun=fun_at, cost=0.5 * np.sum(fun_at**2))

"""Values that an equation defines: `fixed_point`, `root`, `minimize`.

Their derivatives are those of the equation at the solution found (`fnad.control.implicit`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fnad.api.running.execution import in_trace
from fnad.api.staging.leaves import Function, check_function
from fnad.api.staging.marshalling import LeafType, Tree, as_tracer
from fnad.api.staging.regions import Call, Likeness, Region, calling, described, region_of, settled
from fnad.control.implicit import implicitly, pushing, solve_linear
from fnad.control.krylov import tolerance
from fnad.control.newton import Limits, fixed_point_iteration, newton, newton_cg
from fnad.control.vector import Raveling
from fnad.errors import ArgumentTypeError, DtypeError, Failure, FailureKind, NonScalarOutputError
from fnad.ir.builder import current_builder, inline
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.numpy.operands import as_symbol
from fnad.ops.arithmetic import neg, sub
from fnad.ops.conversion import convert_to
from fnad.ops.shape import reshape_to
from fnad.trace.source import current_source
from fnad.transforms.differentiation import gradient, value_and_gradient
from fnad.transforms.pipeline import simplify


def fixed_point(f: Function, x_init: Any, *args: Any, tol: float | None = None, max_steps: int = 1000) -> Any:
    """The x with `x = f(x, *args)`, found by applying `f` again and again from `x_init` on.

    The derivative in `args`, and in what `f` uses from outside, is that of the equation, whatever steps were taken: it
    solves a linear system with 1 - ∂f/∂x (Blondel et al., "Efficient and Modular Implicit Differentiation", 2022, eq.
    2), as a matrix for up to 256 unknowns, otherwise by GMRES. It holds in both modes and at any order.

    Parameters:
        f (function): Returns a pytree with the structure and shapes of x.
        x_init (pytree of real arrays and numbers): The start; the derivative in it is 0.
        *args (pytrees): Further arguments of `f`.
        tol (float, optional): The iteration ends once a step moves no element by more than `tol` (1 + |x|); by default
            eps ** 0.75 of the dtype.
        max_steps (int): The most steps.
    Returns:
        pytree: The fixed point, with the structure and shapes of `x_init`.
    Raises:
        ConvergenceError: If `max_steps` do not suffice; the program raises it.
        StructureError, DtypeError, ArgumentTypeError: If `f` returns another structure or shape than x, if x is not
            real, or if an option is invalid.
    Examples:
        >>> import fnad
        >>> heron = lambda s, a: (s + a / s) / 2
        >>> fnad.fixed_point(heron, 2.0, 4.0), fnad.grad(lambda a: fnad.fixed_point(heron, 2.0, a))(4.0)
        (np.float64(2.0), np.float64(0.25))
    """
    settings = _settings("fixed_point", f, tol, max_steps, SLOW)
    return in_trace(f, lambda x, *rest: _fixed_point(f, x, rest, settings), x_init, *args, names=["x_init"])


def root(f: Function, x_init: Any, *args: Any, tol: float | None = None, max_steps: int = 100) -> Any:
    """The x with `f(x, *args) = 0`, found by Newton's method from `x_init` on.

    A step that does not lower |f| is halved until it does. The derivative is that of the equation, as in `fixed_point`,
    with ∂f/∂x in the linear system.

    Parameters:
        f (function): Returns a pytree with the structure and shapes of x.
        x_init (pytree of real arrays and numbers): The start; the derivative in it is 0.
        *args (pytrees): Further arguments of `f`.
        tol, max_steps: As in `fixed_point`.
    Returns:
        pytree: The root, with the structure and shapes of `x_init`.
    Raises:
        ConvergenceError: If no step lowers |f|, or `max_steps` do not suffice; the program raises it.
        FactorizationError: If the Jacobian is singular; the program raises it.
        StructureError, DtypeError, ArgumentTypeError: As in `fixed_point`.
    Examples:
        >>> import numpy as np, fnad
        >>> kepler = lambda E, M: E - 0.5 * np.sin(E) - M
        >>> E, slope = fnad.value_and_grad(lambda M: fnad.root(kepler, 1.0, M))(1.0)
        >>> print(f"{E:.6f} {slope * (1 - 0.5 * np.cos(E)):.6f}")
        1.498701 1.000000
    """
    settings = _settings("root", f, tol, max_steps, FAR)
    return in_trace(f, lambda x, *rest: _root(f, x, rest, settings), x_init, *args, names=["x_init"])


class Minimum(NamedTuple):
    """The result of `minimize`.

    Parameters:
        x (pytree): The minimum, with the structure, shapes and dtypes of `x_init`.
        fun (float): The value at `x`.
        nit (int): The number of Newton steps, int64.
    Examples:
        >>> import fnad
        >>> fnad.minimize(lambda x: (x - 3.0) ** 2, 0.0)
        Minimum(x=np.float64(3.0), fun=np.float64(0.0), nit=np.int64(2))
    """

    x: Any
    fun: Any
    nit: Any


def minimize(f: Function, x_init: Any, *args: Any, tol: float | None = None, max_steps: int = 1000) -> Minimum:
    """The local minimum of `f(x, *args)` in x, found by truncated Newton from `x_init` on.

    The steps come from conjugate gradients with Hessian products, and a line search (Nocedal and Wright, "Numerical
    Optimization", 2006, algorithm 7.1). The derivative is that of the equation ∂f/∂x = 0, as in `fixed_point`, with the
    Hessian in the linear system.

    Parameters:
        f (function): A smooth function that returns one real element.
        x_init (pytree of real arrays and numbers): The start; the derivative in it is 0.
        *args (pytrees): Further arguments of `f`.
        tol, max_steps: As in `fixed_point`.
    Returns:
        Minimum: The named tuple (x, fun, nit) of the minimum, the value there and the number of steps.
    Raises:
        ConvergenceError: If no step lowers the value, or `max_steps` do not suffice; the program raises it.
        NonScalarOutputError: If `f` does not return one real element.
        DtypeError, ArgumentTypeError: As in `fixed_point`.
    Examples:
        >>> import numpy as np, fnad
        >>> ridge = lambda w, A, b, l: np.sum((A @ w - b) ** 2) + l * np.sum(w**2)
        >>> A, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 0.0])
        >>> w = lambda l: fnad.minimize(ridge, np.zeros(2), A, b, l).x
        >>> np.allclose(w(0.1), np.linalg.solve(A.T @ A + 0.1 * np.eye(2), A.T @ b))
        True
        >>> np.allclose(fnad.jvp(w, (0.1,), (1.0,))[1], -np.linalg.solve(A.T @ A + 0.1 * np.eye(2), w(0.1)))
        True
    """
    settings = _settings("minimize", f, tol, max_steps, NO_MINIMUM)
    return in_trace(f, lambda x, *rest: _minimize(f, x, rest, settings), x_init, *args, names=["x_init"])


# ---- what they are given ---------------------------------------------------------------------------------------------

SLOW = (
    "start nearer, or give more max_steps= or a larger tol=; it converges where f brings points together, while "
    "fnad.root(lambda x: f(x) - x, ...) does elsewhere too"
)
FAR = "start nearer, or give more max_steps= or a larger tol="
NO_MINIMUM = "check that it is smooth and has a minimum; start nearer, or give more max_steps= or a larger tol="


class SolverSettings(NamedTuple):
    tol: float | None
    max_steps: int
    failure: Failure

    def limits(self, dtype: np.dtype[Any]) -> Limits:
        """The limits for unknowns of a dtype."""
        return Limits(tolerance(dtype) if self.tol is None else self.tol, self.max_steps, self.failure)


def _settings(name: str, f: Function, tol: Any, max_steps: Any, remedy: str) -> SolverSettings:
    check_function(f, name)
    if not (tol is None or (isinstance(tol, (float, int, np.floating)) and tol > 0)):
        raise unsuitable(f"tol of {name} is {tol!r}, not a positive number", "it is known while tracing: give a float")
    steps = step_count(name, max_steps)
    message = f"{name} of {described(f)} did not converge in max_steps={max_steps} steps, or met a nan"
    return SolverSettings(None if tol is None else float(tol), steps, FailureKind.CONVERGENCE.of(message, remedy))


def step_count(name: str, max_steps: Any) -> int:
    """The option `max_steps` of a solver; `ArgumentTypeError` where it is no positive integer."""
    if isinstance(max_steps, bool) or not isinstance(max_steps, (int, np.integer)) or max_steps < 1:
        raise unsuitable(f"max_steps of {name} is {max_steps!r}, not a positive int", "give how many steps to allow")
    return int(max_steps)


def unsuitable(what: str, remedy: str) -> ArgumentTypeError:
    """The error for an option of a solver."""
    return ArgumentTypeError.here(what, remedy=remedy)


class System(NamedTuple):
    """A traced function of x: the program (captured…, x…), what it captured, and x as the user has it."""

    program: Program
    captured: list[Symbol]
    x: Tree
    types: list[LeafType]

    @property
    def flat(self) -> Raveling:
        """The layout of x in one vector."""
        return Raveling.of([t.aval for t in self.types])

    @property
    def unknowns(self) -> list[bool]:
        """Which inputs of the program are x."""
        return [i >= len(self.captured) for i in range(len(self.program.inputs))]

    def point(self, vector: Symbol) -> list[Symbol]:
        """The operands of the program if x is this vector."""
        return [*self.captured, *self.flat.unravel(vector)]

    def at(self, vector: Symbol) -> Symbol:
        """The program's results, as a vector, where x is this vector."""
        return self.flat.ravel(inline(self.program, self.point(vector)))


def system_of(f: Function, region: Region, x: Tree, types: list[LeafType]) -> System:
    for i, t in enumerate(types):
        if t.aval.dtype.kind != "f":
            raise DtypeError.here(
                f"{x.path(i)} is {t.aval} in {described(f)}, which has no steps of real size",
                remedy="start with floats, and with real and imaginary part for complex numbers",
            )
    return System(region.consts_first(), region.consts, x, types)


UNKNOWNS = Likeness(
    "x_init",
    "the result of {f}",
    "x_init",
    "{where} is {taken}, and what {f} returns for it is {found}",
    "there has to be one equation for each unknown: return the shapes of x",
)


def square_system(f: Function, x_init: Any, args: tuple[Any, ...]) -> System:
    """Trace a function whose results are of the avals of x, with x in the dtypes that its results promote it to."""
    x = Tree.of("x_init", x_init)
    region, types = settled(f, x, UNKNOWNS, partial(region_of, f, caller_of(f, x, args)))
    return system_of(f, region, x, types)


def caller_of(f: Function, x: Tree, args: tuple[Any, ...]) -> Call:
    return calling(f, lambda tracers: (x.unflatten(tracers), *args))


# ---- the solvers -----------------------------------------------------------------------------------------------------


def _fixed_point(f: Function, x_init: Any, args: tuple[Any, ...], settings: SolverSettings) -> Any:
    system = square_system(f, x_init, args)

    def solver(start: Symbol, limits: Limits) -> list[Symbol]:
        return [fixed_point_iteration(system.at, start, limits)]

    def residual(*x: Symbol) -> list[Symbol]:
        return list(map(sub, x, inline(system.program, [*system.captured, *x])))

    return system.x.rebuilt(solution_of(system, solver, residual, settings)[0], system.types)


def _root(f: Function, x_init: Any, args: tuple[Any, ...], settings: SolverSettings) -> Any:
    system = square_system(f, x_init, args)
    flat = system.flat

    def direction(x: Symbol) -> tuple[Symbol, Symbol]:
        point = system.point(x)
        value = inline(system.program, point)
        slope = pushing(system.program, point, len(system.captured))
        return flat.ravel(value), flat.ravel(solve_linear(slope, list(map(neg, value))))

    def solver(start: Symbol, limits: Limits) -> list[Symbol]:
        return [newton(system.at, direction, start, limits)]

    def residual(*x: Symbol) -> list[Symbol]:
        return inline(system.program, [*system.captured, *x])

    return system.x.rebuilt(solution_of(system, solver, residual, settings)[0], system.types)


def _minimize(f: Function, x_init: Any, args: tuple[Any, ...], settings: SolverSettings) -> Minimum:
    start = Tree.of("x_init", x_init)
    region = region_of(f, caller_of(f, start, args), start.types)
    check_scalar(f, region)
    system = system_of(f, region, start, start.types)
    flat = system.flat
    both = simplify(value_and_gradient(system.program, system.unknowns))
    slopes = simplify(gradient(system.program, system.unknowns))

    def evaluate(x: Symbol) -> tuple[Symbol, Symbol]:
        value, *found = inline(both, system.point(x))
        return convert_to(reshape_to(value, ()), flat.aval.dtype), flat.ravel(found)

    def curvature(x: Symbol) -> Callable[[Symbol], Symbol]:
        pushed = pushing(slopes, system.point(x), len(system.captured))
        return lambda direction: flat.ravel(pushed(flat.unravel(direction)))

    def solver(start: Symbol, limits: Limits) -> list[Symbol]:
        return list(newton_cg(evaluate, curvature, start, limits))

    def residual(*x: Symbol) -> list[Symbol]:
        return inline(slopes, [*system.captured, *x])

    x, more = solution_of(system, solver, residual, settings)
    (value,) = inline(system.program, [*system.captured, *x])
    count = more[0] if more else as_symbol(np.int64(0))
    fun, nit = as_tracer(value, region.results[0]), as_tracer(count, LeafType(Aval(I64)))
    return Minimum(system.x.rebuilt(x, system.types), fun, nit)


def check_scalar(f: Function, region: Region) -> None:
    results = region.results
    if not region.structure.is_leaf() or results[0].aval.size != 1 or results[0].aval.dtype.kind != "f":
        found = ", ".join(str(result.aval) for result in results) or "nothing"
        is_integer = len(results) == 1 and results[0].aval.dtype.kind in "biu"
        raise NonScalarOutputError.here(
            f"{described(f)} returned {found}, where minimize takes one real element",
            remedy="start with floats" if is_integer else "reduce it, with np.sum for example",
        )


def solution_of(
    system: System, solver: Callable[[Symbol, Limits], list[Symbol]], residual: Function, settings: SolverSettings
) -> tuple[list[Symbol], list[Symbol]]:
    """The unknowns, and what the solver returns beside them; there is nothing to be solved where x is empty."""
    flat, start = system.flat, system.x.operands(system.types)
    if not any(t.aval.size for t in system.types):
        return start, []
    limits = settings.limits(flat.aval.dtype)

    def solve(*start: Symbol) -> list[Symbol]:
        x, *more = solver(flat.ravel(start), limits)
        return [*flat.unravel(x), *more]

    current_builder().source = current_source()
    found = implicitly(solve, residual, start, flat.avals)
    return found[: len(flat.avals)], found[len(flat.avals) :]

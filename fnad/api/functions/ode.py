"""Ordinary differential equations as part of the program: `odeint`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fnad.api.functions.implicit import step_count, unsuitable
from fnad.api.running.execution import in_trace
from fnad.api.staging.leaves import Function, check_function
from fnad.api.staging.marshalling import LeafType, Tree, as_tracer
from fnad.api.staging.regions import Likeness, Region, calling, described, region_of, settled
from fnad.control.dormand_prince import Tolerances, integrate
from fnad.control.ode import solution
from fnad.control.vector import Raveling
from fnad.errors import DtypeError, ShapeError
from fnad.ir.builder import current_builder, inline
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval, Dtype
from fnad.numpy import array
from fnad.ops.conversion import convert_to
from fnad.ops.shape import zeros_like
from fnad.trace.source import current_source
from fnad.trace.tracing import symbol_of

SOLVERS = {"discrete": integrate, "continuous": solution}
"""The solver of each way to differentiate."""


def odeint(
    f: Function,
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    max_steps: int = 100_000,
    adjoint: str = "discrete",
) -> Any:
    """The solution of dy/dt = `f(y, t, *args)` at the times `t`, starting with `y0` at the first.

    The method is that of Dormand and Prince (1980), of order 5, with Shampine's (1986) interpolant at the times
    (Hairer, Nørsett and Wanner, "Solving Ordinary Differential Equations I", 2008, II.4-II.6); it does not suit stiff
    equations.

    Parameters:
        f (function): Returns a pytree with the structure and shapes of y.
        y0 (pytree of real arrays and numbers): The solution at `t[0]`.
        t (array of shape (n,)): Times that increase or decrease.
        *args (pytrees): Further arguments of `f`.
        rtol, atol (float): The error of a step stays below `atol + rtol |y|`; at least 100 eps of the dtype.
        max_steps (int): The most steps from one time to the next.
        adjoint ({"discrete", "continuous"}): Both give derivatives in y0, t, `args` and what `f` uses from outside, in
            both modes and at any order, about as precise as the solution. "discrete" differentiates the steps taken
            (Bock, 1981); reverse mode saves the states at the times and the steps between two of them, and derivatives
            in the times are an order less precise. "continuous" solves the adjoint equations backwards (Chen et al.,
            "Neural Ordinary Differential Equations", 2018, appendix B) in memory that does not grow with the steps;
            where y is strongly damped it loses digits or fails.
    Returns:
        pytree of arrays: The solution, with the structure of `y0` and a leading axis of length n.
    Raises:
        ConvergenceError: If `max_steps` do not suffice or the steps vanish; the program raises it.
        DomainError: If the times turn back.
        StructureError, ShapeError, DtypeError, ArgumentTypeError: If `f` returns another structure or shape than y, `t`
            has not one axis, y is not real, or an option is invalid.
    Examples:
        >>> import numpy as np, fnad
        >>> decay = lambda k: fnad.odeint(lambda y, t, k: -k * y, 1.0, np.array([0.0, 1.0]), k)[-1]
        >>> value, slope = fnad.value_and_grad(decay)(2.0)
        >>> print(f"{value:.6f} {slope:.6f} {np.exp(-2.0):.6f}")
        0.135335 -0.135335 0.135335
    """
    check_function(f, "odeint")
    if adjoint not in SOLVERS:
        raise unsuitable(f"adjoint is {adjoint!r}", f"give one of {', '.join(map(repr, SOLVERS))}")
    tolerances = Tolerances(_tolerance("rtol", rtol), _tolerance("atol", atol), step_count("odeint", max_steps))
    times = array(t) if isinstance(t, (list, tuple)) else t

    def run(y0: Any, t: Any, *rest: Any) -> Any:
        return _odeint(f, y0, t, rest, tolerances, adjoint)

    return in_trace(f, run, y0, times, *args, names=["y0", "t"])


def _tolerance(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (float, int, np.floating)) or not value >= 0:
        raise unsuitable(
            f"{name} of odeint is {value!r}", "it is known while tracing: give a float that is not negative"
        )
    return float(value)


def _odeint(f: Function, y0: Any, t: Any, args: tuple[Any, ...], tolerances: Tolerances, adjoint: str) -> Any:
    times = _times(t)
    system = _traced(f, y0, args)
    if not any(t.aval.size for t in system.types):
        return system.rebuilt(zeros_like(Aval(F64, (times.shape[0], 0))))
    dtype = system.flat.aval.dtype
    current_builder().source = current_source()
    start = system.flat.ravel(system.y.operands(system.types))
    rows = SOLVERS[adjoint](system.dynamics, start, convert_to(times, dtype), _resolved(tolerances, dtype))
    return system.rebuilt(rows)


def _resolved(tolerances: Tolerances, dtype: Dtype) -> Tolerances:
    """The tolerances with a relative one that the dtype can resolve."""
    return tolerances._replace(rtol=max(tolerances.rtol, 100 * float(np.finfo(dtype).eps)))


def _times(t: Any) -> Symbol:
    times = symbol_of(t)
    if times.ndim != 1 or not times.shape[0]:
        raise ShapeError.here(
            f"t is {times.aval}, and odeint takes times along one axis",
            remedy="give an array of times, the first of which y0 belongs to: np.array([t0, t1])",
        )
    if times.dtype.kind not in "fiu":
        raise DtypeError.here(f"t is {times.aval}, and times are real", remedy="give floats")
    return times


# ---- the equation ----------------------------------------------------------------------------------------------------


class _Equation(NamedTuple):
    """The traced right-hand side, (t, y…, captured…) -> y'…, and y as it starts and as the user has it."""

    region: Region
    y: Tree
    types: list[LeafType]

    @property
    def flat(self) -> Raveling:
        """The layout of y in one vector."""
        return Raveling.of([t.aval for t in self.types])

    def dynamics(self, t: Symbol, y: Symbol) -> Symbol:
        """The derivative of y as a vector."""
        t = convert_to(t, self.region.program.inputs[0].aval.dtype)
        return self.flat.ravel(inline(self.region.program, [t, *self.flat.unravel(y), *self.region.consts]))

    def rebuilt(self, rows: Symbol) -> Any:
        """Rows of y as the user gets them."""
        return self.y.unflatten([as_tracer(value, LeafType(value.aval)) for value in self.flat.unravel_rows(rows)])


SLOPES = Likeness(
    "y0",
    "the result of {f}",
    "y0",
    "{where} is {taken}, and its derivative in {f} {found}",
    "return a derivative for each element of y",
)


def _traced(f: Function, y0: Any, args: tuple[Any, ...]) -> _Equation:
    """Trace the right-hand side, with y in the dtypes that its derivative promotes it to."""
    y = Tree.of("y0", y0)
    call = calling(f, lambda tracers: (y.unflatten(tracers[1:]), tracers[0], *args))
    region, types = settled(f, y, SLOPES, lambda types: region_of(f, call, [_time(types), *types]))
    for i, t in enumerate(types):
        if t.aval.dtype.kind != "f":
            raise DtypeError.here(
                f"{y.path(i)} is {t.aval} in {described(f)}, which is not real",
                remedy="start with floats, and with real and imaginary part for complex numbers",
            )
    return _Equation(region, y, types)


def _time(types: Sequence[LeafType]) -> LeafType:
    """The type of the time in the equation: the dtype of y, a number if y consists of numbers."""
    dtypes = [t.aval.dtype for t in types if t.aval.dtype.kind == "f" and not t.weak]
    return LeafType(Aval(np.result_type(*dtypes) if dtypes else F64), weak=not dtypes)

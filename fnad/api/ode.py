"""Ordinary differential equations as part of the program: `odeint`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from fnad.api.leaves import Function, Leaf, Structure, check_function, leaves_of, path
from fnad.api.regions import (
    Kind,
    Region,
    as_tracer,
    check_structure,
    described,
    in_trace,
    joined,
    kind_of,
    operand,
    region_of,
)
from fnad.control.dormand_prince import Tolerances, integrate
from fnad.control.ode import solution
from fnad.control.vector import Raveling
from fnad.errors import ArgumentTypeError, DtypeError, ShapeError, StructureError
from fnad.ir.builder import current_builder, inline
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval, Dtype
from fnad.numpy import array
from fnad.numpy.operands import as_symbol
from fnad.ops.conversion import convert_to
from fnad.ops.shape import zeros_like
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer
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
    """Return the solution of dy/dt = `f(y, t, *args)` at the times `t`, of which `y0` belongs to the first.

    y is a pytree of real arrays and numbers; `f` returns one of the same structure and shapes; the result has one with
    a leading axis for the times. These go up or down, in an array of one axis. The method is that of Dormand & Prince
    (1980), of order 5, with its error kept below `atol + rtol |y|` by the size of the steps, and Shampine's (1986)
    interpolant at the times (Hairer, Nørsett & Wanner, "Solving Ordinary Differential Equations I", 2008, II.4-II.6).
    Tolerances below 100 eps of the dtype are raised to it. It is no method for stiff equations.

    Derivatives are with respect to y0, t, `args` and what `f` uses from around it, in both modes, at any order:

    - `adjoint="discrete"` differentiates the steps that were taken, their sizes held (Bock, "Numerical treatment of
      inverse problems in chemical reaction kinetics", 1981). Reverse mode keeps the state at each of the times, and the
      steps between two of them while it goes back over these.
    - `adjoint="continuous"` solves the adjoint equations backwards (Chen et al., "Neural Ordinary Differential
      Equations", 2018, appendix B), in forward mode the sensitivity equations, in memory that does not grow with the
      steps. Beside them it solves y anew, from each time backwards to the one before: where y is strongly damped that
      loses digits, or fails with an error. Times that lie closer together help, or the discrete way.

    Otherwise either is about as precise as the solution.

    Raises `ConvergenceError` when it runs, where more than `max_steps` are taken from one time to the next or the steps
    vanish, `DomainError` for times that turn back; `StructureError`, `ShapeError`, `DtypeError`, `ArgumentTypeError`.

    >>> import numpy as np, fnad
    >>> decay = lambda k: fnad.odeint(lambda y, t, k: -k * y, 1.0, np.array([0.0, 1.0]), k)[-1]
    >>> value, slope = fnad.value_and_grad(decay)(2.0)
    >>> print(f"{value:.6f} {slope:.6f} {np.exp(-2.0):.6f}")
    0.135335 -0.135335 0.135335
    """
    check_function(f, "odeint")
    if adjoint not in SOLVERS:
        raise _unsuitable(f"adjoint is {adjoint!r}", f"give one of {', '.join(map(repr, SOLVERS))}")
    tolerances = Tolerances(_tolerance("rtol", rtol), _tolerance("atol", atol), _steps(max_steps))
    times = array(t) if isinstance(t, (list, tuple)) else t

    def run(y0: Any, t: Any, *rest: Any) -> Any:
        return _odeint(f, y0, t, rest, tolerances, adjoint)

    return in_trace(f, run, y0, times, *args, names=["y0", "t"])


def _tolerance(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (float, int, np.floating)) or not value >= 0:
        raise _unsuitable(
            f"{name} of odeint is {value!r}", "it is known while tracing: give a float that is not negative"
        )
    return float(value)


def _steps(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise _unsuitable(f"max_steps of odeint is {value!r}, not a positive int", "give how many steps to allow")
    return int(value)


def _unsuitable(what: str, remedy: str) -> ArgumentTypeError:
    return ArgumentTypeError(what, source=current_source(), remedy=remedy)


def _odeint(f: Function, y0: Any, t: Any, args: tuple[Any, ...], tolerances: Tolerances, adjoint: str) -> Any:
    times = _times(t)
    system = _traced(f, y0, args)
    if not any(kind.aval.size for kind in system.kinds):
        return system.rebuilt(zeros_like(Aval(F64, (times.shape[0], 0))))
    dtype = system.flat.aval.dtype
    current_builder().source = current_source()
    start = system.flat.ravel(list(map(operand, system.leaves, system.kinds)))
    rows = SOLVERS[adjoint](system.dynamics, start, convert_to(times, dtype), _resolved(tolerances, dtype))
    return system.rebuilt(rows)


def _resolved(tolerances: Tolerances, dtype: Dtype) -> Tolerances:
    """Return the tolerances with a relative one that the dtype can resolve."""
    return tolerances._replace(rtol=max(tolerances.rtol, 100 * float(np.finfo(dtype).eps)))


def _times(t: Any) -> Symbol:
    times = symbol_of(t)
    if times.ndim != 1 or not times.shape[0]:
        raise ShapeError(
            f"t is {times.aval}, and odeint takes times along one axis",
            source=current_source(),
            remedy="give an array of times, the first of which y0 belongs to: np.array([t0, t1])",
        )
    if times.dtype.kind not in "fiu":
        raise DtypeError(f"t is {times.aval}, and times are real", source=current_source(), remedy="give floats")
    return times


# ---- the equation ----------------------------------------------------------------------------------------------------


class _Equation(NamedTuple):
    """The traced right-hand side, (t, y…, captured…) -> y'…, and y as it starts and as the user has it."""

    region: Region
    captured: list[Symbol]
    leaves: list[Leaf]
    kinds: list[Kind]
    structure: Structure

    @property
    def flat(self) -> Raveling:
        """How y lies in one vector."""
        return Raveling.of([kind.aval for kind in self.kinds])

    def dynamics(self, t: Symbol, y: Symbol) -> Symbol:
        """Return the derivative of y as a vector."""
        inputs = [convert_to(t, self.region.program.inputs[0].aval.dtype), *self.flat.unravel(y), *self.captured]
        return self.flat.ravel(inline(self.region.program, inputs))

    def rebuilt(self, rows: Symbol) -> Any:
        """Return rows of y as the user gets them."""
        values = self.flat.unravel_rows(rows)
        return _single(self.structure, [as_tracer(value, Kind(value.aval, weak=False)) for value in values])


def _single(structure: Structure, leaves: Sequence[Any]) -> Any:
    return cast("tuple[Any]", structure.unflatten(leaves))[0]


def _traced(f: Function, y0: Any, args: tuple[Any, ...]) -> _Equation:
    """Trace the right-hand side, with y in the dtypes that its derivative promotes it to."""
    leaves, structure = leaves_of((y0,), lambda _: "y0")
    kinds = [kind_of(leaf) for leaf in leaves]

    def call(tracers: list[Tracer]) -> Any:
        return f(_single(structure, tracers[1:]), tracers[0], *args)

    while True:
        region = region_of(f, call, [_time(kinds), *kinds])
        _check_results(f, region, kinds, structure)
        grown = [joined(kind, new) for kind, new in zip(kinds, region.results, strict=True)]
        if grown == kinds:
            break
        kinds = grown
    _check_real(f, kinds, structure)
    converted = region.converted([kind.aval.dtype for kind in kinds])
    return _Equation(converted, list(map(as_symbol, region.captured)), leaves, kinds, structure)


def _time(kinds: Sequence[Kind]) -> Kind:
    """Return what the time is in the equation: of the dtype of y, a number where y consists of numbers."""
    dtypes = [kind.aval.dtype for kind in kinds if kind.aval.dtype.kind == "f" and not kind.weak]
    return Kind(Aval(np.result_type(*dtypes) if dtypes else F64), weak=not dtypes)


def _check_results(f: Function, region: Region, kinds: Sequence[Kind], structure: Structure) -> None:
    expected = structure.children()[0]
    check_structure(expected, region.structure, f"the result of {described(f)}", "y0")
    for i, (kind, result) in enumerate(zip(kinds, region.results, strict=True)):
        if kind.aval.shape != result.aval.shape:
            raise StructureError(
                f"{_name(kinds, i, structure)} is {kind.aval}, and its derivative in {described(f)} {result.aval}",
                source=current_source(),
                remedy="return a derivative for each element of y",
            )


def _check_real(f: Function, kinds: Sequence[Kind], structure: Structure) -> None:
    for i, kind in enumerate(kinds):
        if kind.aval.dtype.kind != "f":
            raise DtypeError(
                f"{_name(kinds, i, structure)} is {kind.aval} in {described(f)}, which is not real",
                source=current_source(),
                remedy="start with floats, and with real and imaginary part for complex numbers",
            )


def _name(kinds: Sequence[Kind], index: int, structure: Structure) -> str:
    return path(structure.unflatten(range(len(kinds))), index, lambda _: "y0")

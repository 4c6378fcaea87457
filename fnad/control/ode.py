"""`ode`: the solution of y' = f(c, t, y) at given times, with derivatives that are differential equations themselves.

Operands are constants c…, the vector y₀ and the times, of which y₀ belongs to the first; the result has a row for each.
The first region is the solver, on all operands; the second is f, (c…, t, y) -> y'. The rules ask nothing of the solver:

    forward   the sensitivity equations, s' = ∂f/∂y s + ∂f/∂c dc, solved beside y; dyᵢ = s(tᵢ) + f(tᵢ, yᵢ) dtᵢ
    reverse   the adjoint equations, backwards from each time to the one before, beside y which starts there anew:
              a' = -aᵀ ∂f/∂y,  c̄' = -aᵀ ∂f/∂c,  with ȳᵢ added to a at tᵢ;  t̄ᵢ = ȳᵢ f(tᵢ, yᵢ),  t̄₀ = -a(t₀) f(t₀, y₀)

(Chen et al., "Neural Ordinary Differential Equations", 2018, appendix B; Hairer, Nørsett & Wanner, "Solving Ordinary
Differential Equations I", 2008, I.14). They are solved by the same method to the same tolerances. A derivative is thus
as precise as they are, and needs no memory for the steps that were taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress

import numpy as np

from fnad.control.closures import Closed, closed, over
from fnad.control.dormand_prince import Dynamics, Tolerances, integrate
from fnad.control.region_rules import check_avals, inlined_primitive, spread
from fnad.control.rows import but_first, but_last, raised, row
from fnad.control.signatures import Cotangents, Flags, Pulled, Pushed, Regions, Symbols, Tangents
from fnad.control.vector import Raveling, scaled
from fnad.errors import UnsupportedFunctionError
from fnad.ir.builder import current_builder, inline
from fnad.ir.primitive import Sample
from fnad.ir.program import Equation, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval, is_complex
from fnad.ops.arithmetic import add, div, mul, neg, sub
from fnad.ops.conversion import convert_to
from fnad.ops.elementary import exp
from fnad.ops.shape import broadcast_in_dim, concatenate, reduce_sum, reshape_to, slice_axis, zeros_like
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.joint import Cotangent
from fnad.transforms.pipeline import simplify

# ---- making one ------------------------------------------------------------------------------------------------------


def solution(dynamics: Dynamics, y: Symbol, times: Symbol, tolerances: Tolerances) -> Symbol:
    """The rows of the solution; `dynamics(t, y)` may use what is around it."""
    found = closed(lambda t, y: [dynamics(t, y)], [times.aval.with_shape(()), y.aval], "dynamics")
    consts = found.captured
    regions = _solver(found, consts, y, times, tolerances), found.program
    (rows,) = ode(*consts, y, times, consts=len(consts), **tolerances._asdict(), regions=regions)
    return rows


def _solver(dynamics: Closed, consts: Symbols, y: Symbol, times: Symbol, tolerances: Tolerances) -> Program:
    """The program (c…, y, times) -> rows."""
    count = len(consts)

    def solve(*args: Symbol) -> list[Symbol]:
        y, times = args[count:]
        return [integrate(_on(dynamics.program, args[:count]), y, times, tolerances)]

    return closed(solve, [value.aval for value in (*consts, y, times)], "solver").program


def _on(program: Program, consts: Symbols) -> Dynamics:
    return lambda t, y: inline(program, [*consts, t, y])[0]


def _tolerances(equation: Equation) -> Tolerances:
    return Tolerances(*[equation.params[name] for name in Tolerances._fields])


def _slopes(dynamics: Program, consts: Symbols, times: Symbol, rows: Symbol) -> Symbol:
    """The derivative at each time and row."""
    return over(lambda t, y: inline(dynamics, [*consts, t, y]), [], [times, rows])[0]


# ---- forward mode ----------------------------------------------------------------------------------------------------


def _push(equation: Equation, primals: Symbols, tangents: Tangents) -> Pushed:
    dynamics = equation.regions[1]
    *consts, y, times = primals
    *given, dy, dtimes = tangents
    moved = [tangent is not None for tangent in given]
    pushed = simplify(jvp(dynamics, [*moved, False, True]))
    real = [tangent for tangent in given if tangent is not None]
    size = y.shape[0]

    def both(t: Symbol, state: Symbol) -> Symbol:
        y, s = slice_axis(state, 0, 0, size), slice_axis(state, 0, size, 2 * size)
        return concatenate(*inline(pushed, [*consts, t, y, *real, s]), axis=0)

    start = zeros_like(y) if dy is None else dy
    if dtimes is not None:
        first = inline(dynamics, [*consts, row(times, 0), y])[0]
        start = sub(start, scaled(row(dtimes, 0), first))
    states = solution(both, concatenate(y, start, axis=0), times, _tolerances(equation))
    rows, moves = slice_axis(states, 1, 0, size), slice_axis(states, 1, size, 2 * size)
    if dtimes is not None:
        slopes = _slopes(dynamics, consts, times, rows)
        moves = add(moves, mul(broadcast_in_dim(dtimes, shape=slopes.shape, dims=(0,)), slopes))
    return [rows], [moves]


# ---- reverse mode ----------------------------------------------------------------------------------------------------


def _pull(equation: Equation, primals: Symbols, needed: Flags) -> Pulled:
    rows = ode(*primals, **equation.params, regions=equation.regions)[0]

    def pullback(cts: Cotangents) -> list[Cotangent]:
        (ct,) = cts
        return [None] * len(primals) if ct is None else _adjoint(equation, primals, needed, rows, ct)

    return [rows], pullback


def _adjoint(equation: Equation, primals: Symbols, needed: Flags, rows: Symbol, ct: Symbol) -> list[Cotangent]:
    """The cotangents of the operands, from the last time to the first."""
    dynamics, (*consts, y, times) = equation.regions[1], primals
    wanted = needed[:-2]
    _check_real(compress(consts, wanted))
    flat = Raveling.of([y.aval, y.aval, *[value.aval for value in compress(consts, wanted)]])
    swept = simplify(joint(dynamics, [*wanted, False, True]))

    def augmented(t: Symbol, state: Symbol) -> Symbol:
        y, a, *_ = flat.unravel(state)
        slope, *back = inline(swept, [*consts, convert_to(t, times.dtype), y, neg(a)])
        return flat.ravel([slope, back[-1], *back[:-1]])

    def to_before(*values: Symbol) -> list[Symbol]:
        a, *sums = values[: len(flat.avals) - 1]
        later, earlier, y, ct = values[len(flat.avals) - 1 :]
        # the vector is as wide as the widest constant, which may be wider than y: a Python number beside float32
        span = convert_to(concatenate(raised(later), raised(earlier), axis=0), flat.aval.dtype)
        ends = solution(augmented, flat.ravel([y, add(a, ct), *sums]), span, _tolerances(equation))
        _, *carry = flat.unravel(row(ends, 1))
        return carry

    none = [zeros_like(aval) for aval in flat.avals[1:]]
    steps = [but_first(times), but_last(times), but_first(rows), but_first(ct)]
    a, *sums = over(to_before, none, steps, reverse=True)
    first = row(ct, 0)
    to_times = _to_times(dynamics, consts, times, rows, ct, a) if needed[-1] else None
    return [*spread(sums, wanted), add(a, first) if needed[-2] else None, to_times]


def _check_real(consts: Iterable[Symbol]) -> None:
    for value in consts:
        if is_complex(value.dtype):
            raise UnsupportedFunctionError(
                f"the continuous adjoint of odeint is taken with respect to a complex value, {value.aval}",
                source=current_builder().source,
                remedy='take adjoint="discrete", or differentiate with respect to real and imaginary part',
            )


def _to_times(dynamics: Program, consts: Symbols, times: Symbol, rows: Symbol, ct: Symbol, a: Symbol) -> Symbol:
    """t̄: at the first time -a f, at the others ȳ f."""
    slopes = _slopes(dynamics, consts, times, rows)
    weights = concatenate(raised(neg(a)), but_first(ct), axis=0)
    return reduce_sum(mul(weights, slopes), axes=(1,))


# ---- samples ---------------------------------------------------------------------------------------------------------


def _samples() -> Iterable[Sample]:
    """Growth that is fed, forwards and backwards; the solver knows the solution."""
    number, one, three = Aval(F64), Aval(F64, (1,)), Aval(F64, (3,))

    def solver(c: Symbol, y: Symbol, times: Symbol) -> list[Symbol]:
        since = sub(times, broadcast_in_dim(row(times, 0), shape=(3,), dims=()))
        grown = exp(scaled(c, since))
        fed = div(grown - 1, broadcast_in_dim(c, shape=(3,), dims=()))
        return [reshape_to(add(scaled(reshape_to(y, ()), grown), fed), (3, 1))]

    regions = (
        closed(solver, [number, one, three], "solver").program,
        closed(lambda c, t, y: [scaled(c, y) + 1], [number, number, one], "growth").program,
    )
    for times in ((0.0, 0.25, 0.75), (1.0, 0.5, 0.25)):
        operands = np.array(0.75), np.array([0.5]), np.array(times)
        yield Sample(operands, {"consts": 1, "rtol": 1e-12, "atol": 1e-12, "max_steps": 1000}, regions)


@inlined_primitive(_push, _pull, _samples)
def ode(*avals: Aval, consts: int, rtol: float, atol: float, max_steps: int, regions: Regions) -> tuple[Aval, ...]:
    """The results of the first region, with the derivative of a solution of the differential equation of the second."""
    solver, dynamics = regions
    y, times = avals[consts:]
    check_avals("the solver of an ode takes", solver.in_avals, avals)
    check_avals("the equation of an ode takes", dynamics.in_avals, (*avals[:consts], times.with_shape(()), y))
    check_avals("the equation of an ode returns", dynamics.out_avals, (y,))
    return (y.with_shape((*times.shape, *y.shape)),)

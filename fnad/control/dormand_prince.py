"""The Dormand-Prince 5(4) method with step-size control and dense output, on one vector.

The pair is that of Dormand & Prince, "A family of embedded Runge-Kutta formulae", 1980; the interpolant the quartic of
Shampine, "Some practical Runge-Kutta formulas", 1986. Step sizes and the first of them are as in Hairer, Nørsett &
Wanner, "Solving Ordinary Differential Equations I", 2008, II.4: the error of a step, in the Euclidean mean of
err / (atol + rtol max(|y|, |y₁|)), is kept below 1, and h ← h min(10, max(1/5, 9/10 err^(-1/5))).

Derivatives hold the sizes of the steps, on which the solution does not depend (Bock, "Numerical treatment of inverse
problems in chemical reaction kinetics", 1981).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from fnad.control.closures import demand, over, repeat
from fnad.control.rows import but_first, but_last, raised, row
from fnad.control.vector import scaled
from fnad.errors import Failure, FailureKind
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64
from fnad.ops.arithmetic import add, div, mul, sub
from fnad.ops.autodiff import stop_gradient
from fnad.ops.comparison import bitwise_and, bitwise_not, bitwise_or, ge, gt, isfinite, le, lt, select
from fnad.ops.elementary import sqrt
from fnad.ops.piecewise import abs_, maximum, minimum
from fnad.ops.power import pow_
from fnad.ops.reduction import reduce_and
from fnad.ops.shape import broadcast_to, concatenate, constant, full_like, ones_like, reduce_sum, zeros_like

Dynamics: TypeAlias = Callable[[Symbol, Symbol], Symbol]
"""The derivative of y: f(t, y)."""

ORDER = 5

NODES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
"""The times of the stages after the first within a step; the last one is the first of the next step."""

STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
"""The weights of the stages before in each; those of the last are the step of order 5."""

ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
"""The weights of the difference between the steps of order 5 and 4."""

DENSE = (
    (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
    (
        *(-8048581381 / 2820520608, 0.0, 131558114200 / 32700410799, -1754552775 / 470086768),
        *(127303824393 / 49829197408, -282668133 / 205662961, 40617522 / 29380423),
    ),
    (
        *(8663915743 / 2820520608, 0.0, -68118460800 / 10900136933, 14199869525 / 1410260304),
        *(-318862633887 / 49829197408, 2019193451 / 616988883, -110615467 / 29380423),
    ),
    (
        *(-12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072),
        *(701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423),
    ),
)
"""The weights of the stages in the coefficients of θ, θ², θ³, θ⁴, where θ goes from 0 to 1 over the step."""


class Tolerances(NamedTuple):
    """The precision of the steps, and the most steps from one time to the next."""

    rtol: float
    atol: float
    max_steps: int


class State(NamedTuple):
    """The state of the solver, the next step, and the last one's polynomial: y + h (θ q₁ + θ² q₂ + θ³ q₃ + θ⁴ q₄)."""

    t: Symbol
    y: Symbol
    slope: Symbol
    step: Symbol
    last_t: Symbol
    last_step: Symbol
    last_y: Symbol
    q1: Symbol
    q2: Symbol
    q3: Symbol
    q4: Symbol

    def at(self, t: Symbol) -> Symbol:
        """The value at a time in the last step."""
        part = (t - self.last_t) / self.last_step
        inner = add(self.q3, scaled(part, self.q4))
        inner = add(self.q1, scaled(part, add(self.q2, scaled(part, inner))))
        return add(self.last_y, scaled(t - self.last_t, inner))


def integrate(dynamics: Dynamics, y: Symbol, times: Symbol, tolerances: Tolerances) -> Symbol:
    """The solution that begins with y, a row for each of the times.

    ConvergenceError when it runs, where the steps vanish or are too many; DomainError where the times turn back.
    """
    count = times.shape[0]
    first, last = (row(stop_gradient(times), i) for i in (0, count - 1))
    forth = select(lt(last, first), full_like(first, -1), ones_like(first))
    forth = demand(forth, _is_monotonic(times, forth), TURNING)
    start = _start(dynamics, row(times, 0), y, mul(forth, abs_(sub(last, first))), tolerances)

    def to_next(*values: Symbol) -> list[Symbol]:
        *before, t = values
        state = _advance(dynamics, State(*before), t, last, forth, tolerances)
        return [*state, state.at(t)]

    *_, rows = over(to_next, start, [but_first(times)])
    return concatenate(raised(y), rows, axis=0)


TURNING = FailureKind.DOMAIN.of(
    "the times of odeint go up and down",
    "sort them: y0 belongs to the first, and the others follow upwards or downwards",
)


def _stuck(tolerances: Tolerances) -> Failure:
    what = f"odeint did not come to the next time in max_steps={tolerances.max_steps} steps, or its steps vanished"
    remedy = "look for a pole or a nan in the derivative; a stiff equation takes looser tolerances, or more max_steps="
    return FailureKind.CONVERGENCE.of(what, remedy)


def _is_monotonic(times: Symbol, forth: Symbol) -> Symbol:
    steps = scaled(forth, sub(but_first(times), but_last(times)))
    return reduce_and(ge(steps, zeros_like(steps)), axes=(0,))


# ---- steps -----------------------------------------------------------------------------------------------------------


def _advance(
    dynamics: Dynamics, state: State, target: Symbol, end: Symbol, forth: Symbol, tolerances: Tolerances
) -> State:
    """The state after the step in which the target lies; what is demanded of a step size has no derivative."""
    limit = constant(tolerances.max_steps, I64)

    def is_ahead(t: Symbol) -> Symbol:
        return gt(mul(sub(target, t), forth), zeros_like(t))

    def goes_on(*values: Symbol) -> Symbol:
        state, count = State(*values[:-1]), values[-1]
        resolved = gt(abs_(state.step), abs_(state.t) * (4 * float(np.finfo(state.t.dtype).eps)))
        return bitwise_and(is_ahead(state.t), bitwise_and(lt(count, limit), resolved))

    def attempt(*values: Symbol) -> list[Symbol]:
        return [*_step(dynamics, State(*values[:-1]), end, forth, tolerances), values[-1] + 1]

    found = repeat(goes_on, attempt, [*state, constant(0, I64)])
    state = State(*found[:-1])
    arrived = bitwise_not(is_ahead(state.t))
    return state._replace(last_step=demand(state.last_step, arrived, _stuck(tolerances)))


def _step(dynamics: Dynamics, state: State, end: Symbol, forth: Symbol, tolerances: Tolerances) -> State:
    """The state after a step, or with a smaller one to be tried where the error is too large."""
    t, y, step = state.t, state.y, state.step
    left = mul(forth, stop_gradient(sub(end, t)))
    h = mul(forth, minimum(abs_(step), left))
    slopes = [state.slope]
    new = y
    for node, weights in zip(NODES, STAGES, strict=True):
        new = add(y, scaled(h, _combination(weights, slopes)))
        slopes.append(dynamics(t + h * node, new))
    error = _size(scaled(h, _combination(ERROR, slopes)), y, new, tolerances)
    accepted = le(error, ones_like(error))
    following = stop_gradient(mul(h, _factor(error)))
    taken = State(t + h, new, slopes[-1], following, t, h, y, *[_combination(weights, slopes) for weights in DENSE])
    return State(*[_chosen(accepted, a, b) for a, b in zip(taken, state._replace(step=following), strict=True)])


def _factor(error: Symbol) -> Symbol:
    """The factor for the step size; after a nan it is made smaller."""
    wanted = 0.9 * pow_(error, full_like(error, -1 / ORDER))
    bounded = maximum(full_like(error, 0.2), minimum(full_like(error, 10), wanted))
    return select(isfinite(error), bounded, full_like(error, 0.2))


def _chosen(accepted: Symbol, new: Symbol, old: Symbol) -> Symbol:
    return select(broadcast_to(accepted, new.shape), new, old)


def _combination(weights: Sequence[float], slopes: Sequence[Symbol]) -> Symbol:
    terms = [slope * weight for weight, slope in zip(weights, slopes, strict=True) if weight]
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def _size(x: Symbol, y: Symbol, other: Symbol, tolerances: Tolerances) -> Symbol:
    """The mean of x relative to what is allowed beside y and the other."""
    x, y, other = map(stop_gradient, (x, y, other))
    ratio = div(x, maximum(abs_(y), abs_(other)) * tolerances.rtol + tolerances.atol)
    return sqrt(reduce_sum(mul(ratio, ratio), axes=(0,)) / x.aval.size)


def _start(dynamics: Dynamics, t: Symbol, y: Symbol, span: Symbol, tolerances: Tolerances) -> State:
    """The first state: its polynomial is the tangent."""
    slope = dynamics(t, y)
    step = stop_gradient(_first_step(dynamics, t, y, slope, span, tolerances))
    nothing = zeros_like(y)
    return State(t, y, slope, step, t, ones_like(t), y, slope, nothing, nothing, nothing)


def _first_step(
    dynamics: Dynamics, t: Symbol, y: Symbol, slope: Symbol, span: Symbol, tolerances: Tolerances
) -> Symbol:
    """The first step size, no larger than the span (Hairer, Nørsett & Wanner, II.4, "Starting step size")."""
    forth = select(lt(span, zeros_like(span)), full_like(span, -1), ones_like(span))
    size, speed = _size(y, y, y, tolerances), _size(slope, y, y, tolerances)
    tiny = bitwise_or(lt(size, full_like(size, 1e-5)), lt(speed, full_like(speed, 1e-5)))
    guess = minimum(select(tiny, full_like(size, 1e-6), 0.01 * size / speed), abs_(span))
    signed = mul(forth, guess)
    there = dynamics(t + signed, add(y, scaled(signed, slope)))
    bend = _size(sub(there, slope), y, y, tolerances) / guess
    fastest = maximum(speed, bend)
    by_bend = pow_(0.01 / fastest, full_like(fastest, 1 / ORDER))
    straight = maximum(full_like(guess, 1e-6), guess * 1e-3)
    wanted = select(le(fastest, full_like(fastest, 1e-15)), straight, by_bend)
    bounded = minimum(minimum(guess * 100, wanted), abs_(span))
    return mul(forth, select(isfinite(bounded), bounded, full_like(bounded, 1e-6)))

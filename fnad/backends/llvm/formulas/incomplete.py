"""The slope of the incomplete gamma function P(a, x) in a, in double precision for both dtypes.

Up to two deviations above the mean it is the series of the slopes of DLMF 8.11.4, whose terms follow from each other:

    Σ x**(a+n) exp(-x) / Γ(a+n+1) (log x - ψ(a+n+1))

For other x and for large a it is the quadrature of `fnad.scalar.quadrature`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import llvmlite.ir as ir

from fnad.backends.llvm.formulas.exponential import INF, NAN, exp, expm1, log, log1p
from fnad.backends.llvm.formulas.gamma import digamma, gammaln
from fnad.backends.llvm.lane import DOUBLE, Lane, where
from fnad.scalar.quadrature import HUGE, LARGE, NODES, SMALL, TINY, WEIGHTS

LONG = ir.IntType(64)


def gammainc_a(a: Lane, x: Lane) -> Lane:
    is_double, builder = x.is_double, x.builder
    is_inside, is_valid = (x > 0.0) & (x < INF), (a > 0.0) & (a < INF) & (x >= 0.0)
    a, t = a.as_double(), x.as_double()
    a, t = (where(y < HUGE, where(y > least, y, least), HUGE) for y, least in ((a, SMALL), (t, TINY)))
    log_t, above = log(t), a + 1.0
    psi, density = digamma(above), exp(a * log_t - t - gammaln(above))
    is_near = (a < LARGE) & (t < (a + 2.0) + a.sqrt() * (2.0 if is_double else 6.0))
    with builder.if_else(is_near.value) as (near, far):
        with near:
            one, first = density * series(a, t, log_t - psi, 2.0**-60 if is_double else 2.0**-30), builder.block
        with far:
            other, second = quadrature(a, t, log_t, psi, 1 if is_double else 3), builder.block
    found = builder.phi(DOUBLE)
    found.add_incoming(one.value, first)
    found.add_incoming(other.value, second)
    value = Lane(builder, found) if is_double else Lane(builder, builder.fptrunc(found, x.value.type))
    return where(is_valid, where(is_inside, value, 0.0), NAN)


def series(a: Lane, x: Lane, slope: Lane, least: float) -> Lane:
    """The sum of the terms x**n Γ(a+1) / Γ(a+n+1) times slopes, the first of which is given."""

    def step(total: Lane, power: Lane, term: Lane, slope: Lane) -> tuple[Lane, ...]:
        inverse = 1.0 / (power + 1.0)
        return total + term * slope, power + 1.0, term * x * inverse, slope - inverse

    def goes_on(total: Lane, power: Lane, term: Lane, slope: Lane) -> Lane:
        return (term > abs(total) * least) | (power < x)

    return repeated(step, goes_on, x.number(0.0), a, x.number(1.0), slope)[0]


def repeated(step: Callable[..., tuple[Lane, ...]], goes_on: Callable[..., Lane], *start: Lane) -> tuple[Lane, ...]:
    """The numbers after steps for as long as a condition holds of them, at least one step."""
    builder, before = start[0].builder, start[0].builder.block
    body, end = builder.append_basic_block(), builder.append_basic_block()
    builder.branch(body)
    builder.position_at_end(body)
    phis = [builder.phi(lane.value.type) for lane in start]
    following = step(*(Lane(builder, phi) for phi in phis))
    for phi, first, later in zip(phis, start, following, strict=True):
        phi.add_incoming(first.value, before)
        phi.add_incoming(later.value, builder.block)
    builder.cbranch(goes_on(*following).value, body, end)
    builder.position_at_end(end)
    return following


def quadrature(a: Lane, x: Lane, log_x: Lane, psi: Lane, stride: int) -> Lane:
    """The integral over (0, x) up to the mean, else minus that over the rest, by each `stride`-th node."""
    builder = x.builder
    nodes, weights = table(builder, "nodes", NODES[::stride]), table(builder, "weights", WEIGHTS[::stride] * stride)
    is_below, root, psi = x < a, x.sqrt(), psi - 1.0 / a
    rest, distance = 1.0 / x, x - a
    length = 1.0 / where(is_below, root - distance, where(distance > -1.0, (distance + 1.0) * rest, 0.0) + 1.0 / root)
    inverse = 1.0 / a
    stirling = log(a * (2 * math.pi)) * 0.5 + inverse * (inverse * inverse * (-1 / 360) + 1 / 12)
    near = a * log1p(distance * inverse) - distance - stirling
    constant = where(a < LARGE, a * log_x - x - gammaln(a + 1.0), near)

    def step(total: Lane, number: Lane) -> tuple[Lane, Lane]:
        s = length * loaded(nodes, number)
        rise = log1p(s * rest)
        change = where(is_below, expm1(-s) * -x - a * s, (a - 1.0) * rise - s)
        logarithm = log_x + where(is_below, -s, rise)
        term = exp(constant + change) * (logarithm - psi) * loaded(weights, number)
        added = builder.fadd(total.value, where(abs(term) < INF, term, 0.0).value, flags=("reassoc",))
        return Lane(builder, added), number + 1

    count = len(NODES[::stride])
    total, _ = repeated(step, lambda _, number: number < count, x.number(0.0), Lane(builder, LONG(0)))
    return total * length * where(is_below, a, -a * rest)


def table(builder: ir.IRBuilder, name: str, numbers: Iterable[float]) -> ir.GlobalVariable:
    """A constant array of the module."""
    constants = [DOUBLE(float(number)) for number in numbers]
    symbol = f"fnad.gammainc_a.{name}.{len(constants)}"
    if found := builder.module.globals.get(symbol):
        return found
    array = ir.GlobalVariable(builder.module, ir.ArrayType(DOUBLE, len(constants)), symbol)
    array.linkage, array.global_constant = "internal", True
    array.initializer = ir.Constant(array.value_type, constants)
    return array


def loaded(array: ir.GlobalVariable, number: Lane) -> Lane:
    builder = number.builder
    return Lane(builder, builder.load(builder.gep(array, [LONG(0), number.value])))

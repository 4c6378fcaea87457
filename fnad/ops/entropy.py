"""x log y and the entropies made of it, and two penalties of robust statistics.

0 log 0 is 0, with slope 0 in the second factor, and log 0 in the first. Outside the domain, where an entropy or a
penalty is infinite, derivatives are nan.
"""

from __future__ import annotations

from fnad.ir.symbol import Symbol
from fnad.ops.arithmetic import mul, neg, strong_div
from fnad.ops.comparison import eq, lt, select
from fnad.ops.elementary import log, log1p, sqrt
from fnad.ops.kinds import INEXACT, LINE, REALS, elementwise
from fnad.ops.library import INF, NAN, scipy_call
from fnad.ops.piecewise import abs_, maximum, minimum, sign
from fnad.ops.shape import full_like, zeros_like

CORNERS = (
    (0.0, 0.0),
    (0.0, 1.0),
    (1.0, 0.0),
    (0.0, -1.0),
    (-1.0, 1.0),
    (1.0, -1.0),
    (0.0, NAN),
    (NAN, 1.0),
    (INF, 1.0),
)

# ---- x log y -----------------------------------------------------------------------------------------------------

xlogy = elementwise(
    "xlogy",
    scipy_call("xlogy"),
    "select(({0} == {dtype}(0)) & ({1} == {1}), {dtype}(0), {0} * log({1}))",
    (lambda z, x, y: log(y), lambda z, x, y: strong_div(x, y)),
    domain=INEXACT,
    edges=CORNERS,
    cost=25,
    doc="x log y, 0 where x is 0 and y no nan.",
)
xlog1py = elementwise(
    "xlog1py",
    scipy_call("xlog1py"),
    "select(({0} == {dtype}(0)) & ({1} == {1}), {dtype}(0), {0} * log1p({1}))",
    (lambda z, x, y: log1p(y), lambda z, x, y: strong_div(x, y + 1.0)),
    domain=INEXACT,
    edges=(*CORNERS, (0.0, -1.0), (1.0, -1.0)),
    cost=25,
    doc="x log(1 + y), 0 where x is 0 and y no nan.",
)

# ---- entropies ---------------------------------------------------------------------------------------------------
# Relative entropies cancel where x is near y: as SciPy, they are computed in double precision.

entr = elementwise(
    "entr",
    scipy_call("entr"),
    "select({0} > {dtype}(0), -{0} * log({0}), select({0} == {dtype}(0), {dtype}(0),"
    " select({0} < {dtype}(0), {dtype}(-inf), {0})))",
    (lambda y, x: -1.0 - log(x),),
    domain=REALS,
    edges=((0.0,), (-1.0,), (INF,), (NAN,)),
    cost=25,
    doc="-x log x, -inf where x < 0.",
)


def _relative(inside: str, on_axis: str) -> str:
    """Return the template of a function of x >= 0, y >= 0, another where x is 0; it is infinite elsewhere."""
    return (
        "select(({0} > {dtype}(0)) & ({1} > {dtype}(0)), {dtype}(" + inside + "),"
        " select(({0} == {dtype}(0)) & ({1} >= {dtype}(0)), " + on_axis + ","
        " select(({0} == {0}) & ({1} == {1}), {dtype}(inf), {0} + {1})))"
    )


rel_entr = elementwise(
    "rel_entr",
    scipy_call("rel_entr"),
    _relative("f64({0}) * log(f64({0}) / f64({1}))", "{dtype}(0)"),
    (lambda z, x, y: log(x / y) + 1.0, lambda z, x, y: neg(strong_div(x, y)) + _domain(x, y)),
    domain=REALS,
    edges=CORNERS,
    cost=30,
    doc="x log(x / y), inf outside x >= 0, y >= 0.",
)
kl_div = elementwise(
    "kl_div",
    scipy_call("kl_div"),
    _relative("f64({0}) * log(f64({0}) / f64({1})) - f64({0}) + f64({1})", "{1}"),
    (lambda z, x, y: log(x / y), lambda z, x, y: 1.0 - strong_div(x, y) + _domain(x, y)),
    domain=REALS,
    edges=CORNERS,
    cost=32,
    doc="x log(x / y) - x + y, inf outside x >= 0, y >= 0.",
)


def _domain(*operands: Symbol) -> Symbol:
    """Return nan where an operand is negative, else 0."""
    least = operands[0] if len(operands) == 1 else minimum(*operands)
    return select(lt(least, zeros_like(least)), full_like(least, NAN), zeros_like(least))


# ---- penalties ---------------------------------------------------------------------------------------------------


def _clipped(r: Symbol, delta: Symbol) -> Symbol:
    """Return r within ±delta; its slope in delta is the sign of r for delta = 0 too."""
    return select(eq(r, zeros_like(r)), r, mul(sign(r), minimum(abs_(r), delta)))


huber = elementwise(
    "huber",
    scipy_call("huber"),
    "select({0} < {dtype}(0), {dtype}(inf), select(abs({1}) <= {0}, {dtype}(0.5) * {1} * {1},"
    " {0} * (abs({1}) - {dtype}(0.5) * {0})))",
    (
        lambda y, delta, r: maximum(abs_(r) - delta, zeros_like(r)) + _domain(delta),
        lambda y, delta, r: _clipped(r, delta) + _domain(delta),
    ),
    domain=REALS,
    over=((0.3, 0.6), (0.7, 1.5)),
    edges=((1.0, 1.0), (1.0, -1.0), (0.0, 0.0), (1.0, 0.5), (-1.0, 1.0), (1.0, INF), (NAN, 1.0)),
    cost=6,
    doc="Huber's loss of the residual r: r²/2 where |r| <= delta, else delta (|r| - delta/2); inf where delta < 0.",
)


def _steepness(delta: Symbol, r: Symbol) -> Symbol:
    """Return √(1 + (r/delta)²)."""
    ratio = r / delta
    return sqrt(ratio * ratio + 1.0)


def _pseudo_huber_in_delta(y: Symbol, delta: Symbol, r: Symbol) -> Symbol:
    """Return delta (s - 1)² / s with s = √(1 + (r/delta)²)."""
    excess = y / delta
    return excess * excess / (delta * _steepness(delta, r)) + _domain(delta)


pseudo_huber = elementwise(
    "pseudo_huber",
    scipy_call("pseudo_huber"),
    "select({0} < {dtype}(0), {dtype}(inf), select(({0} == {dtype}(0)) | ({1} == {dtype}(0)), {dtype}(0),"
    " {0} * {0} * expm1({dtype}(0.5) * log1p({1} / {0} * ({1} / {0})))))",
    (_pseudo_huber_in_delta, lambda y, delta, r: r / _steepness(delta, r) + _domain(delta)),
    domain=REALS,
    over=((0.5, 1.5), LINE),
    edges=((1.0, 0.0), (0.0, 1.0), (-1.0, 1.0), (1.0, INF)),
    cost=60,
    doc="A smooth form of Huber's loss, delta² (√(1 + (r/delta)²) - 1); inf where delta < 0.",
)

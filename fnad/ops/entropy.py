"""x log y and the entropies made of it, and two penalties of robust statistics.

0 log 0 is 0, with slope 0 in the second factor, and log 0 in the first. Outside the domain, where an entropy or a
penalty is infinite, derivatives are nan.
"""

from __future__ import annotations

from fnad.ops.constructors import INEXACT, LINE
from fnad.ops.formula import formula
from fnad.ops.special_function import INF, NAN, native

SIGNS = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 1.0), (1.0, -1.0))
CORNERS = (*SIGNS, (0.0, NAN), (NAN, 1.0), (INF, 1.0))


def _relative(inside: str, on_axis: str) -> str:
    """The template of a function of x >= 0, y >= 0, another where x is 0; it is infinite elsewhere."""
    return (
        "select(({0} > {dtype}(0)) & ({1} > {dtype}(0)), {dtype}(" + inside + "),"
        " select(({0} == {dtype}(0)) & ({1} >= {dtype}(0)), " + on_axis + ","
        " select(({0} == {0}) & ({1} == {1}), {dtype}(inf), {0} + {1})))"
    )


# fmt: off
# ---- x log y -----------------------------------------------------------------------------------------------------

xlogy = native("xlogy(x, y)", "x log y, 0 where x is 0 and y no nan.",
    "select(({0} == {dtype}(0)) & ({1} == {1}), {dtype}(0), {0} * log({1}))",
    domain=INEXACT, edges=CORNERS, cost=25, x="log(y)", y="strong_div(x, y)")
xlog1py = native("xlog1py(x, y)", "x log(1 + y), 0 where x is 0 and y no nan.",
    "select(({0} == {dtype}(0)) & ({1} == {1}), {dtype}(0), {0} * log1p({1}))",
    domain=INEXACT, edges=(*CORNERS, (0.0, -1.0), (1.0, -1.0)), cost=25, x="log1p(y)", y="strong_div(x, y + 1.0)")

# ---- entropies ---------------------------------------------------------------------------------------------------
# Relative entropies cancel where x is near y: as SciPy, they are computed in double precision.

formula("domain(least)", "select(lt(least, 0.0), nan, zeros_like(least))")  # nan where an operand is negative, else 0

entr = native("entr(x)", "-x log x, -inf where x < 0.",
    "select({0} > {dtype}(0), -{0} * log({0}), select({0} == {dtype}(0), {dtype}(0),"
    " select({0} < {dtype}(0), {dtype}(-inf), {0})))",
    edges=((0.0,), (-1.0,), (INF,), (NAN,)), cost=25, x="-1.0 - log(x)")
rel_entr = native("rel_entr(x, y)", "x log(x / y), inf outside x >= 0, y >= 0.",
    _relative("f64({0}) * log(f64({0}) / f64({1}))", "{dtype}(0)"),
    edges=CORNERS, cost=30, x="log(x / y) + 1.0", y="-strong_div(x, y) + domain(minimum(x, y))")
kl_div = native("kl_div(x, y)", "x log(x / y) - x + y, inf outside x >= 0, y >= 0.",
    _relative("f64({0}) * log(f64({0}) / f64({1})) - f64({0}) + f64({1})", "{1}"),
    edges=CORNERS, cost=32, x="log(x / y)", y="1.0 - strong_div(x, y) + domain(minimum(x, y))")

# ---- penalties ---------------------------------------------------------------------------------------------------

# r within ±delta; its slope in delta is the sign of r for delta = 0 too.
formula("clipped(r, delta)", "select(eq(r, 0.0), r, mul(sign(r), minimum(abs(r), delta)))")
huber = native("huber(delta, r)",
    "Huber's loss of the residual r: r²/2 where |r| <= delta, else delta (|r| - delta/2); inf where delta < 0.",
    "select({0} < {dtype}(0), {dtype}(inf), select(abs({1}) <= {0}, {dtype}(0.5) * {1} * {1},"
    " {0} * (abs({1}) - {dtype}(0.5) * {0})))", ((0.3, 0.6), (0.7, 1.5)),
    edges=((1.0, 1.0), (1.0, -1.0), (0.0, 0.0), (1.0, 0.5), (-1.0, 1.0), (1.0, INF), (NAN, 1.0)), cost=6,
    delta="maximum(abs(r) - delta, 0.0) + domain(delta)", r="clipped(r, delta) + domain(delta)")

# With s = √(1 + (r/delta)²) the slope in delta is delta (s - 1)² / s.
formula("steepness(delta, r)", "sqrt(r / delta * (r / delta) + 1.0)")
pseudo_huber = native("pseudo_huber(delta, r)",
    "A smooth form of Huber's loss, delta² (√(1 + (r/delta)²) - 1); inf where delta < 0.",
    "select({0} < {dtype}(0), {dtype}(inf), select(({0} == {dtype}(0)) | ({1} == {dtype}(0)), {dtype}(0),"
    " {0} * {0} * expm1({dtype}(0.5) * log1p({1} / {0} * ({1} / {0})))))", ((0.5, 1.5), LINE),
    edges=((1.0, 0.0), (0.0, 1.0), (-1.0, 1.0), (1.0, INF)), cost=60,
    delta="y / delta * (y / delta) / (delta * steepness(delta, r)) + domain(delta)",
    r="r / steepness(delta, r) + domain(delta)")
# fmt: on

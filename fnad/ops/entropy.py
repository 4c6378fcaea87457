"""x log y and the entropies made of it, and two penalties of robust statistics.

0 log 0 is 0, with slope 0 in the second factor, and log 0 in the first. Outside the domain, where an entropy or a
penalty is infinite, derivatives are nan.
"""

from __future__ import annotations

import math

from fnad.ir.primitive import Primitive
from fnad.ops.constructors import COMPLEXES, INEXACT, LINE, REALS, elementwise
from fnad.ops.formula import formula
from fnad.ops.special_function import INF, NAN, native, scipy_call, special
from fnad.scalar.template import on_arrays

SIGNS = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 1.0), (1.0, -1.0))
CORNERS = (*SIGNS, (0.0, NAN), (NAN, 1.0), (INF, 1.0))


X, Y = "f64({0})", "f64({1})"
LEAST, DISTANCE = f"minimum({X}, {Y})", f"abs({X} - {Y})"
NEAR, FAR = f"{DISTANCE} / {LEAST}", f"sqrt({DISTANCE}) * f64({2.0**-100}) / sqrt({LEAST})"
IS_NEAR = f"({NEAR} < f64(inf))"
LOG = f"log1p(select({IS_NEAR}, {NEAR}, {FAR}))"
SIZE = f"select({IS_NEAR}, {LOG}, f64(2) * {LOG} + f64({200 * math.log(2)}))"
LOG_QUOTIENT = f"select({LEAST} < f64(0), f64(nan), select({X} < {Y}, -{SIZE}, {SIZE}))"
"""log(x / y) as ± log1p(|x - y| / min(x, y)), accurate where x is near y; where the quotient overflows, by its root."""


def _relative(name: str, doc: str, inside: str, on_axis: str, *, x: str, y: str) -> Primitive:
    """A function of x >= 0, y >= 0, another where x is 0; it is infinite elsewhere."""
    template = (
        "select(({0} > {dtype}(0)) & ({1} > {dtype}(0)), {dtype}(" + inside + "),"
        " select(({0} == {dtype}(0)) & ({1} >= {dtype}(0)), " + on_axis + ","
        " select(({0} == {0}) & ({1} == {1}), {dtype}(inf), {0} + {1})))"
    )
    return native(f"{name}(x, y)", doc, template, evaluate=on_arrays(template), edges=CORNERS, cost=60, x=x, y=y)


log_quotient = elementwise(
    "log_quotient",
    on_arrays(f"{{dtype}}({LOG_QUOTIENT})"),
    f"{{dtype}}({LOG_QUOTIENT})",
    (lambda q, x, y: 1.0 / x, lambda q, x, y: -1.0 / y),
    domain=REALS,
    edges=(*CORNERS, (0.3, 0.3), (4.0, 5e-324), (5e-324, 1e300)),
    cost=55,
    doc="log(x / y) of x >= 0, y >= 0, whose quotient may overflow; nan elsewhere.",
)

# fmt: off
# ---- x log y -----------------------------------------------------------------------------------------------------

xlogy = native("xlogy(x, y)", "x log y, 0 where x is 0 and y no nan.",
    "select(({0} == {dtype}(0)) & ({1} == {1}), {dtype}(0), {0} * log({1}))",
    domain=INEXACT, edges=CORNERS, cost=25, x="log(y)", y="strong_div(x, y)")
xlog1py = native("xlog1py(x, y)", "x log(1 + y), 0 where x is 0 and y no nan.",
    "select(({0} == {dtype}(0)) & ({1} == {1}), {dtype}(0), {0} * log1p({1}))",
    edges=(*CORNERS, (0.0, -1.0), (1.0, -1.0)), cost=25, x="log1p(y)", y="strong_div(x, y + 1.0)")
complex_log1p = special("complex_log1p(z)", "log(1 + z) of complex numbers, accurate for small z, as NumPy's is not.",
                        domain=COMPLEXES, evaluate=scipy_call("log1p"), z="1.0 / (z + 1.0)")
complex_xlog1py = formula("complex_xlog1py(x, y)", "strong_mul(select(isnan(y), y, x), complex_log1p(y))")

# ---- entropies ---------------------------------------------------------------------------------------------------
# Relative entropies cancel where x is near y: as in SciPy, they are computed in double precision.

formula("domain(least)", "select(lt(least, 0.0), nan, zeros_like(least))")  # nan where an operand is negative, else 0

entr = native("entr(x)", "-x log x, -inf where x < 0.",
    "select({0} > {dtype}(0), -{0} * log({0}), select({0} == {dtype}(0), {dtype}(0),"
    " select({0} < {dtype}(0), {dtype}(-inf), {0})))",
    edges=((0.0,), (-1.0,), (INF,), (NAN,)), cost=25, x="-1.0 - log(x)")
rel_entr = _relative("rel_entr", "x log(x / y), inf outside x >= 0, y >= 0.", f"{X} * {LOG_QUOTIENT}", "{dtype}(0)",
                     x="log_quotient(x, y) + 1.0", y="-strong_div(x, y) + domain(minimum(x, y))")
kl_div = _relative("kl_div", "x log(x / y) - x + y, inf outside x >= 0, y >= 0.",
                   f"{X} * {LOG_QUOTIENT} - ({X} - {Y})", "{1}",
                   x="log_quotient(x, y)", y="1.0 - strong_div(x, y) + domain(minimum(x, y))")

# ---- penalties ---------------------------------------------------------------------------------------------------

# r within ±delta; its slope in delta is the sign of r for delta = 0 too.
formula("clipped(r, delta)", "select(eq(r, 0.0), r, mul(sign(r), minimum(abs(r), delta)))")
huber = native("huber(delta, r)",
    "Huber's loss of the residual r: r²/2 where |r| <= delta, else delta (|r| - delta/2); inf where delta < 0.",
    "select({0} < {dtype}(0), {dtype}(inf), select(abs({1}) <= {0}, {dtype}(0.5) * {1} * {1},"
    " {0} * (abs({1}) - {dtype}(0.5) * {0})))", ((0.3, 0.6), (0.7, 1.5)),
    edges=((1.0, 1.0), (1.0, -1.0), (0.0, 0.0), (1.0, 0.5), (-1.0, 1.0), (1.0, INF), (NAN, 1.0)), cost=6,
    delta="maximum(abs(r) - delta, 0.0) + domain(delta)", r="clipped(r, delta) + domain(delta)")

# By the smaller of the two quotients. With h = √(delta² + r²) and t = r²/(h + delta), it is delta t, and its slopes are
# delta r / h and t²/h.
PSEUDO_HUBER = (
    "select({0} < {dtype}(0), {dtype}(inf), select(({0} == {dtype}(0)) | ({1} == {dtype}(0)), {dtype}(0),"
    " select(abs({1}) < {0}, {1} * {1} / ({dtype}(1) + sqrt({dtype}(1) + {1} / {0} * ({1} / {0}))),"
    " {0} * abs({1}) / (sqrt({dtype}(1) + {0} / {1} * ({0} / {1})) + {0} / abs({1})))))")
formula("rise(delta, r)", "r * strong_div(r, hypot(delta, r) + delta)")
pseudo_huber = native("pseudo_huber(delta, r)",
    "A smooth form of Huber's loss, delta² (√(1 + (r/delta)²) - 1); inf where delta < 0.", PSEUDO_HUBER,
    ((0.5, 1.5), LINE), evaluate=on_arrays(PSEUDO_HUBER),
    edges=((1.0, 0.0), (0.0, 1.0), (-1.0, 1.0), (1.0, INF)), cost=60,
    delta="rise(delta, r) * strong_div(rise(delta, r), hypot(delta, r)) + domain(delta)",
    r="delta * hypot_slope(r, delta) + domain(delta)")
# fmt: on

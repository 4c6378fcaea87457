"""Orthogonal polynomials of an integer degree: a slope is a polynomial of the degree below (DLMF 18.9)."""

from __future__ import annotations

from collections.abc import Callable

from fnad.ir.primitive import Primitive
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64
from fnad.ops.arithmetic import mul
from fnad.ops.conversion import convert_to
from fnad.ops.kinds import UNIT
from fnad.ops.library import POSITIVE, special
from fnad.ops.piecewise import maximum, minimum
from fnad.ops.shape import full_like, ones_like, zeros_like

DOUBLE = frozenset({F64})


def _polynomial(name: str, doc: str, slope: Callable[..., Symbol], parameters: int = 0) -> Primitive:
    """Declare a family with the operands n, parameters, x; `slope` sees the degree below n, and n as a float.

    The slope at n = 0 is 0, whatever it makes of the degree 0 that it sees there.
    """

    def partial(y: Symbol, n: Symbol, *rest: Symbol) -> Symbol:
        is_polynomial = convert_to(minimum(n, ones_like(n)), F64)
        return mul(is_polynomial, slope(maximum(n - 1, zeros_like(n)), convert_to(n, F64), *rest))

    return special(
        f"eval_{name}",
        f"{doc}.",
        None,
        *PARAMETERS[parameters],
        partial,
        domain=DOUBLE,
        over=(POSITIVE,) * parameters + (UNIT,),
        integers=1,
    )


PARAMETERS: tuple[tuple[str, ...], ...] = ((), ("alpha",), ("alpha", "beta"))


def _shifted(x: Symbol) -> Symbol:
    return 2.0 * x - 1.0


def _legendre_slope(below: Symbol, n: Symbol, x: Symbol) -> Symbol:
    return 0.5 * (n + 1.0) * eval_jacobi(below, ones_like(x), ones_like(x), x)


eval_jacobi = _polynomial(
    "jacobi",
    "Jacobi polynomial P; DLMF 18.9.15",
    lambda below, n, a, b, x: 0.5 * (n + a + b + 1.0) * eval_jacobi(below, a + 1.0, b + 1.0, x),
    parameters=2,
)
eval_gegenbauer = _polynomial(
    "gegenbauer",
    "Gegenbauer polynomial C; DLMF 18.9.19",
    lambda below, n, a, x: 2.0 * a * eval_gegenbauer(below, a + 1.0, x),
    parameters=1,
)
eval_genlaguerre = _polynomial(
    "genlaguerre",
    "Generalised Laguerre polynomial L; DLMF 18.9.23",
    lambda below, n, a, x: -1.0 * eval_genlaguerre(below, a + 1.0, x),
    parameters=1,
)
eval_laguerre = _polynomial(
    "laguerre",
    "Laguerre polynomial L; DLMF 18.9.23",
    lambda below, n, x: -1.0 * eval_genlaguerre(below, ones_like(x), x),
)
eval_legendre = _polynomial("legendre", "Legendre polynomial P; DLMF 18.9.15", _legendre_slope)
eval_sh_legendre = _polynomial(
    "sh_legendre",
    "Legendre polynomial P(2x - 1); DLMF 18.9.15",
    lambda below, n, x: 2.0 * _legendre_slope(below, n, _shifted(x)),
)
eval_chebyt = _polynomial(
    "chebyt", "Chebyshev polynomial T; DLMF 18.9.21", lambda below, n, x: n * eval_chebyu(below, x)
)
eval_chebyu = _polynomial(
    "chebyu", "Chebyshev polynomial U; DLMF 18.9.19", lambda below, n, x: 2.0 * _second_kind(below, x)
)
eval_chebyc = _polynomial(
    "chebyc", "Chebyshev polynomial 2 T(x/2); DLMF 18.9.21", lambda below, n, x: n * eval_chebyu(below, 0.5 * x)
)
eval_chebys = _polynomial(
    "chebys", "Chebyshev polynomial U(x/2); DLMF 18.9.19", lambda below, n, x: _second_kind(below, 0.5 * x)
)
eval_sh_chebyt = _polynomial(
    "sh_chebyt",
    "Chebyshev polynomial T(2x - 1); DLMF 18.9.21",
    lambda below, n, x: 2.0 * n * eval_chebyu(below, _shifted(x)),
)
eval_sh_chebyu = _polynomial(
    "sh_chebyu",
    "Chebyshev polynomial U(2x - 1); DLMF 18.9.19",
    lambda below, n, x: 4.0 * _second_kind(below, _shifted(x)),
)
eval_hermite = _polynomial(
    "hermite", "Hermite polynomial H; DLMF 18.9.25", lambda below, n, x: 2.0 * n * eval_hermite(below, x)
)
eval_hermitenorm = _polynomial(
    "hermitenorm", "Hermite polynomial He; DLMF 18.9.27", lambda below, n, x: n * eval_hermitenorm(below, x)
)


def _second_kind(below: Symbol, x: Symbol) -> Symbol:
    """Return C of degree n - 1 and parameter 2, half the slope of U = C with parameter 1 (DLMF 18.7.4)."""
    return eval_gegenbauer(below, full_like(x, 2.0), x)

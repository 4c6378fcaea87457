"""Orthogonal polynomials of an integer degree: a slope is a polynomial of the degree below (DLMF 18.9).

At n = 0 it is 0, whatever the formula makes of the degree 0 that it sees there. C of degree n - 1 and parameter 2 is
half the slope of U, which is C with parameter 1 (DLMF 18.7.4).
"""

from __future__ import annotations

from fnad.ir.primitive import Primitive
from fnad.ir.types import F64
from fnad.ops.constructors import UNIT
from fnad.ops.special_function import POSITIVE, special


def _polynomial(signature: str, doc: str, slope: str) -> Primitive:
    """Declare a family with the operands n, parameters, x; `slope` is the derivative in x where n > 0."""
    over = (*[POSITIVE] * (signature.count(",") - 1), UNIT)
    return special(signature, doc, over, domain=frozenset({F64}), x=f"mul(like(minimum(n, 1), x), {slope})")


# fmt: off
eval_jacobi = _polynomial("eval_jacobi(n: int, alpha, beta, x)", "Jacobi polynomial P; DLMF 18.9.15.",
    "0.5 * (like(n, x) + alpha + beta + 1.0) * eval_jacobi(below(n), alpha + 1.0, beta + 1.0, x)")
eval_gegenbauer = _polynomial("eval_gegenbauer(n: int, alpha, x)", "Gegenbauer polynomial C; DLMF 18.9.19.",
    "2.0 * alpha * eval_gegenbauer(below(n), alpha + 1.0, x)")
eval_genlaguerre = _polynomial("eval_genlaguerre(n: int, alpha, x)", "Generalised Laguerre polynomial L; DLMF 18.9.23.",
    "-1.0 * eval_genlaguerre(below(n), alpha + 1.0, x)")
eval_laguerre = _polynomial("eval_laguerre(n: int, x)", "Laguerre polynomial L; DLMF 18.9.23.",
    "-1.0 * eval_genlaguerre(below(n), 1.0, x)")
eval_legendre = _polynomial("eval_legendre(n: int, x)", "Legendre polynomial P; DLMF 18.9.15.",
    "0.5 * (like(n, x) + 1.0) * eval_jacobi(below(n), 1.0, 1.0, x)")
eval_sh_legendre = _polynomial("eval_sh_legendre(n: int, x)", "Legendre polynomial P(2x - 1); DLMF 18.9.15.",
    "2.0 * (0.5 * (like(n, x) + 1.0) * eval_jacobi(below(n), 1.0, 1.0, 2.0 * x - 1.0))")
eval_chebyt = _polynomial("eval_chebyt(n: int, x)", "Chebyshev polynomial T; DLMF 18.9.21.",
    "like(n, x) * eval_chebyu(below(n), x)")
eval_chebyu = _polynomial("eval_chebyu(n: int, x)", "Chebyshev polynomial U; DLMF 18.9.19.",
    "2.0 * eval_gegenbauer(below(n), 2.0, x)")
eval_chebyc = _polynomial("eval_chebyc(n: int, x)", "Chebyshev polynomial 2 T(x/2); DLMF 18.9.21.",
    "like(n, x) * eval_chebyu(below(n), 0.5 * x)")
eval_chebys = _polynomial("eval_chebys(n: int, x)", "Chebyshev polynomial U(x/2); DLMF 18.9.19.",
    "eval_gegenbauer(below(n), 2.0, 0.5 * x)")
eval_sh_chebyt = _polynomial("eval_sh_chebyt(n: int, x)", "Chebyshev polynomial T(2x - 1); DLMF 18.9.21.",
    "2.0 * like(n, x) * eval_chebyu(below(n), 2.0 * x - 1.0)")
eval_sh_chebyu = _polynomial("eval_sh_chebyu(n: int, x)", "Chebyshev polynomial U(2x - 1); DLMF 18.9.19.",
    "4.0 * eval_gegenbauer(below(n), 2.0, 2.0 * x - 1.0)")
eval_hermite = _polynomial("eval_hermite(n: int, x)", "Hermite polynomial H; DLMF 18.9.25.",
    "2.0 * like(n, x) * eval_hermite(below(n), x)")
eval_hermitenorm = _polynomial("eval_hermitenorm(n: int, x)", "Hermite polynomial He; DLMF 18.9.27.",
    "like(n, x) * eval_hermitenorm(below(n), x)")
# fmt: on

"""The formulas by the names of operations."""

from __future__ import annotations

from fnad.backends.llvm.emitter import Emit
from fnad.backends.llvm.formulas import (
    bessel,
    error_functions,
    exponential,
    exponential_integrals,
    gamma,
    incomplete,
    inverse_error_functions,
    sine_integrals,
    trigonometric,
    zeta,
)
from fnad.backends.llvm.formulas.definition import Formula, defined

ELEMENTARY: dict[str, Formula] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "tanh": exponential.tanh,
    "log": exponential.log,
    "log2": exponential.log2,
    "log10": exponential.log10,
    "log1p": exponential.log1p,
    "erf": error_functions.erf,
    "erfc": error_functions.erfc,
}
"""Functions of libm, for machines without vector variants."""

ELEMENTARY_F32: dict[str, Formula] = {"sin": trigonometric.sin, "cos": trigonometric.cos, "tan": trigonometric.tan}
"""The same for f32 alone."""

SPECIAL: dict[str, Formula] = {
    "dawsn": error_functions.dawsn,
    "expi": exponential_integrals.expi,
    "exp1": exponential_integrals.exp1,
    "erfcx": error_functions.erfcx,
    "ndtr": error_functions.ndtr,
    "log_ndtr": error_functions.log_ndtr,
    "erfinv": inverse_error_functions.erfinv,
    "erfcinv": inverse_error_functions.erfcinv,
    "ndtri": inverse_error_functions.ndtri,
    "gammaln": gamma.gammaln,
    "psi": gamma.digamma,
    "logit": exponential.logit,
    "i0": bessel.i0,
    "i1": bessel.i1,
    "i0e": bessel.i0e,
    "i1e": bessel.i1e,
}
"""Functions of SciPy, for real numbers."""

SPECIAL_F32: dict[str, Formula] = {
    "gamma": gamma.gamma,
    "spence": sine_integrals.spence,
    "sici_0": sine_integrals.si,
    "sici_1": sine_integrals.ci,
}
"""The same for f32 alone."""

WITHIN: dict[str, tuple[Formula, Formula]] = {"_zeta": (zeta.zeta, zeta.is_above)}
"""Formulas of functions of two operands, each with the condition of the operands under which the formula holds."""

WITHIN_F32: dict[str, tuple[Formula, Formula]] = {
    "beta": (gamma.beta, gamma.are_positive),
    "betaln": (gamma.betaln, gamma.are_positive),
    "poch": (gamma.poch, gamma.are_arguments_positive),
}
"""The same for f32 alone."""

OWN: dict[str, Formula] = {
    "trigamma": gamma.trigamma,
    "i1_ratio": bessel.i1_ratio,
    "gammainc_a": incomplete.gammainc_a,
    "exp_high": exponential.exp_high,
    "exp_low": exponential.exp_low,
}
"""Functions under names of fnad alone."""


def emitters(formulas: dict[str, Formula]) -> dict[str, Emit]:
    """The emitters of formulas, by name."""
    return {name: defined(name, formula) for name, formula in formulas.items()}

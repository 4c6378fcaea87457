"""The formulas by the names of operations."""

from __future__ import annotations

from functools import partial
from types import FunctionType

from fnad.backends.llvm.emitter import Emit
from fnad.backends.llvm.formulas import (
    bessel,
    box_cox,
    error_functions,
    exponential,
    exponential_integrals,
    gamma,
    incomplete,
    incomplete_beta,
    inverse_error_functions,
    sine_integrals,
    trigonometric,
    zeta,
)
from fnad.backends.llvm.formulas.definition import Formula, defined


def named(*formulas: FunctionType) -> dict[str, Formula]:
    """Formulas by the names of their functions."""
    return {formula.__name__: formula for formula in formulas}


ELEMENTARY = named(
    exponential.exp, exponential.exp2, exponential.expm1, exponential.sinh, exponential.cosh, exponential.tanh,
    exponential.log, exponential.log2, exponential.log10, exponential.log1p, error_functions.erf, error_functions.erfc,
)  # fmt: skip
"""Functions of libm, for machines without vector variants."""

ELEMENTARY_F32 = {"exp": exponential.exp_f32, "erf": error_functions.erf_f32, "tanh": exponential.tanh_f32} | named(
    trigonometric.sin, trigonometric.cos, trigonometric.tan
)
"""The same for f32 alone."""

SPECIAL = {"psi": gamma.digamma} | named(
    error_functions.dawsn, error_functions.erfcx, error_functions.ndtr, error_functions.log_ndtr,
    exponential_integrals.expi, exponential_integrals.exp1, inverse_error_functions.erfinv,
    inverse_error_functions.erfcinv, inverse_error_functions.ndtri, gamma.gammaln, exponential.logit,
    bessel.i0, bessel.i1, bessel.i0e, bessel.i1e, box_cox.boxcox, box_cox.boxcox1p,
)  # fmt: skip
"""Functions of SciPy, for real numbers."""

SPECIAL_F32: dict[str, Formula] = {
    "gamma": gamma.gamma,
    "spence": sine_integrals.spence,
    "sici_0": sine_integrals.si,
    "sici_1": sine_integrals.ci,
}
"""The same for f32 alone."""

WITHIN: dict[str, tuple[Formula, Formula]] = {
    "_zeta": (zeta.zeta, zeta.is_above),
    "betaln": (gamma.betaln, gamma.are_moderate),
    "poch": (gamma.poch, gamma.are_arguments_positive),
}
"""Formulas of functions of several operands, each with the condition of the operands under which the formula holds."""

WITHIN_F32: dict[str, tuple[Formula, Formula]] = {
    "beta": (gamma.beta, gamma.are_positive),
    "betainc": (incomplete_beta.betainc, incomplete_beta.are_moderate),
    "betaincc": (incomplete_beta.betaincc, incomplete_beta.are_moderate),
}
"""The same for f32 alone."""

OWN = named(
    gamma.trigamma, bessel.i1_ratio, incomplete.gammainc_a, box_cox.exprel_slope,
    exponential.exp_high, exponential.exp_low, exponential.sech2,
)  # fmt: skip
"""Functions under names of fnad alone."""


def emitters(formulas: dict[str, Formula]) -> dict[str, Emit]:
    """The emitters of formulas, by name."""
    return {name: partial(defined, name, formula) for name, formula in formulas.items()}

"""The ufuncs of scipy.special, by name, so that SciPy need not be imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fnad.errors import UnsupportedFunctionError
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, real_dtype
from fnad.numpy.elementwise import Compute, enters, ufunc_rule
from fnad.numpy.registry import Rule
from fnad.ops import bessel, catalogue, elementary, entropy  # noqa: F401 - all are there
from fnad.ops.arithmetic import neg
from fnad.ops.conversion import complex_, convert_to
from fnad.ops.error_functions import complex_erfc, erf, erfc, erfi
from fnad.ops.formula import Formula
from fnad.ops.hypergeometric import lambertw
from fnad.ops.logistic import logaddexp, logistic
from fnad.ops.piecewise import rint
from fnad.ops.shape import zeros_like
from fnad.ops.special_function import NATIVE, UFUNCS, Ufunc


def plane(on_line: Callable[..., Symbol], in_plane: Callable[..., Symbol]) -> Compute:
    """The function of real or complex arguments."""
    return lambda *z: in_plane(*z) if z[0].dtype.kind == "c" else on_line(*z)


def kelvin(x: Symbol) -> tuple[Symbol, ...]:
    """Be, Ke and their derivatives, with the real functions as parts."""
    parts = ((bessel.ber, bessel.bei), (bessel.ker, bessel.kei), (bessel.berp, bessel.beip), (bessel.kerp, bessel.keip))
    return tuple(complex_(real(x), imag(x)) for real, imag in parts)


COMPOSED: dict[str, Compute] = {
    "_beta_pdf": Formula(["x", "a", "b"], "beta_density(a, b, x)"),
    "_beta_ppf": Formula(["q", "a", "b"], "betaincinv(a, b, q)"),
    "_binom_cdf": Formula(["k", "n", "p"], "betaincc(k + 1.0, n - k, p)"),
    "_binom_pmf": Formula(["k", "n", "p"], "beta_density(k + 1.0, n - k + 1.0, p) / (n + 1.0)"),
    "_binom_sf": Formula(["k", "n", "p"], "betainc(k + 1.0, n - k, p)"),
    "cbrt": elementary.cbrt,
    "erf": plane(erf, lambda z: -1.0j * erfi(1.0j * z)),
    "erfc": plane(erfc, complex_erfc),
    "exp2": elementary.exp2,
    "expit": logistic,
    "expm1": elementary.expm1,
    "kelvin": kelvin,
    "_lambertw": lambda z, k, tol: lambertw(k, tol, z),
    "_nbinom_cdf": Formula(["k", "n", "p"], "betainc(n, k + 1.0, p)"),
    "_nbinom_pmf": Formula(["k", "n", "p"], "beta_density(n, k + 1.0, p) * p / (n + k)"),
    "_nbinom_sf": Formula(["k", "n", "p"], "betaincc(n, k + 1.0, p)"),
    "log1p": plane(elementary.log1p, entropy.complex_log1p),
    "log_expit": lambda x: neg(logaddexp(zeros_like(x), neg(x))),
    "round": rint,
    "xlog1py": plane(entropy.xlog1py, entropy.complex_xlog1py),
}
"""The ufuncs that NumPy has too, those under another name here, and compositions."""


def computed(ufunc: Ufunc, *operands: Symbol) -> Any:
    """The results of a ufunc that has its primitives: integers come first, parameters are real."""
    integers = operands[: ufunc.integers]
    *parameters, argument = operands[ufunc.integers :]
    if any(n.dtype.kind not in "iu" for n in integers):
        raise UnsupportedFunctionError(
            f"{ufunc.primitives[0].name} has no rule for an order that is no integer", remedy="give it as an int"
        )
    dtype = real_dtype(argument.dtype)
    converted = [*(convert_to(n, I64) for n in integers), *(convert_to(p, dtype) for p in parameters), argument]
    results = tuple(primitive(*converted) for primitive in ufunc.primitives)
    return results[0] if len(results) == 1 else results


def special_rule(ufunc: np.ufunc) -> Rule | None:
    """The rule of a ufunc of scipy.special, if it is one and has one."""
    name = ufunc.__name__
    compute = COMPOSED.get(name) or NATIVE.get(name) or (partial(computed, UFUNCS[name]) if name in UFUNCS else None)
    if compute is None or not is_scipy(ufunc):
        return None
    return enters(ufunc)(ufunc_rule(ufunc, compute))


def is_scipy(ufunc: np.ufunc) -> bool:
    """True if a ufunc is the one of its name in scipy.special, or a private one."""
    modules = (sys.modules.get("scipy.special"), sys.modules.get("scipy.special._ufuncs"))
    return any(getattr(module, ufunc.__name__, None) is ufunc for module in modules)

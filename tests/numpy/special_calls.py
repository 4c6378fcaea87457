"""Calls of the ufuncs of scipy.special, on the samples of their primitives; where there is no formula, on constants."""

from functools import partial

import numpy as np
import scipy.special

from fnad.ir.primitive import NoFormula, Partials
from fnad.numpy.scipy_ufuncs import COMPOSED as OTHERS
from fnad.numpy.scipy_ufuncs import NATIVE as SCALAR
from fnad.numpy.scipy_ufuncs import UFUNCS
from fnad.scipy import special
from fnad.scipy.special import log_softmax, logsumexp, softmax
from tests.numpy.against_numpy import sample

WIDE = (np.float64, np.int64, np.complex128)
PUBLIC = {name: value for name, value in vars(scipy.special).items() if isinstance(value, np.ufunc)}


def call(name):
    """Return a ufunc, with the operands given up to the last one that has no derivative, and the others."""
    ufunc, primitive = PUBLIC[name], UFUNCS[name].primitives[0]
    operands = next(s.operands for s in primitive.samples() if all(o.dtype in WIDE for o in s.operands))
    fixed = [is_fixed(operand, slope) for operand, slope in zip(operands, slopes(primitive), strict=True)]
    count = len(fixed) - fixed[::-1].index(True) if True in fixed else 0
    return (partial(ufunc, *[operand.flat[0] for operand in operands[:count]]), *operands[count:])


def slopes(primitive):
    """Return the partials of a primitive, None for those that are zero."""
    known = isinstance(primitive.derivative, Partials)
    return primitive.derivative.functions if known else (None,) * len(next(iter(primitive.samples())).operands)


def is_fixed(operand, slope):
    """Say whether there is no derivative in an operand."""
    return operand.dtype == np.int64 or isinstance(slope, NoFormula)


OF_PRIMITIVES = {f"scipy.special.{name}": call(name) for name in UFUNCS if name in PUBLIC}
NATIVE = {
    f"scipy.special.{name}": (PUBLIC[name], *[sample((2, 3), "f64", i) for i in range(PUBLIC[name].nin)])
    for name in (*OTHERS, *SCALAR)
    if name in PUBLIC and not name.startswith("_")
}

X = sample((2, 3), "f64")
EXPONENTIAL_SUMS = {
    f"scipy.special.{f.__name__}": (lambda x, f=f: (f(x), f(x, axis=1)), X) for f in (logsumexp, softmax, log_softmax)
}

N = np.array([1, 2, 5])
Z = np.array([0.5 + 0.3j, -1.2 + 0.7j, 3.0 - 2.0j, -6.0 + 1.0j])
COMPLEX = {"scipy.special.erfc of complex numbers": (scipy.special.erfc, Z)}
COMPOSED = {
    f"scipy.special.{name}": (call, X)
    for name, call in {
        "comb": lambda x: (special.comb(x + 3, x + 1), special.comb(N[:, None] + 1, 2)),
        "perm": lambda x: (special.perm(x + 3, x + 1), special.perm(5, 2)),
        "multigammaln": lambda x: special.multigammaln(x + 2, 3),
        "polygamma": lambda x: (special.polygamma(2, x), special.polygamma(0, x + 1)),
        "softplus": special.softplus,
        "spherical_jn": lambda x: (special.spherical_jn(2, x), special.spherical_jn(1, x + 1, derivative=True)),
        "spherical_yn": lambda x: (special.spherical_yn(2, x + 1), special.spherical_yn(1, x + 1, derivative=True)),
        "spherical_in": lambda x: (special.spherical_in(2, x), special.spherical_in(1, x + 1, derivative=True)),
        "spherical_kn": lambda x: (special.spherical_kn(2, x + 1), special.spherical_kn(1, x + 1, derivative=True)),
    }.items()
} | {"scipy.special.factorial": (lambda n, x: special.factorial(n) * x[0, 0], N, X)}

SPECIAL_CALLS = OF_PRIMITIVES | NATIVE | COMPLEX | EXPONENTIAL_SUMS | COMPOSED

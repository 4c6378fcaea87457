"""Calls of the functions of `numpy.polynomial` and `numpy.emath`, by name: a function of arrays and the arrays."""

import numpy as np
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre, polynomial

from tests.numpy.against_numpy import sample

C = sample(4, "f64")
D = sample(3, "f64", 1)
M = sample((3, 2), "f64", 2)
K = sample((2, 3, 2), "f64", 3)
X = sample((2, 2), "f64", 4) - 0.5
Y = sample((2, 2), "f64", 5)
Z = sample(3, "c128", 6)
F = np.linspace(-0.8, 0.9, 7)
V = sample(7, "f64", 7)
ROOTS = np.array([0.3, -0.5, 0.6])

OF_A_BASIS = {
    "val": (lambda f, x, c, m: (f(x, c), f(0.3, c), f(x, m), f(x[0], m, tensor=False), f(x, [1, 2])), X, C, M),
    "val of complex numbers": (lambda f, z, c: f(z, c), Z, C),
    "val2d": (lambda f, x, y, k: f(x, y, k[..., 0]), X, Y, K),
    "val3d": (lambda f, x, y, k: f(x, y, x * y, k), X, Y, K),
    "valnd": (lambda f, x, y, k: (f((x, y, x * y), k), f([x, y], k), f(x, k), f((y,), k)), X, Y, K),
    "grid2d": (lambda f, x, y, k: f(x[0], y, k[..., 0]), X, Y, K),
    "grid3d": (lambda f, x, y, k: f(x[0], y[1], x[1], k), X, Y, K),
    "vander": (lambda f, x: (f(x, 3), f(x[0, 0], 0), f(x, 1)), X),
    "vander2d": (lambda f, x, y: f(x, y, [1, 2]), X, Y),
    "vander3d": (lambda f, x, y: f(x, y, x, (1, 2, 1)), X, Y),
    "der": (lambda f, c, m: (f(c), f(c, 2, 0.5), f(c, 9), f(m, axis=1), f(m, 0)), C, M),
    "int": (lambda f, c, m: (f(c), f(c, 2, [1, 2], 0.5, 3), f(m, axis=1), f(m, k=2), f(c, 0)), C, M),
    "add": (lambda f, c, d: (f(c, d), f(d, c), f(d, [1, 2])), C, D),
    "sub": (lambda f, c, d: (f(c, d), f(d, c), f([1, 2], c)), C, D),
    "mul": (lambda f, c, d, z: (f(c, d), f(d, c), f(z, c), f(c[:1], d)), C, D, Z),
    "mulx": (lambda f, c: (f(c), f(c[:1])), C),
    "pow": (lambda f, d: (f(d, 0), f(d, 1), f(d, 2, maxpower=3)), D),
    "div": (lambda f, c, d: (f(c, d), f(d, c), f(c, d[:1])), C, D),
    "fromroots": (lambda f, c: (f(np.sort(c)), f(c[:1])), C),
    "line": (lambda f, c: (f(c[0], c[1]), f(2, c[0])), C),
    "companion": (lambda f, c: (f(c), f(c[:2]), f(c[:3])), C),
    "roots": (lambda f, c: f(c + 0j), np.array([-1.0, 0.5, 1])),
    "fit": (lambda f, x, y, w: (f(x, y, 2), f(x, y, [1, 3], w=w), f(x, y, 2, full=True)[0]), F, V, V + 1),
    "weight": (lambda f, x: f(x), X),
}
BASES = {
    "poly": polynomial,
    "cheb": chebyshev,
    "leg": legendre,
    "lag": laguerre,
    "herm": hermite,
    "herme": hermite_e,
}


def looked_up(call, module, name):
    """Return the call with the function that the module has when the call is made."""
    return lambda *args: call(getattr(module, name), *args)


def name_in(prefix, name):
    return prefix + name.partition(" ")[0]


SERIES = {
    f"series {prefix}{name}": (looked_up(call, module, name_in(prefix, name)), *arrays)
    for prefix, module in BASES.items()
    for name, (call, *arrays) in OF_A_BASIS.items()
    if hasattr(module, name_in(prefix, name))
}
CONVERSIONS = {
    f"series {name}": (looked_up(lambda f, c: (f(c), f(c[:1])), module, name), C)
    for prefix, module in BASES.items()
    for name in (f"poly2{prefix}", f"{prefix}2poly")
    if hasattr(module, name)
}
FROM_ROOTS = {
    "series polyvalfromroots": (
        lambda x, r: (polynomial.polyvalfromroots(x, r), polynomial.polyvalfromroots(x[0], M * r[0], tensor=False)),
        X,
        ROOTS,
    ),
}

BEYOND = np.array([-2.0, -0.5, 3.0])
EMATH = {
    f"emath {name}": (looked_up(lambda f, z, x: (f(z), f(x)), np.emath, name), Z, BEYOND)
    for name in ("sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh")
} | {
    "emath logn": (lambda z, x: (np.emath.logn(2, z), np.emath.logn(x, z), np.emath.logn(3, x)), Z, BEYOND),
    "emath power": (lambda z, x: (np.emath.power(z, 2), np.emath.power(x, z), np.emath.power(x, 0.5)), Z, BEYOND),
}

SERIES_CALLS = SERIES | CONVERSIONS | FROM_ROOTS

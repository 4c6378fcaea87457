"""The classes of numpy.polynomial take traced coefficients: construction, methods, operators, in NumPy's own bodies."""

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Legendre, Polynomial

import fnad

C = np.array([0.3, 0.7, 1.1])
LINE = Polynomial([1.0, 2.0])

CALLS = {
    "call": lambda c: Polynomial(c)(2.0),
    "domain": lambda c: Polynomial(c, domain=[0, 2])(c[0]),
    "deriv": lambda c: Polynomial(c).deriv()(1.5),
    "integ": lambda c: Polynomial(c).integ()(1.5),
    "chebyshev": lambda c: Chebyshev(c)(0.5),
    "legendre": lambda c: Legendre(c).deriv()(0.2),
    "list": lambda c: Polynomial([c[0], 2.0, c[1]])(c[2]),
    "fromroots": lambda c: Polynomial.fromroots(c)(2.0),
    "fit": lambda c: Polynomial.fit([1.0, 2.0, 3.0], c, 1)(2.5),
    "linspace": lambda c: np.sum(Polynomial(c).linspace(4)[1]),
    "cutdeg": lambda c: Polynomial(c).cutdeg(1)(2.0),
    "sums": lambda c: (1 + Polynomial(c) + LINE - [0.5, 2.0])(0.7),
    "differences": lambda c: (2 - Polynomial(c) - LINE)(0.7),
    "products": lambda c: (LINE * Polynomial(c) * c[0])(0.7),
    "factors": lambda c: (c[1] * LINE + np.array([1.0, 2.0]) * Polynomial(c))(0.7),
    "negative": lambda c: (-Polynomial(c))(0.7),
    "power": lambda c: (Polynomial(c) ** 3)(0.7),
    "quotient": lambda c: (Polynomial(c) // LINE)(0.7) + (Polynomial(c) / c[2])(0.7),
    "rests": lambda c: divmod(Polynomial(c), LINE)[1](0.7) + (Polynomial(c) % LINE)(0.7),
    "composition": lambda c: LINE(Polynomial(c))(0.7) + Polynomial(c)(LINE)(0.7),
    "built-in sum": lambda c: sum([Polynomial(c), LINE], Polynomial([0.0])).deriv()(0.7),
    "products of Chebyshev": lambda c: (Chebyshev(c) * Chebyshev(c) + 1).convert(kind=Polynomial)(0.7),
    "operators after others": lambda c: (Polynomial(c) * LINE)(0.7) * len(Polynomial(c) * LINE),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_values_and_gradients_of_methods(call):
    value, gradient = fnad.jit(fnad.value_and_grad(call))(C)
    np.testing.assert_allclose(value, call(C), rtol=1e-14)
    differences = [(call(C + h) - call(C - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(gradient, differences, rtol=1e-7, atol=1e-8)

"""`from numpy import zeros`: NumPy's functions under names of the user's own, on traced values in lists and arrays."""

from numpy import arange, array, concatenate, exp, eye, full, stack, zeros

import fnad


def filled(x):
    a = zeros(3)
    a[0] = x
    a[1:] = exp(x) * arange(1, 3)
    return a.sum()


def listed(x):
    return (array([[x, 1.0], [0.0, x]]) @ eye(2)).sum() + stack([x, 2 * x]).sum() + concatenate([[x], [x]]).sum()


def kept(x):
    table = full((2, 2), 3.0)
    for i in range(2):
        table[i, i] = x**2
    return (table * array([1.0, x])).sum()


def test_numpys_functions_take_traced_values_under_names_of_the_users() -> None:
    for f, slope in ((filled, 1 + 3 * float(exp(2.0))), (listed, 7.0), (kept, 19.0)):
        assert abs(fnad.grad(f)(2.0) - slope) < 1e-12
        assert abs(fnad.jit(fnad.grad(f))(2.0) - slope) < 1e-12
        assert fnad.jit(f)(2.0) == f(2.0)
    assert zeros(2).tolist() == [0.0, 0.0]

"""The modified Bessel functions I0 and I1, by themselves and times exp(-|x|).

They are polynomials in four intervals, the last of them in 1/x with a factor of 1/√x (DLMF 10.40.1), as in W. J. Cody,
"Algorithm 715: SPECFUN", ACM Trans. Math. Softw. 19 (1993), 22. No exponential is left in the second kind.
"""

from __future__ import annotations

from fnad.backends.llvm.formulas import twofold
from fnad.backends.llvm.formulas.exponential import INF, exp_of, format_of
from fnad.backends.llvm.formulas.twofold import Twofold, choose, precise
from fnad.backends.llvm.lane import Lane, where


def i0(x: Lane) -> Lane:
    return grown(abs(x), i0e_of(abs(x)))


def i1(x: Lane) -> Lane:
    return grown(abs(x), i1e_of(abs(x))).signed(x)


def i0e(x: Lane) -> Lane:
    return at_infinity(abs(x), i0e_of(abs(x)).total())


def i1e(x: Lane) -> Lane:
    return at_infinity(abs(x), i1e_of(abs(x)).total()).signed(x)


def i1_ratio(x: Lane) -> Lane:
    """The quotient of i1 and x, 1/2 at 0."""
    size = abs(x)
    return grown(size, choose(size < 0.5, precise("i1e_0", size), i1e_of(size).over(twofold.of(size))))


def i0e_of(size: Lane) -> Twofold:
    return by_interval("i0e", size, precise("i0e_0", size))


def i1e_of(size: Lane) -> Twofold:
    return by_interval("i1e", size, precise("i1e_0", size).times(size))


def by_interval(name: str, size: Lane, first: Twofold) -> Twofold:
    second, third = precise(f"{name}_1", size - 1.5), precise(f"{name}_2", size - 5.0)
    near = choose(size < 0.5, first, choose(size < 2.5, second, third))
    return choose(size < 8.0, near, over_root(name, size))


def over_root(name: str, size: Lane) -> Twofold:
    """The polynomial in 1/x over the root of x, whose own error is divided with it."""
    root, inverse = size.sqrt(), 1.0 / size
    error = root.fma(-root, size) * (inverse * root) * 0.5
    return precise(f"{name}_far", inverse - 0.0625).over(Twofold(root, error))


def at_infinity(size: Lane, value: Lane) -> Lane:
    return where(size >= INF, 0.0, value)


def grown(size: Lane, value: Twofold) -> Lane:
    """The product with exp(x); nan at infinity, as of SciPy."""
    growth = exp_of(twofold.of(size))
    product = growth.scaled(value.times_twofold(growth.value).total())
    return where((size > format_of(size).largest + 12.0) & (size < INF), INF, product)

"""The modified Bessel functions I0 and I1 times exp(-|x|).

They are polynomials in four intervals, the last of them in 1/x with a factor of 1/√x (DLMF 10.40.1), as in W. J. Cody,
"Algorithm 715: SPECFUN", ACM Trans. Math. Softw. 19 (1993), 22. No exponential is left.
"""

from __future__ import annotations

from fnad.backends.llvm.formulas.exponential import INF
from fnad.backends.llvm.formulas.twofold import Twofold, choose, precise
from fnad.backends.llvm.lane import Lane, where


def i0e(x: Lane) -> Lane:
    size = abs(x)
    return by_interval("i0e", size, precise("i0e_0", size))


def i1e(x: Lane) -> Lane:
    size = abs(x)
    return by_interval("i1e", size, precise("i1e_0", size).times(size)).signed(x)


def i1e_ratio(x: Lane) -> Lane:
    """The quotient of i1e and x, 1/2 at 0."""
    size = abs(x)
    return where(size < 0.5, precise("i1e_0", size).total(), where(size >= INF, 0.0, i1e(size) / size))


def by_interval(name: str, size: Lane, first: Twofold) -> Lane:
    second, third = precise(f"{name}_1", size - 1.5), precise(f"{name}_2", size - 5.0)
    near = choose(size < 0.5, first, choose(size < 2.5, second, third)).total()
    return where(size >= INF, 0.0, where(size < 8.0, near, over_root(name, size)))


def over_root(name: str, size: Lane) -> Lane:
    """The polynomial in 1/x over the root of x, whose own error is divided with it."""
    root = size.sqrt()
    error = root.fma(-root, size) * 0.5 / root
    return precise(f"{name}_far", 1.0 / size - 0.0625).over(Twofold(root, error)).total()

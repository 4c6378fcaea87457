"""Calls that say no more than the name of the function: ufuncs, their methods, reductions."""

import operator
from functools import partial

import numpy as np

from fnad.numpy.registry import RULES
from tests.numpy.against_numpy import sample

FROM_ONE = {"arccosh"}
OF_INTEGERS = {
    *("bitwise_and", "bitwise_count", "bitwise_or", "bitwise_xor", "gcd", "invert", "lcm", "left_shift", "right_shift"),
}
UFUNCS = {u.__name__: u for u in vars(np).values() if isinstance(u, np.ufunc) and u in RULES and u.signature is None}


def operands(ufunc, count):
    """Return operands in the domain of a ufunc."""
    if ufunc.__name__ == "ldexp":
        return sample((2, 3), "f64"), sample(3, "i32", 1)
    dtype = "i64" if ufunc.__name__ in OF_INTEGERS else "f64"
    return [sample((2, 3), dtype, i) + (ufunc.__name__ in FROM_ONE) for i in range(count)]


ELEMENTWISE = {f"numpy.{name}": (ufunc, *operands(ufunc, ufunc.nin)) for name, ufunc in UFUNCS.items()}
OPERATORS = {
    f"operator {name}": (getattr(operator, name), sample((2, 3), "f64"), sample(3, "f64", 1))
    for name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv")
}

NAMES = (
    "sum",
    "prod",
    "mean",
    "var",
    "std",
    "max",
    "min",
    "ptp",
    "any",
    "all",
    "argmax",
    "argmin",
    "cumsum",
    "cumprod",
)
A = sample((2, 3, 2), "f64")
REDUCTIONS = {f"numpy.{name}": (getattr(np, name), A) for name in NAMES} | {
    f"numpy.{name} along an axis": (partial(getattr(np, name), axis=1), A) for name in NAMES
}

BY_NAME = ELEMENTWISE | OPERATORS | REDUCTIONS

"""Calls that say no more than the name of the function: ufuncs, their methods, reductions."""

import operator
from functools import partial

import numpy as np

import fnad.numpy as fnp
from fnad.numpy.registry import RULES, WRITERS
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

SMALL = {"left_shift", "right_shift", "ldexp", "lcm", "power", "float_power"}
"""Ufuncs that take small numbers, to be applied one after the other."""


def elements(name, shape, seed=0):
    """Return an operand of a method of a ufunc."""
    dtype = "i64" if name in OF_INTEGERS else "f64"
    x = sample(shape, dtype, seed)
    return (x % 3 if dtype == "i64" else x + 0.3) if name in SMALL else x + (name in FROM_ONE)


def second(name, seed):
    """Return a second operand of a method of a ufunc."""
    return sample(3, "i32", seed) % 3 if name == "ldexp" else elements(name, 3, seed)


OF_PAIRS = {
    "reduce": lambda u, x, v: u.reduce(x, axis=1),
    "accumulate": lambda u, x, v: u.accumulate(x, axis=1),
    "reduceat": lambda u, x, v: u.reduceat(x, [0, 2, 1], axis=1),
    "outer": lambda u, x, v: u.outer(x, v),
}
METHODS = {
    f"numpy.{name}.{method}": (lambda x, v, u=u, call=call: call(u, x, v), elements(name, (2, 3, 2)), second(name, 1))
    for name, u in UFUNCS.items()
    for method, call in OF_PAIRS.items()
    if (u, method) in RULES
}


def at_places(ufunc, y, *v):
    """Write the results of a ufunc into elements, one of them twice."""
    ufunc.at(y, [0, -1, 0], *v)


def written(write):
    """Return a function that writes into a copy of its first argument."""

    def call(x, *args):
        y = np.copy(x)
        write(y, *args)
        return y

    return call


TWICE = {
    **dict.fromkeys(("log", "log2", "log10", "arccosh"), (1, 2)),
    **dict.fromkeys(("arcsin", "arctanh"), (0.5, 0)),
    "arccos": (0.4, 0.56),
}
"""Where a function can be applied to its result: a factor of the operands, and what is added."""


def for_two(name):
    """Return an operand of a ufunc that may be one of its results too."""
    factor, shift = TWICE.get(name, (1, 0))
    return elements(name, 4) * factor + shift


AT = {
    f"numpy.{name}.at": (written(partial(at_places, u)), for_two(name), *[second(name, 1)] * (u.nin - 1))
    for name, u in UFUNCS.items()
    if (u, "at") in WRITERS
}
AT_TRACED = {
    f"numpy.{name}.at of traced places": (
        written(lambda y, i, *v, u=UFUNCS[name]: u.at(y, i, *v)),
        elements(name, 4),
        np.array([0, 3, 0]),
        *[second(name, 1)] * (UFUNCS[name].nin - 1),
    )
    for name in ("multiply", "maximum", "logaddexp", "exp", "divide", "subtract", "bitwise_xor")
}

WRITES = {
    "numpy.copyto": (written(lambda y, v: np.copyto(y, v[:, None])), A, sample(3, "f64", 1)),
    "numpy.copyto, masked": (written(lambda y, v: np.copyto(y, v[0], where=y > 0.5)), A, sample(3, "f64", 1)),
    "numpy.fill_diagonal": (written(np.fill_diagonal), sample((3, 3), "f64"), np.float64(2.5)),
    "ndarray.put": (written(lambda y, v: y.put([0, -1, 5], v)), A, sample(3, "f64", 1)),
    "ndarray.view": (lambda x: (x.view() * 2, x.view(x.dtype) + 1), A),
    "numpy.put": (written(lambda y, v: np.put(y, [0, -1, 5], v)), A, sample(3, "f64", 1)),
    "numpy.putmask": (written(lambda y, v: np.putmask(y, y > 0.5, v[0])), A, sample(3, "f64", 1)),
    "numpy.add.at": (written(lambda y, v: np.add.at(y, [0, 0, 1], v[:, None])), A, sample(3, "f64", 1)),
}


def filled(y, value):
    """Return an array after writing into all of it."""
    y[:] = value
    return y


KNOWN = {
    "what is known of dtypes": (
        lambda x, i: (
            x * (np.result_type(x, i) == np.common_type(x) == x.dtype),
            x * (np.can_cast(i, x.dtype) + np.iscomplexobj(x) + np.isrealobj(x)),
            x * np.min_scalar_type(x).itemsize,
            x * len(np.einsum_path("ijk,k", x, x[0, 0])[0]),
        ),
        A,
        sample((2, 3), "i32"),
    ),
    "numpy.zeros, ones, identity, empty": (
        lambda x: x[0, 0] * (fnp.zeros((2, 2)) + fnp.ones(2) + fnp.identity(2) + filled(fnp.empty(2), x[0, 0])),
        A,
    ),
    "numpy.may_share_memory": (
        lambda x: (
            x * (np.may_share_memory(x, x[1:]) + 2 * np.may_share_memory(x, x * 1) + 4 * np.may_share_memory(x, 1))
        ),
        A,
    ),
    "numpy.fromiter": (lambda v: np.fromiter((a * a for a in v), float), sample(3, "f64")),
    "made of sizes": (
        lambda x: x[0, 0, 0] * (fnp.arange(6.0).reshape(2, 3) + fnp.tri(2, 3) + fnp.indices((2, 3))[0] + fnp.eye(2, 3)),
        A,
    ),
    "numpy.kaiser": (lambda b: (np.kaiser(5, b), np.kaiser(4, 2 * b), np.kaiser(1, b)), np.float64(2.5)),
    "numpy.astype": (lambda x: (np.astype(x, np.float64), np.astype(x, int)), A),
}

BY_NAME = ELEMENTWISE | OPERATORS | REDUCTIONS | METHODS | AT | AT_TRACED | WRITES | KNOWN

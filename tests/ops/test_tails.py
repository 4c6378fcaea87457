"""Sigmoids and softmax from -800 to 800: values and two derivatives within some units in the last place.

A unit of a subnormal number is the smallest subnormal. The truth is computed by mpmath in 800 digits, which hold
exp(-1600) beside 1.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cache, partial, reduce
from itertools import cycle, product
from typing import Any, TypeAlias

import mpmath
import numpy as np
import pytest
import scipy.special

import fnad
from fnad.api.running.execution import staged
from fnad.config import override
from fnad.ir.program import Literal
from tests.together import some_of

Function: TypeAlias = Callable[..., Any]

ULPS = 4
MAGNITUDES = (
    *(0.0, 1e-300, 1e-10, 1e-3, 0.3, 0.7, 1.5, 2.7, 5.0, 9.0, 17.0, 20.0, 30.0, 37.0, 40.0, 80.0, 87.5, 90.0, 100.0),
    *(103.0, 104.0, 200.0, 300.3, 354.0, 372.0, 400.0, 600.1, 700.3, 708.0, 715.0, 730.5, 744.0, 745.0, 746.0, 800.0),
)
POINTS = np.array([sign * x for x in MAGNITUDES for sign in (1.0, -1.0)])


@pytest.fixture(autouse=True)
def many_digits() -> Generator[None, None, None]:
    with mpmath.workdps(800):
        yield


def sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def hump(x: Any) -> Any:
    """Return the slope of the sigmoid."""
    return sigmoid(x) * sigmoid(-x)


def softplus(x: Any) -> Any:
    return mpmath.log1p(mpmath.exp(x))


ELEMENTWISE: dict[str, tuple[Function, tuple[Function, Function, Function]]] = {
    "expit": (scipy.special.expit, (sigmoid, hump, lambda x: -mpmath.tanh(x / 2) * hump(x))),
    "log_expit": (scipy.special.log_expit, (lambda x: -softplus(-x), lambda x: sigmoid(-x), lambda x: -hump(x))),
    "softplus": (fnad.nn.softplus, (softplus, sigmoid, hump)),
    "logaddexp": (
        partial(np.logaddexp, 2.0),
        (lambda x: 2 + softplus(x - 2), lambda x: sigmoid(x - 2), lambda x: hump(x - 2)),
    ),
    "tanh": (np.tanh, (mpmath.tanh, lambda x: 4 * hump(2 * x), lambda x: -8 * mpmath.tanh(x) * hump(2 * x))),
}


def forward(f: Function) -> Function:
    return lambda x: fnad.jvp(f, (x,), (np.ones_like(x),))[1]


def reverse(f: Function) -> Function:
    return lambda x: fnad.vjp(f, x)[1](np.ones_like(x))[0]


WRITTEN_OUT: dict[str, dict[str, Function]] = {
    "expit": {
        "1 / (1 + exp(-x))": lambda x: 1 / (1 + np.exp(-x)),
        "exp(x) / (1 + exp(x))": lambda x: np.exp(x) / (1 + np.exp(x)),
        "(1 + exp(-x))**-1": lambda x: (1 + np.exp(-x)) ** -1,
        "1 - expit(-x)": lambda x: 1 - scipy.special.expit(-x),
    },
    "log_expit": {
        "log(1 / (1 + exp(-x)))": lambda x: np.log(1 / (1 + np.exp(-x))),
        "log(1 - expit(-x))": lambda x: np.log(1 - scipy.special.expit(-x)),
        "-log(1 + exp(-x))": lambda x: -np.log(1 + np.exp(-x)),
    },
    "softplus": {
        "log(1 + exp(x))": lambda x: np.log(1 + np.exp(x)),
        "log1p(exp(x))": lambda x: np.log1p(np.exp(x)),
    },
    "logaddexp": {"log(exp(2) + exp(x))": lambda x: np.log(np.exp(2 + 0 * x) + np.exp(x))},
    "tanh": {
        "(exp(x) - exp(-x)) / (exp(x) + exp(-x))": lambda x: (np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x)),
        "(exp(2 x) - 1) / (exp(2 x) + 1)": lambda x: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1),
        "sinh(x) / cosh(x)": lambda x: np.sinh(x) / np.cosh(x),
    },
}
"""Functions as users write them out: their derivatives are as accurate, and their values in a function that has one."""

WAYS = {"forward": forward, "reverse": reverse}


def units(found: Any, truth: Any, terms: Any = 0) -> float:
    """The distance from the truth in units in the last place of it, or of `terms` if larger; 0 of the truth rounded."""
    rounded = type(found)(truth)
    if found == rounded or not np.isfinite(rounded):
        return 0.0 if found == rounded else np.inf
    unit = np.spacing(max(abs(rounded), type(found)(terms)))
    return float(abs(mpmath.mpf(float(found)) - truth) / mpmath.mpf(float(unit)))


@cache
def at_points(truth: Function, dtype: Any) -> list[Any]:
    return [truth(mpmath.mpf(float(x))) for x in POINTS.astype(dtype)]


def check(function: Function, truths: Any, nestings: Any, dtype: Any, executor: Any) -> None:
    points = POINTS.astype(dtype)
    for ways in nestings:
        expected = at_points(truths[len(ways)], dtype)
        derivative = function
        for way in ways:
            derivative = WAYS[way](derivative)
        with override(executor=executor):
            found = fnad.jit(derivative)(points)
        assert found.dtype == dtype
        far = [x for x, y, truth in zip(points, found, expected, strict=True) if not units(y, truth) <= ULPS]
        assert not far, f"{ways}: far off at {far}"


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_tails_of_functions_and_derivatives_keep_their_digits(name: str, order: int, dtype: Any, executor: Any):
    check(*ELEMENTWISE[name], product(WAYS, repeat=order), dtype, executor)


@pytest.mark.parametrize(
    ("name", "text", "dtype"),
    [(name, text, *some_of((np.float64, np.float32), text)) for name, texts in WRITTEN_OUT.items() for text in texts],
)
def test_tails_of_functions_written_out_keep_their_digits(name: str, text: str, dtype: Any):
    written, truths = WRITTEN_OUT[name][text], ELEMENTWISE[name][1]
    check(value(written), truths, [()], dtype, "compiled")
    check(written, truths, [("forward",), ("reverse",), ("forward", "reverse")], dtype, "compiled")


def value(f: Function) -> Function:
    """Return the value that a function with a derivative computes."""
    return lambda x: fnad.jvp(f, (x,), (np.ones_like(x),))[0]


# ---- rows ----------------------------------------------------------------------------------------------------------

ROWS = (
    *((0.0, 0.0), (1.0, 0.0), (20.0, 0.0, -3.0), (-40.0, 0.0, 0.5), (0.0, -700.0, -100.0), (800.0, -800.0, 0.0)),
    *((-5.0, -5.0, -745.0), (3.0, 2.5, 2.0, -400.0), (0.25, -740.0, -708.0), (100.0, 100.0, 0.0), (3.0,)),
    *((98.7, -77.6, 475.1, 396.1), (0.3, -700.1), (-45.8, 22.02, -100.96), (1e3 + 0.7, 1e3 - 87.3, 1e3 - 20.01)),
    *((-0.77, -20.17, -6.49, 6.78), (1.89, -6.33, -3.78, -10.91), (2.0, 0.19, -0.63), (-0.3, 0.4)),
    *(tuple(row) for row in np.random.default_rng(3).normal(size=(6, 4)) * np.logspace(-1, 2.2, 6)[:, None]),
)
"""Rows; of those from the third line on the differences are rounded."""


def probabilities(x: Any) -> tuple[list[Any], Function]:
    """Return the softmax p, and the slope of the logarithm of its element i in the direction of element j."""
    terms = [mpmath.exp(mpmath.mpf(float(v))) for v in x]
    p, others = [e / sum(terms) for e in terms], [sum(terms[:i] + terms[i + 1 :]) / sum(terms) for i in range(len(x))]
    return p, lambda i, j: others[i] if i == j else -p[j]


@cache
def true_softmax(x: tuple[float, ...], order: int) -> list[tuple[Any, Any]]:
    """Return the elements of the derivatives of softmax of this order, and the sizes of the terms that cancel there."""
    p, slope = probabilities(x)
    n = range(len(x))
    match order:
        case 0:
            return [(p[i], 0) for i in n]
        case 1:
            return [(p[i] * slope(i, j), 0) for i in n for j in n]
        case _:
            pairs = [(p[i] * slope(i, k) * slope(i, j), p[i] * p[j] * slope(j, k)) for i in n for j in n for k in n]
            return [(a - b, max(abs(a), abs(b))) for a, b in pairs]


@cache
def true_log_softmax(x: tuple[float, ...], order: int) -> list[tuple[Any, Any]]:
    p, slope = probabilities(x)
    n = range(len(x))
    match order:
        case 0:
            return [(mpmath.log(p[i]) if p[i] < 0.5 else mpmath.log1p(-slope(i, i)), 0) for i in n]
        case 1:
            return [(slope(i, j), 0) for i in n for j in n]
        case _:
            return [(-p[j] * slope(j, k), 0) for _ in n for j in n for k in n]


def softmax_written_out(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


def log_softmax_written_out(x: Any) -> Any:
    shifted = x - np.max(x, axis=0, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=0, keepdims=True))


def log_softmax_of_total(x: Any) -> Any:
    m = x.max()
    return x - (m + np.log(np.sum(np.exp(x - m))))


def masked(function: Function) -> Function:
    """Return a function of a row of which small elements are masked."""
    return lambda x: function(np.where(x > FLOOR, x, -np.inf))


def of_masked(truth: Function) -> Function:
    return lambda x, order: truth(tuple(v if v > FLOOR else -np.inf for v in x), order)


FLOOR = -50


ALONG: dict[str, tuple[Function, Function]] = {
    "softmax": (scipy.special.softmax, true_softmax),
    "exp(x) / exp(x).sum()": (lambda x: np.exp(x) / np.exp(x).sum(), true_softmax),
    "e / e.sum()": (softmax_written_out, true_softmax),
    "log_softmax": (scipy.special.log_softmax, true_log_softmax),
    "log(softmax(x))": (lambda x: np.log(softmax_written_out(x)), true_log_softmax),
    "x - log(exp(x).sum())": (lambda x: x - np.log(np.exp(x).sum()), true_log_softmax),
    "x - logsumexp(x)": (lambda x: x - scipy.special.logsumexp(x), true_log_softmax),
    "-(logsumexp(x) - x)": (lambda x: -(scipy.special.logsumexp(x) - x), true_log_softmax),
    "s - log(exp(s).sum())": (log_softmax_written_out, true_log_softmax),
    "x - (m + log(exp(x - m).sum()))": (log_softmax_of_total, true_log_softmax),
    "softmax of a column": (lambda x: scipy.special.softmax(x[:, None], axis=0)[:, 0], true_softmax),
    "softmax over two axes": (lambda x: scipy.special.softmax(x[:, None], axis=None)[:, 0], true_softmax),
    "softmax with a mask": (masked(scipy.special.softmax), of_masked(true_softmax)),
    "log_softmax of a column": (lambda x: scipy.special.log_softmax(x[:, None], axis=0)[:, 0], true_log_softmax),
}


OTHERS_ALONG = [name for name in ALONG if name not in ("softmax", "log_softmax")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype", "executor"),
    [
        *(("softmax", np.float64, "compiled"), ("softmax", np.float32, "interpreter")),
        *(("log_softmax", np.float32, "compiled"), ("log_softmax", np.float64, "interpreter")),
        *(
            (name, *way)
            for name, way in zip(OTHERS_ALONG, cycle(((np.float64, "compiled"), (np.float32, "interpreter"))))
        ),
    ],
)
def test_tails_of_functions_of_rows_keep_their_digits(name: str, dtype: Any, executor: Any):
    """The value and two derivatives in one program, of half of the rows, which are drawn."""
    function, truth = ALONG[name]
    nestings: list[tuple[int, Function]] = [(0, value(function))]
    for order in (1, 2):
        ways = list(product((fnad.jacfwd, fnad.jacrev), repeat=order))
        ways = ways if name in ("softmax", "log_softmax") and executor == "interpreter" else ways[:2]
        nestings += [(order, reduce(lambda f, derive: derive(f), way, function)) for way in ways]
    compiled = fnad.jit(lambda x: [derivative(x) for _, derivative in nestings])
    rows = ROWS if name in ("softmax", "log_softmax") else [row for row in ROWS if len(row) == 3]
    for row in some_of(rows, name, (len(rows) + 1) // 2):
        x = np.array(row, dtype)
        with override(executor=executor):
            found = compiled(x)
        for (order, _), ys in zip(nestings, found, strict=True):
            for y, (expected, terms) in zip(np.ravel(ys), truth(tuple(x.tolist()), order), strict=True):
                assert y.dtype == dtype
                assert units(y, expected, terms) <= ULPS, (order, row, y, float(expected))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_number_within_a_softmax_of_a_row_is_subnormal(dtype: Any) -> None:
    """Some processors take hundreds of cycles for each product of a subnormal number."""
    x = np.random.default_rng(0).normal(size=(500, 10)).astype(dtype)
    x[::3, 4:] = -np.inf
    x[1::3, 4:] = -1e9
    gradient = fnad.grad(lambda x, y: (scipy.special.softmax(x, axis=1) * y).sum())
    program = staged(fnad.export(gradient, x, x).program).simplified
    assert {"exp_high", "exp_low"} <= {equation.primitive.name for equation in program.equations}
    found: dict[Any, Any] = dict(zip(program.inputs, (x, np.ones_like(x)), strict=True))
    with np.errstate(all="ignore"):
        for equation in program.equations:
            operands = [
                np.asarray(atom.value) if isinstance(atom, Literal) else found[atom] for atom in equation.operands
            ]
            (result,) = equation.results
            found[result] = equation.primitive.evaluate(*operands, **equation.keywords)
            assert not (np.abs(found[result]) < np.finfo(dtype).tiny)[found[result] != 0].any(), equation

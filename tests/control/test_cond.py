"""Branches: values and derivatives are those of the branch that ran, and the others do not run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fnad
from fnad.errors import DomainError
from tests.control.truth import check_each, compare_values
from tests.together import some_of

X = np.array([0.7, -1.1, 0.4])
ways = pytest.mark.parametrize("executor", ["interpreter", "compiled"])


def chosen(pred, true_fun, false_fun, *operands):
    """Return what `cond` does, with Python's branches."""
    return true_fun(*operands) if pred else false_fun(*operands)


def both(f):
    """Return a function of a way to branch with that of fnad and that of Python."""
    return (lambda *args: f(fnad.cond, *args)), (lambda *args: f(chosen, *args))


CASES: dict[str, tuple[Any, list[tuple[Any, ...]]]] = {
    "a scalar": (
        lambda cond, x: cond(x > 1, np.sin, lambda x: x * x * x, x),
        [(0.5,), (1.5,)],
    ),
    "a pytree of operands and results": (
        lambda cond, x, y: cond(
            np.sum(x) > y,
            lambda t: {"a": t["x"] * t["y"], "b": (t["x"][0], None)},
            lambda t: {"a": np.exp(t["x"]), "b": (t["y"] ** 2, None)},
            {"x": x, "y": y},
        ),
        [(X, -0.5), (X, 0.5)],
    ),
    "captured values": (
        lambda cond, x, y: cond(x[0] > 0, lambda: np.sin(x) * y, lambda: x * x / y),
        [(X, 1.3), (-X, 1.3)],
    ),
    "each branch captures another": (
        lambda cond, x, y: cond(x > 0, lambda: np.sin(x), lambda: y * y * y),
        [(0.5, 1.3), (-0.5, 1.3)],
    ),
    "an output that is an operand, and one that is constant": (
        lambda cond, x: cond(x > 0, lambda x: (x, np.float64(2.0)), lambda x: (np.float64(3.0), x * x), x),
        [(0.5,), (-0.5,)],
    ),
    "no derivative in one branch": (
        lambda cond, x: x * cond(x > 0, lambda x: np.floor(x + 0.25), lambda x: np.exp(x), x),
        [(1.5,), (-0.5,)],
    ),
    "a branch in a branch": (
        lambda cond, x: cond(
            x > 0, lambda x: cond(x > 1, np.sin, lambda x: x * x * x, x), lambda x: cond(x < -1, np.cos, np.exp, x), x
        ),
        [(1.5,), (0.5,), (-0.5,), (-1.5,)],
    ),
    "integers beside floats": (
        lambda cond, x: cond(x > 0, lambda x: (np.int64(1), x * x), lambda x: (np.int64(2), np.sin(x)), x),
        [(0.5,), (-0.5,)],
    ),
    "different intermediates of one aval": (
        lambda cond, x: cond(
            x[0] > 0, lambda x: np.exp(np.sin(x)) * np.tanh(x), lambda x: np.log(np.cosh(x)) + np.arctan(x), x
        ),
        [(X,), (-X,)],
    ),
    "complex": (
        lambda cond, z: cond(z.real > 0, lambda z: np.exp(z) * z.imag, lambda z: z * z * np.conj(z), z),
        [(np.complex128(0.5 + 0.25j),), (np.complex128(-0.5 + 0.25j),)],
    ),
    "f32": (
        lambda cond, x: cond(x > 1, np.sin, lambda x: x * x * x, x),
        [(np.float32(0.5),), (np.float32(1.5),)],
    ),
    "in a loop": (
        lambda cond, x: _sum_in_loop(cond, x),
        [(X,)],
    ),
    "a loop in it": (
        lambda cond, x, y: cond(x > 0, lambda x: _power(cond, x, y), lambda x: x * y, x),
        [(0.5, 1.1), (-0.5, 1.1)],
    ),
    "a gradient in it": (
        lambda cond, x: _slope(cond, x),
        [(0.5,), (-0.5,)],
    ),
}


def _sum_in_loop(cond, x):
    step = lambda s, x: cond(x > 0, lambda: s * x, lambda: np.sin(s) - x)  # noqa: E731
    if cond is fnad.cond:
        return fnad.scan(lambda s, x: (step(s, x), s), 0.3, x)
    s, ys = 0.3, []
    for value in x:
        ys.append(s)
        s = step(s, value)
    return s, np.stack(ys)


def _power(cond, x, y):
    if cond is fnad.cond:
        return fnad.fori_loop(0, 3, lambda _, s: np.sin(s) * y, x)
    for _ in range(3):
        x = np.sin(x) * y
    return x


def _slope(cond, x):
    if cond is fnad.cond:
        return fnad.cond(x > 0, fnad.grad(np.sin), fnad.grad(lambda x: fnad.cond(x > 0, np.sin, np.exp, x)), x)
    return np.cos(x) if x > 0 else np.exp(x)


DEEP = "a branch in a branch"
"""The one of which second derivatives are compiled too."""
COMPILED = {DEEP, *some_of([*CASES], "compiled branches", len(CASES) // 3)}
"""Those of which first ones are compiled: `tests/backends/test_control.py` compiles others."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_branch_is_that_of_python(name):
    f, arguments = CASES[name]
    check_each(*both(f), arguments, compiled=(name in COMPILED) + (name == DEEP))


def test_numbers_of_python_take_the_dtype_of_the_other_branch():
    f = lambda x: fnad.cond(x > 0, lambda x: x, lambda x: 0.0, x)  # noqa: E731
    for x in (np.float32(0.5), np.float32(-0.5)):
        value, slope = fnad.jit(fnad.value_and_grad(f))(x)
        assert (value.dtype, slope.dtype) == (np.float32, np.float32)
        assert (value, slope) == ((x, 1) if x > 0 else (0, 0))


# ---- switch ----------------------------------------------------------------------------------------------------------


@ways
def test_switch_takes_the_nearest_branch(executor):
    branches = [np.sin, lambda x: x * x, lambda x: 3.0 * x]
    slopes = [np.cos, lambda x: 2 * x, lambda x: 3.0]
    f = fnad.jit(fnad.value_and_grad(lambda x, i: fnad.switch(i, branches, x)))
    with fnad.config.override(executor=executor):
        for dtype in (np.int64, np.int32, np.int8):
            for i in (-7, -1, 0, 1, 2, 3, 100):
                value, slope = f(0.7, dtype(i))
                nearest = min(max(i, 0), 2)
                assert_allclose((value, slope), (branches[nearest](0.7), slopes[nearest](0.7)), rtol=1e-15)


def test_switch_of_one_branch_leaves_the_operand_of_its_caller_alone():
    def f(x):
        y = x * 1

        def only(z):
            z[0] = 5.0
            return np.sum(z)

        return fnad.switch(0, [only], y), y

    compare_values(f(np.ones(2)), (np.float64(6.0), np.ones(2)))
    assert_array_equal(fnad.grad(lambda x: np.sum(f(x)[1]) + f(x)[0])(np.ones(2)), [1.0, 2.0])


@pytest.mark.slow
def test_second_derivatives_of_a_switch():
    branches = [np.sin, np.exp, lambda x: x * x * x]
    f = lambda x, i: fnad.switch(i, branches, x)  # noqa: E731
    check_each(f, lambda x, i: branches[i](x), [(0.6, np.int64(i)) for i in range(3)])


# ---- only one branch runs --------------------------------------------------------------------------------------------


@ways
def test_a_branch_not_taken_does_not_fail(executor):
    """An index out of range is found where it is read: here it is read in one branch only."""
    table = fnad.numpy.asarray(np.array([1.0, 2.0, 3.0]))

    def f(x, i):
        return fnad.cond(i < 3, lambda: table[i] * x * x, lambda: -x)

    orders = f, fnad.grad(f), fnad.grad(fnad.grad(f))
    with fnad.config.override(executor=executor):
        for order, inside, outside in zip(orders, (18.0, 12.0, 4.0), (-3.0, -1.0, 0.0), strict=True):
            run = fnad.jit(order)
            assert (run(3.0, np.int64(1)), run(3.0, np.int64(7))) == (inside, outside)


@ways
def test_a_branch_not_taken_is_not_evaluated_out_of_its_domain(executor):
    f = lambda n: fnad.cond(n >= 0, lambda: 2**n, lambda: n)  # noqa: E731  an integer to a negative power is an error
    with fnad.config.override(executor=executor):
        assert fnad.jit(f)(np.int64(3)) == 8
        assert fnad.jit(f)(np.int64(-3)) == -3
        with pytest.raises(DomainError):
            fnad.jit(lambda n: fnad.cond(n < 0, lambda: 2**n, lambda: n))(np.int64(-3))


@ways
@pytest.mark.parametrize(
    "bad", [np.sqrt, np.log, lambda x: x**-0.5, lambda x: np.linalg.norm(np.stack([x, x])), lambda x: x / x]
)
def test_row_54_a_branch_not_taken_leaves_derivatives_finite(executor, bad):
    f = lambda x: fnad.cond(x > 0, bad, lambda x: 2 * x, x)  # noqa: E731
    with fnad.config.override(executor=executor):
        assert fnad.jit(fnad.grad(f))(0.0) == 2
        assert fnad.jit(lambda x: fnad.jvp(f, (x,), (1.0,)))(0.0) == (0, 2)
        assert fnad.jit(fnad.grad(fnad.grad(f)))(0.0) == 0


# ---- predicates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pred", [True, False, np.True_, np.False_, np.array(True), np.array(False)], ids=repr)
def test_a_predicate_that_is_known(pred):
    f = lambda x: fnad.cond(pred, np.sin, np.square, x)  # noqa: E731
    for transform in (lambda f: f, fnad.jit):
        assert_allclose(transform(f)(0.7), np.sin(0.7) if pred else 0.7**2, rtol=1e-15)
        assert_allclose(transform(fnad.grad(f))(0.7), np.cos(0.7) if pred else 1.4, rtol=1e-15)


def test_a_result_that_nobody_reads():
    f = lambda x: fnad.cond(x > 0, lambda x: (np.sin(x), np.log(x)), lambda x: (x * x, np.exp(x)), x)[0]  # noqa: E731
    assert_allclose(fnad.jit(fnad.grad(f))(0.5), np.cos(0.5))
    assert fnad.jit(fnad.grad(f))(-0.5) == -1


def test_arguments_written_in_a_branch_are_written_there_only():
    x = np.array([1.0, 2.0])

    def branch(z):
        z *= 3
        return np.sum(z)

    def f(x):
        return fnad.cond(x[0] > 0, branch, np.sum, x) + np.sum(x)

    assert_array_equal(fnad.jit(f)(x), 12.0)
    assert_array_equal(fnad.grad(f)(x), [4.0, 4.0])
    assert_array_equal(x, [1.0, 2.0])

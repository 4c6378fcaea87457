"""Integers and bools among the leaves of what is differentiated: constant, with a gradient of 0 of their own dtype."""

from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import MutationError, NonDifferentiableArgumentError, TangentError

P: dict[str, Any] = {
    "w": np.array([1.0, 2.0]),
    "n": 3,
    "b": True,
    "k": np.array([1, 0], np.int32),
    "s": np.float32(2.0),
}
KINDS = {"w": "float64", "n": "int64", "b": "bool", "k": "int32", "s": "float32"}
ZEROS = {"n": 0, "b": False, "k": [0, 0]}


def loss(p):
    """Return s (w0^n + w1^n) + w1, by what only integers and bools that are no traced ones can do."""
    product = np.ones(2)
    for _ in range(p["n"]):
        product = product * p["w"]
    return np.sum(product) * p["s"] + (p["w"][p["k"][0]] if p["b"] else 0.0)


def gradient(p):
    w, n, s = p["w"], p["n"], np.float64(p["s"])
    return {"w": s * n * w ** (n - 1) + np.array([0.0, 1.0]), **ZEROS, "s": np.sum(w**n)}


def check(found, expected):
    assert {name: np.asarray(leaf).dtype.name for name, leaf in found.items()} == KINDS
    for name in KINDS:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-6)


GRADIENTS = {
    "grad": fnad.grad(loss),
    "value_and_grad": lambda p: fnad.value_and_grad(loss)(p)[1],
    "vjp": lambda p: fnad.vjp(loss, p)[1](1.0)[0],
    "argnums": lambda p: fnad.grad(lambda x, q: x * loss(q), argnums=(1,))(1.0, p)[0],
    "a checkpoint": fnad.grad(fnad.checkpoint(loss)),
    "written": lambda p: fnad.grad(lambda q: (q["w"].__imul__(1.0), loss(q))[1])(p),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_of_constant_leaves_is_zero(name):
    for wrapped in (GRADIENTS[name], fnad.jit(GRADIENTS[name])):
        check(wrapped(P), gradient(P))
    check(GRADIENTS[name]({**P, "n": 2, "b": False}), gradient({**P, "n": 2}) | {"w": P["w"] * 4})


def test_tangents_of_constant_leaves_have_to_be_zero():
    direction = {"w": np.array([0.5, -1.0]), **ZEROS, "k": np.zeros(2, np.int32), "s": np.float32(1.0)}
    expected = sum(np.sum(np.multiply(gradient(P)[name], direction[name])) for name in P)
    jvp = lambda p, v: fnad.jvp(loss, (p,), (v,))[1]  # noqa: E731
    for run in (jvp, fnad.jit(jvp)):  # where the zeros are traced, and known to be so by a guard
        assert run(P, direction) == pytest.approx(expected)
        with pytest.raises(
            TangentError, match=r"\['n'\] belongs to i64\[\], which has no derivative, and so has to be 0"
        ):
            run(P, {**direction, "n": 1})


def test_derivatives_of_derivatives():
    of_first = lambda p: fnad.grad(loss)(p)["w"][0]  # 3 s w0^2  # noqa: E731
    for run in (fnad.grad(of_first), fnad.jit(fnad.grad(of_first))):
        check(run(P), {"w": [12.0, 0.0], **ZEROS, "s": 3.0})
    forward = lambda p: fnad.jvp(fnad.grad(loss), (p,), (fnad.grad(loss)(p),))[1]  # noqa: E731
    check(fnad.jit(forward)(P), forward(P))
    assert forward(P)["w"][0] == pytest.approx(12 * 6 + 3 * 9)


def test_constant_leaves_of_several_arguments_keep_their_types():
    f = lambda a, b: a["x"] * b["y"] ** b["n"]  # noqa: E731
    found = fnad.grad(f, argnums=(0, 1))({"x": 2.0, "m": 1}, {"n": 3, "y": 5.0})
    assert found == ({"x": 125.0, "m": 0}, {"n": 0, "y": 150.0})
    assert type(found[0]["m"]) is np.int64


@pytest.mark.parametrize("transform", [fnad.grad, fnad.value_and_grad, lambda f: lambda *args: fnad.vjp(f, *args)])
@pytest.mark.parametrize("argument", [3, True, np.arange(3), {"n": 3, "m": [True]}])
def test_an_argument_without_a_float(transform, argument):
    with pytest.raises(NonDifferentiableArgumentError, match="has no derivative"):
        transform(lambda p: 1.0)(argument)
    with pytest.raises(NonDifferentiableArgumentError, match="has no derivative"):
        fnad.vjp(lambda x, p: x, 1.0, argument)
    with pytest.raises(NonDifferentiableArgumentError, match="has no derivative"):
        fnad.grad(lambda x, p: x, argnums=(0, 1))(1.0, argument)


def test_an_array_of_integers_that_is_written_to():
    def f(p):
        p["k"][0] = 5
        return p["w"][0] * p["k"][0]

    given = {"w": np.ones(2), "k": np.zeros(2, int)}
    for gradient_of in (fnad.grad(f), lambda p: fnad.vjp(f, p)[1](1.0)[0]):
        assert gradient_of(given)["w"].tolist() == [5.0, 0.0]
        assert given["k"].tolist() == [0, 0]
    shared = np.zeros(2, int)
    with pytest.raises(MutationError):
        fnad.grad(lambda p: (f(p), p["l"][0] * p["w"][0])[1])({"w": np.ones(2), "k": shared, "l": shared})

"""Arguments, and parts of them, that are selected by name: `argnames=` and `wrt=`."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import optree
import pytest
from numpy.testing import assert_allclose

import fnad
from fnad.errors import ArgnumsError, NonDifferentiableArgumentError
from tests.together import some_of, together

W, B, X = np.array([[0.3, -0.2], [0.5, 0.1]]), np.array([0.1, 0.2]), np.array([1.0, 2.0])


class Pair(NamedTuple):
    w: Any
    b: Any


@dataclass
class Record:
    w: Any
    b: Any


class Node:
    """A container without names for its children, which are attributes."""

    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b = w, b


optree.register_pytree_node(
    cast("Any", Node), lambda node: ((node.w, node.b), None), lambda _, children: Node(*children), namespace="fnad"
)

CONTAINERS = {
    "dict": ({"b": B, "w": W}, lambda p: (p["w"], p["b"])),
    "named tuple": (Pair(W, B), lambda p: (p.w, p.b)),
    "dataclass": (Record(W, B), lambda p: (p.w, p.b)),
    "node": (Node(W, B), lambda p: (p.w, p.b)),
}
TRANSFORMS = ("grad", "value_and_grad", "jacfwd", "jacrev", "jacobian", "hessian", "laplacian")


def of_parts(w: Any, b: Any, x: Any) -> Any:
    return np.sum(np.tanh(x @ w + b) ** 2)


def equal(found: Any, expected: Any) -> None:
    fnad.tree.map(lambda a, b: assert_allclose(a, b, rtol=1e-13, atol=1e-15), found, expected)


@pytest.mark.slow
def test_parts_of_each_container_in_each_transform() -> None:
    """Each container is met in drawn ones of the transforms, and each transform in the first."""
    with together() as check, fnad.config.override(executor="interpreter"):
        for kind, (params, parts) in CONTAINERS.items():
            loss = lambda params, x, parts=parts: of_parts(*parts(params), x)  # noqa: E731
            for name in TRANSFORMS if kind == "dict" else some_of(TRANSFORMS, kind, 2):
                transform = getattr(fnad, name)
                expected = transform(of_parts, 0)(W, B, X)
                with check(f"{name} in a part of a {kind}"):
                    equal(transform(loss, wrt="params.w")(params, X), expected)
                    equal(fnad.jit(transform(loss, wrt="params.w"))(params, x=X), expected)
                    equal(transform(loss, wrt=["x", "params.b"])(params, X), transform(of_parts, (2, 1))(W, B, X))
                    equal(transform(loss, argnames="x")(params, x=X), transform(of_parts, 2)(W, B, X))
            with check(f"vjp and jvp in a part of a {kind}"):
                value, pullback = fnad.vjp(loss, params, X, wrt="params.w")
                equal((value, pullback(1.0)[0]), fnad.value_and_grad(of_parts)(W, B, X))
                pushed = fnad.jvp(loss, (params, X), (W, X), wrt=("params.w", "x"))
                equal(pushed, fnad.jvp(lambda w, x: of_parts(w, B, x), (W, X), (W, X)))


def test_a_part_is_differentiated_within_other_transforms() -> None:
    loss = lambda params, x: of_parts(params["w"], params["b"], x)  # noqa: E731
    params, xs = {"w": W, "b": B}, np.stack([X, -X])
    batched = fnad.vmap(fnad.grad(loss, wrt="params.b"), (None, 0))
    equal(batched(params, xs), np.stack([fnad.grad(of_parts, 1)(W, B, x) for x in xs]))
    twice = fnad.grad(lambda x: np.sum(fnad.grad(loss, wrt="params.b")(params, x) ** 2))
    equal(twice(X), fnad.grad(lambda x: np.sum(fnad.grad(of_parts, 1)(W, B, x) ** 2))(X))


FACTOR = 2.0


@fnad.grad(wrt="params.layers.1")
def slope(params, x, *, power=2):
    params["seen"] = x
    return FACTOR * np.sum(params["layers"][1] ** power * x)


def test_a_decorated_function_follows_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    params = {"layers": [W, B], "name": "model"}
    again = pickle.loads(pickle.dumps(fnad.grad(of_parts, wrt="w")))
    equal(again(W, B, X), fnad.grad(of_parts)(W, B, X))
    for factor in (2.0, 2.0, 2.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        equal(slope(params, X), 2 * factor * B * X)
        equal(slope(params, x=X, power=3), 3 * factor * B**2 * X)
    assert list(params) == ["layers", "name"]
    assert repr(slope).startswith("<fnad.grad(wrt='params.layers.1') of slope")


REFUSED = [
    ("q", "q is selected, and loss was called without q"),
    ("params.q", "params.q is selected, where there is no q"),
    ("params.w.q", "params.w.q is selected, where there is no q"),
    ("scale", "scale is selected, and loss was called without scale"),
    (("x", "x"), "x is selected, which loss would be differentiated in twice"),
    (("params", "params.b"), "params.b is selected, which loss would be differentiated in twice"),
    ("params..b", "the names of arguments are 'params..b'"),
    ((), r"the names of arguments are \(\)"),
    (0, "the names of arguments are 0"),
]


@pytest.mark.parametrize(("names", "message"), REFUSED)
def test_what_cannot_be_selected(names: Any, message: str) -> None:
    def loss(params: Any, x: Any, scale: Any = 1.0) -> Any:
        return of_parts(params["w"], params["b"], x) * scale

    with pytest.raises(ArgnumsError, match=f"^{message}\n"):
        fnad.grad(loss, wrt=names)({"w": W, "b": B}, X)


def test_one_way_to_select() -> None:
    with pytest.raises(ArgnumsError, match=r"^grad was given wrt and argnums\n"):
        fnad.grad(of_parts, 0, wrt="w")
    with pytest.raises(ArgnumsError, match=r"^hessian was given argnames and wrt\n"):
        fnad.hessian(of_parts, argnames="w", wrt="w")
    with pytest.raises(NonDifferentiableArgumentError, match=r"^params\.n is i64"):
        fnad.grad(lambda params: params["n"] * 1.0, wrt="params.n")({"n": 3})

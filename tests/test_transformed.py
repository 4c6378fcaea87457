"""Transformed functions as objects: decorators with options, methods, pickles, what they say they are."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import errors


def loss(w: Any, x: Any) -> Any:
    """The sum."""
    return np.sum(w * x**2)


LINE = inspect.getsourcelines(loss)[1]


@fnad.jit(static_argnums=1)
def power(x: Any, n: int) -> Any:
    assert isinstance(n, int)
    return x**n


@fnad.jit(static_argnames=("n",))
def named_power(x: Any, n: int) -> Any:
    assert isinstance(n, int)
    return x**n


@fnad.grad(argnums=1)
def slope(w: Any, x: Any) -> Any:
    return np.sum(w * x**2)


@fnad.jit
@fnad.value_and_grad(has_aux=True)
def both(w: Any) -> Any:
    return w**2, "aux" if False else w


@fnad.vmap(in_axes=(None, 0))
def rows(w: Any, x: Any) -> Any:
    return w * x


@fnad.checkpoint(policy="carry")
def last(x: Any) -> Any:
    return fnad.scan(lambda s, _: (np.sin(s), None), x, length=3)[0]


@fnad.custom_jvp(nondiff_argnums=0)
def scaled(k: int, x: Any) -> Any:
    assert isinstance(k, int)
    return k * x


scaled.defjvp(lambda k, primals, tangents: (scaled(k, primals[0]), 2 * k * tangents[0]))


@fnad.custom_vjp(nondiff_argnums=(0,))
def negated(k: int, x: Any) -> Any:
    return k * x


negated.defvjp(lambda k, x: (k * x, None), lambda k, _, ct: (-k * ct,))


@fnad.hessian(argnums=0)
def curvature(x: Any) -> Any:
    return x**3


class Model:
    def __init__(self, w: float) -> None:
        self.w = w

    @fnad.jit(static_argnames="n")
    def apply(self, x: Any, n: int) -> Any:
        return self.w * x**n

    @fnad.grad(argnums=1)
    def slope(self, x: Any) -> Any:
        return self.w * x**2

    @staticmethod
    @fnad.jit
    def double(x: Any) -> Any:
        return 2 * x

    @classmethod
    @fnad.jit
    def of(cls, x: Any) -> Any:
        return 3 * x


TRANSFORMED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "grad": (fnad.grad(loss), (1.0, 2.0)),
    "options": (fnad.grad(loss, argnums=(0, 1)), (1.0, 2.0)),
    "by position": (fnad.grad(loss, 1), (1.0, 2.0)),
    "nested": (fnad.jit(fnad.grad(fnad.grad(loss, 1), 1)), (1.0, 2.0)),
    "ufunc": (fnad.vmap(np.sin), (np.ones(2),)),
    "jit": (power, (2.0, 3)),
    "decorated": (slope, (1.0, 2.0)),
    "twice decorated": (both, (2.0,)),
    "rows": (rows, (2.0, np.ones(3))),
    "checkpoint": (last, (0.5,)),
    "hessian": (curvature, (2.0,)),
    "jacobian": (fnad.jacobian(loss), (np.ones(2), 1.0)),
    "sparse": (fnad.sparse_jacobian(loss), (np.ones(2), 1.0)),
    "sparse hessian": (fnad.sparse_hessian(loss, argnums=1), (1.0, 2.0)),
    "method": (Model.apply, (Model(2.0), 3.0, 2)),
    "bound": (Model(2.0).apply, (3.0, 2)),
}


def test_a_transform_without_a_function_is_a_decorator() -> None:
    assert (power(2.0, 3), named_power(2.0, n=3), named_power(2.0, 3)) == (8.0, 8.0, 8.0)
    assert slope(3.0, 2.0) == 12.0
    assert both(3.0) == ((9.0, 3.0), 6.0)
    assert (rows(2.0, np.ones(3)).tolist(), curvature(2.0)) == ([2.0, 2.0, 2.0], 12.0)
    assert fnad.jit()(np.sin)(0.0) == 0.0
    assert (scaled(3, 2.0), fnad.grad(lambda x: scaled(3, x))(2.0)) == (6.0, 6.0)
    assert (negated(3, 2.0), fnad.grad(lambda x: negated(3, x))(2.0)) == (6.0, -3.0)


def test_methods_are_bound() -> None:
    model = Model(2.0)
    assert (model.apply(3.0, 2), model.apply(3.0, n=2), Model.apply(model, 3.0, 2)) == (18.0, 18.0, 18.0)
    assert model.slope(3.0) == 12.0
    assert (Model.double(2.0), model.double(2.0), Model.of(2.0), model.of(2.0)) == (4.0, 4.0, 6.0, 6.0)
    assert Model.apply.lower(model, 3.0, 2)(4.0) == 32.0
    model.w = 5.0
    assert model.apply(3.0, 2) == 45.0


@pytest.mark.parametrize("name", TRANSFORMED)
def test_pickles_and_copies_do_the_same(name: str) -> None:
    f, args = TRANSFORMED[name]
    again = pickle.loads(pickle.dumps(f))
    assert repr(f(*args)) == repr(again(*args))
    if not inspect.ismethod(f):
        assert copy.copy(f) is copy.deepcopy(f) is f


def test_what_a_module_has_under_its_name_is_pickled_as_that() -> None:
    for f in (power, slope, both, rows, scaled, negated, Model.apply):
        assert pickle.loads(pickle.dumps(f)) is f


def test_a_derivative_at_a_point_is_copied_as_itself() -> None:
    x = np.array([0.5, 2.0])
    derivatives = {
        "pullback of loss": fnad.vjp(loss, x, x)[1],
        "pushforward of loss": fnad.linearize(loss, x, x)[1],
        "transpose of cumsum": fnad.linear_transpose(np.cumsum, x),
    }
    for name, derivative in derivatives.items():
        assert copy.copy(derivative) is derivative
        assert copy.deepcopy([derivative])[0] is derivative
        assert repr(derivative) == f"<{name}>"


def test_a_function_that_cannot_be_pickled_says_so() -> None:
    with pytest.raises(pickle.PicklingError, match="its rule would be lost"):
        pickle.dumps(fnad.custom_vjp(loss))
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(fnad.grad(lambda x: x))


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (fnad.grad(loss), f"<fnad.grad of loss at test_transformed.py:{LINE}>"),
        (fnad.grad(loss, argnums=1), f"<fnad.grad(argnums=1) of loss at test_transformed.py:{LINE}>"),
        (fnad.jit(fnad.grad(loss)), f"<fnad.jit of fnad.grad of loss at test_transformed.py:{LINE}>"),
        (fnad.vmap(np.sin, 1), "<fnad.vmap(in_axes=1) of sin>"),
        (fnad.jit(loss, static_argnums=1), f"<fnad.jit(static_argnums=1) of loss at test_transformed.py:{LINE}>"),
        (Model.apply, "<fnad.jit(static_argnames='n') of Model.apply at test_transformed.py:...>"),
        (fnad.custom_vjp(loss), f"<fnad.custom_vjp of loss at test_transformed.py:{LINE}>"),
    ],
)
def test_it_says_what_it_is(f: Callable[..., Any], text: str) -> None:
    head, _, tail = text.partition("...")
    assert repr(f).startswith(head)
    assert repr(f).endswith(tail)


def test_it_passes_for_the_function_to_inspect() -> None:
    loss.mark = 1
    f = fnad.jit(fnad.grad(loss))
    assert (f.__name__, f.__doc__, f.__module__, f.mark) == ("loss", "The sum.", __name__, 1)
    assert inspect.signature(f) == inspect.signature(loss)
    assert inspect.unwrap(f) is loss


def test_changes_of_what_is_inside_are_seen() -> None:
    scale = [2.0]

    def inner(x: Any) -> Any:
        return scale[0] * x**2

    gradient = fnad.grad(inner)
    outer = fnad.jit(lambda x: gradient(x))
    assert outer(1.0) == 4.0
    scale[0] = 3.0
    assert outer(1.0) == 6.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fnad.grad(loss, argnum=1), "grad takes no argnum=\n.*\n  write argnums="),
        (lambda: fnad.jit(loss, nonsense=1), "jit takes no nonsense=\n.*\n  it takes f, static_argnums, "),
        (lambda: fnad.vmap(in_dims=0), "vmap takes no in_dims=\n.*\n  write in_axes="),
    ],
)
def test_a_keyword_that_is_not_there(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(errors.UnknownKeywordError, match=message):
        call()

"""State that a traced function changes and that comes back to an earlier value: each call is as Python's."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import MutationError, RetraceWarning

BODIES: list[Callable[[], tuple[Callable[[Any], Any], Callable[[], None]]]] = []


def body(make: Any) -> Any:
    BODIES.append(make)
    return make


class Thing:
    """An object with state."""

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


@body
def flag() -> Any:
    m = Thing(flag=False)

    def f(x: Any) -> Any:
        m.flag = not m.flag
        return x if m.flag else -x

    return f, lambda: None


@body
def counter_that_is_reset() -> Any:
    o = Thing(t=0)

    def f(x: Any) -> Any:
        o.t += 1
        return x / o.t

    return f, lambda: setattr(o, "t", 0)


@body
def modulo() -> Any:
    i = 0

    def f(x: Any) -> Any:
        nonlocal i
        i = (i + 1) % 3
        return x * i

    return f, lambda: None


@body
def sign() -> Any:
    o = Thing(sign=1.0)

    def f(x: Any) -> Any:
        o.sign = -o.sign
        return x * o.sign

    return f, lambda: None


@body
def buffers() -> Any:
    o = Thing(front=[1.0], back=[2.0])

    def f(x: Any) -> Any:
        o.front, o.back = o.back, o.front
        return x * o.front[0]

    return f, lambda: None


@body
def rotated() -> Any:
    weights = collections.deque([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        weights.rotate(1)
        return x * weights[0]

    return f, lambda: None


@body
def reversed_list() -> Any:
    weights = [1.0, 2.0]

    def f(x: Any) -> Any:
        weights.reverse()
        return x * weights[0]

    return f, lambda: None


@body
def swapped() -> Any:
    weights = [1.0, 2.0]

    def f(x: Any) -> Any:
        weights[0], weights[1] = weights[1], weights[0]
        return x * weights[0]

    return f, lambda: None


@body
def xor() -> Any:
    o = Thing(bit=0)

    def f(x: Any) -> Any:
        o.bit ^= 1
        return x * (2.0 if o.bit else 3.0)

    return f, lambda: None


@body
def popped_and_pushed() -> Any:
    stack = [1.0, 2.0, 3.0]

    def f(x: Any) -> Any:
        stack.insert(0, stack.pop())
        return x * stack[0]

    return f, lambda: None


@body
def attribute_that_goes() -> Any:
    o = Thing()

    def f(x: Any) -> Any:
        if hasattr(o, "there"):
            del o.there
            return x
        o.there = True
        return 2.0 * x

    return f, lambda: None


@body
def array() -> Any:
    u = np.ones(3)

    def f(x: Any) -> Any:
        u[:] = 3.0 - u
        return x * u[0]

    return f, lambda: None


@body
def key_that_goes() -> Any:
    table: dict[str, float] = {}

    def f(x: Any) -> Any:
        if table.pop("key", None) is None:
            table["key"] = 2.0
            return x
        return 3.0 * x

    return f, lambda: None


@body
def item_in_a_class() -> Any:
    class Config:
        on = False

    def f(x: Any) -> Any:
        Config.on = not Config.on
        return x * (2.0 if Config.on else 3.0)

    return f, lambda: None


@body
def iterator_made_anew() -> Any:
    o = Thing(values=iter([1.0, 2.0]))

    def f(x: Any) -> Any:
        value = next(o.values, None)
        if value is None:
            o.values = iter([1.0, 2.0])
            value = next(o.values)
        return x * value

    return f, lambda: None


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), fnad.config.override(executor="interpreter"):
        warnings.simplefilter("ignore", RetraceWarning)
        yield


WAYS: dict[str, Callable[[Any], Callable[[float], Any]]] = {
    "jit": lambda f: fnad.jit(f),
    "jit of grad": lambda f: (run := fnad.jit(fnad.value_and_grad(f)), lambda x: run(x)[0])[1],
    "grad": lambda f: (run := fnad.value_and_grad(f), lambda x: run(x)[0])[1],
    "jit of vmap": lambda f: (run := fnad.jit(fnad.vmap(f)), lambda x: run(np.array([x]))[0])[1],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", BODIES, ids=lambda make: make.__name__)
def test_each_call_is_as_in_python(make: Any, way: str) -> None:
    (f, reset), (g, reset_too) = make(), make()
    run = WAYS[way](f)
    if (make, way) == (array, "jit of vmap"):  # whose rows would share it
        with pytest.raises(MutationError):
            run(6.0)
        return
    for _ in range(3):
        assert [float(run(6.0)) for _ in range(7)] == [g(6.0) for _ in range(7)]
        reset()
        reset_too()

"""Branches and bodies of loops that write ordinary numbers into arrays outside of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import MutationError

TABLE = np.zeros(3)


def write_helper() -> None:
    TABLE[0] = 6.0


def make() -> tuple[Any, dict[str, Callable[[Any], Any]]]:
    """An array of an enclosing function, and functions that write into it or into `TABLE`."""
    own = np.zeros(3)

    def element(x: Any) -> Any:
        own[0] = 6.0
        return x

    def added(x: Any) -> Any:
        own[1:] += 1.0
        return x

    def filled(x: Any) -> Any:
        own.fill(2.0)
        return x

    def given_out(x: Any) -> Any:
        np.add(TABLE, 1.0, out=TABLE)
        return x

    def called(x: Any) -> Any:
        write_helper()
        return x

    def default(x: Any, array: Any = own) -> Any:
        array[2] = np.nan
        return x

    def in_place(x: Any, array: Any = own) -> Any:
        array *= 2.0
        array += 1.0
        return x

    return own, {f.__name__: f for f in (element, added, filled, given_out, called, default, in_place)}


CONTROL: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "cond": lambda f: lambda x: fnad.cond(x > 1, lambda x: 2 * x, f, x),
    "switch": lambda f: lambda x: fnad.switch(np.int64(0), [np.sin, f], x),
    "fori_loop": lambda f: lambda x: fnad.fori_loop(0, 3, lambda i, x: f(x), x),
    "while_loop": lambda f: lambda x: fnad.while_loop(lambda x: x < 5, lambda x: f(x) + 1, x),
    "scan": lambda f: lambda x: fnad.scan(lambda c, _: (f(c), None), x, None, length=4)[0],
}
TRANSFORMS: list[Callable[[Any], Any]] = [lambda f: f, fnad.grad, fnad.jit, lambda f: fnad.jit(fnad.grad(f))]


@pytest.mark.parametrize("control", CONTROL.values(), ids=CONTROL)
def test_writes_are_undone_and_an_error_with_their_line(control: Any) -> None:
    own, functions = make()
    for name, f in functions.items():
        for transform in TRANSFORMS:
            with pytest.raises(MutationError, match=r"writes into (own|TABLE|array), an array outside of it") as caught:
                transform(control(f))(2.0)
            assert caught.value.source is not None, name
            assert caught.value.source.file == __file__
            assert not np.any([own, TABLE]), name


def test_what_a_function_makes_itself_it_may_write_to() -> None:
    def f(x: Any) -> Any:
        made = np.zeros(3)
        made[0] = 6.0
        return x * made[0] + TABLE[1]

    assert fnad.cond(True, f, np.sin, 2.0) == 12.0
    assert fnad.fori_loop(0, 2, lambda i, x: f(x), 1.0) == 36.0


def test_what_is_written_before_an_error_is_undone() -> None:
    own = np.zeros(3)

    def f(x: Any) -> Any:
        own[0] = 1.0
        raise KeyError("an error of the user's")

    with pytest.raises(KeyError, match="an error of the user's"):
        fnad.cond(True, f, np.sin, 2.0)
    assert not own.any()


def test_plain_loops_write_as_python_does() -> None:
    own, functions = make()
    with fnad.disable_jit():
        assert fnad.fori_loop(0, 3, lambda i, x: functions["added"](x), 1.0) == 1.0
    assert own.tolist() == [0.0, 3.0, 3.0]

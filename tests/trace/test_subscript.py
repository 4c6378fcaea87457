"""Traced integers as an index: of lists a path for each, of arrays from outside no path."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad import grad, jit

TABLE = np.array([1.0, 4.0, 9.0, 16.0])


def local(k: Any, x: Any) -> Any:
    table = TABLE
    return table[k + 1] * x + table[k] * table[min(2, 3)]


def two_axes(k: Any, x: Any) -> Any:
    table = np.reshape(TABLE, (2, 2))
    return table[0, k % 2] * x


def filled(k: Any, x: Any) -> Any:
    values = np.zeros(4)
    values[k] = x
    return np.sum(values * TABLE)


def through_a_closure() -> Any:
    table = TABLE * 2
    return lambda k, x: table[k] * x + table[-1]


class Model:
    table = TABLE


ARRAYS = {
    "global": lambda k, x: TABLE[k] * x,
    "local": local,
    "closure": through_a_closure(),
    "written to": filled,
    "two axes": two_axes,
    "attribute": lambda k, x: Model.table[k] * x,
    "expression": lambda k, x: (TABLE if len(TABLE) > 3 else [])[k] * x,
    "branch in the index": lambda k, x: TABLE[k if len(TABLE) > 3 else 0] * x,
}
OTHERS = {
    "list": lambda k, x: [x, x * x, x**3][k],
    "tuple": lambda k, x: (1.0, 2.0, 3.0)[k] * x,
    "string": lambda k, x: "012".index("012"[k]) * x,
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_read_at_any_index(name: str) -> None:
    f = ARRAYS[name]
    compiled = jit(grad(f, 1))
    for k in (0, 1, 2, 1):
        assert compiled(k, 1.5) == grad(f, 1)(k, 1.5)
        assert compiled(k, 1.5) == pytest.approx((f(k, 2.0) - f(k, 1.0)), rel=1e-15)
    assert len(compiled.paths()) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_anything_else_has_a_path_for_each_index(name: str) -> None:
    f = OTHERS[name]
    compiled = jit(f)
    for k in (0, 1, 2, 1, 0):
        assert compiled(k, 1.5) == f(k, 1.5)
    assert len(compiled.paths()) == 3

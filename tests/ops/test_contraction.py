"""dot_general against einsum, over all ways to name axes, and its errors."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from fnad.errors import AxisError, DtypeError, FnadError, ShapeError
from fnad.ir.types import DTYPES, Aval
from fnad.ops.contraction import dot_general
from fnad.testing import Run, check_transposed
from tests.edge_cases.derivatives import program_of, value
from tests.together import in_groups

F64, F32 = DTYPES["f64"], DTYPES["f32"]
SIZES = {"b": 2, "c": 3, "i": 4, "j": 5, "k": 2}


def axes(left: str, right: str, letters: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(map(left.index, letters)), tuple(map(right.index, letters))


def array(letters: str, seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal([SIZES[letter] for letter in letters])


@in_groups("right", ["".join(letters) for letters in permutations("bckj")])
@pytest.mark.parametrize("left", ["bick", "kcib", "cbki"])
def test_any_order_of_axes(left: str, right: str, run: Run):
    """`b` is a batch axis, `k` and `c` are contracted, in either order."""
    x, y = array(left, 0), array(right, 1)
    for contracted in ("kc", "ck"):
        params = {"contract": axes(left, right, contracted), "batch": axes(left, right, "b")}

        def f(x: Any, y: Any, params: dict[str, Any] = params) -> Any:
            return dot_general(x, y, **params)

        np.testing.assert_allclose(value(run, f, x, y), np.einsum(f"{left},{right}->bij", x, y))
        check_transposed(run, program_of(f, x, y), [x, y])


def test_two_batch_axes_in_their_given_order(run: Run):
    x, y = array("bkci", 0), array("cbjk", 1)
    params = {"contract": axes("bkci", "cbjk", "k"), "batch": axes("bkci", "cbjk", "cb")}
    found = value(run, lambda x, y: dot_general(x, y, **params), x, y)
    np.testing.assert_allclose(found, np.einsum("bkci,cbjk->cbij", x, y))


def refused(error: type[FnadError], x: Aval, y: Aval, contract: Any, batch: Any = ((), ())) -> str:
    with pytest.raises(error) as raised:
        dot_general.infer(x, y, contract=contract, batch=batch)
    return str(raised.value)


def test_sizes_that_differ():
    message = refused(ShapeError, Aval(F64, (3, 4)), Aval(F64, (5, 2)), ((1,), (0,)))
    assert message == "dot contracts axis 1 of x: f64[3,4] with axis 0 of y: f64[5,2] (4 != 5)"
    message = refused(ShapeError, Aval(F64, (3, 4)), Aval(F64, (5, 4)), ((1,), (1,)), ((0,), (0,)))
    assert message == "dot pairs batch axis 0 of x: f64[3,4] with axis 0 of y: f64[5,4] (3 != 5)"


def test_axes_that_are_not_there_or_named_twice():
    x = Aval(F64, (3, 3))
    assert refused(AxisError, x, x, ((2,), (0,))) == "dot_general contracts axes (2,) with batch axes () of f64[3,3]"
    assert "contracts axes (0,) with batch axes (0,)" in refused(AxisError, x, x, ((0,), (1,)), ((0,), (0,)))
    assert "not as many" in refused(ShapeError, x, x, ((0, 1), (0,)))


def test_dtypes_that_differ_or_are_no_numbers():
    message = refused(DtypeError, Aval(F64, (3,)), Aval(F32, (3,)), ((0,), (0,)))
    assert message == "dot_general takes operands of one dtype, got f64[3] and f32[3]"
    assert "does not take bool" in refused(DtypeError, Aval(DTYPES["bool"], (3,)), Aval(F64, (3,)), ((0,), (0,)))

from collections.abc import Hashable
from itertools import combinations

import numpy as np

from fnad.ir.builder import Builder, trace
from fnad.ir.content import content_key, static_key
from fnad.ir.program import Literal, Program
from fnad.ir.types import F32, Aval
from fnad.ops.arithmetic import add, sub
from fnad.ops.shape import reduce_sum
from tests.ir.programs import VECTOR, branch, loss, with_sources


def constant(value: np.generic) -> Program:
    return Program("f", (), (), (Literal(value),))


def branching(region: Program) -> Program:
    builder = Builder()
    with builder.active():
        return builder.finish("f", [builder.bind(branch, [builder.input(VECTOR)], {}, (region,))[0]])


def test_names_and_sources_do_not_count() -> None:
    assert content_key(with_sources(3, 5)) == content_key(with_sources(7, 8))
    assert content_key(trace(lambda x: [x], VECTOR, name="f")) == content_key(trace(lambda x: [x], VECTOR, name="g"))


def test_the_order_of_params_does_not_count() -> None:
    matrix = Aval(VECTOR.dtype, (3, 4))
    first = trace(lambda x: [branch(x, shape=(3,), axis=0)[0]], matrix)
    second = trace(lambda x: [branch(x, axis=0, shape=(3,))[0]], matrix)
    assert content_key(first) == content_key(second)


def test_all_else_counts() -> None:
    matrix = Aval(VECTOR.dtype, (3, 3))
    programs = [
        loss(),
        trace(lambda x, y: [add(x, y)], VECTOR, VECTOR),
        trace(lambda x, y: [add(y, x)], VECTOR, VECTOR),
        trace(lambda x, y: [sub(x, y)], VECTOR, VECTOR),
        trace(lambda x, y: [add(x, y)], Aval(F32, (3,)), Aval(F32, (3,))),
        trace(lambda x, y: [add(x, y), x], VECTOR, VECTOR),
        trace(lambda x, y: [add(x, y), y], VECTOR, VECTOR),
        trace(lambda x: [reduce_sum(x, axes=(0,))], matrix),
        trace(lambda x: [reduce_sum(x, axes=(1,))], matrix),
        branching(trace(lambda x: [x], VECTOR)),
        branching(trace(lambda x: [add(x, x)], VECTOR)),
        *map(constant, (np.float64(0.0), np.float64(-0.0), np.float32(0.0), np.int64(0), np.float64(np.nan))),
    ]
    assert all(content_key(p) != content_key(q) for p, q in combinations(programs, 2))


def test_a_nan_equals_itself() -> None:
    assert content_key(constant(np.float64(np.nan))) == content_key(constant(np.float64(np.nan)))


def test_params_count_to_the_bit() -> None:
    values = [1, 1.0, True, 0, 0.0, -0.0, False, None, "1", float("nan"), (1,), (1.0,), (True,), np.dtype("f4"), ()]
    keys: list[Hashable] = [static_key(value) for value in values]
    assert len(set(keys)) == len(values)
    assert static_key((float("nan"),)) == static_key((float("nan"),))

"""Sums of cotangents that are zero but in a part: the same numbers, and arrays are never added whole for an element."""

from __future__ import annotations

import numpy as np
import pytest

from fnad.backends.cpu.executor import compile_program
from fnad.backends.cpu.target import CPU
from fnad.control.scan import scan
from fnad.ir.builder import trace
from fnad.ir.types import F64, I64, Aval
from fnad.lower.loop_ir import NestLoop, controls
from fnad.lower.lowering import lower
from fnad.ops.arithmetic import add, mul
from fnad.ops.elementary import exp, sin
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice, gather, scatter_add
from fnad.ops.shape import broadcast_in_dim, full_like, reduce_sum, zeros_like
from fnad.transforms.differentiation import joint
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify
from fnad.transforms.sums import Sums

N = 50
ROW, NUMBER = Aval(F64, (N,)), Aval(I64)

READS = {
    "a part, then all": lambda x, i: [add(reduce_sum(mul(x, x), axes=(0,)), reduce_sum(exp(part(x, i)), axes=(0,)))],
    "two parts": lambda x, i: [reduce_sum(mul(part(x, i), sin(part(x, i + 1))), axes=(0,))],
    "an element twice": lambda x, i: [mul(gather(x, i), exp(gather(x, i + 0)))],
    "an element and a part": lambda x, i: [mul(gather(x, i), reduce_sum(part(x, i), axes=(0,)))],
    "elements": lambda x, i: [reduce_sum(mul(gather(x, some(i)), gather(x, some(i + 1))), axes=(0,))],
}


def part(x, i):
    return dynamic_slice(x, i, sizes=(3,))


def some(i):
    return broadcast_in_dim(i, shape=(4,), dims=())


@pytest.mark.parametrize("name", READS)
def test_the_gradient_is_that_of_differences(name):
    program = trace(READS[name], ROW, NUMBER, name="f")
    pulled = simplify(joint(program, [True, False]))
    x, i, h = np.random.default_rng(0).random(N), np.int64(7), 1e-6
    gradient = interpret(pulled, [x, i, np.float64(1.0)])[1]
    shifted = [[interpret(program, [x + s * h * e, i])[0] for s in (1, -1)] for e in np.eye(N)]
    np.testing.assert_allclose(gradient, [(a - b) / (2 * h) for a, b in shifted], atol=1e-8)
    np.testing.assert_allclose(compile_program(pulled)([x, np.asarray(i), np.asarray(1.0)])[1], gradient, rtol=1e-14)


def test_what_is_not_written_into_zeros_is_added_as_it_is():
    added = trace(lambda x, y: [Sums().add(x, y), Sums().add(zeros_like(x), y)], ROW, ROW, name="f")
    assert [equation.primitive.name for equation in added.equations] == ["add", "broadcast_in_dim", "add"]


def element(x, i):
    return dynamic_slice(x, i, sizes=(1,))


STEPS = {
    "the next element": lambda x, u, i: dynamic_update_slice(u, sin(element(u, i)), i + 1),
    "the same element": lambda x, u, i: dynamic_update_slice(u, sin(element(u, i)), i),
    "two elements of an array": lambda x, u, i: dynamic_update_slice(u, mul(element(x, i), exp(element(x, i + 1))), i),
    "an element twice": lambda x, u, i: dynamic_update_slice(
        dynamic_update_slice(u, sin(element(x, i)), i),
        mul(element(dynamic_update_slice(u, sin(element(x, i)), i), i), element(u, i)),
        i,
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_loop_over_elements_goes_back_element_by_element(name):
    params = {"consts": 1, "carry": 2, "length": N - 1, "reverse": False}
    body = trace(lambda x, i, u: [i + 1, STEPS[name](x, u, i)], ROW, NUMBER, ROW, name="body")
    program = trace(lambda u: [scan(mul(u, u), np.int64(0), u, **params, regions=(body,))[1]], ROW, name="f")
    pulled = simplify(joint(program, [True]))
    loops = [control for item in lower(pulled, CPU).items for control in controls(item)]
    assert len(loops) == 2
    assert not any(isinstance(item, NestLoop) for loop in loops for items in loop.bodies for item in items)
    u, ct, h = np.random.default_rng(0).random(N), np.random.default_rng(1).random(N), 1e-6
    shifted = [[ct @ interpret(program, [u + s * h * e])[0] for s in (1, -1)] for e in np.eye(N)]
    gradient = compile_program(pulled)([u, ct])[1]
    np.testing.assert_allclose(gradient, [(a - b) / (2 * h) for a, b in shifted], atol=1e-8)


@pytest.mark.parametrize("base", [0.0, -0.0, 2.0])
def test_a_part_is_written_into_zeros_or_the_whole_is_added(base):
    def parts(x, i):
        there = full_like(x, base)
        return [dynamic_update_slice(there, part(x, i), i), scatter_add(there, gather(x, some(i)), some(i))]

    both = trace(
        lambda x, i: [total for y in parts(x, i) for total in (Sums().add(x, y), Sums().add(y, x))], ROW, NUMBER
    )
    plain = trace(lambda x, i: [total for y in parts(x, i) for total in (add(x, y), add(y, x))], ROW, NUMBER)
    given = [np.random.default_rng(0).random(N), np.int64(7)]
    for found, wanted in zip(interpret(both, given), interpret(plain, given), strict=True):
        np.testing.assert_array_equal(found, wanted)

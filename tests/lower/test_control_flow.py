"""Loops and branches in the loops IR: what is hoisted, what is overwritten where it lies, what shares memory."""

from __future__ import annotations

import numpy as np
import pytest

from fnad.backends.cpu.executor import compile_program, plan
from fnad.backends.cpu.target import CPU
from fnad.control.cond import cond
from fnad.control.scan import scan
from fnad.ir.builder import trace
from fnad.ir.types import F64, I64, Aval
from fnad.lower.loop_ir import BufferStore, NestLoop, SequentialFor, controls, effects
from fnad.lower.lowering import lower
from fnad.lower.printer import loops_text
from fnad.ops.arithmetic import add, mul, sub
from fnad.ops.comparison import lt
from fnad.ops.elementary import exp, sin
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice, gather, scatter, scatter_add
from fnad.ops.shape import broadcast_in_dim, iota, reduce_sum, reshape, reverse
from fnad.transforms.interpret import interpret
from tests.steps import steps

N = 40
ROW, SCALAR, NUMBER, ELEMENT = Aval(F64, (N,)), Aval(F64), Aval(I64), Aval(F64, (1,))


def scanned(step, consts, carry, length=5):
    """Return the program of a scan over nothing but the number of the step, which is carried first."""
    avals = [*consts, NUMBER, *carry]
    body = trace(lambda *v: [v[len(consts)] + 1, *step(*v)], *avals, name="body")
    params = {"consts": len(consts), "carry": 1 + len(carry), "length": length, "reverse": False}
    return trace(lambda *v: list(scan(*v, **params, regions=(body,))[1:]), *avals, name="f")


def arrays(program):
    rng = np.random.default_rng(0)
    return [np.asarray(rng.random(a.shape) if a.dtype == F64 else np.ones(a.shape), a.dtype) for a in program.in_avals]


def check(program):
    given = arrays(program)
    for found, expected in zip(compile_program(program)(given), interpret(program, given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def loops_in_turns(program):
    """Return the extents of the loops that a turn of a loop runs."""
    return [
        inner.extent
        for item in lower(program, CPU).items
        for control in controls(item)
        for body in control.bodies
        for inner in body
        if isinstance(inner, NestLoop)
    ]


def element(u, i):
    return dynamic_slice(u, i, sizes=(1,))


def fill(i, u):
    return [dynamic_update_slice(u, sin(element(u, i - 1)), i)]


def test_an_element_of_a_carried_array_is_written_where_it_lies():
    program = scanned(fill, [], [ROW])
    assert loops_in_turns(program) == []
    check(program)


def test_loops_in_loops_hand_the_array_on():
    inner = trace(lambda j, u: [j + 1, *fill(j, u)], NUMBER, ROW, name="inner")
    params = {"consts": 0, "carry": 2, "length": 4, "reverse": False}
    program = scanned(lambda i, u: [scan(i, u, **params, regions=(inner,))[1]], [], [ROW])
    assert loops_in_turns(program) == []
    check(program)


def test_straight_updates_of_a_fresh_array_copy_nothing():
    def f(x, i):
        u = sin(x)
        for k in range(4):
            u = dynamic_update_slice(u, element(u, i + k), i + (k + 1))
            u = scatter_add(u, gather(u, i), i)
        return [u]

    program = trace(f, ROW, NUMBER, name="f")
    assert [item.extent for item in lower(program, CPU).items if isinstance(item, NestLoop)] == [N]
    assert plan(program).slots == []
    check(program)


@pytest.mark.parametrize(
    "change",
    [
        lambda u, i: scatter(u, mul(gather(u, i), gather(u, i)), i),
        lambda u, i: scatter_add(u, gather(u, i), i),
    ],
    ids=["set", "add"],
)
def test_where_places_come_again_all_new_elements_are_computed_from_old_ones(change):
    program = trace(lambda x, i: [change(change(exp(x), i), i)], ROW, Aval(I64, (5,)), name="f")
    assert len(plan(program).slots) == 1, "the new elements alone"
    check(program)  # in which all places are 1


def test_where_places_count_an_axis_elements_are_overwritten():
    def f(x, i):
        u, rows = broadcast_in_dim(exp(x), shape=(N, N), dims=(0,)), iota(shape=(N,), axis=0, dtype=I64)
        u = scatter(u, gather(x, i), rows, i)
        return [scatter(u, mul(gather(u, rows, i), gather(u, rows, i)), rows, i)]

    program = trace(f, ROW, Aval(I64, (N,)), name="f")
    assert plan(program).slots == []
    check(program)


@pytest.mark.parametrize(
    "read",
    [
        lambda old, new, i: [new, old],
        lambda old, new, i: [add(new, old)],
        lambda old, new, i: [add(new, reverse(mul(old, old), axes=(0,)))],
        lambda old, new, i: [dynamic_update_slice(new, element(old, i), i - 1)],
    ],
    ids=["returned", "read in full", "read through an expression", "read in part"],
)
def test_an_array_that_is_read_later_is_copied(read):
    def f(x, i):
        old = sin(x)
        return read(old, dynamic_update_slice(old, element(old, i + 2), i), i)

    check(trace(f, ROW, NUMBER, name="f"))
    check(scanned(lambda i, u: read(u, dynamic_update_slice(u, element(u, i + 2), i), i)[:1], [], [ROW]))


def test_arguments_and_constants_are_never_written():
    def f(x, i):
        return [dynamic_update_slice(x, element(x, i + 1), i)]

    program, given = trace(f, ROW, NUMBER, name="f"), arrays(trace(f, ROW, NUMBER, name="f"))
    before = given[0].copy()
    compile_program(program)(given)
    np.testing.assert_array_equal(given[0], before)
    check(scanned(lambda c, i, u: [add(u, dynamic_update_slice(c, element(c, i), i - 1))], [ROW], [ROW]))


def test_a_box_of_elements_from_elsewhere_in_the_array_is_read_before_it_is_written():
    def shift(i, u):
        return [dynamic_update_slice(u, dynamic_slice(u, i, sizes=(N // 2,)), i + 1)]

    program = scanned(shift, [], [ROW])
    assert loops_in_turns(program) == [N // 2, N // 2]
    check(program)


def test_elements_that_are_computed_from_their_own_place_are_overwritten():
    program = scanned(lambda i, u, v: [sub(u, mul(v, v)), exp(mul(v, v))], [], [ROW, ROW])
    slots = plan(program).slots
    assert slots == [], "carries lie in the outputs, and nothing else is needed"
    check(program)


def test_elements_that_are_computed_from_others_are_computed_aside():
    program = scanned(lambda i, u: [add(u, reverse(u, axes=(0,)))], [], [ROW])
    assert len(plan(program).slots) == 1
    check(program)


def test_what_lives_within_a_turn_shares_memory():
    def step(i, u):
        tenth = broadcast_in_dim(np.float64(0.1 / N), shape=(N,), dims=())
        for _ in range(6):
            total = broadcast_in_dim(reduce_sum(exp(u), axes=(0,)), shape=(N,), dims=())
            u = sin(mul(reverse(exp(u), axes=(0,)), mul(total, tenth)))
        return [u]

    program = scanned(step, [], [ROW])
    assert len(plan(program).slots) <= 3
    check(program)


def test_slices_are_read_and_rows_are_written_where_they_lie():
    body = trace(lambda x: [reshape(mul(x, x), shape=(N,))], Aval(F64, (1, N)), name="body")
    params = {"consts": 0, "carry": 0, "length": 3, "reverse": False}
    program = trace(lambda x: list(scan(x, **params, regions=(body,))), Aval(F64, (3, 1, N)), name="f")
    (loop,) = lower(program, CPU).items
    assert isinstance(loop, SequentialFor)
    (effect,) = effects(loop)
    assert isinstance(effect, BufferStore)
    check(program)


def test_the_text_of_control_flow():
    text = loops_text(lower(scanned(fill, [], [ROW], length=3), CPU))
    assert "  scan i0 < 3:\n" in text


def test_an_array_that_a_branch_changes_is_changed_where_it_lies():
    change, leave = (trace(f, NUMBER, ROW, name="branch") for f in (lambda i, u: [*fill(i, u)], lambda i, u: [u]))

    def step(i, u):
        chosen = lt(reshape(element(u, i), shape=()), np.float64(0.5))
        return list(cond(chosen, i, u, regions=(leave, change)))

    program = scanned(step, [], [ROW])
    assert loops_in_turns(program) == []
    assert not any(
        isinstance(effect, BufferStore) and effect.buffer.aval == ROW for effect in effects(in_turns(program))
    )
    check(program)


def in_turns(program):
    (loop,) = (item for item in lower(program, CPU).items if isinstance(item, SequentialFor))
    return loop


def test_what_reads_an_array_comes_before_what_overwrites_it():
    def exchange(i, u):
        old = element(u, i)
        changed = dynamic_update_slice(u, sin(element(u, i + 1)), i)
        return [dynamic_update_slice(changed, add(old, element(u, i + 2)), i + 1)]

    program = scanned(exchange, [], [ROW])
    assert loops_in_turns(program) == []
    check(program)


def test_branches_that_change_different_arrays_copy_them():
    first = trace(lambda i, u, v: [*fill(i, u), v], NUMBER, ROW, ROW, name="first")
    second = trace(lambda i, u, v: [*fill(i, v), u], NUMBER, ROW, ROW, name="second")

    def step(i, u, v):
        chosen = lt(reshape(element(u, i), shape=()), np.float64(0.5))
        return list(cond(chosen, i, u, v, regions=(first, second)))

    check(scanned(step, [], [ROW, ROW]))


@pytest.mark.slow
def test_a_thousand_updates_are_lowered_as_ten_are():
    def f(x, i):
        for k in range(1500):
            x = dynamic_update_slice(x, element(x, i + k % 7), i + k % 5)
        return [x]

    copy, *updates = lower(trace(f, ROW, NUMBER, name="f"), CPU).items
    assert isinstance(copy, NestLoop)
    assert not any(isinstance(item, NestLoop) for item in updates)


@pytest.mark.slow
def test_the_effort_grows_with_the_number_of_carries() -> None:
    def work(count: int) -> int:
        program = scanned(lambda number, *carry: [mul(x, carry[0]) for x in carry], [], [ROW] * count)
        return steps(lambda: lower(program, CPU))

    assert work(120) < 5 * work(40)

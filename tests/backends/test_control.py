"""Compiled branches and loops: the interpreter's values, native and in Python, and how a run may end early."""

from __future__ import annotations

import os
import signal
import threading
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fnad.backends.cpu.executor import compile_program
from fnad.control.cond import cond
from fnad.control.scan import scan
from fnad.control.while_loop import while_loop
from fnad.errors import LoopLimitError, OutOfRangeError, VerificationError
from fnad.ir.builder import trace
from fnad.ir.types import DTYPES, F64, I64, Aval, aval_of
from fnad.ops.arithmetic import add, mul
from fnad.ops.comparison import lt, ne
from fnad.ops.contraction import dot_general
from fnad.ops.elementary import sin, tanh
from fnad.ops.indexing import dynamic_slice, dynamic_update_slice, gather
from fnad.ops.shape import reduce_sum
from fnad.ops.sorting import argsort
from fnad.testing import tolerance
from fnad.transforms.interpret import interpret
from tests.kernel_text import compile_source
from tests.random_control import random_control_program
from tests.together import some_of

few = settings(max_examples=6)
SCALAR, ROW, NUMBER = Aval(F64), Aval(F64, (3,)), Aval(I64)


def check(program, arguments):
    """Compare a compiled program with the interpreter, twice: the second run finds what the first has left."""
    run, expected = compile_program(program), [np.asarray(e) for e in interpret(program, arguments)]
    for _ in range(2):
        for found, value in zip(run(arguments), expected, strict=True):
            assert (found.dtype, found.shape) == (value.dtype, value.shape)
            tol = tolerance(found.dtype)
            np.testing.assert_allclose(found, value, rtol=100 * tol, atol=100 * tol)


def scanned(body, consts, carry, xs, *, length, reverse=False):
    """Return the program of a scan over these arrays, and the arrays."""
    arrays = [np.asarray(array) for array in (*consts, *carry, *xs)]
    rows = [aval_of(x).with_shape(x.shape[1:]) for x in xs]
    region = trace(body, *map(aval_of, arrays[: len(consts) + len(carry)]), *rows, name="body")
    params = {"consts": len(consts), "carry": len(carry), "length": length, "reverse": reverse}
    return trace(lambda *v: list(scan(*v, **params, regions=(region,))), *map(aval_of, arrays), name="f"), arrays


def looped(test, body, carry, **limit):
    """Return the program of a while loop without constants, and its arguments."""
    avals = [aval_of(np.asarray(value)) for value in carry]
    regions = trace(test, *avals, name="test"), trace(body, *avals, name="body")
    params = {"test_consts": 0, "body_consts": 0, "max_steps": None, **limit}
    program = trace(lambda *v: list(while_loop(*v, **params, regions=regions)), *avals, name="f")
    return program, [np.asarray(value) for value in carry]


# ---- random programs -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@few
@given(st.randoms(use_true_random=False))
def test_random_control_flow_is_interpreted(random: Random):
    check(*random_control_program(random))


@pytest.mark.slow
@few
@given(st.randoms(use_true_random=False))
def test_control_flow_around_library_calls_is_interpreted(random: Random):
    check(*random_control_program(random, library=True))


# ---- loops -----------------------------------------------------------------------------------------------------------


SCANS = list(product([0, 1, 5], [False, True]))


@pytest.mark.parametrize("name", DTYPES)
def test_a_scan_over_any_dtype(name):
    """In all ways of doubles, in one that is drawn of others."""
    for length, reverse in SCANS if name == "f64" else some_of(SCANS, name):
        check_scan(DTYPES[name], length, reverse)


def check_scan(dtype, length, reverse):
    xs = np.arange(3 * length).reshape(length, 3).astype(dtype)
    program = scanned(
        lambda a, s, x: [x, a, s], [np.ones((), dtype)], [np.zeros(3, dtype)], [xs], length=length, reverse=reverse
    )
    check(*program)


def test_carries_that_change_places():
    def swap(a, b, x, y):
        return [b, a, y, add(x, y), a, y]

    numbers = np.float64(1.0), np.float64(2.0), np.arange(3.0), np.ones(3)
    check(*scanned(swap, [], numbers, [], length=5))


def test_carries_in_a_ring_of_three():
    arrays = [np.arange(4.0) + k for k in range(3)]
    check(*scanned(lambda a, b, c: [b, c, sin(a)], [], arrays, [], length=7))


def test_a_carry_that_reads_its_other_elements():
    def rotate(u):
        first, rest = dynamic_slice(u, np.int64(0), sizes=(1,)), dynamic_slice(u, np.int64(1), sizes=(4,))
        moved = dynamic_update_slice(u, rest, np.int64(0))
        return [dynamic_update_slice(moved, first, np.int64(4))]

    check(*scanned(rotate, [], [np.arange(5.0)], [], length=7))


def test_what_is_a_constant_a_carry_and_an_output():
    x = np.arange(3.0)
    region = trace(lambda c, s, x: [c, s, s, c, x], ROW, ROW, SCALAR, name="body")
    params = {"consts": 1, "carry": 1, "length": 3, "reverse": False}

    def f(x):
        carry, *ys = scan(x, x, x, **params, regions=(region,))
        return [carry, x, carry, *ys]

    check(trace(f, ROW, name="f"), [x])


def test_outputs_that_are_constants():
    one = np.float64(1.0)
    check(*scanned(lambda s: [one, one], [], [np.float64(3.0)], [], length=3))


def test_a_scan_with_matrix_products():
    rng = np.random.default_rng(0)
    w, h, xs = rng.normal(size=(20, 20)), rng.normal(size=(4, 20)), rng.normal(size=(6, 4, 20))

    def step(w, h, x):
        new = tanh(add(dot_general(h, w, contract=((1,), (1,)), batch=((), ())), x))
        return [new, reduce_sum(new, axes=(0,))]

    check(*scanned(step, [w], [h], [xs], length=6))


def test_what_depends_on_constants_alone_is_computed_before_the_loop():
    program, arrays = scanned(lambda a, s: [add(s, sin(a))], [np.arange(3.0)], [np.zeros(3)], [], length=4)
    before, inside = compile_program(program).source.split("range(4)")
    assert "sin(" in before
    assert "sin(" not in inside
    check(program, arrays)


def test_a_failing_index_is_not_looked_at_in_a_loop_of_no_steps():
    def step(x, i, s):
        return [add(s, gather(x, i))]

    check(*scanned(step, [np.arange(3.0), np.int64(7)], [np.float64(0.0)], [], length=0))


def test_a_scan_of_a_length_given_by_the_run_reads_tapes():
    body = trace(lambda s, i: [mul(s, s), i + 1, s, i], SCALAR, NUMBER, name="body")
    test = trace(lambda s, i: [lt(i, np.int64(5000))], SCALAR, NUMBER, name="test")
    back = trace(lambda total, s, i: [add(total, s), total], SCALAR, SCALAR, NUMBER, name="back")

    def f(s):
        params = {"test_consts": 0, "body_consts": 0, "max_steps": None}
        _, _, steps, *stacks = while_loop(s, np.int64(0), **params, regions=(test, body))
        params = {"consts": 0, "carry": 1, "length": None, "reverse": True}
        return [steps, *stacks, *scan(steps, s, *stacks, **params, regions=(back,))]

    check(trace(f, SCALAR, name="f"), [np.float64(0.999)])


def test_a_fault_in_a_loop_has_the_error_of_straight_code_and_ends_a_search():
    x = np.zeros(4)

    def run_off(x, i):
        return ne(gather(x, i), np.float64(1.0))

    regions = trace(lambda x, i: [run_off(x, i)], Aval(F64, (4,)), NUMBER, name="t"), trace(lambda i: [i + 1], NUMBER)
    params = {"test_consts": 1, "body_consts": 0, "max_steps": None}
    program = trace(lambda x, i: list(while_loop(x, i, **params, regions=regions)), Aval(F64, (4,)), NUMBER, name="f")
    run = compile_program(program)
    with pytest.raises(OutOfRangeError):
        run([x, np.int64(0)])
    x[2] = 1.0
    assert run([x, np.array(0)])[0] == 2


@pytest.mark.parametrize("library", [False, True], ids=["native", "in Python"])
def test_more_steps_than_allowed_are_an_error(library):
    def step(s, order):
        return [s + 1, argsort(order, axis=0, stable=True) if library else order]

    def program(limit):
        return looped(lambda s, order: [lt(s, np.int64(10))], step, [np.int64(0), np.arange(3)], max_steps=limit)

    check(*program(10))
    compiled, arguments = program(9)
    run = compile_program(compiled)
    for _ in range(2):
        with pytest.raises(LoopLimitError, match="9"):
            run(arguments)


# ---- branches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 7])
def test_the_branch_that_is_numbered_runs(index):
    branches = [trace(lambda x, k=k: [mul(x, x), np.float64(k)], ROW, name="b") for k in range(3)]
    program = trace(lambda i, x: list(cond(i, x, regions=tuple(branches))), NUMBER, ROW, name="f")
    check(program, [np.int64(index), np.arange(3.0)])


def test_only_the_branch_taken_runs():
    """The other one would fail, or never end."""
    forever = trace(lambda x: [x], SCALAR, name="body")
    always = trace(lambda x: [np.bool_(True)], SCALAR, name="test")
    params = {"test_consts": 0, "body_consts": 0, "max_steps": None}
    spin = trace(lambda x: [while_loop(x, **params, regions=(always, forever))[0]], SCALAR, name="spin")
    program = trace(
        lambda c, x: list(cond(c, x, regions=(trace(lambda x: [x], SCALAR, name="a"), spin))),
        Aval(np.dtype(bool)),
        SCALAR,
        name="f",
    )
    check(program, [np.bool_(False), np.float64(2.0)])


# ---- interruption ----------------------------------------------------------------------------------------------------


ENDLESS = {
    "while": lambda: looped(lambda s: [lt(s, np.int64(2**62))], lambda s: [s + 1], [np.int64(0)]),
    "a given number of steps": lambda: scanned(lambda s: [sin(s)], [], [np.float64(1.0)], [], length=10**12),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_a_native_loop_answers_ctrl_c(request, kind):
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, handler))
    program, arguments = ENDLESS[kind]()
    run = compile_program(program)
    timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run(arguments)
    check(*scanned(lambda s: [sin(s)], [], [np.float64(1.0)], [], length=3))


def test_emitted_loops_run_as_plain_python(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert compile_program(trace(lambda x: [sin(x)], SCALAR, name="f")).llvm() == ""
    test_a_scan_of_a_length_given_by_the_run_reads_tapes()
    test_carries_that_change_places()
    test_the_branch_that_is_numbered_runs(1)


def test_a_loop_states_a_failure_that_there_is():
    with pytest.raises(VerificationError, match="a loop may not fail with KeyError"):
        looped(lambda x: [lt(x, x)], lambda x: [x], [1.0], max_steps=1, failure=("KeyError", "what", "remedy"))


@pytest.mark.parametrize(
    "body",
    [
        "    for i in range(2, -1, -1):\n        v = x[i] + x[i]\n    out[0] = v\n",
        "    for i in range(1):\n        for j in range(1):\n            v = x[0] + x[0]\n        out[0] = v\n",
        "    for i in range(1):\n        v = x[0] + x[0]\n    for j in range(2):\n        out[j] = v\n",
        "    if x[0] == 1.0:\n        v = x[0] + x[0]\n    if x[0] == 1.0:\n        out[0] = v\n",
        "    while True:\n        v = x[0] + x[0]\n        if v == 2.0:\n            break\n    out[0] = v\n",
    ],
)
def test_a_variable_that_is_used_after_the_block_it_is_assigned_in(body):
    run = compile_source(f"def f(x, out):\n{body}", "f", [F64, F64])
    out = np.zeros(2)
    run.call(np.array([1.0, 5.0, 7.0]), out)
    assert out[0] == 2.0

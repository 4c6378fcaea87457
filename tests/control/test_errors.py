"""Loops and branches that cannot be: the class of the error, the leaf, the user's line and the way out."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.errors import (
    ArgumentTypeError,
    DtypeError,
    FnadError,
    MutationError,
    OutOfRangeError,
    RandomDrawError,
    SettingError,
    ShapeError,
    StructureError,
    TracerEscapeError,
    UsedAfterTraceError,
)

ONE, ROW = np.float64(1.0), np.ones(3)


def line_of(error: FnadError) -> str:
    """Return the user's line that the error shows."""
    return str(error).splitlines()[1].split(":  ", 1)[1]


def refused(f: Any, *args: Any, alone: bool = True) -> tuple[FnadError, str]:
    """Return the error of a call, under `jit`, under `grad` and `alone`, which has to be the same, and its message."""
    errors: list[FnadError] = []
    for transform in (*[lambda f: f] * alone, fnad.jit, fnad.grad):
        with pytest.raises(FnadError) as raised:
            transform(f)(*args)
        errors.append(raised.value)
    assert len({(type(error), str(error)) for error in errors}) == 1
    return errors[-1], str(errors[-1])


def half(x):
    return x / 2


def pair_of(x):
    return x, x


def tripled(x):
    return np.stack([x, x, x])


def rounded(x):
    return {"n": np.round(x).astype(int), "x": x}


def kept(x):
    return {"n": x, "x": x}


# ---- branches --------------------------------------------------------------------------------------------------------

FILE = "test_errors.py"


def test_branches_of_different_structure():
    error, message = refused(lambda x: fnad.cond(x > 0, pair_of, half, x), ONE)
    first = f"the result of true_fun, pair_of ({FILE}:{pair_of.__code__.co_firstlineno}) is (*, *), and "
    second = f"the result of false_fun, half ({FILE}:{half.__code__.co_firstlineno}) is *"
    assert message.splitlines()[0] == first + second
    assert isinstance(error, StructureError)
    assert "fnad.cond(x > 0, pair_of, half, x)" in line_of(error)
    assert message.splitlines()[2] == "  return the same containers with the same keys, and as many leaves"


def test_branches_of_different_shapes():
    error, message = refused(lambda x: fnad.cond(x > 0, tripled, half, x), ONE)
    places = [f"({FILE}:{f.__code__.co_firstlineno})" for f in (half, tripled)]
    expected = "the branches differ in result: f64[] from false_fun, half {}; f64[3] from true_fun, tripled {}"
    assert message.splitlines()[0] == expected.format(*places)
    assert isinstance(error, StructureError)
    assert "fnad.cond(x > 0, tripled, half, x)" in line_of(error)
    assert "np.broadcast_to" in message.splitlines()[2]


def test_branches_of_different_dtypes():
    error, message = refused(lambda x: fnad.switch(np.int64(1), [kept, rounded, kept], x)["x"], ONE)
    assert message.startswith("the branches differ in result['n']: f64[] from branches[0], kept (")
    assert "; i64[] from branches[1], rounded (" in message
    assert isinstance(error, StructureError)
    assert "fnad.switch(np.int64(1)" in line_of(error)


@pytest.mark.parametrize(
    ("pred", "what"),
    [
        (np.array([True, False]), "an array of dtype bool and shape (2,)"),
        (1, "int"),
        (1.0, "float"),
        (np.float64(1.0), "numpy.float64"),
        ("yes", "str"),
        (None, "NoneType"),
    ],
)
def test_a_predicate_that_is_no_bool(pred, what):
    error, message = refused(lambda x: fnad.cond(pred, half, half, x), ONE)
    assert message.splitlines()[0] == f"pred of cond is {what}, not a bool scalar"
    assert isinstance(error, ArgumentTypeError)
    assert "fnad.cond(pred, half, half, x)" in line_of(error)
    assert message.splitlines()[2] == "  compare with np.all, np.any or one element to get one bool"


def test_a_traced_predicate_that_is_no_bool():
    error, message = refused(lambda x: fnad.cond(x > 0, half, half, x)[0], ROW)
    assert message.startswith("pred of cond is an array of dtype bool and shape (3,), not a bool scalar")
    assert isinstance(error, ArgumentTypeError)


def test_an_index_that_is_none():
    for index, what in ((True, "bool"), (1.0, "float"), (np.array([1]), "an array of dtype int64 and shape (1,)")):
        error, message = refused(lambda x, i=index: fnad.switch(i, [half], x), ONE)
        assert message.startswith(f"index of switch is {what}, not an integer scalar")
        assert isinstance(error, ArgumentTypeError)
    error, message = refused(lambda x: fnad.switch(0, [], x), ONE)
    assert message.startswith("switch was given no branches")


def test_what_is_no_function():
    for call, what in (
        (lambda x: fnad.cond(True, "x", half, x), "true_fun of cond is str"),
        (lambda x: fnad.switch(0, [half, 3], x), "branches[1] of switch is int"),
        (lambda x: fnad.while_loop(half, 3, x), "body_fun of while_loop is int"),
        (lambda x: fnad.fori_loop(0, 3, None, x), "body_fun of fori_loop is NoneType"),
        (lambda x: fnad.scan(2.0, x, ROW), "f of scan is float"),
    ):
        error, message = refused(call, ONE)
        assert message.startswith(what)
        assert isinstance(error, ArgumentTypeError)
        assert message.splitlines()[2] == "  give the function itself, not its result"


# ---- carries ---------------------------------------------------------------------------------------------------------


def doubled(s):
    return np.concatenate([s, s])


def test_a_carry_that_changes_its_shape():
    error, message = refused(lambda x: np.sum(fnad.while_loop(lambda s: np.sum(s) < 9, doubled, x)), ROW)
    assert (
        message.splitlines()[0]
        == f"carry is f64[3] and becomes f64[6] in doubled ({FILE}:{doubled.__code__.co_firstlineno})"
    )
    assert isinstance(error, StructureError)
    assert "fnad.while_loop(" in line_of(error)
    assert message.splitlines()[2] == "  a carry keeps its shape: start it in the shape that the body returns"
    loops = (
        lambda x: fnad.fori_loop(0, 2, lambda i, s: {"w": (s["w"][0], doubled(s["w"][1]))}, {"w": (1.0, x)}),
        lambda x: fnad.scan(lambda s, _: ({"w": (s["w"][0], doubled(s["w"][1]))}, None), {"w": (1.0, x)}, length=2)[0],
    )
    for loop in loops:
        _, message = refused(lambda x, loop=loop: np.sum(loop(x)["w"][1]), ROW)
        assert message.startswith("carry['w'][1] is f64[3] and becomes f64[6] in <lambda> (")


def test_a_carry_that_becomes_another_pytree():
    error, message = refused(lambda x: fnad.fori_loop(0, 3, lambda i, s: [s[0] * i], (x,))[0], ONE)
    assert message.startswith("the carry that <lambda> (")
    assert message.splitlines()[0].endswith(" returned is [*], and the one it was given is (*,)")
    assert isinstance(error, StructureError)
    _, message = refused(lambda x: fnad.while_loop(lambda s: s["a"] < 3, lambda s: {"b": s["a"]}, {"a": x})["a"], ONE)
    assert "is {'b': *}, and the one it was given is {'a': *}" in message
    _, message = refused(lambda x: fnad.scan(lambda s, _: ((s, s), None), x, length=3)[0], ONE)
    assert "is (*, *), and the one it was given is *" in message


def test_a_body_of_scan_that_returns_no_pair():
    error, message = refused(lambda x: fnad.scan(lambda s, _: s, x, length=3)[0], ONE)
    assert message.splitlines()[0].endswith(" returned f64[], where scan wants a pair")
    assert message.splitlines()[2] == "  return (carry, y); y may be None"
    assert isinstance(error, StructureError)


def test_a_test_of_while_loop_that_is_no_bool():
    for test, found in ((half, "f64[]"), (lambda s: np.stack([s > 1, s > 2]), "bool[2]"), (lambda s: None, "nothing")):
        error, message = refused(lambda x, test=test: fnad.while_loop(test, half, x), ONE)
        assert message.startswith("the condition of while_loop, ")
        assert message.splitlines()[0].endswith(f"), returned {found}, not one bool")
        assert isinstance(error, ArgumentTypeError)


def test_what_is_no_leaf():
    for call, what in (
        (lambda x: fnad.scan(lambda s, x: (s, x), {"a": "b"}, x)[1][0], "init['a'] is of type str"),
        (lambda x: fnad.scan(lambda s, x: (s, x[0]), x, (x, "b"))[0][0], "xs[1] is of type str"),
        (lambda x: fnad.fori_loop(0, 3, lambda i, s: s, (x, "b"))[0][0], "init_val[1] is of type str"),
        (lambda x: fnad.while_loop(lambda s: True, lambda s: s, (x, "b"))[0][0], "init_val[1] is of type str"),
        (lambda x: fnad.cond(True, half, half, {"a": "b"})[0], "operands[0]['a'] is of type str"),
        (lambda x: fnad.map(half, ["b"])[0], "xs[0] is of type str"),
    ):
        error, message = refused(call, ROW)
        assert message.startswith(what)
        assert isinstance(error, ArgumentTypeError)


# ---- lengths ---------------------------------------------------------------------------------------------------------


def test_axes_of_different_lengths():
    error, message = refused(lambda x: fnad.scan(lambda s, x: (s, x["a"]), 0.0, {"a": x, "b": np.ones((4, 2))})[0], ROW)
    assert message.splitlines()[0] == "scan goes over axes of different lengths: xs['a'] has 3, xs['b'] has 4"
    assert isinstance(error, ShapeError)
    assert "fnad.scan(" in line_of(error)
    _, message = refused(lambda x: fnad.scan(lambda s, x: (s, x), 0.0, x, length=4)[0], ROW)
    assert message.splitlines()[0] == "scan goes over axes of different lengths: length has 4, xs has 3"
    _, message = refused(lambda x: fnad.scan(lambda s, x: (s, x), 0.0, (ROW, x))[0], ONE)
    assert message.splitlines()[0] == "scan goes over leading axes, and xs[1] is f64[]"
    error, message = refused(lambda x: fnad.scan(lambda s, x: (s, x), x)[0], ONE)
    assert message.splitlines()[0] == "scan was given neither arrays to go over nor a length"
    assert isinstance(error, ArgumentTypeError)


def test_wrong_lengths_and_bounds_of_loops_are_named():
    step = lambda s, _: (s, None)  # noqa: E731
    for call, what in (
        (lambda x: fnad.scan(step, x, length=-1)[0], "length is -1"),
        (lambda x: fnad.scan(step, x, length=2.0)[0], "length is of type float, not an int"),
        (lambda x: fnad.scan(step, x, length=3, unroll=0)[0], "unroll is 0"),
        (lambda x: fnad.while_loop(lambda s: s < 3, half, x, max_steps=-2), "max_steps is -2"),
        (lambda x: fnad.fori_loop(0, 2.5, lambda i, s: s, x), "a bound of fori_loop is of type float"),
        (lambda x: fnad.fori_loop(0, x, lambda i, s: s, x), "a bound of fori_loop is of type "),
        (lambda x: fnad.fori_loop(True, 3, lambda i, s: s, x), "a bound of fori_loop is of type bool"),
    ):
        with pytest.raises(ArgumentTypeError) as raised:
            fnad.jit(call)(ONE)
        assert str(raised.value).startswith(what)
        assert len(str(raised.value).splitlines()) == 3


def test_a_traced_length():
    with pytest.raises(ArgumentTypeError) as raised:
        fnad.jit(lambda x, n: fnad.scan(lambda s, _: (s, None), x, length=n))(1.0, np.int64(3))
    assert str(raised.value).splitlines()[0] == "length is of type i64[], not an int"
    assert "fori_loop takes traced bounds" in str(raised.value)


# ---- what Python does in a body --------------------------------------------------------------------------------------


def test_a_list_that_a_body_appends_to():
    seen: list[Any] = []

    def body(i, s):
        seen.append(s)
        return s * i

    def f(x):
        total = fnad.fori_loop(1, 3, body, x)
        return total + seen[-1]

    error, message = refused(f, ONE, alone=False)
    assert isinstance(error, UsedAfterTraceError)
    assert line_of(error) == "return total + seen[-1]"
    assert "keep its numbers with fnad.callback" in message


def test_an_outer_array_that_a_body_writes_into():
    def f(x):
        buffer = x * 1

        def body(i, s):
            buffer[i] = s
            return s * 2

        return fnad.fori_loop(0, 3, body, 1.0) + np.sum(buffer)

    error, _ = refused(f, ROW, alone=False)
    assert isinstance(error, MutationError)
    assert line_of(error) == "buffer[i] = s"


def test_a_python_branch_in_a_body():
    def body(i, s):
        if s > 2:
            s = s / 2
        return s * i

    error, message = refused(lambda x: fnad.fori_loop(1, 3, body, x), ONE)
    assert isinstance(error, TracerEscapeError)
    assert line_of(error) == "if s > 2:"
    assert "fnad.cond" in message.splitlines()[2]

    def looping(s, x):
        while s > 2:
            s = s / 2
        return s, x

    error, message = refused(lambda x: fnad.scan(looping, 1.0, x)[0], ROW)
    assert line_of(error) == "while s > 2:"
    assert "fnad.while_loop" in message.splitlines()[2]
    error, message = refused(lambda x: fnad.cond(x > 0, lambda x: x if x > 2 else -x, half, x), ONE)
    assert isinstance(error, TracerEscapeError)


def test_an_exception_in_a_body_leaves_no_trace_behind():
    class StopError(Exception):
        pass

    def body(i, s):
        raise StopError

    for call in (lambda: fnad.fori_loop(0, 3, body, 1.0), lambda: fnad.cond(True, lambda: body(0, 0), lambda: 1.0)):
        for _ in range(2):
            with pytest.raises(StopError):
                call()
            assert fnad.fori_loop(0, 3, lambda i, s: s + i, 1.0) == 4.0


@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_an_index_out_of_range_in_a_body(executor):
    f = fnad.jit(lambda x: fnad.fori_loop(0, 5, lambda i, s: s + x[i], 0.0))
    with fnad.config.override(executor=executor), pytest.raises(OutOfRangeError) as raised:
        f(ROW)
    assert "s + x[i]" in line_of(raised.value)
    assert isinstance(raised.value, IndexError)


# ---- checkpoints -----------------------------------------------------------------------------------------------------


def test_a_policy_that_is_none():
    with pytest.raises(SettingError) as raised:
        fnad.checkpoint(half, policy="some")  # type: ignore[arg-type]
    assert str(raised.value).splitlines()[0] == "there is no policy 'some'"
    assert str(raised.value).splitlines()[2] == "  give one of 'all', 'carry', 'sqrt', 'binomial'"
    with pytest.raises(SettingError, match="snapshots is 0"):
        fnad.checkpoint(half, policy="binomial", snapshots=0)
    with pytest.raises(ArgumentTypeError, match="the first argument of checkpoint has to be a function"):
        fnad.checkpoint(3.0)  # type: ignore[arg-type]
    f = fnad.checkpoint(lambda x: fnad.while_loop(lambda s: s < 3, lambda s: s + x, x, max_steps=3), policy="sqrt")
    with pytest.raises(SettingError, match="max_steps is not counted over the segments"):
        f(1.0)


def test_results_and_operands_of_dtypes_that_are_not_there():
    with pytest.raises(DtypeError, match=r"xs has dtype float16"):
        fnad.scan(lambda s, x: (s, x), 0.0, np.ones(3, np.float16))


GENERATOR = np.random.default_rng(1)


@pytest.mark.parametrize("draw", [np.random.normal, random.random, GENERATOR.normal, lambda: GENERATOR.uniform()])
def test_row_65_a_body_that_draws(draw):
    with pytest.raises(RandomDrawError, match="draws from the generators") as caught:
        fnad.fori_loop(0, 3, lambda i, s: s + draw(), 1.0)
    assert "test_errors.py" in str(caught.value)

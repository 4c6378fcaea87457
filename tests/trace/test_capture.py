"""Arrays from outside: hidden inputs with the content they had when they were used."""

import gc
import threading
import weakref

import numpy as np
import pytest

import fnad
from fnad.errors import ArgumentTypeError, DtypeError, MutationError, UnsupportedFunctionError, UsedAfterTraceError
from fnad.ir.builder import current_builder
from fnad.ir.symbol import Symbol
from fnad.ir.types import DTYPES, F32, F64, I64, Aval
from fnad.store import uncollected
from fnad.trace.capture import may_change, same_bits
from fnad.trace.tracing import trace_function
from fnad.transforms.interpret import interpret

X = np.array([1.0, 2.0, 3.0])


def trace(function, *avals, **options):
    return trace_function(lambda leaves: [function(*leaves)], avals or [Aval(F64, (3,))], name="f", **options)


def run(traced, *inputs):
    return interpret(traced.program, [*inputs, *traced.captured])[0]


# ---- what is captured ------------------------------------------------------------------------------------------------


def test_an_array_is_one_input_however_often_it_is_used():
    w = np.arange(3.0)
    traced = trace(lambda x: x * w + w)
    assert len(traced.program.inputs) == 2
    assert traced.captured[0] is not w
    np.testing.assert_array_equal(run(traced, X), X * w + w)


def test_what_nobody_can_write_to_is_not_copied():
    frozen = np.frombuffer(bytes(24))
    assert trace(lambda x: x * frozen).captured[0] is frozen
    view = np.arange(3.0)[:]
    view.flags.writeable = False
    assert may_change(view)
    assert trace(lambda x: x * view).captured[0] is not view


def test_numbers_are_constants():
    traced = trace(lambda x: x * 2.0 + np.float64(1) - np.float32(2) * True)
    assert traced.captured == ()
    np.testing.assert_array_equal(run(traced, X), X * 2 + 1 - 2)


def test_an_array_that_changes_while_tracing():
    w = np.ones(3)

    def function(x):
        before = x * w
        w[0] = 100
        after = x * w
        w[0] = 1
        return before + 2 * after + 4 * (x * w)

    traced = trace(function)
    assert [float(np.ravel(captured)[0]) for captured in traced.captured] == [1.0, 100.0]  # what it has again is there
    np.testing.assert_array_equal(run(traced, X), X * [205, 7, 7])


def test_equality_is_to_the_bit():
    assert not same_bits(np.array([0.0]), np.array([-0.0]))
    assert same_bits(np.array([np.nan, 1.0]), np.array([np.nan, 1.0]))
    assert not same_bits(np.array([1 + 0j]), np.array([complex(1, -0.0)]))
    assert not same_bits(np.ones((2, 1)), np.ones((1, 2)))
    assert same_bits(np.array([1.0], ">f8"), np.array([1.0]))
    assert same_bits(np.arange(6)[::2], np.array([0, 2, 4]))


def test_temporaries_do_not_pass_for_one_another():
    def function(x):
        for i in range(50):
            x = x + np.full(3, float(i))
            gc.collect(0)
        return x

    np.testing.assert_array_equal(run(trace(function), X), X + sum(range(50)))


def test_captured_arrays_of_any_layout_are_read():
    for w in (np.arange(6.0)[::-2], np.asfortranarray(np.ones((3, 3)))[1], np.arange(3.0).astype(">f8"), np.array(2.0)):
        np.testing.assert_array_equal(run(trace(lambda x: x * w), X), X * w)  # noqa: B023


def test_the_content_of_a_mask_is_part_of_the_program():
    mask = np.array([True, False, True])
    traced = trace(lambda x: x[mask])
    ((original, content),) = traced.baked
    assert original is mask
    mask[1] = True
    np.testing.assert_array_equal(content, [True, False, True])


REFUSED = [
    (np.array([1, None, 2], object), DtypeError, "dtype object is not supported"),
    (np.ones(3, np.float16), DtypeError, "dtype float16 is not supported"),
    (np.ones(3, np.longdouble), DtypeError, f"dtype {np.dtype(np.longdouble)} is not supported"),
    (np.array(["a", "b", "c"]), DtypeError, "dtype <U1 is not supported"),
    (np.zeros(3, [("a", int)]), DtypeError, r"dtype \[\('a', '<i8'\)\] is not supported"),
    (np.ma.array(np.ones(3), mask=True), UnsupportedFunctionError, "numpy.concatenate has no rule for masked arrays"),
    (np.ones(3).view(np.matrix), ArgumentTypeError, "numpy.matrix follows other rules than an ordinary array"),
]


@pytest.mark.parametrize(("array", "error", "what"), REFUSED, ids=lambda case: str(case)[:20])
def test_arrays_refused_by_name(array, error, what):
    with pytest.raises(error, match=f"^{what}.*\n  at test_capture.py:"):
        trace(lambda x: np.concatenate([x, array]))


# ---- results ---------------------------------------------------------------------------------------------------------


def test_results_that_are_not_traced():
    traced = trace_function(lambda leaves: [X, 2.0, True, np.float32(3), leaves[0]], [Aval(F64, (3,))], name="f")
    assert list(map(str, traced.program.out_avals)) == ["f64[3]", "f64[]", "bool[]", "f32[]", "f64[3]"]


def test_a_result_that_is_no_array():
    with pytest.raises(ArgumentTypeError) as raised:
        trace(lambda x: "text")
    assert str(raised.value) == (
        "a traced function returned str, which is not an array or a number\n"
        "  return arrays and numbers, in tuples, lists and dicts"
    )


# ---- traces within traces --------------------------------------------------------------------------------------------


def test_a_traced_value_in_an_inner_trace_is_captured_there():
    w = np.ones(3)

    def outer(x):
        y = x * 2
        inner = trace(lambda z: z * y + w * x)
        assert all(isinstance(symbol, Symbol) for symbol in inner.captured)
        assert inner.captured[0] is not None
        assert len(inner.program.inputs) == 1 + len(inner.captured) == 4
        return y

    (captured,) = trace(outer).captured
    np.testing.assert_array_equal(captured, w)


def test_a_write_from_an_inner_trace_is_refused():
    def outer(x):
        y = x * 1

        def inner(z):
            y[0] = z[0]
            return z

        trace(inner)

    with pytest.raises(MutationError, match=r"a traced value of aval f64\[3\] was written to inside another trace"):
        trace(outer)


def test_a_view_may_be_read_in_an_inner_trace():
    def outer(x):
        y = x * 1
        part = y[1:]
        y[1] = 10
        inner = trace(lambda z: z[1:] * part)
        assert len(inner.program.inputs) == 2
        return part * 1

    np.testing.assert_array_equal(run(trace(outer), X), [10, 3])


# ---- the end of a trace ----------------------------------------------------------------------------------------------


def after(use):
    kept = []
    trace(lambda x: kept.append(x) or x)
    with pytest.raises(UsedAfterTraceError) as raised:
        use(kept[0])
    return str(raised.value)


def test_used_outside_any_trace():
    text = after(lambda x: np.sin(x))
    assert text.startswith("a traced value was used outside its trace\n  at test_capture.py:")
    assert text.endswith("return it from the traced function, or keep its numbers with fnad.callback(kept.append, x)")


def test_used_in_a_later_trace():
    text = after(lambda x: trace(lambda y: y * x))
    assert text.startswith("a traced value of aval f64[3] was used after its trace ended\n  at test_capture.py:")


def test_a_value_does_not_cross_threads():
    errors = []

    def outer(x):
        def other():
            try:
                trace(lambda y: x * y)
            except UsedAfterTraceError as error:
                errors.append(str(error))

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x

    trace(outer)
    assert errors[0].startswith("a traced value of aval f64[3] was used in a trace that does not lie within its own")


def test_an_exception_leaves_nothing_behind():
    def broken(x):
        raise KeyError("user")

    with pytest.raises(KeyError):
        trace(broken)
    np.testing.assert_array_equal(run(trace(lambda x: x + 1), X), X + 1)


def test_an_exception_in_an_inner_trace_leaves_the_outer_one():
    def outer(x):
        with pytest.raises(ZeroDivisionError):
            trace(lambda y: 1 / 0)
        return x + 1

    np.testing.assert_array_equal(run(trace(outer), X), X + 1)


def test_generators_run_within_a_trace():
    def function(x):
        return sum(part * 2 for part in (x[i] for i in range(3)))

    assert run(trace(function), X) == 12

    def suspended(x):
        yield x * 2

    generators = []

    def starts(x):
        generators.append(suspended(x))
        return next(generators[0]) + 1

    np.testing.assert_array_equal(run(trace(starts), X), X * 2 + 1)
    assert list(generators[0]) == []


def test_two_threads_trace_at_once():
    barrier, results = threading.Barrier(2), {}

    def work(k):
        def function(x):
            for _ in range(200):
                barrier.wait(60)
                x = np.sin(x) * k
            return x

        results[k] = [e.primitive.name for e in trace(function).program.equations].count("sin")

    threads = [threading.Thread(target=work, args=(k,)) for k in (1.0, 2.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {1.0: 200, 2.0: 200}


# ---- weak numbers ----------------------------------------------------------------------------------------------------


def test_python_numbers_are_weak():
    f32 = Aval(F32, (3,))
    assert trace(lambda x, s: x * s, f32, Aval(F64), weak=[False, True]).program.out_avals == (f32,)
    assert trace(lambda x, s: x * s, f32, Aval(F64)).program.out_avals == (Aval(F64, (3,)),)
    assert trace(lambda x, s: x * np.sin(s), f32, Aval(F64), weak=[False, True]).program.out_avals == (Aval(F64, (3,)),)
    assert trace(lambda x, s: x * (s / 2 + 1), f32, Aval(F64), weak=[False, True]).program.out_avals == (f32,)


def test_a_traced_python_int_that_may_not_fit():
    with pytest.raises(DtypeError, match=r"a traced Python int may not fit u8\n  at test_capture.py:"):
        trace(lambda x, n: x + n, Aval(DTYPES["u8"], (3,)), Aval(I64), weak=[False, True])


def test_a_trace_goes_when_it_is_over():
    """No symbol that it keeps refers to it, so what is still there of it is a value that was stored."""
    traces = []
    small, large = np.ones(3), np.ones(2000)

    def f(x):
        traces.append(weakref.ref(current_builder()))
        return np.sum(x * small) + np.sum(x[0] * large) + (1.0 if x[0] > 0.0 else 2.0)

    with uncollected():
        fnad.grad(f)(np.ones(3))
        fnad.jit(f)(np.ones(3))
        assert [trace() for trace in traces] == [None, None]

"""Views and writes in NumPy programs: NumPy's own answer decides, and the caller's arrays stay as they are.

Where fnad does not follow a write, it says so; that is as right as the answer, and a wrong number never is.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from numpy.testing import assert_array_equal

import fnad
from fnad import config, errors, grad, jit, jvp, value_and_grad, vjp
from fnad.api.staging.aliasing import WORK, shares_memory
from tests.together import in_groups, some_of, together

Function = Callable[..., Any]
executors = pytest.mark.parametrize("executor", ["interpreter", "compiled"])


def refused_or_right(f: Function, *xs: Any, gradient: Any) -> None:
    """Assert value and derivatives as NumPy's value and differences say, or a refusal; arguments stay as they are."""
    value = f(*[x.copy() for x in xs])
    copies = [x.copy() for x in xs]
    every = tuple(range(len(xs)))
    for transform in (value_and_grad(f, every), jit(value_and_grad(f, every)), value_and_grad(jit(f), every)):
        try:
            found, parts = transform(*xs)
        except errors.MutationError:
            continue
        finally:
            for x, copy in zip(xs, copies, strict=True):
                assert_array_equal(x, copy)
        assert found == value
        for part, expected in zip(parts, gradient, strict=True):
            assert_array_equal(part, expected)


def right(f: Function, *xs: Any, gradient: Any) -> None:
    """Assert the same of what fnad does follow, in forward mode, at second order, in both executors and dtypes too."""
    refused_or_right(f, *xs, gradient=gradient)
    every = tuple(range(len(xs)))
    for executor, dtype in product(["interpreter", "compiled"], [np.float64, np.float32]):
        with config.override(executor=executor):
            given = [x.astype(dtype) for x in xs]
            found = grad(f, every)(*given)
            for part, expected in zip(found, gradient, strict=True):
                assert part.dtype == dtype
                assert_array_equal(part, expected)
            ones = tuple(map(np.ones_like, given))
            assert jvp(f, tuple(given), ones)[1] == sum(np.sum(g) for g in gradient)
    second = jvp(grad(f, every), xs, tuple(map(np.ones_like, xs)))[1]
    ahead, behind = (grad(f, every)(*[x + h for x in xs]) for h in (0.5, -0.5))
    for part, a, b in zip(second, ahead, behind, strict=True):
        np.testing.assert_allclose(part, a - b, atol=1e-12)


X2, X3 = np.array([1.0, 2.0]), np.array([2.0, 3.0, 4.0])


# ---- rows 29 to 37 --------------------------------------------------------------------------------------------------


def test_row_29_two_names_of_one_array() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        z = y
        z += x
        return y.sum()

    right(f, X2, gradient=[[2, 2]])


def test_row_30_write_through_a_view() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        z = y[:1]
        z *= 10
        return y.sum()

    right(f, X2, gradient=[[10, 1]])


def test_row_30_write_seen_by_views_made_before() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        last, column, backwards = y[2:], y[:, None], y[::-1]
        y[2] = y[0] * 5
        column[1, 0] = 7.0
        return last.sum() + backwards[1] * 100 + y.sum()

    right(f, X3, gradient=[[11, 0, 0]])


def test_row_31_constant_written_after_its_use() -> None:
    def f(x: Any) -> Any:
        w = np.ones(2)
        y = x * w
        w[0] = 100
        return y.sum()

    right(f, X2, gradient=[[1, 1]])


def test_row_31_constant_written_between_two_uses() -> None:
    def f(x: Any) -> Any:
        w = np.ones(2)
        y = x * w
        w[0] = 100
        return (y + x * w).sum()

    right(f, X2, gradient=[[101, 2]])


def test_row_32_last_of_several_writes_counts() -> None:
    def f(v: Any) -> Any:
        y = np.zeros(3)
        y[[0, 0, 1]] = v
        return np.sum(y * np.array([1.0, 2, 3]))

    right(f, np.array([5.0, 6, 7]), gradient=[[0, 1, 2]])


def test_row_32_last_of_several_writes_counts_in_a_traced_array() -> None:
    def f(v: Any) -> Any:
        y = v * 0
        y[[0, 0, 1]] = v
        return np.sum(y * np.array([1.0, 2, 3]))

    right(f, np.array([5.0, 6, 7]), gradient=[[0, 1, 2]])


def test_row_33_augmented_assignment_at_repeated_indices() -> None:
    def f(v: Any) -> Any:
        y = np.zeros_like(v)
        y[[0, 0]] += v
        return y.sum()

    def g(v: Any) -> Any:
        y = np.zeros_like(v)
        np.add.at(y, [0, 0], v)
        return y.sum()

    right(f, np.array([5.0, 6]), gradient=[[0, 1]])
    right(g, np.array([5.0, 6]), gradient=[[1, 1]])


def test_row_34_overlapping_operands() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y[1:] += y[:-1]
        return y.sum()

    right(f, X3, gradient=[[2, 2, 1]])


def test_row_35_swap_of_rows_that_are_views() -> None:
    def f(x: Any) -> Any:
        a = x * 1
        a[0], a[1] = a[1], a[0]
        return a.sum()

    right(f, np.array([[1.0, 2], [3, 4]]), gradient=[[[0, 0], [2, 2]]])


def test_row_36_recurrence() -> None:
    def f(x: Any) -> Any:
        for i in (1, 2):
            x[i] = x[i - 1] * x[i]
        return x.sum()

    right(f, X3, gradient=[[16, 10, 6]])


VIEWS: dict[str, Function] = {
    "reshape": lambda y: y.reshape(4),
    "ravel": np.ravel,
    "flatten": lambda y: y.flatten(),
    "T": lambda y: y.T,
    "ravel of T": lambda y: y.T.ravel(),
    "reshape of T": lambda y: y.T.reshape(4),
    "reshape of a step": lambda y: y[:, ::-1].reshape(4),
    "squeeze": lambda y: np.squeeze(y[:, :, None]),
    "swapaxes": lambda y: np.swapaxes(y, 0, 1),
    "diagonal": lambda y: np.diagonal(y),
    "real": lambda y: y.real,
    "row": lambda y: y[1],
    "new axis": lambda y: y[None],
    "list": lambda y: y[[0, 1]],
    "mask": lambda y: y[np.array([True, False])],
    "atleast_3d": np.atleast_3d,
    "view": lambda y: y.view(),
    "view as an array": lambda y: y.view(np.ndarray),
    "astype": lambda y: y.astype(float),
    "astype without copy": lambda y: y.astype(float, copy=False),
    "array of more axes": lambda y: np.array(y, copy=False, ndmin=3),
    "array of more axes, if needed": lambda y: np.array(y, copy=None, ndmin=4)[0],
    "a copy of more axes": lambda y: np.array(y, ndmin=3),
    "copy": np.copy,
    "split": lambda y: np.split(y, 2)[1],
    "moveaxis": lambda y: np.moveaxis(y, 0, 1),
    "flip": np.flip,
    "expand_dims": lambda y: np.expand_dims(y, 0),
    "take": lambda y: np.take(y, [0], axis=0),
    "rot90": np.rot90,
    "rows unpacked": lambda y: next(iter(y)),
    "broadcast": lambda y: np.broadcast_to(y, (1, 2, 2)),
}


def outcome(call: Function) -> tuple[Any, Any]:
    """Return what a call returns, or the kind of error: NumPy refuses some of these writes as well."""
    try:
        return call(), None
    except (errors.FnadError, ValueError) as error:
        return None, error


@pytest.mark.parametrize("name", VIEWS)
def test_row_37_view_or_copy_as_numpy_decides(name: str) -> None:
    def through_view(x: Any) -> Any:
        y = x * 1
        z = VIEWS[name](y)
        z[0] = 10
        return np.sum(y * np.array([[1.0, 2], [3, 4]])) + np.sum(z) * 100

    def through_base(x: Any) -> Any:
        y = x * 1
        z = VIEWS[name](y)
        y[0, 1] = 10
        return np.sum(y * np.array([[1.0, 2], [3, 4]])) + np.sum(z) * 100

    for f in (through_view, through_base):
        x = np.array([[1.0, 2], [3, 4]])
        expected, refusal = outcome(lambda f=f, x=x: f(x))
        for run in (jit(f), lambda x, f=f: value_and_grad(f)(x)[0]):
            found, error = outcome(lambda run=run, x=x: run(x))
            if refusal is not None:
                assert error is not None
            else:
                assert isinstance(error, errors.FnadError) or found == expected
        if refusal is None and outcome(lambda f=f, x=x: jit(f)(x))[1] is None:
            assert_array_equal(grad(f)(x), differences(f, x))


def test_row_37_what_is_the_array_itself() -> None:
    same: tuple[Function, ...] = (np.asarray, lambda y: y.astype(float, copy=False), lambda y: np.array(y, copy=None))
    for g in (*same, np.copy, lambda y: y.astype(float), lambda y: np.array(y, copy=None, ndmin=2), lambda y: y[:]):
        f = lambda x, g=g: np.sum(x * (2.0 if g(x) is x else 3.0))  # noqa: E731
        assert jit(f)(X3) == f(X3)


def differences(f: Function, x: Any) -> Any:
    """Return the gradient of a function that is linear in each element."""
    steps = np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([f(x + step) - f(x) for step in steps]).reshape(x.shape)


# ---- row 38: the caller's arrays ------------------------------------------------------------------------------------


@executors
def test_row_38_arguments_written_to(executor: Any) -> None:
    def f(x: Any) -> Any:
        x[0] = 5.0
        x *= 2
        np.multiply(x, 3, out=x)
        return x

    with config.override(executor=executor):
        for run in (jit(f), lambda x: vjp(f, x)[0], lambda x: jvp(f, (x,), (x,))[0]):
            x = X2.copy()
            result = run(x)
            assert_array_equal(result, [30, 12])
            assert_array_equal(x, X2)
            result[:] = 0
            assert_array_equal(run(x), [30, 12])


@executors
def test_row_38_output_is_the_input_or_a_captured_constant(executor: Any) -> None:
    constant = np.array([1.0, 2.0])
    frozen = np.array([3.0])
    frozen.flags.writeable = False
    f = jit(lambda x: (x, x[:1], constant, frozen))
    with config.override(executor=executor):
        for _ in range(2):
            x = X2.copy()
            for result in f(x):
                result[:] = -1
            assert_array_equal(x, X2)
            assert_array_equal(constant, [1, 2])
            assert_array_equal(frozen, [3])


def test_row_38_out_of_a_ufunc_and_of_a_function() -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        np.exp(x, out=y)
        np.add(y, 1, out=y, where=np.array([True, False]))
        return y

    expected = np.exp(X2) + [1, 0]
    np.testing.assert_allclose(jit(f)(X2), expected)
    np.testing.assert_allclose(grad(lambda x: np.sum(f(x)))(X2), np.exp(X2))


INTO: dict[str, Function] = {
    "ufunc": lambda x, out: np.exp(x, out=out),
    "ufunc by position": lambda x, out: np.exp(x, out),
    "reduction": lambda x, out: np.sum(x, axis=0, out=out[0]),
    "reduction of a ufunc": lambda x, out: np.add.reduce(x, out=out[0]),
    "method": lambda x, out: x.cumsum(0, None, out),
    "contraction": lambda x, out: np.dot(np.eye(2), x, out),
    "predicate by position": lambda x, out: np.isposinf(x, out),
    "concatenate": lambda x, out: np.concatenate([x[:1], x[:1]], out=out),
    "copyto": lambda x, out: np.copyto(out, x),
    "at": lambda x, out: np.add.at(out, [0, 1], x),
    "fill": lambda x, out: out.fill(x[0]),
}


@pytest.mark.parametrize("name", INTO)
def test_row_38_writes_into_an_ordinary_array_are_not_lost(name: str) -> None:
    """NumPy would fill the caller's array, and so whoever reads it; it cannot be followed and must not be dropped."""
    buffer = np.zeros(2)
    with pytest.raises(errors.FnadError):
        jit(lambda x: INTO[name](x, buffer))(X2)
    assert_array_equal(buffer, [0, 0])


def test_row_38_assignment_into_an_ordinary_array() -> None:
    buffer = np.zeros(2)

    def f(x: Any) -> Any:
        buffer[0] = x[0]
        return x[0]

    for run in (grad, jit):
        with pytest.raises(errors.MutationError, match="was written into an ordinary array"):
            run(f)(X2)
    assert_array_equal(buffer, [0, 0])


# ---- row 39: results and pullbacks live on --------------------------------------------------------------------------


@executors
def test_row_39_results_of_one_call_after_the_next(executor: Any) -> None:
    f = jit(lambda x: (np.exp(x) * 2, np.sum(x)))
    with config.override(executor=executor):
        first = f(X2)
        kept = first[0].copy()
        for i in range(3):
            f(X2 + i)
        assert_array_equal(first[0], kept)


@executors
def test_row_39_pullback_called_often_and_from_threads(executor: Any) -> None:
    x = np.linspace(0, 1, 50)
    with config.override(executor=executor):
        _, pullback = vjp(lambda x: np.exp(x) * np.sin(x), x.copy())
    expected = np.exp(x) * (np.sin(x) + np.cos(x))
    found: list[Any] = []

    def call(scale: int) -> None:
        with config.override(executor=executor):
            found.append(pullback(np.full(50, float(scale)))[0] / scale)

    threads = [threading.Thread(target=call, args=(i + 1,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    for ct in found:
        np.testing.assert_allclose(ct, expected)


# ---- row 40: arrays of all kinds ------------------------------------------------------------------------------------


def read_only(x: Any) -> Any:
    x.flags.writeable = False
    return x


ARRAYS: dict[str, Callable[[], Any]] = {
    "stride 0": lambda: np.broadcast_to(np.array([0.5, 1.5]), (3, 2)),
    "backwards": lambda: np.arange(6.0).reshape(3, 2)[::-1, ::-1],
    "steps": lambda: np.arange(24.0).reshape(6, 4)[::2, ::2],
    "Fortran": lambda: np.asfortranarray(np.arange(6.0).reshape(3, 2)),
    "transposed": lambda: np.arange(6.0).reshape(2, 3).T,
    "big-endian": lambda: np.arange(6.0).reshape(3, 2).astype(">f8"),
    "big-endian f32": lambda: np.arange(6.0).reshape(3, 2).astype(">f4"),
    "read-only": lambda: read_only(np.arange(6.0).reshape(3, 2)),
    "unaligned": lambda: np.frombuffer(b"x" + np.arange(6.0).tobytes(), np.float64, offset=1).reshape(3, 2),
    "field": lambda: np.array([(i, i) for i in range(3)], [("a", "f4"), ("b", "f8")])["b"],
    "empty": lambda: np.zeros((0, 3)),
    "empty inside": lambda: np.zeros((3, 0)),
    "no dimensions": lambda: np.array(2.0),
    "big-endian scalar": lambda: np.array(2.0, ">f8"),
    "one element": lambda: np.array([[2.0]]),
    "f32": lambda: np.arange(3, dtype=np.float32),
}


@executors
@in_groups("name", ARRAYS)
def test_row_40_arrays_of_all_kinds(name: str, executor: Any) -> None:
    x = ARRAYS[name]()
    f = lambda x: np.sum(np.sin(x) * x)  # noqa: E731
    expected = np.sin(x) + x * np.cos(x)
    native = x.dtype.newbyteorder("=")
    with config.override(executor=executor):
        captured = jit(lambda: x * 2)()
        for run in (lambda f: f, jit):
            value, gradient = run(value_and_grad(f))(x)
            pushed = run(lambda x: jvp(f, (x,), (np.ones_like(x, native),))[1])(x)
            for found, right in ((value, f(x)), (gradient, expected), (pushed, np.sum(expected)), (captured, x * 2)):
                assert found.dtype == native
                np.testing.assert_allclose(found, right, rtol=1e-6)


REFUSED: dict[str, Any] = {
    "f16": np.ones(2, np.float16),
    "longdouble": np.ones(2, np.longdouble),
    "clongdouble": np.ones(2, np.clongdouble),
    "masked": np.ma.masked_array([1.0, 2.0], [True, False]),
    "matrix": np.ones((2, 2)).view(np.matrix),
    "recarray": np.rec.array([(1.0,)], [("a", float)]),
    "object": np.array([1.0, None]),
    "text": np.array(["a"]),
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "f16 scalar": np.float16(1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_row_40_refused(name: str) -> None:
    x = REFUSED[name]
    for run in (grad, value_and_grad, jit, lambda f: lambda x: vjp(f, x), lambda f: lambda x: jvp(f, (x,), (x,))):
        with pytest.raises((errors.DtypeError, errors.ArgumentTypeError)):
            run(lambda x: np.sum(x * x))(x)
    if name != "masked":  # beside traced values it masks their products
        with pytest.raises(TypeError):
            grad(lambda y: np.sum(y * x))(np.ones(2))


def test_memory_that_is_too_hard_to_compare_is_shared() -> None:
    """Three strides against three: NumPy cannot decide in time if they have an element in common."""
    memory = np.zeros(192_163_377, "i1")  # no page of it is touched
    x = as_strided(memory, (1049,) * 3, (36_674, 61_119, 85_569))
    y = as_strided(memory[64_023_025:], (1049, 1049, 1), (12_223, 12_224, 1))
    with pytest.raises(np.exceptions.TooHardError):
        np.shares_memory(x, y, max_work=WORK)  # pyright: ignore[reportArgumentType]
    assert shares_memory(x, y)


# ---- copies of values from outside ----------------------------------------------------------------------------------


def filled(y: Any, x: Any) -> Any:
    y[...] = x
    return y


def element_by_element(y: Any, x: Any) -> Any:
    for i in range(len(x)):
        y[i] = x[i]
    return y


def copied_into(y: Any, x: Any) -> Any:
    np.copyto(y, x)
    return y


COPIES: dict[str, Function] = {
    "x.copy()": lambda x: x.copy(),
    "np.copy": np.copy,
    "np.array": np.array,
    "order": lambda x: np.array(x, order="F"),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "astype": lambda x: x.astype(float),
    "flatten": lambda x: x.flatten(),
    "x[:].copy()": lambda x: x[:].copy(),
    "x.T.copy()": lambda x: x.T.copy(),
    "reshaped": lambda x: x.reshape(-1, 1).copy()[:, 0],
    "broadcast": lambda x: np.broadcast_to(x, (3,)).copy(),
    "concatenate": lambda x: np.concatenate([x]),
    "hstack": lambda x: np.hstack([x]),
    "stack": lambda x: np.stack([x])[0],
    "r_": lambda x: np.r_[x],
    "block": lambda x: np.block([x]),
    "+x": lambda x: +x,
    "np.positive": np.positive,
    "np.conj": np.conj,
    "x * 1": lambda x: x * 1,
    "x + 0": lambda x: x + 0,
    "indexed": lambda x: x[[0, 1, 2]],
    "masked": lambda x: x[np.ones(3, bool)],
    "take": lambda x: np.take(x, [0, 1, 2]),
    "where": lambda x: np.where(True, x, 0.0),
    "full": lambda x: np.full(3, x),
    "full_like": lambda x: np.full_like(x, x),
    "tile": lambda x: np.tile(x, 1),
    "roll": lambda x: np.roll(x, 0),
    "pad": lambda x: np.pad(x, 0),
    "sort": np.sort,
    "nan_to_num": np.nan_to_num,
    "a list": lambda x: np.array(list(x)),
    "empty_like, filled": lambda x: filled(np.empty_like(x), x),
    "zeros, filled": lambda x: filled(np.zeros(3), x),
    "by element": lambda x: element_by_element(np.zeros_like(x), x),
    "copyto": lambda x: copied_into(np.empty_like(x), x),
    "out": lambda x: np.multiply(x, 1.0, out=np.empty_like(x)),
    "einsum": lambda x: np.einsum("i->i", x).copy(),
}
INNER: dict[str, Function] = {
    "grad": lambda f: fnad.grad(f)(1.5),
    "vjp": lambda f: fnad.vjp(f, 1.5)[1](1.0)[0],
    "jacfwd": lambda f: fnad.jacfwd(f)(1.5),
    "jit": lambda f: jit(f)(1.5),
    "checkpoint": lambda f: fnad.checkpoint(f)(1.5),
    "vmap": lambda f: fnad.vmap(f)(np.array([1.5, 2.0])).sum(),
    "scan": lambda f: fnad.scan(lambda c, t: (c + f(t), None), 0.0, np.array([1.5, 2.0]))[0],
    "fori_loop": lambda f: fnad.fori_loop(0, 2, lambda i, c: c + f(c), 1.5),
    "cond": lambda f: fnad.cond(True, f, lambda t: t, 1.5),
}


@pytest.mark.parametrize("inner", INNER)
def test_a_copy_of_a_value_from_outside_is_written_to(inner: str) -> None:
    def outer(copied: Function) -> Function:
        def of_x(x: Any) -> Any:
            def f(t: Any) -> Any:
                y = copied(x)
                y[0] = 2.0 * t
                return np.sum(y * y) * t

            return INNER[inner](f)

        return of_x

    value, gradient = value_and_grad(outer(lambda x: x * 1))(X3)
    assert gradient[0] == 0
    assert gradient[1] != 0
    with together() as check:
        for name, copied in some_of([*COPIES.items()], inner, 5):
            with check(name):
                assert jit(outer(copied))(X3) == value
                assert_array_equal(grad(outer(copied))(X3), gradient)


@pytest.mark.parametrize("same", [lambda x: x[:], lambda x: x.conj(), lambda x: np.asarray(x), np.ravel])
def test_a_view_of_a_value_from_outside_is_not_written_to(same: Function) -> None:
    def inner(x: Any) -> Function:
        def f(t: Any) -> Any:
            same(x)[0] = t
            return t

        return f

    with pytest.raises(errors.MutationError, match="was written to inside another trace"):
        jit(lambda x: grad(inner(x))(1.5))(X3)

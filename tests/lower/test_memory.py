"""What shares memory is read before it is overwritten: programs that go wrong where nests or updates do not ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from fnad import callback, config, fori_loop, jit, scan, while_loop
from fnad.backends.cpu.executor import LINE, at_line, compile_program
from fnad.ir.builder import trace
from fnad.ir.symbol import Symbol
from fnad.ir.types import F64, Aval
from fnad.ops.arithmetic import add, mul
from fnad.ops.elementary import exp
from fnad.ops.shape import pad, slice_
from fnad.transforms.interpret import interpret

N = 40
X, Y = np.random.default_rng(0).standard_normal((2, N))
A, B = np.random.default_rng(1).standard_normal((2, N, N))

PROGRAMS: dict[str, tuple[Callable[..., Any], list[Any]]] = {}


def program(*args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function with the arguments to call it on."""

    def enter(f: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[f.__name__] = f, list(args)
        return f

    return enter


# ---- a nest that writes what one before it reads ---------------------------------------------------------------------


@program(X, Y)
def read_backwards_then_doubled(x: Any, y: Any) -> Any:
    return fori_loop(0, 3, lambda _, c: (2 * c[0], c[1] + c[0][::-1]), (x, y))


@program(X, Y)
def read_one_further_then_doubled(x: Any, y: Any) -> Any:
    def step(_: Any, c: Any) -> Any:
        u, v = c
        return u * 2, np.concatenate([v[:1], v[1:] + u[:-1]])

    return fori_loop(0, 3, step, (x, y))


@program(A, X)
def summed_by_columns_then_changed(a: Any, x: Any) -> Any:
    return fori_loop(0, 3, lambda _, c: (c[0] * 0.5 + 1, c[1] + np.sum(c[0], axis=0)), (a, x))


@program(A, A)
def read_turned_then_changed(a: Any, b: Any) -> Any:
    return fori_loop(0, 3, lambda _, c: (c[0] * 0.5 + 1, c[1] + c[0].T), (a, b))


@program(X)
def summed_then_divided(x: Any) -> Any:
    return fori_loop(0, 3, lambda _, u: u / (1 + np.sum(u * u)), x)


@program(X, Y, Y.reshape(8, 5))
def read_in_place_then_in_another_shape_then_doubled(x: Any, y: Any, z: Any) -> Any:
    return fori_loop(0, 3, lambda _, c: (2 * c[0], c[1] + c[0], c[2] + c[0][::-1].reshape(8, 5)), (x, y, z))


# ---- an array that is computed from itself ---------------------------------------------------------------------------


@program(X)
def reversed_in_a_loop(x: Any) -> Any:
    return fori_loop(0, 3, lambda _, u: u[::-1] + 1, x)


@program(X)
def rotated_in_a_loop(x: Any) -> Any:
    return fori_loop(0, 3, lambda _, u: np.roll(u, 1) * 0.5, x)


@program(A)
def turned_in_a_loop(a: Any) -> Any:
    return fori_loop(0, 3, lambda _, u: u.T + u, a)


@program(X, Y)
def crossed_in_a_loop(x: Any, y: Any) -> Any:
    return fori_loop(0, 3, lambda _, c: (c[1] + c[0], c[0] - c[1]), (x, y))


@program(X, np.int64(3))
def written_from_one_further(x: Any, i: Any) -> Any:
    u = x * 2
    u[i + np.arange(20)] = u[i + 1 + np.arange(20)] * 3
    return u


@program(X, np.int64(3))
def written_backwards(x: Any, i: Any) -> Any:
    u = x * 2
    u[i + np.arange(20)] = u[i + np.arange(20)[::-1]]
    return u


@program(X, np.int64(3))
def added_from_its_neighbours(x: Any, i: Any) -> Any:
    u = x * 2
    u[i + np.arange(20)] += u[i - 1 + np.arange(20)]
    return u


# ---- what takes the memory of an array that its own regions or indices read ------------------------------------------


def cumulated(x: Any) -> Any:
    """A buffer of the program's own, which may be overwritten."""
    return np.cumsum(np.abs(x))


@program(X)
def carried_and_a_constant_of_the_body(x: Any) -> Any:
    y = cumulated(x)
    return fori_loop(0, 3, lambda _, c: c + y[::-1], y)


@program(X)
def carried_and_a_constant_of_a_while_loop(x: Any) -> Any:
    y = cumulated(x)
    return while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + y[::-1]), (0, y))[1]


@program(X)
def carried_and_scanned(x: Any) -> Any:
    y = cumulated(x)
    return scan(lambda c, row: (c + row, np.sum(c)), y, y)


@program(A)
def sorted_where_it_is_a_row_of_the_results(a: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        y = np.cumsum(row * c)
        return np.tanh(c + np.sort(y)[0]), y

    return scan(step, np.float64(1.0), a)


@program(X)
def assigned_at_its_own_integers(x: Any) -> Any:
    y = (cumulated(x) * 10).astype(int) % N
    u = y.copy()
    u[y] = np.arange(N)[::-1]
    return u


@pytest.mark.parametrize("dtype", [np.dtype(bool), np.dtype("f4"), np.dtype("c16")])
def test_temporaries_begin_at_lines_of_the_cache(dtype: np.dtype[Any]) -> None:
    arrays = [at_line(size, dtype) for size in (*range(1, 40), 100_000)]
    assert {array.ctypes.data % LINE for array in arrays} == {0}
    assert [array.size for array in arrays] == [*range(1, 40), 100_000]


def test_what_a_callback_sees_is_not_overwritten_before() -> None:
    seen: list[Any] = []

    def changed(y: Any, i: Any) -> Any:
        u = y.copy()
        u[i] = -1.0
        callback(lambda a: seen.append(a.copy()), y)
        return u

    def f(x: Any, i: Any) -> Any:
        return fori_loop(0, 3, lambda k, y: changed(y, k + 5), changed(cumulated(x), i))

    results: list[Any] = []
    for executor in ("interpreter", "compiled"):
        with config.override(executor=executor):
            results.append(jit(f)(X, np.array(2)))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-14)
    assert len(seen) == 8
    for one, other in zip(seen[:4], seen[4:], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-14)


@pytest.mark.parametrize("other", [lambda x: add(x, x), lambda x: padded(add(x, x)), exp])
def test_what_is_read_after_a_result_keeps_its_memory(other: Callable[..., Any]) -> None:
    """In one loop: the square is stored in part of the memory of x before the other result reads x again."""
    program = trace(lambda x: [padded(mul(x, x)), other(x)], Aval(F64, (N,)))
    expected = interpret(program, [X])
    for found in (compile_program(program, (0,))([X.copy()]), compile_program(program)([X])):
        for one, right in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, right, rtol=1e-14)


def padded(x: Symbol) -> Symbol:
    first = slice_(x, starts=(0,), limits=(N // 2,), strides=(1,))
    return pad(first, low=(0,), high=(N - N // 2,), interior=(0,))


# ---- loops that are one loop over memory, or not ---------------------------------------------------------------------


@program(A)
def folds_over_one_of_two_loops(a: Any) -> Any:
    ones = a * 0 + 1
    constant = np.broadcast_to(np.float64(2.5), (N, N))
    return np.sum(ones, axis=0), np.max(constant * a[0, 0], axis=1), np.sum(np.ones((3, 5)) * a[0, 0], axis=1)


@program(X)
def folds_of_what_is_the_same_in_a_row(x: Any) -> Any:
    everywhere = np.broadcast_to(np.sin(x[:1]), (6, 7))
    return np.sum(everywhere, axis=0), np.prod(everywhere, axis=1), np.cumsum(everywhere, axis=1)


@program(A[:30].reshape(4, 5, 60))
def folds_over_two_of_three_loops(a: Any) -> Any:
    return np.sum(a, axis=(0, 1))


@program(X)
def what_is_the_same_everywhere_but_at_the_ends(x: Any) -> Any:
    same = np.broadcast_to(np.sin(x[0]), (3, 4))
    return np.pad(same, 1), np.pad(same, ((0, 0), (1, 0))), np.pad(same, ((0, 0), (0, 2)))


# ---- matrices for the BLAS -------------------------------------------------------------------------------------------


@program(X, B)
def rows_that_are_one_row(x: Any, b: Any) -> Any:
    rows = np.broadcast_to(x, (N, N))
    return rows @ b, b @ rows, rows.T @ b, b.T @ rows.T


@program(X, B)
def rows_that_overlap(x: Any, b: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, 20)
    return windows @ b[:20], b[:, :20] @ windows.T, windows @ x[:20]


def views(x: Any) -> Iterator[Any]:
    """Three axes whose strides are those of one matrix, or of none."""
    yield from (x, x[1:], x[:, 1:], x[:, :, 1:], x[:, 2:3], x[::2], x[:, ::2], x[:, :, ::2], x[:, ::-1], x[:, :, ::-1])
    yield from (np.transpose(x, order) for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)))
    yield from (np.broadcast_to(x[:1], x.shape), np.broadcast_to(x[:, :1], x.shape), x.reshape(16, 5, 9))


@program(np.random.default_rng(2).standard_normal((8, 9, 10)), np.random.default_rng(3).standard_normal((16, 80)))
def axes_that_are_one_axis_or_not(x: Any, y: Any) -> Any:
    """Each axis is summed over, or both others, from the left and from the right; or the first one is a batch."""
    found: list[Any] = []
    for v in views(x):
        for axis, (m, n) in enumerate([(1, 2), (0, 2), (0, 1)]):
            column, pair = y[: v.shape[axis]], y.ravel()[: v.shape[m] * v.shape[n] * 6].reshape(v.shape[m], -1, 6)
            found += [np.tensordot(v, column, ((axis,), (0,))), np.tensordot(column, v, ((0,), (axis,)))]
            found += [np.tensordot(v, pair, ((m, n), (0, 1))), np.tensordot(pair, v, ((0, 1), (m, n)))]
        found += [v @ y[: v.shape[2]], np.swapaxes(v, 1, 2) @ y[: v.shape[1]]]
    return tuple(found)


# ---- what is put together of parts, in the memory of the whole -----------------------------------------------------


@program(A, B, X)
def reshaped_columns_before_others(a: Any, b: Any, x: Any) -> Any:
    rows = np.concatenate([np.sin(a), a * b, x[:, None]], axis=1)
    return np.concatenate([rows.ravel(), x * x, rows[:0].ravel()])


@program(A, B)
def columns_that_are_needed_elsewhere_too(a: Any, b: Any) -> Any:
    rows = np.concatenate([np.sin(a), a * b], axis=1)
    return np.concatenate([rows.ravel(), np.sum(rows, axis=1)]), rows, rows.reshape(-1, 5)


@program(A, B)
def columns_in_another_order(a: Any, b: Any) -> Any:
    rows = np.concatenate([np.sin(a), a * b], axis=1)
    return np.concatenate([rows.T.ravel(), a[0]]), np.concatenate([rows[::-1].ravel(), a[0]]), rows.ravel()[::2]


@program(A, B)
def parts_of_parts(a: Any, b: Any) -> Any:
    inner = np.concatenate([np.sin(a), a * b], axis=1).reshape(-1)
    outer = np.concatenate([b[0], inner]).reshape(3, -1, 5)
    return np.concatenate([outer, np.cos(outer[:1])]), np.concatenate([inner[:40], a.ravel(), b.ravel()]).reshape(2, -1)


@program(A, X)
def parts_in_a_loop(a: Any, x: Any) -> Any:
    def step(_: Any, c: Any) -> Any:
        rows = np.concatenate([c[:N, None] * a[:, :1], c[N:, None]], axis=1)
        return np.concatenate([np.sin(rows).ravel()[::-1], c[:0]])

    return fori_loop(0, 3, step, np.concatenate([x, x]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_is_interpreted(name: str) -> None:
    f, args = PROGRAMS[name]
    with config.override(executor="interpreter"):
        expected = jit(f)(*args)
    with config.override(executor="compiled"):
        found = jit(f)(*args)
    for one, other in zip(as_tuple(found), as_tuple(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def as_tuple(results: Any) -> tuple[Any, ...]:
    return results if isinstance(results, tuple) else (results,)

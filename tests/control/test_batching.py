"""`vmap`: a function applied to rows is the function applied to each row."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

import fnad
import fnad.control.batching
import fnad.control.ode
from fnad.control.batching import batched_program
from fnad.errors import BatchAxisError, CallbackError, LoopLimitError, TracerEscapeError
from fnad.ir.axes import Opaque
from fnad.ir.builder import trace
from fnad.ir.primitive import PRIMITIVES, Primitive, Sample
from fnad.ir.program import Program
from fnad.ir.types import aval_of
from fnad.ops.shape import broadcast_to
from fnad.transforms.interpret import interpret

RNG = np.random.default_rng(0)
X, Y, W = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 3)), RNG.normal(size=3)


def in_loop(f: Callable[..., Any], *arguments: Any) -> Any:
    """`f` of each row, stacked leaf by leaf."""
    rows = [f(*row) for row in zip(*arguments, strict=True)]
    if isinstance(rows[0], tuple):
        return tuple(np.stack(leaves) for leaves in zip(*rows, strict=True))
    return np.stack(rows)


def assert_close(found: Any, expected: Any, rtol: float = 1e-12) -> None:
    assert type(found) is type(expected)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for got, want in pairs:
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-300)


# ---- every primitive that works row by row or has regions ------------------------------------------------------------

SAMPLES = [
    pytest.param(primitive, sample, id=f"{primitive.name}-{n}")
    for primitive in PRIMITIVES.values()
    if isinstance(primitive.axes, Opaque) and primitive.name != "guard"
    for n, sample in enumerate(primitive.samples())
]


@pytest.mark.parametrize(("primitive", "sample"), SAMPLES)
def test_primitives_on_stacks(primitive: Primitive, sample: Sample) -> None:
    operands = [np.asarray(operand) for operand in sample.operands]
    one = one_equation(primitive, sample, operands)
    if any(aval.is_residual_stack for aval in one.out_avals):
        pytest.skip("residual stacks of several rows are no array: programs that make them are applied row by row")
    count = 3
    for marks in product((False, True), repeat=len(operands)):
        if not any(marks):
            continue
        stacks = [
            np.stack([x, x[::-1].copy() if x.ndim else x, x]) if mark else x
            for x, mark in zip(operands, marks, strict=True)
        ]
        rows = [[x[i] if mark else x for x, mark in zip(stacks, marks, strict=True)] for i in range(count)]
        program = on_stacks(one, count, stacks, marks)
        found = interpret(program, stacks)
        expected = [np.stack(leaf) for leaf in zip(*[interpret(one, row) for row in rows], strict=True)]
        for got, want in zip(found, expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-300)


def stack(x: Any) -> Any:
    return np.stack([x, x[::-1] if x.ndim else x, x])


def one_equation(primitive: Primitive, sample: Sample, operands: Any) -> Program:
    def run(*args: Any) -> list[Any]:
        found = primitive(*args, **sample.params, **({"regions": sample.regions} if sample.regions else {}))
        return list(found) if isinstance(found, tuple) else [found]

    return trace(run, *map(aval_of, operands), name="one")


def on_stacks(one: Program, count: int, stacks: Any, marks: Any) -> Program:
    def run(*args: Any) -> list[Any]:
        found, stacked = batched_program(one, count, args, marks)
        assert any(stacked) or not found
        return [y if of_rows else broadcast_to(y, (count, *y.shape)) for y, of_rows in zip(found, stacked, strict=True)]

    return trace(run, *map(aval_of, stacks), name="stacks")


# ---- functions -------------------------------------------------------------------------------------------------------


def assigned(x: Any) -> Any:
    u = np.zeros(3)
    u[1:] = x[:2] ** 2
    u[0] += x[2]
    u *= W
    return u


def looped(x: Any) -> Any:
    total = 0.0
    for i in range(3):
        total += np.sin(x[i]) * total + x[i]
    return total


def chosen(x: Any) -> Any:
    return fnad.cond(x[0] > 0, lambda x: np.sum(x**2), lambda x: np.prod(x) * W[0], x)


def scanned(x: Any) -> Any:
    return fnad.scan(lambda c, y: (c + np.sin(y) * c, c * y), 1.0, x)


def newton(x: Any) -> Any:
    return fnad.while_loop(
        lambda s: abs(s * s - 2 - x[0] ** 2) > 1e-12, lambda s: (s + (2 + x[0] ** 2) / s) / 2, x[0] ** 2 + 1
    )


def counted(x: Any) -> Any:
    return fnad.fori_loop(0, 4, lambda i, s: s * x + i, x)


@fnad.custom_vjp
def tripled(x: Any) -> Any:
    return 3 * x


tripled.defvjp(lambda x: (3 * x, x), lambda x, ct: (3 * ct,))

FUNCTIONS = {
    "elementwise": lambda x: np.tanh(x) * W,
    "reduced": lambda x: np.sum(np.exp(x) * W),
    "contracted": lambda x: np.outer(x, W) @ x,
    "several": lambda x: (np.sum(x), x[::-1], np.cumsum(x)),
    "indexed": lambda x: W[np.argmax(x)] * x[1],
    "assigned": assigned,
    "Python loop": looped,
    "linear algebra": lambda x: np.linalg.solve(np.outer(x, x) + np.eye(3), x),
    "cond": chosen,
    "scan": scanned,
    "while_loop": newton,
    "fori_loop": counted,
    "checkpoint": fnad.checkpoint(lambda x: np.sin(x) * x),
    "custom_vjp": lambda x: tripled(x * x),
    "fixed_point": lambda x: fnad.fixed_point(lambda s, x: np.cos(s) * 0.5 + 0.1 * x, np.zeros(3), x),
    "odeint": lambda x: fnad.odeint(lambda y, t, x: -y * x**2, x, np.array([0.0, 0.5]), x),
    "map": lambda x: fnad.map(np.sin, x),
    "constant": lambda x: (np.ones(2), x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_on_rows(name: str) -> None:
    f = FUNCTIONS[name]
    expected = in_loop(f, X)
    assert_close(fnad.vmap(f)(X), expected)
    assert_close(fnad.jit(fnad.vmap(f))(X), expected, 1e-9)


def scalar(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the results of a function."""

    def total(x: Any) -> Any:
        found = f(x)
        return sum(np.sum(leaf) for leaf in found) if isinstance(found, tuple) else np.sum(found)

    return total


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_rows_and_of_all(name: str) -> None:
    f = scalar(FUNCTIONS[name])
    expected = in_loop(fnad.grad(f), X)
    assert_close(fnad.vmap(fnad.grad(f))(X), expected, 1e-9)
    assert_close(fnad.grad(lambda x: np.sum(fnad.vmap(f)(x)))(X), expected, 1e-9)
    pushed = in_loop(lambda x, t: fnad.jvp(f, (x,), (t,))[1], X, Y)
    assert_close(fnad.vmap(lambda x, t: fnad.jvp(f, (x,), (t,))[1])(X, Y), pushed, 1e-9)
    assert_close(fnad.jvp(fnad.vmap(f), (X,), (Y,))[1], pushed, 1e-9)


# ---- arguments and results -------------------------------------------------------------------------------------------


def test_axes_of_arguments_and_results() -> None:
    f = lambda x, y: np.stack([x, y, x * y])  # noqa: E731
    expected = in_loop(f, X, Y)
    assert_close(fnad.vmap(f, in_axes=(1, -2))(X.T, Y), expected)
    assert_close(fnad.vmap(f, in_axes=[0, None])(X, W), in_loop(partial(f, y=W), X))
    for out_axis in (0, 1, 2, -1, -2, -3):
        assert_close(fnad.vmap(f, out_axes=out_axis)(X, Y), np.moveaxis(expected, 0, out_axis))


def test_pytrees_and_arguments_by_name() -> None:
    def f(p: Any, x: Any, *, scale: Any) -> Any:
        return {"sum": np.sum(p["w"] * x) + p["b"], "rest": (x * scale, p["b"])}

    p, scales = {"w": X, "b": 2.0}, np.arange(5.0)
    found = fnad.vmap(f, in_axes=({"w": 0, "b": None}, 0), out_axes={"sum": 0, "rest": (1, None)})(p, Y, scale=scales)
    np.testing.assert_allclose(found["sum"], np.sum(X * Y, axis=1) + 2.0)
    np.testing.assert_allclose(found["rest"][0], (Y * scales[:, None]).T)
    assert found["rest"][1] == 2.0


def test_nested_and_with_what_it_closes_over() -> None:
    outer = fnad.vmap(fnad.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_array_equal(outer(W, X[0]), np.outer(W, X[0]))
    for_each = fnad.grad(lambda w: np.sum(fnad.vmap(lambda x: np.sin(np.dot(x, w)))(X)))
    np.testing.assert_allclose(for_each(W), X.T @ np.cos(X @ W), rtol=1e-12)


def test_no_rows_and_rows_of_nothing() -> None:
    assert fnad.vmap(np.sum)(np.zeros((0, 3))).shape == (0,)
    assert fnad.vmap(newton)(np.zeros((0, 3))).shape == (0,)
    np.testing.assert_array_equal(fnad.vmap(lambda: np.arange(2.0), axis_size=3)(), np.tile([0.0, 1.0], (3, 1)))
    np.testing.assert_array_equal(fnad.vmap(lambda x: x, in_axes=None, axis_size=2)(1.5), [1.5, 1.5])


def test_keys_draw_for_each_row() -> None:
    keys = fnad.random.split(fnad.random.key(0), 4)
    found = fnad.vmap(lambda key: fnad.random.normal(key, (3,)))(keys)
    np.testing.assert_array_equal(found, np.stack([fnad.random.normal(key, (3,)) for key in keys]))


@pytest.mark.slow
def test_each_row_looks_in_its_own_table() -> None:
    keys, weights = fnad.random.split(fnad.random.key(0), 5), np.abs(X) / np.sum(np.abs(X), axis=1, keepdims=True)
    tables: dict[str, Callable[..., Any]] = {
        "values alone": lambda x, y, key, p: np.searchsorted(np.sort(W), y),
        "tables alone": lambda x, y, key, p: np.searchsorted(np.sort(x), W, side="right"),
        "both": lambda x, y, key, p: np.searchsorted(np.sort(x), np.outer(y, y)),
        "sorter": lambda x, y, key, p: np.searchsorted(x, y, sorter=np.argsort(x)),
        "digitize": lambda x, y, key, p: np.digitize(y, np.sort(x)),
        "interp": lambda x, y, key, p: np.interp(y, np.sort(x), x * y),
        "choice": lambda x, y, key, p: fnad.random.choice(key, 3, (6,), p=p),
        "choice of one key": lambda x, y, key, p: fnad.random.choice(fnad.random.key(1), x, (6,), p=p),
        "choice without replacement": lambda x, y, key, p: fnad.random.choice(key, 3, (2,), replace=False, p=p),
    }
    for name, f in tables.items():
        expected = in_loop(f, X, Y, keys, weights)
        for run in (fnad.vmap(f), fnad.jit(fnad.vmap(f))):
            np.testing.assert_array_equal(run(X, Y, keys, weights), expected, err_msg=name)
        nested = fnad.vmap(fnad.vmap(f))(*[np.stack([a, a[::-1]]) for a in (X, Y, keys, weights)])
        np.testing.assert_array_equal(nested, np.stack([expected, expected[::-1]]), err_msg=name)


def test_callbacks_are_called_row_by_row() -> None:
    seen: list[float] = []

    def note(x: Any) -> None:
        seen.append(float(x))

    fnad.vmap(lambda x: fnad.callback(note, x[0]))(X)
    assert seen == list(X[:, 0])


@pytest.mark.parametrize("rows", [0, 1, 4])
def test_results_of_callbacks_are_those_of_the_rows(rows: int) -> None:
    seen: list[Any] = []

    def both(x: Any, y: Any, n: Any) -> Any:
        seen.append((x.shape, y.shape, int(n)))
        return {"sum": np.sum(x) + y, "sorted": np.sort(x)[:n]}

    def f(x: Any, y: Any) -> Any:
        return fnad.callback(both, x, y, 2, result={"sum": 0.0, "sorted": x[:2]})

    xs, ys = np.arange(3.0 * rows).reshape(rows, 3)[:, ::-1], np.arange(1.0 * rows)
    found = fnad.vmap(fnad.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(xs, ys)
    assert found["sum"].shape == (rows, rows)
    assert found["sorted"].shape == (rows, rows, 2)
    np.testing.assert_array_equal(found["sum"], xs.sum(1)[:, None] + ys)
    np.testing.assert_array_equal(found["sorted"], np.repeat(np.sort(xs)[:, None, :2], rows, 1))
    assert seen == [((3,), (), 2)] * rows**2
    with pytest.raises(CallbackError, match=r"returned float64 of shape \(3,\), announced was float64 of shape \(2,\)"):
        fnad.vmap(lambda x: fnad.callback(np.sort, x, result=x[:2]))(np.ones((2, 3)))


def test_python_decides_by_what_all_rows_share() -> None:
    f = lambda x, flag: x if flag > 1 else -x  # noqa: E731
    np.testing.assert_array_equal(fnad.vmap(f, in_axes=(0, None))(X, 2.0), X)
    np.testing.assert_array_equal(fnad.jit(fnad.vmap(f, in_axes=(0, None)))(X, 0.5), -X)


def test_python_decides_where_all_rows_agree() -> None:
    runs: list[None] = []

    def f(x: Any) -> Any:
        runs.append(None)
        while np.sum(x) < 8:
            x = 2 * x
        return x**2 if x[0] > 0 else -x

    up, down = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.5]]), np.array([[-1.0, 9.0, 1.0], [-2.0, 10.0, 1.0]])
    for rows in (up, down):
        expected = in_loop(f, rows)
        assert_close(fnad.vmap(f)(rows), expected)
        assert_close(fnad.vmap(fnad.vmap(f))(rows[None])[0], expected)
        slopes = in_loop(fnad.grad(lambda x: np.sum(f(x))), rows)
        assert_close(fnad.vmap(fnad.grad(lambda x: np.sum(f(x))))(rows), slopes)
        assert_close(fnad.grad(lambda rows: np.sum(fnad.vmap(f)(rows)))(rows), slopes)
    compiled = fnad.jit(fnad.vmap(f))
    for rows in (up, up + 0.01, down, up):
        assert_close(compiled(rows), in_loop(f, rows))
    runs.clear()
    compiled(down)
    assert not runs


def test_python_decides_by_what_rows_do_not_agree_on() -> None:
    def f(x: Any) -> Any:
        return x if x[0] > 0 else -x

    signs = np.where(X[:, :1] > 0, 1.0, -1.0)
    compiled = fnad.jit(fnad.vmap(f))
    np.testing.assert_array_equal(compiled(np.abs(X)), np.abs(X))
    for run in (compiled, fnad.vmap(f), fnad.vmap(fnad.jit(f))):
        np.testing.assert_array_equal(run(X), X * signs)
    np.testing.assert_array_equal(fnad.vmap(fnad.grad(lambda x: np.sum(f(x))))(X), signs * np.ones_like(X))
    slopes = np.einsum("ijij->ij", fnad.jacfwd(fnad.vmap(f))(X))
    np.testing.assert_array_equal(slopes, signs * np.ones_like(X))
    np.testing.assert_array_equal(fnad.vmap(fnad.vmap(lambda x: x if x > 0 else -x))(X), np.abs(X))
    with pytest.raises(TracerEscapeError, match="its truth value"):
        fnad.vmap(f)(X[:0])


def test_many_rows_that_part_are_an_error() -> None:
    rows = np.array([[1.0], [-1.0]] * 200)
    words = (
        r"differs among the rows of vmap: true in 200 of 400\n  at test_batching.py:\d+ in <lambda>:.*\n.*fnad\.cond"
    )
    with pytest.raises(TracerEscapeError, match=words):
        fnad.vmap(lambda x: x if x[0] > 0 else -x)(rows)


def last_positive(x: Any) -> Any:
    return np.nonzero(x > 0)[0][-1] * x[0]


def up_to_the_largest(x: Any) -> Any:
    return x[: np.argmax(x) + 1].sum()


def middle(x: Any) -> Any:
    return np.median(x[x > 0])


def by_index(x: Any) -> Any:
    return [x[0], 2 * x[1], 3 * x[2]][int(np.argmax(x))]


def by_key(x: Any) -> Any:
    return {0: x[1], 1: x[2] * x[1]}.get(int(np.argmax(x)), x[0])


def by_text(x: Any) -> Any:
    return x[0] * float(f"{int(np.argmax(x))}.5")


def drawn(x: Any) -> Any:
    return x[0] * np.random.default_rng(0).normal(loc=int(np.argmax(x)))


@pytest.mark.parametrize("f", [last_positive, up_to_the_largest, middle, by_index, by_key, by_text, drawn])
def test_rows_that_need_a_number_of_their_own(f: Callable[[Any], Any]) -> None:
    compiled, slope = fnad.jit(fnad.vmap(f)), fnad.jit(fnad.grad(lambda rows: np.sum(fnad.vmap(f)(rows))))
    rows = np.array([[3.0, -1.0, 2.0], [1.0, 2.0, -4.0], [0.5, 0.1, 0.7]])
    for x in (rows, rows[::-1] * 1.1, rows[[0, 0, 0]], rows):
        expected, slopes = in_loop(f, x), in_loop(fnad.grad(f), x)
        for run in (fnad.vmap(f), compiled):
            assert_close(run(x), expected)
        for run in (fnad.vmap(fnad.grad(f)), slope):
            assert_close(run(x), slopes)
    assert_close(fnad.vmap(fnad.vmap(f))(rows[None])[0], in_loop(f, rows))
    many = np.abs(np.random.default_rng(0).normal(size=(300, 3)))
    if f not in (by_text, drawn):
        assert_close(fnad.jit(fnad.vmap(f))(many), in_loop(f, many))


def root_or_square(x: Any) -> Any:
    try:
        return math.sqrt(x[0]) + x[1]
    except ValueError:
        return x[0] * x[1] ** 2


def growth_or_square(x: Any) -> Any:
    try:
        return math.exp(400 * x[0])
    except ArithmeticError:
        return x[0] ** 2


def logarithm_or_more(x: Any) -> Any:
    with contextlib.suppress(ValueError):
        return math.log(x[0])
    return x[1] ** 3


@pytest.mark.parametrize("f", [root_or_square, growth_or_square, logarithm_or_more])
def test_errors_of_math_that_some_rows_handle(f: Callable[[Any], Any]) -> None:
    compiled = fnad.jit(fnad.vmap(f))
    rows = np.array([[0.5, 3.0], [-1.0, 2.0], [2.0, -1.0]])
    for x in (rows, np.abs(rows), -np.abs(rows), rows[::-1], rows[:1]):
        for run in (fnad.vmap(f), compiled):
            assert_close(run(x), in_loop(f, x))
        assert_close(fnad.vmap(fnad.grad(f))(x), in_loop(fnad.grad(f), x))


def test_rows_that_part_with_results_in_common() -> None:
    def f(x: Any, c: Any) -> Any:
        if x > 0:
            return 2 * c, 3.0, x
        return 2 * c, 3.0, -x

    rows = fnad.vmap(f, in_axes=(0, None), out_axes=(None, None, 0))
    x = np.array([1.0, -2.0, 3.0])
    for run in (rows, fnad.jit(rows)):
        twice, three, found = run(x, 5.0)
        assert (twice, three) == (10.0, 3.0)
        np.testing.assert_array_equal(found, np.abs(x))
    assert fnad.grad(lambda c: rows(x, c)[0])(5.0) == 2.0
    np.testing.assert_array_equal(fnad.vmap(f, in_axes=(0, None))(x, 5.0)[0], np.full(3, 10.0))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fnad.vmap(np.sum, in_axes=2)(X), r"in_axes of vmap says 2 for args\[0\], which has axes from -2 to 1"),
        (lambda: fnad.vmap(np.sum)(1.0), r"in_axes of vmap says 0 for args\[0\], which has no axes"),
        (lambda: fnad.vmap(np.dot)(X, X[:2]), r"different numbers of rows: args\[0\] has 5, args\[1\] has 2"),
        (
            lambda: fnad.vmap(lambda x, y: x, axis_size=5)(X, y=X[:3]),
            r"args\[0\] has 5, kwargs\['y'\] has 3, axis_size is 5",
        ),
        (
            lambda: fnad.vmap(np.sum, in_axes=(0, 0))(X),
            "in_axes of vmap has 2 entries for 1 positional",
        ),
        (lambda: fnad.vmap(np.sum, in_axes=((0, 0),))(X), "in_axes of vmap is no prefix of the arguments"),
        (lambda: fnad.vmap(np.sum, in_axes="a")(X), "in_axes of vmap has 'a', not an integer or None"),
        (lambda: fnad.vmap(np.sum, in_axes=True)(X), "in_axes of vmap has True, not an integer or None"),
        (
            lambda: fnad.vmap(lambda x: x, out_axes=None)(X),
            "out_axes of vmap is None for result 0 of <lambda>, which may differ among the rows",
        ),
        (lambda: fnad.vmap(lambda x: x, out_axes=2)(X), "out_axes of vmap says 2 for result 0 of <lambda>"),
        (lambda: fnad.vmap(lambda x: x, out_axes=(0, 0))(X), "out_axes of vmap is no prefix of the results"),
        (lambda: fnad.vmap(lambda: 1.0)(), "vmap of <lambda> has no argument with rows"),
        (lambda: fnad.vmap(lambda: 1.0, axis_size=-1)(), "axis_size of vmap is -1, not a number of rows"),
        (lambda: fnad.vmap(np.sin, axis_size=5.0)(X), r"axis_size of vmap is 5\.0, not a number of rows"),
        (lambda: fnad.vmap(np.sin, axis_size="5")(X), "axis_size of vmap is '5', not a number of rows"),
    ],
)
def test_axes_that_do_not_fit(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(BatchAxisError, match=words) as raised:
        call()
    assert "at test_batching.py" in str(raised.value)


def test_only_the_branch_of_a_row_is_run() -> None:
    seen: list[float] = []

    def noted(x: Any) -> Any:
        fnad.callback(lambda x: seen.append(float(x)), x)
        return x

    fnad.vmap(lambda x: fnad.cond(x > 0, noted, lambda x: x, x))(np.array([1.0, -1.0, 2.0]))
    assert seen == [1.0, 2.0]


# ---- rows in lockstep ------------------------------------------------------------------------------------------------


def squared_root(a: Any) -> Any:
    """The root by Newton's method, the steps it took, and a value that is of use only before the end."""

    def step(s: Any) -> Any:
        x, n, _ = s
        return (x + a / x) / 2, n + 1, 1 / (x * x - a)

    return fnad.while_loop(lambda s: abs(s[0] * s[0] - a) > 1e-12 * a, step, (a, 0, a))


def bisected(a: Any) -> Any:
    def step(s: Any) -> Any:
        low, high = s
        middle = (low + high) / 2
        return fnad.cond(middle**3 < a, lambda x, y, z: (y, z), lambda x, y, z: (x, y), low, middle, high)

    return fnad.while_loop(lambda s: s[1] - s[0] > 1e-5 * s[1], step, (0.0 * a, 1.0 + a))


def collatz(k: Any) -> Any:
    choose = lambda n: fnad.switch(n % 2, [lambda n: n // 2, lambda n: 3 * n + 1], n)  # noqa: E731
    return fnad.while_loop(lambda s: s[0] != 1, lambda s: (choose(s[0]), s[1] + 1), (k, 0))


def escaping(x: Any, y: Any) -> Any:
    test = lambda s: (s[2] < 30) & (s[0] ** 2 + s[1] ** 2 < 4)  # noqa: E731
    return fnad.while_loop(
        test, lambda s: (s[0] ** 2 - s[1] ** 2 + x, 2 * s[0] * s[1] + y, s[2] + 1), (0 * x, 0 * y, 0)
    )


LOOPS = {
    squared_root: (np.exp(8 * RNG.standard_normal(37)),),
    bisected: (RNG.uniform(0, 50, 37).astype(np.float32),),
    collatz: (np.arange(1, 38),),
    escaping: (RNG.uniform(-2, 1, 37), RNG.uniform(-1, 1, 37)),
}


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_loops_of_rows_in_lockstep(f: Callable[..., Any]) -> None:
    """To the bit, whether or not the rows fill blocks."""
    rows = LOOPS[f]
    with fnad.config.override(executor="interpreter"):
        expected = in_loop(f, *rows)
        for count in (1, 2, 37):
            for found, want in zip(fnad.vmap(f)(*[x[:count] for x in rows]), expected, strict=True):
                np.testing.assert_array_equal(found, want[:count])


def test_compiled_loops_of_rows_in_lockstep() -> None:
    rows = LOOPS[bisected][0]
    for found, want in zip(fnad.jit(fnad.vmap(bisected))(rows), in_loop(fnad.jit(bisected), rows), strict=True):
        np.testing.assert_array_equal(found, want)


def program_of(f: Callable[..., Any], *args: Any) -> str:
    return str(fnad.make_program(f)(*args))


def test_which_rows_go_in_lockstep() -> None:
    """Arithmetic alone: what calls a library rounds otherwise for several values, as complex products of NumPy's do."""

    def loop(step: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda a: fnad.while_loop(lambda s: s > 1.0, step, a)

    rows = np.linspace(0.5, 9.0, 40)
    assert "f64[16]" in program_of(fnad.vmap(loop(lambda s: s / 2)), rows)
    assert "f64[16]" in program_of(
        fnad.vmap(loop(lambda s: fnad.cond(s > 2, lambda s: s / 2, lambda s: s - 1, s))), rows
    )
    others: list[Callable[[Any], Any]] = [np.sin, lambda s: W[s.astype(int) % 3] / 9, lambda s: abs(s / 2j)]
    for step in others:
        assert "f64[16]" not in program_of(fnad.vmap(loop(step)), rows)
        assert_close(fnad.vmap(loop(step))(rows), np.stack([loop(step)(a) for a in rows]))


@pytest.mark.slow
def test_derivatives_of_rows_in_lockstep() -> None:
    """The row's own, also where a step beyond its end would divide by zero."""
    f = lambda a: squared_root(a)[0]  # noqa: E731
    rows = np.r_[np.arange(2.0, 18.0) ** 2, LOOPS[squared_root][0][:3]]
    slopes = 0.5 / np.sqrt(rows)
    ones = np.ones_like(rows)
    np.testing.assert_allclose(fnad.jvp(fnad.vmap(f), (rows,), (ones,))[1], slopes, rtol=1e-9)
    np.testing.assert_allclose(fnad.vmap(lambda a: fnad.jvp(f, (a,), (1.0,))[1])(rows), slopes, rtol=1e-9)
    np.testing.assert_allclose(fnad.vmap(fnad.grad(f))(rows), slopes, rtol=1e-9)
    np.testing.assert_allclose(fnad.grad(lambda a: np.sum(fnad.vmap(f)(a)))(rows), slopes, rtol=1e-9)
    second = fnad.grad(lambda a: np.sum(fnad.jvp(fnad.vmap(f), (a,), (ones,))[1]))(rows)
    np.testing.assert_allclose(second, -0.25 * rows**-1.5, rtol=1e-6)


def test_a_row_that_goes_on_too_long() -> None:
    def halved(a: Any) -> Any:
        return fnad.while_loop(lambda s: s > 1, lambda s: s / 2, a, max_steps=5)

    rows = np.full(20, 32.0)
    np.testing.assert_array_equal(fnad.vmap(halved)(rows), np.ones(20))
    rows[18] = 33.0
    for run in (fnad.vmap(halved), fnad.jit(fnad.vmap(halved))):
        with pytest.raises(LoopLimitError, match=r"max_steps=5 steps\n  at test_batching.py"):
            run(rows)
        with pytest.raises(LoopLimitError, match="max_steps=5 steps"):
            run(rows[::-1].copy())


def test_branches_of_rows_by_selecting() -> None:
    """Where all of them are a little arithmetic: to the bit as each row's own, and not where there are many."""
    branches = [lambda x: 1 / x, lambda x: np.sqrt(x), lambda x: x * x]
    f = lambda i, x: fnad.switch(i, branches, x)  # noqa: E731
    places, rows = np.array([-1, 0, 1, 2, 3, 1]), np.array([2.0, 0.0, 0.0, 3.0, np.inf, -1.0])
    with np.errstate(all="ignore"):
        expected = np.stack([f(int(i), x) for i, x in zip(places, rows, strict=True)])
    np.testing.assert_array_equal(fnad.vmap(f)(places, rows), expected)
    few = program_of(fnad.vmap(f), places, rows)
    assert " scan(" not in few
    slopes = fnad.grad(lambda x: np.sum(fnad.vmap(f)(places, x)[3:]))(rows)
    np.testing.assert_array_equal(slopes[[0, 1, 2, 3, 4]], [0.0, 0.0, 0.0, 6.0, np.inf])

    def powers(n: int) -> Callable[[Any], Any]:
        return lambda x: sum(x / (k + n) for k in range(9))

    many = [powers(n) for n in range(9)]
    many_rows = program_of(fnad.vmap(lambda i, x: fnad.switch(i, many, x)), places, rows)
    assert " scan(" in many_rows

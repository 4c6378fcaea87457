"""Python loops that become scans: the same numbers to the bit, the right derivatives, a reason where they do not."""

from __future__ import annotations

import cProfile
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.api.running import execution
from fnad.api.staging.leaves import leaf_of
from fnad.api.staging.stage import Staged, stage
from fnad.backends.cpu.target import CPU
from fnad.backends.reference import interpreter
from fnad.control import flow, reroll
from fnad.control.repeats import DEEPEST, Lines, View, folded
from fnad.control.reroll import rolled
from fnad.ir.content import content_key
from fnad.ir.program import Program, Var
from fnad.ir.verifier import verify
from fnad.lower.loop_ir import NestLoop, controls
from fnad.lower.lowering import lower
from fnad.ops.shape import reshape, slice_, transpose
from fnad.transforms.differentiation import value_and_gradient
from fnad.transforms.pipeline import simplify
from tests.control.random_loops import DRAWN, random_loop

RNG = np.random.default_rng(0)
U, V, X = RNG.random(12), RNG.random(4), RNG.random(40)
GRID, ROWS = RNG.random((12, 14)), RNG.random((40, 4))
TIMES, CAPTURED = np.linspace(0.0, 3.0, 41), RNG.random(40)
ORDER, PLACES = RNG.permutation(40), RNG.integers(0, 10, (40, 2)).tolist()
EDGES = [(int(a), int(b)) for a, b in zip(ORDER, RNG.permutation(40), strict=True) if a != b]
Function = Callable[..., Any]


def staged(f: Function, *args: Any) -> Staged:
    return stage(f, [leaf_of(np.asarray(arg)) for arg in args], lambda tracers: f(*tracers))


def primitives(program: Program) -> list[str]:
    return [equation.primitive.name for equation in program.equations]


def heat(u: Any, k: Any) -> Any:
    u = u.copy()
    for _ in range(60):
        u[1:-1] += k * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.sum(u**2)


def recurrent(w: Any, xs: Any) -> Any:
    h, loss = np.zeros(4), 0.0
    for x in xs:
        h = np.tanh(w @ h + x)
        loss = loss + h @ h
    return loss


def kalman(transition: Any, q: Any, measured: Any) -> Any:
    seen = np.eye(2)[:1]
    mean, covariance, found = np.zeros(2), np.eye(2), 0.0
    for z in measured:
        mean, covariance = transition @ mean, transition @ covariance @ transition.T + q * np.eye(2)
        off, spread = z[:1] - seen @ mean, seen @ covariance @ seen.T + 0.1
        gain = covariance @ seen.T @ np.linalg.inv(spread)
        mean, covariance = mean + gain @ off, (np.eye(2) - gain @ seen) @ covariance
        found = found + off @ np.linalg.solve(spread, off) + np.log(np.linalg.det(spread))
    return found


def filtered(a: Any, x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(1, len(x)):
        y[i] = a * y[i - 1] + x[i]
    return np.sum(y**2)


def backwards(a: Any, x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(len(x) - 2, -1, -1):
        y[i] = a * y[i + 1] + np.sin(x[i])
    return np.sum(y**2)


def two_before(a: Any, x: Any) -> Any:
    y = x.copy()
    for i in range(2, len(x)):
        y[i] = a * y[i - 1] - 0.1 * y[i - 2] + x[i]
    return np.sum(y**2)


def three_before(a: Any, x: Any) -> Any:
    y = x.copy()
    for i in range(3, len(x)):
        y[i] = a * y[i - 3] + np.sin(x[i]) * 0.1
    return np.sum(y**2)


def gauss_seidel(u: Any, f: Any) -> Any:
    u = u.copy()
    for _ in range(9):
        for i in range(1, len(u) - 1):
            u[i] = 0.5 * (u[i - 1] + u[i + 1] - f[i])
    return np.sum(u**2)


def gauss_seidel_2d(u: Any, f: Any) -> Any:
    u = u.copy()
    for _ in range(8):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - f[i, j])
    return np.sum(u**2)


def short_inner_loop(a: Any, x: Any) -> Any:
    total = 0.0
    for i in range(12):
        for j in range(3):
            total = total * a + x[i, j]
    return total


def a_list(a: Any, x: Any) -> Any:
    xs = [x]
    for _ in range(30):
        xs.append(xs[-1] + 0.1 * np.sin(a * xs[-1]) - 0.01 * (xs[-2] if len(xs) > 1 else 0.0))
    return np.sum(np.stack(xs) ** 2)


def comprehension(a: Any, rows: Any) -> Any:
    return np.sum(np.stack([np.sin(a * row) + 1 for row in rows], axis=1) ** 2)


def enumerated(a: Any, xs: Any) -> Any:
    return sum(x * np.sin(a * k) + 0.1 * k for k, x in enumerate([*xs, *xs]))


def filled_backwards(a: Any, x: Any) -> Any:
    y = [0.0] * (len(x) + 1)
    for i in range(len(x) - 1, -1, -1):
        y[i] = a * y[i + 1] + x[i]
    return np.array(y)


def diagonal(a: Any, grid: Any) -> Any:
    total = 0.0
    for i in range(12):
        total = np.sin(total * a + np.cos(grid[i, i]) * grid[i, 1:9].sum())
    return total


def windows(a: Any, x: Any) -> Any:
    total = 0.0
    for i in range(1, 30):
        total = total + np.sum(np.sin(a * x[i - 1 : i + 2]))
    return total


def by_two(a: Any, x: Any) -> Any:
    y = x.copy()
    for i in range(1, 39, 2):
        y[i] = a * y[i - 1] + y[i + 1] * np.sin(a)
    return np.sum(y**2)


def written_twice(a: Any, x: Any) -> Any:
    y = x.copy()
    for i in range(1, 38):
        y[i] = a * y[i - 1]
        y[i + 1] = y[i] + 0.5 * y[i + 1]
    return np.sum(y**2)


def counted(a: Any, x: Any) -> Any:
    for k in range(1, 41):
        x = x + 0.01 * np.sin(a * x + k * 0.1) / k
    return np.sum(x)


def runge_kutta(rate: Any, u: Any) -> Any:
    flow = lambda u: rate * u * (1 - u)  # noqa: E731
    for h in np.diff(TIMES):
        k1 = flow(u)
        k2 = flow(u + h / 2 * k1)
        k3 = flow(u + h / 2 * k2)
        u = u + h / 6 * (k1 + 2 * k2 + 2 * k3 + flow(u + h * k3))
    return np.sum(u)


def filter_of_captured(q: Any, spread: Any) -> Any:
    mean, found = 0.0, 0.0
    for z in CAPTURED:
        spread = spread + q
        gain = spread / (spread + 0.1)
        found = found + (z - mean) ** 2 / (spread + 0.1) + np.log(spread + 0.1)
        mean, spread = mean + gain * (z - mean), (1 - gain) * spread
    return found


def rotated(angle: Any, z: Any) -> Any:
    for w in CAPTURED * np.exp(1j * CAPTURED):
        z = np.sin(angle * z + w) * np.cos(z) + z * z * 0.1
    return np.sum(np.abs(z))


def permuted(a: Any, x: Any) -> Any:
    u = x.copy()
    for i in ORDER:
        u[i] = np.sin(a) * u[i]
    return np.sum(u**3)


def gradient_descent(w: Any, rows: Any) -> Any:
    for i in ORDER:
        w = w - 0.1 * (rows[i] @ w - 1.0) * rows[i]
    return np.sum(w**2)


def springs(k: Any, x: Any) -> Any:
    force = np.zeros_like(x)
    for a, b in EDGES:
        pull = k * np.sin(x[a] - x[b])
        force[a] -= pull
        force[b] += pull
    return np.sum(force**2)


def on_a_grid(a: Any, grid: Any) -> Any:
    u = grid.copy()
    for i, j in PLACES:
        u[i, j] = a * u[j, i] + grid[i, j + 1] * u[i + 1, 0]
    return np.sum(u**2)


def at_places_with_numbers(a: Any, x: Any) -> Any:
    total = 0.0
    for i, t in zip(ORDER, CAPTURED, strict=True):
        total = np.cos(total * a + t * x[i])
    return total


def irregular_windows(a: Any, x: Any) -> Any:
    total = 0.0
    for i in ORDER[ORDER < 36]:
        total = total + np.sum(np.sin(a * x[i : i + 3]) * x[i : i + 5 : 2])
    return total


def every_other(a: Any, x: Any) -> Any:
    total = 0.0
    for i in range(37):
        total = np.sin(total) + np.sum(a * x[i : i + 4 : 2])  # the last one ends at the end of x
    return total


def pairs(k: Any, x: Any) -> Any:
    total = 0.0
    for i in range(12):
        for j in range(12):
            total = total + k * np.sin(x[j] - x[i]) ** 2
    return total


def all_pairs(k: Any, x: Any) -> Any:
    total = 0.0
    for i in range(16):
        for j in range(i + 1, 16):
            total = total + k * np.sin(x[j] - x[i]) ** 2
    return total


def bodies(k: Any, x: Any) -> Any:
    force = np.zeros_like(x)
    for i in range(12):
        for j in range(12):
            if j != i:
                d = x[i] - x[j]
                force[i] += d / (np.sum(d * d) + k)
    return np.sum(force**2)


def nearest(k: Any, x: Any) -> Any:
    found = []
    for i in range(12):
        total = 0.0
        for j in ORDER[i : i + 16]:
            total = total + k * np.sin(x[i] - x[j])
        found.append(total)
    return np.sum(np.array(found) ** 2)


LOOPS: list[tuple[Function, tuple[Any, ...], int]] = [
    (heat, (U, 0.1), 1),
    (recurrent, (RNG.random((4, 4)), ROWS), 1),
    (kalman, (0.9 * np.eye(2) + 0.01, 0.3, ROWS), 1),
    (filtered, (0.5, X), 1),
    (backwards, (0.5, X), 1),
    (two_before, (0.5, X), 1),
    (three_before, (0.5, X), 1),
    (gauss_seidel, (U, U), 1),
    (gauss_seidel_2d, (GRID, GRID), 1),
    (short_inner_loop, (0.5, ROWS), 1),
    (a_list, (0.5, V), 1),
    (comprehension, (0.5, ROWS), 1),
    (enumerated, (0.5, X), 2),
    (filled_backwards, (0.5, X), 1),
    (diagonal, (0.5, GRID), 1),
    (windows, (0.5, X), 1),
    (by_two, (0.5, X), 1),
    (written_twice, (0.5, X), 1),
    (counted, (0.5, V), 1),
    (runge_kutta, (0.5, V), 1),
    (filter_of_captured, (0.3, 1.0), 1),
    (rotated, (0.5, V + 0.2j), 1),
    (permuted, (0.5, X), 1),
    (gradient_descent, (V, ROWS), 1),
    (springs, (0.5, X), 1),
    (springs, (0.5, ROWS), 1),
    (on_a_grid, (0.5, GRID), 1),
    (at_places_with_numbers, (0.5, X), 1),
    (irregular_windows, (0.5, X), 1),
    (every_other, (0.5, X[:40]), 1),
    (pairs, (0.5, X), 1),
    (all_pairs, (0.5, X), 1),
    (bodies, (0.5, ROWS), 1),
    (nearest, (0.5, X), 1),
]


@pytest.mark.parametrize(("f", "args", "loops"), LOOPS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_loop_is_found_again_with_the_same_bits_and_gradients(f: Function, args: tuple[Any, ...], loops: int) -> None:
    traced = staged(f, *args)
    program = rolled(traced.program)
    verify(program)
    assert primitives(program).count("scan") == loops
    assert sum(any(isinstance(atom, Var) for atom in each.operands) for each in program.equations) < 30
    operands: Any = traced.operands
    assert_same_bits(interpreter(program)(operands), interpreter(traced.program)(operands))
    if traced.program.outputs[0].aval.shape == () and len(traced.program.equations) < 3000:
        loop, straight = (
            interpreter(value_and_gradient(p, traced.wrt))(operands) for p in (simplify(program), traced.program)
        )
        for found, expected in zip(loop, straight, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


COLLECTED: dict[str, Function] = {
    "stack": lambda rows: np.stack(rows),
    "stack, last axis": lambda rows: np.stack(rows, axis=1),
    "array": lambda rows: np.array(rows),
    "backwards": lambda rows: np.stack(rows[::-1]),
    "every third": lambda rows: np.stack(rows[::3]),
    "concatenate": lambda rows: np.concatenate(rows),
    "concatenate, last axis": lambda rows: np.concatenate([row.reshape(2, 2) for row in rows], axis=1),
    "columns": lambda rows: np.concatenate([row[:, None] for row in rows], axis=1),
    "an element": lambda rows: np.stack([row[1] for row in rows]),
    "parts": lambda rows: np.concatenate([row[3:0:-2] for row in rows]),
    "transposed": lambda rows: np.stack([row.reshape(2, 2).T for row in rows], axis=2),
    "after others": lambda rows: np.stack([V, *rows, np.cos(rows[3])]),
}


@pytest.mark.parametrize("way", COLLECTED)
def test_values_of_the_steps_are_collected_at_once(way: str) -> None:
    def f(a: Any, x: Any) -> Any:
        rows = []
        for _ in range(60):
            x = np.sin(a * x) * 1.1
            rows.append(x)
        found = COLLECTED[way](rows)
        return np.sum(found * np.arange(found.size).reshape(found.shape))

    traced = staged(f, 0.5, V)
    program = rolled(traced.program)
    verify(program)
    assert len(program.equations) < 20
    operands: Any = traced.operands
    assert_same_bits(interpreter(program)(operands), interpreter(traced.program)(operands))
    loop, straight = (interpreter(value_and_gradient(p, traced.wrt))(operands) for p in (program, traced.program))
    for found, expected in zip(loop, straight, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def powers(t: Any) -> list[Any]:
    found = [t]
    for _ in range(120):
        found.append(found[-1] * t)
    return found


@pytest.mark.parametrize(
    "matrix",
    [
        lambda t: np.vander(t, 128, increasing=True),
        lambda t: np.stack(powers(t), axis=1),
        lambda t: np.concatenate([p[:, None] for p in powers(t)], axis=1),
    ],
)
def test_columns_that_a_loop_computes_are_multiplied_where_they_lie(matrix: Function) -> None:
    def f(x: Any, t: Any) -> Any:
        columns = matrix(t)
        return np.sum((columns @ x[: columns.shape[1]]) ** 2)

    t = np.linspace(-1.0, 1.0, 50)
    program = simplify(rolled(staged(f, np.ones(128), t).program))
    assert "scan" in primitives(program)
    assert "transpose" not in primitives(program)


def test_an_element_that_was_written_is_carried_as_a_number() -> None:
    (loop,) = [e for e in simplify(rolled(staged(filtered, 0.5, X).program)).equations if e.regions]
    assert primitives(loop.regions[0]) == ["mul", "add"]


def test_a_long_program_within_a_trace_is_looked_up_as_loops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found: list[int] = []

    def content(program: Program) -> Any:
        found.append(len(program.equations))
        return content_key(program)

    monkeypatch.setattr(execution, "content_key", content)
    monkeypatch.setattr(execution, "SHORT", 100)
    fnad.jit(fnad.value_and_grad(filtered)).lower(0.5, X)
    assert found
    assert max(found) < 30


def assert_same_bits(found: list[Any], expected: list[Any]) -> None:
    for x, y in zip(map(np.asarray, found), map(np.asarray, expected), strict=True):
        assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())


@pytest.mark.slow
def test_compiled_derivatives_are_those_of_a_complex_step() -> None:
    for f, (first, second) in (
        (filtered, (0.5, X)),
        (gauss_seidel_2d, (GRID, GRID)),
        (recurrent, (np.eye(4) / 3, ROWS)),
        (runge_kutta, (0.5, V)),
        (filter_of_captured, (0.3, 1.0)),
        (springs, (0.5, ROWS)),
        (on_a_grid, (0.5, GRID)),
    ):
        value, gradient = fnad.jit(fnad.value_and_grad(f, argnums=(0, 1)))(first, second)
        directions = np.ones_like(first), np.cos(second)
        along = f(*(np.asarray(x) + 1e-30j * d for x, d in zip((first, second), directions, strict=True)))
        np.testing.assert_allclose(value, along.real, rtol=1e-12)
        slope = sum(np.sum(g * d) for g, d in zip(gradient, directions, strict=True))
        np.testing.assert_allclose(slope, along.imag / 1e-30, rtol=1e-10)


def test_a_loop_composes_with_transforms() -> None:
    x = X[:16]
    _, straight = fnad.jvp(lambda a: filtered(a, x), (0.5,), (1.0,))
    step = 1e-30j
    np.testing.assert_allclose(straight, filtered(0.5 + step, x.astype(complex)).imag / 1e-30, rtol=1e-12)
    stacked = fnad.vmap(fnad.grad(filtered), in_axes=(0, None))(np.array([0.3, 0.5]), x)
    np.testing.assert_allclose(stacked, [fnad.grad(filtered)(a, x) for a in (0.3, 0.5)], rtol=1e-12)
    second = fnad.grad(fnad.grad(filtered))(0.5, x)
    ahead, behind = (fnad.grad(filtered)(0.5 + h, x) for h in (1e-5, -1e-5))
    np.testing.assert_allclose(second, (ahead - behind) / 2e-5, rtol=1e-6)


def test_checkpoints_and_bodies_of_loops_are_looked_through() -> None:
    def body(x: Any) -> Any:
        for _ in range(30):
            x = np.sin(x) * 1.1 + 0.1
        return x

    def outer(x: Any) -> Any:
        return np.sum(fnad.checkpoint(body)(x)) + np.sum(fnad.scan(lambda s, _: (body(s), None), x, length=3)[0])

    traced = staged(outer, V)
    program = rolled(traced.program)
    nested = [e.primitive.name for equation in program.equations for r in equation.regions for e in r.equations]
    assert nested.count("scan") == 2
    assert_same_bits(interpreter(program)(traced.operands), interpreter(traced.program)(traced.operands))  # type: ignore[arg-type]


# ---- what stays as it is ---------------------------------------------------------------------------------------------


def triangular(grid: Any, b: Any) -> Any:
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - np.sum(grid[i, :i] * x[:i])) / grid[i, i]
    return np.sum(x)


def one_step_differs(a: Any, x: Any) -> Any:
    for i in range(60):
        x = np.sin(a * x) * (0.5 if i == 30 else 0.25)
    return np.sum(x)


def one_step_has_more(a: Any, x: Any) -> Any:
    for i in range(60):
        x = np.sin(a * x) * 0.25
        if i == 30:
            x = x + 1
    return np.sum(x)


def uneven(a: Any, x: Any) -> Any:
    for i in range(40):
        x = np.sin(a * x) * ((i * i % 17) / 16)
    return np.sum(x)


def unequal_degrees(k: Any, x: Any) -> Any:
    """Sums over lists of neighbours of which none is long enough to be a loop."""
    found = []
    for i in range(20):
        total = 0.0
        for j in ORDER[i : i + 6 + i % 4]:
            total = total + k * np.sin(x[i] - x[j])
        found.append(total)
    return np.sum(np.array(found) ** 2)


@pytest.mark.parametrize(
    ("f", "args", "reason"),
    [
        (triangular, (GRID[:, :12] + 4, U), "the steps differ in shapes"),
        (one_step_differs, (0.5, V), "step 31 takes the number 0.5 after 0.25 and 0.25"),
        (one_step_has_more, (0.5, V), "other operations than its neighbours"),
        (uneven, (0.5, V), "takes the number"),
        (unequal_degrees, (0.5, X), "reads from index"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_loop_that_almost_repeats_is_right_and_explained(f: Function, args: tuple[Any, ...], reason: str) -> None:
    traced = staged(f, *args)
    operands: Any = traced.operands
    assert_same_bits(interpreter(rolled(traced.program))(operands), interpreter(traced.program)(operands))
    text = str(fnad.explain(f, *args))
    assert "left unrolled:" in text
    assert reason in text
    assert f"in {f.__name__}:" in text


def test_steps_whose_numbers_are_irregular_take_them_from_tables() -> None:
    assert len(set(np.diff(TIMES))) > 2
    explanation = fnad.explain(runge_kutta, 0.5, V)
    assert len(explanation.loops) == 1
    assert explanation.unrolled == ()
    tables = [e for e in rolled(staged(runge_kutta, 0.5, V).program).equations if e.primitive.name == "concatenate"]
    assert [len(table.operands) for table in tables] == [40, 40, 40]  # h / 2, h, h / 6: one each


@pytest.mark.slow
def test_irregular_places_are_a_table_and_each_step_back_is_of_an_element() -> None:
    program = staged(permuted, 0.5, X).program
    tables = [e for e in rolled(program).equations if e.primitive.name == "concatenate"]
    assert [len(table.operands) for table in tables] == [40]
    for f, args in ((permuted, (0.5, X)), (springs, (0.5, X)), (springs, (0.5, ROWS))):
        traced = staged(f, *args)
        both = simplify(value_and_gradient(rolled(traced.program), traced.wrt))
        loops = [control for item in lower(both, CPU).items for control in controls(item)]
        extents = [item.extent for loop in loops for body in loop.bodies for item in body if isinstance(item, NestLoop)]
        assert len(loops) == 2
        assert max(extents, default=1) <= 4


@pytest.mark.parametrize("f", [pairs, nearest])
def test_what_an_inner_loop_reads_of_the_outer_one_is_taken_in_front_of_it(f: Function) -> None:
    explanation = fnad.explain(f, 0.5, X)
    assert len(explanation.loops) == 2
    assert explanation.unrolled == ()


def test_explain_lists_loops() -> None:
    explanation = fnad.explain(filtered, 0.5, X)
    (loop,) = explanation.loops
    assert loop.startswith("38 steps, from test_reroll.py:")
    assert explanation.unrolled == ()


def test_views_are_alike_but_for_their_values_and_where_they_begin() -> None:
    """Of changes of the shape that follow each other the last one counts; a long chain is a value of its own."""

    def f(x: Any, y: Any) -> Any:
        a = x[1:3].reshape(1, 2).reshape(2, 1).T
        b = y[4:6].reshape(2, 1).T
        deep = x
        for _ in range(4):
            deep = deep[:, None][1:].reshape(-1)
        return a, b, x[1:4], deep

    program = fnad.make_program(f)(np.ones(6), np.ones(6)).program
    found = Lines(program)
    a, b, other, deep = program.outputs
    x, y = program.inputs
    assert found.look(a) == found.look(b) != found.look(other)
    assert [found.view(atom)[::2] for atom in (a, b)] == [(x, (1,)), (y, (4,))]
    assert [step.primitive for step in found.view(a).steps] == [slice_, reshape, transpose]
    assert found.view(x) == View(x, (), ())
    assert found.lines[-1].results == (deep,)
    assert found.view(deep) == View(deep, (), ())
    assert found.root(found.lines[0].operands[0]) is x


def test_slices_that_are_no_views_are_alike_only_if_they_begin_at_the_same_place() -> None:
    def f(x: Any, y: Any) -> Any:
        for _ in range(DEEPEST):
            x, y = x.T, y.T
        return x[1:3], x[2:4], y[1:3]

    program = fnad.make_program(f)(np.ones((6, 6)), np.ones((6, 6))).program
    found = Lines(program)
    a, b, c = found.kinds.tolist()
    assert [line.results[0] for line in found.lines] == list(program.outputs)
    assert a != b
    assert a == c


def test_sequences_have_equal_numbers_if_they_are_equal() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 6, 2000)
    lengths[7] = 1000
    elements = rng.integers(0, 3, lengths.sum())
    sequences = [tuple(part) for part in np.split(elements, np.cumsum(lengths)[:-1])]
    numbers = folded(elements, lengths).tolist()
    assert len(set(zip(numbers, sequences, strict=True))) == len(set(numbers)) == len(set(sequences))


def test_short_loops_and_long_programs_without_any_stay_the_same_object() -> None:
    def short(x: Any) -> Any:
        for _ in range(7):
            x = np.sin(x) * 1.1
        return np.sum(x)

    for program in (staged(short, V).program, staged(uneven, 0.5, V).program):
        assert rolled(program) is program


def test_rows_that_nobody_reads_take_no_memory() -> None:
    def snapshots(x: Any) -> Any:
        saved = []
        for i in range(40):
            x = np.sin(x) * 1.1
            if i % 20 == 5:
                saved.append(x)
        return np.stack(saved)

    assert primitives(rolled(staged(snapshots, V).program)).count("scan") == 1
    program = staged(snapshots, np.ones(10_000)).program
    assert rolled(program) is program


def test_effects_happen_once_a_step_and_in_order() -> None:
    seen: list[int] = []

    def f(x: Any) -> Any:
        for i in range(20):
            x = np.sin(x) * 1.1 + 0.1
            x = x * 0.5 + np.cos(x)
            fnad.callback(lambda _, i=i: seen.append(i), x)
        return np.sum(x)

    fnad.jit(f)(V)
    assert seen == list(range(20))


def test_python_may_decide_in_a_loop() -> None:
    def f(x: Any) -> Any:
        total = x
        for i in range(40):
            total = np.sin(total) + 0.1 * i
            if total > 3.0:
                total = total - 1.0
        return total

    compiled = fnad.jit(fnad.value_and_grad(f))
    for x in (0.3, 0.9):
        value, gradient = compiled(x)
        assert value == pytest.approx(f(x), rel=1e-13)
        assert gradient == pytest.approx((f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rel=1e-4, abs=1e-6)


def test_an_error_in_a_loop_has_its_line() -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(30):
            total = total + np.linalg.inv(x * np.ones((2, 2)) + (x - i) * np.eye(2))[0, 0]
        return total

    with pytest.raises(np.linalg.LinAlgError) as caught:
        fnad.jit(f)(0.0)
    assert "np.linalg.inv(x * np.ones((2, 2))" in str(caught.value)


def test_arrays_made_in_each_step_are_one_input() -> None:
    def f(x: Any) -> Any:
        for _ in range(5):
            x = x @ np.eye(2) + np.zeros(2) + np.array([-0.0, 0.0])
        return x

    assert len(staged(f, np.ones(2)).program.inputs) == 1 + 3


# ---- random loops ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [2, 6, 15, 22, 26, 33, 51, 1051])
@pytest.mark.parametrize("in_order", [True, False], ids=["in order", "irregular"])
def test_rolled_random_loops_compute_as_unrolled_ones(
    seed: int, in_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (flow, reroll):
        monkeypatch.setattr(module, "FEWEST", 3)
        monkeypatch.setattr(module, "SMALLEST", 1)
    monkeypatch.setattr(flow, "EQUATIONS_A_NUMBER", 0)
    traced = staged(random_loop(seed, in_order=in_order), *DRAWN)
    program = rolled(traced.program)
    verify(program)
    operands: Any = traced.operands
    with np.errstate(all="ignore"):
        assert_same_bits(interpreter(program)(operands), interpreter(traced.program)(operands))
        pairs = [interpreter(value_and_gradient(p, traced.wrt))(operands) for p in (program, traced.program)]
    for found, expected in zip(*pairs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_what_was_unrolled_is_freed_and_no_garbage() -> None:
    def found(n: int) -> int:
        traced = staged(filtered, 0.5, np.arange(float(n)))
        gc.collect()
        gc.disable()
        try:
            rolled(traced.program)
            return gc.collect()
        finally:
            gc.enable()

    assert found(160) == found(40)


# ---- effort ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("repeats", [True, False])
def test_the_effort_grows_with_the_length(repeats: bool) -> None:
    def f(n: int) -> Function:
        def g(a: Any, x: Any) -> Any:
            for i in range(n):
                x = np.sin(a * x) * (0.5 if repeats else (i * i % 17) / 16) + 0.1
            return x

        return g

    calls: list[int] = []
    for n in (100, 400):
        program = staged(f(n), 0.5, V).program
        profile = cProfile.Profile()
        profile.runcall(rolled, program)
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < 5 * calls[0]

"""Loops of Python whose steps take different branches: one loop under `jit`, with Python's own numbers.

Each function is called with new data, and compared with itself on NumPy's numbers. Its derivative is compared with that
of the path that Python takes. There are as many traces as ways through a step, and two, not as many as combinations.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats

import fnad
from benchmarks.problems.deciding_loops import drawdown, three_ways, van_leer
from fnad import grad, hessian, jit, jvp, vmap
from fnad.backends.base import current_backend
from fnad.transforms.pipeline import simplify
from tests.random_python_loops import check
from tests.together import some_of, together

pytestmark = pytest.mark.filterwarnings("ignore::fnad.errors.ControlFlowWarning")

CALLS = 5
N = 12


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    """Interpret the loops, which compiled ones do not differ from."""
    with fnad.config.override(executor="interpreter"):
        yield


def nested(x: Any, a: Any) -> Any:
    s = t = 0.0
    for v in x:
        if v > a:
            if v > 2 * a and s < 3.0:
                s += v * v
            elif v > 1.5 or s < t:
                t -= np.cos(v)
        s += 0.1 * v
    return s * t + s


def chained(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        if -0.5 < v < a:
            s += v
        elif not a < v <= 1.0:
            s -= v**2
    return s


def smallest(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        s = max(s, min(v, a)) + abs(v) * 0.1
    return s


def warped(x: Any, a: Any) -> Any:
    before = np.full(len(x) + 1, 10.0)
    before[0] = 0.0
    for v in x:
        after = np.full(len(x) + 1, 10.0)
        for j in range(len(x)):
            after[j + 1] = (v - a * x[j] ** 2) ** 2 + min(before[j], before[j + 1], after[j])
        before = after
    return max(before[-1], before[-2]) * a


def ordered(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        low, high = sorted((v, a))
        s += low * high if high > 0 else low
    return s


def by_functions_of_math(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        s += math.copysign(1.0, v) * np.sign(v - a) * v + math.floor(v)
        if v > a:
            s -= math.sqrt(abs(v))
    return s


def going_on(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        if v < 0:
            continue
        if v > a + 1.5:
            break
        s += v * v
    return s


def counted(x: Any, a: Any) -> Any:
    n, s = 0, 0.0
    for v in x:
        if v > a:
            n += 1
            s += n * v
        elif v < -1:
            n -= 2
    return s / (n + 100)


def flags(x: Any, a: Any) -> Any:
    mode, up, s = "a", True, 0.0
    for v in x:
        if mode == "a" and v > a:
            mode, s = "b", s + v
        elif mode == "b" and v < 0:
            mode, up = "a", not up
        s += v if up else -0.5 * v
    return s + (1.0 if mode == "a" else 2.0)


def node_of_a_tree(x: Any, a: Any) -> Any:
    node = 0
    for i in range(4):
        if x[i] < a:  # noqa: SIM108
            node = 2 * node + 1
        else:
            node = 2 * node + 2
    return x[node % 12] ** 2 * node


def remembered(x: Any, a: Any) -> Any:
    before, s = None, 0.0
    for v in x:
        if before is not None and v > before:
            s += (v - before) * a
        before = v
    return s


def defined_on_some_ways(x: Any, a: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        if i == 0:
            last = x[i]
            continue
        if x[i] > a:
            s += x[i] * last  # pyright: ignore[reportPossiblyUnboundVariable]
            last = x[i]
    return s + last  # pyright: ignore[reportPossiblyUnboundVariable]


def pairs(x: Any, a: Any) -> Any:
    low = high = (0.0, 1.0)
    for i, (v, w) in enumerate(zip(x, x[::-1], strict=True)):
        if v > w:
            high = (v, high[0] + i)
        else:
            low = (low[1] * a, w)
    return high[0] * low[1] + high[1] + low[0]


def written(x: Any, a: Any) -> Any:
    y = np.zeros(len(x))
    for i in range(1, len(x)):
        if x[i] > a:
            y[i] = y[i - 1] + x[i]
        else:
            y[i] = 0.5 * y[i - 1]
    return y.sum() + y[-1] ** 2


def written_on_some_ways(x: Any, a: Any) -> Any:
    y = np.ones(len(x))
    for i in range(len(x)):
        if x[i] > a and i + 2 < len(x):
            y[i + 2] = x[i + 2] * x[i]
        elif x[i] < -a and i > 3:
            y[-i] = y[i - 4] * a
    return (y * x).sum()


def read_within_bounds(x: Any, a: Any) -> Any:
    i, s = 0, 0.0
    for v in x:
        if i < 4 and x[3 * i] > a:
            s += x[3 * i] * v
        elif v > a:
            s -= x[i % 12] * v
        i += 2 if v > 0 else 1
    return s


def read_beside_a_write(x: Any, a: Any) -> Any:
    """The element decides, is read on one way and written on the other."""
    y, z = np.ones(len(x)), x
    for i, v in enumerate(x):
        if x[i] > y[i]:
            z = z * 0.8 + 0.1 * y[i]
        else:
            y[i] += (a * v - 0.3 * y[i - 1] * v) * 0.5
    return (y * x).sum() + (z * z).sum()


def sunk(x: Any, a: Any) -> Any:
    y = x * 1.0
    for i in range(len(x) - 1):
        if y[i] > y[i + 1]:
            y[i], y[i + 1] = y[i + 1], y[i]
    return (y * np.arange(12.0)).sum() * a


def replaced(x: Any, a: Any) -> Any:
    u = x
    for i in range(8):
        u = u * 0.5 - x * i if u.sum() > a else u * u + a
    return u.sum()


def replaced_and_restored(x: Any, a: Any) -> Any:
    u = x
    for v in x:
        if v > a:
            u = u * 0.5
        elif v > -1:
            u = x
    return (u * u).sum()


def one_array_of_two_names(x: Any, a: Any) -> Any:
    u = x + 1.0
    w = u
    for v in x:
        if v > a:
            w[0] = w[0] + v
        else:
            w = w * 0.9
    return u.sum() + (w * w).sum()


def seen_through_a_view(x: Any, a: Any) -> Any:
    y = np.zeros((2, len(x)))
    row = y[1]
    for i in range(len(x)):
        if x[i] > a:
            y[1, i] = x[i] ** 2
        else:
            y[0, i] = x[i]
    return row.sum() - y[0].sum()


def in_both_loops(x: Any, a: Any) -> Any:
    s = 0.0
    for i in range(6):
        t = 0.0
        for j in range(i + 1):
            if x[j] > a:
                t += x[i] * x[j]
            else:
                t -= np.sin(x[i])
        if t > 0:
            s += t
        else:
            s -= 0.5 * t
    return s


def neighbours(x: Any, a: Any) -> Any:
    s = 0.0
    for i in range(len(x)):
        s += x[i + 1] * a if i + 1 < len(x) and x[i] > a else -x[i - 1]
    return s


def tried_on_an_ordinary_array(x: Any, a: Any) -> Any:
    y = np.ones(len(x))
    for i in range(len(x)):
        try:
            y[i], y[i - 1] = y[i - 1] * 2, y[i]
            if x[i] > a:
                raise ValueError  # noqa: TRY301
        except Exception:  # noqa: BLE001 - which takes errors of fnad, too
            y[0] = y[0] + i
    return (x * y).sum() * a


def helped(x: Any, a: Any) -> Any:
    def limited(v: Any) -> Any:
        if v > a:
            return a + 0.1 * (v - a)
        return math.exp(v)

    s = 0.0
    for v in x:
        s += limited(v)
    return s


def tried(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        try:
            if v > a:
                raise ValueError  # noqa: TRY301
            s += v
        except ValueError:
            s -= 2 * v
    return s


def bisection(x: Any, a: Any) -> Any:
    low, high = 0.0, 3.0 + abs(a)
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        if middle**3 > 1 + a * a:
            high = middle
        else:
            low = middle
    return x[0] * (low + high)


def run_of(x: Any, a: Any) -> Any:
    s, place = a, 0
    for v in x:
        j = 0.0
        while j < v:
            s += v * v * place
            place += 1
            j += 0.5
    return s


def series(x: Any, a: Any) -> Any:
    s, term, k = 0.0, 0.4 * a, 0
    while abs(term) > 1e-9 and k < 60:
        term = (a - 1.0 / (2.0 * k + 3.0)) * np.tanh(x[0]) ** k * 0.1
        s += term
        k += 1
    return s


def divided_by_a_number_below_zero(x: Any, a: Any) -> Any:
    s, k = 0.0, -1
    for v in x:
        if v > a:
            s += 1.0 / (0.5 * k - 1) + v
        k -= 1
    return s


def left_before_a_step(x: Any, a: Any) -> Any:
    s, i = a, 0
    while True:
        if i >= len(x):
            break
        if x[i] > 1:
            if a > 0:
                break
            if x[i] > 1.5:
                break
        elif x[i] < -1.5:
            break
        s += x[i] * a
        i += 1
    return s * a


def left_with_an_open_answer(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        if v > 1:
            if a > 0.2:
                break
        elif v < -1 and a < 0:
            break
        if v > 0:
            s += v * a
        else:
            s -= v * v
    return s + a


def with_an_else(x: Any, a: Any) -> Any:
    s, k = a, 0
    for i in range(3):
        for v in x:
            if v > a + i:
                break
            s += v * v * a
        else:
            s = s - a
            continue
        s = s + 0.1 * v
    while k < 6:
        if x[k] > 1.2:
            break
        if x[k] < -2:
            return s * 3
        s = s * 0.9 + x[k]
        k += 1
    else:
        s = s + 1.0
    return s * a + k


def left_in_modes(x: Any, a: Any) -> Any:
    s, mode, k = a, 0, 0
    while k < 30 and s < 10:
        if mode == 0 and s > 3:
            mode = 1
        if mode == 1 and s < 2:
            break
        s = s * 1.2 + x[k % 8] * 0.1 if mode == 0 else s - 0.3
        k += 1
    return s * a + k


def until_large(x: Any, a: Any) -> Any:
    s, n = 1.0 + abs(a), 0
    while s < 10 + x[0]:
        s = s * 1.5 + 0.1
        n += 1
    return s * n


def collatz(x: Any, a: Any) -> Any:
    s, k = a, 1
    while k < 40 and s < 30:
        s = s / 2 if s > 5 else 3 * s + 1 + x[0] * 0.01
        k += 1
    return s


def returning(x: Any, a: Any) -> Any:
    for _ in range(3):
        for v in x:
            if v > a + 1:
                return v * v
            a -= 0.1 * v
    return a * x[0]


def looked_up(x: Any, a: Any) -> Any:
    knots = np.linspace(-2, 2, 6)
    for i in range(5):
        if a < knots[i + 1]:
            w = (a - knots[i]) / (knots[i + 1] - knots[i])
            return x[i] * (1 - w) + x[i + 1] * w
    return x[5]


def in_tables(x: Any, a: Any) -> Any:
    """As a distance of series is computed: a number that is read in its step alone, and a branch that is not met."""
    x = x[:4]
    cost = np.full((len(x), len(x) + 1), np.inf)
    cost[0, 0] = abs(x[0] - a)
    for i in range(1, len(x)):
        step = 0.5 if x[i] > x[i - 1] > a else 0.5 + abs(x[i] - a)
        cost[i, 0] = cost[i - 1, 0] + step
    for i in range(1, len(x)):
        for j in range(1, len(x) + 1):
            step = 0.5 if x[i] > a > x[j - 1] else 0.5 + min(abs(x[i] - a), abs(x[j - 1]))
            if x[i] < 100.0:
                cost[i, j] = min(cost[i - 1, j] + step, cost[i - 1][j - 1] + abs(x[i] - x[j - 1]))
                cost[i, j] += (
                    0.1 * np.tanh(cost[i - 1 : i][0, j - 1] + cost[i, 0:1][0]) * cost[i - 1][:, None][j - 1, 0]
                )
    return sum(c for c in cost[-1, :4])


def lengths_of_runs(x: Any, a: Any) -> Any:
    s, place = 0.0, 0
    for v in x:
        j = 0
        while j < v * 2 and j < 4:
            s += v * v * place * a
            place += 1
            j += 1
    return s + place


def calls_of_an_elevator(x: Any, a: Any) -> Any:
    floor, waited, up = 0.0, 0.0, True
    for call in np.round(2 * x):
        if call > floor:
            waited += (call - floor) * a + (0.0 if up else 2.0)
            up = True
        elif call < floor:
            waited += 0.8 * (floor - call) * a + (2.0 if up else 0.0)
            up = False
        floor = call
    return waited


def left_with_a_variable(x: Any, a: Any) -> Any:
    def again() -> Any:
        return step * 2

    step = 0.0
    for v in x:
        if v > a:
            step = v
    s = again()
    for v in x:
        if v < a:
            step = v * v
            s += step
    return s


def in_rows(x: Any, a: Any) -> Any:
    y, z, w = np.ones(len(x) + 1), np.zeros((len(x), 2)), x * 1.0
    for i in range(len(x) - 1):
        if x[i] > a:
            y[i + 1] += x[i] * y[i + 1]
            z[i, 1] = a * x[i + 1]
        else:
            z[i, 1] = y[i + 1]
        w[i] = w[i] * y[i + 1]
    return (y * y).sum() + (z @ np.array([1.0, 2.0]))[:5].sum() + (w * w).sum()


def in_rows_read_elsewhere(x: Any, a: Any) -> Any:
    y, z, w = np.ones(len(x)), np.ones(len(x)), np.ones(len(x))
    for i in range(1, len(x)):
        if x[i] > a:
            y[i] = y[i - 1] * x[i]
        z[len(x) - i] = x[i] if x[i] > a else y[i]
        w[i] = x[i]
        w[i] += z.sum() * w[i] if x[i] > a else 0.0
    return y.sum() + (z * w * a).sum()


def over_lists(x: Any, a: Any) -> Any:
    s = 0.0
    for v, w in zip(list(x), [a * v for v in x], strict=True):
        s = s * 0.5 + (v if v > a else w)
    for v in [a, 2 * a, -a]:
        s += v if v > x[0] else 0.5
    return s


ONE: list[tuple[Callable[..., Any], int]] = [
    *((three_ways, 5), (nested, 10), (chained, 6), (smallest, 7), (going_on, 6), (counted, 6), (flags, 8)),
    *((drawdown, 6), (node_of_a_tree, 6)),
    *((remembered, 4), (defined_on_some_ways, 4), (pairs, 4), (written, 4), (seen_through_a_view, 4)),
    *(
        (in_both_loops, 6),
        (neighbours, 5),
        (helped, 4),
        (tried, 4),
        (tried_on_an_ordinary_array, 4),
        (bisection, 4),
        (until_large, 4),
        (collatz, 6),
    ),
    *((returning, 6), (looked_up, 6), (written_on_some_ways, 7), (read_within_bounds, 9), (sunk, 4), (replaced, 4)),
    *((replaced_and_restored, 5), (one_array_of_two_names, 5), (in_rows, 4), (in_rows_read_elsewhere, 6)),
    (read_beside_a_write, 4),
    *((in_tables, 8), (lengths_of_runs, 6), (calls_of_an_elevator, 8), (left_with_a_variable, 6)),
    (over_lists, 5),
    *(
        (warped, 3),
        (series, 4),
        (divided_by_a_number_below_zero, 4),
        (run_of, 5),
        (left_before_a_step, 8),
        (left_with_an_open_answer, 8),
        (left_in_modes, 9),
    ),
]
"""The functions whose loops are one loop, each with the number of ways through a step, and two."""


def arguments(seed: int) -> tuple[Any, float]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=N), float(rng.normal()) * 0.5


def slope_along(f: Callable[..., Any], x: Any, a: float, dx: Any, da: float, h: float = 1e-6) -> Any:
    """The slope of a function in a direction, by a difference."""
    return (f(x + h * dx, a + h * da) - f(x - h * dx, a - h * da)) / (2 * h)


@pytest.mark.parametrize(("f", "traces"), ONE, ids=lambda f: getattr(f, "__name__", ""))
def test_python_loops_traced_as_one_compute_as_python(f: Callable[..., Any], traces: int) -> None:
    """Values with slopes, and of every other function without; native code computes those of one in six."""
    values, both = jit(f), jit(fnad.value_and_grad(f, (0, 1)))
    executor = random.Random(f.__name__).choice(["auto", "interpreter", "interpreter", None, None, None])
    for seed in range(CALLS):
        (x, a), (dx, da) = arguments(seed), arguments(seed + CALLS)
        value, (gx, ga) = both(x, a)
        assert value == pytest.approx(f(x, a), rel=1e-12)
        if seed < 3 and executor is not None:
            with fnad.config.override(executor=executor):
                assert values(x, a) == pytest.approx(f(x, a), rel=1e-12)
        assert gx @ dx + ga * da == pytest.approx(slope_along(f, x, a, dx, da), rel=1e-6, abs=1e-7)
    assert len(values.paths()) <= traces
    assert len(both.paths()) <= traces
    assert loops_of(both) > 0


@pytest.mark.slow
def test_a_step_is_as_written_by_hand() -> None:
    """An array from before the loop has the ways of those that replace it, and branches take and return elements."""
    u = [np.random.default_rng(seed).random(20) for seed in range(3)]
    f, slope = jit(van_leer), jit(grad(van_leer))
    for each in u:
        assert slope(each, 0.4) @ each == pytest.approx(slope_along(van_leer, each, 0.4, each, 0.0), rel=1e-6)
        f(each, 0.4)
    text = str(f.lower(u[0], 0.4).program)
    assert text.count(" scan(") == 2
    assert re.findall(r"f64\[\S*\] = cond\(", text) == ["f64[] = cond("]
    assert re.findall(r"(carry=\d) length=18", text) == ["carry=0"]  # no step reads a flux


def test_a_loop_runs_once_for_its_guard_and_its_derivative() -> None:
    """The step of a `while` that is left before anything else has its decision in the test of the loop."""
    text = jit(grad(run_of)).lower(np.random.default_rng(0).normal(size=200), 0.5).as_text("simplified")
    assert re.findall(r" (scan|guard)\(", text) == ["scan", "guard", *["scan"] * 3]
    assert text.count("bool[?]") == 1  # of the steps that begin with the number 0


# ---- arrays that steps write in place --------------------------------------------------------------------------------

LENGTH = 23


def filled(x: Any, a: Any) -> Any:
    y = np.zeros_like(x)
    for t in range(len(x)):
        y[t] = x[t]
        y[t] += a * y[t - 1]
        if y[t] > 100:
            y[t] = 0.0
        elif y[t] > a:
            y[t] = a + np.log(y[t] / a)
    return (y * y).sum()


def filled_by_inner_loops(x: Any, a: Any) -> Any:
    y = np.zeros_like(x)
    for t in range(len(x)):
        y[t] = x[t]
        for j in range(2):
            if t - 1 - j < 0:
                y[t] += a * (j + 1)
            else:
                y[t] += a * y[t - 1 - j] * x[j]
        if y[t] > 0:
            y[t] = np.sqrt(1 + y[t])
    return (y * y).sum()


def swapped(x: Any, a: Any) -> Any:
    y = np.ones_like(x)
    for t in range(len(x) - 1):
        if x[t] > a:
            y[t], y[t + 1] = y[t + 1] * x[t], y[t] + a
        else:
            y[t] = y[t] * y[t + 1]
            y[t] += x[t]
    return (y * x).sum()


def in_whole_rows(x: Any, a: Any) -> Any:
    y = np.zeros((len(x), 3)) * x[:, None]
    for t in range(1, len(x)):
        y[t] = y[t - 1] * 0.5
        y[t] += x[t]
        if x[t] > a:
            y[t] = y[t] * np.array([1.0, 3.0, 2.0]) - a
    return (y * y).sum()


def in_columns(x: Any, a: Any) -> Any:
    y = np.ones((len(x), 2)) * x[:, None]
    for t in range(1, len(x)):
        y[t, 0] = y[t - 1, 0] + a * y[t - 1, 1]
        y[t, 1] = 0.5 * y[t - 1, 1] - a * y[t, 0]
        if y[t, 0] > x[t]:
            y[t, 1] = -y[t, 1] * x[t]
    return (y * y).sum()


def in_a_while(x: Any, a: Any) -> Any:
    y, t = np.zeros_like(x), 0
    while t < len(x) and x[t] < 2:
        y[t] = x[t]
        if x[t] > a:
            y[t] += a * y[t - 1]
        t += 1
    return (y * y).sum() + a


def from_both_sides(x: Any, a: Any) -> Any:
    y = x * 1.0
    for t in range(len(x) - 1):
        y[t] = 0.4 * y[t - 1] + 0.2 * y[t - 2] + a * y[t + 1]
        if y[t] < 0:
            y[t] *= -0.5
    return (y * y).sum()


def read_at_a_found_place(x: Any, a: Any) -> Any:
    y, k = x * 1.0, 0
    for t in range(len(x)):
        if y[k] > a:
            y[t] = y[t] * y[k]
        else:
            k = (k + 3) % LENGTH
        y[t] += a
    return (y * x).sum()


IN_PLACE = [filled, filled_by_inner_loops, swapped, in_whole_rows, in_columns, in_a_while, from_both_sides]


@pytest.mark.slow
@pytest.mark.parametrize("f", [*IN_PLACE, read_at_a_found_place], ids=lambda f: f.__name__)
def test_steps_write_arrays_in_place(f: Callable[..., Any]) -> None:
    """No step copies an array, with a derivative or without: no loop over the array is within another loop."""
    value, slopes = jit(f), jit(grad(f, (0, 1)))
    push, rows = jit(lambda *given: jvp(f, given[:2], given[2:])), jit(vmap(f))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        x, a, dx, da = rng.normal(size=LENGTH), 0.1 + 0.3 * rng.random(), rng.normal(size=LENGTH), rng.normal()
        expected, exact = f(x, a), f(x + 1e-30j * dx, a + 1e-30j * da).imag / 1e-30
        gx, ga = slopes(x, a)
        found = [value(x, a), gx @ dx + ga * da, *push(x, a, dx, da), *rows(np.stack([x, dx]), np.array([a, a]))]
        np.testing.assert_allclose(found, [expected, exact, expected, exact, expected, f(dx, a)], rtol=1e-9, atol=1e-11)
    for each in (value, slopes):
        programs = [path.traced for paths in each._paths.values() for path in paths.known]
        program = min(programs, key=lambda program: len(program.equations))
        source = current_backend().compiler.plan(simplify(program)).source
        assert not re.findall(rf"^ {{8,}}for .*\b(?:{LENGTH}|{2 * LENGTH}|{3 * LENGTH})\b.*:$", source, re.MULTILINE)


def test_a_write_out_of_range_that_is_read_back_is_an_error() -> None:
    """A step reads what it wrote without the array only where the place is certain to be in it."""

    def f(x: Any, k: Any) -> Any:
        s = 0.0
        for i in range(len(x)):
            y = np.zeros(3)
            y[k[i]] = x[i]
            s += y[k[i]] if x[i] > 0 else 0.5 * y[k[i]]
        return s

    value, x = jit(f), np.random.default_rng(0).normal(size=6)
    for k in (np.array([0, 1, 2, -1, -3, 0]), np.array([2, 1, 0, 0, 1, 2])):
        assert value(x, k) == f(x, k)
        assert value(-x, k) == f(-x, k)
    assert loops_of(value) == 1
    with pytest.raises(IndexError):
        value(x, np.array([0, 1, 2, 3, 0, 0]))


def loops_of(f: Any) -> int:
    """How many loops of a compiled function are one loop."""
    known = [k for paths in f._paths.values() for k in paths.loops.known.values()]
    return sum(k.refused is None and bool(k.answers) for k in known)


def test_a_helper_that_decides_often_makes_the_loop_around_its_call_one() -> None:
    """The first call traces no more than its first steps one by one."""
    f, x = jit(helped), np.random.default_rng(0).normal(size=300)
    assert f(x, 0.5) == pytest.approx(helped(x, 0.5), rel=1e-12)
    assert (len(f.paths()), loops_of(f)) == (1, 1)


@pytest.mark.slow
def test_derivatives_of_all_kinds() -> None:
    x, a = arguments(3)
    curvature, push = jit(hessian(three_ways)), jit(lambda x, a, t: jvp(three_ways, (x, a), (t, 1.0)))
    for seed in range(4):
        x, a = arguments(seed)
        np.testing.assert_allclose(curvature(x, a), hessian(three_ways)(x, a))
        np.testing.assert_allclose(push(x, a, x), jvp(three_ways, (x, a), (x, 1.0)))
    saving = jit(grad(fnad.checkpoint(written)))
    for seed in range(4):
        x, a = arguments(seed)
        np.testing.assert_allclose(saving(x, a), grad(written)(x, a))


def left_with_a_number(x: Any, a: Any) -> Any:
    s, factor = 0.0, 1
    for v in x:
        if v > 1.5:
            factor = 2
        s += factor * v
    return s * factor * a


def left_in_a_direction(x: Any, a: Any) -> Any:
    s, is_up = 0.0, True
    for v in x:
        if v > a:
            s += v if is_up else 2.0
            is_up = True
        elif v < -a:
            s -= 2.0 if is_up else v
            is_up = False
    return s


def compare_rows(f: Callable[..., Any], values: Callable[..., Any], slopes: Callable[..., Any], seed: int) -> None:
    """Compare a function of several rows, and the slopes of the sum, with calls for one row."""
    (x, a), (dx, da) = [[*map(np.array, zip(*map(arguments, range(n, n + 5)), strict=True))] for n in (10 * seed, 100)]
    x, dx = x[:, ::2], dx[:, ::2]
    np.testing.assert_allclose(values(x, a), [*map(f, x, a)])
    gx, ga = slopes(x, a)
    along = [slope_along(f, *row) for row in zip(x, a, dx, da, strict=True)]
    np.testing.assert_allclose((gx * dx).sum(1) + ga * da, along, rtol=1e-6, atol=1e-7)


OWN_WAYS = [three_ways, going_on, written, bisection, counted, left_with_a_number, left_in_a_direction]


@pytest.mark.slow
@pytest.mark.parametrize("f", OWN_WAYS, ids=lambda f: f.__name__)
def test_rows_go_their_own_ways(f: Callable[..., Any]) -> None:
    values, slopes = jit(vmap(f)), jit(grad(lambda x, a: vmap(f)(x, a).sum(), (0, 1)))
    for seed in range(3):
        compare_rows(f, values, slopes, seed)
    assert len(values.paths()) <= 3


def left_with_a_string(x: Any, a: Any) -> Any:
    mode, s = "none", 0.0
    for v in x:
        if v > a:
            mode, s = "above", s + v
        elif v < -a:
            mode = "below"
    if mode == "none":
        return s
    return s * 2 if mode == "above" else s - a


def left_with_none(x: Any, a: Any) -> Any:
    last, s = None, 0.0
    for v in x:
        if v > a + 1:
            last, s = v, s + 1
    return s if last is None else s + last * a


def left_with_a_bool(x: Any, a: Any) -> Any:
    is_large, s = False, 0.0
    for v in x:
        is_large = is_large or v > a + 1
        s += v * a
    return (s * 2 if is_large else s) + is_large


def returned_numbers(x: Any, a: Any) -> Any:
    for v in x:
        if v > 1.5:
            return 1
        if v < -1.5:
            return 2.5 * a
    return a


def decided_without_a_loop(x: Any, a: Any) -> Any:
    if abs(a) < 0.4:
        return 0.5 * a * x.sum()
    return x[0] ** 2 if x[1] > a else a


def by_jitter(x: Any, a: Any) -> Any:
    for jitter in (0.0, 0.1, 1.0, 9.0):
        try:
            return np.linalg.cholesky(np.array([[a, x[0]], [x[0], 1.0]]) + jitter * np.eye(2)).sum()
        except np.linalg.LinAlgError:
            continue
    return a


def with_a_clause_that_fails(x: Any, a: Any) -> Any:
    try:
        r = a * 2 if x[0] > a else 1.0 / (max(0, a))
    except ZeroDivisionError:
        r = a * 5
    finally:
        r = r + x[1]  # pyright: ignore[reportPossiblyUnboundVariable]  # where the trace ends before
    return r


class Doubling:
    """A context manager whose end needs a variable that the body sets."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.doubled = self.value * 2


def with_an_exit_that_fails(x: Any, a: Any) -> Any:
    with Doubling() as found:
        if x[0] > a:
            found.value = x[1]
        else:
            found.value = a
    return found.doubled


PARTED = [
    *(returning, with_an_else, left_with_a_string, left_with_none, left_with_a_bool, returned_numbers, looked_up),
    *(decided_without_a_loop, by_jitter, with_a_clause_that_fails, with_an_exit_that_fails),
]


@pytest.mark.slow
@pytest.mark.parametrize("f", PARTED, ids=lambda f: f.__name__)
def test_rows_that_part_are_one_after_the_other(f: Callable[..., Any]) -> None:
    values, slopes = jit(vmap(f)), jit(grad(lambda x, a: vmap(lambda x, a: 1.0 * f(x, a))(x, a).sum(), (0, 1)))
    for seed in range(2):
        compare_rows(f, values, slopes, seed)
    assert len(values.paths()) <= 3


def test_rows_that_part_return_trees_along_axes() -> None:
    def both(x: Any, a: Any) -> Any:
        return {"x": x * 2, "n": 1} if x[0] > a else {"x": x * a, "n": 2.5}

    x = np.random.default_rng(0).normal(size=(3, 4))
    found = jit(vmap(both, in_axes=(1, None), out_axes={"x": 1, "n": 0}))(x, 0.1)
    rows = [both(row, 0.1) for row in x.T]
    np.testing.assert_allclose(found["x"], np.stack([row["x"] for row in rows], 1))
    np.testing.assert_allclose(found["n"], [row["n"] for row in rows])
    assert jit(vmap(lambda v: 2 * v if v > 0 else 0.0))(x[0].astype(np.float32)).dtype == np.float32
    matrix = jit(vmap(vmap(lambda v: v if v > 0.1 else v * v)))(x)
    np.testing.assert_allclose(matrix, np.where(x > 0.1, x, x * x))
    second = jit(hessian(lambda x: vmap(lambda v: v**3 if v > 0 else -v * v)(x).sum()))(x[0])
    np.testing.assert_allclose(second, np.diag(np.where(x[0] > 0, 6 * x[0], -2)))


def changing_a_list(v: Any) -> Any:
    SEEN.append(0.0)
    return v if v > 0 else -v


def of_two_types(v: Any) -> Any:
    state = 0 if v > 0 else "low"
    for _ in range(2):
        state = "low" if state == 0 else 0
    return v if state == 0 else -v


@pytest.mark.parametrize("f", [changing_a_list, of_two_types])
def test_rows_that_cannot_be_one_loop_are_traced_one_by_one(f: Callable[..., Any]) -> None:
    together = jit(vmap(f))
    for rows in ([1.0, -1.0], [-2.0, -3.0], [-1.0, 1.0], [4.0, 2.0]):
        x = np.array(rows)
        np.testing.assert_array_equal(together(x), [f(v) for v in rows])
        np.testing.assert_array_equal(vmap(f)(x), [f(v) for v in rows])
        np.testing.assert_array_equal(jit(vmap(grad(f)))(x), [grad(f)(v) for v in x])


@pytest.mark.parametrize("transform", [lambda f: f, jit])
def test_rows_without_jit_run_as_often_as_calls_of_the_function_do(transform: Any) -> None:
    calls: list[int] = []

    def f(v: Any, w: Any) -> Any:
        calls.append(len(calls))
        return v * w if v > w else np.sin(v)

    rows = np.array([1.0, -1.0, 0.5])
    np.testing.assert_array_equal(vmap(transform(f), in_axes=(0, None))(rows, 0.7), [f(v, 0.7) for v in rows])
    calls.clear()
    np.testing.assert_array_equal(vmap(f, in_axes=(0, None))(rows, 0.7), [f(v, 0.7) for v in rows])
    assert calls == [0, 1, 2, 3, 4, 5]


def test_results_of_rows_that_part_are_of_one_type() -> None:
    def mixed(v: Any) -> Any:
        return {"x": v, "n": 1} if v > 0 else {"x": 2, "n": np.float32(v)}

    for run in (vmap, lambda f: jit(vmap(f))):
        found = run(mixed)(np.array([1.5, -0.5], np.float32))
        assert found["x"].dtype == np.float32
        assert found["n"].dtype == np.float32
        np.testing.assert_array_equal(found["x"], [1.5, 2.0])
        np.testing.assert_array_equal(found["n"], [1.0, -0.5])
        with pytest.raises(fnad.errors.BatchAxisError, match="different structures or shapes\n  at test_python_loops"):
            run(lambda v: v if v > 0 else None)(np.array([1.0, -1.0]))


def leaving_with_a_result(x: Any, a: Any) -> Any:
    s, k = 0.0, a
    while k < 2:
        k = k + 0.7
        if x[0] > k:
            t = np.sin(x[1]) * k
            return s + t * t
        s = s + k * x[0]
    return s * a + (x * x).sum()


@pytest.mark.slow
def test_gradients_of_rows_that_leave_a_loop_in_several_ways_are_one_loop() -> None:
    """The derivative of the loop has other residuals for each result of the row."""
    rng = np.random.default_rng(0)
    both = fnad.value_and_grad(leaving_with_a_result, (0, 1))
    together = jit(vmap(both))
    for _ in range(2):
        x, a = rng.normal(size=(60, 3)), rng.normal(size=60)
        value, (gx, ga) = together(x, a)
        np.testing.assert_allclose(value, [*map(leaving_with_a_result, x, a)])
        along = [slope_along(leaving_with_a_result, *row) for row in zip(x, a, -x, 1 + a, strict=True)]
        np.testing.assert_allclose(ga * (1 + a) - (gx * x).sum(1), along, rtol=1e-6, atol=1e-7)
    assert len(together.paths()) == 1


def test_many_rows_that_part_are_an_error() -> None:
    rows = np.random.default_rng(0).normal(size=1000)
    for run in (vmap(changing_a_list), jit(vmap(changing_a_list))):
        with pytest.raises(fnad.errors.TracerEscapeError, match="differs among the rows"):
            run(rows)


# ---- loops that stay paths -------------------------------------------------------------------------------------------

SEEN: list[float] = []


def grouped(x: Any, a: Any) -> Any:
    groups = [[x[0]]]
    for v in x:
        if v > a:
            groups.append([v])
        else:
            groups[-1].append(v * v)
    return sum(sum(group) * len(group) for group in groups)


def put_in_front(x: Any, a: Any) -> Any:
    found = []
    for v in x:
        if v > a:
            found.insert(0, v * v)
    return found[0] if found else a


def written_through_a_list(x: Any, a: Any) -> Any:
    rows, row = [], x[:2] * 1.0
    for v in x:
        if v > a:
            rows.append(row)
        row[0] = row[0] * v
    return sum(row[0] for row in rows)


def written_behind_a_list(x: Any, a: Any) -> Any:
    rows, row = [], x[:2] * 1.0
    for v in x:
        if v > a:
            row = row * 0.5 + v
            rows.append(row)
    row[0] = 3.0
    return np.sum(rows) + row[1]


def of_numbers_of_two_types(x: Any, a: Any) -> Any:
    found = [0]
    for v in x:
        if v > a:
            found.append(v)  # noqa: PERF401
    return sum(found) * a


def large_integers(x: Any, a: Any) -> Any:
    h, s = 1, 0.0
    for v in x:
        h = h * 3100 + 7
        if v > a:
            s += (h % 1000) * v
    return s


def divided_by_a_count(x: Any, a: Any) -> Any:
    d, s = 3.0, 0.0
    for v in x:
        d -= 1.0
        if v > a:
            s += v / (d + 0.5) + 1.0 / (d + 0.5)
    return s


def noted_outside(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        if v > a:
            SEEN.append(1.0)
            s += v
    return s


def in_a_dictionary(x: Any, a: Any) -> Any:
    sums = {"up": 0.0, "down": 0.0}
    for v in x:
        sums["up" if v > a else "down"] += v
    return sums["up"] ** 2 - sums["down"]


def in_an_attribute(x: Any, a: Any) -> Any:
    class Sum:
        value = 0.0

    total = Sum()
    for v in x:
        if v > a:
            total.value += v * v
    return total.value


def recursive(x: Any, a: Any) -> Any:
    def sums(i: int) -> Any:
        return 0.0 if i == len(x) else sums(i + 1) + (x[i] if x[i] > a else 0.0)

    return sums(0)


def in_a_table(x: Any, a: Any) -> Any:
    return sum({i: v * v for i, v in enumerate(x) if v > a}.values(), a)


def of_two_loops(x: Any, a: Any) -> Any:
    return sum([v * w for v in x for w in x if v > w > a], a)


def yielding(x: Any, a: Any) -> Any:
    def found() -> Any:
        for v in x:
            if v > a:
                yield v * v

    return sum(found(), a)


PATHS = [
    *((grouped, "a step puts values into a list that"), (put_in_front, "a step changes a list")),
    *((written_through_a_list, "MutationError"), (written_behind_a_list, "MutationError")),
    *((of_numbers_of_two_types, "a list has elements of"), (in_a_dictionary, "a step changes a dict")),
    *((in_an_attribute, "a step changes a Sum"), (noted_outside, "a step changes a list")),
    *((large_integers, "it computes with Python's numbers"), (divided_by_a_count, "it computes with Python's numbers")),
    *((in_a_table, "a nested compr"), (of_two_loops, "a nested compr"), (yielding, "a nested compr")),
    (recursive, None),
]
"""The functions whose loops stay paths, each with what `explain` says of that."""


@pytest.mark.parametrize(("f", "why"), PATHS, ids=lambda f: getattr(f, "__name__", ""))
def test_what_cannot_be_one_loop_stays_paths(f: Callable[..., Any], why: str | None) -> None:
    values, slopes = jit(f), jit(grad(f, (0, 1)))
    for seed in range(CALLS):
        given = arguments(seed)
        assert values(*given) == pytest.approx(f(*given), rel=1e-12)
        if seed > 1:
            continue
        gx, ga = slopes(*given)
        assert gx @ given[0] + ga == pytest.approx(slope_along(f, *given, given[0], 1.0), rel=1e-6, abs=1e-7)
    assert loops_of(values) == 0
    found = fnad.explain(f, *arguments(0)).paths
    assert len(found) == (why is not None)
    assert all(each.startswith(why or "") and f"at {Path(__file__).name}:" in each for each in found)


def first_of(iterator: Any) -> Any:
    for value in iterator:
        return value
    return 2.0


def numbers() -> Iterator[float]:
    yield from NUMBERS


NUMBERS = [0.9, 0.1, 0.6, 0.3, 0.8, 0.2, 0.5, 0.7]
GENERATOR = partial(np.random.default_rng, 1)
SHARED = partial(np.random.seed, 1)
ADVANCED: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "uniform": (GENERATOR, lambda r: r.uniform()),
    "choice": (GENERATOR, lambda r: r.choice([0.1, 0.5, 0.9])),
    "a method that is kept": (lambda: GENERATOR().uniform, lambda draw: draw()),
    "a partial function": (GENERATOR, lambda r: partial(r.normal, 0.5)()),
    "map": (GENERATOR, lambda r: next(map(r.normal, [0.5]))),
    "bits": (GENERATOR, lambda r: r.bit_generator.random_raw() / 2**64),
    "RandomState": (lambda: np.random.RandomState(1), lambda r: r.rand()),
    "shared": (SHARED, lambda _: np.random.rand()),  # noqa: NPY002 - as users draw
    "SciPy": (SHARED, lambda _: scipy.stats.uniform.rvs()),
    "random": (lambda: random.Random(1), lambda r: r.random()),
    "a loop": (numbers, first_of),
    "islice": (lambda: iter(NUMBERS), lambda it: sum(islice(it, 1))),
    "a method": (lambda: iter(NUMBERS), lambda it: it.__next__()),
    "in": (lambda: iter(NUMBERS), lambda it: 0.4 + 0.2 * (0.3 in it)),
    "in an object": (lambda: SimpleNamespace(it=numbers()), lambda o: first_of(o.it)),
    "unpacked": (lambda: iter(NUMBERS * 2), lambda it: max(*islice(it, 2))),
}
"""What a step advances that is not one of its variables: how it begins, and the number that a step takes."""


def test_steps_that_draw_random_numbers_or_advance_iterators_stay_paths() -> None:
    with together() as named:
        for name, (begin, advance) in ADVANCED.items():

            def shrunk(x: Any, begin: Any = begin, advance: Any = advance) -> Any:
                source = begin()
                for _ in range(8):
                    if advance(source) < x:
                        x = x * 0.9
                return x

            with named(name):
                f = jit(fnad.value_and_grad(shrunk))
                for x in (0.8, 0.3, 0.55, 0.8):
                    value, slope = f(x)
                    assert value == pytest.approx(shrunk(x))
                    assert slope == pytest.approx(value / x)


def grown(x: Any, grow: Callable[[Any], Any], c: Any) -> Any:
    s = 0.0
    for v in x:
        if v > 0:
            grow(c)
        s = 0.9 * s + v * len(c)
    return s


def grown_in_place(x: Any, more: Callable[[Any], Any], c: Any) -> Any:
    s = 0.0
    for v in x:
        if v > 0:
            c += more(c)
        s = 0.9 * s + v * len(c)
    return s


def joined_in_place(x: Any, more: Callable[[Any], Any], c: Any) -> Any:
    s = 0.0
    for v in x:
        if v > 0:
            c |= more(c)
        s = 0.9 * s + v * len(c)
    return s


CHANGED: list[tuple[Callable[..., Any], Callable[[Any], Any], Callable[[], Any]]] = [
    (grown_in_place, lambda _: [1], list),
    (grown_in_place, lambda _: (1,), deque),
    (grown_in_place, lambda _: b"1", bytearray),
    (grown_in_place, lambda c: Counter([len(c)]), Counter),
    (joined_in_place, lambda c: {len(c)}, set),
    (joined_in_place, lambda c: {len(c): 1}, dict),
    (grown, lambda c: list.append(c, 1), list),
    (grown, lambda c: set.update(c, [len(c)]), set),
    (grown, lambda c: dict.__setitem__(c, len(c), 1), dict),
    (grown, lambda c: c.__setitem__(len(c), 1), dict),
    (grown, lambda c: partial(partial(c.append), 1)(), list),
    (grown, lambda c: partial(list.append, c)(1), list),
]
"""Ways in which a step changes a container from before it."""


@pytest.mark.parametrize(("f", "change", "made"), CHANGED)
def test_steps_that_change_a_container_stay_paths(f: Any, change: Any, made: Any) -> None:
    values = jit(lambda x: f(x, change, made()))
    for x in ([-1.0, -2.0, 0.5], [-1.0, 0.4, 0.5], [0.3, 0.4, -0.5]):
        assert values(np.array(x)) == pytest.approx(f(x, change, made()))


@pytest.mark.parametrize("use", [lambda c: c(), lambda c: c + 1, lambda c: c[0], lambda c: c.read, lambda c: [2, 1][c]])
def test_steps_that_store_a_variable_by_an_operator_stay_paths(use: Any) -> None:
    def counted_by_operators(x: Any) -> Any:
        n, s = 0, 0.0

        class Counting:
            def count(self, *_: Any) -> int:
                nonlocal n
                n += 1
                return 1

            __call__ = __add__ = __getitem__ = __index__ = count
            read = property(count)

        counting = Counting()
        for v in x:
            if v > 0:
                s += use(counting) * v
            s = 0.9 * s + v * n
        return s

    values = jit(counted_by_operators)
    for x in ([-1.0, -2.0, 0.5], [-1.0, 0.4, 0.5], [0.3, 0.4, -0.5]):
        assert values(np.array(x)) == pytest.approx(counted_by_operators(x))


def noted_within(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        try:
            s += v if v > a else -0.1 * v
            SEEN.append(0.0)
        except:  # noqa: E722
            s += 100.0
    return s


def gathered(x: Any, a: Any) -> Any:
    s, t = 0.0, []
    for v in x:
        try:
            if v > a:
                s += v
            t.append(v)
        except BaseException:  # noqa: BLE001
            s += 100.0
    return s + sum(t)


def helped_within(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        try:
            s += large_or_not(v, a)
        except:  # noqa: E722
            s += 100.0
    return s


def large_or_not(v: Any, a: Any) -> Any:
    return v if v > a else -v


class Cached:
    @cached_property
    def six(self) -> float:
        return 6.0


def after_a_cached_attribute(x: Any, a: Any) -> Any:
    cached, s = Cached(), 0.0
    for v in x:
        s += cached.six if v > a else -v
    return s + len(vars(cached)) * a


def beside_a_cached_attribute(x: Any, a: Any) -> Any:
    cached, s = Cached(), 0.0
    for v in x:
        if v > a:
            s += cached.six
        try:
            s = 0.9 * s + cached.__dict__["six"] * v
        except KeyError:
            s -= 1.0
    return s


def after_a_cached_function(x: Any, a: Any) -> Any:
    @cache
    def square(n: int) -> int:
        return n * n

    s = 0.0
    for v in x:
        s += square(3) if v > a else -v
    return s + a * square.cache_info().misses + square.cache_info().hits


CACHED = [after_a_cached_attribute, beside_a_cached_attribute, after_a_cached_function]


@pytest.mark.parametrize("f", CACHED, ids=lambda f: f.__name__)
def test_steps_that_fill_a_cache_which_is_read_stay_paths(f: Callable[..., Any]) -> None:
    values = jit(f)
    rows = [[1.0, -1.0, 2.0, -2.0, 1.0], [1.0, -1.0, -2.0, -2.0, 1.0], [-1.0] * 5, [1.0] * 5, [-1.0, 1.0] * 2 + [2.0]]
    for x in rows:
        assert values(np.array(x), 0.1) == pytest.approx(f(np.array(x), 0.1), rel=1e-12)
    assert loops_of(values) == 0


def ended_by_a_final_clause(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        try:
            s += v if v > a else -0.1 * v
            SEEN.append(0.0)
        finally:
            continue  # noqa: B012
    return s


def ended_by_a_return(x: Any, a: Any) -> Any:
    def scaled(v: Any) -> Any:
        try:
            SEEN.append(0.0)
        finally:
            return 2 * v if v > a else -v  # noqa: B012

    s = 0.0
    for v in x:
        s += scaled(v)
    return s


def ended_by_a_break(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        for _ in range(2):
            try:
                s += v if v > a else -v
                SEEN.append(0.0)
            finally:
                break  # noqa: B012
        s *= 0.9
    return s


class Ignoring:
    def __enter__(self) -> None:
        SEEN.append(1.0)

    def __exit__(self, *_: object) -> bool:
        return True


def ended_by_a_context_manager(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        with Ignoring():
            s += v if v > a else -v
            SEEN.append(0.0)
    return s


def handled_in_groups(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        try:
            s += v if v > a else -v
            SEEN.append(0.0)
        except* BaseException:  # noqa: BLE001
            s += 100.0
    return s


ENDED = [noted_within, gathered, helped_within, ended_by_a_final_clause, ended_by_a_return, ended_by_a_break]


@pytest.mark.parametrize("f", [*ENDED, ended_by_a_context_manager, handled_in_groups], ids=lambda f: f.__name__)
def test_user_code_handles_no_end_of_a_trace(f: Callable[..., Any]) -> None:
    """The end of a trace within a step passes clauses for all exceptions, and what ends an exception."""
    values = jit(f)
    for seed in range(4):
        x = np.random.default_rng(seed).normal(size=40)
        assert values(x, 0.1) == pytest.approx(f(x, 0.1), rel=1e-12)


def of_rows_by_a_final_clause(v: Any) -> Any:
    try:
        return v if v > 0 else -v
    finally:
        return 5 * v  # noqa: B012, SIM107


def of_rows_by_a_context_manager(v: Any) -> Any:
    with Ignoring():
        if v > 0:
            return v
    return 7 * v


@pytest.mark.parametrize("f", [of_rows_by_a_final_clause, of_rows_by_a_context_manager], ids=lambda f: f.__name__)
def test_user_code_does_not_handle_that_rows_part(f: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(vmap(f)(np.array([1.0, -1.0])), [f(1.0), f(-1.0)])


def test_errors_are_those_of_the_call() -> None:
    def checked(x: Any, a: Any) -> Any:
        s = 0.0
        for v in x:
            assert v < 100, "too large"
            s += v if v > a else -v
        return s

    f = jit(checked)
    for seed in range(4):
        x, a = arguments(seed)
        assert f(x, a) == pytest.approx(checked(x, a))
        with pytest.raises(AssertionError, match="too large"):
            f(np.where(np.arange(N) == 5, 200.0, x), a)


def test_nan_is_neither_larger_nor_smaller() -> None:
    f = jit(three_ways)
    for seed in range(4):
        x, a = arguments(seed)
        x[seed] = np.nan
        assert np.isnan(f(x, a))
        assert np.isnan(f(x[::-1].copy(), a))
        np.testing.assert_allclose(f(np.nan_to_num(x), a), three_ways(np.nan_to_num(x), a))


def test_one_program_for_all_lengths() -> None:
    def steps(a: Any) -> Any:
        s = 1.0
        while abs(s * s - a) > 1e-12:
            s = 0.5 * (s + a / s)
        return s

    f = jit(grad(steps))
    for a in (2.0, 9.0, 1e3, 1e-3, 7.0, 1e8):
        assert f(a) == pytest.approx(0.5 / math.sqrt(a), rel=1e-6)
    assert len(f.paths()) == 2


def raised(x: Any, a: Any) -> Any:
    s, mode = 0.0, "low"
    for v in x:
        if mode == "low":
            if v > a:
                mode = "middle"
        elif mode == "middle":
            if v > a:
                mode = "high"
        else:
            if v > 0.0:
                s += v
            if v > 2.0:
                mode = "low"
        s = 0.9 * s + v
    return s


def of_two_types(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        if (v if v > 0.0 else a) * max(0.1 * s, v) > a * v:
            s += 0.05
        s = 0.7 * s + 0.3 * (v if v > 0.0 else a)
    return s


def lowered_in_a_mode(x: Any, a: Any) -> Any:
    """In a mode, the number from before the loop is one of a state, and both a Python number and a traced one."""
    s, mode = 0.1, "up"
    for v in x:
        if mode == "up":
            mode = "down"
        elif mode == "down":
            if v > 0:
                mode = "still"
        else:
            s = s - 0.1 * min(v, a)
            if v < -a:
                mode = "up"
    return s * 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (lowered_in_a_mode, [(2.0, -2.6, 0.4, -0.6, -0.5, -0.2), (-2.0, -0.2, -0.9, 3.3, 0.2, -0.4)]),
        (raised, [(-1, 1, -1, -1, -1), (-1, -1, 1, -1, -1), (-1, 1, 1, 1, -1)]),
        (of_two_types, [(0.3, -1.2, 0.5, 0.8, 0.2), (0.5, 1.1, -0.2, 1.1, 2.0), (-0.2, -1.2, -1.0, 1.4, 1.6)]),
    ],
)
def test_a_state_in_which_no_step_began_is_met_later(f: Callable[..., Any], calls: list[Any]) -> None:
    values, slope = jit(f), jit(grad(f))
    for x in calls:
        for a in (0.25, -0.5, -0.6):
            given = np.array(x, float), a
            assert values(*given) == pytest.approx(f(*given), rel=1e-12)
            np.testing.assert_allclose(slope(*given), grad(f)(*given), rtol=1e-12)


def lowered_late(x: Any, a: Any) -> Any:
    y = np.ones(len(x))
    y[-1] = a
    for i in range(len(x)):
        k = 0
        while k < 3 and x[i] > y[i]:
            k += 1
            y[0] = 0.0
    return (y * x).sum()


def raised_late(x: Any, a: Any) -> Any:
    s = 0.5
    for v in x:
        for j in range(3):
            if v > s + 0.1 * a:
                s += 0.1 * j * v
    return s * a


def left_late(x: Any, a: Any) -> Any:
    s = 0.5
    for v in x:
        while v > s:
            s = s + a
            if s > 1.0:
                break
    return s


@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("f", [lowered_late, raised_late, left_late], ids=lambda f: f.__name__)
def test_a_loop_in_a_step_goes_more_ways_than_in_the_steps_before(f: Callable[..., Any], first: int) -> None:
    """The steps before have those ways too, in the very call that meets them."""
    values, slope = jit(f), jit(grad(f))
    low, high = np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3])
    high[first] = 0.9
    for x in (low, high, np.array([0.2, 0.95, 0.9])):
        assert values(x, 0.5) == pytest.approx(f(x, 0.5), rel=1e-12)
        assert slope(x, 0.5) @ x == pytest.approx(slope_along(f, x, 0.5, x, 0.0), rel=1e-6)
    assert loops_of(values) == 2


def test_a_loop_that_decides_otherwise_than_its_steps_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call that traces it runs the guards of the loop, and begins again without it where one fails."""
    monkeypatch.setattr("fnad.api.staging.python_loop.PythonLoop._has_more_ways", lambda *_: False)
    values = jit(lowered_late)
    for x in ([0.1, 0.2, 0.3], [0.1, 0.2, 0.9], [0.2, 0.95, 0.9]):
        assert values(np.array(x), 0.5) == pytest.approx(lowered_late(np.array(x), 0.5), rel=1e-12)
    assert loops_of(values) < 2


# ---- random loops ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("first", some_of(range(0, 40, 10), "random loops", 2))
def test_random_python_loops_compute_as_python(first: int) -> None:
    assert sum(map(check, range(first, first + 10))) > 0

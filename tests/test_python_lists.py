"""Lists that only some steps of a Python loop extend, and comprehensions with conditions: one loop under `jit`.

Values and derivatives are compared with Python's own and with complex steps, with new data at each call. The number of
traces is the number of ways through a step, and a few.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad import grad, hessian, jit, jvp, vmap
from tests.test_python_loops import loops_of

pytestmark = pytest.mark.filterwarnings("ignore::fnad.errors.ControlFlowWarning", "ignore::RuntimeWarning")

N = 12


def is_above(v: Any, a: Any) -> Any:
    return v.real > a.real


def summed(x: Any, a: Any) -> Any:
    ys = []
    for v in x:
        if is_above(v, a):
            ys.append(np.sin(v))  # noqa: PERF401
    return sum(ys) * a


def averaged(x: Any, a: Any) -> Any:
    ys = [x[0]]
    for v in x:
        if is_above(v, a):
            ys.append(v * v)  # noqa: PERF401
    return np.array(ys).mean() + np.mean(ys) * len(ys) + np.sum(np.exp(ys)) + (np.asarray(ys) * a).sum()


def picked(x: Any, a: Any) -> Any:
    ys = [0.5]
    for v in x:
        if is_above(v, a):
            ys.append(a * v + ys[-1])
    return ys[-1] * ys[0] + (ys[1] if len(ys) > 1 else a) + (a if ys else 0.0) + ys[len(ys) // 2]


def in_several_ways(x: Any, a: Any) -> Any:
    ys, zs = [], []
    for v in x:
        if is_above(v, a):
            ys.append(v)
            ys.append(v * a)
        elif is_above(v, -a):
            zs.append(v * v)
            ys.append(0.5 * v)
        else:
            zs += [a]
    return sum(ys, a) + 2 * sum(zs) + len(ys) * a - len(zs) * x[0]


def looped(x: Any, a: Any) -> Any:
    ys, s = [], 0.0
    for v in x:
        if is_above(v, a):
            ys.append(np.sin(v))  # noqa: PERF401
    for w in ys:
        s = s * 0.5 + w * w if is_above(w, 0.5 + 0 * a) else s - w * a
    for i, (w, v) in enumerate(zip(ys, x)):  # noqa: B905
        s += i * w * v
    for i in range(len(ys)):
        s += 0.1 * ys[i] * x[i]
    return s


def in_both_loops(x: Any, a: Any) -> Any:
    s, found = 0.0, []
    for i in range(4):
        row = []
        for v in x[3 * i : 3 * i + 3]:
            if is_above(v, a):
                row.append(v * v)
                found.append(v)
            if is_above(v, 2 + a):
                break
        s += sum(row) * (i + 1) + len(row) * a
    return s + np.sum(found) * a


def before_and_behind(x: Any, a: Any) -> Any:
    ys = [a, x[0] * a]
    for v in x:
        if is_above(v, a):
            ys.append(v)  # noqa: PERF401
    ys.append(2 * a)
    for v in x:
        if is_above(a, v):
            ys.append(v * v)  # noqa: PERF401
    ys.append(x[1])
    return np.sum(ys) + ys[-2] * ys[-1] + len(ys)


def left_early(x: Any, a: Any) -> Any:
    ys = []
    for v in x:
        if is_above(-a, v):
            continue
        if is_above(v, 1.5 + a):
            break
        ys.append(v * a)
    else:
        ys.append(a)
    return sum(ys, 0.0 * a)


def in_a_while(x: Any, a: Any) -> Any:
    ts, t, i = [0.0], 0.3 + 0 * a, 0
    while i < len(x) and t.real < 2.5 + x[0].real:
        if is_above(x[i], a):
            ts.append(t * x[i])
        t = t + 0.2 + 0.1 * x[i] * x[i]
        i += 1
    return sum(ts) * a


def of_rows(x: Any, a: Any) -> Any:
    rows = []
    for i in range(len(x) - 2):
        if is_above(x[i], a):
            rows.append(x[i : i + 3] * a)  # noqa: PERF401
    if not rows:
        return a
    return np.sum(np.array(rows).mean(axis=0) * x[:3]) + np.sum(sum(rows)) + rows[-1][0]


def of_states(x: Any, a: Any) -> Any:
    u, us = x[:3] * 1.0, []
    for v in x:
        if is_above(v, a):
            us.append(u)
        u = u * 0.9 + v
    return np.sum(np.array(us) ** 2) + np.sum(u)


def of_pairs(x: Any, a: Any) -> Any:
    events = []
    for i, v in enumerate(x):
        if is_above(v, a):
            events.append((i, v * a))
    s = 0.0
    for i, v in events:
        s += (i + 1) * v
    return s + (events[-1][1] * events[-1][0] if events else 0.0)


def of_places(x: Any, a: Any) -> Any:
    t = []
    for i in range(len(x)):
        if is_above(x[i], a):
            t.append(i)  # noqa: PERF401
    s = 0.0
    for i in t:
        s += x[i] * i * a
    return s + sum(t) * a + len(t)


def as_a_stack(x: Any, a: Any) -> Any:
    stack = []
    for v in x:
        if is_above(v, a):
            stack.append(v)
        elif stack:
            v = v * stack.pop()  # noqa: PLW2901
            stack.append(v * a)
    return sum(stack)


def pooled(x: Any, a: Any) -> Any:
    sums, counts = [], []
    for v in x:
        sums.append(v)
        counts.append(1.0)
        while len(sums) > 1 and is_above(sums[-2] / counts[-2], sums[-1] / counts[-1]):
            s, c = sums.pop(), counts.pop()
            sums[-1] = sums[-1] + s
            counts[-1] = counts[-1] + c
    total = a
    for s, c in zip(sums, counts):  # noqa: B905
        total = total + s * s / c
    return total


def comprehended(x: Any, a: Any) -> Any:
    return sum([np.sin(v) * a for v in x if is_above(v, a)])


def comprehended_by_name(x: Any, a: Any) -> Any:
    ys = [v * w if is_above(v, 1.0) else v for v, w in zip(x, x[::-1]) if is_above(v, a)]  # noqa: B905
    return np.sum(ys) + len(ys) * a


def with_places(x: Any, a: Any) -> Any:
    return np.sum([i * v for i, v in enumerate(x) if is_above(v, a) if i > 1]) * a


def generated(x: Any, a: Any) -> Any:
    return sum(v * v for v in x if is_above(v, a)) + sum((a * v for v in x if is_above(a, v)), a)


def deciding(x: Any, a: Any) -> Any:
    return np.sum(np.array([v * v if is_above(v, a) else -v for v in x]) * x)


def of_another(x: Any, a: Any) -> Any:
    ys = [v * a for v in x if is_above(v, a)]
    return sum([w * w for w in ys if is_above(w, 0.3 + 0 * a)]) + sum(w for w in ys)


def written_and_cleared(x: Any, a: Any) -> Any:
    ys, zs = [a, a], []
    for v in x:
        ys[0] = ys[0] * 0.5 + v
        if is_above(v, a):
            ys[-1] = ys[-1] * v
            ys.append(v)
            zs.append(v * a)
        elif is_above(-1.0 + 0 * a, v):
            zs.clear()
    return sum(ys) * ys[0] + sum(zs)


def of_lists_in_objects(x: Any, a: Any) -> Any:
    class Track:
        def __init__(self) -> None:
            self.events = []

        def add(self, v: Any) -> None:
            self.events.append(v)

    track, found = Track(), {"low": [], "high": []}
    for v in x:
        found["high" if is_above(v, a) else "low"].append(v)
        if is_above(v, 0 * a):
            track.add(v * a)
    return sum(found["low"]) * a - sum(found["high"]) + sum(track.events)


def by_places(x: Any, a: Any) -> Any:
    ys, s = [v * a for v in x if is_above(v, a)], 0.0 * a
    for i in range(len(ys)):
        s = s * 0.5 + ys[i] * (i + 1)
    for i in range(1, len(ys)):
        s += ys[i] * ys[i - 1]
    for i in range(len(ys) - 1, -1, -1):
        s = s * 0.9 + ys[i]
    return s


def growing_while_iterated(x: Any, a: Any) -> Any:
    ys, n = [a, x[0]], 0
    for v in x:
        if is_above(v, a):
            ys.append(v)  # noqa: PERF401
    for y in ys:
        if is_above(y, 0.5 + 0 * a) and len(ys) < 15:
            ys.append(y * 0.5)
        n += 1
    return sum(ys) * n


def beside_shorter_ones(x: Any, a: Any) -> Any:
    ys, zs, s = [], [], 0.0 * a
    for v in x:
        ys.append(v)
        if is_above(v, a):
            ys.append(v * v)
        else:
            zs.append(v * a)
    for y, v in zip(ys, x):  # noqa: B905
        s += y * v if is_above(y, 0.3 + 0 * a) else v
    for i, y in zip(range(3), ys):  # noqa: B905
        s += i * y * a if is_above(y, 0 * a) else y
    for (i, y), z in zip(enumerate(ys), zs):  # noqa: B905
        s += i * y * z if is_above(z, 0 * a) else z
    return s


def growing_beside_others(x: Any, a: Any) -> Any:
    ys, zs, ws = [x[0]], [], []
    for y in ys:
        for v in x:
            zs.append(y * v)
            if is_above(v, a):
                ws.append(v * y)
        if is_above(4.0 + a, y):
            ys.append(y + 1.0)
    return sum(zs) + sum(ws) * len(ys)


def growing_behind_a_slice(x: Any, a: Any) -> Any:
    ys, zs = [0.5 + 0 * a, a], []
    for v in x:
        if is_above(v, a):
            ys.append(v)  # noqa: PERF401
    s = sum(ys[:2])
    for y in ys:
        zs.append((y * a, 1))
        if is_above(1.0 + 0 * a, y) and len(ys) < 9:
            ys.append(y + 1)
    for z, k in zs:
        s = s * 0.9 + z * k
    return s


def in_a_try(x: Any, a: Any) -> Any:
    ys, zs = [0 * a], []
    for v in x:
        try:
            if is_above(v, a):
                ys.append(v * 2)
                ys.append(ys[-1] + v)
            elif len(ys) > 2:
                zs.append(ys.pop())
            else:
                zs.append([v][len(ys)])
        except IndexError:
            zs.append(a)
    s = 0.0 * a
    for i in range(len(x)):
        try:
            s = s * 0.9 + zs[i] * ys[i + 3]
        except IndexError:
            s = s + a
    return s + sum(ys) + sum(zs)


def in_a_try_behind(x: Any, a: Any) -> Any:
    ys, zs = [a], []
    for v in x:
        ys.append(v * 2 if is_above(v, a) else v)  # noqa: PERF401
    for v in x:
        try:
            ys.append(v)
            zs.append(ys[-1] * v)
        except Exception:  # noqa: BLE001
            pass
    return np.sum(zs) + sum(ys)


def growing_in_a_loop_around(x: Any, a: Any) -> Any:
    ys, zs, s = [0.5 + 0 * a], [], 0.0 * a
    for v in x:
        for i, y in enumerate(ys):
            s = s * 0.9 + y * i
            zs.append(y * a)
            if is_above(y, v) and len(ys) < 20:
                ys.append(y * 0.5)
    return s + len(ys) + sum(zs)


ONE: list[tuple[Callable[..., Any], int]] = [
    *((summed, 3), (averaged, 3), (picked, 6), (in_several_ways, 5), (looped, 7), (in_both_loops, 8)),
    *((before_and_behind, 4), (left_early, 6), (in_a_while, 6), (of_rows, 5), (of_states, 4), (of_pairs, 5)),
    *((of_places, 4), (as_a_stack, 6), (comprehended, 3), (with_places, 4), (generated, 4)),
    *((deciding, 3), (of_another, 5), (written_and_cleared, 6), (of_lists_in_objects, 4), (by_places, 8)),
    *((growing_while_iterated, 8), (comprehended_by_name, 4), (pooled, 6)),
    *((beside_shorter_ones, 9), (growing_beside_others, 8), (growing_behind_a_slice, 14)),
    *((growing_in_a_loop_around, 8), (in_a_try, 12), (in_a_try_behind, 4)),
]


def arguments(seed: int) -> tuple[Any, float, Any, float]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=N), float(rng.normal()) * 0.5, rng.normal(size=N), float(rng.normal())


@pytest.mark.slow
@pytest.mark.parametrize(("f", "traces"), ONE, ids=lambda f: getattr(f, "__name__", ""))
def test_lists_of_one_loop(f: Callable[..., Any], traces: int) -> None:
    """Values with slopes, and of every other function without."""
    values, both = jit(f), jit(fnad.value_and_grad(f, (0, 1)))
    has_values = random.Random(f.__name__).random() < 0.5
    with fnad.config.override(executor="interpreter"):
        for seed in range(5):
            x, a, dx, da = arguments(seed)
            value, (gx, ga) = both(x, a)
            for found in (value, values(x, a)) if seed < 3 and has_values else (value,):
                assert found == pytest.approx(f(x, a), rel=1e-12)
            exact = f(x + 1e-30j * dx, a + 1e-30j * da).imag / 1e-30
            assert gx @ dx + ga * da == pytest.approx(exact, rel=1e-9, abs=1e-12)
    assert len(values.paths()) <= traces
    assert len(both.paths()) <= traces
    assert loops_of(both) > 0


def test_functions_in_comprehensions_take_traced_numbers() -> None:
    x = np.array([0.5, 1.0])
    assert [grad(lambda v: math.sin(v))(v) for v in x] == pytest.approx(np.cos(x))
    assert grad(lambda x: math.fsum(math.sin(v) for v in x))(x) == pytest.approx(np.cos(x))


def doubled(x: Any, a: Any) -> Any:
    ys = [a]
    for v in x:
        if is_above(v, a) and len(ys) < 5:
            ys += ys
    ys.extend(ys)
    return sum(ys)


def of_other_types_behind(x: Any, a: Any) -> Any:
    ys = [a]
    for v in x:
        if is_above(v, a):
            ys.append(v)  # noqa: PERF401
    ys += [len(x), "end", x]
    return sum(ys[:-2]) + np.sum(ys[-1])


@pytest.mark.parametrize("f", [doubled, of_other_types_behind], ids=lambda f: f.__name__)
def test_lists_that_no_loop_carries(f: Callable[..., Any]) -> None:
    value = jit(f)
    with fnad.config.override(executor="interpreter"):
        for seed in range(4):
            x, a, *_ = arguments(seed)
            assert value(x, a) == pytest.approx(f(x, a))


@pytest.mark.slow
def test_derivatives_of_all_kinds() -> None:
    curvature, push = jit(hessian(averaged)), jit(lambda x, a, t: jvp(averaged, (x, a), (t, 1.0)))
    with fnad.config.override(executor="interpreter"):
        for seed in range(4):
            x, a, dx, _ = arguments(seed)
            np.testing.assert_allclose(curvature(x, a), hessian(averaged)(x, a), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(push(x, a, dx), jvp(averaged, (x, a), (dx, 1.0)), rtol=1e-9)
    assert loops_of(curvature) == loops_of(push) == 1


@pytest.mark.slow
@pytest.mark.parametrize("f", [summed, in_several_ways, before_and_behind, comprehended])
def test_rows_have_their_own_lists(f: Callable[..., Any]) -> None:
    values, slopes = jit(vmap(f)), jit(grad(lambda x, a: vmap(f)(x, a).sum(), (0, 1)))
    with fnad.config.override(executor="interpreter"):
        for seed in range(2):
            rows = [arguments(10 * seed + i)[:2] for i in range(4)]
            x, a = np.stack([row[0] for row in rows]), np.array([row[1] for row in rows])
            np.testing.assert_allclose(values(x, a), [f(*row) for row in rows], rtol=1e-12)
            expected = [grad(f, (0, 1))(*row) for row in rows]
            for found, each in zip(slopes(x, a), zip(*expected, strict=True), strict=True):
                np.testing.assert_allclose(found, each, rtol=1e-9, atol=1e-12)
    assert len(values.paths()) <= 4


def nan_and_ties(x: Any, a: Any) -> Any:
    ys = [v for v in x if not v < a]
    return (max(ys) * 2 + min(ys)) if ys else a


@pytest.mark.parametrize("first", [np.nan, -np.inf, 0.7])
def test_extrema_are_those_of_python(first: float) -> None:
    value = jit(nan_and_ties)
    with fnad.config.override(executor="interpreter"):
        for seed in range(4):
            x = np.round(arguments(seed)[0], 1)
            x[seed], x[-1] = first, np.nan
            for each in (x, x[::-1].copy(), np.sort(x)):
                assert value(each, 0.0) == pytest.approx(nan_and_ties(each, 0.0), nan_ok=True)
    assert loops_of(value) == 1


def as_list(x: Any, a: Any) -> Any:
    ys, flags = [], []
    for v in x:
        if v > a:
            ys.append(v)
            flags.append(v > 1)
    match ys:
        case []:
            kind = 0
        case [_]:
            kind = 1
        case [*_]:
            kind = 2
    same = copy.copy(ys)
    same.append(a)
    both = (ys + [a], [a] + ys, ys * 2, len(ys) * [a], ys[1:], sorted(ys), tuple(ys), [*reversed(ys)], max(*ys, a, a))  # noqa: RUF005
    return {"ys": ys, "same": same}, both, kind, isinstance(ys, list), type(ys) is list, np.array(flags).dtype == bool


def test_what_needs_the_length_is_a_list() -> None:
    """The length guards the path, and from then on the list is one of Python."""
    value = jit(as_list)
    with fnad.config.override(executor="interpreter"):
        for seed in range(8):
            x, a = arguments(seed)[:2]
            found, expected = (fnad.tree.flatten(f(x[:5], a)) for f in (value, as_list))
            assert found[1] == expected[1]
            np.testing.assert_allclose(found[0], expected[0])
    assert len(value.paths()) <= 7
    assert loops_of(value) == 1


def test_one_program_for_two_hundred_calls() -> None:
    value, slope, rng = jit(summed), jit(grad(summed, (0, 1))), np.random.default_rng(0)
    for _ in range(200):
        x = rng.normal(size=150)
        value(x, 0.1)
        slope(x, 0.1)
    assert (len(value.paths()), len(slope.paths())) == (1, 1)

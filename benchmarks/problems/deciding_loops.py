"""Plain Python loops whose steps take different branches, with new data at each call, beside `scan` and `cond`.

A sum in three ways, a Metropolis chain, van Leer's limiter, a bisection, run lengths, an elevator, a decision tree,
a piecewise cubic, a block that sticks and slips, and the deepest fall of prices. Each is called on sixteen inputs in
turn, by its value and gradient.
"""

from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case
from benchmarks.deciding_by_hand import by_hand

Function = Callable[..., Any]
INPUTS = 16
DEPTH = 6


def three_ways(x: Any, a: Any) -> Any:
    s = 0.0
    for v in x:
        if v > a:
            s += np.sin(v)
        elif v < -a:
            s -= v * v
        else:
            s += a * v
    return s


def three_ways_by_scan(fnad: Any, x: Any, a: Any) -> Any:
    def step(s: Any, v: Any) -> Any:
        def small() -> Any:
            return fnad.cond(v < -a, lambda: s - v * v, lambda: s + a * v)

        return fnad.cond(v > a, lambda: s + np.sin(v), small), None

    return fnad.scan(step, 0.0, x)[0]


def metropolis(width: Any, noise: Any, uniform: Any) -> Any:
    x = s = 0.5
    for e, u in zip(noise, uniform):  # noqa: B905
        y = x + width * e
        if u < np.exp(0.5 * (x * x - y * y)):
            x = y
        s += x * x
    return s


def metropolis_by_scan(fnad: Any, width: Any, noise: Any, uniform: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        (x, s), (e, u) = state, row
        y = x + width * e
        x = fnad.cond(u < np.exp(0.5 * (x * x - y * y)), lambda: y, lambda: x)
        return (x, s + x * x), None

    return fnad.scan(step, (0.5, 0.5), (noise, uniform))[0][1]


def van_leer(u: Any, c: Any) -> Any:
    for _ in range(20):
        flux = np.zeros(len(u))
        for i in range(1, len(u) - 1):
            down, up = u[i] - u[i - 1], u[i + 1] - u[i]
            if down * up > 0.0:
                flux[i] = u[i] + (1.0 - c) * down * up / (down + up)
            else:
                flux[i] = u[i]
        u = u - c * (flux - np.concatenate([flux[:1], flux[:-1]]))
    return np.sum(u * u)


def van_leer_by_scan(fnad: Any, u: Any, c: Any) -> Any:
    def cell(carry: None, row: Any) -> Any:
        left, here, right = row
        down, up = here - left, right - here

        def limited() -> Any:
            return here + (1.0 - c) * down * up / (down + up)

        return carry, fnad.cond(down * up > 0.0, limited, lambda: here)

    def sweep(u: Any, _: Any) -> Any:
        inner = fnad.scan(cell, None, (u[:-2], u[1:-1], u[2:]))[1]
        flux = np.concatenate([np.zeros(1), inner, np.zeros(1)])
        return u - c * (flux - np.concatenate([flux[:1], flux[:-1]])), None

    return np.sum(fnad.scan(sweep, u, None, length=20)[0] ** 2)


def bisection(a: Any, high: Any) -> Any:
    low = 0.0
    while high - low > 1e-10 * a:
        middle = 0.5 * (low + high)
        if middle**3 + middle > a:
            high = middle
        else:
            low = middle
    return 0.5 * (low + high) * a


def bisection_by_scan(fnad: Any, a: Any, high: Any) -> Any:
    def step(ends: Any) -> Any:
        low, high = ends
        middle = 0.5 * (low + high)
        return fnad.cond(middle**3 + middle > a, lambda: (low, middle), lambda: (middle, high))

    low, high = fnad.while_loop(lambda ends: ends[1] - ends[0] > 1e-10 * a, step, (0.0, high))
    return 0.5 * (low + high) * a


def run_lengths(values: Any, lengths: Any) -> Any:
    s, place = 0.0, 0
    for v, n in zip(values, lengths):  # noqa: B905
        j = 0
        while j < n:
            s += v * v * place
            place += 1
            j += 1
    return s


def run_lengths_by_scan(fnad: Any, values: Any, lengths: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        v, n = row
        return fnad.fori_loop(0, n, lambda _, state: (state[0] + v * v * state[1], state[1] + 1), state), None

    return fnad.scan(step, (0.0, 0), (values, lengths))[0][0]


def elevator(speed: Any, calls: Any) -> Any:
    floor, waited, up = 0.0, 0.0, True
    for call in calls:
        if call > floor:
            waited += (call - floor) / speed + (0.0 if up else 2.0)
            up = True
        elif call < floor:
            waited += 0.8 * (floor - call) / speed + (2.0 if up else 0.0)
            up = False
        floor = call
    return waited


def elevator_by_scan(fnad: Any, speed: Any, calls: Any) -> Any:
    def step(state: Any, call: Any) -> Any:
        floor, waited, up = state

        def higher() -> Any:
            return (waited + (call - floor) / speed + fnad.cond(up, lambda: 0.0, lambda: 2.0), up | True)

        def lower() -> Any:
            return (waited + 0.8 * (floor - call) / speed + fnad.cond(up, lambda: 2.0, lambda: 0.0), up & False)

        waited, up = fnad.cond(call > floor, higher, lambda: fnad.cond(call < floor, lower, lambda: (waited, up)))
        return (call, waited, up), None

    return fnad.scan(step, (0.0, 0.0, True), calls)[0][1]


def tree(leaves: Any, points: Any, feature: Any, threshold: Any) -> Any:
    s = 0.0
    for i in range(len(points)):
        node = 0
        for _ in range(DEPTH):
            if points[i, feature[node]] <= threshold[node]:  # noqa: SIM108
                node = 2 * node + 1
            else:
                node = 2 * node + 2
        s += leaves[node - (2**DEPTH - 1)] ** 2
    return s


def tree_by_scan(fnad: Any, leaves: Any, points: Any, feature: Any, threshold: Any) -> Any:
    features, thresholds = fnad.numpy.asarray(feature), fnad.numpy.asarray(threshold)

    def predict(s: Any, point: Any) -> Any:
        def descend(_: Any, node: Any) -> Any:
            left = point[features[node]] <= thresholds[node]
            return fnad.cond(left, lambda: 2 * node + 1, lambda: 2 * node + 2)

        return s + leaves[fnad.fori_loop(0, DEPTH, descend, 0) - (2**DEPTH - 1)] ** 2, None

    return fnad.scan(predict, 0.0, points)[0]


def cubic(values: Any, slopes: Any, queries: Any) -> Any:
    s = 0.0
    for q in queries:
        i = 0
        while i < 14 and q > i + 1.0:
            i += 1
        if 0.0 <= q <= 15.0:
            t = q - i
            a, b = values[i], values[i + 1]
            c, d = slopes[i] - (b - a), (b - a) - slopes[i + 1]
            s += a + t * (b - a) + t * (1 - t) * ((1 - t) * c + t * d)
    return s


def cubic_by_scan(fnad: Any, values: Any, slopes: Any, queries: Any) -> Any:
    def step(s: Any, q: Any) -> Any:
        i = fnad.while_loop(lambda i: (i < 14) & (q > i + 1.0), lambda i: i + 1, 0)
        t = q - i
        a, b = values[i], values[i + 1]
        c, d = slopes[i] - (b - a), (b - a) - slopes[i + 1]

        def inside() -> Any:
            return s + a + t * (b - a) + t * (1 - t) * ((1 - t) * c + t * d)

        return fnad.cond((q >= 0.0) & (q <= 15.0), inside, lambda: s), None

    return fnad.scan(step, 0.0, queries)[0]


def stick_slip(friction: Any, pulls: Any) -> Any:
    x = v = 0.1
    for pull in pulls:
        force = pull - x
        if abs(v) < 0.05 and abs(force) < friction:
            v = v * 0.0
        elif v >= 0.0:
            v = v + 0.1 * (force - 0.8 * friction)
        else:
            v = v + 0.1 * (force + 0.8 * friction)
        x = x + 0.1 * v
    return x * x + v


def stick_slip_by_scan(fnad: Any, friction: Any, pulls: Any) -> Any:
    def step(state: Any, pull: Any) -> Any:
        x, v = state
        force = pull - x

        def moves() -> Any:
            return fnad.cond(
                v >= 0.0, lambda: v + 0.1 * (force - 0.8 * friction), lambda: v + 0.1 * (force + 0.8 * friction)
            )

        v = fnad.cond((abs(v) < 0.05) & (abs(force) < friction), lambda: v * 0.0, moves)
        return (x + 0.1 * v, v), None

    x, v = fnad.scan(step, (0.1, 0.1), pulls)[0]
    return x * x + v


def drawdown(returns: Any, rate: Any) -> Any:
    wealth = peak = 1.0
    worst = 0.0
    for r in returns:
        wealth = wealth * (1.0 + rate * r)
        if wealth > peak:
            peak = wealth
        elif peak - wealth > worst:
            worst = peak - wealth
    return worst + wealth


def drawdown_by_scan(fnad: Any, returns: Any, rate: Any) -> Any:
    def step(state: Any, r: Any) -> Any:
        wealth, peak, worst = state
        wealth = wealth * (1.0 + rate * r)

        def fell() -> Any:
            return fnad.cond(peak - wealth > worst, lambda: (peak, peak - wealth), lambda: (peak, worst))

        peak, worst = fnad.cond(wealth > peak, lambda: (wealth, worst), fell)
        return (wealth, peak, worst), None

    wealth, _, worst = fnad.scan(step, (1.0, 1.0, 0.0), returns)[0]
    return worst + wealth


def problems() -> Iterator[tuple[str, Function, Function, int, Function]]:
    """Titles, both functions, how many arguments they are differentiated in, and what makes arguments."""

    def tree_arguments(rng: Any) -> tuple[Any, ...]:
        nodes = 2**DEPTH - 1
        return rng.random(nodes + 1), rng.random((200, 4)), rng.integers(0, 4, nodes), rng.random(nodes)

    def cubic_arguments(rng: Any) -> tuple[Any, ...]:
        return rng.random(16), rng.random(16), rng.random(200) * 17 - 1

    yield "three ways", three_ways, three_ways_by_scan, 2, lambda rng: (rng.normal(size=1000), 0.3)
    yield (
        *("Metropolis, 10,000 steps", metropolis, metropolis_by_scan, 1),
        lambda rng: (0.7, rng.normal(size=10_000), rng.random(10_000)),
    )
    yield "van Leer", van_leer, van_leer_by_scan, 2, lambda rng: (rng.random(100), 0.4)
    yield "bisection", bisection, bisection_by_scan, 1, lambda rng: (1.0 + 20 * rng.random(), 5.0)
    yield (
        *("run lengths", run_lengths, run_lengths_by_scan, 1),
        lambda rng: (rng.random(100), rng.integers(0, 9, 100)),
    )
    yield "elevator", elevator, elevator_by_scan, 1, lambda rng: (1.5, rng.integers(0, 9, 500).astype(float))
    yield "decision tree", tree, tree_by_scan, 1, tree_arguments
    yield "piecewise cubic", cubic, cubic_by_scan, 2, cubic_arguments
    yield "stick and slip", stick_slip, stick_slip_by_scan, 1, lambda rng: (0.4, np.cumsum(rng.normal(size=2000)) / 9)
    yield "drawdown", drawdown, drawdown_by_scan, 2, lambda rng: (rng.normal(size=2000) / 50, 0.9)


def cases() -> Iterator[Case]:
    for title, loop, by_scan, count, make in problems():
        inputs = [make(np.random.default_rng(seed)) for seed in range(INPUTS)]
        yield Case(f"value and gradient, {title}", calls(loop, by_scan, count, inputs), 1e-9, unit="µs", rounds=11)


def calls(loop: Function, by_scan: Function, count: int, inputs: list[tuple[Any, ...]]) -> list[Call]:
    def with_loop(fnad: Any) -> Thunk:
        return over(fnad.jit(fnad.value_and_grad(loop, tuple(range(count)))))

    def with_scan(fnad: Any) -> Thunk:
        return over(fnad.jit(fnad.value_and_grad(lambda *args: by_scan(fnad, *args), tuple(range(count)))))

    def over(function: Function) -> Thunk:
        for given in inputs:
            function(*given)
        following = cycle(inputs)
        return lambda: function(*next(following))

    def with_numba(native: Any) -> Thunk:
        function = by_hand(native)[loop.__name__]

        def value_and_gradient(*args: Any) -> Any:
            value, *gradients = function(*args)
            return value, tuple(gradients)

        return over(value_and_gradient)

    return [
        Call("fnad jit, Python loop", "fnad", with_loop),
        Call("fnad jit, scan and cond", "fnad", with_scan),
        Call("Numba by hand", "numba", with_numba),
    ]

"""Values and gradients of the loops of `deciding_loops`, written by hand for Numba."""

from collections.abc import Callable
from typing import Any

import numpy as np


def by_hand(native: Any) -> dict[str, Callable[..., Any]]:
    """Functions of the same arguments, by the names of the loops."""
    exp, sin, cos = native.exp, native.sin, native.cos

    def three_ways(x, a):
        s, slope, to_x = 0.0, 0.0, np.empty_like(x)
        for i in range(x.size):
            v = x[i]
            if v > a:
                s += sin(v)
                to_x[i] = cos(v)
            elif v < -a:
                s -= v * v
                to_x[i] = -2.0 * v
            else:
                s += a * v
                to_x[i] = a
                slope += v
        return s, to_x, slope

    def metropolis(width, noise, uniform):
        x = s = 0.5
        dx = ds = 0.0
        for i in range(noise.size):
            y = x + width * noise[i]
            if uniform[i] < exp(0.5 * (x * x - y * y)):
                x = y
                dx += noise[i]
            s += x * x
            ds += 2.0 * x * dx
        return s, ds

    def van_leer(u, c):
        n = u.size
        states, flux = np.empty((21, n)), np.zeros(n)
        states[0] = u
        for k in range(20):
            u, after = states[k], states[k + 1]
            limited(u, c, flux)
            after[0] = u[0]
            for i in range(1, n):
                after[i] = u[i] - c * (flux[i] - flux[i - 1])
        value, to_c = 0.0, 0.0
        to_u, before = np.empty(n), np.empty(n)
        for i in range(n):
            value += states[20, i] * states[20, i]
            to_u[i] = 2.0 * states[20, i]
        for k in range(19, -1, -1):
            u = states[k]
            limited(u, c, flux)
            for i in range(1, n):
                to_c -= to_u[i] * (flux[i] - flux[i - 1])
            before[:] = to_u
            for i in range(1, n - 1):
                g = c * (to_u[i + 1] - to_u[i])
                before[i] += g
                down, up = u[i] - u[i - 1], u[i + 1] - u[i]
                if down * up > 0.0:
                    total = down + up
                    to_c -= g * down * up / total
                    g *= (1.0 - c) / (total * total)
                    to_down, to_up = g * up * up, g * down * down
                    before[i] += to_down - to_up
                    before[i - 1] -= to_down
                    before[i + 1] += to_up
            to_u[:] = before
        return value, to_u, to_c

    def bisection(a, high):
        low = 0.0
        while high - low > 1e-10 * a:
            middle = 0.5 * (low + high)
            if middle**3 + middle > a:
                high = middle
            else:
                low = middle
        return 0.5 * (low + high) * a, 0.5 * (low + high)

    def run_lengths(values, lengths):
        s, place, to_values = 0.0, 0, np.zeros(values.size)
        for i in range(values.size):
            v = values[i]
            for _ in range(lengths[i]):
                s += v * v * place
                to_values[i] += 2.0 * v * place
                place += 1
        return s, to_values

    def elevator(speed, calls):
        floor, waited, way, up = 0.0, 0.0, 0.0, True
        for call in calls:
            if call > floor:
                waited += 0.0 if up else 2.0
                way += call - floor
                up = True
            elif call < floor:
                waited += 2.0 if up else 0.0
                way += 0.8 * (floor - call)
                up = False
            floor = call
        return waited + way / speed, -way / (speed * speed)

    def tree(leaves, points, feature, threshold):
        s, to_leaves, inner = 0.0, np.zeros(leaves.size), threshold.size
        for i in range(points.shape[0]):
            node = 0
            while node < inner:
                node = 2 * node + (1 if points[i, feature[node]] <= threshold[node] else 2)
            leaf = leaves[node - inner]
            s += leaf * leaf
            to_leaves[node - inner] += 2.0 * leaf
        return s, to_leaves

    def cubic(values, slopes, queries):
        s, to_values, to_slopes = 0.0, np.zeros(values.size), np.zeros(slopes.size)
        for q in queries:
            i = 0
            while i < 14 and q > i + 1.0:
                i += 1
            if 0.0 <= q <= 15.0:
                t = q - i
                a, b = values[i], values[i + 1]
                c, d = slopes[i] - (b - a), (b - a) - slopes[i + 1]
                bend = t * (1 - t)
                s += a + t * (b - a) + bend * ((1 - t) * c + t * d)
                rise = t + bend * (2 * t - 1)
                to_values[i] += 1 - rise
                to_values[i + 1] += rise
                to_slopes[i] += bend * (1 - t)
                to_slopes[i + 1] -= bend * t
        return s, to_values, to_slopes

    def stick_slip(friction, pulls):
        x = v = 0.1
        dx = dv = 0.0
        for pull in pulls:
            force = pull - x
            if abs(v) < 0.05 and abs(force) < friction:
                v, dv = v * 0.0, dv * 0.0
            elif v >= 0.0:
                v, dv = v + 0.1 * (force - 0.8 * friction), dv - 0.1 * (dx + 0.8)
            else:
                v, dv = v + 0.1 * (force + 0.8 * friction), dv - 0.1 * (dx - 0.8)
            x, dx = x + 0.1 * v, dx + 0.1 * dv
        return x * x + v, 2.0 * x * dx + dv

    def drawdown(returns, rate):
        n = returns.size
        wealth, to_returns = np.empty(n + 1), np.empty(n)
        wealth[0] = 1.0
        peak = high = low = 0
        worst = 0.0
        for i in range(n):
            wealth[i + 1] = wealth[i] * (1.0 + rate * returns[i])
            if wealth[i + 1] > wealth[peak]:
                peak = i + 1
            elif wealth[peak] - wealth[i + 1] > worst:
                worst, high, low = wealth[peak] - wealth[i + 1], peak, i + 1
        to_wealth, to_rate = 1.0, 0.0
        for i in range(n - 1, -1, -1):
            to_wealth += (i + 1 == high) - (i + 1 == low)
            to_returns[i] = to_wealth * wealth[i] * rate
            to_rate += to_wealth * wealth[i] * returns[i]
            to_wealth *= 1.0 + rate * returns[i]
        return worst + wealth[n], to_returns, to_rate

    @native.njit
    def limited(u, c, flux):
        for i in range(1, u.size - 1):
            down, up = u[i] - u[i - 1], u[i + 1] - u[i]
            flux[i] = u[i]
            if down * up > 0.0:
                flux[i] += (1.0 - c) * down * up / (down + up)

    loops = three_ways, metropolis, van_leer, bisection, run_lengths, elevator, tree, cubic, stick_slip, drawdown
    return {loop.__name__: native.njit(loop) for loop in loops}

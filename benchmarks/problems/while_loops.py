"""Reverse mode through loops that end when the data say so: nobody knows how many steps there will be.

Collatz: the sum of log y over a sequence that halves or triples, in y, which is a number beside the integer that
decides. Kepler: E - e sin E = M by Newton's method for a thousand M, each for as many steps as it needs, in e.
JAX differentiates no such loop in reverse.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.calls import Call, Thunk
from benchmarks.case import Case

COLLATZ_START = 837_799  # 524 steps, the most below a million
ANOMALIES = np.linspace(0.01, math.pi - 0.01, 1000)
ECCENTRICITY, TOLERANCE = 0.9, 1e-12


def cases() -> Iterator[Case]:
    yield Case("Collatz, 524 steps", collatz(), tolerance=1e-10, unit="µs", rounds=11)
    yield Case("Newton on Kepler, 1,000 roots", kepler(), tolerance=1e-9, rounds=7)


def collatz() -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        def step(state: Any) -> Any:
            n, y, total = state
            even = n % 2 == 0
            y = np.where(even, y / 2, 3 * y + 1)
            return np.where(even, n // 2, 3 * n + 1), y, total + np.log(y)

        def length(y: Any, n: int) -> Any:
            return fnad.while_loop(lambda state: state[0] != 1, step, (n, y, 0.0))[2]

        value_and_grad = fnad.jit(fnad.value_and_grad(length))
        return lambda: value_and_grad(float(COLLATZ_START), COLLATZ_START)

    def with_torch(torch: Any) -> Thunk:
        def length(y: Any, n: int) -> Any:
            total = torch.zeros((), dtype=torch.float64)
            while n != 1:
                n, y = (n // 2, y / 2) if n % 2 == 0 else (3 * n + 1, 3 * y + 1)
                total = total + torch.log(y)
            return total

        def run() -> Any:
            start = torch.tensor(float(COLLATZ_START), dtype=torch.float64, requires_grad=True)
            total = length(start, COLLATZ_START)
            return total.detach(), torch.autograd.grad(total, start)[0]

        return run

    def by_hand(native: Any) -> Thunk:
        @native.njit
        def value_and_grad(y, n):
            tape = np.empty((64, 2))
            steps, total = 0, 0.0
            while n != 1:
                if steps == tape.shape[0]:
                    tape = np.concatenate((tape, np.empty_like(tape)))
                even = n % 2 == 0
                n, y, factor = (n // 2, y / 2, 0.5) if even else (3 * n + 1, 3 * y + 1, 3.0)
                tape[steps, 0], tape[steps, 1] = factor, y
                total += math.log(y)
                steps += 1
            slope = 0.0
            for i in range(steps - 1, -1, -1):
                slope = (slope + 1 / tape[i, 1]) * tape[i, 0]
            return total, slope

        return lambda: value_and_grad(float(COLLATZ_START), COLLATZ_START)

    return [
        Call("fnad jit, while_loop", "fnad", with_fnad),
        Call("PyTorch eager", "torch", with_torch),
        Call("Numba by hand", "numba", by_hand),
    ]


def kepler() -> list[Call]:
    def with_fnad(fnad: Any) -> Thunk:
        def root(e: Any, anomaly: Any) -> Any:
            def rest(x: Any) -> Any:
                return x - e * np.sin(x) - anomaly

            def step(x: Any) -> Any:
                return x - rest(x) / (1 - e * np.cos(x))

            return fnad.while_loop(lambda x: np.abs(rest(x)) > TOLERANCE, step, np.float64(math.pi))

        value_and_grad = fnad.jit(
            fnad.value_and_grad(lambda e, anomalies: np.sum(fnad.map(lambda m: root(e, m), anomalies)))
        )
        return lambda: value_and_grad(ECCENTRICITY, ANOMALIES)

    def with_torch(torch: Any) -> Thunk:
        anomalies = torch.from_numpy(ANOMALIES)

        def root(e: Any, anomaly: Any) -> Any:
            x = torch.tensor(math.pi, dtype=torch.float64)
            while torch.abs(rest := x - e * torch.sin(x) - anomaly) > TOLERANCE:
                x = x - rest / (1 - e * torch.cos(x))
            return x

        def run() -> Any:
            e = torch.tensor(ECCENTRICITY, dtype=torch.float64, requires_grad=True)
            total = torch.sum(torch.stack([root(e, anomaly) for anomaly in anomalies]))
            return total.detach(), torch.autograd.grad(total, e)[0]

        return run

    def by_hand(native: Any) -> Thunk:
        @native.njit
        def value_and_grad(e, anomalies):
            tape = np.empty(64)
            total = slope = 0.0
            for anomaly in anomalies:
                x, steps = math.pi, 0
                while abs(x - e * math.sin(x) - anomaly) > TOLERANCE:
                    if steps == tape.size:
                        tape = np.concatenate((tape, np.empty_like(tape)))
                    tape[steps] = x
                    steps += 1
                    x -= (x - e * math.sin(x) - anomaly) / (1 - e * math.cos(x))
                total += x
                x_ct = 1.0
                for i in range(steps - 1, -1, -1):
                    x = tape[i]
                    sine, cosine = math.sin(x), math.cos(x)
                    divisor = 1 - e * cosine
                    quotient = (x - e * sine - anomaly) / divisor
                    slope += x_ct * (sine - quotient * cosine) / divisor
                    x_ct *= quotient * e * sine / divisor
            return total, slope

        return lambda: value_and_grad(ECCENTRICITY, ANOMALIES)

    return [
        Call("fnad jit, map of while_loop", "fnad", with_fnad),
        Call("PyTorch eager", "torch", with_torch),
        Call("Numba by hand", "numba", by_hand),
    ]

"""Random functions with Python loops that decide, and their values and derivatives by numbers with a slope.

`python -m tests.random_python_loops --seed 1 --count 1000` compares many with `jit`, each with new data at each call.
"""

from __future__ import annotations

import argparse
import linecache
import random
import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import fnad

N = 6
CALLS = 4

# ---- numbers with a slope --------------------------------------------------------------------------------------------


class Dual:
    """A number and its derivative in one direction, computed by Python along the path that Python takes."""

    def __init__(self, value: Any, slope: Any = 0.0) -> None:
        self.value, self.slope = value, slope

    def __add__(self, other: Any) -> Dual:
        other = dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other: Any) -> Dual:
        other = dual(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.slope)

    def __sub__(self, other: Any) -> Dual:
        return self + -dual(other)

    def __rsub__(self, other: Any) -> Dual:
        return dual(other) + -self

    def __abs__(self) -> Dual:
        return -self if self.value < 0 else self

    def __bool__(self) -> bool:
        return bool(self.value)

    def __lt__(self, other: Any) -> bool:
        return bool(self.value < dual(other).value)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > dual(other).value)

    def sin(self) -> Dual:
        return Dual(np.sin(self.value), np.cos(self.value) * self.slope)

    def tanh(self) -> Dual:
        value = np.tanh(self.value)
        return Dual(value, (1 - value * value) * self.slope)


def dual(value: Any) -> Dual:
    return value if isinstance(value, Dual) else Dual(value)


DUAL_NUMPY = SimpleNamespace(
    sin=np.sin,
    tanh=np.tanh,
    ones=lambda n: np.array([Dual(1.0) for _ in range(n)]),
)
"""The functions of NumPy in the text of a random function, for such numbers."""


# ---- random functions ------------------------------------------------------------------------------------------------


BEHIND: list[list[str]] = [
    ["s = s + sum(q) * len(q)"],
    ["for w in q:", "    s = s * 0.5 + w"],
    ["for k, w in enumerate(q):", "    t = t + (w * k if w > a else a * 0.1)"],
    ["for k in range(len(q)):", "    t = t * 0.5 + q[k] * k"],
    ["for w, u in zip(q, x):", "    s = s * 0.9 + w * u"],
    ["for k, w in zip(range(3), q):", "    s = s * 0.9 + (w * k if w > a else a)"],
    ["for w in q:", "    r.append((w * a, 1))", "    if w < 1 and len(q) < 9:", "        q.append(w + 1)"],
    ["q.append(s)", "t = t + sum([w * w for w in q if w > a])"],
    ["if len(q) > 2:", "    t = t + q[-2] * q[1]"],
    ["t = t + (max(q) - min(q)) * 0.5"],
    ["s = s + sum(sorted(q)[:2])"],
]
"""The lines behind the loops of a function with lists."""


class Text:
    """The text of a random function."""

    def __init__(self, seed: int) -> None:
        self.random, self.loops, self.is_in_def = random.Random(seed), 0, False
        self.has_list = self.random.random() < 0.5

    def one_of(self, *choices: str) -> str:
        return self.random.choice(choices)

    def value(self, depth: int = 1) -> str:
        if depth and self.random.random() < 0.35:
            x, y = self.value(depth - 1), self.value(depth - 1)
            if self.has_list and self.random.random() < 0.2:
                w, found = self.one_of("w", "w * a", "w * w if w < 1 else v"), self.one_of("x", "y", "q", "x[:3]")
                test = self.one_of("w > v", "w > a", "-a < w < v", "w > 0 and v > a")
                return self.one_of(f"sum([{w} for w in {found} if {test}])", f"sum({w} for w in {found} if {test})")
            return self.one_of(f"{x} + {y}", f"{x} - 0.3 * {y}", f"np.sin({x}) * {y}", f"np.tanh({x})", f"0.5 * ({x})")
        numbers = "v", "a", "s", "t", "p", "a * v", "v * v", "abs(v)", "0.75", "n * 0.1", "float(i)"
        chosen = "min(v, a)", "max(s * 0.1, v)", "sorted((v, a, t))[1]", "(v if v > 0 else a)", "(v > 0 and s or t)"
        elements = "y[i]", "x[i]", "x[i - 1]", "y[i - 1] * v", "z[i]", f"x[n % {N}]", f"y[n % {N}]", "z.sum() * 0.1"
        lists = "q[-1]", "sum(q) * 0.1", "len(q) * 0.1", "q[len(q) // 2]", "q[0]", "q[i] if i < len(q) else a"
        return self.one_of(*numbers, *chosen, *elements, *lists * self.has_list)

    def test(self) -> str:
        simple = "v > a", "v < -a", "s > t", "x[i] > y[i]", "not v > 0.3", "i > 3", "n > 2", "p > a", "flag", "n % 2"
        joined = "-0.5 < v < a", "v > 0 and s < 1", "v > a or t < 0", "flag and v > a", f"y[n % {N}] > v"
        more = "mode == 'up'", "last is None", "last is not None and last > v", "i + 1 < len(x) and x[i + 1] > v"
        more = (*more, "len(q) > 3", "q[-1] > v", "len(q) % 2") if self.has_list else more
        return self.one_of(*simple, *joined, *more, f"{self.value()} > {self.value()}")

    def change(self) -> str:
        value = self.value()
        numbers = f"s = s * 0.7 + 0.3 * {value}", f"t = t - 0.2 * ({value})", f"p = {value}", f"s += ({value}) * 0.1"
        arrays = f"y[i] = {value}", f"y[i - 1] = {value}", f"y[n % {N}] = {value}", f"y[i] += ({value}) * 0.5"
        whole = f"z = z * 0.8 + 0.1 * ({value})", "z = x", f"y[{N - 1} - i] = y[i] * 0.5", "w = y[i]", "n -= 2"
        states = (
            "n += 1",
            "flag = not flag",
            "mode = 'down' if flag else 'up'",
            "last = v",
            "last = None",
            "mode = 'still'",
        )
        lists = f"q.append({value})", "q.append(v)", f"q += [v, {value}]", f"q[-1] = {value}", "q.append(q[-1] * 0.5)"
        lists = *lists, "s = s + (q.pop() if len(q) > 1 else v)", f"r.append(({value}, i))", "r.append((a, i))"
        if self.has_list and self.random.random() < 0.3:
            return self.one_of(*lists)
        return self.one_of(*numbers, *arrays, *whole, *states, "y[i], y[i - 1] = y[i - 1], y[i]")

    def block(self, depth: int) -> Iterator[str]:
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.random()
            if kind < 0.4 and depth:
                yield f"if {self.test()}:"
                yield from indented(self.block(depth - 1))
                if kind < 0.1:
                    yield f"elif {self.test()}:"
                    yield from indented(self.block(depth - 1))
                if kind < 0.25:
                    yield "else:"
                    yield from indented(self.block(depth - 1))
            elif kind < 0.5 and depth and self.loops < 3:
                yield from self.loop(depth - 1)
            elif kind < 0.54 and depth:
                yield "try:"
                yield from indented([*self.block(depth - 1), f"if {self.test()}:", "    raise ValueError"])
                yield self.one_of("except ValueError:", "except Exception:")
                yield f"    {self.change()}"
            elif kind < 0.6 and depth < 2:
                yield self.one_of("continue", "break", "break", "return s - t" if self.is_in_def else "continue")
                return
            else:
                yield self.change()

    def loop(self, depth: int) -> Iterator[str]:
        self.loops += 1
        k = f"k{self.loops}"
        heads = [
            (["for i, v in enumerate(x):"], []),
            ([f"for i in range({self.one_of('2', '3', str(N), '1 + i % 3')}):"], ["v = x[i]"]),
            ([f"for v, i in zip(x, range({N})):"], []),
            *[(["for i, v in enumerate(q[:3]):"], []), (["for v in q[-4:]:"], [])] * self.has_list,
            ([f"{k} = 0", f"while {k} < {self.one_of('3', 'i', '2 + i % 2')} and ({self.test()}):"], [f"{k} += 1"]),
            ([f"{k} = abs(v)", f"while {k} > 0.3:"], [f"{k} = {k} * 0.5"]),
            ([f"{k} = 0", "while True:"], [f"if {k} >= 4:", "    break", f"{k} += 1"]),
            ([f"{k} = a", f"while {k} < 2:"], [f"{k} += 0.7", f"if {self.test()}:", "    break"]),
        ]
        head, begin = self.random.choice(heads)
        yield from head
        yield from indented([*begin, *(self.modes(depth) if self.random.random() < 0.25 else self.block(depth))])
        if self.random.random() < 0.08:
            yield "else:"
            yield f"    {self.change()}"

    def modes(self, depth: int) -> Iterator[str]:
        """A step of a machine whose modes decide differently, and follow one another."""
        for head, following in (("if mode == 'up':", "'down'"), ("elif mode == 'down':", "'still'"), ("else:", "'up'")):
            yield head
            yield from indented([*self.block(depth), f"if {self.test()}:", f"    mode = {following}"])

    def function(self) -> str:
        self.is_in_def = self.random.random() < 0.3
        start = ["s, t, p, v, last = 0.0, 0.1, 0.5, a, None", "n, i, flag, mode, z = 0, 0, True, 'up', x"]
        start += [f"q, r = [{self.one_of('0.5', 'a', 'a, x[0]')}], []"] * self.has_list
        lines = [*start, "y = np.ones(len(x))", *self.loop(2), *(self.loop(2) if self.random.random() < 0.4 else ())]
        if self.has_list:
            lines += [*self.random.choice(BEHIND), "for w, k in r:", "    s = s * 0.9 + w * k"]
        result = "return s * 1.3 + t * t + (y * x).sum() + n * 0.01 * a + (z * z).sum() * 0.1 + p * 0.3 + flag"
        return "\n".join(["def f(x, a):", *indented([*lines, result]), ""])


def indented(lines: Any) -> list[str]:
    return [f"    {line}" for line in lines]


def compiled(text: str, name: str, numpy: Any) -> Callable[..., Any]:
    names = {"np": numpy}
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    exec(compile(text, name, "exec"), names)
    return names["f"]


def data(seed: int) -> tuple[Any, float, Any, float]:
    """Arguments, and a direction."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=N), float(rng.normal() * 0.5), rng.normal(size=N), float(rng.normal())


def check(seed: int) -> int:
    """Compare a random function with itself on numbers with a slope; return the number of its loops that are one.

    Every other one without a derivative, too.
    """
    text, name = Text(seed).function(), f"<random loop {seed}>"
    f, exact = compiled(text, name, np), compiled(text, f"{name}, exact", DUAL_NUMPY)
    values, both = fnad.jit(f), fnad.jit(fnad.value_and_grad(f, (0, 1)))
    for call in range(CALLS):
        x, a, dx, da = data(1000 * seed + call)
        expected = dual(exact(np.array([Dual(*pair) for pair in zip(x, dx, strict=True)]), Dual(a, da)))
        found, (gx, ga) = both(x, a)
        for value in (values(x, a), found) if seed % 2 == 0 else (found,):
            np.testing.assert_allclose(value, expected.value, rtol=1e-9, atol=1e-9, err_msg=text)
        scale = np.abs(gx) @ np.abs(dx) + abs(ga * da) + abs(expected.slope) + 1
        np.testing.assert_allclose(gx @ dx + ga * da, expected.slope, rtol=0, atol=1e-8 * scale, err_msg=text)
    return sum(k.refused is None and bool(k.answers) for p in both._paths.values() for k in p.loops.known.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--compiled", type=int, default=8, help="of so many functions one is compiled")
    given = parser.parse_args()
    loops = failures = 0
    warnings.simplefilter("ignore")
    for seed in range(given.seed, given.seed + given.count):
        executor = "auto" if seed % given.compiled == 0 else "interpreter"
        try:
            with fnad.config.override(executor=executor):
                loops += check(seed)
        except Exception as error:  # noqa: BLE001 - each one is a finding
            failures += 1
            print(f"seed {seed}: {type(error).__name__} {str(error)[:300]}", flush=True)
    print(f"{given.count} functions, {loops} of their loops one loop, {failures} failures")


if __name__ == "__main__":
    main()

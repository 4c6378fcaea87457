"""Random functions with a loop: carried values, arrays read and written at moving places, lists, loops within loops."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 9
_rng = np.random.default_rng(0)
DRAWN = _rng.random(24), _rng.random(4), _rng.random((14, 14))
IRREGULAR = _rng.random(24)
ORDER = [3, 0, 7, 1, 8, 2, 2, 5, 6]


class _Text:
    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def of(self, *choices: str) -> str:
        return choices[self.rng.integers(len(choices))]

    def place(self, low: int, high: int) -> str:
        offset = self.rng.integers(low, high)
        return f"i+{offset}" if self.rng.random() < 0.8 else f"{STEPS}-i+{offset}"

    def number(self) -> str:
        i = self.place(1, 4)
        elements = f"x[{i}]", f"y[{i}]", f"z[{i}]", f"m[{i},1]", f"m[2,{i}]", "y[3]", "x[4]", "y[-1]"
        return self.of(
            *("s", "t", "p", *elements, "0.5", "0.1*i", "float(i)", "(i+1)*0.3", f"r[{i}]", "r[i]"),
            *("out[-1]", "out[-2]", "np.sum(a)"),
        )

    def vector(self) -> str:
        i = self.place(0, 4)
        parts = f"x[{i}:{i}+4]", f"y[{i}:{i}+4]", f"m[{i},:4]", f"m[:4,{i}]", "y[2:6]"
        return self.of("a", "b", "b[::-1]", f"a*{self.number()}", *parts)

    def of_two(self, u: str, v: str) -> str:
        return self.of(f"{u}+{v}", f"{u}-0.3*{v}", f"np.sin({u})*{v}", f"np.tanh({u}+{v})", f"0.5*({u})")

    def statement(self, depth: int) -> list[str]:
        number, vector = self.of_two(self.number(), self.number()), self.of_two(self.vector(), self.vector())
        i, j = self.place(0, 5), self.place(0, 5)
        choices = [
            f"s={number}",
            f"s,t=t,{number}",
            f"a={vector}",
            f"a,b=b,{vector}",
            f"y[{self.place(1, 4)}]={number}",
            f"z[{self.place(1, 4)}]={number}",
            f"out.append({number})",
            f"vs.append({vector})",
            f"m[{i},:4]={vector}",
            "y[1:-1]+=0.1*(y[2:]-y[:-2])",
            f"p={number}",
            f"p={number} if i!={self.rng.integers(STEPS)} else 0.25*t",
            f"m[{i},{j}]={number}",
        ]
        if depth or self.rng.random() < 0.9:
            return [self.of(*choices)]
        after = self.of("i=j", f"s=s*0.5+{self.number()}")
        return [f"for i in range({self.of('3', '5', '6')}):", *[f"    {line}" for line in self.body(1)], after]

    def body(self, depth: int = 0) -> list[str]:
        return [line for _ in range(self.rng.integers(1, 5)) for line in self.statement(depth)]


def random_loop(seed: int, *, in_order: bool = True) -> Callable[..., Any]:
    """The function of a seed, from arrays like `DRAWN` to a number; its steps are in order, or irregular."""
    text = _Text(seed)
    over = text.of(f"range({STEPS})", f"range(1,{STEPS})", f"range({STEPS}-1,-1,-1)")
    lines = [
        "def f(x, a, m):",
        "    y, z, m, b, s, t, p = 0.1*x, x*x, m.copy(), np.zeros(4), x[0], x[1], 0.3",
        "    out, vs = [x[1], x[2]], [a]",
        f"    for i in {over if in_order else ORDER}:",
        "        j = i",
        *[f"        {line}" for line in text.body()],
        f"    lists = np.sum(np.stack(out)**2) + np.sum(np.stack(vs, axis={text.of('0', '1')})*0.5)",
        "    return lists + np.sum(y*z) + s*t + p + np.sum(a*b) + np.sum(m**2)",
    ]
    names: dict[str, Any] = {"np": np, "r": IRREGULAR}
    source = "\n".join(lines)
    linecache.cache[f"<random_loop_{seed}>"] = len(source), None, source.splitlines(True), ""
    exec(compile(source, f"<random_loop_{seed}>", "exec"), names)
    return names["f"]

"""Random Python functions of branches and loops: compiled functions say what Python says, path by path."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fnad import config, grad, jit, jvp, value_and_grad

VARIABLES = ("a", "b", "c")
STEPS = 12


class Writer:
    """Writes a function of a and an array v: assignments, branches, loops with an end, early returns."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, *choices: str) -> str:
        return str(self.rng.choice(choices))

    def number(self) -> str:
        return f"{self.rng.uniform(-2, 2):.3f}"

    def atom(self) -> str:
        return self.one(*VARIABLES, *VARIABLES, self.number(), "np.sum(v)", "v[0]", "v[int(abs(a)) % 3]")

    def value(self, depth: int = 2) -> str:
        if depth == 0:
            return self.atom()
        left, right = self.value(depth - 1), self.value(depth - 1)
        return self.one(
            f"({left} + {right})", f"({left} - {right})", f"0.5 * {left} * np.tanh({right})", f"np.sin({left})",
            f"min({left}, {right})", f"max({left}, {self.number()})", f"({left} if {self.test(0)} else {right})",
            f"abs({left})", f"sorted([{left}, {right}, 0.25])[1]", self.atom(),
        )  # fmt: skip

    def test(self, depth: int = 1) -> str:
        simple = f"{self.atom()} {self.one('<', '>', '<=')} {self.atom()}"
        if depth == 0:
            return simple
        other = self.test(depth - 1)
        return self.one(
            simple, f"({simple}) and ({other})", f"({simple}) or ({other})", f"not ({simple})",
            f"{self.atom()} < {self.atom()} < 2.0", f"int({self.atom()} * 2) in (0, 1)", f"int({self.atom()}) % 2",
        )  # fmt: skip

    def block(self, depth: int, indent: str) -> Iterator[str]:
        for _ in range(self.rng.integers(1, 4)):
            yield from self.statement(depth, indent)

    def statement(self, depth: int, indent: str) -> Iterator[str]:
        kind = self.one("=", "=", "=", "if", "while", "for", "return") if depth else "="
        inner = indent + "    "
        if kind == "=":
            yield f"{indent}{self.one(*VARIABLES)} = {self.value()}"
        elif kind == "return":
            yield f"{indent}if {self.test()}:"
            yield f"{inner}return {self.value()}"
        elif kind == "if":
            yield f"{indent}if {self.test()}:"
            yield from self.block(depth - 1, inner)
            yield f"{indent}else:"
            yield from self.block(depth - 1, inner)
        else:
            n = f"n{depth}"
            yield f"{indent}{n} = 0"
            header = (
                f"while {n} < 4 and {self.test(0)}:"
                if kind == "while"
                else f"for {n} in range(int({self.atom()}) % 3):"
            )
            yield f"{indent}{header}"
            yield f"{inner}{n} = {n} + 1"
            yield from self.block(depth - 1, inner)
            yield f"{inner}if {self.test(0)}:"
            yield f"{inner}    {self.one('break', 'continue')}"

    def function(self) -> str:
        return "\n".join(["def f(a, v):", "    b, c = a * 0.5, 1.0", *self.block(2, "    "), "    return a + b * c"])


def written(seed: int) -> Any:
    source = Writer(seed).function()
    namespace: dict[str, Any] = {"np": np}
    linecache.cache[f"<{seed}>"] = len(source), None, source.splitlines(True), ""
    exec(compile(source, f"<{seed}>", "exec"), namespace)
    return namespace["f"]


def points(seed: int, count: int) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [(float(rng.uniform(-3, 3)), rng.uniform(-1, 2, 3)) for _ in range(count)]


def slope(f: Any, a: float, v: Any, h: float = 1e-6) -> float | None:
    """Return the central difference; None where the function jumps or bends nearby."""
    values = [float(f(a + k * h, v)) for k in (-2, -1, 0, 1, 2)]
    bends = np.diff(values, 3)
    is_smooth = np.all(np.abs(bends) < 1e-9 * (1 + np.max(np.abs(values)))) and np.all(np.isfinite(values))
    return (values[3] - values[1]) / (2 * h) if is_smooth else None


def check(seed: int, executor: Any) -> int:
    """Assert what Python says of a function at several points, in any order; return how many slopes were compared."""
    f, compared = written(seed), 0
    gradient, compiled = value_and_grad(f, (0, 1)), jit(value_and_grad(f, (0, 1)))
    second = jit(grad(grad(f)))
    order = points(seed, 4)
    with config.override(executor=executor):
        known: dict[float, Any] = {}
        for a, v in [*order, *order[::-1], *order]:
            value = f(a, v)
            found, (da, dv) = compiled(a, v)
            assert_allclose(found, value, rtol=1e-12, atol=1e-12)
            if a not in known:  # later ones would be traced as these are
                plain, known[a] = gradient(a, v)
                assert_allclose(plain, value, rtol=1e-14, atol=1e-14)
                assert_allclose(jvp(f, (a, v), (1.0, np.zeros(3)))[1], da, rtol=1e-9, atol=1e-12)
            assert_allclose(da, known[a][0], rtol=1e-9, atol=1e-12)
            assert_allclose(dv, known[a][1], rtol=1e-9, atol=1e-12)
            assert np.isfinite(second(a, v))
            expected = slope(f, a, v)
            if expected is not None:
                assert_allclose(da, expected, rtol=1e-5, atol=1e-6)
                compared += 1
    return compared


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fnad.errors.ControlFlowWarning")
def test_random_control_flow_has_the_values_and_slopes_of_python() -> None:
    compared = sum(check(seed, "interpreter") for seed in range(STEPS))
    assert compared > STEPS * 6, "most points are smooth"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fnad.errors.ControlFlowWarning")
@pytest.mark.parametrize("seed", range(100, 103))
def test_random_functions_compiled(seed: int) -> None:
    check(seed, "compiled")

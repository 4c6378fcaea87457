"""`fnad lint`: what can reach a singular point is found, what cannot by its structure is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.special

import fnad
from fnad.api.staging.arguments import stage_call
from fnad.cli.lint import found_in, lint
from fnad.control.singular import Finding, range_of
from fnad.ir.builder import trace
from fnad.ir.primitive import PRIMITIVES, Primitive
from fnad.ir.ranges import INF, Range
from fnad.ir.types import aval_of, is_inexact
from fnad.transforms.differentiation import jvp
from fnad.transforms.interpret import interpret
from tests.together import together

X = np.array([1.0, 2.0, 3.0])


def lint_of(f: Callable[..., Any], *args: Any) -> list[Finding]:
    return found_in(stage_call(f, tuple(range(len(args))), False, args, {})[0])


FOUND: dict[str, tuple[Callable[..., Any], list[tuple[str, str]]]] = {
    "sqrt": (np.sqrt, [("sqrt", "(-inf, inf)")]),
    "log": (np.log, [("log", "(-inf, inf)")]),
    "division": (lambda x: 1.0 / x, [("div", "(-inf, inf)")]),
    "root of squares": (lambda x: np.sqrt(np.sum(x**2)), [("sqrt", "[0, inf)")]),
    "negative power": (lambda x: x**-2, [("integer_pow", "(-inf, inf)")]),
    "power": (lambda x, y: x**y, [("pow", "(-inf, inf)")]),
    "arccos": (lambda x: np.arccos(np.cos(x)), [("arccos", "[-1, 1]")]),
    "a probability of 1": (lambda x: np.log(1.0 - scipy.special.expit(x)), [("log", "[0, 1)")]),
    "bounded at the point": (lambda x: np.log(np.maximum(x, 0.0)), [("log", "[0, inf)")]),
    "chosen too late": (lambda x: np.where(x >= 0.0, np.sqrt(x), 0.0), [("sqrt", "[0, inf)")]),
    "chosen by another": (lambda x: np.where(x < 1.0, np.log(x), 0.0), [("log", "(-inf, 1)")]),
    "used elsewhere too": (lambda x: np.where(x > 0.0, np.log(x), 0.0) + np.log(x), [("log", "(-inf, inf)")]),
    "a loop": (lambda x: fnad.scan(lambda c, t: (c * t, np.log(c)), 1.0, x)[1], [("log", "(-inf, inf)")]),
    "a loop that falls": (lambda x: fnad.scan(lambda c, t: (c - 1.0, 1.0 / c), 5.0, x)[1], [("div", "(-inf, 5]")]),
    "the other branch": (
        lambda x: fnad.cond(x[0] > 0.0, lambda x: x[0], lambda x: np.log(x[0]), x),
        [("log", "(-inf, inf)")],
    ),
    "x @ x.T": (lambda x: np.log(1.0 + np.outer(x, x) @ np.outer(x, x)), [("log", "(-inf, inf)")]),
    "gammaln": (scipy.special.gammaln, [("gammaln", "(-inf, inf)")]),
    "rest": (lambda x: np.mod(1.0, x), [("remainder", "(-inf, inf)")]),
}

SAFE: dict[str, Callable[..., Any]] = {
    "exp": lambda x: np.log(np.exp(x)),
    "1 + x²": lambda x: np.sqrt(1.0 + x**2) + np.log(1.0 + x * x),
    "1 + x·x": lambda x: np.log(1.0 + x @ x),
    "maximum": lambda x: np.log(np.maximum(x, 1e-3)),
    "where": lambda x: np.where(x > 0.0, np.log(x), 0.0),
    "double where": lambda x: np.where(x > 0.0, np.log(np.where(x > 0.0, x, 1.0)), 0.0),
    "where of an absolute value": lambda x: np.where(np.abs(x) > 1e-3, 1.0 / x, 0.0),
    "where of both": lambda x: np.where((x > 0.0) & (x < 1.0), np.log(x) + np.log(1.0 - x), 0.0),
    "where not": lambda x: np.where(~(x <= 0.0), np.sqrt(x) * 2.0, 0.0),
    "where=": lambda x: np.divide(1.0, x, out=np.zeros(3), where=x != 0.0),
    "mask": lambda x: np.sum(np.log(x[x > 0.0])),
    "softmax": lambda x: np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x))),
    "logsumexp": lambda x: np.log(np.sum(np.exp(x - np.max(x)))),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "norm, which has derivative 0 at 0": np.linalg.norm,
    "normalized": lambda x: x / (np.std(x) + 1e-6),
    "clip": lambda x: np.arctanh(np.clip(x, -0.99, 0.99)),
    "cosh": lambda x: np.log(np.cosh(x)),
    "powers": lambda x: (1.0 + x**2) ** 1.5 + np.abs(x) ** 1.5,
    "distances": lambda x: 1.0 / (1.0 + np.sum((x[:, None] - x[None]) ** 2, axis=-1)),
    "arrays from outside": lambda x: x / X,
    "a loop": lambda x: fnad.scan(lambda c, t: (c + np.abs(t), np.log(c)), 1.0, x)[1],
    "a loop of unknown length": lambda x: np.log(fnad.while_loop(lambda c: c < 10, lambda c: c * 2, np.exp(x[0]))),
    "a branch": lambda x: fnad.cond(x[0] > 0.0, np.log, lambda y: y, x[0]),
    "Python's branch": lambda x: np.log(x[0]) if x[0] > 0.0 else x[0],
    "reductions": lambda x: 1.0 / np.prod(np.exp(x)) + np.log(np.max(np.exp(x))) + np.log(np.cumsum(np.exp(x))),
    "indices": lambda x: x / (1.0 + np.arange(3)),
    "parts": lambda x: np.log(np.concatenate([np.exp(x)[::-1], np.ones(2)])[1:].reshape(2, 2)),
}


def test_what_can_reach_a_singular_point_is_found() -> None:
    with together() as check:
        for name, (f, expected) in FOUND.items():
            with check(name):
                found = lint_of(f, *([X, X] if name == "power" else [X]))
                assert [(x.equation.primitive.name, str(x.found)) for x in found] == expected


def test_what_is_safe_by_its_structure_is_not() -> None:
    with together() as check:
        for name, f in SAFE.items():
            with check(name):
                assert lint_of(f, X) == []


# ---- declarations ----------------------------------------------------------------------------------------------------


def as_range(operand: Any) -> Range:
    return range_of(operand) if np.isfinite(operand).all() else Range()


def test_bounds_hold_for_every_sample_of_every_primitive() -> None:
    checked = 0
    with together() as check:
        for primitive in [p for p in PRIMITIVES.values() if p.bounds is not None]:
            with check(primitive.name):
                for sample in primitive.samples():
                    if any(np.asarray(x).dtype.kind in "cb" for x in sample.operands):
                        continue
                    with np.errstate(all="ignore"):
                        result = primitive.evaluate(*sample.operands, **sample.params)
                    result = np.asarray(result)
                    if result.dtype.kind != "f" or not result.size:
                        continue
                    bounds = primitive.bounds(*map(as_range, sample.operands), **sample.params)  # type: ignore[misc]
                    slack = 1e-5 * (1.0 + np.abs(result[np.isfinite(result)])).max(initial=0.0)
                    assert not (result < bounds.low - slack).any()
                    assert not (result > bounds.high + slack).any()
                    checked += 1
    assert checked > 100


SINGULAR = [(p, s) for p in PRIMITIVES.values() for s in p.singular]


@pytest.mark.parametrize(("primitive", "singular"), SINGULAR, ids=lambda x: getattr(x, "name", ""))
def test_what_is_declared_singular_is(primitive: Primitive, singular: Any) -> None:
    """At each end of the range, or at 0, the value or a derivative is not finite."""
    params: dict[str, Any] = {"exponent": -2} if primitive.name == "integer_pow" else {}
    operands = [np.array(0.5) for _ in next(iter(primitive.samples())).operands]
    required = singular.required(*map(range_of, operands), **params)
    points = [p for p, is_open in ((required.low, required.above), (required.high, required.below)) if is_open]
    for point in [p for p in points if abs(p) < INF] + [0.0] * required.nonzero:
        operands[singular.operand] = np.array(point)
        single = trace(lambda *xs: [primitive(*xs, **params)], *map(aval_of, operands))
        both = interpret(
            jvp(single, [is_inexact(x.dtype) for x in operands]), [*operands, *map(np.ones_like, operands)]
        )
        assert not np.isfinite(both).all()


def test_arithmetic_of_ranges_holds_numbers() -> None:
    ends = [-INF, -2.0, -0.5, 0.0, 0.5, 3.0, INF]
    ranges = [Range(low, high) for low, high in product(ends, ends) if low < high]
    rng = np.random.default_rng(0)

    def drawn(r: Range) -> float:
        return float(rng.uniform(max(r.low, -10.0), min(r.high, 10.0)))

    for x, y in product(ranges, map(replace, ranges)):
        a, b = drawn(x), drawn(y)
        for found, value in (
            (x + y, a + b),
            (x - y, a - b),
            (x * y, a * b),
            (x / y, a / b),
            (x | y, a),
            (x.larger(y), max(a, b)),
            (x.smaller(y), min(a, b)),
            (x.power(2), a**2),
            (x.power(3), a**3),
            (x.power(-1), 1 / a),
            (x.magnitude(), abs(a)),
            (x.summed(), a),
        ):
            assert Range.of(value).lies_in(found) or abs(value - found.low) < 1e-9 or abs(value - found.high) < 1e-9


# ---- the command -----------------------------------------------------------------------------------------------------


def test_the_command_says_where_why_and_the_way_out(tmp_path: Any) -> None:
    file = tmp_path / "user.py"
    file.write_text("import numpy as np\n\n\ndef f(x, n):\n    y = np.sqrt(x) if n > 1 else x\n    return np.sum(y)\n")
    text, count = lint(f"{file}:f", "", "np.ones(2), 2")
    assert count == 1
    assert text == (
        "user.py:5 in f:  y = np.sqrt(x) if n > 1 else x\n"
        "  sqrt(x) with x in (-inf, inf): its derivative at 0 is inf, and sqrt(x) is nan for x < 0\n"
        "  bound it before, np.maximum(x, …), or choose where it is used, np.where(x > 0, …, …): what is not chosen has"
        " no derivative\n"
        "f: 1 finding"
    )
    assert lint(f"{file}:f", "", "np.ones(2), 1") == ("f: nothing found", 0)

"""What Python is told of traced values, what that costs, and what becomes of it in programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fnad import grad, jit, jvp, vjp
from fnad.api.staging.leaves import Leaf
from fnad.api.staging.stage import Staged, stage
from fnad.errors import GuardFailed
from fnad.ir.known import Evaluated
from fnad.ir.parser import parse_program
from fnad.ir.printer import print_program
from fnad.ir.program import Program
from fnad.ir.types import aval_of
from fnad.ir.verifier import verify
from fnad.lower.printer import loops_text
from fnad.trace.guards import guarded
from fnad.transforms.dce import dce
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify
from tests.passes import PASSES


def staged(f: Any, *xs: Any) -> Staged:
    leaves = [Leaf(np.asarray(x), aval_of(np.asarray(x)), False) for x in xs]
    return stage(f, leaves, lambda tracers: f(*tracers))


def with_guards(f: Any, *xs: Any) -> Program:
    found = staged(f, *xs)
    return guarded(found.program, found.guards)


def spiral(x: Any) -> Any:
    y = x
    while y * y < 50:
        y = y * x + 0.5
    return y if int(y) % 2 else -y


def answers(f: Any, *xs: Any) -> list[int]:
    return [guard.expected for guard in staged(f, *xs).guards]


# ---- questions -------------------------------------------------------------------------------------------------------


def test_answers_in_the_order_of_python() -> None:
    y, turns = 2.0, 0
    while y * y < 50:
        y, turns = y * 2.0 + 0.5, turns + 1
    assert answers(spiral, 2.0) == [True] * turns + [False, int(y)]


def test_a_question_asked_again_has_one_guard() -> None:
    def f(x: Any) -> Any:
        return sum(x if x > 0 and not x > 0 * 1.0 else -x for _ in range(10) if x > 0)

    assert answers(f, 2.0) == [True]


def test_what_is_known_is_no_question() -> None:
    table = np.array([1.0, -1.0])

    def f(x: Any) -> Any:
        first = np.zeros_like(x) + table[0]
        return x if first > 0 and int(first) == 1 else -x

    assert answers(f, 2.0) == []


@pytest.mark.parametrize(
    "transformed",
    [
        lambda f: grad(f),
        lambda f: lambda x: jvp(f, (x,), (1.0,))[1],
        lambda f: lambda x: vjp(f, x)[1](1.0)[0],
        lambda f: grad(grad(f)),
        lambda f: grad(jit(lambda x: grad(f)(x) * x)),
        lambda f: lambda x: grad(lambda y: f(y) * x)(x),
    ],
)
def test_transforms_keep_guards_and_add_no_work(transformed: Any) -> None:
    plain, found = staged(spiral, 2.0), staged(transformed(spiral), 2.0)
    assert [g.expected for g in found.guards] == [g.expected for g in plain.guards]
    assert [g.source for g in found.guards] == [g.source for g in plain.guards]
    deciding = with_guards(transformed(spiral), 2.0)
    comparisons = [e for e in dce(deciding).equations if e.primitive.name == "lt"]
    assert len(comparisons) == len([g for g in plain.guards if isinstance(g.expected, bool)])
    verify(deciding)


def test_each_equation_is_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[Any] = []
    compute = Evaluated.compute

    def counted(self: Any, equation: Any, operands: Any) -> Any:
        evaluated.append(equation)
        return compute(self, equation, operands)

    monkeypatch.setattr(Evaluated, "compute", counted)

    def f(x: Any) -> Any:
        total, unasked = x, x
        while total < 300:
            total = total + x
            unasked = np.sin(unasked)
        return total * unasked

    program = staged(f, 1.0).program
    assert len(evaluated) == len(set(evaluated))
    assert len(evaluated) == len([e for e in program.equations if e.primitive.name in ("add", "lt")])
    assert not any(equation.primitive.name == "sin" for equation in evaluated)


# ---- in programs -----------------------------------------------------------------------------------------------------


def test_guards_stand_where_python_asked() -> None:
    def f(x: Any) -> Any:
        if x > 1:
            x = np.exp(x)
        return x * int(x)

    text = print_program(with_guards(f, 1.5))
    names = [line.split("=")[1].split("(")[0].strip() for line in text.splitlines() if "=" in line]
    assert [name for name in names if name in ("gt", "guard", "exp", "mul")] == ["gt", "guard", "exp", "guard", "mul"]
    assert print_program(parse_program(text)) == text


@pytest.mark.parametrize("name", PASSES)
def test_passes_keep_guards(name: str) -> None:
    program = PASSES[name](with_guards(spiral, 2.0))
    verify(program)
    kept = [e for e in program.equations if e.primitive.name == "guard"]
    assert [e.params["number"] for e in kept] == list(range(len(kept)))
    assert len(kept) == len(staged(spiral, 2.0).guards)
    assert interpret(program, [np.array(2.0)]) == [spiral(2.0)]


@pytest.mark.parametrize("x", [1.5, 2.2, 3.0, 8.0, np.nan, -2.0])
def test_a_run_ends_with_the_number_and_what_it_found(x: float) -> None:
    from fnad.backends.cpu.executor import compile_program  # noqa: PLC0415

    expected, found = answers(spiral, 2.0), answers(spiral, x) if not np.isnan(x) else [False, np.iinfo(np.int64).min]
    first = next(n for n, pair in enumerate(zip(expected, found, strict=False)) if pair[0] != pair[1])
    program = with_guards(spiral, 2.0)
    native = compile_program(simplify(program))
    for run in (lambda xs: interpret(program, xs), native, native):
        with pytest.raises(GuardFailed) as raised:
            run([np.array(x)])
        assert raised.value.args == (first, found[first])
        if not isinstance(run, type(lambda: 0)):
            assert native([np.array(2.0)]) == [spiral(2.0)]


def test_loops_and_source_show_them() -> None:
    from fnad.backends.cpu.executor import plan  # noqa: PLC0415

    program = simplify(with_guards(lambda x: x * x if x > 1 else -x, 2.0))
    assert "t0[0] = x0[0] > 1.0, end at guard 0 unless True" in loops_text(plan(program).loops)
    source = plan(program).source
    assert "if i64(v1) != 1:" in source
    assert "status[0] = i64(-1)\n        status[1] = i64(v1)\n        return" in source

"""Programs that are simple already: they are found so once, however deep their branches are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fnad.ir.builder import trace
from fnad.ir.parser import parse_program
from fnad.ir.printer import print_program
from fnad.ir.program import Program
from fnad.ir.types import F64, Aval
from fnad.transforms.dce import dce
from fnad.transforms.pipeline import simplify
from tests.steps import steps


def nested(depth: int) -> Program:
    """Return a branch in a branch, `depth` of them, each with a result that is not read."""
    text = "return x, x"
    for _ in range(depth):
        text = f"""
          j: i64[] = add(i, 1:i64)
          a: f64[] = sin(x)
          dead: f64[] = exp(a)
          c: f64[], d: f64[] = cond(i, j, a) {{
            some(i: i64[], x: f64[]) -> f64[], f64[] {{
              {text}
            }}
            other(i: i64[], x: f64[]) -> f64[], f64[] {{
              e: f64[] = neg(x)
              return e, x
            }}
          }}
          return c, a
        """
    return parse_program(f"program(i: i64[], x: f64[]) -> f64[], f64[] {{\n{text}\n}}")


def again(program: Program) -> Program:
    """Return the program as it is written, of which nothing is known."""
    return parse_program(print_program(program))


def test_a_simple_program_is_simplified_to_itself() -> None:
    found = simplify(nested(3))
    assert simplify(found) is found
    assert print_program(simplify(again(found))) == print_program(found)


def test_a_program_whose_equations_are_all_needed_is_left_by_dce() -> None:
    program = nested(3)
    found = dce(program)
    assert found is not program
    assert "exp" not in print_program(found)
    assert dce(found) is found
    copy = again(found)
    assert dce(copy) is copy


def test_fewer_outputs_of_a_live_program_need_fewer_equations() -> None:
    found = dce(trace(lambda x: [x * x, x + x], Aval(F64)))
    assert len(dce(replace(found, outputs=found.outputs[:1])).equations) == 1


def test_nested_branches_are_simplified_in_linear_time() -> None:
    few, many = (steps(partial(simplify, nested(depth))) for depth in (4, 16))
    assert many < 5 * few

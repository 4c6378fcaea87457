"""What stands around and in the texts of a dump: the summary, and lines that are not too long."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import fnad
from fnad.api.inspect.stages import WIDTH, wrapped_python, wrapped_text
from fnad.api.inspect.summary import loops_summary, program_summary
from fnad.api.staging.leaves import leaf_of
from fnad.api.staging.stage import stage
from fnad.backends.cpu.executor import plan
from fnad.transforms.pipeline import simplify


def summary(f, *args) -> str:
    program = simplify(stage(f, [leaf_of(x) for x in args], lambda tracers: f(*tracers)).program)
    return f"{program_summary(program)}, {loops_summary(plan(program))}".partition(": ")[2]


M, V = np.ones((64, 64)), np.ones(64)


@pytest.mark.parametrize(
    ("f", "args", "expected"),
    [
        (lambda x: x, [V], "0 equations, 1 nest, 0 flops, 1,024 bytes"),
        (lambda x: np.exp(x) * x, [V], "2 equations, 1 nest, 128 flops, 1,024 bytes"),
        (lambda x: np.sum(x * x), [V], "2 equations, 1 nest, 128 flops, 520 bytes"),
        (lambda x: x.astype(np.int64) + 1, [V], "3 equations, 1 nest, 0 flops, 1,024 bytes"),
        # the sine of the column is computed once a row, not once an element
        (lambda x, y: np.sin(x)[:, None] * y, [V, M], "3 equations, 1 nest, 4,160 flops, 66,048 bytes"),
        (lambda a, b: a @ b, [M, M], f"1 equation, 0 nests, {2 * 64**3:,} flops, {3 * 8 * 64**2:,} bytes"),
        (np.linalg.inv, [M], "1 equation, 0 nests, 1 library call, 0 flops, 65,536 bytes"),
        (lambda x: fnad.fori_loop(0, 10, lambda i, x: x * x, x), [V], "2 equations, 3 nests, 640 flops, 1,024 bytes"),
        (
            lambda x: fnad.while_loop(lambda x: x < 9.0, lambda x: x * x, x),
            [2.0],
            "3 equations, 1 nest, at least 1 flop, 16 bytes",
        ),
        (
            lambda x: fnad.cond(x > 0, np.sin, lambda x: np.exp(np.sin(x)), x),
            [2.0],
            "5 equations, 0 nests, 2 flops, 16 bytes",
        ),
    ],
)
def test_summaries_of_stages_are_as_expected(f, args, expected: str) -> None:
    assert summary(f, *args) == expected


SOURCES = sorted((Path(__file__).parent / "golden").glob("*.source.txt"))


def test_wrapped_python_is_the_same_program_and_has_no_long_lines() -> None:
    text = "\n\n".join(file.read_text() for file in SOURCES)
    for old, new in (
        ("x0", "the_first_of_all_arguments"),
        ("out0", "the_first_result"),
        ("v1", "a_value_in_between"),
    ):
        text = text.replace(old, new)
    lengths = [len(line) for line in text.splitlines()]
    wrapped = wrapped_python(text)
    assert ast.dump(ast.parse(wrapped)) == ast.dump(ast.parse(text))
    assert sum(length > WIDTH for length in lengths) > 3
    assert max(len(line) for line in wrapped.splitlines() if "#" not in line) <= WIDTH


@pytest.mark.parametrize("wrapped", [wrapped_text, wrapped_python])
def test_what_has_no_place_to_break_stays_whole(wrapped) -> None:
    for line in ("", "x" * 200, "    # " + "word " * 50, "f(" + "x" * 200 + ")"):
        assert wrapped(line).split() == line.split()
        assert wrapped_python(line) == line

"""Updates of which each row has one are no updates in memory: the gradients of elements chosen from rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fnad
from fnad.backends.cpu.target import CPU
from fnad.backends.cuda.target import CUDA
from fnad.errors import OutOfRangeError
from fnad.ir.program import Program
from fnad.kernel.launches import DevicePlan
from fnad.lower.loop_ir import Update, effects
from fnad.lower.lowering import lower
from fnad.testing import assert_close, tolerance
from fnad.transforms.interpret import interpret
from fnad.transforms.pipeline import simplify
from tests.cuda.test_grid import SMALL, results

RNG = np.random.default_rng(5)
X, CUBE = RNG.standard_normal((70, 40)), RNG.standard_normal((70, 3, 4))
CLASSES = RNG.integers(-40, 40, 70)


def chosen(x: Any, classes: Any) -> Any:
    return np.take_along_axis(x, classes[:, None], axis=1)[:, 0]


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "of rows": (fnad.grad(lambda x, i: np.sum(np.sin(chosen(x, i)))), (X, CLASSES)),
    "of rows by number": (fnad.grad(lambda x, i: np.sum(np.sin(x[np.arange(70), i]))), (X, CLASSES)),
    "of numbered columns": (
        fnad.grad(lambda x, i: np.sum(np.sin(x[i[None], np.arange(40)[None]]))),
        (X, CLASSES[:40]),
    ),
    "of columns": (
        fnad.grad(lambda x, i: np.sum(np.take_along_axis(x, i[None], axis=0) ** 2)),
        (X, RNG.integers(-70, 70, 40)),
    ),
    "of a stack": (fnad.grad(lambda x, i: np.sum(fnad.vmap(lambda x, i: np.cos(x[i]))(x, i))), (X, CLASSES)),
    "of single precision": (
        fnad.grad(lambda x, i: np.sum(np.exp(chosen(x, i)))),
        (RNG.standard_normal((1100, 3)).astype(np.float32), RNG.integers(0, 3, 1100)),
    ),
    "of rows of rows": (
        fnad.grad(lambda x, i: np.sum(fnad.vmap(lambda x, i: np.sin(x[i]))(x, i) ** 2)),
        (CUBE, CLASSES % 3),
    ),
}
OTHERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "two of each row": (
        fnad.grad(lambda x, i: np.sum(np.take_along_axis(x, i, axis=1) ** 2)),
        (X, np.stack([CLASSES, CLASSES], axis=1)),
    ),
    "rows in any order": (fnad.grad(lambda x, i: np.sum(x[i] ** 2)), (X, CLASSES)),
}


def program_of(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Program:
    return simplify(fnad.make_program(function)(*arguments).program)


def has_updates(program: Program, target: Any = CPU) -> bool:
    return any(isinstance(e, Update) for item in lower(program, target).items for e in effects(item))


@pytest.mark.parametrize("name", [*PROGRAMS, *OTHERS])
def test_it_is_what_the_interpreter_gives(name: str) -> None:
    function, arguments = (PROGRAMS | OTHERS)[name]
    program = program_of(function, arguments)
    assert has_updates(program) == has_updates(program, CUDA) == (name in OTHERS)
    wanted = interpret(program, list(arguments))
    (on_threads,) = results(DevicePlan(lower(program, SMALL), SMALL), arguments, 0)
    assert_close(on_threads, wanted[0], tolerance(wanted[0].dtype))
    assert_close(fnad.jit(function)(*arguments), wanted[0], tolerance(wanted[0].dtype))


def test_a_place_beyond_the_row_is_an_error() -> None:
    gradient = fnad.jit(fnad.grad(lambda x, i: np.sum(chosen(x, i))))
    for classes in (CLASSES + 80, np.where(np.arange(70) == 69, -41, CLASSES)):
        with pytest.raises(OutOfRangeError):
            gradient(X, classes)


def test_an_index_that_counts_is_known_as_one_whatever_it_is_made_by() -> None:
    rows = np.arange(70)
    for index in (rows, rows.astype(np.uint8), list(range(70))):
        assert "iota" in str(fnad.make_program(lambda x, i, index=index: x[index, i])(X, CLASSES))
    for index in (rows - 70, rows[::-1], np.sort(CLASSES), rows[:40]):
        found = fnad.grad(lambda x, i, index=index: np.sum(np.sin(x[index, i])))(X, CLASSES[: len(index)])
        wanted = np.zeros_like(X)
        np.add.at(wanted, (index, CLASSES[: len(index)]), np.cos(X[index, CLASSES[: len(index)]]))
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_an_index_from_outside_that_changes_is_seen() -> None:
    rows = np.arange(70)
    function = fnad.jit(fnad.grad(lambda x, i: np.sum(np.sin(x[rows, i]))))
    first = function(X, CLASSES)
    rows[:] = rows[::-1].copy()
    wanted = np.zeros_like(X)
    np.add.at(wanted, (rows, CLASSES), np.cos(X[rows, CLASSES]))
    assert not np.array_equal(first, wanted)
    np.testing.assert_allclose(function(X, CLASSES), wanted, rtol=1e-14)

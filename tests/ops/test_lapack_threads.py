"""The number of threads of LAPACK while a factorization runs, and after it."""

from __future__ import annotations

import sys
from threading import Thread
from typing import Any

import numpy as np
import pytest

from fnad import jit
from fnad.ops import lapack_threads
from fnad.ops.lapack_threads import MIDDLE, UP_TO_MIDDLE, OneThread, are_of, threads_for
from fnad.ops.linalg import solve_triangular
from fnad.ops.matrix_function import expm, expm_frechet


class Library:
    """An OpenBLAS of so many threads."""

    def __init__(self, count: int) -> None:
        self.count = count

    def get(self) -> int:
        return self.count

    def set_(self, count: int) -> None:
        self.count = count


def test_the_last_that_leaves_gives_back_what_was_set() -> None:
    library = Library(8)
    outer = inner = OneThread(library.get, library.set_)
    with outer:
        with inner:
            assert library.count == 1
        assert library.count == 1
    assert library.count == 8


def test_an_error_gives_back_too() -> None:
    library = Library(8)
    with pytest.raises(ValueError), OneThread(library.get, library.set_):  # noqa: PT011
        raise ValueError
    assert library.count == 8


@pytest.mark.parametrize(("shape", "is_middle"), [((3, 3), False), ((64, 64), True), ((512, 512), False)])
def test_which_sizes_run_on_one_thread(shape: Any, is_middle: bool) -> None:
    operands = [np.ones(shape), np.ones(shape[0])]
    assert are_of(MIDDLE, operands) == is_middle
    assert (threads_for(operands) is lapack_threads.NOTHING) != is_middle
    assert are_of(UP_TO_MIDDLE, operands) == (shape[0] < 512)


TRIANGLE = np.array([[1.0, 0.0, 0.0], [2.0, 3.0, 0.0], [1.0, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("primitive", "operands", "params"),
    [
        (solve_triangular, (TRIANGLE, np.ones((3, 2))), {"lower": True, "unit": False}),
        (expm, (TRIANGLE,), {}),
        (expm_frechet, (TRIANGLE, TRIANGLE), {}),
    ],
    ids=str,
)
def test_triangular_systems_of_any_size_are_solved_on_one_thread(
    primitive: Any, operands: Any, params: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered: list[int] = []
    enter = lapack_threads.OneThread.__enter__
    monkeypatch.setattr(lapack_threads.OneThread, "__enter__", lambda self: (entered.append(1), enter(self))[1])
    primitive.evaluate(*operands, **params)
    if not any(map(lapack_threads._library, filter(sys.modules.__contains__, lapack_threads.MODULES))):
        pytest.skip("LAPACK is not OpenBLAS")
    assert entered


def test_the_libraries_of_numpy_are_left_as_they_were() -> None:
    libraries = [lapack_threads._library(name) for name in lapack_threads.MODULES if name in sys.modules]
    before = [library._get() for library in libraries if library is not None]
    matrices = [np.eye(100) * (i + 1) for i in range(8)]
    inverse = jit(np.linalg.inv)
    threads = [Thread(target=inverse, args=(matrix,)) for matrix in matrices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [library._get() for library in libraries if library is not None] == before
    assert all(library._users == 0 for library in libraries if library is not None)

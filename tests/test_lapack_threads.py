"""The number of threads of LAPACK while a factorization runs, and after it."""

from __future__ import annotations

import sys
from threading import Thread
from typing import Any

import numpy as np
import pytest

from fnad import callback, config, jit, lapack_threads
from fnad.lapack_threads import MIDDLE, UP_TO_MIDDLE, AtMost, BlasLibrary, are_of, threads_for
from fnad.ops.linalg import solve_triangular
from fnad.ops.matrix_function import expm, expm_frechet


class OpenBlas:
    """An OpenBLAS of so many threads."""

    def __init__(self, count: int) -> None:
        self.count = count

    def get(self) -> int:
        return self.count

    def set_(self, count: int) -> None:
        self.count = count


def test_the_last_that_leaves_gives_back_what_was_set() -> None:
    openblas = OpenBlas(8)
    one = AtMost([BlasLibrary(openblas.get, openblas.set_)], 1)
    with one:
        with one:
            assert openblas.count == 1
        assert openblas.count == 1
    assert openblas.count == 8


def test_the_least_limit_is_in_force() -> None:
    openblas = OpenBlas(8)
    libraries = [BlasLibrary(openblas.get, openblas.set_)]
    found: list[int] = []
    limits = [AtMost(libraries, limit) for limit in (4, 2, 16)]
    for change in (*(limit.__enter__ for limit in limits), *(limit.__exit__ for limit in limits)):
        change()
        found.append(openblas.count)
    assert found == [4, 2, 2, 2, 8, 8]


def test_what_others_set_meanwhile_stays() -> None:
    openblas = OpenBlas(8)
    with AtMost([BlasLibrary(openblas.get, openblas.set_)], 4):
        openblas.count = 3
    assert openblas.count == 3


def test_an_error_gives_back_too() -> None:
    openblas = OpenBlas(8)
    with pytest.raises(ValueError), AtMost([BlasLibrary(openblas.get, openblas.set_)], 1):  # noqa: PT011
        raise ValueError
    assert openblas.count == 8


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
    init = AtMost.__init__
    monkeypatch.setattr(AtMost, "__init__", lambda self, *given: (entered.append(given[1]), init(self, *given))[1])
    primitive.evaluate(*operands, **params)
    if not any(map(lapack_threads._library, filter(sys.modules.__contains__, lapack_threads.MODULES))):
        pytest.skip("LAPACK is not OpenBLAS")
    assert set(entered) == {1}


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
    assert all(not library.limits.entries for library in libraries if library is not None)


LARGE = np.eye(300) * 2.0 + 1.0 / 300.0


@pytest.mark.slow
@pytest.mark.skipif(config.CORES < 2, reason="one core")
@pytest.mark.parametrize("executor", ["interpreter", "compiled"])
def test_the_settings_limit_the_threads_of_libraries(executor: Any) -> None:
    """Whatever calls them: a product in the interpreter, a factorization, a function of the host within a program."""
    libraries = [library for library in map(lapack_threads._library, ("numpy.linalg._umath_linalg",)) if library]
    if not libraries:
        pytest.skip("LAPACK is not OpenBLAS")
    (library,) = libraries
    before = library._get()
    library._set(config.CORES)
    seen: list[int] = []

    def f(x: Any) -> Any:
        y = np.linalg.solve(x, x) + np.linalg.inv(x @ x)
        return callback(lambda z: (seen.append(library._get()), z)[1], y, result=y)

    try:
        for threads in (1, config.CORES):
            with config.override(executor=executor, threads=threads):
                jit(f)(LARGE)
            assert library._get() == config.CORES
    finally:
        library._set(before)
    assert seen == [1, config.CORES]

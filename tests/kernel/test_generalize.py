"""Kernels that differ in their numbers only, as one kernel with parameters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
import pytest

from fnad.kernel.generalize import Outline, Pattern, outlined
from fnad.kernel.python_source import kernel_text
from fnad.kernel.statements import Kernel
from tests.kernel_text import parse_kernel

F8 = np.dtype("f8")

ROWS = """
def kernel(x, out):
    for i0 in range({n}):
        for i1 in range({m}):
            out[{m} * i0 + i1] = x[{m} * i0 + i1] * f64({scale})
"""


def kernel(**numbers: object) -> Kernel:
    return parse_kernel(ROWS.format(**numbers), "kernel", [F8, F8])


OUTLINE, _ = outlined(kernel(n=20, m=50, scale=2.5))


def numbers(**given: object) -> Sequence[bytes]:
    """The numbers of a kernel."""
    outline, found = outlined(kernel(**given))
    assert outline.text == OUTLINE.text
    return found


def pattern(first: Sequence[bytes], *others: Sequence[bytes]) -> Pattern:
    return reduce(Pattern.joined, others, Pattern.of(OUTLINE, first))


def test_what_differs_is_a_parameter_and_what_is_equal_is_one():
    found = pattern(numbers(n=20, m=50, scale=2.5), numbers(n=30, m=50, scale=2.5), numbers(n=7, m=50, scale=2.5))
    assert kernel_text(found.kernel(OUTLINE)) == (
        "def kernel(x, out, numbers_i64):\n"
        "    for i0 in range(numbers_i64[0]):\n"
        "        for i1 in range(50):\n"
        "            out[50 * i0 + i1] = x[50 * i0 + i1] * f64(2.5)\n"
    )
    found = pattern(numbers(n=20, m=50, scale=2.5), numbers(n=30, m=52, scale=0.5))
    assert kernel_text(found.kernel(OUTLINE)) == (
        "def kernel(x, out, numbers_i64, numbers_f64):\n"
        "    i64_3 = numbers_i64[1]\n"
        "    f64_6 = numbers_f64[0]\n"
        "    for i0 in range(numbers_i64[0]):\n"
        "        for i1 in range(i64_3):\n"
        "            out[i64_3 * i0 + i1] = x[i64_3 * i0 + i1] * f64_6\n"
    )


def test_an_instance_is_run_with_its_own_numbers():
    found = pattern(numbers(n=20, m=50, scale=2.5), numbers(n=30, m=52, scale=0.5))
    integers, floats = found.arguments(OUTLINE, numbers(n=5, m=55, scale=-0.0))
    general = found.kernel(OUTLINE)
    assert (integers.tolist(), floats.tolist()) == ([5, 55], [0.0])
    assert np.signbit(floats[0])
    assert [parameter.name for parameter in general.parameters] == ["x", "out", "numbers_i64", "numbers_f64"]


@pytest.mark.parametrize(
    ("other", "fits"),
    [
        ({"n": 40, "m": 50, "scale": 2.5}, True),
        ({"n": 10, "m": 50, "scale": 2.5}, True),
        ({"n": 40, "m": 55, "scale": 2.5}, False),
        ({"n": 40, "m": 50, "scale": 0.0}, False),
    ],
)
def test_what_all_agree_on_must_agree(other: dict[str, object], fits: bool):
    assert pattern(numbers(n=20, m=50, scale=2.5), numbers(n=30, m=50, scale=2.5)).fits(numbers(**other)) is fits


def test_numbers_that_were_equal_must_be_equal():
    """20 and 20, 30 and 30 could be one number; 40 and 50 are not."""
    found = pattern(numbers(n=20, m=20, scale=2.5), numbers(n=30, m=30, scale=2.5))
    assert found.kernel(OUTLINE).body[0].targets[0].name == "i64_1"  # type: ignore[union-attr]
    assert found.fits(numbers(n=40, m=40, scale=2.5))
    different = numbers(n=40, m=50, scale=2.5)
    assert not found.fits(different)
    assert found.joined(different).fits(numbers(n=60, m=70, scale=2.5))


def test_zeros_of_other_sign_and_nan_are_numbers():
    found = pattern(numbers(n=20, m=50, scale=0.0), numbers(n=30, m=50, scale=0.0))
    assert not found.fits(numbers(n=30, m=50, scale=-0.0))
    found = pattern(numbers(n=20, m=50, scale="nan"), numbers(n=30, m=50, scale="nan"))
    assert found.fits(numbers(n=40, m=50, scale="nan"))


def test_short_inner_loops_and_what_code_depends_on_stay():
    texts = {outlined(kernel(n=n, m=m, scale=1.0))[0].text for n in (2, 3, 20) for m in (2, 3)}
    assert len(texts) == 2, "the outer loop is general, however short; an inner one is not"
    product = "gemm(a, 0, {n}, bool_({flag}), b, 0, 1, bool_(0), c, 0, 1, 2, 3, 4, f64(1.0), f64(0.0))"
    assert texts_of("a, b, c", product, ({"n": n, "flag": flag} for n in (5, 6) for flag in (0, 1))) == 2
    assert texts_of("a, b, x", "linalg_solve(a, b, x, {n}, 3, 1)", ({"n": n} for n in (5, 6))) == 2


def test_short_inner_loops_may_begin_anywhere():
    loops = "    for i0 in range({n}):\n        for i1 in range({start}, {stop}):\n            x[i1] = f64(0.0)"
    source = f"def kernel(x):\n{loops}"

    def outline(n: int, start: int, stop: int) -> tuple[Outline, Sequence[bytes]]:
        return outlined(parse_kernel(source.format(n=n, start=start, stop=stop), "kernel", [F8]))

    first, begun = outline(20, 18, 20)
    other, later = outline(30, 28, 30)
    assert first.text == other.text != outline(30, 27, 30)[0].text
    assert kernel_text(Pattern.of(first, begun).joined(later).kernel(first)) == (
        "def kernel(x, numbers_i64):\n"
        "    i64_2 = numbers_i64[1]\n"
        "    for i0 in range(numbers_i64[0]):\n"
        "        for i1 in range(i64_2, i64_2 + 2):\n"
        "            x[i1] = f64(0.0)\n"
    )


def texts_of(parameters: str, statement: str, given: Iterable[dict[str, object]]) -> int:
    """How many outlines a statement has with these numbers."""
    sources = (f"def kernel({parameters}):\n    {statement.format(**numbers)}" for numbers in given)
    return len({outlined(parse_kernel(source, "kernel", [F8] * 3))[0].text for source in sources})

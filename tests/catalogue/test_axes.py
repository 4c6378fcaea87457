"""What the record of each primitive says of axes holds: on stacks, and in which elements depend on which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fnad.errors import FnadError
from fnad.ir.axes import Along, Custom, Elementwise, Opaque, Over, Reindex, Stacked
from fnad.ir.builder import trace
from fnad.ir.primitive import PRIMITIVES, Iota, Library, Primitive
from fnad.ir.types import aval_of, is_inexact
from fnad.transforms.batching import batched
from fnad.transforms.interpret import interpret
from fnad.transforms.sparsity import patterns
from tests.catalogue.cases import CASES, Case, cases_of
from tests.together import in_groups

COUNT = 2
SOME = 8
"""How many elements of an operand are changed, at most."""
NARROW = [np.dtype(name) for name in ("f4", "c8", "i1", "i2", "i4", "u1", "u2", "u4")]
WITH_AXES = [primitive for primitive in PRIMITIVES.values() if not isinstance(primitive.axes, Opaque)]

ROUNDS_APART = {
    "cofactor": "BLAS takes other kernels for other strides",
    "dot_general": "BLAS takes other kernels for other strides",
    "solve_triangular": "many small systems are substituted at once, a few large ones by LAPACK",
    "solve_positive": "as solve_triangular",
    "reduce_sum": "NumPy adds in the order of memory",
    "reduce_prod": "NumPy multiplies in the order of memory",
}
"""Primitives for whose stacks NumPy takes another order of the same operations."""


def over_primitives(primitives: list[Primitive]) -> Any:
    return in_groups("primitive", primitives)


def results_of(case: Case, *operands: Any) -> tuple[Any, ...]:
    found = case.evaluate(*operands)
    return found if isinstance(found, tuple) else (found,)


# ---- stacks ------------------------------------------------------------------------------------------------------


def varied(case: Case) -> list[Any]:
    """Return other operands, elements of the sample in another order, where it takes them."""
    if case.primitive.raises or any(not is_inexact(x.dtype) for x in case.operands):
        return [x[::-1].copy() if x.ndim and isinstance(case.primitive.axes, Elementwise) else x for x in case.operands]
    return [np.ravel(x)[::-1].reshape(x.shape) for x in case.operands]


def on_stack(case: Case, arrays: list[Any], stacked: tuple[bool, ...]) -> list[Any]:
    program = trace(
        lambda *xs: batched(case.primitive, COUNT, xs, stacked, case.sample.params), *[aval_of(x) for x in arrays]
    )
    return interpret(program, arrays)


def is_done_by_rows(case: Case, arrays: list[Any], stacked: tuple[bool, ...]) -> bool:
    found: list[Any] = []

    def run(*xs: Any) -> list[Any]:
        found.append(batched(case.primitive, COUNT, xs, stacked, case.sample.params))
        return []

    trace(run, *[aval_of(x) for x in arrays])
    return found == [None]


def choices(arity: int) -> set[tuple[bool, ...]]:
    """Return which operands are stacked: all, or one alone."""
    return {(True,) * arity, *[tuple(i == j for i in range(arity)) for j in range(arity)]}


@over_primitives(WITH_AXES)
def test_a_stack_is_computed_as_its_elements_are(primitive: Primitive) -> None:
    for case in cases_of(primitive):
        pair = (case.operands, varied(case))
        for stacked in choices(len(case.operands)):
            if primitive.name == "searchsorted" and stacked[0]:
                assert is_done_by_rows(case, [np.stack(xs) for xs in zip(*pair, strict=True)], stacked)
                continue
            arrays = [np.stack([x, y]) if s else x for x, y, s in zip(*pair, stacked, strict=True)]
            found = on_stack(case, arrays, stacked)
            alone = [
                results_of(case, *[x[i] if s else x for x, s in zip(arrays, stacked, strict=True)])
                for i in range(COUNT)
            ]
            for result, expected in zip(found, map(np.stack, zip(*alone, strict=True)), strict=True):
                assert (result.dtype, result.shape) == (expected.dtype, expected.shape), str(case)
                compare(primitive, result, expected, str(case))


def compare(primitive: Primitive, result: Any, expected: Any, message: str) -> None:
    if primitive.name in ROUNDS_APART and is_inexact(expected.dtype):
        digits = 10 * np.finfo(expected.dtype).eps
        np.testing.assert_allclose(result, expected, rtol=digits, atol=digits, err_msg=message)
    else:
        np.testing.assert_array_equal(result, expected, err_msg=message)
        assert np.array_equal(np.signbit(result.real), np.signbit(expected.real)) or np.isnan(result).any(), message


@over_primitives([p for p in PRIMITIVES.values() if isinstance(p.axes, Opaque)])
def test_what_is_opaque_is_done_by_rows(primitive: Primitive) -> None:
    case = cases_of(primitive)[0]
    stacks = [np.stack([x, x]) for x in case.operands]
    assert is_done_by_rows(case, stacks, (True,) * len(stacks))


# ---- patterns ----------------------------------------------------------------------------------------------------


def without_regions(primitive: Primitive) -> bool:
    return not (primitive.effect or any(case.sample.regions for case in cases_of(primitive)))


def dense(case: Case) -> list[list[Any]]:
    """Return for each result and operand the matrix of what may depend on what."""
    found = patterns(case.primitive, case.avals, case.sample.params)
    matrices: list[list[Any]] = []
    for result, row in zip(results_of(case, *case.operands), found, strict=True):
        matrices.append([])
        for x, pattern in zip(case.operands, row, strict=True):
            matrix = np.zeros((np.size(result), np.size(x)), int)
            np.add.at(matrix, tuple(pattern), 1)
            assert matrix.max(initial=0) <= 1, f"{case}: a pair is there twice"
            matrices[-1].append(matrix.astype(bool))
    return matrices


def changes(case: Case) -> Iterator[tuple[int, int, list[Any]]]:
    """Yield an operand's number, an element's, and the results where this element alone is another."""
    for number, x in enumerate(case.operands):
        for j in range(0, x.size, 1 + x.size // SOME):
            y = np.array(x)
            y.flat[j] = x.flat[j] * 1.01 + 0.001 if is_inexact(x.dtype) and np.isfinite(x.flat[j]) else x.flat[j - 1]
            operands = [*case.operands[:number], y, *case.operands[number + 1 :]]
            try:
                yield number, j, list(results_of(case, *operands))
            except FnadError:
                continue  # not in the domain of the primitive: nothing to learn


def bits(result: Any) -> Any:
    """Return the bytes of each element."""
    return np.ascontiguousarray(result).reshape(-1, 1).view(np.uint8)


@pytest.mark.filterwarnings("ignore:floating point number truncated to an integer")
@over_primitives([p for p in PRIMITIVES.values() if without_regions(p)])
def test_nothing_depends_on_what_the_pattern_leaves_out(primitive: Primitive) -> None:
    moved = Counter[str]()
    for case in [case for case in cases_of(primitive) if not any(aval.dtype in NARROW for aval in case.avals)]:
        before = results_of(case, *case.operands)
        pattern = dense(case)
        for number, j, after in changes(case):
            for k, (old, new) in enumerate(zip(before, after, strict=True)):
                differs = (bits(old) != bits(new)).any(axis=1)
                allowed = pattern[k][number][:, j]
                assert not (differs & ~allowed).any(), f"{case}: operand {number}, element {j}"
                moved["seen"] += int((differs & allowed).sum())
                moved["allowed"] += int(allowed.sum())
    if isinstance(primitive.axes, Reindex) and not isinstance(primitive.lower, Iota):
        assert moved["seen"] > 0.7 * moved["allowed"] > 0, "the pattern is wider than it has to be"


def test_most_records_say_more_than_that_they_are_opaque() -> None:
    kinds = Counter(type(primitive.axes) for primitive in PRIMITIVES.values())
    assert kinds[Elementwise] > 250
    assert kinds[Stacked] > 20
    assert min(kinds[kind] for kind in (Along, Over, Reindex, Custom)) > 3
    assert kinds[Opaque] < 20


# ---- what else a record says -------------------------------------------------------------------------------------


@over_primitives([p for p in PRIMITIVES.values() if p.commutative])
def test_commutative_primitives_are_so_to_the_bit(primitive: Primitive) -> None:
    for case in cases_of(primitive):
        x, y = case.operands
        if x.dtype.kind != "c":
            np.testing.assert_array_equal(bits(case.evaluate(x, y)), bits(case.evaluate(y, x)))


def extremes(dtype: np.dtype[Any]) -> Any:
    """Return finite numbers of a dtype: the largest, the smallest, zeros, and imaginary ones."""
    if not is_inexact(dtype):
        return np.array([0, 1], dtype)
    info = np.finfo(dtype)
    reals = [info.max, info.min, info.tiny, info.smallest_subnormal, 0.0, -0.0, 1.0, -1.0, 700.0, -700.0]
    numbers = [*reals, *[complex(0, x) for x in reals]] if dtype.kind == "c" else reals
    return np.array(numbers, dtype)


def bounded_cases() -> list[Case]:
    cases = [c for c in CASES if without_regions(c.primitive) and c.operands]
    results = [(c, c.program().out_avals[0].dtype) for c in cases]
    return [c for c, dtype in results if is_inexact(dtype) and c.primitive.bounded(dtype, *[a.dtype for a in c.avals])]


@in_groups("case", bounded_cases())
def test_bounded_primitives_are_finite_at_finite_operands(case: Case) -> None:
    operands = np.meshgrid(*[extremes(aval.dtype) for aval in case.avals])
    assert np.isfinite(case.evaluate(*operands)).all()


CANNOT_RAISE = [p for p in PRIMITIVES.values() if isinstance(p.lower, Library) and not p.raises]


def filled(primitive: Primitive, x: Any, value: float) -> Any:
    """Return an array of one value, or the sample itself where its dtype does not have it, or it is a permutation."""
    is_number = is_inexact(x.dtype) or (value in (0, 1) and primitive.name != "row_order")
    return np.full_like(x, value) if is_number else x


@pytest.mark.filterwarnings("ignore:floating point number truncated to an integer")
@over_primitives(CANNOT_RAISE)
def test_what_cannot_raise_takes_any_number(primitive: Primitive) -> None:
    """What is said to raise nothing may be computed where the program would not compute it."""
    for case in cases_of(primitive):
        for value in (0, 1, -1, np.nan, np.inf, -np.inf):
            case.evaluate(*[filled(primitive, x, value) for x in case.operands])

"""Derivatives of a case by differences of its own evaluation in extended precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.ir.primitive import Bilinear, Library, Linear
from fnad.ir.types import is_inexact
from fnad.testing import difference, direction, extended, mixed_difference, precision, step
from tests.catalogue.cases import Case


def directions(case: Case, seed: int) -> list[Any]:
    """Return a random direction for each inexact operand, zero where the operand is taken as a constant."""
    inexact = [(i, aval) for i, aval in enumerate(case.avals) if is_inexact(aval.dtype)]
    return [direction(aval, seed + i) * aval.dtype.type(case.has_formula(i)) for i, aval in inexact]


def spread(case: Case, dxs: Sequence[Any]) -> list[Any]:
    """Return a direction for each operand, None where it is not inexact."""
    given = iter(dxs)
    return [next(given) if is_inexact(aval.dtype) else None for aval in case.avals]


def widest(case: Case) -> list[Any]:
    """Return the operands in extended precision, in double where a function has no other (SciPy's, LAPACK's, loops)."""
    operands = [extended(operand) for operand in case.operands]
    if isinstance(case.primitive.lower, Library) or case.sample.regions:
        return list(map(double, operands))
    try:
        case.evaluate(*operands)
    except TypeError:
        return list(map(double, operands))
    return operands


def double(x: Any) -> Any:
    """Return an inexact array in double precision, any other as it is."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) if is_inexact(x.dtype) else x


def first_order(case: Case, us: Sequence[Any]) -> tuple[Any, float]:
    """Return the derivative along us, and the error to expect."""
    operands = widest(case)
    h, error = step_of(case, operands, 1)
    return difference(case.evaluate, operands, spread(case, us), h), error


def second_order(case: Case, us: Sequence[Any], vs: Sequence[Any]) -> tuple[Any, float]:
    """Return the second derivative along us and vs, and the error to expect."""
    operands = widest(case)
    h, error = step_of(case, operands, 2)
    return mixed_difference(case.evaluate, operands, spread(case, us), spread(case, vs), h), error


def step_of(case: Case, operands: Sequence[Any], order: int) -> tuple[float, float]:
    """Differences of a linear or bilinear function are exact at any step, and most so at a large one."""
    eps = max(precision(x.dtype) for x in operands if is_inexact(x.dtype))
    return (1.0, 100 * eps) if isinstance(case.primitive.derivative, Linear | Bilinear) else step(eps, order)

"""`fails`: true where another primitive raises an error for its operands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fnad.errors import FnadError
from fnad.ir.axes import AxisPairs, Custom
from fnad.ir.primitive import HOST, PRIMITIVES, Library, NonDifferentiable, Routine, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, Aval
from fnad.ops.constructors import primitive
from fnad.ops.shape import stack_operands


def _infer(x: Aval, *_: Aval, of: str, rows: int, **params: Any) -> Aval:
    return Aval(BOOL, x.shape[:rows])


def _stack(count: int, operands: Sequence[Symbol], stacked: Sequence[bool], *, rows: int, **params: Any) -> Symbol:
    return fails(*stack_operands(count, operands, stacked), rows=rows + 1, **params)


def _align(*operands: Aval, rows: int, **_: Any) -> tuple[AxisPairs, ...]:
    return tuple(tuple((axis, axis) for axis in range(rows)) for _ in operands)


def _samples() -> Iterable[Sample]:
    singular = np.stack([np.ones((2, 2)), np.eye(2)])
    yield Sample((singular,), {"of": "inv", "rows": 0}, smooth=False)
    yield Sample((singular,), {"of": "inv", "rows": 1}, smooth=False)
    for upper in (False, True):
        yield Sample((singular - 0.5,), {"of": "cholesky", "rows": 1, "upper": upper}, smooth=False)


def _native(x: Aval, *_: Aval, of: str, rows: int, **params: Any) -> Routine | None:
    if of != "cholesky" or x.ndim != rows + 2:
        return None
    return Routine("linalg_cholesky_up_fails" if params["upper"] else "linalg_cholesky_lo_fails")


@primitive(
    _infer, NonDifferentiable(), Library(HOST, raises=False, native=_native), _samples, axes=Custom(_stack, _align)
)
def fails(*operands: Any, of: str, rows: int, **params: Any) -> Any:
    """True where the primitive `of` raises an error, for each index of the `rows` leading axes of the operands."""
    found = np.zeros(np.shape(operands[0])[:rows], bool)
    for place in np.ndindex(found.shape):
        try:
            PRIMITIVES[of].evaluate(*[operand[place] for operand in operands], **params)
        except FnadError:
            found[place] = True
    return found

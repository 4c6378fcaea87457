"""Conditions on values that are known only when the program runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fnad.errors import DomainError, DtypeError
from fnad.ir.axes import AxisPairs, Custom
from fnad.ir.primitive import HOST, Library, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, Aval
from fnad.ops.constructors import ANY, by_name, linear
from fnad.ops.shape import copies, sample


def _infer_require(x: Aval, holds: Aval, *, message: str, remedy: str) -> Aval:
    if holds.dtype != BOOL:
        raise DtypeError(f"require takes a bool that holds, got {holds}")
    return x


def _stack_require(count: int, operands: Sequence[Symbol], stacked: Sequence[bool], **why: Any) -> Symbol:
    x, holds = operands
    return require(x if stacked[0] else copies(x, count), holds, **why)


def _align_require(x: Aval, holds: Aval, **_: Any) -> tuple[AxisPairs, ...]:
    return tuple((a, a) for a in range(x.ndim)), ()


def _require_samples() -> Iterable[Sample]:
    for dtype in by_name(ANY):
        yield Sample((sample((2, 3), dtype), np.array([True, True])), {"message": "not so", "remedy": "make it so"})


def _transpose_require(ct: Symbol, x: Symbol, holds: Symbol, **why: Any) -> tuple[Symbol, None]:
    return (require(ct, holds, **why), None)


@linear(
    _infer_require,
    _transpose_require,
    Library(HOST),
    _require_samples,
    wrt=(0,),
    axes=Custom(_stack_require, _align_require),
)
def require(x: Any, holds: Any, *, message: str, remedy: str) -> Any:
    """The first operand, where the second is true everywhere; else DomainError with `message` and `remedy`."""
    if not np.all(holds):
        raise DomainError(message, remedy=remedy)
    return x

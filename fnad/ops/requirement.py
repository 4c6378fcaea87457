"""Conditions on values that are known only when the program runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fnad.errors import DomainError, DtypeError
from fnad.ir.axes import AxisPairs, Custom
from fnad.ir.primitive import HOST, Library, Routine, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, Aval
from fnad.ops.constructors import ANY, by_name, linear
from fnad.ops.reduction import reduce_and
from fnad.ops.shape import copies, reshape_to, sample


def _infer_require(x: Aval, holds: Aval, *, message: str, remedy: str) -> Aval:
    if x.ndim != 1 or holds != Aval(BOOL, (1,)):
        raise DtypeError(f"require takes a vector and a vector of one bool, got {x} and {holds}")
    return x


def _stack_require(count: int, operands: Sequence[Symbol], stacked: Sequence[bool], **why: Any) -> Symbol:
    x, holds = operands
    return require(x if stacked[0] else copies(x, count), holds, **why)


def _align_require(x: Aval, holds: Aval, **_: Any) -> tuple[AxisPairs, ...]:
    return ((0, 0),), ()


def _error(message: str, remedy: str) -> DomainError:
    return DomainError(message, remedy=remedy)


def _require_samples() -> Iterable[Sample]:
    for dtype in by_name(ANY):
        yield Sample((sample((6,), dtype), np.array([True])), {"message": "not so", "remedy": "make it so"})


def _transpose_require(ct: Symbol, x: Symbol, holds: Symbol, **why: Any) -> tuple[Symbol, None]:
    return (require_(ct, holds, **why), None)


@linear(
    _infer_require,
    _transpose_require,
    Library(HOST, native=lambda *_, **why: Routine("linalg_require", (_error(**why),))),
    _require_samples,
    wrt=(0,),
    axes=Custom(_stack_require, _align_require),
)
def require_(x: Any, holds: Any, *, message: str, remedy: str) -> Any:
    """The vector, where the second operand is true; else DomainError with `message` and `remedy`."""
    if not np.all(holds):
        raise _error(message, remedy)
    return x


def require(x: Symbol, holds: Symbol, *, message: str, remedy: str) -> Symbol:
    """The first operand, where the second is true everywhere; else DomainError with `message` and `remedy`."""
    whole = reduce_and(holds, axes=tuple(range(holds.ndim))) if holds.ndim else holds
    vectors = reshape_to(x, (x.aval.size,)), reshape_to(whole, (1,))
    return reshape_to(require_(*vectors, message=message, remedy=remedy), x.shape)

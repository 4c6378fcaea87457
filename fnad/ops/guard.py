"""Guards: conditions under which the path that Python took while tracing is the right one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fnad.errors import DtypeError, GuardFailed, ShapeError
from fnad.ir.axes import Opaque
from fnad.ir.primitive import GuardCheck, NonDifferentiable, Sample
from fnad.ir.types import BOOL, I64, Aval
from fnad.ops.constructors import primitive


def _infer(x: Aval, *, expected: int, number: int) -> Aval:
    if x.dtype not in (BOOL, I64):
        raise DtypeError(f"guard takes a bool or an i64, got {x}")
    if x.shape:
        raise ShapeError(f"guard takes a scalar, got {x}")
    return x


def _samples() -> Iterable[Sample]:
    for value in (np.array(True), np.array(False), np.array(-(2**40))):
        yield Sample((value,), {"expected": value.item(), "number": 0})


@primitive(
    _infer, NonDifferentiable(), GuardCheck(), _samples, effect=True, axes=Opaque("one path is taken for one value")
)
def guard(x: Any, *, expected: int, number: int) -> Any:
    """The operand itself where it is `expected`; elsewhere the run ends at this guard, which has this `number`."""
    if x != expected:
        raise GuardFailed(number, int(x))
    return x

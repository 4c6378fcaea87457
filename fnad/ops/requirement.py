"""What has to hold of values that are known only when the program runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fnad.errors import DomainError, DtypeError
from fnad.ir.primitive import Library, Sample
from fnad.ir.types import BOOL, Aval
from fnad.ops.kinds import ANY, by_name, linear
from fnad.ops.shape import sample


def _infer_require(x: Aval, holds: Aval, *, message: str, remedy: str) -> Aval:
    if holds.dtype != BOOL:
        raise DtypeError(f"require takes a bool that holds, got {holds}")
    return x


def _require(x: Any, holds: Any, *, message: str, remedy: str) -> Any:
    if not np.all(holds):
        raise DomainError(message, remedy=remedy)
    return x


def _require_samples() -> Iterable[Sample]:
    for dtype in by_name(ANY):
        yield Sample((sample((2, 3), dtype), np.array([True, True])), {"message": "not so", "remedy": "make it so"})


require = linear(
    "require",
    _infer_require,
    _require,
    lambda ct, x, holds, **why: (require(ct, holds, **why), None),
    Library(),
    wrt=(0,),
    samples=_require_samples,
    doc="The first operand, where the second is true everywhere; else DomainError with `message` and `remedy`.",
)

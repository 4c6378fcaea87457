"""`external`: a pure function of the host, as one primitive.

Unlike a `callback` it has no effect: a call whose results are not read is dropped, and equal calls are made once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from fnad.control.callback import Host, Results, callback
from fnad.errors import CustomRuleError
from fnad.ir.axes import Opaque
from fnad.ir.primitive import HOST, Library, Sample, Unknown, declare


class External(Host):
    """A pure function of the host as a static value; `stacked(count)` returns it for operands that are all stacks."""

    stacked: Callable[[int], External]


def _no_rule(host: int, results: Results) -> CustomRuleError:
    return CustomRuleError(
        f"the derivative of {getattr(host, 'name', Host.name)}, a function of fnad.external, is not known in this mode",
        remedy="state it by vjp= for reverse mode, jvp= for forward mode, or give the call fnad.stop_gradient(x) for "
        "its arguments",
    )


def _samples() -> Iterable[Sample]:
    """A function that doubles."""
    x, host = np.array([1.0, 2.0]), External.of(lambda v: (v * 2,))
    host.stacked = lambda count: host
    yield Sample((x,), {"host": host, "results": ((x.dtype, (2,)),)}, smooth=False)


external = declare(
    "external",
    callback.infer,
    callback.evaluate,
    Unknown(_no_rule),
    Library(HOST),
    _samples,
    "A pure function of the host.",
    axes=Opaque("a function of the host takes the arrays it was written for"),
)

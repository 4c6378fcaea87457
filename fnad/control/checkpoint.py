"""`checkpoint`: a region that reverse mode runs again rather than save what it computed.

No pass looks into the region, so that the second run is not merged with the first; when all passes are done, it takes
the place of the equation (`fnad.transforms.expand`).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from fnad.control.region_rules import (
    check_avals,
    inlined_primitive,
    instantiated_inexact,
    pruning,
    pulled_region,
    pushing,
    spread,
)
from fnad.control.signatures import Cotangents, Flags, Pulled, Regions, Symbols
from fnad.ir.builder import trace
from fnad.ir.primitive import Sample
from fnad.ir.program import Equation
from fnad.ir.types import Aval
from fnad.ops.elementary import sin
from fnad.transforms.dce import without_effects
from fnad.transforms.joint import Cotangent


def _pull(equation: Equation, primals: Symbols, needed: Flags) -> Pulled:
    results = list(checkpoint(*primals, regions=equation.regions))
    back = pulled_region(without_effects(equation.regions[0]), needed)

    def pullback(cts: Cotangents) -> list[Cotangent]:
        # the pullback begins with the region again, which must not be merged with the first run: a checkpoint too
        return spread(checkpoint(*primals, *instantiated_inexact(cts, results), regions=(back,)), needed)

    return results, pullback


def _samples() -> Iterable[Sample]:
    """The sine of a square."""
    row = Aval(np.dtype("f8"), (3,))
    yield Sample((np.array([0.5, -1.0, 2.0]),), {}, (trace(lambda x: [sin(x * x)], row, name="sine_of_square"),))


@inlined_primitive(pushing(0), _pull, _samples, prune=pruning(0))
def checkpoint(*avals: Aval, regions: Regions) -> tuple[Aval, ...]:
    """The region, which reverse mode runs again."""
    (region,) = regions
    check_avals("the region of a checkpoint takes", region.in_avals, avals)
    return region.out_avals

"""The values that one pass through a region saves for the reverse pass, and the values computed again there.

The joint program of a region is cut in two as for `vjp` (`fnad.transforms.split`), by other prices: operands of the
equation are there on the way back too, so they cost nothing, but the carry of a loop is saved anew at each step; and no
array has residual stacks as its rows, so a loop that writes one is run again.
"""

from __future__ import annotations

from collections.abc import Sequence

from fnad.ir.program import Program, Var
from fnad.transforms.differentiation import joint
from fnad.transforms.pipeline import simplify
from fnad.transforms.residuals import NEVER, price_of
from fnad.transforms.split import Parts, partition


def partitioned(region: Program, marked: Sequence[bool], carry: Sequence[int] = ()) -> Parts:
    """The parts of a region whose `marked` inputs carry a derivative, and whose inputs `carry` are new at each step."""
    both = simplify(joint(region, marked))
    return resumed(both, len(region.inputs), len(region.outputs), carry)


def resumed(program: Program, inputs: int, outputs: int, carry: Sequence[int] = ()) -> Parts:
    """The parts of a joint program in a region."""
    free = {var for i, var in enumerate(program.inputs[:inputs]) if i not in carry}

    def price(var: Var) -> int:
        if var.aval.is_residual_stack:
            return NEVER
        return 0 if var in free else price_of(var)

    return partition(program, inputs, outputs, price)

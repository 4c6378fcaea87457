"""Primitives that concern only differentiation."""

from __future__ import annotations

from fnad.ir.primitive import NonDifferentiable
from fnad.ops.kinds import ANY, LINE, elementwise

stop_gradient = elementwise(
    "stop_gradient",
    lambda x: x,
    "{0}",
    NonDifferentiable(),
    domain=ANY,
    over=(LINE,),
    cost=0,
    doc="The value itself, taken as a constant by every derivative.",
)

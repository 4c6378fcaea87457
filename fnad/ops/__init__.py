"""The primitives, one family a file, each declared in one place with all its rules.

Importing this package registers them all in `fnad.ir.primitive.PRIMITIVES`.
"""

from fnad.ops import (
    arithmetic,
    autodiff,
    comparison,
    contraction,
    conversion,
    digits,
    elementary,
    indexing,
    order,
    piecewise,
    power,
    reduction,
    requirement,
    scan,
    shape,
    special,
)

__all__ = [
    "arithmetic",
    "autodiff",
    "comparison",
    "contraction",
    "conversion",
    "digits",
    "elementary",
    "indexing",
    "order",
    "piecewise",
    "power",
    "reduction",
    "requirement",
    "scan",
    "shape",
    "special",
]

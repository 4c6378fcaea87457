"""NumPy's functions on traced values, as compositions of primitives: one file a family, all in one table."""

from fnad.numpy import (
    choosing,
    comparisons,
    contractions,
    creating,
    elements,
    indexing,
    joining,
    methods,
    norms,
    pairs,
    powers,
    properties,
    rearranging,
    reductions,
    special,
    statistics,
    summation,
    ufuncs,
)
from fnad.numpy.registry import implements

__all__ = ["implements"]

"""NumPy's functions on traced values, as compositions of primitives."""

from fnad.numpy import reductions, ufuncs
from fnad.numpy.registry import implements

__all__ = ["implements", "reductions", "ufuncs"]

"""Pytrees as vectors, under JAX's name: `ravel_pytree`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from fnad.api.staging.leaves import flatten, leaves_of
from fnad.errors import ShapeError
from fnad.ir.types import Aval, is_complex
from fnad.tracebacks import boundary

__all__ = ["ravel_pytree"]


@boundary
def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The elements of all leaves as one vector, and the function that makes such a pytree of a vector.

    The vector has the dtype that all leaves promote to; the pytree has the shapes and dtypes of this one, with NumPy
    numbers for numbers. Both ways are differentiable. Raises `ArgumentTypeError` for leaves that are no arrays or
    numbers; the returned function raises `ShapeError` for a vector of another length.

    >>> import numpy as np, fnad
    >>> vector, unravel = fnad.flatten_util.ravel_pytree({"w": np.array([[1.0, 2.0]]), "b": 3.0})
    >>> vector
    array([1., 2., 3.])
    >>> unravel(2.0 * vector)
    {'w': array([[2., 4.]]), 'b': np.float64(6.0)}
    """
    found, structure = leaves_of((pytree,), lambda _: "pytree")
    avals, arrays = [leaf.aval for leaf in found], [leaf.is_array for leaf in found]
    ends = [0, *accumulate(aval.size for aval in avals)]

    def unravel(vector: Any) -> Any:
        shape = np.shape(vector)
        if shape != (ends[-1],):
            raise ShapeError.here(
                f"unravel takes a vector of {ends[-1]} elements, got shape {shape}",
                remedy="give one like that which ravel_pytree returned",
            )
        parts = [vector[low:high] for low, high in pairwise(ends)]
        return structure.unflatten(map(_leaf, parts, avals, arrays))[0]

    values = flatten(pytree)[0]
    return (np.concatenate([np.ravel(value) for value in values]) if values else np.zeros(0)), unravel


def _leaf(part: Any, aval: Aval, is_array: bool) -> Any:
    """A leaf of these elements; of a real one, the imaginary parts are no part."""
    elements = part if is_complex(aval.dtype) else np.real(part)
    return (np.reshape(elements, aval.shape) if aval.shape or is_array else elements[0]).astype(aval.dtype)

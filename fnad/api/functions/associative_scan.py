"""Running reductions by any associative function, in logarithmic depth: `associative_scan`.

Blelloch, "Prefix sums and their applications", CMU-CS-90-190 (1990): neighbours are combined in pairs, the pairs are
scanned, and what lies between is combined once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fnad.api.running.execution import in_trace
from fnad.api.staging.leaves import Function, check_function, flatten, function_name, path
from fnad.api.staging.regions import check_structure
from fnad.errors import ShapeError
from fnad.trace.hooks import callee

Arrays: TypeAlias = list[Any]
Combine: TypeAlias = Callable[[Sequence[Any], Sequence[Any]], Arrays]


def associative_scan(fn: Function, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The running combinations e₀, fn(e₀, e₁), fn(fn(e₀, e₁), e₂), … of elements along an axis.

    Of n elements it makes about 2 n combinations in 2 log₂ n steps (Blelloch, "Prefix sums and their applications",
    1990). `scan` makes n in n steps, and is faster unless a combination is expensive.

    Parameters:
        fn (function): An associative function of two pytrees like `elems`, of any length along `axis`, that combines
            their elements one by one and returns a pytree like them.
        elems (pytree of arrays): Arrays with the same length along `axis`.
        reverse (bool): If true, start from the last element.
        axis (int): The axis of the elements.
    Returns:
        pytree of arrays: The combinations, with the structure, shapes and dtypes of `elems`.
    Raises:
        ArgumentTypeError: If a leaf is not an array or number.
        ShapeError: If the lengths along `axis` differ.
        StructureError: If `fn` returns another pytree.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.associative_scan(np.multiply, np.array([1.0, 2.0, 3.0, 4.0]))
        array([ 1.,  2.,  6., 24.])
    """
    check_function(fn, "associative_scan")
    return in_trace(fn, lambda trees: _scanned(fn, trees, reverse, axis), elems, names=("elems",))


def _scanned(fn: Function, elems: Any, reverse: bool, axis: int) -> Any:
    values, structure = flatten(elems)
    arrays = [np.moveaxis(value, axis, 0) for value in _checked(values, elems, axis)]

    def combine(first: Sequence[Any], second: Sequence[Any]) -> Arrays:
        given = [structure.unflatten([np.moveaxis(a, 0, axis) for a in side]) for side in (first, second)]
        found, shape = flatten(callee(fn)(*given))
        check_structure(structure, shape, f"the result of {function_name(fn)}", "what it was given")
        return [np.moveaxis(value, axis, 0) for value in found]

    turned = [a[::-1] for a in arrays] if reverse else arrays
    found = _prefixes(combine, turned)
    return structure.unflatten([np.moveaxis(a[::-1] if reverse else a, 0, axis) for a in found])


def _checked(values: Sequence[Any], elems: Any, axis: int) -> Sequence[Any]:
    lengths = {path((elems,), i, lambda _: "elems"): np.shape(v)[axis] for i, v in enumerate(values) if np.ndim(v)}
    if len(lengths) < len(values) or len(set(lengths.values())) > 1:
        listed = ", ".join(f"{where} has {n}" for where, n in lengths.items()) or "there is none"
        raise ShapeError.here(
            f"associative_scan goes over axes of one length: {listed}",
            remedy="give arrays of one length along the axis",
        )
    return values


def _prefixes(combine: Combine, arrays: Arrays) -> Arrays:
    count = arrays[0].shape[0] if arrays else 0
    if count < 2:
        return arrays
    pairs = combine([a[:-1:2] for a in arrays], [a[1::2] for a in arrays])
    odd = _prefixes(combine, pairs)
    before = [a[:-1] for a in odd] if count % 2 == 0 else odd
    between = combine(before, [a[2::2] for a in arrays])
    even = [np.concatenate([a[:1], b]) for a, b in zip(arrays, between, strict=True)]
    return [_interleaved(e, o) for e, o in zip(even, odd, strict=True)]


def _interleaved(even: Any, odd: Any) -> Any:
    count = odd.shape[0]
    paired = np.stack([even[:count], odd], axis=1).reshape(2 * count, *odd.shape[1:])
    return np.concatenate([paired, even[count:]])

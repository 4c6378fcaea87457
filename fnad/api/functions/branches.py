"""Branches as part of the program: `cond`, `switch`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np

from fnad.api.functions.disabled_jit import is_plain
from fnad.api.running.execution import in_trace
from fnad.api.staging.leaves import Function, flatten, leaves_of, path, type_name, unflatten
from fnad.api.staging.marshalling import LeafType, joined, leaf_types, symbol
from fnad.api.staging.regions import (
    Region,
    at,
    calling,
    check_functions,
    check_structure,
    described,
    region_of,
    with_shared_captures,
)
from fnad.control.cond import cond as cond_primitive
from fnad.errors import ArgumentTypeError, StructureError
from fnad.ir.builder import inline
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64
from fnad.ops.conversion import convert_to
from fnad.trace.source import current_source
from fnad.trace.tracing import symbol_of

Branches: TypeAlias = Mapping[str, Function]
"""Functions by what errors call them, in the order of the regions."""


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """The result of `true_fun(*operands)` if `pred` is true, otherwise of `false_fun(*operands)`.

    Only one of the functions runs, and the derivative is that of the function that ran.

    Parameters:
        pred (bool scalar): Traced or not.
        true_fun, false_fun (functions): Return pytrees of the same structure, shapes and dtypes; a Python number takes
            the dtype of its counterpart.
        *operands (pytrees of arrays and numbers): The arguments of both functions.
    Returns:
        pytree: The result of the function that ran.
    Raises:
        ArgumentTypeError: If `pred` is not a bool scalar.
        StructureError: If the results of the two functions differ in structure, shape or dtype.
    Examples:
        >>> import numpy as np, fnad
        >>> half_or_square = lambda x: fnad.cond(x > 1, lambda x: x / 2, lambda x: x**2, x)
        >>> fnad.grad(half_or_square)(3.0), fnad.grad(half_or_square)(0.5)
        (np.float64(0.5), np.float64(1.0))
    """
    branches = {"false_fun": false_fun, "true_fun": true_fun}
    check_functions("cond", **branches)
    _check_scalar("cond", "pred", pred, "b", "compare with np.all, np.any or one element to get one bool")
    if is_plain():
        return (true_fun if pred else false_fun)(*operands)
    names = _names("pred", operands)
    return in_trace(true_fun, lambda p, *rest: _choose(p, branches, rest), pred, *operands, names=names)


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """The result of `branches[index](*operands)`; only this branch runs.

    Parameters:
        index (integer scalar): Traced or not; an index out of range selects the nearest branch.
        branches (sequence of functions): Return pytrees of the same structure, shapes and dtypes.
        *operands (pytrees of arrays and numbers): The arguments of the branch.
    Returns:
        pytree: The result of the branch.
    Raises:
        ArgumentTypeError: If `index` is not an integer scalar, or there are no branches.
        StructureError: If the results of the branches differ in structure, shape or dtype.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.switch(np.int64(2), [np.sin, np.cos, np.square], 3.0)
        np.float64(9.0)
    """
    functions = {f"branches[{i}]": branch for i, branch in enumerate(branches)}
    if not functions:
        raise ArgumentTypeError.here("switch was given no branches", remedy="give at least one")
    check_functions("switch", **functions)
    _check_scalar("switch", "index", index, "iu", "convert it, index.astype(int), or use cond for a bool")
    if is_plain():
        return branches[min(max(int(index), 0), len(branches) - 1)](*operands)
    first, names = functions["branches[0]"], _names("index", operands)
    return in_trace(first, lambda i, *rest: _choose(i, functions, rest), index, *operands, names=names)


def _names(first: str, operands: Sequence[Any]) -> list[str]:
    return [first, *[f"operands[{i}]" for i in range(len(operands))]]


def _check_scalar(name: str, what: str, value: Any, kinds: str, remedy: str) -> None:
    dtype, shape = (value.dtype, value.shape) if isinstance(value, (np.ndarray, np.generic)) else (None, ())
    python = {"b": bool, "iu": int}[kinds]
    is_python = dtype is None and isinstance(value, python) and (python is bool or not isinstance(value, bool))
    if not (is_python or (dtype is not None and dtype.kind in kinds and shape == ())):
        raise ArgumentTypeError.here(
            f"{what} of {name} is {_described(value)}, not {'a bool' if kinds == 'b' else 'an integer'} scalar",
            remedy=remedy,
        )


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    return type_name(value)


def _choose(index: Any, branches: Branches, operands: tuple[Any, ...]) -> Any:
    leaves, structure = leaves_of(operands, lambda i: f"operands[{i}]")
    arrange, types = partial(unflatten, structure), leaf_types(leaves)
    given = flatten(operands)[0]
    regions = [region_of(f, calling(f, arrange), types, given=given) for f in branches.values()]
    results = _common(branches, regions)
    symbols = [symbol(leaf) for leaf in leaves]
    captured, programs = with_shared_captures([region.converted(results) for region in regions])
    with at(current_source()):
        found = _chosen(symbol_of(index), [*symbols, *captured], programs)
    return regions[0].rebuilt(found, results)


def _chosen(index: Symbol, operands: Sequence[Symbol], programs: Sequence[Program]) -> Sequence[Symbol]:
    if len(programs) == 1:
        return inline(programs[0], operands)
    chosen = index if index.dtype == BOOL else convert_to(index, I64)
    return cond_primitive(chosen, *operands, regions=tuple(programs))


def _common(branches: Branches, regions: Sequence[Region]) -> list[LeafType]:
    """The types of the results; raise where those of two branches differ."""
    like, *others = [f"the result of {name}, {described(f)}" for name, f in branches.items()]
    for what, region in zip(others, regions[1:], strict=True):
        check_structure(regions[0].structure, region.structure, what, like)
    return [_common_leaf(branches, regions, i) for i in range(len(regions[0].results))]


def _common_leaf(branches: Branches, regions: Sequence[Region], index: int) -> LeafType:
    types = [region.results[index] for region in regions]
    shapes = {t.aval.shape for t in types}
    dtypes = {t.aval.dtype for t in types if not t.weak}
    common = reduce(joined, types)
    if len(shapes) > 1 or (dtypes and dtypes != {common.aval.dtype}):
        tree = regions[0].structure.unflatten([0] * len(regions[0].results))
        where = path((tree,), index, lambda _: "result")
        each = [f"{t.aval} from {name}, {described(f)}" for (name, f), t in zip(branches.items(), types, strict=True)]
        raise StructureError.here(
            f"the branches differ in {where}: {'; '.join(each)}",
            remedy="return the same shape and dtype from each: broadcast with np.broadcast_to, convert with astype",
        )
    return common

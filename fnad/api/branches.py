"""Branches as part of the program: `cond`, `switch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from fnad.api.leaves import Function, check_function, function_name, leaves_of, path, type_name
from fnad.api.regions import Kind, Region, as_tracer, check_structure, in_trace, joined, kind_of, region_of
from fnad.control.cond import cond as cond_primitive
from fnad.errors import ArgumentTypeError, StructureError
from fnad.ir.builder import inline, trace
from fnad.ir.program import Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import BOOL, I64
from fnad.numpy.operands import as_symbol
from fnad.ops.conversion import convert_to
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer
from fnad.trace.tracing import symbol_of


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """Return `true_fun(*operands)` where `pred` holds, else `false_fun(*operands)`; only that one is run.

    `pred` is a bool scalar, traced or not. The operands are pytrees of arrays and numbers. Both functions return
    pytrees of the same structure, shapes and dtypes (a Python number takes the dtype beside it). Derivatives are those
    of the branch that ran.

    Raises `ArgumentTypeError` for a `pred` that is no bool scalar, `StructureError` where the results differ.

    >>> import numpy as np, fnad
    >>> half_or_square = lambda x: fnad.cond(x > 1, lambda x: x / 2, lambda x: x**2, x)
    >>> fnad.grad(half_or_square)(3.0), fnad.grad(half_or_square)(0.5)
    (np.float64(0.5), np.float64(1.0))
    """
    for function in (true_fun, false_fun):
        check_function(function, "cond")
    _check_scalar("cond", "pred", pred, "b", "compare with np.all, np.any or one element to get one bool")
    return in_trace(true_fun, lambda p, *rest: _choose(p, (false_fun, true_fun), rest), pred, *operands)


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """Return `branches[index](*operands)`; only that one is run.

    `index` is an integer scalar, traced or not; one that is out of range means the nearest branch. The operands and
    results are as in `cond`.

    Raises `ArgumentTypeError` for an `index` that is no integer scalar or for no branches, `StructureError` where the
    results differ.

    >>> import numpy as np, fnad
    >>> fnad.switch(np.int64(2), [np.sin, np.cos, np.square], 3.0)
    np.float64(9.0)
    """
    functions = tuple(branches)
    if not functions:
        raise ArgumentTypeError("switch was given no branches", source=current_source(), remedy="give at least one")
    for function in functions:
        check_function(function, "switch")
    _check_scalar("switch", "index", index, "iu", "convert it, index.astype(int), or use cond for a bool")
    return in_trace(functions[0], lambda i, *rest: _choose(i, functions, rest), index, *operands)


def _check_scalar(name: str, what: str, value: Any, kinds: str, remedy: str) -> None:
    dtype, shape = (value.dtype, value.shape) if isinstance(value, (Tracer, np.ndarray, np.generic)) else (None, ())
    python = {"b": bool, "iu": int}[kinds]
    is_python = dtype is None and isinstance(value, python) and (python is bool or not isinstance(value, bool))
    if not (is_python or (dtype is not None and dtype.kind in kinds and shape == ())):
        raise ArgumentTypeError(
            f"{what} of {name} is {_described(value)}, not {'a bool' if kinds == 'b' else 'an integer'} scalar",
            source=current_source(),
            remedy=remedy,
        )


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    return type_name(value)


def _choose(index: Any, functions: Sequence[Function], operands: tuple[Any, ...]) -> Any:
    leaves, structure = leaves_of(operands, lambda i: f"operands[{i}]")
    kinds = [kind_of(leaf) for leaf in leaves]
    regions = [region_of(f, _caller(f, structure.unflatten), kinds) for f in functions]
    results = _common(functions, regions)
    if len(regions) == 1:
        return functions[0](*operands)
    chosen = symbol_of(index)
    chosen = chosen if chosen.dtype == BOOL else convert_to(chosen, I64)
    symbols = [as_symbol(leaf.value) for leaf in leaves]
    captured = [as_symbol(value) for region in regions for value in region.captured]
    programs = _on_all_operands([r.converted([k.aval.dtype for k in results]) for r in regions], len(symbols))
    found = cond_primitive(chosen, *symbols, *captured, regions=tuple(programs))
    return regions[0].structure.unflatten(map(as_tracer, found, results))


def _caller(f: Function, unflatten: Callable[[list[Tracer]], Any]) -> Callable[[list[Tracer]], Any]:
    return lambda tracers: f(*unflatten(tracers))


def _common(functions: Sequence[Function], regions: Sequence[Region]) -> list[Kind]:
    """Return the kinds of the results; raise where those of two branches differ."""
    first, like = regions[0], f"that of {function_name(functions[0])}"
    for f, region in zip(functions[1:], regions[1:], strict=True):
        check_structure(first.structure, region.structure, f"the result of {function_name(f)}", like)
    return [_common_leaf(functions, regions, i) for i in range(len(first.results))]


def _common_leaf(functions: Sequence[Function], regions: Sequence[Region], index: int) -> Kind:
    kinds = [region.results[index] for region in regions]
    shapes = {kind.aval.shape for kind in kinds}
    dtypes = {kind.aval.dtype for kind in kinds if not kind.weak}
    common = reduce(joined, kinds)
    if len(shapes) > 1 or (dtypes and dtypes != {common.aval.dtype}):
        tree = regions[0].structure.unflatten([0] * len(regions[0].results))
        where = path((tree,), index, lambda _: "result")
        each = ", ".join(f"{k.aval} from {function_name(f)}" for f, k in zip(functions, kinds, strict=True))
        raise StructureError(
            f"the branches differ in {where}: {each}",
            source=current_source(),
            remedy="return the same shape and dtype from each: broadcast with np.broadcast_to, convert with astype",
        )
    return common


def _on_all_operands(regions: Sequence[Region], leaves: int) -> list[Program]:
    """Return the programs on the leaves and what any one of them captured."""
    captured = [aval for region in regions for aval in region.program.in_avals[leaves:]]
    programs: list[Program] = []
    start = leaves
    for region in regions:
        own = slice(start, start + len(region.captured))

        def run(*args: Symbol, region: Region = region, own: slice = own) -> list[Symbol]:
            return inline(region.program, [*args[:leaves], *args[own]])

        avals = [*region.program.in_avals[:leaves], *captured]
        programs.append(trace(run, *avals, name=region.program.name))
        start = own.stop
    return programs

"""Functions of one example, applied to many at once: `vmap`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from fnad.api.running.execution import in_trace
from fnad.api.running.reused_traces import ReusedTraces
from fnad.api.running.transformed import Transformed, with_options
from fnad.api.staging.leaves import (
    NAMESPACE,
    Function,
    Leaf,
    check_function,
    flatten,
    function_name,
    pytrees,
    source_of,
)
from fnad.api.staging.marshalling import LeafType, Tree, as_tracer, symbol
from fnad.api.staging.regions import at, region_of
from fnad.api.staging.row_loop import MappedRows, Results, in_turn, unless_parted
from fnad.control.batching import batched_equation, batched_program, leaves_residuals
from fnad.errors import BatchAxisError
from fnad.ir.builder import Builder
from fnad.ir.program import Equation
from fnad.ir.symbol import Symbol
from fnad.ops.shape import copies, in_front, transpose_to
from fnad.trace.hooks import callee
from fnad.trace.shadow import Raised
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer

AxisTree = Any
"""An axis, None, or a pytree of these that stands for what is below each of its leaves."""


class _Unmapped:
    """In place of None, which is no leaf of a pytree."""


UNMAPPED = _Unmapped()


@with_options
def vmap(f: Function, in_axes: AxisTree = 0, out_axes: AxisTree = 0, axis_size: int | None = None) -> Transformed:
    """The function that applies `f` to each row of its arguments and stacks the results.

    The operations of `f` become operations on all rows. Branches of `cond` that differ among rows, and loops of
    different lengths, run row by row. Rows for which Python's own `if` and `while` go different ways are steps of one
    loop under `jit`. Otherwise they are traced one by one.

    Parameters:
        f (function): Takes one example.
        in_axes (int, None, or tuple of these and pytrees of them): The axis of the rows in each positional argument;
            None for an argument that is the same for all rows. A pytree is a prefix of the argument. Arguments by name
            have their rows along axis 0.
        out_axes (int, None, or pytree of these): The axis of the rows in the results; None for a result that is the
            same for all rows.
        axis_size (int, optional): The number of rows, if no argument has any.
    Returns:
        function: Takes the arguments of `f` with an axis more, and returns its results with an axis more.
    Raises:
        BatchAxisError: If the axes do not fit the arguments or results.
        TracerEscapeError: If Python goes different ways for more than 256 rows; under `jit`, if they also cannot be
            steps of one loop.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.vmap(np.dot)(np.arange(6.0).reshape(2, 3), np.ones((2, 3)))
        array([ 3., 12.])
        >>> fnad.vmap(fnad.grad(lambda w, x: np.sum(w * x) ** 2), in_axes=(None, 0))(np.ones(2), np.eye(2))
        array([[2., 0.],
               [0., 2.]])
    """
    check_function(f, "vmap")
    traces = ReusedTraces(f)

    def batched_f(*args: Any, **kwargs: Any) -> Any:
        names = [f"args[{i}]" for i in range(len(args))]

        def call(*trees: Any) -> Any:
            return _mapped(f, in_axes, out_axes, axis_size, trees[:-1], trees[-1])

        return in_trace(f, call, *args, kwargs, names=[*names, "kwargs"], traces=traces)

    return cast("Transformed", batched_f)  # `with_options` makes it one


def _mapped(
    f: Function, in_axes: AxisTree, out_axes: AxisTree, axis_size: int | None, args: Any, kwargs: dict[str, Any]
) -> Any:
    tree = Tree.of("args", (args, kwargs))
    axes = _argument_axes(f, in_axes, args, kwargs, tree)
    count = _count(f, tree, axes, axis_size)
    types = [_row_type(leaf, axis) for leaf, axis in zip(tree.leaves, axes, strict=True)]
    operands = [_with_rows_first(symbol(leaf), axis) for leaf, axis in zip(tree.leaves, axes, strict=True)]
    given, call, source = flatten((args, kwargs))[0], partial(_call, f, tree), current_source()
    is_row = [axis is not None for axis in axes]
    key = source, source_of(f), function_name(f), tuple(types), count

    def together() -> tuple[Results, list[Symbol], list[bool]]:
        region = region_of(f, call, types, operands, partial(_Rows, count=count), given)
        with at(source):
            stacked = [*is_row, *[False] * len(region.captured)]
            found, marks = batched_program(region.program, count, [*operands, *region.consts], stacked)
        return Results(region.structure, region.results), found, marks

    rows = MappedRows(f, types, [*zip(operands, is_row, strict=True)], count, call)
    (structure, results), found, marks = in_turn(rows, key) or unless_parted(together, rows, key)
    with at(source):
        places = _result_axes(f, out_axes, structure, [r.aval.ndim for r in results])
        pairs = enumerate(zip(found, marks, places, strict=True))
        placed = [_placed(f, n, x, mark, place, count) for n, (x, mark, place) in pairs]
    types = [LeafType(x.aval, r.weak and not x.shape) for x, r in zip(placed, results, strict=True)]
    return structure.unflatten(map(as_tracer, placed, types))


class _Rows(Raised):
    """The values of a function of one row, as stacks of the trace around it, where they have an axis more."""

    def __init__(self, outer: Builder, count: int) -> None:
        super().__init__(outer)
        self._count = count

    def can_compute(self, equation: Equation) -> bool:
        return super().can_compute(equation) and not leaves_residuals(equation)

    def compute(self, equation: Equation, operands: Sequence[Symbol]) -> Sequence[Symbol]:
        stacked = [x.ndim > atom.aval.ndim for x, atom in zip(operands, equation.operands, strict=True)]
        with self.outer.innermost(), at(equation.source or self.outer.source):
            return batched_equation(equation, self._count, operands, stacked)[0]


def _call(f: Function, tree: Tree, leaves: list[Tracer]) -> Any:
    args, kwargs = tree.unflatten(leaves)
    return callee(f)(*args, **kwargs)


# ---- axes of arguments -----------------------------------------------------------------------------------------------


def _argument_axes(f: Function, in_axes: AxisTree, args: Any, kwargs: Any, tree: Tree) -> list[int | None]:
    """The axis of each leaf, counted from the front; None for one that is the same for all rows."""
    if isinstance(in_axes, (list, tuple)) and len(in_axes) != len(args):
        raise BatchAxisError.here(
            f"in_axes of vmap has {len(in_axes)} entries for {len(args)} positional arguments of {function_name(f)}",
            remedy="give one entry for each, or one integer for all",
        )
    prefix = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    spread = _spread("in_axes", (prefix, 0), (args, kwargs), "the arguments")
    return [
        _checked(axis, leaf.aval.ndim, tree, n) for n, (axis, leaf) in enumerate(zip(spread, tree.leaves, strict=True))
    ]


def _spread(what: str, prefix: AxisTree, tree: Any, like: str) -> list[Any]:
    """The entry of the prefix for each leaf of a pytree."""
    optree = pytrees()
    marked = optree.tree_map(lambda x: UNMAPPED if x is None else x, prefix, none_is_leaf=True, namespace=NAMESPACE)
    try:
        found = optree.broadcast_prefix(marked, tree, namespace=NAMESPACE)
    except ValueError as error:
        raise BatchAxisError.here(
            f"{what} of vmap is no prefix of {like}: {str(error).splitlines()[0]}",
            remedy="give an integer or None in the place of each container whose leaves have the same axis",
        ) from None
    for axis in found:
        if axis is not UNMAPPED and (not isinstance(axis, int) or isinstance(axis, bool)):
            raise BatchAxisError.here(
                f"{what} of vmap has {axis!r}, not an integer or None",
                remedy="give an axis; vmap returns a function, which takes the arguments of f: fnad.vmap(f)(x)",
            )
    return [None if axis is UNMAPPED else axis for axis in found]


def _checked(axis: int | None, ndim: int, tree: Tree, index: int) -> int | None:
    if axis is None or -ndim <= axis < ndim:
        return None if axis is None else axis % ndim
    has = "no axes" if ndim == 0 else f"axes from {-ndim} to {ndim - 1}"
    rows = (
        "an array with rows: a list of numbers is a tree of them" if ndim == 0 else "the axis along which the rows lie"
    )
    raise BatchAxisError.here(
        f"in_axes of vmap says {axis} for {_argument(tree, index)}, which has {has}",
        remedy=f"give None for what is the same for all rows, else {rows}",
    )


def _argument(tree: Tree, index: int) -> str:
    """The name of a leaf in errors."""
    found = tree.path(index)
    return found.replace("args[0]", "args", 1) if found.startswith("args[0]") else found.replace("args[1]", "kwargs", 1)


def _count(f: Function, tree: Tree, axes: Sequence[int | None], axis_size: Any) -> int:
    """The number of rows."""
    sizes = {n: tree.leaves[n].aval.shape[axis] for n, axis in enumerate(axes) if axis is not None}
    if axis_size is not None and (not isinstance(axis_size, (int, np.integer)) or axis_size < 0):
        raise BatchAxisError.here(
            f"axis_size of vmap is {axis_size!r}, not a number of rows", remedy="give an integer, 0 or more"
        )
    found = {*sizes.values(), *([] if axis_size is None else [int(axis_size)])}
    if len(found) == 1:
        return found.pop()
    if not found:
        raise BatchAxisError.here(
            f"vmap of {function_name(f)} has no argument with rows",
            remedy="say with axis_size how many rows there are, or with in_axes where they lie",
        )
    listed = [f"{_argument(tree, n)} has {size}" for n, size in sizes.items()]
    listed += [] if axis_size is None else [f"axis_size is {axis_size}"]
    raise BatchAxisError.here(
        f"vmap of {function_name(f)} is given different numbers of rows: {', '.join(listed)}",
        remedy="check in_axes, with None for what is the same for all rows",
    )


def _row_type(leaf: Leaf, axis: int | None) -> LeafType:
    if axis is None:
        return LeafType(leaf.aval, leaf.weak)
    shape = leaf.aval.shape
    return LeafType(leaf.aval.with_shape((*shape[:axis], *shape[axis + 1 :])))


def _with_rows_first(x: Symbol, axis: int | None) -> Symbol:
    return x if axis is None else in_front(x, (axis,))


# ---- axes of results -------------------------------------------------------------------------------------------------


def _result_axes(f: Function, out_axes: AxisTree, structure: Any, ndims: Sequence[int]) -> list[int | None]:
    axes = _spread("out_axes", out_axes, structure.unflatten(range(len(ndims))), "the results")
    for n, (axis, ndim) in enumerate(zip(axes, ndims, strict=True)):
        if axis is not None and not -ndim - 1 <= axis <= ndim:
            raise BatchAxisError.here(
                f"out_axes of vmap says {axis} for result {n} of {function_name(f)}, which has with its rows axes from "
                f"{-ndim - 1} to {ndim}",
                remedy="give one of these",
            )
    return axes


def _placed(f: Function, n: int, x: Symbol, is_stack: bool, axis: int | None, count: int) -> Symbol:
    """A result with its rows along an axis."""
    if axis is None:
        if is_stack:
            raise BatchAxisError.here(
                f"out_axes of vmap is None for result {n} of {function_name(f)}, which may differ among the rows",
                remedy="say along which axis its rows go, and outside of vmap take one of them or reduce them",
            )
        return x
    stack = x if is_stack else copies(x, count)
    place = axis % stack.ndim
    order = [*range(1, place + 1), 0, *range(place + 1, stack.ndim)]
    return transpose_to(stack, tuple(order))

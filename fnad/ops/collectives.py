"""Collectives of the ranks of MPI: linear maps of the vector that all ranks hold together, each rank a part of it.

The program of a rank is one of several equal ones, and a collective is the equation at which they exchange values. Its
derivative is the exact transpose of that map: of `psum` itself, of `all_gather` and `reduce_scatter` each other, and of
`broadcast` the sum at the root, `reduce_to`.

A collective is an effect: no pass drops, merges or moves it, so that equal programs send equal messages in one order.
Before each message the ranks compare what they are about to send, and the line of user code (`site`). If these differ,
all ranks raise `DistributedError`. A program for one rank needs no MPI.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from fnad.errors import DistributedError, ShapeError
from fnad.ir.axes import Axes, AxisPairs, Custom, Elementwise
from fnad.ir.primitive import HOST, Library, Linear, Primitive, Rule, Sample, register
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, Shape
from fnad.ops.constructors import NUMBERS, by_name, check_dtype
from fnad.ops.shape import sample, transpose_to

SAME = "have all ranks call the same collectives in the same order, on arrays of the same dtypes and shapes"
INSTALL = "install fnad[mpi] and an MPI such as mpich, and start the program by mpiexec -n 2 python FILE"

# ---- MPI -------------------------------------------------------------------------------------------------------------


def mpi() -> Any:
    """The module mpi4py.MPI; raises `DistributedError` if there is no MPI."""
    try:
        return import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise DistributedError(f"there is no MPI: {str(error).partition(chr(10))[0]:.100}", remedy=INSTALL) from None


def agree(message: str) -> None:
    """Raise `DistributedError` on all ranks unless all are about to send the same message."""
    world, code = mpi().COMM_WORLD, code_of(message)
    found = np.empty(2, np.int64)
    world.Allreduce(np.array([code, -code]), found, op=mpi().MAX)
    if found[0] != -found[1]:
        messages = "; ".join(dict.fromkeys(world.allgather(message)))
        raise DistributedError(f"the ranks do not agree: {messages}", remedy=SAME)


def code_of(message: str) -> int:
    """A number for a message, the same in all processes."""
    return int.from_bytes(hashlib.sha256(message.encode()).digest()[:7], "little")


def message_of(name: str, operand: Aval, *, site: str, root: int | None = None, **_: Any) -> str:
    """The text that all ranks must have in common at a collective."""
    return f"{name} of {operand}{'' if root is None else f' at rank {root}'} in {site}"


# ---- the primitives --------------------------------------------------------------------------------------------------


def _collective(
    name: str,
    send: Callable[..., None],
    transpose: Rule,
    doc: str,
    *,
    shape: Callable[[Shape, int], Shape] = lambda shape, ranks: shape,
    axes: Axes = Elementwise(),  # noqa: B008 - immutable
    **root: int,
) -> Primitive:
    """Declare a collective; `send(world, array, result, root)` exchanges the messages and fills the result."""

    def infer(x: Aval, *, ranks: int, **_: Any) -> Aval:
        check_dtype(name, x.dtype, NUMBERS)
        return Aval(x.dtype, shape(x.shape, ranks))

    def evaluate(x: Any, *, ranks: int, **params: Any) -> Any:
        array = np.array(x, order="C")
        result = np.empty(shape(array.shape, ranks), array.dtype)
        if ranks == 1 and "mpi4py.MPI" not in sys.modules:
            return array.reshape(result.shape)
        world = mpi().COMM_WORLD
        if world.Get_size() != ranks:
            what = f"a program that was traced for {ranks} ranks runs on {world.Get_size()}"
            raise DistributedError(what, remedy="trace it again")
        agree(message_of(name, Aval(array.dtype, array.shape), **params))
        send(world, array, result, params.get("root"))
        return result

    def samples() -> Iterable[Sample]:
        return (Sample((sample((1, 2), dtype),), {"ranks": 1, "site": "", **root}) for dtype in by_name(NUMBERS))

    lower = Library(HOST)
    return register(Primitive(name, infer, evaluate, Linear(transpose), lower, samples, doc, effect=True, axes=axes))


def _to_root(world: Any, x: Any, total: Any, root: int) -> None:
    total[...] = 0
    world.Reduce(x, total, root=root)


def _from_root(world: Any, x: Any, result: Any, root: int) -> None:
    result[...] = x
    world.Bcast(result, root)


def _row(shape: Shape, ranks: int) -> Shape:
    if not shape or shape[0] != ranks:
        raise ShapeError(
            f"the argument of reduce_scatter has the shape {shape}, not a row for each of {ranks} ranks",
            remedy="split the array by np.stack or reshape",
        )
    return shape[1:]


def _stack(count: int, operands: Sequence[Symbol], stacked: Sequence[bool], *, of: str, **params: Any) -> Symbol:
    """The axis of ranks is in front: stacks are gathered with their axis second, and rows of stacks made first."""
    (x,) = operands
    if of == "rows":
        return reduce_scatter(_exchanged(x), **params)
    return _exchanged(all_gather(x, **params))


def _exchanged(x: Symbol) -> Symbol:
    """The operand with its first two axes exchanged."""
    return transpose_to(x, (1, 0, *range(2, x.ndim)))


def _aligned(before: int, after: int, x: Aval, **_: Any) -> tuple[AxisPairs, ...]:
    """Pairs of the axes after the first, counted from `before` in the operand and from `after` in the result."""
    return (tuple((before + a, after + a) for a in range(x.ndim - before)),)


psum = _collective(
    "psum",
    lambda world, x, total, _: world.Allreduce(x, total),
    lambda ct, x, **where: (psum(ct, **where),),
    "The sum over all ranks.",
)
all_gather = _collective(
    "all_gather",
    lambda world, x, rows, _: world.Allgather(x, rows),
    lambda ct, x, **where: (reduce_scatter(ct, **where),),
    "The operands of all ranks, in the order of the ranks along a new first axis.",
    shape=lambda shape, ranks: (ranks, *shape),
    axes=Custom(partial(_stack, of="all"), partial(_aligned, 0, 1)),
)
reduce_scatter = _collective(
    "reduce_scatter",
    lambda world, x, row, _: world.Reduce_scatter_block(x, row),
    lambda ct, x, **where: (all_gather(ct, **where),),
    "The row of this rank, along the first axis, of the sum over all ranks.",
    shape=_row,
    axes=Custom(partial(_stack, of="rows"), partial(_aligned, 1, 0)),
)
broadcast = _collective(
    "broadcast",
    _from_root,
    lambda ct, x, **where: (reduce_to(ct, **where),),
    "The operand of the rank `root`.",
    root=0,
)
reduce_to = _collective(
    "reduce_to",
    _to_root,
    lambda ct, x, **where: (broadcast(ct, **where),),
    "The sum over all ranks at the rank `root`, and 0 on the others.",
    root=0,
)

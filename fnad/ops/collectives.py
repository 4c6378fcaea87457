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
from fnad.ir.primitive import HOST, Library, Linear, Primitive, Routine, Rule, Sample, declare
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, Shape
from fnad.ops.constructors import NUMBERS, by_name, check_dtype
from fnad.ops.shape import sample, transpose_to
from fnad.version import __version__

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
    if not is_same(code_of(message)):
        raise different(message)


def is_same(code: int) -> bool:
    """True on all ranks if all call it with the same number."""
    found = np.empty(2, np.int64)
    mpi().COMM_WORLD.Allreduce(np.array([code, -code]), found, op=mpi().MAX)
    return bool(found[0] == -found[1])


def code_of(message: str) -> int:
    """A number for a message, the same in all processes with this version of fnad."""
    return int.from_bytes(hashlib.sha256(f"{__version__} {message}".encode()).digest()[:7], "little")


def message_of(name: str, operand: Aval | None, *, site: str, root: int | None = None, **_: Any) -> str:
    """The text that all ranks must have in common at a collective."""
    what = name if operand is None else f"{name} of {operand}"
    return f"{what}{'' if root is None else f' at rank {root}'} in {site}"


def different(message: str) -> DistributedError:
    what = (
        f"the ranks do not agree at {message}: another rank is at another line, has another dtype or shape, "
        f"or another version of fnad than {__version__}"
    )
    return DistributedError(what, remedy=SAME)


def other_number(ranks: int) -> DistributedError:
    return DistributedError(f"a program that was traced for {ranks} ranks runs on others", remedy="trace it again")


FAILED = DistributedError("MPI failed to exchange a message", remedy="see the output of MPI, and `fnad doctor`")


# ---- messages --------------------------------------------------------------------------------------------------------


def _from_root(world: Any, x: Any, result: Any, root: int) -> None:
    result[...] = x
    world.Bcast(result, root)


def _to_root(world: Any, x: Any, total: Any, root: int) -> None:
    total[...] = 0
    world.Reduce(x, total, root=root)


SEND: dict[str, Callable[..., None]] = {
    "psum": lambda world, x, total, _: world.Allreduce(x, total),
    "all_gather": lambda world, x, rows, _: world.Allgather(x, rows),
    "reduce_scatter": lambda world, x, row, _: world.Reduce_scatter_block(x, row),
    "broadcast": _from_root,
    "reduce_to": _to_root,
}
"""Functions of the communicator, an array, its result and the root, which exchange the messages."""


def has_symbols() -> bool:
    """True if native code can call the MPI of mpi4py."""
    return hasattr(sys.modules.get("mpi4py.MPI"), "_handleof")


# ---- the primitives --------------------------------------------------------------------------------------------------


def _collective(
    name: str,
    transpose: Rule,
    doc: str,
    *,
    shape: Callable[[Shape, int], Shape] = lambda shape, ranks: shape,
    axes: Axes = Elementwise(),  # noqa: B008 - immutable
    **root: int,
) -> Primitive:
    """Declare a collective; `shape` is that of its result on so many ranks."""

    def infer(x: Aval, *, ranks: int, **_: Any) -> Aval:
        check_dtype(name, x.dtype, NUMBERS)
        return Aval(x.dtype, shape(x.shape, ranks))

    def evaluate(x: Any, *, ranks: int, **params: Any) -> Any:
        array = np.array(x, order="C")
        result = np.empty(shape(array.shape, ranks), array.dtype)
        if ranks == 1 and "mpi4py.MPI" not in sys.modules:
            return array.reshape(result.shape)
        if mpi().COMM_WORLD.Get_size() != ranks:
            raise other_number(ranks)
        agree(message_of(name, Aval(array.dtype, array.shape), **params))
        SEND[name](mpi().COMM_WORLD, array, result, params.get("root"))
        return result

    def native(*_: Aval, **params: Any) -> Routine | None:
        message = message_of(name, None, **params)
        faults = different(message), FAILED, other_number(params["ranks"])
        return Routine(f"mpi_{name}", faults) if has_symbols() else None

    def samples() -> Iterable[Sample]:
        return (Sample((sample((1, 2), dtype),), {"ranks": 1, "site": "", **root}) for dtype in by_name(NUMBERS))

    lower = Library(HOST, native=native)
    return declare(name, infer, evaluate, Linear(transpose), lower, samples, doc, effect=True, axes=axes)


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


psum = _collective("psum", lambda ct, x, **where: (psum(ct, **where),), "The sum over all ranks.")
all_gather = _collective(
    "all_gather",
    lambda ct, x, **where: (reduce_scatter(ct, **where),),
    "The operands of all ranks, in the order of the ranks along a new first axis.",
    shape=lambda shape, ranks: (ranks, *shape),
    axes=Custom(partial(_stack, of="all"), partial(_aligned, 0, 1)),
)
reduce_scatter = _collective(
    "reduce_scatter",
    lambda ct, x, **where: (all_gather(ct, **where),),
    "The row of this rank, along the first axis, of the sum over all ranks.",
    shape=_row,
    axes=Custom(partial(_stack, of="rows"), partial(_aligned, 1, 0)),
)
broadcast = _collective(
    "broadcast", lambda ct, x, **where: (reduce_to(ct, **where),), "The operand of the rank `root`.", root=0
)
reduce_to = _collective(
    "reduce_to",
    lambda ct, x, **where: (broadcast(ct, **where),),
    "The sum over all ranks at the rank `root`, and 0 on the others.",
    root=0,
)

"""Collectives that kernels call, by symbolic names.

    mpi_psum(x, y, count, code, root, ranks, status, disagree, failed, other):    y = the sum of x over all ranks

and so each of `fnad.ops.collectives`. The smaller one of the arrays has `count` elements, and `code` is the number of
the message on which all ranks must agree. The last three are numbers of faults, of which one is stored in status[0].
"""

from __future__ import annotations

from typing import Any

from fnad.lower.loop_ir import LibraryCall
from fnad.ops.collectives import SEND, code_of, is_same, message_of, mpi
from fnad.scalar.operation import Kind, OperandError, Operation, Pointer

PREFIX = "mpi_"


def numbers_of_collective(call: LibraryCall) -> tuple[int, int, int, int]:
    """The numbers that a collective takes behind the arrays."""
    (x,), (y,), params = call.operands, call.results, call.params
    code = code_of(message_of(call.primitive.name, x.aval, **params))
    return min(x.aval.size, y.aval.size), code, params.get("root", 0), params["ranks"]


def _operation(name: str) -> Operation:
    def result(*kinds: Kind) -> Kind:
        if len(kinds) != 10 or not isinstance(kinds[0], Pointer) or kinds[0] != kinds[1]:
            raise OperandError(f"{PREFIX}{name} takes two arrays of one dtype, four numbers, the status, three faults")
        return None

    def plain(x: Any, y: Any, count: int, code: int, root: int, ranks: int, status: Any, *faults: int) -> None:
        world = mpi().COMM_WORLD
        disagree, _, other = faults
        if world.Get_size() != ranks:
            status[0] = other
        elif not is_same(code):
            status[0] = disagree
        else:
            of_x, of_y = {"all_gather": (1, ranks), "reduce_scatter": (ranks, 1)}.get(name, (1, 1))
            SEND[name](world, x[: of_x * count], y[: of_y * count], root)

    return Operation(PREFIX + name, result, plain)


COLLECTIVES = {PREFIX + name: _operation(name) for name in SEND}
"""The routines by name."""

"""A lowered program as launches on a device, and the memory that they share.

    step ::= Launch | Product | Products(loops, product) | LibraryCall | DeviceControl(control, [[step]])

A host runs the steps in order. A launch is one kernel on a grid of blocks. Control flow with more than a block's work
inside is run by the host: it sets the counters of the loops around a launch in an array on the device, and reads back
what decides on a branch or the end of a loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from fnad.errors import LoweringError
from fnad.kernel.barriers import by_threads
from fnad.kernel.chunk_kernels import arrays_of, local_arrays
from fnad.kernel.forward import forward
from fnad.kernel.grid import Mapping, OnBlocks, Parts, Piece, statements_of_piece
from fnad.kernel.liveness import live
from fnad.kernel.plan import Placed
from fnad.kernel.python_source import kernel_text
from fnad.kernel.registers import vectors
from fnad.kernel.statements import COUNTERS, STATUS, Apply, Kernel, Statement, operands, subexpressions, walk
from fnad.lower.allocation import Slot
from fnad.lower.loop_ir import (
    Control,
    Item,
    LibraryCall,
    LoopProgram,
    NestLoop,
    Product,
    SequentialFor,
    SequentialWhile,
    Switch,
)
from fnad.lower.nodes import Buffer
from fnad.lower.target import Target
from fnad.records import dataclass
from fnad.scalar.operation import Pointer


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """A kernel on a grid.

    Its parameters are flat arrays in the device's memory, by the names of their places; `STATUS` is the last one if the
    kernel may report a fault, `COUNTERS` are those of the loops around it.
    """

    kernel: Kernel
    blocks: int
    threads: int


@dataclass(frozen=True, slots=True, eq=False)
class Products:
    """A matrix product in each iteration of loops, outer before inner, whose counters its offsets depend on."""

    loops: tuple[NestLoop, ...]
    product: Product


@dataclass(frozen=True, slots=True, eq=False)
class DeviceControl:
    """A loop or branches that the host runs; a `SequentialWhile` has its test, its body and what follows the loop."""

    control: Control
    bodies: tuple[list[DeviceStep], ...]


DeviceStep: TypeAlias = Launch | Product | Products | LibraryCall | DeviceControl
Part: TypeAlias = "Piece | Product | Products | LibraryCall | tuple[Control, tuple[list[Part], ...]]"


class DevicePlan(Placed):
    """A program lowered for a device: its memory, and its launches before compilation."""

    def __init__(self, loops: LoopProgram, target: Target, donated: Sequence[int] = ()) -> None:
        if loops.residual_stacks:
            raise LoweringError(
                f"{target.name} keeps no residual stacks, which a loop of unknown length needs in reverse mode"
            )
        self.target = target
        parts = parts_of(loops.items, Mapping(target))
        statements = {piece: forward(statements_of_piece(piece, target)) for piece in pieces_of(parts)}
        super().__init__(loops, donated, list(statements), statements.values(), set(read_by_host(parts)))
        self.slots += folds_in_parts(statements)
        self.launches = {
            piece: launch(f"launch{n}", piece, self.layout.place(live(body, self.unread)), target)
            for n, (piece, body) in enumerate(statements.items())
        }
        self.steps = self._steps(parts)

    def _steps(self, parts: Sequence[Part]) -> list[DeviceStep]:
        return [self._step(part) for part in parts]

    def _step(self, part: Part) -> DeviceStep:
        match part:
            case Piece():
                return self.launches[part]
            case (control, bodies):
                return DeviceControl(control, tuple(map(self._steps, bodies)))
            case _:
                return part

    @property
    def source(self) -> str:
        """All kernels, as Python source, each with its grid."""
        return "\n\n".join(
            f"# {launch.blocks} blocks of {launch.threads} threads\n{kernel_text(launch.kernel)}"
            for launch in self.launches.values()
        )


def parts_of(items: Iterable[Item], mapping: Mapping, depth: int = 0) -> list[Part]:
    """The parts of a sequence of items within this many loops."""
    found: list[Part] = []
    pending: list[Item] = []
    for item in items:
        part = _part(item, mapping, depth)
        if part is None:
            pending.append(item)
        else:
            found += [*mapping.pieces(pending, depth), part]
            pending = []
    return [*found, *mapping.pieces(pending, depth)]


def _part(item: Item, mapping: Mapping, depth: int) -> Part | None:
    """What the host does for an item; None if kernels do all of it."""
    match item:
        case Product() | LibraryCall():
            return item
        case NestLoop():
            return _products(item, ())
        case _ if mapping.fits_a_block(item):
            return None
        case Switch() | SequentialFor() | SequentialWhile():
            return item, tuple(parts_of(body, mapping, depth + 1) for body in _bodies(item))
        case _:
            return None


def _products(item: Item, loops: tuple[NestLoop, ...]) -> Products | None:
    """A product in loops."""
    match item:
        case NestLoop(_, _, [inner]):
            return _products(inner, (*loops, item))
        case Product():
            return Products(loops, item)
        case _:
            return None


def _bodies(control: Control) -> tuple[Sequence[Item], ...]:
    if isinstance(control, Switch):
        return control.branches
    body = [*control.items, *control.updates]
    return (body,) if isinstance(control, SequentialFor) else (control.test, body, [control.count])


def pieces_of(parts: Iterable[Part]) -> Iterator[Piece]:
    """The pieces, in order."""
    for part in parts:
        if isinstance(part, Piece):
            yield part
        elif isinstance(part, tuple):
            for body in part[1]:
                yield from pieces_of(body)


def read_by_host(parts: Iterable[Part]) -> Iterator[Buffer]:
    """The buffers that must be arrays because the host or a library reads or writes them."""
    for part in parts:
        match part:
            case Product() | Products():
                product = part if isinstance(part, Product) else part.product
                yield from (matrix.buffer.root for matrix in (product.out, product.a, product.b))
            case LibraryCall():
                yield from (buffer.root for buffer in (*part.operands, *part.results))
            case (control, bodies):
                yield from (load.buffer.root for load in control.read)
                for body in bodies:
                    yield from read_by_host(body)
            case _:
                pass


def folds_in_parts(pieces: Iterable[Piece]) -> Iterator[Slot]:
    """The arrays for the parts of folds."""
    sizes = {array: size for piece in pieces if isinstance(piece, OnBlocks | Parts) for array, size in piece.partial}
    for array, size in sizes.items():
        assert isinstance(array.kind, Pointer)
        yield Slot(array.name, array.kind.dtype, size)


def launch(name: str, piece: Piece, statements: Sequence[Statement], target: Target) -> Launch:
    """The launch of a piece's statements, which are laid out in memory."""
    body = vectors(by_threads(statements) if piece.threads > 1 else statements)
    for statement in walk(body):
        for expression in (e for operand in operands(statement) for e in subexpressions(operand)):
            if isinstance(expression, Apply) and expression.operation.name not in target.instructions:
                raise LoweringError(f"{target.name} has no instructions for {expression.operation.name}")
    used = arrays_of(body)
    local = {STATUS.name, COUNTERS.name, *local_arrays([body])}
    arrays = [array for array in used if array.name not in local]
    parameters = (*arrays, *[COUNTERS] * (COUNTERS in used), *[STATUS] * (STATUS in used))
    return Launch(Kernel(name, parameters, body), piece.blocks, piece.threads)

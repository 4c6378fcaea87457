"""A lowered program as launches on a device, and the memory that they share.

    step ::= Launch | DeviceProducts(loops, product) | LibraryCall | DeviceControl(control, [[step]])

A host runs the steps in order. A launch is one kernel on a grid of blocks. Control flow with more than a block's work
inside is run by the host. Kernels note the counters of loops on the device, and where kernels can be guarded
(`guards.py`), what decides: branches are then launches like others, and the host asks from time to time whether a loop
has ended. Otherwise it reads back what decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeAlias

from fnad.errors import LoweringError
from fnad.kernel.barriers import is_shared_out
from fnad.kernel.chunk_kernels import arrays_of, local_arrays
from fnad.kernel.grid import Mapping
from fnad.kernel.guards import (
    GOES_ON,
    CounterGuard,
    after_test,
    before_test,
    choice,
    first_iteration,
    guarded,
    next_iteration,
)
from fnad.kernel.liveness import live
from fnad.kernel.pieces import FoldParts, OnBlocks, Piece, statements_of_piece
from fnad.kernel.plan import PlacedProgram
from fnad.kernel.python_source import kernel_text
from fnad.kernel.registers import vectors
from fnad.kernel.statements import COUNTERS, STATUS, Apply, Kernel, Statement, stores, walk
from fnad.kernel.strips import Strips, in_strips
from fnad.lower import loop_ir
from fnad.lower.allocation import Slot
from fnad.lower.interchange import products_apart
from fnad.lower.into_products import into_products
from fnad.lower.nodes import Buffer, BufferLoad
from fnad.lower.target import Target
from fnad.scalar.operation import Operation
from fnad.scalar.scipy_ufunc import UfuncOperation


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """A kernel on a grid.

    Its parameters are flat arrays in the device's memory, by the names of their places; `STATUS` is the last one if the
    kernel may report a fault, `COUNTERS` are those of the loops around it. So many blocks `together` wait for one
    another.
    """

    kernel: Kernel
    blocks: int
    threads: int
    together: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class DeviceProducts:
    """A matrix product in each iteration of loops, outer before inner, whose counters its offsets depend on."""

    loops: tuple[loop_ir.NestLoop, ...]
    product: loop_ir.Product


@dataclass(frozen=True, slots=True, eq=False)
class DeviceControl:
    """A loop or branches that the host runs; a `SequentialWhile` has its test, its body and what follows the loop.

    The counter of a loop is on the device: `begin` sets it, and `go_on` is launched after each iteration of a counted
    loop, or after each test of another one, where it notes at the place `guard` whether the loop goes on. If steps of
    such a loop are `guarded`, they may be run after its end.
    """

    control: loop_ir.Control
    bodies: tuple[list[DeviceStep], ...]
    begin: Launch | None = None
    go_on: Launch | None = None
    guard: int = 0
    is_guarded: bool = False


DeviceStep: TypeAlias = Launch | DeviceProducts | loop_ir.LibraryCall | DeviceControl
Part: TypeAlias = "Piece | DeviceProducts | loop_ir.LibraryCall | tuple[loop_ir.Control, tuple[list[Part], ...]]"

MOST_GUARDED = 16
"""The most launches in branches that are all launched: to wait for the device takes as long."""


class DevicePlan(PlacedProgram):
    """A program lowered for a device: its memory, and its launches before compilation."""

    def __init__(self, loops: loop_ir.LoopProgram, target: Target, donated: Sequence[int] = ()) -> None:
        self.target = target
        loops = into_products(loops, {loops.inputs[i] for i in donated})
        loops = replace(loops, items=tuple(in_strips(loops.items, target)))
        parts = parts_of(loops.items, Mapping(target))
        statements = {piece: statements_of_piece(piece, target) for piece in pieces_of(parts)}
        of_some = {array for body in statements.values() for array in stored_by_some(body)}
        numbers = (buffer for buffer in loops.temporaries if buffer.aval.size == 1)
        in_memory = {*read_by_host(parts), *(buffer for buffer in numbers if buffer.name in of_some)}
        super().__init__(loops, donated, list(statements), statements.values(), in_memory)
        self.slots += folds_in_parts(statements)
        self.launches: dict[object, Launch] = {}
        self.counters = 1 + max(
            [control.depth for item in loops.items for control in loop_ir.controls(item)], default=0
        )
        self._statements = {piece: self.layout.place(live(body, self.unread)) for piece, body in statements.items()}
        self._may_fail = any(STATUS in arrays_of(body) for body in self._statements.values())
        self._touched = Counter(buffer for item in loops.items for buffer in loop_ir.touched(item))
        self.steps = self._steps(parts, None)

    def _is_done(self, piece: Piece) -> bool:
        """True if a piece only copies elements to where they are, in the memory of arguments that are given away."""
        return bool(self.donations) and all(
            self._stays(effect) for item in piece.items for effect in loop_ir.effects(item)
        )

    def _stays(self, effect: loop_ir.Effect | loop_ir.Product | loop_ir.LibraryCall) -> bool:
        match effect:
            case loop_ir.BufferStore(buffer, address, BufferLoad(source, place)):
                here = self.donations.get(buffer.root)
                return here is not None and here is source.root and address == place
            case _:
                return False

    def _steps(self, parts: Sequence[Part], guard: CounterGuard | None) -> list[DeviceStep]:
        return [step for part in parts for step in self._of_part(part, guard)]

    def _of_part(self, part: Part, guard: CounterGuard | None) -> Iterator[DeviceStep]:
        match part:
            case Piece() if not arrays_of(self._statements[part]) or self._is_done(part):
                pass
            case Piece():
                body = vectors(part.shared_out(self._statements[part]))
                grid = part.blocks, part.threads, part.together
                yield self._launch(part, "launch", guarded(body, guard), *grid)
            case (loop_ir.Switch() as switch, branches) if is_guardable(part) and count(branches) <= MOST_GUARDED:
                place = self._next_counter()
                yield self._launch((switch, 0), "choice", self.layout.place(choice(switch, place, guard)))
                for n, branch in enumerate(branches):
                    yield from self._steps(branch, CounterGuard(place, n))
            case (loop_ir.SequentialFor() as loop, bodies):
                yield self._counted(loop, bodies, guard)
            case (loop_ir.SequentialWhile() as loop, bodies):
                yield self._endless(loop, bodies)
            case (control, bodies):
                yield DeviceControl(control, tuple(self._steps(body, guard) for body in bodies))
            case _:
                yield part

    def _counted(
        self, loop: loop_ir.SequentialFor, bodies: tuple[list[Part], ...], guard: CounterGuard | None
    ) -> DeviceControl:
        inner = tuple(self._steps(body, guard) for body in bodies)
        if not any(COUNTERS in launch.kernel.parameters for step in inner[0] for launch in launches_of(step)):
            return DeviceControl(loop, inner)
        begin = self._launch((loop, 0), "begin", self.layout.place(first_iteration(loop)))
        return DeviceControl(loop, inner, begin, self._launch((loop, 1), "next", next_iteration(loop)))

    def _endless(self, loop: loop_ir.SequentialWhile, bodies: tuple[list[Part], ...]) -> DeviceControl:
        place = self._next_counter()
        inside = Counter(loop_ir.touched(loop))
        own = {buffer for buffer in self.loops.temporaries if inside[buffer] == self._touched[buffer]}
        is_guarded = all(is_guardable(part, own, loop.depth) for body in bodies for part in body)
        guard = CounterGuard(place, GOES_ON) if is_guarded else None
        test, body, end = (self._steps(parts, g) for parts, g in zip(bodies, (guard, guard, None), strict=True))
        begin = self._launch((loop, 0), "begin", before_test(loop, place))
        found = self.layout.place(after_test(loop, place, may_fail=self._may_fail))
        return DeviceControl(
            loop, (test, body, end), begin, self._launch((loop, 1), "tested", found), place, is_guarded
        )

    def _next_counter(self) -> int:
        self.counters += 1
        return self.counters - 1

    def _launch(
        self, key: object, name: str, body: Sequence[Statement], blocks: int = 1, threads: int = 1, together: int = 1
    ) -> Launch:
        """A new launch of statements that are laid out in memory."""
        made = launch(f"{name}{len(self.launches)}", body, (blocks, threads, together), self.target)
        return self.launches.setdefault(key, made)

    @property
    def source(self) -> str:
        """All kernels, as Python source, each with its grid."""
        return "\n\n".join(
            f"# {launch.blocks} blocks of {launch.threads} threads\n{kernel_text(launch.kernel)}"
            for launch in self.launches.values()
        )


def is_guardable(part: Part, own: Collection[Buffer] = (), depth: int | None = None) -> bool:
    """True if kernels can see themselves that there is nothing to do.

    A product cannot. It does no harm if it alone has the buffer that it writes (`own`), and if it does not read at the
    counter of the loop at this depth, which may have gone on.
    """
    match part:
        case Piece():
            return True
        case DeviceProducts(_, product):
            matrices = product.out, product.a, product.b
            return product.out.buffer.root in own and not any(m.offset.reads(depth) for m in matrices)
        case (loop_ir.Switch(), branches):
            return count(branches) <= MOST_GUARDED and all(is_guardable(inner) for b in branches for inner in b)
        case (loop_ir.SequentialFor(_, int(extent)), (body,)):
            is_short = extent * count((body,)) <= MOST_GUARDED
            return is_short and all(is_guardable(inner, own, depth) for inner in body)
        case _:
            return False


def count(bodies: Iterable[Iterable[Part]]) -> int:
    """The number of parts, those of loops once."""
    return sum(1 + (count(part[1]) if isinstance(part, tuple) else 0) for body in bodies for part in body)


def launches_of(step: DeviceStep) -> Iterator[Launch]:
    """The launches in a step."""
    if isinstance(step, Launch):
        yield step
    elif isinstance(step, DeviceControl):
        yield from (launch for launch in (step.begin, step.go_on) if launch is not None)
        for body in step.bodies:
            for inner in body:
                yield from launches_of(inner)


def parts_of(items: Iterable[loop_ir.Item], mapping: Mapping, depth: int = 0) -> list[Part]:
    """The parts of a sequence of items within this many loops."""
    found: list[Part] = []
    pending: list[loop_ir.Item] = []
    for item in chain.from_iterable(map(products_apart, items)):
        part = _part(item, mapping, depth)
        if part is None:
            pending.append(item)
        else:
            found += [*mapping.pieces(pending, depth), part]
            pending = []
    return [*found, *mapping.pieces(pending, depth)]


def _part(item: loop_ir.Item, mapping: Mapping, depth: int) -> Part | None:
    """The host's part of an item; None if kernels do all of it."""
    match item:
        case loop_ir.LibraryCall():
            return item
        case loop_ir.NestLoop() | loop_ir.Product():
            return _products(item, ())
        case _ if mapping.fits_a_block(item) and not any(map(grows, loop_ir.controls(item))):
            return None
        case loop_ir.Switch() | loop_ir.SequentialFor() | loop_ir.SequentialWhile():
            return item, tuple(parts_of(body, mapping, depth + 1) for body in item.bodies)
        case _:
            return None


def grows(control: loop_ir.Control) -> bool:
    """True if a loop has residual stacks, whose memory the host brings."""
    return not isinstance(control, loop_ir.Switch) and bool(control.residual_stacks)


def _products(item: loop_ir.Item, loops: tuple[loop_ir.NestLoop, ...]) -> DeviceProducts | None:
    """A product in loops."""
    match item:
        case loop_ir.NestLoop(_, _, [inner]):
            return _products(inner, (*loops, item))
        case loop_ir.Product():
            return DeviceProducts(loops, item)
        case _:
            return None


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
            case DeviceProducts(_, product):
                yield from (matrix.buffer.root for matrix in (product.out, product.a, product.b))
            case loop_ir.LibraryCall():
                yield from (buffer.root for buffer in (*part.operands, *part.results))
            case (control, bodies):
                yield from (load.buffer.root for load in control.read)
                for body in bodies:
                    yield from read_by_host(body)
            case _:
                pass


def stored_by_some(statements: Sequence[Statement]) -> Iterator[str]:
    """The arrays that some threads of a block store into: in variables, others would not have what is in them."""
    for statement in statements:
        if is_shared_out(statement):
            yield from (store.array.name for store in stores([statement]))
        else:
            for body in statement.bodies:
                yield from stored_by_some(body)


def folds_in_parts(pieces: Iterable[Piece]) -> Iterator[Slot]:
    """The arrays for the parts of folds."""
    sizes = {
        array: size
        for piece in pieces
        if isinstance(piece, OnBlocks | FoldParts | Strips)
        for array, size in piece.partial
    }
    return (Slot(array.name, array.dtype, size) for array, size in sizes.items())


def known_as(operation: Operation) -> str:
    """The name of an operation as users know it: some are SciPy's functions, of which one may be private."""
    return f"scipy.special.{operation.ufunc.lstrip('_')}" if isinstance(operation, UfuncOperation) else operation.name


def launch(name: str, body: Sequence[Statement], grid: tuple[int, int, int], target: Target) -> Launch:
    """The launch of a kernel of statements, which are laid out in memory."""
    for statement in walk(body):
        for expression in statement.expressions():
            if isinstance(expression, Apply) and expression.operation.name not in target.instructions:
                raise LoweringError(f"{target.name} has no instructions for {known_as(expression.operation)}")
    used = arrays_of(body)
    local = {STATUS.name, COUNTERS.name, *local_arrays([body])}
    arrays = [array for array in used if array.name not in local]
    parameters = (*arrays, *[COUNTERS] * (COUNTERS in used), *[STATUS] * (STATUS in used))
    return Launch(Kernel(name, parameters, list(body)), *grid)

"""From loop nests to kernels: the statements of each iteration of a loop.

`KernelBuilder` writes loops, those of tasks and control flow. It has strategies for folds, for products
and for loops across tiles.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from math import prod

import numpy as np

from fnad.errors import LoweringError
from fnad.ir.types import BOOL
from fnad.kernel import statements as code
from fnad.kernel.accumulators import Accumulator
from fnad.kernel.across import Across
from fnad.kernel.folds import Folds
from fnad.kernel.interrupts import interrupt_period, stops, takes_long
from fnad.kernel.products import PARTS, Products, power_of_two
from fnad.kernel.residual_stack import NO_MEMORY
from fnad.kernel.routines import RESERVE, ROUTINES, STACK_ARRAYS, numbers_of
from fnad.kernel.writer import Writer, array_of, block_of, counter, end_of, local, plus
from fnad.lower import loop_ir, tiles
from fnad.lower.loop_ir import Control, Item, NestLoop
from fnad.lower.nodes import Buffer
from fnad.lower.parallel import (
    folds_in_memory,
    has_checks,
    has_independent_rows,
    is_parallel,
    local_buffers,
    nanoseconds,
    number_of_results,
    products_over,
    results_of,
    scattered,
)
from fnad.lower.rows import Row
from fnad.lower.target import Target
from fnad.scalar.operation import INDEX, Dtype, Pointer
from fnad.scalar.operations import LOGICAL_NOT, MIN

ROOM = 2**18
"""The most results that the tasks of a kernel have of their own for folds that accumulate in memory."""

FEWEST_TASKS = 8
"""The fewest tasks that a parallel loop is divided into; one with fewer iterations may have parallel loops inside."""


def statements_of(
    items: Sequence[Item], depth: int, stacks: Sequence[Buffer], rows: Mapping[Buffer, Row], target: Target
) -> list[code.Statement]:
    """The statements of items within `depth` levels of control flow."""
    builder = KernelBuilder(depth, stacks, rows, target)
    builder.items(items)
    return builder.finished()


ROWS = 8
"""The rows that are copied at once where a loop reads along columns: whole tasks have no rest."""


class KernelBuilder(Writer):
    """Writes the statements of one kernel."""

    def __init__(self, depth: int, stacks: Sequence[Buffer], rows: Mapping[Buffer, Row], target: Target) -> None:
        super().__init__(depth, rows, target)
        self.folds, self.products = self.strategy(), Products(self)
        self.across = Across(self, self.folds)
        self.stacks = stacks
        self.room = ROOM

    def strategy(self) -> Folds:
        """The strategy for folds."""
        return Folds(self)

    def finished(self) -> list[code.Statement]:
        """The statements; the strategies, which refer to the writer, are let go, so that it is freed at once."""
        del self.folds, self.products, self.across
        return self.body.statements

    # ---- items -------------------------------------------------------------------------------------------------------

    def items(self, items: Sequence[Item]) -> None:
        for item in items:
            self.item(item)

    def item(self, item: Item) -> None:
        match item:
            case NestLoop():
                self.loop(item)
            case loop_ir.Switch() | loop_ir.SequentialFor() | loop_ir.SequentialWhile():
                self.control(item)
            case loop_ir.Product():
                self.comment(item)
                self.products.whole(item)
            case loop_ir.LibraryCall():
                self.comment(item)
                self.call(item)
            case _:
                self.effect(item)

    def effect(self, item: loop_ir.Effect) -> None:
        self.comment(item)
        match item:
            case loop_ir.BufferStore():
                self.store(item, self.value(item.node))
            case loop_ir.Check():
                self.check(item)
            case loop_ir.Count():
                self.count(item)
            case loop_ir.Reduce():
                self.folds.reduce(item)
            case loop_ir.ArgReduce():
                self.folds.arg_reduce(item)
            case loop_ir.Scan():
                self.folds.running(item)
            case loop_ir.Update():
                self.combine(item)

    def check(self, check: loop_ir.Check) -> None:
        value = self.value(check.node)
        self.store(check, value)
        found = self.cast(value, INDEX)
        self.exit(
            found.differs(int(check.expected)),
            code.Store(code.STATUS, code.integer(0), code.integer(-1 - check.number)),
            code.Store(code.STATUS, code.integer(1), found),
            code.Return(),
        )

    def count(self, item: loop_ir.Count) -> None:
        """Count a step where another thread reads it, in any order: in two words of the status for each meter."""
        total, steps = self.value(item.node), code.integer(code.STATUS_SIZE + 2 * item.number)
        self.store(item, total)
        self.add(
            code.Store(code.STATUS, steps, code.Load(code.STATUS, steps) + 1),
            code.Store(code.STATUS, code.integer(code.STATUS_SIZE + 2 * item.number + 1), total),
        )

    def combine(self, effect: loop_ir.Update) -> None:
        value, old = self.value(effect.node), code.Load(*self.destination(effect))
        self.store(effect, self.step(effect.step, effect.buffer.dtype, old=old, new=value))

    def call(self, call: loop_ir.LibraryCall) -> None:
        """Call a routine on whole arrays; if it fails, the run ends."""
        if call.routine is None:
            raise LoweringError(f"{call.primitive.name} is called between kernels")
        buffers = (*call.operands, *call.results)
        options = [code.Constant(np.float64(number)) for number in call.routine.options]
        report = (code.STATUS, *map(code.integer, call.faults)) if call.faults else ()
        operands = (*map(array_of, buffers), *map(code.integer, numbers_of(call)), *options, *report)
        self.add(code.Evaluate(code.apply(ROUTINES[call.routine.name], *operands)))
        if call.faults:
            self.exit(code.Load(code.STATUS, code.integer(0)).differs(0), code.Return())

    # ---- loops -------------------------------------------------------------------------------------------------------

    def loop(self, loop: NestLoop) -> None:
        self.loops.append(loop)
        folds = [f for f in self.folds.below(loop) if f.start == loop.depth]
        self.folds.fill_memory(loop)
        for product in products_over(loop):
            if loop.depth == min(product.depths):
                self.products.clear(product)
        length = self.task_length(loop)
        if length is None:
            self.folds.open_all(folds)
            self.iterations(loop, *self.range_of(loop), is_cut=loop.span is not None)
        else:
            self.parallel_loop(loop, folds, length)
        self.loops.pop()
        for fold in folds:
            self.folds.close(fold)

    def range_of(self, loop: NestLoop) -> tuple[code.Expression, code.Expression]:
        """The first iteration of a loop, and the one behind the last."""
        if loop.span is None:
            return code.integer(0), code.integer(loop.extent)
        first, last = map(self.value, loop.span)
        return first, self.assign("v", last + 1)

    def iterations(self, loop: NestLoop, start: code.Expression, stop: code.Expression, *, is_cut: bool) -> None:
        """Write iterations of a loop; `is_cut` where they may end within a block of a sum."""
        block = self.folds.block_length(loop)
        self.add(*(local(array_of(buffer), row.size) for buffer, row in self.rows.items() if row.loop is loop))
        if loop.tile:
            self.tiled_loop(loop, start, stop)
        elif block and loop.expected > block:
            self.blocked_loop(loop, block, start, stop, is_cut=is_cut)
        else:
            self.plain_loop(loop, start, stop)

    def plain_loop(self, loop: NestLoop, start: code.Expression, stop: code.Expression) -> None:
        opened, kind = self.folds.closed_by(loop), code.LoopKind.PLAIN if loop.span is None else code.LoopKind.SPAN
        self.folds.begin_block(opened)
        with self.loop_over(counter(loop.depth), stop, start, kind=kind, level=True):
            self.items(loop.items)
        self.folds.end_block(opened)

    def blocked_loop(
        self, loop: NestLoop, length: int, start: code.Expression, stop: code.Expression, *, is_cut: bool
    ) -> None:
        outer = block_of(loop.depth)
        end = code.apply(MIN, outer + length, stop) if is_cut else end_of(outer, length, loop.extent)
        with self.loop_over(outer, stop, start, length):
            self.plain_loop(loop, outer, end)

    def tiled_loop(self, loop: NestLoop, start: code.Expression, stop: code.Expression) -> None:
        """Write a loop over tiles, in each of which one piece runs after the other."""
        first = block_of(loop.depth)
        with self.block(level=False) as body:
            end = self.assign("v", end_of(first, loop.tile, loop.extent))
            for piece in tiles.pieces(loop):
                if isinstance(piece, NestLoop) and piece.across:
                    self.across.loop(loop, piece, first, end)
                elif isinstance(piece, NestLoop):
                    self.plain_loop(piece, first, end)
                else:
                    self.products.of_tile(piece, loop, first, end)
        self.across.make_lanes()
        self.add(code.For(first, start, stop, loop.tile, body))

    # ---- parallel loops ----------------------------------------------------------------------------------------------

    def task_length(self, loop: NestLoop) -> int | None:
        """The number of iterations of a loop in each of the tasks that it is divided into; None if it is not.

        It does not depend on the number of threads, so that results do not.
        """
        costs, time = self.target.costs, nanoseconds(loop)
        if self.is_parallel or loop.span is not None or time < costs.parallel_nanoseconds or not is_parallel(loop):
            return None
        tasks = min(PARTS, max(1, int(time // costs.task_nanoseconds)))
        results = number_of_results(loop)
        if results:
            fitting = power_of_two(self.room // results) if results <= self.room else 0
            tasks = min(tasks, fitting, int(time / (costs.combine_nanoseconds * results)))
        for product in products_over(loop):
            tasks = min(tasks, tiles.PARTS, int(time / (costs.combine_nanoseconds * product.m * product.n)))
        if tasks < FEWEST_TASKS:
            return None
        length = -(-loop.extent // tasks)
        if loop.tile:
            length = -(-length // loop.tile) * loop.tile
        else:
            # Vectors and the blocks of sums begin where they do in the whole loop.
            has_vectors = not any(isinstance(item, NestLoop) for item in loop.items)
            rows = ROWS if 2 * length >= ROWS else 1
            block = self.folds.block_length(loop) or (costs.sum_block if has_vectors else rows)
            length = -(-length // block) * block
        return length if loop.extent > (FEWEST_TASKS - 1) * length else None

    def parallel_loop(self, loop: NestLoop, folds: Sequence[Accumulator], length: int) -> None:
        """Write a loop over tasks, each a part of the iterations, and combine the parts of the folds in order."""
        task, tasks = code.Name(f"p{loop.depth}", INDEX), -(-loop.extent // length)
        parts: list[code.Name] = []
        with self.block(level=False) as body, self.task(task, loop, parts):
            start = self.assign("v", task * length)
            own = self.own_results(loop, task, length)
            self.folds.open_all(folds)
            stop = self.assign("v", end_of(start, length, loop.extent))
            block = self.folds.block_length(loop)
            self.iterations(loop, start, stop, is_cut=block > 0 and length % block != 0)
            self.own.clear()
            self.products.sums.clear()
            for variable in chain.from_iterable(map(self.folds.variables, folds)):
                parts.append(self.part(variable.dtype))
                self.add(code.Store(parts[-1], task, variable))
        for part in parts:
            self.add(local(part, PARTS))
        for array, size in own:
            whole = 2 ** (tasks - 1).bit_length() * size  # so that sizes share code
            self.add(local(array, whole))
            self.room -= whole
        self.add(code.For(task, code.integer(0), code.integer(tasks), 1, body, code.LoopKind.PARALLEL))
        if any(isinstance(item, NestLoop) and takes_long(loop, item, self.target.costs) for item in loop.items):
            self.exit(code.Load(code.STATUS, code.integer(0)).equals(code.STOPPED), code.Return())
        self.combine_tasks(loop, folds, parts, tasks)
        self.combine_results(loop, own, tasks)

    @contextmanager
    def task(self, task: code.Name, loop: NestLoop, parts: list[code.Name]) -> Generator[None, None, None]:
        """Write a task, which keeps its fault among the parts, since the last one of the loop counts."""
        self.is_parallel = True
        if has_checks(loop):
            parts.append(self.part(INDEX))
            self.here.fault = parts[0], task
            self.add(code.Store(parts[0], task, code.integer(0)))
        yield
        self.is_parallel = False

    def part(self, dtype: Dtype) -> code.Name:
        return code.Name(f"part{next(self.numbers['part'])}", Pointer(dtype))

    def own_results(self, loop: NestLoop, task: code.Name, length: int) -> list[tuple[code.Name, int]]:
        """Give a task results of its own of the folds that accumulate in memory, filled: arrays, and how many each."""
        found: list[tuple[code.Name, int]] = []
        for effect, around in folds_in_memory(loop):
            index, size = results_of(loop, effect)
            found.append((self.part(self.folds.dtype_in_task(effect, loop, length)), size))
            self.own[effect] = found[-1][0], task * size, index
            self.folds.fill(effect, around)
        for buffer, updates in scattered(loop).items():
            array, size = self.part(buffer.dtype), buffer.aval.size
            found.append((array, size))
            start = self.assign("v", task * size)
            self.own |= {update: (array, start, update.address) for update in updates}
            zero = code.Constant(-buffer.dtype.type(0))  # -0.0: adding it changes no number
            with self.each_of(size) as element:
                self.add(code.Store(array, start + element, zero))
        for product in products_over(loop):
            assert product.parts is not None
            start = self.assign("v", task * (product.m * product.n))
            self.products.sums[product.out.buffer] = array_of(product.parts), start
            self.products.clear(product)
        return found

    def combine_tasks(
        self, loop: NestLoop, folds: Sequence[Accumulator], parts: Sequence[code.Name], tasks: int
    ) -> None:
        """Fold the parts of all tasks, from the first one to the last."""
        self.folds.open_all(folds)
        task = code.Name(f"q{loop.depth}", INDEX)
        with self.loop_over(task, tasks):
            remaining = iter(parts)
            if has_checks(loop):
                fault = self.assign("v", code.Load(next(remaining), task))
                self.exit(fault.differs(0), code.Store(code.STATUS, code.integer(0), fault))
            for fold in folds:
                values = [
                    self.assign("v", code.Load(part, task))
                    for part in islice(remaining, len(self.folds.variables(fold)))
                ]
                self.folds.fold_in_parts(fold, values)

    def combine_results(self, loop: NestLoop, own: Sequence[tuple[code.Name, int]], tasks: int) -> None:
        """Fold the results of all tasks, from the first one to the last."""
        task = code.Name(f"q{loop.depth}", INDEX)
        folds = folds_in_memory(loop)
        for (effect, around), (array, size) in zip(folds, own[: len(folds)], strict=True):
            with self.loop_over(task, tasks), self.in_loops(around):
                index, _ = results_of(loop, effect)
                self.folds.combine_in_memory(
                    effect, self.assign("v", code.Load(array, task * size + self.address(index)))
                )
        for buffer, (array, size) in zip(scattered(loop), own[len(folds) :], strict=True):
            with self.loop_over(task, tasks), self.each_of(size) as element:
                self.add_part(array_of(buffer), element, code.Load(array, task * size + element))
        for product in products_over(loop):
            assert product.parts is not None
            size = product.m * product.n
            with self.loop_over(task, tasks), self.each_of(size) as element:
                array, place = self.products.result_of(product)
                part = code.Load(array_of(product.parts), task * size + element)
                self.add_part(array, plus(element, place), part)

    def add_part(self, array: code.Name, place: code.Expression, part: code.Load) -> None:
        """Add an element of a task's own sums to that of all."""
        self.add(code.Store(array, place, code.Load(array, place) + part))

    # ---- control flow ------------------------------------------------------------------------------------------------

    def control(self, item: Control) -> None:
        match item:
            case loop_ir.Switch():
                self.choice(item)
            case loop_ir.SequentialFor():
                self.repeat(item)
            case loop_ir.SequentialWhile():
                self.endless(item)

    @contextmanager
    def level(self, depth: int) -> Generator[list[code.Statement], None, None]:
        """Write a block of control flow, a level of depth."""
        self.loops.append(NestLoop(depth, 0))
        with self.block() as body:
            yield body
        self.loops.pop()

    def choice(self, choice: loop_ir.Switch) -> None:
        """Write branches; what only a branch needs is computed inside it."""
        chosen, outside = self.value(choice.index), self.innermost_branch
        self.innermost_branch = len(self.blocks)
        bodies: list[list[code.Statement]] = []
        for branch in choice.branches:
            with self.level(choice.depth) as body:
                self.items(branch)
            bodies.append(body)
        self.innermost_branch = outside
        self.add(*by_number(chosen, bodies))

    def repeat(self, loop: loop_ir.SequentialFor) -> None:
        costs = self.target.costs
        if not self.is_parallel and nanoseconds(loop) >= costs.parallel_nanoseconds and has_independent_rows(loop):
            self.repeat_in_parallel(loop)
            return
        extent = code.integer(loop.extent) if isinstance(loop.extent, int) else self.value(loop.extent)
        for stack in loop.residual_stacks:
            self.reserve(stack, extent)
        body = self.iteration(loop)
        last = extent - 1 if not isinstance(loop.extent, int) else code.integer(loop.extent - 1)
        bounds = (last, code.integer(-1), -1) if loop.reverse else (code.integer(0), extent, 1)
        self.add(code.For(counter(loop.depth), *bounds, body))

    def iteration(self, loop: loop_ir.SequentialFor) -> list[code.Statement]:
        with self.level(loop.depth) as body:
            self.answer_interrupts(loop)
            self.items(loop.items)
            self.update(loop.updates)
        return body

    def repeat_in_parallel(self, loop: loop_ir.SequentialFor) -> None:
        """Write a loop whose iterations are independent as a loop over tasks, each with memory for its temporaries."""
        assert isinstance(loop.extent, int)
        task, length = code.Name(f"p{loop.depth}", INDEX), -(-loop.extent // PARTS)
        self.is_parallel = True
        with self.loop_over(task, -(-loop.extent // length), kind=code.LoopKind.PARALLEL):
            self.exit(code.Load(code.STATUS, code.integer(0)).differs(0), code.Return())
            whole = [buffer for buffer in local_buffers(loop) if buffer not in self.rows]
            self.add(*(local(array_of(buffer), buffer.aval.size) for buffer in whole))
            start = self.assign("v", task * length)
            stop = self.assign("v", end_of(start, length, loop.extent))
            self.add(code.For(counter(loop.depth), start, stop, 1, self.iteration(loop)))
        self.is_parallel = False
        self.exit(code.Load(code.STATUS, code.integer(0)).equals(code.STOPPED), code.Return())

    def endless(self, loop: loop_ir.SequentialWhile) -> None:
        iteration = counter(loop.depth)
        self.changing.add(iteration.name)
        self.add(code.Assign((iteration,), code.integer(0)))
        with self.level(loop.depth) as body:
            self.answer_interrupts(loop)
            if loop.may_fail:
                self.exit(code.Load(code.STATUS, code.integer(0)).differs(0), code.Return())
            self.items(loop.test)
            self.exit(code.apply(LOGICAL_NOT, self.value(loop.predicate)), code.Break())
            if loop.limit is not None:
                fault = code.Store(code.STATUS, code.integer(0), code.integer(loop.fault))
                self.exit(iteration.equals(loop.limit), fault, code.Return())
            for stack in loop.residual_stacks:
                self.reserve(stack, iteration + 1)
            self.items(loop.items)
            self.update(loop.updates)
            self.add(code.Assign((iteration,), iteration + 1))
        self.add(code.While(body))
        self.store(loop.count, iteration)

    def answer_interrupts(self, loop: loop_ir.SequentialFor | loop_ir.SequentialWhile) -> None:
        """In a loop that may run long, check for Ctrl-C every so often."""
        period = interrupt_period(loop, self.target.costs)
        if period is None:
            return
        mask, check = code.integer(period - 1), stops(self)
        if period > 1 and check:
            check = [code.If((counter(loop.depth) & mask).equals(mask), [*check])]
        self.add(*check)

    def reserve(self, stack: Buffer, rows: code.Expression) -> None:
        """Reserve room for this many rows; without memory for them the run ends."""
        number = code.integer(self.stacks.index(stack))
        row = code.integer(prod(stack.aval.shape[1:]) * stack.dtype.itemsize)
        has_room = code.apply(RESERVE, code.STACKS, number, rows, row)
        self.exit(
            code.apply(LOGICAL_NOT, has_room),
            code.Store(code.STATUS, code.integer(0), code.integer(NO_MEMORY)),
            code.Return(),
        )
        self.add(locate(stack, self.stacks))

    def update(self, updates: Sequence[loop_ir.BufferStore]) -> None:
        """Write all updates as one: all values are read before any is stored."""
        values = [self.value(update.node) for update in updates]
        for update, value in zip(updates, values, strict=True):
            if not loop_ir.is_there(update):
                self.store(update, value)


def by_number(chosen: code.Expression, bodies: Sequence[list[code.Statement]]) -> list[code.Statement]:
    """The branches by number: the first for False or a number below 1, the last for one too large."""
    first, *between, last = bodies
    if chosen.kind == BOOL:
        return [code.If(chosen, last, first)]
    dtype, rest = chosen.dtype, last
    for n in range(len(between), 0, -1):
        rest = list[code.Statement]([code.If(chosen.equals(code.Constant(dtype.type(n))), between[n - 1], rest)])
    return [code.If(chosen <= code.Constant(dtype.type(0)), first, rest)]


def locate(stack: Buffer, stacks: Sequence[Buffer]) -> code.Assign:
    """The statement that finds a residual stack, whose address changes as it grows."""
    number = code.integer(stacks.index(stack))
    return code.Assign((array_of(stack),), code.apply(STACK_ARRAYS[stack.dtype], code.STACKS, number))

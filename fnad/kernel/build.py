"""From loop nests to kernels: the statements of each iteration of a loop.

Every value gets its own variable, assigned once, in the block of the innermost loop that it varies in: what does not
vary in a loop is computed before it, since nodes know their depth. Within a branch everything is computed in the
branch. Memory is named after the buffers; `layout` maps them to arrays afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from itertools import chain, count, islice
from math import prod

import numpy as np

from fnad.errors import LoweringError
from fnad.ir.types import BOOL, Dtype
from fnad.kernel import accumulators
from fnad.kernel.accumulators import Accumulator
from fnad.kernel.interrupts import interrupt_period
from fnad.kernel.linalg import LINALG, stack_sizes
from fnad.kernel.residual_stack import NO_MEMORY
from fnad.kernel.routines import (
    COMPENSATED_ADD,
    GEMM,
    GEMV,
    INTERRUPTED,
    LOCAL_ARRAYS,
    RESERVE,
    STACK_ARRAYS,
)
from fnad.kernel.statements import (
    EXPRESSIONS,
    STACKS,
    STATUS,
    STOPPED,
    Assign,
    Break,
    Comment,
    Constant,
    Evaluate,
    Expression,
    For,
    If,
    Load,
    Name,
    Return,
    Statement,
    Store,
    While,
    apply,
    integer,
)
from fnad.lower import index as indices
from fnad.lower import loop_ir, nodes, tiles
from fnad.lower.index import Index
from fnad.lower.loop_ir import Control, Item, NestLoop
from fnad.lower.nodes import Buffer, Node, loaded
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
from fnad.records import dataclass
from fnad.scalar.operation import INDEX, Kind, Pointer
from fnad.scalar.operations import (
    ADD,
    AND,
    EQUAL,
    FLOOR_DIVIDE,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    LOGICAL_NOT,
    MIN,
    MULTIPLY,
    NEGATIVE,
    NOT_EQUAL,
    OR,
    REMAINDER,
    SELECT,
    SUBTRACT,
)
from fnad.scalar.template import cast_to, instantiate

PARTS = 64
"""The most tasks of a parallel loop."""

ROOM = 2**18
"""The most results that the tasks of a kernel have of their own for folds that accumulate in memory."""

FEWEST_TASKS = 8
"""The fewest tasks that a parallel loop is divided into; one with fewer iterations may have parallel loops inside."""


@dataclass(slots=True)
class Block:
    """The statements of a block, and the variables of the values computed in it."""

    parent: Block | None = None
    statements: list[Statement] = field(default_factory=list[Statement])
    names: dict[Node, Expression] = field(default_factory=dict[Node, Expression])

    def find(self, node: Node) -> Expression | None:
        """The variable that holds a value here."""
        block: Block | None = self
        while block is not None:
            name = block.names.get(node)
            if name is not None:
                return name
            block = block.parent
        return None


def statements_of(
    items: Sequence[Item], depth: int, stacks: Sequence[Buffer], rows: Mapping[Buffer, Row], target: Target
) -> list[Statement]:
    """The statements of items within `depth` levels of control flow."""
    builder = Builder(depth, stacks, rows, target)
    builder.items(items)
    return builder.body.statements


def array_of(buffer: Buffer) -> Name:
    """The memory of a buffer."""
    return Name(buffer.root.name, Pointer(buffer.dtype))


def counter(depth: int) -> Name:
    """The counter of the loop at a depth."""
    return Name(f"i{depth}", INDEX)


def block_of(depth: int) -> Name:
    """The first iteration of a block of the loop at a depth."""
    return Name(f"b{depth}", INDEX)


class Builder:
    """Writes the statements of one kernel, with a block per open loop in `blocks`."""

    def __init__(self, depth: int, stacks: Sequence[Buffer], rows: Mapping[Buffer, Row], target: Target) -> None:
        self.target = target
        self.stacks = stacks
        self.rows = rows
        self.body = Block()
        self.blocks = [self.body] * (depth + 1)
        self.loops = [NestLoop(d, 0) for d in range(depth)]
        self.folds: dict[accumulators.Folded, Name] = {}
        self.changing: set[str] = set()
        self.branches = 0
        self.innermost_branch = 0
        self.is_parallel = False
        self.status: tuple[Name, Expression] = STATUS, integer(0)
        self.room = ROOM
        self.own: dict[loop_ir.Effect, tuple[Name, Expression, Index]] = {}
        self.sums: dict[Buffer, tuple[Name, Expression]] = {}
        self._numbers = {prefix: count() for prefix in ("v", "acc", "k", "part")}
        self._source = ""

    def items(self, items: Sequence[Item]) -> None:
        for item in items:
            self.item(item)

    # ---- statements ----------------------------------------------------------------------------------------------

    @property
    def here(self) -> Block:
        return self.blocks[-1]

    def add(self, *statements: Statement) -> None:
        self.here.statements.extend(statements)

    def name(self, prefix: str, dtype: Dtype) -> Name:
        return Name(f"{prefix}{next(self._numbers[prefix])}", dtype)

    def assign(self, prefix: str, value: Expression) -> Name:
        """A new variable with this value."""
        assert isinstance(value.kind, np.dtype)
        name = self.name(prefix, value.kind)
        self.add(Assign((name,), value))
        return name

    def exit(self, condition: Expression, *statements: Statement) -> None:
        self.add(If(condition, list(statements)))

    @contextmanager
    def block(self, *, level: bool = True) -> Generator[list[Statement], None, None]:
        """Write a block, one level deeper if it is a loop's, which the caller adds to a statement."""
        outer, block = self.blocks, Block(self.here)
        self.blocks = [*outer, block] if level else [*outer[:-1], block]
        yield block.statements
        self.blocks = outer

    # ---- items ---------------------------------------------------------------------------------------------------

    def item(self, item: Item) -> None:
        match item:
            case NestLoop():
                self.loop(item)
            case loop_ir.Switch() | loop_ir.SequentialFor() | loop_ir.SequentialWhile():
                self.control(item)
            case loop_ir.Product():
                self.comment(item)
                self.product(item)
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
            case loop_ir.Reduce():
                self.reduce(item)
            case loop_ir.ArgReduce():
                self.arg_reduce(item)
            case loop_ir.Scan():
                self.running(item)
            case loop_ir.Update():
                self.combine(item)

    def comment(self, effect: loop_ir.Effect | loop_ir.Product | loop_ir.LibraryCall) -> None:
        text = str(effect.source) if effect.source is not None else ""
        if text and text != self._source:
            self.add(Comment(text))
        self._source = text

    def store(self, effect: loop_ir.Effect, value: Expression) -> None:
        """Store a value from a variable that is assigned only once, so that a later load can become that variable."""
        if not isinstance(value, Constant) and not (isinstance(value, Name) and value.name not in self.changing):
            value = self.assign("v", value)
        self.add(Store(*self.destination(effect), value))

    def load(self, buffer: Buffer, address: Index) -> Load:
        return Load(array_of(buffer), self.place(buffer, address))

    def check(self, check: loop_ir.Check) -> None:
        value = self.value(check.node)
        self.store(check, value)
        found = self.cast(value, INDEX)
        self.exit(
            apply(NOT_EQUAL, found, integer(int(check.expected))),
            Store(STATUS, integer(0), integer(-1 - check.number)),
            Store(STATUS, integer(1), found),
            Return(),
        )

    def combine(self, effect: loop_ir.Update) -> None:
        value, old = self.value(effect.node), Load(*self.destination(effect))
        self.store(effect, self.step(effect.step, effect.buffer.dtype, old=old, new=value))

    @staticmethod
    def step(template: str, dtype: Dtype, **operands: Expression) -> Expression:
        return instantiate(template, EXPRESSIONS, dtype, operands)

    @staticmethod
    def cast(value: Expression, dtype: Dtype) -> Expression:
        if value.kind == dtype:
            return value
        if isinstance(value, Constant):
            return Constant(cast_to(dtype).plain(value.value))
        return apply(cast_to(dtype), value)

    # ---- loops ---------------------------------------------------------------------------------------------------

    def loop(self, loop: NestLoop) -> None:
        self.loops.append(loop)
        folds = [f for f in self.folds_below(loop) if f.start == loop.depth]
        self.fill_accumulators_in_memory(loop)
        length = self.task_length(loop)
        if length is None:
            self.open_folds(folds)
            self.iterations(loop, folds, *self.range_of(loop), is_cut=loop.span is not None)
        else:
            self.parallel_loop(loop, folds, length)
        self.loops.pop()
        for fold in folds:
            self.close_fold(fold)

    def range_of(self, loop: NestLoop) -> tuple[Expression, Expression]:
        """The first iteration of a loop, and the one behind the last."""
        if loop.span is None:
            return integer(0), integer(loop.extent)
        first, last = map(self.value, loop.span)
        return first, self.assign("v", apply(ADD, last, integer(1)))

    def iterations(
        self, loop: NestLoop, folds: Sequence[Accumulator], start: Expression, stop: Expression, *, is_cut: bool
    ) -> None:
        """Write iterations of a loop; `is_cut` where they may end within a block of a sum."""
        block = self.target.costs.sum_block
        self.add(*(local(array_of(buffer), row.size) for buffer, row in self.rows.items() if row.loop is loop))
        if loop.tile:
            self.tiled_loop(loop, start, stop)
        elif loop.expected > block and any(f.compensated and f.depth == len(self.loops) for f in folds):
            self.blocked_loop(loop, block, start, stop, is_cut=is_cut)
        else:
            self.plain_loop(loop, start, stop)

    def folds_below(self, loop: NestLoop) -> list[Accumulator]:
        return accumulators.below(loop, self.loops, self.target.costs.sum_block)

    def plain_loop(self, loop: NestLoop, start: Expression, stop: Expression) -> None:
        opened = [f for f in self.folds_below(loop) if f.compensated and f.depth == len(self.loops)]
        for fold in opened:
            self.add(Assign((self.folds[fold.effect],), self.zero(fold)))
        with self.block() as body:
            self.items(loop.items)
        self.add(For(counter(loop.depth), start, stop, 1, body))
        for fold in opened:
            self.compensate(fold)

    def blocked_loop(self, loop: NestLoop, length: int, start: Expression, stop: Expression, *, is_cut: bool) -> None:
        outer = block_of(loop.depth)
        end = apply(MIN, apply(ADD, outer, integer(length)), stop) if is_cut else self.end(outer, length, loop.extent)
        with self.block(level=False) as body:
            self.plain_loop(loop, outer, end)
        self.add(For(outer, start, stop, length, body))

    def tiled_loop(self, loop: NestLoop, start: Expression, stop: Expression) -> None:
        """Write a loop over tiles, in each of which one piece runs after the other."""
        first = block_of(loop.depth)
        with self.block(level=False) as body:
            end = self.assign("v", self.end(first, loop.tile, loop.extent))
            for piece in tiles.pieces(loop):
                if isinstance(piece, NestLoop):
                    self.plain_loop(piece, first, end)
                else:
                    self.product_of_tile(piece, loop, first, end)
        self.add(For(first, start, stop, loop.tile, body))

    @staticmethod
    def end(start: Expression, length: int, extent: int) -> Expression:
        """Where a block of a loop ends."""
        end = apply(ADD, start, integer(length))
        return apply(MIN, end, integer(extent)) if extent % length != 0 else end

    # ---- parallel loops ------------------------------------------------------------------------------------------

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
        elif not any(isinstance(item, NestLoop) for item in loop.items):
            # Vectors and the blocks of sums begin where they do in the whole loop.
            length = -(-length // costs.sum_block) * costs.sum_block
        return length if loop.extent > (FEWEST_TASKS - 1) * length else None

    def parallel_loop(self, loop: NestLoop, folds: Sequence[Accumulator], length: int) -> None:
        """Write a loop over tasks, each a part of the iterations, and combine the parts of the folds in order."""
        task, tasks = Name(f"p{loop.depth}", INDEX), -(-loop.extent // length)
        parts: list[Name] = []
        with self.block(level=False) as body, self.task(task, loop, parts):
            start = self.assign("v", apply(MULTIPLY, task, integer(length)))
            own = self.own_results(loop, task)
            self.open_folds(folds)
            stop = self.assign("v", self.end(start, length, loop.extent))
            self.iterations(loop, folds, start, stop, is_cut=length % self.target.costs.sum_block != 0)
            self.own.clear()
            self.sums.clear()
            for variable in chain.from_iterable(map(self.variables, folds)):
                parts.append(self.part(variable.kind))
                self.add(Store(parts[-1], task, variable))
        for part in parts:
            self.add(local(part, PARTS))
        for array, size in own:
            whole = 2 ** (tasks - 1).bit_length() * size  # so that sizes share code
            self.add(local(array, whole))
            self.room -= whole
        self.add(For(task, integer(0), integer(tasks), 1, body, parallel=True))
        self.combine_tasks(loop, folds, parts, tasks)
        self.combine_results(loop, own, tasks)

    def own_results(self, loop: NestLoop, task: Name) -> list[tuple[Name, int]]:
        """Give a task results of its own of the folds that accumulate in memory, filled: arrays, and how many each."""
        found: list[tuple[Name, int]] = []
        for effect, around in folds_in_memory(loop):
            index, size = results_of(loop, effect)
            found.append((self.part(effect.buffer.dtype), size))
            self.own[effect] = found[-1][0], apply(MULTIPLY, task, integer(size)), index
            self.fill(effect, around)
        for buffer, updates in scattered(loop).items():
            array, size = self.part(buffer.dtype), buffer.aval.size
            found.append((array, size))
            start = self.assign("v", apply(MULTIPLY, task, integer(size)))
            self.own |= {update: (array, start, update.address) for update in updates}
            zero = Constant(-buffer.dtype.type(0))  # -0.0, to which any number may be added and stays what it is
            self.each_of(
                size, lambda e, array=array, start=start, zero=zero: self.add(Store(array, apply(ADD, start, e), zero))
            )
        for product in products_over(loop):
            assert product.parts is not None
            start = self.assign("v", apply(MULTIPLY, task, integer(product.m * product.n)))
            self.sums[product.out.buffer] = array_of(product.parts), start
            self.clear(product)
        return found

    def combine_results(self, loop: NestLoop, own: Sequence[tuple[Name, int]], tasks: int) -> None:
        """Fold the results of all tasks, from the first one to the last."""
        task = Name(f"q{loop.depth}", INDEX)
        folds = folds_in_memory(loop)
        for (effect, around), (array, size) in zip(folds, own[: len(folds)], strict=True):
            start = apply(MULTIPLY, task, integer(size))
            with self.block(level=False) as body:
                self.in_loops(around, partial(self.combine_result, loop, effect, array, start))
            self.add(For(task, integer(0), integer(tasks), 1, body))
        for buffer, (array, size) in zip(scattered(loop), own[len(folds) :], strict=True):
            with self.block(level=False) as body:
                self.each_of(
                    size, partial(self.combine_sum, array_of(buffer), array, apply(MULTIPLY, task, integer(size)))
                )
            self.add(For(task, integer(0), integer(tasks), 1, body))
        for product in products_over(loop):
            with self.block(level=False) as body:
                self.each_element(product, partial(self.combine_product, product, task))
            self.add(For(task, integer(0), integer(tasks), 1, body))

    def combine_sum(self, target: Name, array: Name, start: Expression, element: Name) -> None:
        """Add an element of a task's own sums to that of all."""
        part = Load(array, apply(ADD, start, element))
        self.add(Store(target, element, apply(ADD, Load(target, element), part)))

    def combine_product(self, product: loop_ir.Product, task: Name, element: Name) -> None:
        assert product.parts is not None
        array, place = self.result_of(product)
        place = plus(element, place)
        part = apply(ADD, apply(MULTIPLY, task, integer(product.m * product.n)), element)
        self.add(Store(array, place, apply(ADD, Load(array, place), Load(array_of(product.parts), part))))

    def combine_result(self, loop: NestLoop, effect: loop_ir.Reduce, array: Name, start: Expression) -> None:
        index, _ = results_of(loop, effect)
        self.combine_in_memory(effect, self.assign("v", Load(array, apply(ADD, start, self.address(index)))))

    @contextmanager
    def task(self, task: Name, loop: NestLoop, parts: list[Name]) -> Generator[None, None, None]:
        """Write a task, which keeps its fault among the parts, since the last one of the loop counts."""
        self.is_parallel = True
        if has_checks(loop):
            parts.append(self.part(INDEX))
            self.status = parts[0], task
            self.add(Store(parts[0], task, integer(0)))
        yield
        self.is_parallel, self.status = False, (STATUS, integer(0))

    def part(self, kind: Kind) -> Name:
        assert isinstance(kind, np.dtype)
        return Name(f"part{next(self._numbers['part'])}", Pointer(kind))

    def combine_tasks(self, loop: NestLoop, folds: Sequence[Accumulator], parts: Sequence[Name], tasks: int) -> None:
        """Fold the parts of all tasks, from the first one to the last."""
        self.open_folds(folds)
        task = Name(f"q{loop.depth}", INDEX)
        with self.block(level=False) as body:
            remaining = iter(parts)
            if has_checks(loop):
                fault = self.assign("v", Load(next(remaining), task))
                self.exit(apply(NOT_EQUAL, fault, integer(0)), Store(STATUS, integer(0), fault))
            for fold in folds:
                values = [self.assign("v", Load(part, task)) for part in islice(remaining, len(self.variables(fold)))]
                self.combine_parts(fold, values)
        if body:
            self.add(For(task, integer(0), integer(tasks), 1, body))

    def combine_parts(self, fold: Accumulator, parts: Sequence[Name]) -> None:
        assert isinstance(fold.effect, loop_ir.Reduce)
        if fold.compensated:
            total, rest = self.parts(fold)
            self.add(Assign((total, rest), apply(COMPENSATED_ADD, total, rest, parts[0])))
            self.add(Assign((rest,), apply(ADD, rest, parts[1])))
        else:
            name = self.folds[fold.effect]
            self.add(Assign((name,), self.folded(fold.effect, name, parts[0])))

    def variables(self, fold: Accumulator) -> tuple[Name, ...]:
        """The variables that hold what was folded so far."""
        return self.parts(fold) if fold.compensated else (self.folds[fold.effect],)

    # ---- folds ---------------------------------------------------------------------------------------------------

    def zero(self, fold: Accumulator) -> Constant:
        effect = fold.effect
        return Constant(effect.buffer.dtype.type(0) if isinstance(effect, loop_ir.Scan) else effect.init)

    def parts(self, fold: Accumulator) -> tuple[Name, Name]:
        """The variables of the sum of the previous blocks and of its rounding error."""
        acc = self.folds[fold.effect]
        return Name(f"{acc.name}_total", acc.kind), Name(f"{acc.name}_rest", acc.kind)

    def best(self, effect: loop_ir.ArgReduce) -> Name:
        return Name(f"{self.folds[effect].name}_best", effect.node.dtype)

    def open_folds(self, folds: Sequence[Accumulator]) -> None:
        for fold in folds:
            self.open_fold(fold)

    def open_fold(self, fold: Accumulator) -> None:
        effect, zero = fold.effect, self.zero(fold)
        position = isinstance(effect, loop_ir.ArgReduce)
        name = self.folds[effect] = self.name("acc", INDEX if position else zero.value.dtype)
        self.changing.add(name.name)
        if fold.compensated:
            self.add(*(Assign((part,), zero) for part in self.parts(fold)))
        elif isinstance(effect, loop_ir.ArgReduce):
            self.add(Assign((name,), integer(0)), Assign((self.best(effect),), zero))
        else:
            self.add(Assign((name,), zero))

    def compensate(self, fold: Accumulator) -> None:
        total, rest = self.parts(fold)
        self.add(Assign((total, rest), apply(COMPENSATED_ADD, total, rest, self.folds[fold.effect])))

    def close_fold(self, fold: Accumulator) -> None:
        effect, value = fold.effect, self.folds[fold.effect]
        if isinstance(effect, loop_ir.Scan):
            return
        result: Expression = apply(ADD, *self.parts(fold)) if fold.compensated else value
        if isinstance(effect, loop_ir.Reduce) and fold.start != min(effect.depths):
            self.combine_in_memory(effect, result)
        else:
            self.store(effect, self.cast(result, effect.buffer.dtype))

    def reduce(self, effect: loop_ir.Reduce) -> None:
        element = self.cast(self.value(effect.node), effect.dtype)
        if not effect.depths:
            folded = self.folded(effect, Constant(effect.init), element)
            self.store(effect, self.cast(folded, effect.buffer.dtype))
        elif len(self.loops) - 1 in effect.depths:
            name = self.folds[effect]
            self.add(Assign((name,), self.folded(effect, name, element)))
        else:
            self.combine_in_memory(effect, element)

    def combine_in_memory(self, effect: loop_ir.Reduce, value: Expression) -> None:
        self.store(effect, self.folded(effect, Load(*self.destination(effect)), value))

    def destination(self, effect: loop_ir.Effect) -> tuple[Name, Expression]:
        """Where an effect writes: a fold of a parallel loop among the task's own results."""
        if effect not in self.own:
            return array_of(effect.buffer), self.place(effect.buffer, effect.address)
        array, start, index = self.own[effect]
        return array, apply(ADD, start, self.address(index))

    def folded(self, effect: loop_ir.Reduce | loop_ir.Scan, acc: Expression, value: Expression) -> Expression:
        assert isinstance(acc.kind, np.dtype)
        return self.step(effect.step, acc.kind, **{"acc": acc, "0": value})

    def fill_accumulators_in_memory(self, loop: NestLoop) -> None:
        """Before the outermost loop of a fold that accumulates in memory, store its initial value there."""
        for effect, around in accumulators.effects_in_loops(loop, self.loops):
            if not isinstance(effect, loop_ir.Reduce) or loop.depth != min(effect.depths, default=-1):
                continue
            if accumulators.first_loop(effect, len(around)) != loop.depth:
                self.fill(effect, [inner for inner in around[len(self.loops) :] if inner.depth not in effect.depths])
        for product in products_over(loop):
            if loop.depth == min(product.depths):
                self.clear(product)

    def clear(self, product: loop_ir.Product) -> None:
        """Store zeros where products are summed."""
        array, place = self.result_of(product)
        zero = Constant(product.out.buffer.dtype.type(0))
        self.each_element(product, lambda element: self.add(Store(array, plus(element, place), zero)))

    def result_of(self, product: loop_ir.Product) -> tuple[Name, Expression]:
        """Where the result of a product begins: a task has sums of its own."""
        out = product.out
        return self.sums.get(out.buffer) or (array_of(out.buffer), self.place(out.buffer, out.offset))

    def each_element(self, product: loop_ir.Product, write: Callable[[Name], None]) -> None:
        """Write a loop over the elements of a product's result, which lie together."""
        self.each_of(product.m * product.n, write)

    def each_of(self, count: int, write: Callable[[Name], None]) -> None:
        """Write a loop over the numbers up to a count."""
        element = Name("e", INDEX)
        with self.block(level=False) as body:
            write(element)
        self.add(For(element, integer(0), integer(count), 1, body))

    def fill(self, effect: loop_ir.Reduce, around: Sequence[NestLoop]) -> None:
        self.in_loops(around, lambda: self.store(effect, Constant(effect.init)))

    def in_loops(self, loops: Sequence[NestLoop], write: Callable[[], None]) -> None:
        """Write loops around what `write` writes."""
        if not loops:
            write()
            return
        with self.block(level=False) as body:
            self.in_loops(loops[1:], write)
        self.add(For(counter(loops[0].depth), integer(0), integer(loops[0].extent), 1, body))

    def arg_reduce(self, effect: loop_ir.ArgReduce) -> None:
        position, best = self.folds[effect], self.best(effect)
        value = self.value(effect.node)
        better = self.assign("v", self.step(effect.better, BOOL, **{"0": value, "best": best}))
        self.add(
            Assign((position,), self.select(better, counter(self.loops[-1].depth), position)),
            Assign((best,), self.select(better, value, best)),
        )

    @staticmethod
    def select(condition: Expression, a: Expression, b: Expression) -> Expression:
        return apply(SELECT, condition, a, b)

    def running(self, effect: loop_ir.Scan) -> None:
        name, value = self.folds[effect], self.value(effect.node)
        is_first = apply(EQUAL, counter(self.loops[-1].depth), integer(0))
        self.add(Assign((name,), self.select(is_first, value, self.folded(effect, name, value))))
        self.store(effect, name)

    # ---- control flow --------------------------------------------------------------------------------------------

    def control(self, item: Control) -> None:
        match item:
            case loop_ir.Switch():
                self.choice(item)
            case loop_ir.SequentialFor():
                self.repeat(item)
            case loop_ir.SequentialWhile():
                self.endless(item)

    @contextmanager
    def level(self, depth: int) -> Generator[list[Statement], None, None]:
        """Write a block of control flow, a level of depth."""
        self.loops.append(NestLoop(depth, 0))
        with self.block() as body:
            yield body
        self.loops.pop()

    def choice(self, choice: loop_ir.Switch) -> None:
        """Write branches; what only a branch needs is computed inside it."""
        chosen, outside = self.value(choice.index), self.innermost_branch
        self.innermost_branch = len(self.blocks)
        bodies: list[list[Statement]] = []
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
        extent = integer(loop.extent) if isinstance(loop.extent, int) else self.value(loop.extent)
        for stack in loop.residual_stacks:
            self.reserve(stack, extent)
        body = self.iteration(loop)
        last = apply(SUBTRACT, extent, integer(1)) if not isinstance(loop.extent, int) else integer(loop.extent - 1)
        bounds = (last, integer(-1), -1) if loop.reverse else (integer(0), extent, 1)
        self.add(For(counter(loop.depth), *bounds, body))

    def iteration(self, loop: loop_ir.SequentialFor) -> list[Statement]:
        with self.level(loop.depth) as body:
            self.answer_interrupts(loop)
            self.items(loop.items)
            self.update(loop.updates)
        return body

    def repeat_in_parallel(self, loop: loop_ir.SequentialFor) -> None:
        """Write a loop whose iterations are independent as a loop over tasks, each with memory for its temporaries."""
        assert isinstance(loop.extent, int)
        task, length = Name(f"p{loop.depth}", INDEX), -(-loop.extent // PARTS)
        self.is_parallel = True
        with self.block(level=False) as body:
            self.exit(apply(NOT_EQUAL, Load(STATUS, integer(0)), integer(0)), Return())
            whole = [buffer for buffer in local_buffers(loop) if buffer not in self.rows]
            self.add(*(local(array_of(buffer), buffer.aval.size) for buffer in whole))
            start = self.assign("v", apply(MULTIPLY, task, integer(length)))
            stop = self.assign("v", self.end(start, length, loop.extent))
            self.add(For(counter(loop.depth), start, stop, 1, self.iteration(loop)))
        self.is_parallel = False
        self.add(For(task, integer(0), integer(-(-loop.extent // length)), 1, body, parallel=True))
        self.exit(apply(EQUAL, Load(STATUS, integer(0)), integer(STOPPED)), Return())

    def endless(self, loop: loop_ir.SequentialWhile) -> None:
        iteration = counter(loop.depth)
        self.changing.add(iteration.name)
        self.add(Assign((iteration,), integer(0)))
        with self.level(loop.depth) as body:
            self.answer_interrupts(loop)
            if loop.may_fail:
                self.exit(apply(NOT_EQUAL, Load(STATUS, integer(0)), integer(0)), Return())
            self.items(loop.test)
            self.exit(apply(LOGICAL_NOT, self.value(loop.predicate)), Break())
            if loop.limit is not None:
                fault = Store(STATUS, integer(0), integer(loop.fault))
                self.exit(apply(EQUAL, iteration, integer(loop.limit)), fault, Return())
            for stack in loop.residual_stacks:
                self.reserve(stack, apply(ADD, iteration, integer(1)))
            self.items(loop.items)
            self.update(loop.updates)
            self.add(Assign((iteration,), apply(ADD, iteration, integer(1))))
        self.add(While(body))
        self.store(loop.count, iteration)

    def answer_interrupts(self, loop: loop_ir.SequentialFor | loop_ir.SequentialWhile) -> None:
        """In a loop that may run long, check for Ctrl-C every so often."""
        period = interrupt_period(loop, self.target.costs)
        if period is None or INTERRUPTED.name not in self.target.instructions:
            return
        stop = self.stop_in_task() if self.is_parallel else If(apply(INTERRUPTED), [Return()])
        if period > 1:
            mask = integer(period - 1)
            stop = If(apply(EQUAL, apply(AND, counter(loop.depth), mask), mask), [stop])
        self.add(stop)

    @staticmethod
    def stop_in_task() -> If:
        """The statement that ends a task of a parallel loop if this thread or another one was interrupted."""
        stops = apply(OR, apply(INTERRUPTED), apply(NOT_EQUAL, Load(STATUS, integer(0)), integer(0)))
        return If(stops, [Store(STATUS, integer(0), integer(STOPPED)), Return()])

    def reserve(self, stack: Buffer, rows: Expression) -> None:
        """Reserve room for this many rows; without memory for them the run ends."""
        number = integer(self.stacks.index(stack))
        row = integer(prod(stack.aval.shape[1:]) * stack.dtype.itemsize)
        has_room = apply(RESERVE, STACKS, number, rows, row)
        self.exit(apply(LOGICAL_NOT, has_room), Store(STATUS, integer(0), integer(NO_MEMORY)), Return())
        self.add(locate(stack, self.stacks))

    def update(self, updates: Sequence[loop_ir.BufferStore]) -> None:
        """Write all updates as one: all values are read before any is stored."""
        values = [self.value(update.node) for update in updates]
        for update, value in zip(updates, values, strict=True):
            if not (isinstance(update.node, nodes.BufferLoad) and _is_same_place(update, update.node)):
                self.store(update, value)

    # ---- products ------------------------------------------------------------------------------------------------

    def product(self, product: loop_ir.Product) -> None:
        """Write a matrix product; a large one in tasks, each a part of the result."""
        rows, columns = pieces(product)
        zero, (m, n, k) = integer(0), map(integer, (product.m, product.n, product.k))
        if self.is_parallel or rows * columns == 1:
            self.part_of_product(product, Part((zero, zero, zero), (m, n, k)))
            return
        task = Name(f"p{len(self.loops)}", INDEX)
        with self.block(level=False) as body:
            row, m = self.stretch(apply(FLOOR_DIVIDE, task, integer(columns)), product.m, rows)
            column, n = self.stretch(apply(REMAINDER, task, integer(columns)), product.n, columns)
            self.part_of_product(product, Part((row, column, zero), (m, n, k)))
        self.add(For(task, integer(0), integer(rows * columns), 1, body, parallel=True))

    def stretch(self, number: Expression, extent: int, parts: int) -> tuple[Expression, Expression]:
        """The start and the length of one of the parts of an extent; the last one may be shorter."""
        length = -(-extent // parts)
        start = self.assign("v", apply(MULTIPLY, integer(length), number))
        return start, self.assign("v", apply(SUBTRACT, self.end(start, length, extent), start))

    def product_of_tile(self, product: loop_ir.Product, loop: NestLoop, start: Expression, stop: Expression) -> None:
        """Write a product for the iterations of a tile: for their rows, or their terms, which are added up."""
        self.comment(product)
        kept = frozenset(buffer for buffer, row in self.rows.items() if row.loop is loop)
        length: Expression = self.assign("v", apply(SUBTRACT, stop, start))
        is_sum, whole, zero = loop.depth in product.depths, tiles.widened(product, loop), integer(0)
        each = product.k if is_sum else product.m
        first, size = (apply(MULTIPLY, integer(each), x) if each > 1 else x for x in (start, length))
        if is_sum:
            part = Part((zero, zero, first), (integer(whole.m), integer(whole.n), size), kept)
        else:
            part = Part((first, zero, zero), (size, integer(whole.n), integer(whole.k)), kept)
        self.part_of_product(whole, part, beta=int(bool(product.depths)))

    def part_of_product(self, product: loop_ir.Product, part: Part, beta: int = 0) -> None:
        """Write a part of a product, added to `beta` times what is there."""
        out, a, b = product.out, product.a, product.b
        (row, column, term), (m, n, k) = part.first, part.size
        dtype = out.buffer.dtype
        scales = Constant(dtype.type(1)), Constant(dtype.type(beta))
        left = part.moved(a, self.matrix(a), row, term)
        right = part.moved(b, self.matrix(b), term, column)
        target = part.moved(out, self.result_of(product), row, column)
        if product.n == 1:
            call = apply(GEMV, *left, *right[:2], integer(b.row_stride), *target, m, k, *scales)
        elif product.m == 1:
            transposed = loop_ir.Matrix(b.buffer, b.offset, b.column_stride, b.row_stride)
            matrix = part.moved(transposed, self.matrix(transposed), column, term)
            call = apply(GEMV, *matrix, *left[:2], integer(a.column_stride), *target, n, k, *scales)
        else:
            call = apply(GEMM, *left, *right, *target, integer(out.row_stride), m, n, k, *scales)
        self.add(Evaluate(call))

    def call(self, call: loop_ir.LibraryCall) -> None:
        """Call a routine on whole arrays; if it fails, the run ends."""
        if call.routine is None:
            raise LoweringError(f"{call.primitive.name} is called between kernels")
        buffers = (*call.operands, *call.results)
        shapes = [buffer.aval.shape for buffer in buffers]
        count, sizes = stack_sizes(call.routine.name, shapes)
        arrays = map(array_of, buffers)
        numbers = map(integer, (count, *sizes))
        options = [Constant(np.float64(number)) for number in call.routine.options]
        report = (STATUS, *map(integer, call.faults)) if call.faults else ()
        self.add(Evaluate(apply(LINALG[call.routine.name], *arrays, *numbers, *options, *report)))
        if call.faults:
            self.exit(apply(NOT_EQUAL, Load(STATUS, integer(0)), integer(0)), Return())

    def matrix(self, matrix: loop_ir.Matrix) -> tuple[Expression, ...]:
        transposed = matrix.column_stride != 1
        leading = matrix.column_stride if transposed else matrix.row_stride
        flag = Constant(BOOL.type(transposed))
        return array_of(matrix.buffer), self.place(matrix.buffer, matrix.offset), integer(leading), flag

    # ---- expressions ---------------------------------------------------------------------------------------------

    def value(self, node: Node) -> Expression:
        """The constant or the variable of a value."""
        if isinstance(node, nodes.ScalarConstant):
            return Constant(node.value)
        found = self.here.find(node)
        if found is not None:
            return found
        inner, home = self.blocks, self.home(node)
        self.blocks = inner[: inner.index(home) + 1]
        name = self.here.names[node] = self.computed(node)
        self.blocks = inner
        return name

    def home(self, node: Node) -> Block:
        """The block for a node: that of the innermost loop it varies in; inside a branch, the branch's."""
        if self.branches:
            return self.here
        return self.blocks[max(self.innermost_branch, min(node.depth, len(self.blocks) - 1))]

    def computed(self, node: Node) -> Expression:
        match node:
            case nodes.BufferLoad(buffer, address, _):
                return self.assign("v", self.load(buffer, address))
            case nodes.ScalarOperation(operation, operands, _, _):
                return self.assign("v", apply(operation, *map(self.value, operands)))
            case nodes.IndexValue(index, dtype, _):
                return self.assign("v", self.cast(self.address(index), dtype))
            case nodes.Branch():
                return self.branch(node)
            case nodes.Checked():
                return self.checked(node)
            case nodes.ScalarConstant():
                raise AssertionError("constants need no variable")

    def branch(self, node: nodes.Branch) -> Name:
        name = self.name("v", node.dtype)
        self.changing.add(name.name)
        condition = self.conditions(node.conditions)
        bodies: list[list[Statement]] = []
        for value in (node.inside, node.outside):
            self.branches += 1
            with self.block() as body:
                self.add(Assign((name,), self.value(value)))
            self.branches -= 1
            bodies.append(body)
        self.add(If(condition, *bodies))
        return name

    def checked(self, node: nodes.Checked) -> Name:
        name = self.assign("k", self.value(node.operand))
        self.changing.add(name.name)
        out = apply(OR, apply(LESS, name, integer(0)), apply(GREATER_EQUAL, name, integer(node.extent)))
        self.exit(out, Store(*self.status, integer(node.fault)), Assign((name,), integer(0)))
        return name

    def conditions(self, conditions: Sequence[nodes.Condition]) -> Expression:
        """The conjunction of conditions, without the bounds that always hold."""
        found: list[Expression] = []
        for index, low, high in conditions:
            (least, greatest), number = index.range, self.address(index)
            found += [apply(GREATER_EQUAL, number, integer(low))] if least < low else []
            found += [apply(LESS, number, integer(high))] if greatest >= high else []
        result, *others = found
        for other in others:
            result = apply(AND, result, other)
        return result

    # ---- addresses -----------------------------------------------------------------------------------------------

    def place(self, buffer: Buffer, address: Index) -> Expression:
        """An address in the memory of a buffer, of which there may be a row or a tile only."""
        row = self.rows.get(buffer.root)
        if row is None:
            return self.address(address)
        found, stride = self.address(row.place(address)), row.stride(address)
        if not stride:
            return found
        number = apply(SUBTRACT, counter(row.loop.depth), block_of(row.loop.depth))
        return plus(number if stride == 1 else apply(MULTIPLY, integer(stride), number), found)

    def address(self, index: Index) -> Expression:
        """An index as an expression."""
        return _sum(index, {node: self.value(node) for node in loaded(index)})


def plus(a: Expression, b: Expression) -> Expression:
    """A sum, unless the second number is 0."""
    return a if isinstance(b, Constant) and not b.value else apply(ADD, a, b)


def _sum(index: Index, names: dict[Node, Expression]) -> Expression:
    total: Expression | None = None
    for atom, coefficient in index.terms:
        term, size = _atom(atom, names), abs(coefficient)
        if size != 1:
            term = apply(MULTIPLY, integer(size), term)
        if total is None:
            total = apply(NEGATIVE, term) if coefficient < 0 else term
        else:
            total = apply(SUBTRACT if coefficient < 0 else ADD, total, term)
    if total is None:
        return integer(index.constant)
    if index.constant == 0:
        return total
    return apply(SUBTRACT if index.constant < 0 else ADD, total, integer(abs(index.constant)))


def _atom(atom: indices.Atom, names: dict[Node, Expression]) -> Expression:
    match atom:
        case indices.Counter(depth, _):
            return counter(depth)
        case indices.Loaded(node, _):
            return names[node]
        case indices.Quotient(dividend, divisor):
            return apply(FLOOR_DIVIDE, _sum(dividend, names), integer(divisor))
        case indices.Remainder(dividend, divisor):
            return apply(REMAINDER, _sum(dividend, names), integer(divisor))


def _is_same_place(store: loop_ir.BufferStore, load: nodes.BufferLoad) -> bool:
    return load.buffer.root is store.buffer.root and load.address == store.address


def by_number(chosen: Expression, bodies: Sequence[list[Statement]]) -> list[Statement]:
    """The branches by number: the first for False or a number below 1, the last for one too large."""
    first, *between, last = bodies
    if chosen.kind == BOOL:
        return [If(chosen, last, first)]
    dtype = chosen.kind
    assert isinstance(dtype, np.dtype)
    rest = last
    for n in range(len(between), 0, -1):
        rest = list[Statement]([If(apply(EQUAL, chosen, Constant(dtype.type(n))), between[n - 1], rest)])
    return [If(apply(LESS_EQUAL, chosen, Constant(dtype.type(0))), first, rest)]


WIDE = 8
"""The ratio of its sides from which a product is divided by columns, which costs more than by rows."""

LEAST_WORK = 2**22
"""The least multiplications of a part of a matrix product; with a vector, where memory is slower, a sixteenth."""


def pieces(product: loop_ir.Product) -> tuple[int, int]:
    """The numbers of parts that the rows and the columns of a product are divided into, one of which is 1.

    Each part packs the other operand again: by rows of 250 a product takes 3 to 8 % longer in all.
    """
    least = LEAST_WORK // 16 if 1 in (product.m, product.n) else LEAST_WORK
    most = min(PARTS, product.m * product.k * product.n // least)
    if product.n < WIDE * product.m:
        return min(power_of_two(most), parts_of(product.m)), 1
    return 1, min(power_of_two(most), parts_of(product.n))


def parts_of(side: int) -> int:
    """The number of parts of this many rows or columns, a power of two: two from 300 on, others of at least 256."""
    return power_of_two(max(min(2, side // 150), side // 256))


def power_of_two(most: int) -> int:
    """The largest power of two that is not larger, at least 1."""
    return 2 ** (max(1, most).bit_length() - 1)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a product: its first row, column and term, and their numbers.

    Of the buffers in `kept` there is this part only.
    """

    first: tuple[Expression, Expression, Expression]
    size: tuple[Expression, Expression, Expression]
    kept: AbstractSet[Buffer] = frozenset()

    def moved(
        self, matrix: loop_ir.Matrix, place: tuple[Expression, ...], row: Expression, column: Expression
    ) -> tuple[Expression, ...]:
        """A matrix at a place, its array and its offset first, that begins with this row and this column."""
        if matrix.buffer.root in self.kept:
            return place
        array, offset, *others = place
        for by, stride in ((row, matrix.row_stride), (column, matrix.column_stride)):
            if not isinstance(by, Constant) or by.value:
                offset = apply(ADD, offset, apply(MULTIPLY, integer(stride), by))
        return array, offset, *others


def local(array: Name, size: int) -> Assign:
    """The statement that makes an array of a kernel's own."""
    assert isinstance(array.kind, Pointer)
    return Assign((array,), apply(LOCAL_ARRAYS[array.kind.dtype], integer(size)))


def locate(stack: Buffer, stacks: Sequence[Buffer]) -> Assign:
    """The statement that finds a residual stack, whose address changes as it grows."""
    number = integer(stacks.index(stack))
    return Assign((array_of(stack),), apply(STACK_ARRAYS[stack.dtype], STACKS, number))

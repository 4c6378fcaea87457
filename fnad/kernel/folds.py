"""Folds in kernels: what accumulates in variables, with compensation or without, and what does in memory."""

from __future__ import annotations

from collections.abc import Sequence

from fnad.ir.types import BOOL, Dtype
from fnad.kernel import accumulators
from fnad.kernel.accumulators import Accumulator
from fnad.kernel.routines import COMPENSATED_ADD
from fnad.kernel.statements import Assign, Constant, Expression, Load, Name, apply, integer
from fnad.kernel.writer import Writer, counter
from fnad.lower import loop_ir
from fnad.lower.loop_ir import NestLoop
from fnad.scalar.operation import INDEX


class Folds:
    """The strategy for folds; `names` has the variable that each accumulates in."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.names: dict[accumulators.Folded, Name] = {}

    # ---- which -------------------------------------------------------------------------------------------------------

    def below(self, loop: NestLoop) -> list[Accumulator]:
        """The accumulators of the folds below a loop, the last one open."""
        return accumulators.below(loop, self.writer.loops, self.writer.target.sum_block)

    def closed_by(self, loop: NestLoop) -> list[Accumulator]:
        """The sums of which a loop, the last one open, is divided into blocks."""
        return [fold for fold in self.below(loop) if fold.closing == len(self.writer.loops)]

    def block_length(self, loop: NestLoop) -> int:
        """The iterations of a loop in a block of its sums; 0 if it has none."""
        return min((fold.length for fold in self.closed_by(loop)), default=0)

    # ---- in variables ------------------------------------------------------------------------------------------------

    def zero(self, fold: Accumulator) -> Constant:
        effect = fold.effect
        return Constant(effect.buffer.dtype.type(0) if isinstance(effect, loop_ir.Scan) else effect.init)

    def parts(self, fold: Accumulator) -> tuple[Name, Name]:
        """The variables of the sum of the previous blocks and of its rounding error."""
        acc = self.names[fold.effect]
        return Name(f"{acc.name}_total", acc.kind), Name(f"{acc.name}_rest", acc.kind)

    def best(self, effect: loop_ir.ArgReduce) -> Name:
        return Name(f"{self.names[effect].name}_best", effect.node.dtype)

    def variables(self, fold: Accumulator) -> tuple[Name, ...]:
        """The variables that hold what was folded so far."""
        return self.parts(fold) if fold.compensated else (self.names[fold.effect],)

    def open_all(self, folds: Sequence[Accumulator]) -> None:
        for fold in folds:
            self.open(fold)

    def open(self, fold: Accumulator) -> None:
        effect, zero = fold.effect, self.zero(fold)
        position = isinstance(effect, loop_ir.ArgReduce)
        name = self.names[effect] = self.writer.name("acc", INDEX if position else zero.value.dtype)
        self.writer.changing.add(name.name)
        if fold.compensated:
            self.writer.add(*(Assign((part,), zero) for part in self.parts(fold)))
        elif isinstance(effect, loop_ir.ArgReduce):
            self.writer.add(Assign((name,), integer(0)), Assign((self.best(effect),), zero))
        else:
            self.writer.add(Assign((name,), zero))

    def begin_block(self, folds: Sequence[Accumulator]) -> None:
        self.writer.add(*(Assign((self.names[fold.effect],), self.zero(fold)) for fold in folds))

    def end_block(self, folds: Sequence[Accumulator]) -> None:
        for fold in folds:
            self.fold_in(fold, self.names[fold.effect])

    def fold_in(self, fold: Accumulator, value: Expression) -> None:
        """Write that a fold takes one more value."""
        if fold.compensated:
            total, rest = self.parts(fold)
            self.writer.add(Assign((total, rest), apply(COMPENSATED_ADD, total, rest, value)))
        else:
            assert isinstance(fold.effect, loop_ir.Reduce)
            name = self.names[fold.effect]
            self.writer.add(Assign((name,), self.folded(fold.effect, name, value)))

    def fold_in_parts(self, fold: Accumulator, parts: Sequence[Name]) -> None:
        """Write that a fold takes what a task folded: the `variables` of its own."""
        self.fold_in(fold, parts[0])
        if fold.compensated:
            _, rest = self.parts(fold)
            self.writer.add(Assign((rest,), rest + parts[1]))

    def close(self, fold: Accumulator) -> None:
        effect, value = fold.effect, self.names[fold.effect]
        if isinstance(effect, loop_ir.Scan):
            return
        result = self.sum_of(*self.parts(fold)) if fold.compensated else value
        if isinstance(effect, loop_ir.Reduce) and fold.start != min(effect.depths):
            self.combine_in_memory(effect, result)
        else:
            self.writer.store(effect, self.writer.cast(result, effect.buffer.dtype))

    def sum_of(self, total: Expression, rest: Expression) -> Expression:
        """The sum whose rounding errors are the rest."""
        return total + rest

    def reduce(self, effect: loop_ir.Reduce) -> None:
        value = self.writer.value(effect.node)
        element = self.writer.cast(value, effect.dtype)
        if not effect.depths:
            folded = self.folded(effect, Constant(effect.init), element)
            self.writer.store(effect, self.writer.cast(folded, effect.buffer.dtype))
        elif len(self.writer.loops) - 1 in effect.depths:
            name = self.names[effect]
            self.writer.add(Assign((name,), self.folded(effect, name, element)))
        else:
            self.combine_in_memory(effect, value)

    def arg_reduce(self, effect: loop_ir.ArgReduce) -> None:
        position, best = self.names[effect], self.best(effect)
        value = self.writer.value(effect.node)
        better = self.writer.assign("v", self.writer.step(effect.better, BOOL, **{"0": value, "best": best}))
        self.writer.add(
            Assign((position,), self.writer.select(better, counter(self.writer.loops[-1].depth), position)),
            Assign((best,), self.writer.select(better, value, best)),
        )

    def running(self, effect: loop_ir.Scan) -> None:
        name, value = self.names[effect], self.writer.value(effect.node)
        is_first = counter(self.writer.loops[-1].depth).equals(0)
        self.writer.add(Assign((name,), self.writer.select(is_first, value, self.folded(effect, name, value))))
        self.writer.store(effect, name)

    def folded(self, effect: loop_ir.Reduce | loop_ir.Scan, acc: Expression, value: Expression) -> Expression:
        return self.writer.step(effect.step, acc.dtype, **{"acc": acc, "0": value})

    # ---- in memory ---------------------------------------------------------------------------------------------------

    def combine_in_memory(self, effect: loop_ir.Reduce, value: Expression) -> None:
        old = Load(*self.writer.destination(effect))
        self.writer.store(effect, self.folded(effect, old, self.writer.cast(value, old.dtype)))

    def dtype_in_task(self, effect: loop_ir.Reduce, loop: NestLoop, length: int) -> Dtype:
        """The dtype in which a task of so many iterations accumulates in memory: short sums are not widened."""
        dtype = effect.node.dtype
        is_short = (
            effect.is_sum
            and effect.depths == frozenset((loop.depth,))
            and length <= self.writer.target.sum_block(dtype)
        )
        return dtype if is_short else effect.buffer.dtype

    def fill_memory(self, loop: NestLoop) -> None:
        """Before the outermost loop of a fold that accumulates in memory, store its initial value there."""
        for effect, around in accumulators.effects_in_loops(loop, self.writer.loops):
            if not isinstance(effect, loop_ir.Reduce) or loop.depth != min(effect.depths, default=-1):
                continue
            if accumulators.first_loop(effect, len(around)) != loop.depth:
                self.fill(
                    effect, [inner for inner in around[len(self.writer.loops) :] if inner.depth not in effect.depths]
                )

    def fill(self, effect: loop_ir.Reduce, around: Sequence[NestLoop]) -> None:
        with self.writer.in_loops(around):
            dtype = Load(*self.writer.destination(effect)).dtype
            self.writer.store(effect, self.writer.cast(Constant(effect.init), dtype))

"""Folds in kernels: what accumulates in variables, with compensation or without, and what does in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fnad.ir.types import BOOL
from fnad.kernel import accumulators
from fnad.kernel.accumulators import Accumulator
from fnad.kernel.products import ProductWriter
from fnad.kernel.routines import COMPENSATED_ADD
from fnad.kernel.statements import Assign, Constant, Expression, Load, Name, apply, integer
from fnad.kernel.writer import counter
from fnad.lower import loop_ir
from fnad.lower.loop_ir import NestLoop
from fnad.lower.nodes import Buffer
from fnad.lower.parallel import products_over
from fnad.lower.rows import Row
from fnad.lower.target import Target
from fnad.scalar.operation import INDEX
from fnad.scalar.operations import ADD, EQUAL


class FoldWriter(ProductWriter):
    """Writes folds; `folds` has the variable that each accumulates in."""

    def __init__(self, depth: int, rows: Mapping[Buffer, Row], target: Target) -> None:
        super().__init__(depth, rows, target)
        self.folds: dict[accumulators.Folded, Name] = {}

    def zero(self, fold: Accumulator) -> Constant:
        effect = fold.effect
        return Constant(effect.buffer.dtype.type(0) if isinstance(effect, loop_ir.Scan) else effect.init)

    def parts(self, fold: Accumulator) -> tuple[Name, Name]:
        """The variables of the sum of the previous blocks and of its rounding error."""
        acc = self.folds[fold.effect]
        return Name(f"{acc.name}_total", acc.kind), Name(f"{acc.name}_rest", acc.kind)

    def best(self, effect: loop_ir.ArgReduce) -> Name:
        return Name(f"{self.folds[effect].name}_best", effect.node.dtype)

    def variables(self, fold: Accumulator) -> tuple[Name, ...]:
        """The variables that hold what was folded so far."""
        return self.parts(fold) if fold.compensated else (self.folds[fold.effect],)

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
        result = self.sum_of(*self.parts(fold)) if fold.compensated else value
        if isinstance(effect, loop_ir.Reduce) and fold.start != min(effect.depths):
            self.combine_in_memory(effect, result)
        else:
            self.store(effect, self.cast(result, effect.buffer.dtype))

    def sum_of(self, total: Expression, rest: Expression) -> Expression:
        """The sum whose rounding errors are the rest."""
        return apply(ADD, total, rest)

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

    def arg_reduce(self, effect: loop_ir.ArgReduce) -> None:
        position, best = self.folds[effect], self.best(effect)
        value = self.value(effect.node)
        better = self.assign("v", self.step(effect.better, BOOL, **{"0": value, "best": best}))
        self.add(
            Assign((position,), self.select(better, counter(self.loops[-1].depth), position)),
            Assign((best,), self.select(better, value, best)),
        )

    def running(self, effect: loop_ir.Scan) -> None:
        name, value = self.folds[effect], self.value(effect.node)
        is_first = apply(EQUAL, counter(self.loops[-1].depth), integer(0))
        self.add(Assign((name,), self.select(is_first, value, self.folded(effect, name, value))))
        self.store(effect, name)

    def folded(self, effect: loop_ir.Reduce | loop_ir.Scan, acc: Expression, value: Expression) -> Expression:
        assert isinstance(acc.kind, np.dtype)
        return self.step(effect.step, acc.kind, **{"acc": acc, "0": value})

    # ---- in memory ---------------------------------------------------------------------------------------------------

    def combine_in_memory(self, effect: loop_ir.Reduce, value: Expression) -> None:
        self.store(effect, self.folded(effect, Load(*self.destination(effect)), value))

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

    def fill(self, effect: loop_ir.Reduce, around: Sequence[NestLoop]) -> None:
        self.in_loops(around, lambda: self.store(effect, Constant(effect.init)))

"""Updates in runs, each of one element, on the threads of a device: the same numbers in every run of a program.

The updates, which are sorted by the element that they change, are divided into parts of equal length, however long the
runs are. A thread combines those of a part in order. It stores what a run comes to that begins and ends in its part,
and keeps what it has of the others: of the run that was begun in a part before, and of the one that it ends with. A
second kernel adds to each of the latter, in order, what the parts after it have of the same run.
"""

from __future__ import annotations

from dataclasses import dataclass

from fnad.kernel import statements as code
from fnad.kernel.device_build import DeviceBuilder
from fnad.kernel.writer import array_of, counter
from fnad.lower.loop_ir import NestLoop, Update
from fnad.scalar.operation import BOOL, INDEX
from fnad.scalar.operations import LOGICAL_NOT, MAX, MIN

ELEMENT = code.Name("element", INDEX)
TRUE, FALSE = code.Constant(BOOL.type(True)), code.Constant(BOOL.type(False))


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The updates of a loop in parts of this length.

    The array `begun` has what a part has of a run begun before, `open` what it has of the one that it ends with.
    """

    loop: NestLoop
    effect: Update
    length: int
    begun: code.Name
    open: code.Name

    def fold_part(self, builder: DeviceBuilder, part: code.Expression, place: code.Expression) -> None:
        """Write what a thread does with a part, which has this place in the arrays."""
        array, update = array_of(self.effect.buffer), counter(self.loop.depth)
        first, stop = self.bounds(builder, part)
        element, total, is_begun = ELEMENT, code.Name("total", self.effect.buffer.dtype), code.Name("is_begun", BOOL)
        builder.add(code.Assign((element,), self.element_before(builder, first)))
        builder.add(
            code.Assign((is_begun,), TRUE), code.Assign((total,), code.Constant(self.effect.buffer.dtype.type(0)))
        )
        with builder.loop_over(update, stop, first, level=True), builder.inside([self.loop], update):
            value, now = builder.value(self.effect.node), builder.assign("v", builder.address(self.effect.address))
            is_first = builder.assign("v", update.equals(first))
            ended = code.If(is_begun, [code.Store(self.begun, place, total)], [code.Store(array, element, total)])
            begin: list[code.Statement] = [
                code.If(code.apply(LOGICAL_NOT, is_first), [ended]),
                code.Assign((total,), self.combined(builder, code.Load(array, now), value)),
                code.Assign((is_begun,), FALSE),
                code.Assign((element,), now),
            ]
            longer = builder.select(is_first, value, self.combined(builder, total, value))
            builder.add(code.If(now.differs(element), begin, [code.Assign((total,), longer)]))
        builder.add(code.If(is_begun, [code.Store(self.begun, place, total)], [code.Store(self.open, place, total)]))

    def finish(self, builder: DeviceBuilder, part: code.Expression, place: code.Expression, results: int) -> None:
        """Write what becomes of the run that a part ends with, if it begins there; so many parts of other runs."""
        first, stop = self.bounds(builder, part)
        element = self.element_at(builder, stop - 1)
        begins = self.element_before(builder, first).differs(element)
        total, later, where = (
            code.Name("total", self.effect.buffer.dtype),
            code.Name("later", INDEX),
            code.Name("where", INDEX),
        )
        with builder.block(level=False) as more:
            start = later * self.length
            builder.exit(start >= self.loop.extent, code.Break())
            builder.exit(self.element_at(builder, start).differs(element), code.Break())
            builder.add(
                code.Assign((total,), self.combined(builder, total, code.Load(self.begun, where))),
                code.Assign((later,), later + 1),
                code.Assign((where,), where + results),
            )
        body: list[code.Statement] = [
            code.Assign((total,), code.Load(self.open, place)),
            code.Assign((later,), part + 1),
            code.Assign((where,), place + results),
            code.While(more),
            code.Store(array_of(self.effect.buffer), element, total),
        ]
        builder.add(code.If(begins, body))

    def bounds(self, builder: DeviceBuilder, part: code.Expression) -> tuple[code.Name, code.Name]:
        """The first update of a part, and the one after its last."""
        first = builder.assign("v", part * self.length)
        end = first + self.length
        return first, builder.assign("v", code.apply(MIN, end, code.integer(self.loop.extent)))

    def element_before(self, builder: DeviceBuilder, first: code.Expression) -> code.Expression:
        """The element of the last update before a part; that is none for the first one."""
        last = self.element_at(builder, code.apply(MAX, first - 1, code.integer(0)))
        return builder.select(first > 0, last, code.integer(-1))

    def element_at(self, builder: DeviceBuilder, update: code.Expression) -> code.Name:
        """The element that an update changes."""
        with builder.block() as body, builder.inside([self.loop], builder.assign("v", update)):
            found = builder.assign("v", builder.address(self.effect.address))
        builder.add(*body)
        return found

    def combined(self, builder: DeviceBuilder, old: code.Expression, new: code.Expression) -> code.Expression:
        return builder.step(self.effect.step, self.effect.buffer.dtype, old=old, new=new)

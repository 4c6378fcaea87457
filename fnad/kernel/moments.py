"""Sums of squared differences from a mean, read together with the sum that the mean is computed from.

    s[j] = Σ e[i, j]        q[j] = Σ (e[i, j] - c[j])²        c computed from s

The second fold needs the result of the first one, so e would be read twice. Instead the first kernel also has, for each
part of e, the sums of e - p and (e - p)², where the pivot p is an element of the part. For n elements with the sums
a and b, and for any c,

    Σ (e - c)² = (b - a²/n) + n · (p - c + a/n)²

Both terms are at least 0, and the first one is rounded like a sum of b, which is close to its own size if p is near the
mean of the part: within k deviations, b is at most 1 + k² times as large. The pivot is the median of three elements, so
that a single one far from the others does not become the pivot. Large means do no harm: only differences are squared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fnad.ir.types import Aval
from fnad.kernel.accumulators import Folded
from fnad.kernel.device_build import DeviceBuilder
from fnad.kernel.pieces import FoldParts, Whole
from fnad.kernel.statements import Assign, Constant, Expression, Load, Name, Store, apply, integer
from fnad.kernel.writer import counter
from fnad.lower.independence import chain
from fnad.lower.loop_ir import Item, NestLoop, Reduce, effect_loads, effects, writes
from fnad.lower.nodes import Buffer, BufferLoad, Node, Nodes, ScalarOperation, all_nodes, indices, loads
from fnad.lower.sharing import loop_effects
from fnad.scalar.operations import MULTIPLY, OPERATIONS, SUBTRACT
from fnad.scalar.template import cast_to

MINIMUM, MAXIMUM = OPERATIONS["minimum"], OPERATIONS["maximum"]


def read_with_folds(items: Sequence[Item]) -> dict[NestLoop, NestLoop]:
    """The nests of squared differences whose elements an earlier nest reads, in the same loops, and that nest."""
    found: dict[NestLoop, NestLoop] = {}
    for n, nest in enumerate(items):
        if not isinstance(nest, NestLoop) or (difference := _squared(chain(nest)[-1].items)) is None:
            continue
        read, changed = set(loads([difference[0]])), set[Buffer]()
        for earlier in reversed(items[:n]):
            changed |= {buffer.root for effect in effects(earlier) for buffer, _ in writes(effect)}
            if any(load.buffer.root in changed for load in read):
                break
            if isinstance(earlier, NestLoop) and _go_together(earlier, nest, read):
                found[nest] = earlier
                break
    return found


def _go_together(nest: NestLoop, squares: NestLoop, read: set[BufferLoad]) -> bool:
    """True if all that a nest does are folds over the same loops, and it reads something of what the other one does."""
    shape, other = ([(loop.depth, loop.extent) for loop in chain(each)] for each in (nest, squares))
    folds = [item for item in chain(nest)[-1].items if isinstance(item, Reduce)]
    (square,) = loop_effects(squares)
    assert isinstance(square, Reduce)
    are_folds = len(folds) == len(chain(nest)[-1].items) and all(fold.depths == square.depths for fold in folds)
    return shape == other and are_folds and any(load in read for fold in folds for load in effect_loads(fold))


def _squared(items: Sequence[Item]) -> tuple[Node, Node] | None:
    """The element and the centre, one of each result, of a single fold of (element - centre)²."""
    match items:
        case [Reduce(node=ScalarOperation(square, (ScalarOperation(minus, (element, centre)) as one, other))) as fold]:
            is_square = square is MULTIPLY and minus is SUBTRACT and one is other
            is_sum_of_reals = fold.is_sum and fold.dtype == element.dtype and fold.dtype.kind == "f"
            is_of_result = is_square and is_sum_of_reals and not _varies(centre, fold)
            return (element, centre) if is_of_result else None
        case _:
            return None


def _varies(node: Node, fold: Reduce) -> bool:
    """True if a value may differ between the iterations of the loops of a fold."""
    read = (index for inner in all_nodes([node]) for index in indices(inner))
    return any(index.reads(depth) for index in read for depth in fold.depths)


def moments(squares: NestLoop) -> list[Reduce]:
    """The sums of the differences from a pivot and of their squares."""
    (fold,), nodes = chain(squares)[-1].items, Nodes()
    assert isinstance(fold, Reduce)
    element, _ = _squared([fold]) or (None, None)
    assert element is not None
    aval = Aval(fold.dtype, ())
    one = nodes.apply(SUBTRACT, element, nodes.load(Buffer("pivot", aval), fold.address))
    return [replace(fold, buffer=Buffer("moment", aval), node=n) for n in (one, nodes.apply(MULTIPLY, one, one))]


@dataclass(frozen=True, slots=True, eq=False)
class PartsWithMoments(FoldParts):
    """The parts of folds, of which the last two are moments about a pivot, and the pivot: the last array."""

    def prepare(self, builder: DeviceBuilder, part: Expression, number: Expression) -> None:
        (*_, first, _) = loop_effects(self.folded[0])
        assert isinstance(first.node, ScalarOperation)
        element, pivot = first.node.operands
        builder.here.names[pivot] = self.median(builder, element, part)
        builder.add(Store(self.arrays[-1], number, builder.here.names[pivot]))

    def median(self, builder: DeviceBuilder, element: Node, part: Expression) -> Name:
        """The median of the first element of a part, of the last one that all parts have, and of one between."""
        (loop,), last = self.folded, self.folded[0].extent // self.parts - 1
        values: list[Name] = []
        for turn in (0, last // 2, last):
            values.append(builder.name("acc", element.dtype))
            place = part + turn * self.parts
            number = counter(loop.depth)
            with builder.loop_over(number, place + 1, place, level=True), builder.inside([loop], number):
                builder.add(Assign((values[-1],), builder.value(element)))
        first, second, third = values
        low, high = (builder.assign("v", apply(choice, first, second)) for choice in (MINIMUM, MAXIMUM))
        return builder.assign("v", apply(MAXIMUM, low, apply(MINIMUM, high, third)))


@dataclass(frozen=True, slots=True, eq=False)
class WholeSquares(Whole):
    """The fold of squared differences from moments: `arrays` are those of sums, of sums of squares and of pivots."""

    def term(
        self, builder: DeviceBuilder, number: int, fold: Folded, part: Expression, place: Expression
    ) -> Expression:  # fmt: skip
        assert isinstance(fold, Reduce)
        _, centre = _squared([fold]) or (None, None)
        assert centre is not None
        dtype = fold.dtype
        rest = integer(self.folded[0].extent + self.parts - 1) + -part
        count = builder.assign("v", apply(cast_to(dtype), rest // self.parts))
        first, second, pivot = (builder.assign("v", Load(array, place)) for array in self.arrays)
        mean = builder.assign("v", first / count)
        inside = second - first * mean
        far = builder.assign("v", pivot - builder.value(centre) + mean)
        outside = count * (far * far)
        return apply(MAXIMUM, inside, Constant(dtype.type(0))) + outside

"""Loops of control flow whose steps compute each element of arrays from the same elements, by tiles of elements.

    scan j < k:                                     for i < n by 256:
      for i < n:                        is            for j < k:
        y[i] = y[i] * t[i] + c[j]                       for i in the tile:
        out[j, i] = y[i]                                  y[i] = y[i] * t[i] + c[j]
                                                          out[j, i] = y[i]

The steps of an element need no other element, so a tile makes all its steps while what it carries is in the first
cache. Loops before and after join those over elements (`fuse.py`), and what the steps stack for them has memory for a
tile (`rows.py`). The loop over steps is one across its tile (`across.py`), but its iterations keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from fnad.ir.size import is_size
from fnad.lower.independence import independent, written_addresses
from fnad.lower.index import Counter, Index, canonical, counter
from fnad.lower.loop_ir import BufferStore, Effect, Item, NestLoop, Product, Reduce, SequentialFor, effect_loads
from fnad.lower.nodes import Buffer, Checked, Nodes, all_nodes
from fnad.lower.rewrite import Rewrite
from fnad.lower.target import Target
from fnad.scalar.operations import MULTIPLY

FEWEST = 128
"""The fewest elements of arrays that are worth loops over tiles."""

SHORTEST, LONGEST = 32, 256
"""The fewest and the most elements of a tile."""

NEAR = 2**15
"""The most bytes that the steps of a tile store, so that these stay in the first cache."""


def by_elements(loop: SequentialFor, target: Target, nodes: Nodes) -> NestLoop | None:
    """The loop over elements that a loop of control flow is, if each of its steps works on single elements."""
    loops = [item for item in loop.items if isinstance(item, NestLoop) and item.span is None and not item.tile]
    effects = [effect for inner in loops for effect in inner.items if isinstance(effect, BufferStore | Reduce)]
    extent, others = max((inner.extent for inner in loops), default=0), loop.updates or loop.residual_stacks
    if not isinstance(loop.extent, int) or is_size(loop.extent) or is_size(extent) or loop.extent == 1:
        return None
    if target.grid is not None or others or len(loops) < len(loop.items):
        return None
    if extent < FEWEST or any(inner.extent != extent for inner in loops):
        return None
    step, element = Counter(loop.depth, loop.extent), Counter(loop.depth + 1, extent)
    if len(effects) < sum(len(inner.items) for inner in loops):
        return None
    stored = {effect.buffer.root for effect in effects if isinstance(effect, BufferStore)}
    touched = {*stored, *(load.buffer.root for effect in effects for load in effect_loads(effect))}
    if not all(_is_of_element(effect, step, element, target, touched) for effect in effects):
        return None
    addresses = written_addresses(effects)  # with the loads of folds
    if not all(independent(addresses[buffer], element) for buffer in stored):
        return None
    exchanged = _Exchanged(nodes, step, element, effects, reverse=loop.reverse)
    steps = NestLoop(element.depth, loop.extent, [*map(exchanged.item, effects)], across=True)
    return NestLoop(loop.depth, extent, [steps])


def length_of_steps(items: Sequence[Item]) -> int:
    """The elements of a tile, a power of two, for which the arrays that steps store stay in the first cache."""
    stored = {e.buffer.root: e.buffer.dtype.itemsize * loop.extent for loop in _steps(items) for e in _stacks(loop)}
    return 2 ** (min(max(NEAR // max(sum(stored.values()), 1), SHORTEST), LONGEST).bit_length() - 1)


def with_folds(loop: NestLoop, nodes: Nodes) -> list[Item]:
    """The items of a loop over elements, with folds for products of arrays that steps store and vectors."""
    stored = {effect.buffer.root for inner in _steps(loop.items) for effect in _stacks(inner)}
    return [
        _fold(item, loop, nodes) if isinstance(item, Product) and _is_with_vector(item, loop, stored) else item
        for item in loop.items
    ]


def _steps(items: Sequence[Item]) -> list[NestLoop]:
    return [item for item in items if isinstance(item, NestLoop) and item.across]


def _stacks(loop: NestLoop) -> list[BufferStore]:
    """The stores of a loop over steps at other places for each step."""
    return [effect for effect in loop.items if isinstance(effect, BufferStore) and effect.address.reads(loop.depth)]


def _is_with_vector(product: Product, loop: NestLoop, stored: AbstractSet[Buffer]) -> bool:
    """True for a product of a stored array with a vector: for each element of the tile, or summed over these."""
    is_divided = product.k == 1 if product.depths == frozenset([loop.depth]) else not product.depths and product.m == 1
    is_plain = product.n == 1 and product.alpha == 1 and product.beta == 0
    return is_plain and is_divided and not stored.isdisjoint([product.a.buffer.root, product.b.buffer.root])


def _fold(product: Product, loop: NestLoop, nodes: Nodes) -> NestLoop:
    """A product with a vector as a loop across the tile: of folds for each element, or for all of them."""
    depth, out, a, b, zero = loop.depth + 1, product.out, product.a, product.b, product.out.buffer.dtype.type(0)
    extent, depths = (product.m, product.depths) if product.depths else (product.k, frozenset([depth]))
    row, term = (counter(depth, product.m), Index(0)) if product.depths else (Index(0), counter(depth, product.k))
    left = nodes.load(a.buffer, a.offset + row * a.row_stride + term * a.column_stride)
    node = nodes.apply(MULTIPLY, left, nodes.load(b.buffer, b.offset + term * b.row_stride))
    place, step = out.offset + row * out.row_stride, "accumulate({acc}, {0})"
    fold = Reduce(out.buffer, place, node, zero, step, True, zero.dtype, depths, product.source)
    return NestLoop(depth, extent, [fold], across=True)


def _is_of_element(
    effect: Effect, step: Counter, element: Counter, target: Target, touched: AbstractSet[Buffer]
) -> bool:
    """True if an effect stores an element, or folds elements to a number for each step that no step reads."""
    addresses = [effect.address, *(load.address for load in effect_loads(effect))]
    if any(not isinstance(atom, Counter) for address in addresses for atom, _ in address.terms):
        return False
    if isinstance(effect, Reduce):
        in_memory = target.accumulator(effect.buffer.dtype, element.extent, is_in_memory=True)
        is_of_step = effect.depths == frozenset([element.depth]) and effect.address.coefficient(step) != 0
        if not is_of_step or effect.dtype != in_memory or effect.buffer.root in touched:
            return False
    return not any(isinstance(node, Checked) for node in all_nodes([effect.node]))


class _Exchanged(Rewrite):
    """The rewrite that puts the loop over steps into that over elements; steps in reverse are numbered anew."""

    def __init__(
        self, nodes: Nodes, step: Counter, element: Counter, effects: Sequence[Effect], *, reverse: bool
    ) -> None:
        super().__init__(nodes, step.depth)
        self.step, self.element, self.reverse = step, element, reverse
        self.stored = {effect.buffer.root for effect in effects}
        self.within: dict[Buffer, Buffer] = {}

    def depth(self, depth: int) -> int:
        return {self.step.depth: self.element.depth, self.element.depth: self.step.depth}.get(depth, depth)

    def place(self, buffer: Buffer, address: Index) -> tuple[Buffer, Index]:
        if buffer.root not in self.stored:
            return buffer, self.index(address)
        within = self.within.setdefault(buffer, buffer.again(self.element.depth + 1))  # another value in each step
        return within, self.index(address)

    def index(self, index: Index) -> Index:
        moved = {self.renamed(atom): c for atom, c in index.terms}
        if not self.reverse:
            return canonical(index.constant, moved)
        step = Counter(self.element.depth, self.step.extent)
        last = moved.get(step, 0) * (self.step.extent - 1)
        return canonical(index.constant + last, {atom: -c if atom == step else c for atom, c in moved.items()})

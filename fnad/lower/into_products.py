"""Matrix products that scale what they compute and add it to an array: out = alpha · a · b + beta · out.

    t = a · b
    for i < n:                 is           w = -0.1 · a · b + w
      w[i] = w[i] - 0.1 * t[i]

A library's product does both as it stores, so the product by itself is neither written nor read. That saves something
only where the result takes the place of what it is added to: an array of its own would have to be filled first. Nothing
else may read the product, all of which the loop takes in order. A factor is a number that is neither zero nor infinite,
since libraries do not read what they multiply by zero. Complex numbers are left alone, since 1 + 0j times an infinite
one has a part that is nan; so are loops of unknown length, whose iterations behind the end must not change anything.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from fnad.lower.index import Index, counter
from fnad.lower.loop_ir import (
    BufferStore,
    Item,
    LoopProgram,
    NestLoop,
    Product,
    SequentialFor,
    Switch,
    effects,
    reads,
    touched,
    writes,
)
from fnad.lower.nodes import Buffer, BufferLoad, Node, ScalarConstant, ScalarOperation
from fnad.scalar.operation import Operation
from fnad.scalar.operations import ADD, MULTIPLY, NEGATIVE, SUBTRACT


class ProductTerm(NamedTuple):
    """A factor of an element of a buffer."""

    factor: float
    load: BufferLoad


class ProductPlace(NamedTuple):
    """The item that has a product, by its position, and the product."""

    position: int
    product: Product


def into_products(loops: LoopProgram, given: AbstractSet[Buffer]) -> LoopProgram:
    """The program, with such nests as part of products; a result may take the memory of the inputs that are `given`."""
    everything = [effect for item in loops.items for effect in effects(item)]
    readers = Counts(buffer for effect in everything for buffer in {b.root for b, _ in reads(effect)})
    writers = Counts(buffer for effect in everything for buffer in {b.root for b, _ in writes(effect)})
    alone = {buffer for buffer in loops.temporaries if readers[buffer] == writers[buffer] == 1}
    once = {buffer for buffer in loops.outputs if writers[buffer] == 1}
    items = _Items(alone, once).of(loops.items, given)
    used = {buffer for item in items for buffer in touched(item)}
    temporaries = tuple(buffer for buffer in loops.temporaries if buffer in used)
    return replace(loops, items=tuple(items), temporaries=temporaries)


class _Items:
    """Buffers are `alone` if one effect writes them and one reads them; outputs written `once` have one that writes."""

    def __init__(self, alone: AbstractSet[Buffer], once: AbstractSet[Buffer]) -> None:
        self.alone, self.once = alone, once

    def of(self, items: Iterable[Item], given: AbstractSet[Buffer] = frozenset()) -> list[Item]:
        found: list[Item] = []
        for item in items:
            match item:
                case SequentialFor():
                    found.append(replace(item, items=self.of(item.items)))
                case Switch():
                    found.append(replace(item, branches=tuple(map(self.of, item.branches))))
                case NestLoop(items=inner) if any(isinstance(part, Product | NestLoop) for part in inner):
                    found.append(replace(item, items=self.of(inner)))
                case NestLoop():
                    self.add(item, found, given)
                case _:
                    found.append(item)
        return found

    def add(self, nest: NestLoop, found: list[Item], given: AbstractSet[Buffer]) -> None:
        """Add a nest to the items before it, from which it takes the products that do what its stores would."""
        for store in nest.items:
            made = self.instead(nest, store, found, given) if isinstance(store, BufferStore) else None
            if made is not None:
                found[:] = made
                nest = replace(nest, items=[other for other in nest.items if other is not store])
        if nest.items:
            found.append(nest)

    def instead(
        self, nest: NestLoop, store: BufferStore, before: Sequence[Item], given: AbstractSet[Buffer]
    ) -> list[Item] | None:
        """The items before a nest, with products in the place of one of its stores; None if they cannot take it."""
        terms = terms_of(store.node, store.buffer.dtype.type(1)) if store.buffer.dtype.kind == "f" else None
        if terms is None:
            return None
        places = {term: self.product_of(term, nest, store, before) for term in terms}
        products = {term: place for term, place in places.items() if place is not None}
        old = [term for term in terms if term not in products]
        if not products or len(old) > 1 or not all(self.is_replaced(term, store, given) for term in old):
            return None
        touched_elsewhere = {b for other in nest.items if other is not store for b in touched(other)}
        memories = {store.buffer.root, *(term.load.buffer.root for term in terms)}
        operands = {x.buffer.root for place in products.values() for x in (place.product.a, place.product.b)}
        if not memories.isdisjoint(touched_elsewhere) or not memories.isdisjoint(operands):
            return None
        place = earliest(before, products.values(), {store.buffer.root, *(term.load.buffer.root for term in old)})
        if any(is_changed(found.product, before[found.position + 1 : place]) for found in products.values()):
            return None
        moved = {found.position for found in products.values()}
        kept = [item for position, item in enumerate(before[:place]) if position not in moved]
        return [*kept, *written(nest, store, before, products, old), *before[place:]]

    def product_of(
        self, term: ProductTerm, nest: NestLoop, store: BufferStore, before: Sequence[Item]
    ) -> ProductPlace | None:
        """The product with these elements in this order, which are stored in the same order."""
        buffer, start = term.load.buffer, term.load.address - counter(nest.depth, nest.extent)
        if buffer not in self.alone or start.reads(nest.depth) or (store.address - term.load.address).terms:
            return None
        for position, item in enumerate(before):
            found = product_in(item)
            if found is not None and found[0].out.buffer.root is buffer:
                return (
                    ProductPlace(position, found[0])
                    if is_plain(found[0]) and is_all(*found, start, nest.extent)
                    else None
                )
        return None

    def is_replaced(self, term: ProductTerm, store: BufferStore, given: AbstractSet[Buffer]) -> bool:
        """True if each element takes the place of the one that is read, or may."""
        old, new = term.load.buffer.root, store.buffer.root
        return term.load.address == store.address and (old is new or (old in given and new in self.once))


def earliest(before: Sequence[Item], products: Iterable[ProductPlace], memories: AbstractSet[Buffer]) -> int:
    """The first position behind all products and behind what touches these buffers, where operands are soon free."""
    touching = (n for n, item in enumerate(before) if not memories.isdisjoint(touched(item)))
    return 1 + max([*(place.position for place in products), *touching])


def is_changed(product: Product, items: Iterable[Item]) -> bool:
    """True if items write an operand of a product."""
    operands = product.a.buffer.root, product.b.buffer.root
    return any(buffer.root in operands for item in items for effect in effects(item) for buffer, _ in writes(effect))


def written(
    nest: NestLoop,
    store: BufferStore,
    before: Sequence[Item],
    products: Mapping[ProductTerm, ProductPlace],
    old: Sequence[ProductTerm],
) -> list[Item]:
    """Products with the result of a store, one added to the other."""
    made: list[Item] = []
    if old and old[0].load.buffer.root is not store.buffer.root:  # a copy of itself, where it takes the memory
        made.append(replace(nest, items=[replace(store, node=old[0].load)]))
    beta = old[0].factor if old else 0.0
    for term, (position, product) in products.items():
        offset = product.out.offset + (store.address - term.load.address)
        out = replace(product.out, buffer=store.buffer, offset=offset)
        made.append(with_product(before[position], replace(product, out=out, alpha=term.factor, beta=beta)))
        beta = 1.0
    return made


def terms_of(node: Node, factor: np.generic) -> list[ProductTerm] | None:
    """A node as a sum of multiples of different elements; None if it is none, or a factor is not a plain number."""
    found: list[ProductTerm] = []
    pending: list[tuple[Node, Any]] = [(node, factor)]
    while pending:
        node, factor = pending.pop()
        match node:
            case BufferLoad() if isfinite(factor) and factor:
                found.append(ProductTerm(float(factor), node))
            case ScalarOperation(operation, operands) if node.dtype == factor.dtype:
                parts = parts_of(operation, operands, factor)
                if parts is None:
                    return None
                pending += reversed(parts)
            case _:
                return None
    is_once = len({term.load.buffer.root for term in found}) == len(found)
    return found if is_once and {term.load.dtype for term in found} == {factor.dtype} else None


def parts_of(operation: Operation, operands: Sequence[Node], factor: Any) -> list[tuple[Node, Any]] | None:
    """The summands of an operation, each with its factor."""
    match operation.name, operands:
        case ADD.name, (x, y):
            return [(x, factor), (y, factor)]
        case SUBTRACT.name, (x, y):
            return [(x, factor), (y, -factor)]
        case NEGATIVE.name, (x,):
            return [(x, -factor)]
        case MULTIPLY.name, (ScalarConstant(value), x) | (x, ScalarConstant(value)):
            with np.errstate(all="ignore"):
                return [(x, factor * value)]
        case _:
            return None


def product_in(item: Item) -> tuple[Product, int] | None:
    """The product of an item that has nothing else, and how many of them loops around it make."""
    count = 1
    while isinstance(item, NestLoop) and len(item.items) == 1 and item.span is None and not item.tile:
        count *= item.extent
        (item,) = item.items
    return (item, count) if isinstance(item, Product) else None


def is_plain(product: Product) -> bool:
    """True if a product is nothing but that."""
    return (product.alpha, product.beta, product.depths, product.parts, product.has_rows) == (
        1, 0, frozenset(), None, False,
    )  # fmt: skip


def is_all(product: Product, count: int, start: Index, extent: int) -> bool:
    """True if so many elements from a place on are those of a product, or of all products of its buffer."""
    out, size = product.out, product.m * product.n
    is_in_order = (out.row_stride, out.column_stride) == (product.n, 1) and size * count == extent
    is_whole = start == Index(0) and extent == out.buffer.root.aval.size
    return is_in_order and (is_whole if count > 1 else start == out.offset)


def with_product(item: Item, product: Product) -> Item:
    """An item with this in the place of its product."""
    if isinstance(item, NestLoop):
        return replace(item, items=[with_product(item.items[0], product)])
    return product

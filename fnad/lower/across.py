"""Loops over narrow rows, with the rows of a tile in the lanes of vectors.

    for i < n by 128:                               for i < n by 128:
      p[i] = x[i] · w                                 pᵀ = wᵀ · xᵀ                      [k, 128]
      for j < k:                        is            for j < k:
        m[i] = min(m[i], p[i, j])                       for i in the tile:
                                                          m[i] = min(m[i], pᵀ[j, i])

A fold along a row is a chain of operations, each of which waits for the one before; in a short row there is little else
to do. Rows that follow one another are independent, so in a tile (`tiles.py`) the loop over them becomes the inner one,
where every operation is one on vectors. What it touches then has to lie by columns, so it runs so only where that is
memory for a tile (`rows.py`): what products and other such loops write and read. No element is computed otherwise than
before, but that the terms of a sum over rows are put together in another order.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from fnad.ir.size import is_size
from fnad.lower.index import Counter
from fnad.lower.loop_ir import Access, ArgReduce, BufferStore, Item, NestLoop, Reduce, effects, reads, touched, writes
from fnad.lower.nodes import Buffer, Checked, Node, all_nodes
from fnad.lower.target import Costs

WIDEST = 32
"""The most elements of a narrow row: in longer ones LLVM makes vectors along the row, which takes as long."""

FEWEST = 2
"""The fewest rows of a tile that are worth loops over them, in multiples of `Costs.tile_rows`."""


def across(items: Sequence[Item], temporaries: Iterable[Buffer], costs: Costs) -> list[Item]:
    """The items, with loops over narrow rows marked in those that run by tiles."""
    own = of_one_item(items, temporaries)
    return [
        _marked(item, own) if isinstance(item, NestLoop) and item.tile >= FEWEST * costs.tile_rows else item
        for item in items
    ]


def of_one_item(items: Sequence[Item], temporaries: Iterable[Buffer]) -> AbstractSet[Buffer]:
    """The temporaries that a single item touches."""
    users = Counts(buffer for item in items for buffer in {*touched(item)})
    return {buffer for buffer in temporaries if users[buffer] == 1}


def _marked(item: NestLoop, own: AbstractSet[Buffer]) -> Item:
    possible = [inner for inner in item.items if isinstance(inner, NestLoop) and _may_run_across(inner, item, own)]
    if not any(is_along_row(effect, loop) for loop in possible for effect in loop.items):
        return item
    chosen = {id(loop) for loop in possible}
    items = [replace(i, across=True) if isinstance(i, NestLoop) and id(i) in chosen else i for i in item.items]
    return replace(item, items=items)


def is_along_row(effect: Item, loop: NestLoop) -> bool:
    """True if an effect folds along the rows that a loop runs over."""
    return isinstance(effect, ArgReduce) or (isinstance(effect, Reduce) and effect.depths == frozenset([loop.depth]))


def folds_columns(effect: Item, loop: NestLoop) -> bool:
    """True if an effect folds the elements of a row that a loop runs over, and may fold the rows too."""
    return isinstance(effect, ArgReduce) or (isinstance(effect, Reduce) and loop.depth in effect.depths)


def _may_run_across(loop: NestLoop, tile: NestLoop, own: AbstractSet[Buffer]) -> bool:
    if not is_narrow(loop):
        return False
    row, column = Counter(tile.depth, tile.extent), Counter(loop.depth, loop.extent)
    return all(
        is_simple(effect, loop, tile) and all(lies_well(access, row, column, own) for access in accesses_of(effect))
        for effect in loop.items
    )


def is_narrow(loop: NestLoop) -> bool:
    """True if a loop runs over a narrow row."""
    return loop.span is None and not loop.tile and not is_size(loop.extent) and 1 < loop.extent <= WIDEST


def is_simple(effect: Item, loop: NestLoop, tile: NestLoop) -> bool:
    """True if an effect is a store or a fold over the two loops or one of them, without checks of each element."""
    match effect:
        case BufferStore() | ArgReduce():
            return not _has_checks(effect.node, loop.depth)
        case Reduce():
            is_known = folds_columns(effect, loop) or effect.depths == frozenset([tile.depth])
            return is_known and not _has_checks(effect.node, loop.depth)
        case _:
            return False


def _has_checks(root: Node, depth: int) -> bool:
    """True if a value has checks of what varies in the loop at a depth."""
    return any(isinstance(node, Checked) and node.depth > depth for node in all_nodes([root]))


def accesses_of(item: Item) -> list[Access]:
    return [access for effect in effects(item) for access in (*writes(effect), *reads(effect))]


def lies_well(access: Access, row: Counter, column: Counter, own: AbstractSet[Buffer]) -> bool:
    """True if what the rows of a tile touch lies together, or can."""
    buffer, address = access
    if address is None or any(not isinstance(atom, Counter) for atom, _ in address.terms):
        return False
    if not address.coefficient(row):
        return True
    return address.coefficient(row) == 1 or buffer.root in own or not address.coefficient(column)

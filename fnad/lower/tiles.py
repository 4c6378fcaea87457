"""Matrix products by tiles of rows, together with what computes and reads the rows.

    p = x · w           [n, k]                      for i < n by 64:
    for i < n:                            is          p[i] = x[i] · w
      y[i] = min(p[i, :])                             y[i] = min(p[i, :])

A product whose result or operand exceeds the first cache is placed as a loop over its rows, or over the terms of its
sums. So `fuse.py` merges it with the loops before and after. A loop with such products is then divided into tiles. In
each tile every item runs for all its iterations before the next item: a product of so many rows, by the BLAS, then a
loop over them. That is right since the iterations of a merged loop touch disjoint parts, and nothing in it reads a sum
over it. What only one tile touches has memory for a tile (`rows.py`). A product alone in its loop is whole again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from math import prod

from fnad.ir.types import Shape
from fnad.lower.index import Counter, Index, count_loops, counters, flatten
from fnad.lower.loop_ir import Item, Matrix, NestLoop, Product, nested
from fnad.lower.nodes import Buffer, Nodes
from fnad.lower.recurrences import length_of_steps, with_folds
from fnad.lower.target import Costs

MOST = 16
"""The most rows of a tile, in multiples of the fewest: more do not make it faster."""

TILES = 8
"""The fewest tiles, of the fewest rows, that a product is divided into."""

FIRST = 4
"""The bytes of a tile over those of the first cache, which keeps a matrix between its uses."""

FEW = 4
"""The rows of a tile, in multiples of the fewest, with less than which the other matrix takes long to pack for each."""

NARROW = 64
"""The fewest narrow rows that a product is divided into, in multiples of the fewest rows of a tile."""

LARGEST_SIDE = 128
"""The most multiplications for an element of the large matrix: from there on they take longer than the memory."""

PARTS = 16
"""The most tasks that have a sum of matrices of their own."""


# ---- a product as a loop -----------------------------------------------------------------------------------------


def worth_rows(product: Product, costs: Costs) -> bool:
    """True if a product is better divided by rows if a loop over these computes an operand or reads the result."""
    long, short = max(product.k, product.n), min(product.k, product.n)
    return _is_worth(product, product.m, long, short, costs)


def worth_terms(product: Product, costs: Costs) -> bool:
    """True if a product is better divided by terms if a loop over these computes an operand."""
    long, short = max(product.m, product.n), min(product.m, product.n)
    return _nbytes(product, long * short) <= costs.tile_bytes and _is_worth(product, product.k, long, short, costs)


def worth_narrow(rows: int, one: int, other: int, costs: Costs) -> bool:
    """True if a product of so many rows, or terms, is better divided by these though its other sides are short.

    That is so where loops fold along the narrow rows of one of its matrices: see `across.py`.
    """
    return rows >= NARROW * costs.tile_rows and min(one, other) > 1 and max(one, other) <= LARGEST_SIDE


def _is_worth(product: Product, rows: int, long: int, short: int, costs: Costs) -> bool:
    fewest, nbytes = costs.tile_rows, _nbytes(product, rows * long)
    has_few_rows = costs.tile_bytes < FEW * fewest * _nbytes(product, long)
    least = costs.cache_bytes if has_few_rows else costs.tile_bytes // FIRST
    return rows >= TILES * fewest and long >= 2 * fewest and short <= LARGEST_SIDE and nbytes > least


def _nbytes(product: Product, elements: int) -> int:
    return elements * product.out.buffer.dtype.itemsize


def by_rows(product: Product, axes: Shape, depth: int, costs: Costs) -> Item:
    """A product as loops over the axes of its rows, the first at this depth."""
    outer, rest = _divided(axes, costs.tile_rows)
    row = flatten(counters(outer, depth), outer)
    out, a = _moved(product.out, row * (rest * product.out.row_stride)), product.a
    inner = replace(product, out=out, a=_moved(a, row * (rest * a.row_stride)), m=rest, has_rows=True)
    return nested(outer, inner, depth)


def by_terms(product: Product, axes: Shape, depth: int, costs: Costs) -> Item:
    """A product as loops over the axes that it sums over, the first at this depth."""
    outer, rest = _divided(axes, costs.tile_rows)
    term = flatten(counters(outer, depth), outer)
    a = _moved(product.a, term * (rest * product.a.column_stride))
    b = _moved(product.b, term * (rest * product.b.row_stride))
    depths = frozenset(range(depth, depth + count_loops(outer)))
    return nested(outer, replace(product, a=a, b=b, k=rest, depths=depths), depth)


def _divided(axes: Shape, most: int) -> tuple[Shape, int]:
    """The axes that are loops, and the size of the others together, which is at most so large."""
    last = next(n for n in range(1, len(axes) + 1) if prod(axes[n:]) <= most and prod(axes[:n]) > 1)
    return axes[:last], prod(axes[last:])


def _moved(matrix: Matrix, by: Index) -> Matrix:
    return replace(matrix, offset=matrix.offset + by)


# ---- loops with products -----------------------------------------------------------------------------------------


def tiled(item: Item, costs: Costs, nodes: Nodes) -> Item:
    """An item with its loops divided into tiles where there are products by rows or by terms, or steps of elements."""
    if not isinstance(item, NestLoop):
        return item
    items = with_folds(replace(item, items=[tiled(inner, costs, nodes) for inner in item.items]), nodes)
    products = [inner for inner in items if isinstance(inner, Product) and is_divided(inner, item)]
    if products and len(items) == 1:
        return widened(products[0], item)
    products = [p for p in products if p.depths or p.has_rows or worth_rows(widened(p, item), costs)]
    lengths = [_length(products, costs)] if products else []
    lengths += [length_of_steps(items)] if any(isinstance(inner, NestLoop) and inner.across for inner in items) else []
    return replace(item, items=items, tile=min(lengths, default=0))


def is_divided(product: Product, loop: NestLoop) -> bool:
    """True if a product in a loop is that of the iteration's rows or terms."""
    if loop.depth in product.depths:
        return True
    this, (out, a, b) = Counter(loop.depth, loop.extent), (product.out, product.a, product.b)
    strides = [matrix.offset.coefficient(this) for matrix in (out, a, b)]
    return strides == [out.row_stride * product.m, a.row_stride * product.m, 0]


def widened(product: Product, loop: NestLoop) -> Product:
    """The product of all iterations of a loop that divides it."""
    this = Counter(loop.depth, loop.extent)
    matrices = [replace(x, offset=_without(x.offset, this)) for x in (product.out, product.a, product.b)]
    product = replace(product, out=matrices[0], a=matrices[1], b=matrices[2])
    if loop.depth not in product.depths:
        return replace(product, m=product.m * loop.extent)
    depths = product.depths - {loop.depth}
    return replace(product, k=product.k * loop.extent, depths=depths, parts=product.parts if depths else None)


def _without(index: Index, this: Counter) -> Index:
    return Index(index.constant, tuple(term for term in index.terms if term[0] != this))


def _length(products: Sequence[Product], costs: Costs) -> int:
    """The iterations of a tile, so that it stays in the cache; a power of two, so that sizes share code."""
    sizes: dict[Buffer, int] = {}
    for p in products:
        large = ((p.a, p.m * p.k), (p.b, p.k * p.n)) if p.depths else ((p.out, p.m * p.n), (p.a, p.m * p.k))
        sizes.update((matrix.buffer, _nbytes(p, size)) for matrix, size in large)
    rows = min(p.k if p.depths else p.m for p in products)
    length = min(max(costs.tile_bytes // sum(sizes.values()), costs.tile_rows // rows), MOST * costs.tile_rows // rows)
    return 2 ** (max(length, 1).bit_length() - 1)


def pieces(loop: NestLoop) -> Iterator[Product | NestLoop]:
    """The pieces of a tile in their order: products, loops across it, and loops with the other items."""
    for is_apart, items in groupby(loop.items, lambda item: _is_apart(item, loop)):
        if is_apart:
            yield from (item for item in items if isinstance(item, Product | NestLoop))
        else:
            yield NestLoop(loop.depth, loop.extent, list(items))


def _is_apart(item: Item, loop: NestLoop) -> bool:
    """True if an item is a piece of its own: a product, or a loop around that over the tile."""
    return is_divided(item, loop) if isinstance(item, Product) else isinstance(item, NestLoop) and item.across

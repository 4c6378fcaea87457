"""Matrix products in kernels: calls of BLAS on a whole product, a part of it, or a tile."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from fnad.ir.types import BOOL
from fnad.kernel.routines import GEMM, GEMV
from fnad.kernel.statements import Constant, Evaluate, Expression, LoopKind, Name, Store, apply, integer
from fnad.kernel.writer import Writer, array_of, end_of, plus
from fnad.lower import loop_ir, tiles
from fnad.lower.loop_ir import NestLoop
from fnad.lower.nodes import Buffer
from fnad.scalar.operation import INDEX

PARTS = 64
"""The most tasks of a parallel loop."""

WIDE = 8
"""The ratio of its sides from which a product is divided by columns, which costs more than by rows."""

LEAST_WORK = 2**22
"""The least multiplications of a part of a matrix product; with a vector, where memory is slower, a sixteenth."""


class Products:
    """The strategy for matrix products; `sums` are where a task adds up products of its own."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.sums: dict[Buffer, tuple[Name, Expression]] = {}

    def whole(self, product: loop_ir.Product) -> None:
        """Write a matrix product; a large one in tasks, each a part of the result."""
        rows, columns = pieces(product)
        zero, (m, n, k) = integer(0), map(integer, (product.m, product.n, product.k))
        if self.writer.is_parallel or rows * columns == 1:
            self.part(product, ProductPart((zero, zero, zero), (m, n, k)))
            return
        task = Name(f"p{len(self.writer.loops)}", INDEX)
        with self.writer.loop_over(task, rows * columns, kind=LoopKind.PARALLEL):
            row, m = self.stretch(task // columns, product.m, rows)
            column, n = self.stretch(task % columns, product.n, columns)
            self.part(product, ProductPart((row, column, zero), (m, n, k)))

    def stretch(self, number: Expression, extent: int, parts: int) -> tuple[Expression, Expression]:
        """The start and the length of one of the parts of an extent; the last one may be shorter."""
        length = -(-extent // parts)
        start = self.writer.assign("v", integer(length) * number)
        return start, self.writer.assign("v", end_of(start, length, extent) - start)

    def of_tile(self, product: loop_ir.Product, loop: NestLoop, start: Expression, stop: Expression) -> None:
        """Write a product for the iterations of a tile: for their rows, or their terms, which are added up."""
        self.writer.comment(product)
        kept = frozenset(buffer for buffer, row in self.writer.rows.items() if row.loop is loop)
        length: Expression = self.writer.assign("v", stop - start)
        is_sum, whole, zero = loop.depth in product.depths, tiles.widened(product, loop), integer(0)
        each = product.k if is_sum else product.m
        first, size = (integer(each) * x if each > 1 else x for x in (start, length))
        if is_sum:
            part = ProductPart((zero, zero, first), (integer(whole.m), integer(whole.n), size), kept)
        else:
            part = ProductPart((first, zero, zero), (size, integer(whole.n), integer(whole.k)), kept)
        whole = self.as_laid_out(whole, is_sum=is_sum)
        if whole.out.column_stride != 1:
            whole, part = transposed(whole), part.transposed()
        self.part(whole, part, beta=int(bool(product.depths)))

    def as_laid_out(self, product: loop_ir.Product, *, is_sum: bool) -> loop_ir.Product:
        """A product with the matrices that lie by columns in a tile: of its rows, or of the terms of its sums."""
        if is_sum:
            return replace(product, a=self.turned(product.a, by_rows=False), b=self.turned(product.b, by_rows=True))
        return replace(product, out=self.turned(product.out, by_rows=True), a=self.turned(product.a, by_rows=True))

    def turned(self, matrix: loop_ir.Matrix, *, by_rows: bool) -> loop_ir.Matrix:
        """A matrix as it lies in a tile, whose iterations have a row each, or a column."""
        row = self.writer.rows.get(matrix.buffer.root)
        if row is None or not row.turned:
            return matrix
        if by_rows:
            return replace(matrix, row_stride=1, column_stride=row.loop.tile * (matrix.column_stride // row.pitch))
        return replace(matrix, row_stride=row.loop.tile * (matrix.row_stride // row.pitch), column_stride=1)

    def part(self, product: loop_ir.Product, part: ProductPart, beta: float | None = None) -> None:
        """Write a part of a product, added to `beta` times what is there, which is the product's own if not given."""
        out, a, b = product.out, product.a, product.b
        (row, column, term), (m, n, k) = part.first, part.size
        dtype = out.buffer.dtype
        scales = Constant(dtype.type(product.alpha)), Constant(dtype.type(product.beta if beta is None else beta))
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
        self.writer.add(Evaluate(call))

    def matrix(self, matrix: loop_ir.Matrix) -> tuple[Expression, ...]:
        transposed = matrix.column_stride != 1
        leading = matrix.column_stride if transposed else matrix.row_stride
        flag = Constant(BOOL.type(transposed))
        return array_of(matrix.buffer), self.writer.place(matrix.buffer, matrix.offset), integer(leading), flag

    def result_of(self, product: loop_ir.Product) -> tuple[Name, Expression]:
        """The start of the result of a product: a task has sums of its own."""
        out = product.out
        return self.sums.get(out.buffer) or (array_of(out.buffer), self.writer.place(out.buffer, out.offset))

    def clear(self, product: loop_ir.Product) -> None:
        """Store zeros where products are summed."""
        array, place = self.result_of(product)
        with self.writer.each_of(product.m * product.n) as element:  # which lie together
            self.writer.add(Store(array, plus(element, place), Constant(product.out.buffer.dtype.type(0))))


def transposed(product: loop_ir.Product) -> loop_ir.Product:
    """The product that gives the transposed matrix."""
    out, a, b = (
        replace(x, row_stride=x.column_stride, column_stride=x.row_stride) for x in (product.out, product.b, product.a)
    )
    return replace(product, out=out, a=a, b=b, m=product.n, n=product.m)


@dataclass(frozen=True, slots=True)
class ProductPart:
    """A part of a product: its first row, column and term, and their numbers.

    Of the buffers in `kept` there is this part only.
    """

    first: tuple[Expression, Expression, Expression]
    size: tuple[Expression, Expression, Expression]
    kept: AbstractSet[Buffer] = frozenset()

    def transposed(self) -> ProductPart:
        (row, column, term), (m, n, k) = self.first, self.size
        return ProductPart((column, row, term), (n, m, k), self.kept)

    def moved(
        self, matrix: loop_ir.Matrix, place: tuple[Expression, ...], row: Expression, column: Expression
    ) -> tuple[Expression, ...]:
        """A matrix at a place, its array and its offset first, that begins with this row and this column."""
        if matrix.buffer.root in self.kept:
            return place
        array, offset, *others = place
        for by, stride in ((row, matrix.row_stride), (column, matrix.column_stride)):
            if not isinstance(by, Constant) or by.value:
                offset = offset + integer(stride) * by
        return array, offset, *others


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

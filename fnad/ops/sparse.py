"""Linear equations with a sparse matrix, the sum of `data` at `rows` and `columns`, by solvers of scipy.sparse.linalg.

The transposed matrix has rows and columns exchanged. Of Ā = -b̄ xᵀ only the elements count that are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fnad.errors import ConvergenceError, FactorizationError, ShapeError
from fnad.ir.axes import AxisPairs, Custom
from fnad.ir.primitive import HOST, Library, Pull, Sample
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval
from fnad.ops.arithmetic import add, mul, neg
from fnad.ops.constructors import INEXACT, by_name, check_one_dtype, primitive
from fnad.ops.indexing import gather
from fnad.ops.linalg import IF_SINGULAR
from fnad.ops.shape import copies, iota, reduce_sum, reshape_to, sample, transpose

DIRECT = "spsolve"


def _infer(data: Aval, rows: Aval, columns: Aval, b: Aval, *, method: str, **_: Any) -> Aval:
    check_one_dtype("solve_sparse", data, b)
    if b.ndim != 2 or not data.shape == rows.shape == columns.shape:
        raise ShapeError(f"solve_sparse takes columns and places of elements, got {data}, {rows}, {columns} and {b}")
    return b


def _pull(results: Any, primals: Any, cts: Any, **how: Any) -> list[Symbol | None]:
    (x,), (data, rows, columns, _), (ct,) = results, primals, cts
    b_ct = solve_sparse(data, columns, rows, ct, **how)
    data_ct = neg(reduce_sum(mul(gather(b_ct, rows), gather(x, columns)), axes=(1,)))
    return [data_ct, None, None, b_ct]


def _batch(count: int, operands: Sequence[Symbol], stacked: Sequence[bool], **how: Any) -> Symbol:
    """Right sides of one matrix are columns; several matrices are the blocks of one."""
    *matrix, b = operands
    n, width = b.shape[-2:]
    if not any(stacked[:3]):
        x = solve_sparse(*matrix, reshape_to(transpose(b, permutation=(1, 0, 2)), (n, count * width)), **how)
        return transpose(reshape_to(x, (n, count, width)), permutation=(1, 0, 2))
    data, rows, columns, b = (x if s else copies(x, count) for x, s in zip(operands, stacked, strict=True))
    block = iota(dtype=I64, shape=rows.shape, axis=0) * n
    blocks = [reshape_to(x, (data.aval.size,)) for x in (data, add(rows, block), add(columns, block))]
    x = solve_sparse(*blocks, reshape_to(b, (count * n, width)), **how)
    return reshape_to(x, (count, n, width))


def _align(*_: Aval, **__: Any) -> tuple[AxisPairs, ...]:
    return (), (), (), ((1, 1),)


def _samples() -> Iterable[Sample]:
    how = {"method": DIRECT, "rtol": None, "atol": None, "maxiter": None}
    rows, columns = np.array([0, 1, 2, 2, 0, 1, 1]), np.array([0, 1, 2, 2, 1, 0, 2])
    for dtype in by_name(INEXACT):
        data = sample((7,), dtype)
        data[:4] += 3
        yield Sample((data, rows, columns, sample((3, 2), dtype, 1)), how)
        yield Sample((data, rows, columns, sample((3, 0), dtype)), how)


@primitive(_infer, Pull(_pull), Library(HOST), _samples, axes=Custom(_batch, _align))
def solve_sparse(data: Any, rows: Any, columns: Any, b: Any, *, method: str, **options: Any) -> Any:
    """The solution of linear equations whose matrix has `data` at `rows` and `columns`, by a SciPy `method`."""
    from scipy.sparse import csc_array, linalg  # noqa: PLC0415 - moved out of `import fnad`

    if not b.size:
        return np.array(b)
    matrix = csc_array((data, (rows, columns)), shape=(len(b), len(b)))
    if method == DIRECT:
        try:
            return linalg.splu(matrix).solve(b)
        except RuntimeError as error:
            raise FactorizationError(str(error), remedy=IF_SINGULAR) from None
    given = {name: value for name, value in options.items() if value is not None}
    found = [getattr(linalg, method)(matrix, column, **given) for column in b.T]
    if any(info for _, info in found):
        raise ConvergenceError(
            f"scipy.sparse.linalg.{method} did not succeed: info is {max(info for _, info in found)}",
            remedy="give a larger rtol= or maxiter=, or use scipy.sparse.linalg.spsolve",
        )
    return np.stack([x for x, _ in found], axis=1).astype(b.dtype)

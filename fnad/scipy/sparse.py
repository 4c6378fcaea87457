"""scipy.sparse: matrices with traced elements at places that are known, and products with traced vectors and matrices.

A matrix of traced elements has a subclass of the SciPy class, which computes the places in NumPy and the elements by
traced functions. It is made where a constructor receives traced elements, in the formats COO, CSR and CSC;
a result that has another format in SciPy is COO here. Elements that are 0 are stored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial, wraps
from importlib import import_module
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from fnad.errors import ShapeError, TracerEscapeError, UnsupportedFunctionError
from fnad.numpy.bodies import XP, Body
from fnad.numpy.registry import RULES
from fnad.scipy.rule import others_of
from fnad.scipy.sparse_elements import AllElements, Triplets, check_reader, kind_of, stored
from fnad.upward import UPWARD

FORMATS = ("coo", "csr", "csc")
ELEMENTWISE = "convert the operands to arrays with toarray()"


# ---- SciPy's methods on traced values --------------------------------------------------------------------------------


def is_traced(value: Any) -> bool:
    """True for a traced value and for a sparse matrix of traced elements."""
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype.hasobject):
        return any(map(is_traced, value))
    return is_matrix(type(value)) or UPWARD.has_traced(value)


def is_matrix(kind: type[Any]) -> bool:
    """True for the classes of sparse matrices with traced elements."""
    return hasattr(kind, "_kind")


def on_traced(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a matrix with traced elements, of which errors have the user's line."""

    @wraps(rule)
    def method(*args: Any, **kwargs: Any) -> Any:
        return UPWARD.traced(method, args, kwargs)

    RULES[method] = Body(rule)
    return method


def either(path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function as the rule of a SciPy function for traced arguments and sparse matrices of traced elements."""

    def enter(rule: Callable[..., Any]) -> Callable[..., Any]:
        traced = on_traced(rule)

        @wraps(rule)
        def call(*args: Any, **kwargs: Any) -> Any:
            function = traced if any(map(is_traced, (*args, *kwargs.values()))) else resolve_name(path)
            return function(*args, **kwargs)

        return call

    return enter


# ---- matrices with traced elements -----------------------------------------------------------------------------------


def triplets(matrix: Any) -> Triplets:
    """The elements of a sparse matrix, with those that are stored twice."""
    if not is_matrix(type(matrix)):
        stored = matrix.tocoo()
        return Triplets(stored.data, *_places(stored.coords))
    own, kind = vars(matrix), AllElements if matrix._is_whole else Triplets
    if matrix.format == "coo":
        return kind(own["data"], *_places(own["coords"]))
    return kind(own["data"], *_expanded(matrix.format, own["indices"], own["indptr"]))


def _places(coords: Any) -> tuple[Any, Any]:
    _check_dimensions(len(coords))
    rows, columns = map(_known, coords)
    return rows, columns


def _check_dimensions(number: int) -> None:
    if number != 2:
        raise ShapeError(f"a sparse array of {number} dimension(s) has no rule for traced elements")


def _known(places: Any) -> Any:
    """Places as ordinary integers."""
    try:
        return np.asarray(places).astype(np.int64)
    except TracerEscapeError:
        raise UnsupportedFunctionError(
            "the places of the elements of a sparse matrix are traced",
            remedy="take them from outside the traced function, or from its shapes",
        ) from None


def _expanded(kind: str, indices: Any, indptr: Any) -> tuple[Any, Any]:
    """Rows and columns of a compressed matrix."""
    indices, indptr = _places((indices, indptr))
    major = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return (major, indices) if kind == "csr" else (indices, major)


def made(kind: type[Any], elements: Triplets, shape: Any) -> Any:
    """A matrix of a SciPy class with traced elements."""
    return _fill(object.__new__(kind), elements, shape)


def _fill(self: Any, elements: Triplets, shape: Any) -> Any:
    """Make an object a matrix of traced elements; equal places of compressed ones are summed, and in order."""
    values, rows, columns = elements
    m, n = map(int, shape)
    if rows.size and (min(rows.min(), columns.min()) < 0 or rows.max() >= m or columns.max() >= n):
        raise ShapeError(f"the places of a sparse matrix do not fit its shape {(m, n)}")
    if not values.shape == rows.shape == columns.shape:
        raise ShapeError(f"{values.shape}, {rows.shape} and {columns.shape} are not elements, rows and columns")
    self.__class__ = _traced_class(type(self))
    self._shape, self.maxprint, self._is_whole = (m, n), 50, isinstance(elements, AllElements)
    if self.format == "coo":
        self.coords, self.data, self.has_canonical_format = (rows, columns), values, False
        return self
    major, minor, size = (rows, columns, m) if self.format == "csr" else (columns, rows, n)
    width = max(n if self.format == "csr" else m, 1)
    keys, places = np.unique(major * width + minor, return_inverse=True)
    self.data = _summed(values, places.reshape(-1), len(keys))
    self.indices = keys % width
    self.indptr = np.searchsorted(keys // width, np.arange(size + 1))
    return self


def _summed(values: Any, places: Any, count: int) -> Any:
    """The sums of the values at each place."""
    if np.array_equal(places, np.arange(count)):
        return values
    sums = XP.zeros(count, dtype=values.dtype)
    XP.add.at(sums, places, values)
    return sums


class TracedMatrix:
    """The methods that matrices with traced elements have in the place of SciPy methods.

    Objects of that class become such matrices, so their classes have its layout: these members, and no base but it.
    """

    __slots__ = ()
    _kind: type[Any]
    format: str
    data: Any
    coords: Any
    indices: Any
    indptr: Any
    _shape: Any
    _is_whole = False
    __getattribute__ = stored

    def __init__(self, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **_: Any) -> None:
        _construct(self, arg1, shape, dtype)

    def _as(self, format: str, elements: Triplets | None = None, shape: Any = None) -> Any:
        kind = getattr(self, f"_{format}_container")
        return made(kind, triplets(self) if elements is None else elements, self._shape if shape is None else shape)

    tocoo, tocsr, tocsc = (on_traced(lambda self, copy=False, kind=kind: self._as(kind)) for kind in FORMATS)

    def getnnz(self, axis: Any = None) -> Any:
        """The number of elements, also of each row or column."""
        if self._is_whole:
            check_reader("nnz")
        return self._kind._getnnz(self, axis)

    _getnnz = getnnz
    nnz = size = property(getnnz)

    def asformat(self, format: str | None, copy: bool = False) -> Any:
        return self if format in (None, self.format) else getattr(self, f"to{format}")()

    @on_traced
    def _no_format(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedFunctionError(
            "a sparse matrix of traced elements has the formats COO, CSR and CSC", remedy="use tocsr() or tocsc()"
        )

    todia = tolil = todok = tobsr = _no_format

    def _with_data(self, data: Any, copy: bool = True) -> Any:
        return self._as(self.format, triplets(self)._replace(values=data))

    @on_traced
    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        values, rows, columns = origin = triplets(self)
        turned = {"coo": "coo", "csr": "csc", "csc": "csr"}[self.format]
        return self._as(turned, type(origin)(values, columns, rows), self._shape[::-1])

    @on_traced
    def toarray(self, order: Any = None, out: None = None) -> Any:
        values, rows, columns = triplets(self)
        result = XP.zeros(self._shape, dtype=values.dtype)
        XP.add.at(result, (rows, columns), values)
        return result

    @on_traced
    def todense(self, order: Any = None, out: None = None) -> Any:
        if not issubclass(self._kind, _scipy().sparray):
            raise UnsupportedFunctionError("todense() makes a np.matrix, which is not traced", remedy="use toarray()")
        return TracedMatrix.toarray(self)

    @on_traced
    def diagonal(self, k: int = 0) -> Any:
        values, rows, columns = triplets(self)
        count = max(min(self._shape[0] + min(k, 0), self._shape[1] - max(k, 0)), 0)
        chosen = np.flatnonzero(columns - rows == k)
        return _summed(XP.take(values, chosen), rows[chosen] - max(-k, 0), count)

    @on_traced
    def sum(self, axis: Any = None, dtype: Any = None, out: None = None) -> Any:
        if axis is None:
            return XP.sum(triplets(self).values, dtype=dtype)
        if not issubclass(self._kind, _scipy().sparray):
            raise UnsupportedFunctionError(
                "the sum of a sparse matrix along an axis is a np.matrix, which is not traced",
                remedy="multiply it with a vector of ones, A @ np.ones(n)",
            )
        return XP.sum(TracedMatrix.toarray(self), axis=axis, dtype=dtype)

    # ---- operators ---------------------------------------------------------------------------------------------------

    @on_traced
    def _plus(self, other: Any, sign: int = 1) -> Any:
        if not _is_sparse(other):
            if not XP.ndim(other):
                raise ShapeError("a number is not added to a sparse matrix", remedy=ELEMENTWISE)
            return TracedMatrix.toarray(self) + sign * other
        return _sum(self, other, sign)

    def __add__(self, other: Any) -> Any:
        return self._plus(other)

    def __radd__(self, other: Any) -> Any:
        return self._plus(other)

    def __sub__(self, other: Any) -> Any:
        return self._plus(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._plus(other)  # type: ignore[operator]  # SciPy's

    def __truediv__(self, other: Any) -> Any:
        return self.multiply(1.0 / other) if not XP.ndim(other) else self.multiply(1.0 / XP.asarray(other))

    @on_traced
    def _matmul_dispatch(self, other: Any) -> Any:
        return _times(self, other)

    @on_traced
    def _rmatmul_dispatch(self, other: Any) -> Any:
        return _times_from_the_right(self, other)

    @on_traced
    def multiply(self, other: Any) -> Any:
        """The products of elements."""
        if not _is_sparse(other):
            return _scaled(self, other)
        return _common(self, other)

    @on_traced
    def __getitem__(self, key: Any) -> Any:
        """The elements at some places. SciPy's method on a matrix of element numbers finds the places."""
        values, rows, columns = own = triplets(self)
        kind = self._kind if self.format != "coo" else self._csr_container  # type: ignore[attr-defined]
        found = kind((np.arange(1.0, len(rows) + 1), (rows, columns)), shape=self._shape)[key]
        if not _is_sparse(found):
            return XP.take(values, int(found) - 1) if found else values.dtype.type(0)
        if found.ndim != 2:
            raise UnsupportedFunctionError("a row of a sparse array has no rule", remedy="write A[i:i + 1]")
        origin = triplets(found)
        taken = type(own)(XP.take(values, origin.values.astype(int) - 1), origin.rows, origin.columns)
        return made(found._coo_container, taken, found.shape).asformat(self.format)


def as_traced(matrix: Any) -> Any:
    """A sparse matrix, of which the elements may be not traced, as one of traced elements; it shares the elements."""
    like = matrix if matrix.format in FORMATS else matrix.tocoo()
    found = object.__new__(_traced_class(getattr(like, f"_{like.format}_container")))
    vars(found).update(vars(like))
    return found


@cache
def _traced_class(kind: type[Any]) -> type[Any]:
    """The class of the matrices with traced elements that belongs to a SciPy class."""
    if is_matrix(kind):
        return kind
    if kind.__name__.rpartition("_")[0] not in FORMATS:
        raise UnsupportedFunctionError(
            f"scipy.sparse.{kind.__name__} has no rule for traced elements",
            remedy="use csc_array, csr_array or coo_array",
        )
    members = {
        name: member for name, member in vars(TracedMatrix).items() if name not in ("__doc__", "__annotations__")
    }
    return type(kind.__name__, (kind,), {**members, "_kind": kind, "__module__": kind.__module__})


def _scipy() -> Any:
    return import_module("scipy.sparse")


def coo_array_of(value: Any) -> Any:
    """A sparse array in the format COO of an array or a matrix that may be traced."""
    return UPWARD.callee(_scipy().coo_array)(value)


def _is_sparse(value: Any) -> bool:
    return _scipy().issparse(value)


# ---- constructors ----------------------------------------------------------------------------------------------------


def _construct(self: Any, arg1: Any, shape: Any = None, dtype: Any = None, copy: Any = False, **_: Any) -> None:
    """Make an object the matrix that its constructor is asked for."""
    _traced_class(type(self))
    elements, found = _given(self, arg1, shape)
    values = elements.values if dtype is None else elements.values.astype(dtype)
    _fill(self, elements._replace(values=values), found if shape is None else shape)


def _given(self: Any, arg1: Any, shape: Any) -> tuple[Triplets, Any]:
    """The elements that a constructor receives, and a shape that they fit in."""
    if _is_sparse(arg1):
        return triplets(arg1), arg1.shape
    if not isinstance(arg1, tuple):
        dense = XP.asarray(arg1)
        if isinstance(self, _scipy().sparray):  # a matrix has two dimensions
            _check_dimensions(dense.ndim)
        dense = XP.atleast_2d(dense)
        rows, columns = (at.reshape(-1) for at in np.indices(dense.shape))
        return AllElements(XP.reshape(dense, (-1,)), rows, columns), dense.shape
    data, *places = arg1
    values = XP.asarray(data)
    if len(places) == 1:
        rows, columns = _places(places[0])
        least = 1 + int(rows.max(initial=-1)), 1 + int(columns.max(initial=-1))
        return Triplets(values, rows, columns), least
    rows, columns = _expanded(self.format, *places)
    major, minor = len(places[1]) - 1, 1 + int(np.max(places[0], initial=-1))
    return Triplets(values, rows, columns), (major, minor) if self.format == "csr" else (minor, major)


def _construct_diagonals(self: Any, arg1: Any, shape: Any = None, dtype: Any = None, copy: Any = False) -> None:
    """Make an object the matrix with these diagonals, in the format COO: element j of one is in column j."""
    self.__class__ = self._coo_container
    if not isinstance(arg1, tuple):
        _construct(self, arg1, shape, dtype)
        return
    if shape is None:
        raise ShapeError("expected a shape argument")
    data, offsets = XP.atleast_2d(XP.asarray(arg1[0])), np.atleast_1d(_known(arg1[1]))
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape).reshape(-1)
    rows = columns - np.repeat(offsets, data.shape[1])
    inside = np.flatnonzero((rows >= 0) & (rows < shape[0]) & (columns < shape[1]))
    values = XP.take(XP.reshape(data if dtype is None else data.astype(dtype), (-1,)), inside)
    _fill(self, Triplets(values, rows[inside], columns[inside]), shape)


@either("scipy.sparse._construct:_block")
def _block(blocks: Any, format: Any, dtype: Any, return_spmatrix: bool = False) -> Any:
    """The matrix of which these are the blocks, None for zeros, of which each row and each column has one at least."""
    grid = [[None if block is None else coo_array_of(block) for block in row] for row in blocks]
    sizes = [_sizes(grid, 0), _sizes(list(zip(*grid, strict=True)), 1)]
    starts = [np.cumsum([0, *size]) for size in sizes]
    parts: list[Triplets] = []
    for i, row in enumerate(grid):
        for j, block in enumerate(row):
            if block is not None:
                if block.shape != (sizes[0][i], sizes[1][j]):
                    raise ShapeError(f"blocks[{i},{j}] of shape {block.shape} does not fit those beside it")
                values, rows, columns = own = triplets(block)
                parts.append(type(own)(values, rows + starts[0][i], columns + starts[1][j]))
    values, *places = (XP.concatenate(part) for part in zip(*parts, strict=True))
    kind = _scipy().coo_matrix if return_spmatrix else _scipy().coo_array
    elements = kind_of(*parts)(values if dtype is None else values.astype(dtype), *places)
    return made(kind, elements, (starts[0][-1], starts[1][-1])).asformat(format)


def _sizes(grid: Any, axis: int) -> list[int]:
    """The sizes of the blocks in each row or column."""
    try:
        return [next(block.shape[axis] for block in row if block is not None) for row in grid]
    except StopIteration:
        raise ShapeError("a row or a column of blocks is None") from None


# ---- sums and products -----------------------------------------------------------------------------------------------


def _sum(x: Any, y: Any, sign: int) -> Any:
    """The sum of sparse matrices; SciPy's result has the format of the first one."""
    if x.shape != y.shape:
        raise ShapeError("inconsistent shapes")
    a, b = triplets(x), triplets(y)
    values = XP.concatenate([a.values, sign * b.values])
    rows, columns = (np.concatenate(at) for at in ((a.rows, b.rows), (a.columns, b.columns)))
    return _of_format(x, kind_of(a, b)(values, rows, columns), x.shape)


def _of_format(like: Any, elements: Triplets, shape: Any) -> Any:
    """A matrix of the kind and format of another one, compressed as SciPy's results are."""
    name = "csc" if like.format == "csc" else "csr"
    return made(getattr(like, f"_{name}_container"), elements, shape)


def _scaled(x: Any, other: Any) -> Any:
    """The elements of a sparse matrix times those of an array or a number."""
    values, rows, columns = own = triplets(x)
    if XP.ndim(other):
        other = XP.broadcast_to(other, x.shape)[rows, columns]
    kind = x.format if x.format in FORMATS else "coo"
    return made(getattr(x, f"_{kind}_container"), type(own)(values * other, rows, columns), x.shape)


def _common(x: Any, y: Any) -> Any:
    """The products of elements that both have."""
    if x.shape != y.shape:
        raise ShapeError("inconsistent shapes")
    a, b = (triplets(each.tocsr()) for each in (x, y))
    _, i, j = np.intersect1d(a.rows * x.shape[1] + a.columns, b.rows * x.shape[1] + b.columns, True, True)
    product = XP.take(a.values, i) * XP.take(b.values, j)
    return _of_format(x, kind_of(a, b)(product, a.rows[i], a.columns[i]), x.shape)


def _product(x: Any, other: Any) -> Any:
    """The product `x @ other`: the products of the stored elements, added up in each row."""
    if x.ndim != 2 or other.ndim not in (1, 2):
        raise ShapeError(f"a sparse matrix of shape {x.shape} times a traced array of shape {other.shape}")
    if other.shape[0] != x.shape[1]:
        n, rows = x.shape[1], other.shape[0]
        raise ShapeError(f"matmul: dimension mismatch with signature (n,k={n}),(k={rows},m)->(n,m)")
    stored = triplets(x)
    values = stored.values if other.ndim == 1 else stored.values[:, None]
    terms = values * XP.take(other, stored.columns, axis=0)
    result = XP.zeros((x.shape[0], *other.shape[1:]), dtype=np.result_type(stored.values.dtype, other.dtype))
    XP.add.at(result, stored.rows, terms)
    return result


def _of_two(x: Any, y: Any) -> Any:
    """The product of two sparse matrices: of each pair of elements where the column of one is the row of the other."""
    if x.shape[1] != y.shape[0]:
        raise ShapeError(f"matmul: dimension mismatch of shapes {x.shape} and {y.shape}")
    a, b = triplets(x), triplets(y.tocsr())
    starts = np.searchsorted(b.rows, np.arange(y.shape[0] + 1))
    counts = np.diff(starts)[a.columns]
    i = np.repeat(np.arange(len(counts)), counts)
    j = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts[a.columns], counts)
    terms = XP.take(a.values, i) * XP.take(b.values, j)
    return _of_format(x, kind_of(a, b)(terms, a.rows[i], b.columns[j]), (x.shape[0], y.shape[1]))


def _times(x: Any, other: Any) -> Any:
    if _is_sparse(other):
        return _of_two(x, other)
    other = XP.asarray(other)
    return _product(x, other) if other.ndim else _scaled(x, other)


def _times_from_the_right(x: Any, other: Any) -> Any:
    other = XP.asarray(other)
    return XP.transpose(_product(x.transpose(), XP.transpose(other))) if other.ndim else _scaled(x, other)


def _operators(path: str, construct: Callable[..., Any] = _construct) -> SimpleNamespace:
    """The operators of a SciPy class, for matrices without traced elements."""
    path = f"scipy.sparse.{path}"
    return SimpleNamespace(
        __init__=either(f"{path}.__init__")(construct),
        _matmul_dispatch=either(f"{path}._matmul_dispatch")(_times),
        _rmatmul_dispatch=either(f"{path}._rmatmul_dispatch")(_times_from_the_right),
        _add_sparse=either(f"{path}._add_sparse")(partial(_sum, sign=1)),
        _sub_sparse=either(f"{path}._sub_sparse")(partial(_sum, sign=-1)),
        _add_dense=either(f"{path}._add_dense")(lambda x, other: x.toarray() + other),
        multiply=either(f"{path}.multiply")(lambda x, other: (_common if _is_sparse(other) else _scaled)(x, other)),
    )


_spbase = _operators("_base:_spbase")
_coo_base = _operators("_coo:_coo_base")
_cs_matrix = _operators("_compressed:_cs_matrix")
_dia_base = _operators("_dia:_dia_base", _construct_diagonals)

__getattr__ = others_of("scipy.sparse")

"""The Jacobian of a program that moves elements and computes element by element, by its diagonals.

A diagonal of a value has at most one nonzero in each row: for each element of the value, the element of an argument
that it is differentiated in, or none, and the derivative, an array of the shape of the value. Elementwise operations
compute on the diagonals of their operands, data movement moves them. A difference of neighbours has two, where a stack
of directions has one row for each element of the argument. The diagonals are written into zeros at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.ir.axes import Elementwise
from fnad.ir.builder import SymbolEnvironment, bind_equation, trace
from fnad.ir.primitive import Concatenation, DynamicUpdate, IndexMap, Structured, Unknown
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.size import is_size
from fnad.ir.symbol import Symbol
from fnad.ir.types import I64, Aval, Dtype
from fnad.ops.arithmetic import add
from fnad.ops.indexing import scatter, scatter_add
from fnad.ops.shape import broadcast_in_dim, constant, iota, reshape, reshape_to, slice_axis
from fnad.transforms.activity import active_operands, active_vars
from fnad.transforms.columns import Tangent, built, pushed
from fnad.transforms.dce import dce
from fnad.transforms.joint import differentiable_outputs
from fnad.transforms.rewrite import reduced

MOST_ELEMENTS = 2048
"""The most elements of a value."""

MOST_DIAGONALS = 16
"""The most diagonals of a value; their number times that of the equations is bounded by `MOST_PUSHES`."""

MOST_PUSHES = 2048
MOST_PIECES = 64
"""The most straight pieces of all diagonals of a Jacobian."""

MOST_DENSE = 0.5
"""The largest part of a Jacobian that its diagonals fill; a stack of directions computes a denser one."""

Array: TypeAlias = "np.ndarray[Any, Any]"

Places: TypeAlias = tuple[Var, bytes]
"""An input, and for each element of a value the element of this input, or -1, as bytes of integers."""

Diagonals: TypeAlias = dict[Places, Tangent]


class _TooManyError(Exception):
    """The Jacobian has too many diagonals."""


def diagonals(program: Program, wrt: Sequence[bool], outputs: int | None = None) -> Program | None:
    """The program (x…) -> (y…, blocks…), or None if a stack of directions is better.

    A block is the derivative of an inexact output in a marked input, whose axes are the last ones. The blocks of an
    output follow each other.
    """
    program = dce(reduced(program))
    marked = [var for var, is_marked in zip(program.inputs, wrt, strict=True) if is_marked]
    active = active_vars(program, wrt)
    if not all(0 < _size(var) <= MOST_ELEMENTS for var in (*active, *marked)):
        return None
    if not all(_is_local(equation) for equation in program.equations if any(active_operands(equation, active))):
        return None
    found: dict[Atom, Diagonals] = {
        var: {(var, _bytes(np.arange(var.aval.size))): np.ones(var.aval.shape, var.aval.dtype)} for var in marked
    }
    made: dict[Atom, Equation] = {var: equation for equation in program.equations for var in equation.results}
    ends = differentiable_outputs(program, outputs)

    def swept(*args: Symbol) -> list[Symbol]:
        env, pushes = SymbolEnvironment(program.inputs, args), 0
        for equation in program.equations:
            primals = env.read(equation.operands)
            env.write(equation.results, bind_equation(equation, primals))
            if any(active_operands(equation, active)):
                found[equation.results[0]] = moved = _through(equation, primals, found)
                pushes += len(moved)
                if len(moved) > MOST_DIAGONALS or pushes > MOST_PUSHES:
                    raise _TooManyError
        pieces = {(atom, var): list(_pieces(atom, var, found, made)) for atom in ends for var in marked}
        filled = sum(len(piece.rows) for each in pieces.values() for piece in each)
        size = sum(atom.aval.size * var.aval.size for atom, var in pieces)
        if sum(map(len, pieces.values())) > MOST_PIECES or filled > MOST_DENSE * size:
            raise _TooManyError
        return [*env.read(program.outputs), *[_written(atom, var, each) for (atom, var), each in pieces.items()]]

    try:
        return trace(swept, *program.in_avals, name=program.name)
    except _TooManyError:
        return None


def _size(var: Var) -> int:
    return 0 if any(map(is_size, var.aval.shape)) else var.aval.size


def _is_local(equation: Equation) -> bool:
    """True for an elementwise operation, and for one that moves the elements of its operands."""
    primitive = equation.primitive
    if equation.regions or len(equation.results) > 1 or isinstance(primitive.derivative, (Structured, Unknown)):
        return False
    if isinstance(primitive.lower, DynamicUpdate):
        return -1 not in _starts(equation)
    return isinstance(primitive.axes, Elementwise) or isinstance(primitive.lower, (IndexMap, Concatenation))


def _through(equation: Equation, primals: Sequence[Symbol], found: Mapping[Atom, Diagonals]) -> Diagonals:
    """The diagonals of the result of an equation."""
    given = [found.get(atom, {}) for atom in equation.operands]
    if isinstance(equation.primitive.lower, (Concatenation, DynamicUpdate)):
        terms = _joined(equation, given)
    elif isinstance(equation.primitive.axes, Elementwise):
        terms = (
            (places, [each.get(places) for each in given]) for places in dict.fromkeys(p for g in given for p in g)
        )
    else:
        shape = equation.operands[0].aval.shape
        terms = (
            ((var, _bytes(equation.primitive.evaluate(_numbers(at, shape) + 1, **equation.keywords) - 1)), [tangent])
            for (var, at), tangent in given[0].items()
        )
    result: Diagonals = {}
    for places, tangents in terms:
        at = _numbers(places[1], equation.results[0].aval.shape) >= 0
        tangent = pushed(equation, primals, tangents)[0] if at.any() else None
        if isinstance(tangent, np.ndarray):  # elements that are in no column are not read: let all be the same
            tangent = np.where(at, tangent, tangent[at][0]) if tangent[at].any() else None
        if tangent is not None:
            result[places] = _sum(result[places], tangent, equation) if places in result else tangent
    return result


def _sum(x: Tangent, y: Tangent, equation: Equation) -> Tangent:
    """The sum of two diagonals that have come to the same places."""
    aval = equation.results[0].aval
    return x + y if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) else add(built(x, aval), built(y, aval))


def _joined(equation: Equation, given: Sequence[Diagonals]) -> Iterator[tuple[Places, list[Tangent | None]]]:
    """The diagonals of operands joined where they continue each other in the result."""
    parts: dict[tuple[Var, int, int], dict[int, tuple[Places, Array, Array]]] = {}
    for i, (diagonals_of, rows) in enumerate(zip(given, _rows_of(equation), strict=False)):
        for places in diagonals_of:
            at = _numbers(places[1], rows.shape)
            is_kept = (at >= 0) & (rows >= 0)
            if is_kept.any():
                offset, n = int((at - rows)[is_kept][0]), 0
                while i in parts.setdefault((places[0], offset, n), {}):
                    n += 1
                parts[places[0], offset, n][i] = places, rows[is_kept], at[is_kept]
    for (var, _, _), found in parts.items():
        joined = np.full(equation.results[0].aval.size, -1)
        for _, rows, at in found.values():
            joined[rows] = at
        yield (var, _bytes(joined)), [each[found[i][0]] if i in found else None for i, each in enumerate(given)]


def _rows_of(equation: Equation) -> list[Array]:
    """For each operand that a result is joined of, the numbers of its elements in the result; -1 for replaced ones."""
    shape, operands = equation.results[0].aval.shape, equation.operands
    rows = np.arange(equation.results[0].aval.size).reshape(shape)
    if isinstance(equation.primitive.lower, Concatenation):
        axis = equation.params["axis"]
        return np.split(rows, np.cumsum([operand.aval.shape[axis] for operand in operands])[:-1], axis)
    starts = _starts(equation)
    box = tuple(slice(start, start + size) for start, size in zip(starts, operands[1].aval.shape, strict=True))
    left = rows.copy()
    left[box] = -1
    return [left, rows[box]]


def _starts(equation: Equation) -> list[int]:
    """The starts of the box that is replaced; -1 for one that is not known or does not fit."""
    x, box = (operand.aval.shape for operand in equation.operands[:2])
    found: list[int] = []
    for start, n, size in zip(equation.operands[2:], x, box, strict=True):
        number = int(start.value) if isinstance(start, Literal) else n
        number += n * (number < 0)
        found.append(number if 0 <= number <= n - size else -1)
    return found


def _bytes(numbers: Array) -> bytes:
    return numbers.astype(np.int32).tobytes()


def _numbers(places: bytes, shape: Sequence[int]) -> Array:
    return np.frombuffer(places, np.int32).reshape(shape)


# ---- the matrix ------------------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """A straight piece of a diagonal: elements of a tangent, in counting order, and their rows and columns."""

    tangent: Tangent
    elements: Array
    rows: Array
    columns: Array


def _pieces(
    atom: Atom, var: Var, found: Mapping[Atom, Diagonals], made: Mapping[Atom, Equation], rows: Array | None = None
) -> Iterator[_Piece]:
    """The pieces of the Jacobian of an output in an input, from the values that the output is joined of."""
    rows = np.arange(atom.aval.size).reshape(atom.aval.shape) if rows is None else rows
    equation = made.get(atom)
    if equation is not None and isinstance(equation.primitive.lower, (Concatenation, DynamicUpdate)):
        for operand, numbers in zip(equation.operands, _rows_of(equation), strict=False):
            part = np.where(numbers < 0, -1, rows.ravel()[numbers])
            yield from _pieces(operand, var, found, made, part)
        return
    if equation is not None and equation.primitive is reshape:
        operand = equation.operands[0]
        yield from _pieces(operand, var, found, made, rows.reshape(operand.aval.shape))
        return
    for (of, places), tangent in found.get(atom, {}).items():
        if of is var:
            columns = _numbers(places, (-1,))
            elements = np.flatnonzero((columns >= 0) & (rows.ravel() >= 0))
            line = np.stack([elements, rows.ravel()[elements], columns[elements]])
            for start, stop in _straight(np.diff(line)):
                yield _Piece(tangent, *line[:, start:stop])


def _straight(steps: Array) -> Iterable[tuple[int, int]]:
    """The ranges of points between which the steps are the same, and not negative."""
    start, count = 0, steps.shape[1] + 1
    while start < count:
        stop = start + 1
        while stop < count and (steps[:, stop - 1] == steps[:, start]).all() and (steps[:, start] >= 0).all():
            stop += 1
        yield start, stop
        start = stop


def _written(atom: Atom, var: Var, pieces: Sequence[_Piece]) -> Symbol:
    """The matrix of these pieces, of the axes of the output and those of the input."""
    rows, columns, dtype = atom.aval.size, var.aval.size, atom.aval.dtype
    matrix = constant(0, dtype, (rows, columns))
    taken = np.zeros(0, np.int64)
    for piece in pieces:
        flat = piece.rows * columns + piece.columns
        write = scatter_add if np.isin(flat, taken).any() else scatter
        taken = np.union1d(taken, flat)
        values = _part(_vector(piece.tangent, dtype), piece.elements)
        matrix = write(matrix, values, _counted(piece.rows, rows), _counted(piece.columns, columns))
    return reshape_to(matrix, (*atom.aval.shape, *var.aval.shape))


def _vector(tangent: Tangent, dtype: Dtype) -> Symbol:
    if isinstance(tangent, Symbol):
        return reshape_to(tangent, (tangent.aval.size,))
    return built(tangent.ravel(), Aval(dtype, (tangent.size,)))


def _counted(numbers: Array, size: int) -> Symbol:
    """Numbers in equal steps, as part of all numbers below `size`: their range is then known."""
    return _part(iota(dtype=I64, shape=(size,), axis=0), numbers)


def _part(x: Symbol, numbers: Array) -> Symbol:
    """The elements of a vector at numbers in equal steps."""
    first, last, count = int(numbers[0]), int(numbers[-1]), len(numbers)
    step = (last - first) // max(1, count - 1)
    found = slice_axis(x, 0, first, last + 1, max(1, step))
    if count == 1 or step:
        return found
    return broadcast_in_dim(reshape_to(found, ()), shape=(count,), dims=())

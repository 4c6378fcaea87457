"""The sparsity pattern of a program: which elements of its outputs can depend on which elements of some inputs.

A value that depends on the inputs has a pattern, a sparse matrix with a row for each of its elements and a column for
each element of those inputs. An equation makes the patterns of its results from those of its operands: an operation
that moves elements moves rows, as it does with the numbers of the elements; any other joins the rows that its record
(`fnad/ir/axes.py`) says may meet.

What does not depend on the inputs is evaluated, for there is structure in it: indices of gathers and scatters, masks,
the zeros of a matrix in a product. So a pattern holds for certain values of such inputs (`Patterns.read`), and for all
values of the others. It is what a linear map depends on; for a Jacobian, give the program of tangents.

The body of a loop is followed step by step where there are few; of a longer one the pattern is that of any number of
steps. Branches of `cond` are joined. Nothing is known of functions with rules of their own, solvers and callbacks:
there every result depends on every operand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, compress
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array, eye_array, kron, vstack

from fnad.control.loop import Groups
from fnad.control.scan import scan_as_loop
from fnad.errors import FnadError, SparsityError
from fnad.ir import primitive as kinds
from fnad.ir.axes import Contract, Elementwise, Opaque
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.types import Aval, is_inexact
from fnad.transforms.sparsity import aligned_axes, patterns, shared_groups

Array: TypeAlias = "np.ndarray[Any, Any]"
Pattern: TypeAlias = Any
"""A `csr_array` of bools."""

MOST = 10**8
"""Nonzeros that a pattern may have: a byte and an index each."""

FEW = 256
"""Steps of a loop that are followed one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Dependence:
    """The dependence of a value: its pattern, if it depends on the inputs; otherwise its value, if known.

    `read` are the known inputs that the value, or the pattern, was computed from.
    """

    pattern: Pattern | None = None
    value: Array | None = None
    read: frozenset[int] = frozenset()


NOTHING = Dependence()


class Patterns(NamedTuple):
    """The patterns of a program's outputs, None where an output depends on none of the inputs, and the inputs read."""

    patterns: list[Pattern | None]
    read: frozenset[int]


def program_patterns(program: Program, wrt: Sequence[bool], values: Sequence[Array | None]) -> Patterns:
    """The patterns of the outputs, with the elements of the inputs marked in `wrt`, one after the other, as columns.

    `values` are those of the other inputs, None where the pattern is to hold for all. Raises `SparsityError` for one of
    more than `MOST` nonzeros.
    """
    *starts, columns = accumulate((aval.size for aval in compress(program.in_avals, wrt)), initial=0)
    following = iter(starts)
    given = [
        Dependence(_identity(aval.size, columns, next(following)))
        if w
        else Dependence(value=value, read=frozenset() if value is None else frozenset([i]))
        for i, (aval, w, value) in enumerate(zip(program.in_avals, wrt, values, strict=True))
    ]
    found = _outputs(program, given)
    return Patterns([each.pattern for each in found], _read(found))


def _identity(size: int, columns: int, start: int) -> Pattern:
    index = np.arange(start, start + size, dtype=np.int32)
    return _matrix(index, np.arange(size + 1, dtype=np.int32), columns)


def _matrix(columns: Array, ends: Array, width: int) -> Pattern:
    """The pattern with these columns, row after row, where row i ends at `ends[i + 1]`."""
    return csr_array((np.ones(len(columns), bool), columns, ends), shape=(len(ends) - 1, width))


# ---- a program -------------------------------------------------------------------------------------------------------


def _outputs(program: Program, given: Sequence[Dependence]) -> list[Dependence]:
    """The dependences of the outputs, given those of the inputs."""
    env: dict[Var, Dependence] = dict(zip(program.inputs, given, strict=True))

    def read(atom: Atom) -> Dependence:
        return Dependence(value=np.asarray(atom.value)) if isinstance(atom, Literal) else env[atom]

    last = _last_uses(program)
    for position, equation in enumerate(program.equations):
        env.update(zip(equation.results, _results(equation, [read(atom) for atom in equation.operands]), strict=True))
        for var in last.get(position, ()):
            del env[var]
    return [read(atom) for atom in program.outputs]


def _last_uses(program: Program) -> dict[int, list[Var]]:
    """The values that are used no more, by the position of the equation that used them last."""
    kept = {atom for atom in program.outputs if isinstance(atom, Var)}
    last: dict[Var, int] = {}
    for position, equation in enumerate(program.equations):
        last.update(dict.fromkeys(equation.results, position))
        last.update({atom: position for atom in equation.operands if isinstance(atom, Var)})
    found: dict[int, list[Var]] = {}
    for var, position in last.items():
        if var not in kept:
            found.setdefault(position, []).append(var)
    return found


def _results(equation: Equation, operands: Sequence[Dependence]) -> Sequence[Dependence]:
    try:
        if all(x.pattern is None for x in operands):
            return _evaluated(equation, operands)
        if equation.regions:
            return _through_regions(equation, operands)
        return [_joined(_of_result(equation, result.aval, operands), operands) for result in equation.results]
    except FnadError as error:
        raise error.at(equation.source) from None


def _evaluated(equation: Equation, operands: Sequence[Dependence]) -> list[Dependence]:
    """The values that do not depend on the inputs, evaluated if all their operands are known."""
    values = [x.value for x in operands]
    if equation.regions or equation.primitive.effect or any(value is None for value in values):
        return [NOTHING] * len(equation.results)
    with np.errstate(all="ignore"):
        found = equation.primitive.evaluate(*values, **equation.keywords)
    return [
        Dependence(value=np.asarray(v), read=_read(operands)) for v in (found if isinstance(found, tuple) else (found,))
    ]


def _joined(patterns: Iterable[Pattern], operands: Sequence[Dependence]) -> Dependence:
    """The union of patterns, which were found from these operands."""
    found = list(patterns)
    return Dependence(reduce(_union, found) if found else None, read=_read(operands))


def _read(operands: Iterable[Dependence]) -> frozenset[int]:
    return frozenset[int]().union(*[x.read for x in operands])


def _union(x: Pattern, y: Pattern) -> Pattern:
    return x if x is y else x + y


# ---- an equation -----------------------------------------------------------------------------------------------------


def _of_result(equation: Equation, result: Aval, operands: Sequence[Dependence]) -> Iterator[Pattern]:
    """The patterns of a result in each operand."""
    primitive = equation.primitive
    if not is_inexact(result.dtype):
        return
    if _moves(equation, operands):
        yield _moved(equation, operands)
        return
    if _adds(equation, operands):
        yield from _added(equation, operands, result)
        return
    is_bilinear = isinstance(primitive.derivative, kinds.Bilinear)
    axes = aligned_axes(primitive, [atom.aval for atom in equation.operands], equation.params)
    for i, (x, atom, pairs) in enumerate(zip(operands, equation.operands, axes, strict=True)):
        if x.pattern is None:
            continue
        other = operands[1 - i].value if is_bilinear else None
        if isinstance(primitive.axes, Elementwise):
            yield x.pattern if other is None else _masked(x.pattern, np.ravel(other) != 0)
        elif isinstance(primitive.axes, Contract) and other is not None:
            yield _contracted(equation, i, x.pattern, other, result)
        elif isinstance(primitive.axes, Opaque) and other is not None and np.count_nonzero(other) <= FEW:
            yield from _by_terms(equation, i, x.pattern, other)
        else:
            of_result, of_operand = shared_groups(result.shape, atom.aval.shape, pairs)
            yield _rows(_grouped(x.pattern, of_operand, int(of_result.max(initial=-1)) + 1), of_result)


def _moves(equation: Equation, operands: Sequence[Dependence]) -> bool:
    """True if each element of the result is an element of an operand, or a constant, and it is known which."""
    match equation.primitive.lower:
        case kinds.IndexMap() | kinds.Concatenation():
            return True
        case kinds.Gather() | kinds.DynamicSlice():
            return all(x.value is not None for x in operands[1:])
        case kinds.Scatter("{new}") | kinds.DynamicUpdate():
            return all(x.value is not None for x in operands[2:])
        case _:
            return equation.primitive.name == "select" and operands[0].value is not None


def _moved(equation: Equation, operands: Sequence[Dependence]) -> Pattern:
    """The rows of the result: those of the elements that the operation moves there."""
    parts: list[Pattern] = []
    given: list[Array | None] = []
    count = 0
    for x, atom in zip(operands, equation.operands, strict=True):
        size = atom.aval.size
        if x.pattern is not None:
            parts.append(x.pattern)
            given.append(np.arange(count + 1, count + size + 1).reshape(atom.aval.shape))
            count += size
        elif is_inexact(atom.aval.dtype):
            given.append(np.zeros(atom.aval.shape, int))  # these elements depend on nothing
        else:
            given.append(x.value)
    numbers = np.ravel(equation.primitive.evaluate(*given, **equation.keywords))
    return _rows(parts[0] if len(parts) == 1 else vstack(parts, format="csr"), numbers - 1)


def _adds(equation: Equation, operands: Sequence[Dependence]) -> bool:
    """True if elements are added to elements of the result, and it is known to which."""
    match equation.primitive.lower:
        case kinds.Accumulation():
            return True
        case kinds.Scatter():
            return all(x.value is not None for x in operands[2:])
        case _:
            return False


def _added(equation: Equation, operands: Sequence[Dependence], result: Aval) -> Iterator[Pattern]:
    """The rows of the result in an array that is added to, if there is one, and in what is added."""
    *arrays, added = [x.pattern for x in operands[:2]]
    yield from (pattern for pattern in arrays if pattern is not None)
    if added is not None:
        if isinstance(equation.primitive.lower, kinds.Accumulation):
            ((moved,),) = patterns(equation.primitive, [equation.operands[0].aval], equation.params)
            places = moved.rows
        else:
            places = np.arange(result.size).reshape(result.shape)[tuple(x.value for x in operands[2:])].ravel()
        yield _grouped(added, places, result.size)


def _rows(pattern: Pattern, index: Array) -> Pattern:
    """The rows at these places; an empty one for -1."""
    lengths = np.append(np.diff(pattern.indptr), 0)
    found = lengths[index]
    _check(int(found.sum(dtype=np.int64)), pattern.shape)
    if pattern.nnz and int(found.sum()) == pattern.nnz and len(index) == pattern.shape[0] and _is_counting(index):
        return pattern
    ends = np.concatenate([[0], np.cumsum(found, dtype=np.int64)])
    starts = np.append(pattern.indptr[:-1], 0)[index]
    places = np.repeat(starts - ends[:-1], found) + np.arange(ends[-1])
    return _matrix(pattern.indices[places], ends.astype(np.int32), pattern.shape[1])


def _is_counting(index: Array) -> bool:
    return bool(index[0] == 0 and (np.diff(index) == 1).all())


def _grouped(pattern: Pattern, groups: Array, count: int) -> Pattern:
    """The unions of rows by the number of their group."""
    order = np.argsort(groups, kind="stable").astype(np.int32)
    ends = np.searchsorted(groups[order], np.arange(count + 1)).astype(np.int32)
    return _matrix(order, ends, pattern.shape[0]) @ pattern


def _masked(pattern: Pattern, mask: Array) -> Pattern:
    return pattern if mask.all() else _rows(pattern, np.where(mask, np.arange(len(mask)), -1))


def _contracted(equation: Equation, number: int, pattern: Pattern, other: Array, result: Aval) -> Pattern:
    """The rows of a product with an array that is known, whose zeros contribute nothing."""
    mine, theirs = number, 1 - number
    contract, batch = equation.params["contract"], equation.params["batch"]
    shape = equation.operands[mine].aval.shape
    nonzero = np.nonzero(other)
    free = [a for a in range(len(shape)) if a not in contract[mine] and a not in batch[mine]]
    of_other = [a for a in range(other.ndim) if a not in contract[theirs] and a not in batch[theirs]]
    along = [np.arange(shape[a]) for a in free]
    grid = [g.ravel() for g in np.meshgrid(*along, indexing="ij")] if free else []
    repeats = prod(shape[a] for a in free)
    _check(len(nonzero[0]) * repeats, pattern.shape)
    index = [np.repeat(part, repeats) for part in nonzero]
    own = [np.tile(part, len(nonzero[0])) for part in grid]
    at: dict[int, Array] = dict(zip(free, own, strict=True))
    at |= {a: index[b] for a, b in zip(contract[mine], contract[theirs], strict=True)}
    at |= {a: index[b] for a, b in zip(batch[mine], batch[theirs], strict=True)}
    columns = _flat([at[a] for a in range(len(shape))], shape, len(nonzero[0]) * repeats)
    batches, others = [index[b] for b in batch[theirs]], [index[b] for b in of_other]
    places = [*batches, *own, *others] if mine == 0 else [*batches, *others, *own]
    rows = _flat(places, result.shape, len(columns))
    chosen = csr_array((np.ones(len(rows), bool), (rows, columns)), shape=(result.size, pattern.shape[0]))
    return chosen @ pattern


def _by_terms(equation: Equation, number: int, pattern: Pattern, other: Array) -> Iterator[Pattern]:
    """The rows of a bilinear function of an array that is known: what each of its elements is multiplied with.

    That is the element of the other array whose number comes out, for functions that multiply it with one at most.
    """
    shape = equation.operands[number].aval.shape
    numbers = np.arange(1.0, pattern.shape[0] + 1).reshape(shape)
    for place in np.flatnonzero(other):
        unit = np.zeros(other.shape)
        unit.flat[place] = 1.0
        pair = (numbers, unit) if number == 0 else (unit, numbers)
        yield _rows(pattern, np.rint(equation.primitive.evaluate(*pair, **equation.keywords)).astype(int).ravel() - 1)


def _flat(index: Sequence[Array], shape: Sequence[int], count: int) -> Array:
    return np.ravel_multi_index(tuple(index), tuple(shape)) if shape else np.zeros(count, int)


def _check(nonzeros: int, shape: tuple[int, int]) -> None:
    if nonzeros > MOST:
        raise SparsityError(
            f"the Jacobian has {nonzeros} nonzeros here, in {shape[1]} columns: it is not sparse",
            remedy="take products with it by fnad.jvp and fnad.vjp, or all of it by fnad.jacfwd or fnad.jacrev",
        )


# ---- regions ---------------------------------------------------------------------------------------------------------


def _through_regions(equation: Equation, operands: Sequence[Dependence]) -> Sequence[Dependence]:
    match equation.primitive.lower:
        case kinds.Inlined():
            return _outputs(equation.regions[0], operands)
        case kinds.Cond():
            return _branches(equation, operands)
        case kinds.ScanLoop():
            return _scan(equation, operands)
        case kinds.WhileLoop():
            return _while_loop(equation, operands)
        case _:
            return _everything(equation, operands)


def _everything(equation: Equation, operands: Sequence[Dependence]) -> list[Dependence]:
    """Every element of every result depends on every element of the operands."""
    given = [x.pattern for x in operands if x.pattern is not None]
    row = reduce(_union, [_grouped(pattern, np.zeros(pattern.shape[0], int), 1) for pattern in given])
    return [
        Dependence(_rows(row, np.zeros(_known_size(var.aval), int))) if is_inexact(var.aval.dtype) else NOTHING
        for var in equation.results
    ]


def _known_size(aval: Aval) -> int:
    """The number of elements; of a residual stack, those of a row, which stand for all."""
    return prod(aval.shape[1:]) if aval.is_residual_stack else aval.size


def _branches(equation: Equation, operands: Sequence[Dependence]) -> list[Dependence]:
    chosen, given, regions = operands[0].value, operands[1:], equation.regions
    if chosen is not None:
        regions = (regions[min(max(int(chosen), 0), len(regions) - 1)],)
    found = [_outputs(region, given) for region in regions]
    return [_either(each) for each in zip(*found, strict=True)]


def _either(found: Sequence[Dependence]) -> Dependence:
    """The dependence of a value that is one of several."""
    if len(found) == 1:
        return found[0]
    return _joined([x.pattern for x in found if x.pattern is not None], found)


def _scan(equation: Equation, operands: Sequence[Dependence]) -> Sequence[Dependence]:
    body, groups, head, _, length, reverse, _ = scan_as_loop(equation.params, equation.regions)
    if length is None:
        return _everything(equation, operands)
    consts, carry, xs = groups.split(operands[head:])
    if length <= FEW:
        return _step_by_step(equation, body, groups, operands[head:], range(length)[:: -1 if reverse else 1])
    any_row = [NOTHING if x.pattern is None else _any_row(x.pattern, length) for x in xs]
    steady = _steady(body, consts, carry, any_row)
    if steady is None:
        return _everything(equation, operands)
    if any(x.pattern is not None for x in steady):
        found = _outputs(body, [*consts, *steady, *any_row])[groups.carry :]
        return [*steady, *_stacks([[y] * length for y in found], equation.results[groups.carry :])]
    return [*steady, *_each_row(body, groups, consts, xs, length)]


def _step_by_step(
    equation: Equation, body: Program, groups: Groups, operands: Sequence[Dependence], steps: Sequence[int]
) -> list[Dependence]:
    consts, carry, xs = groups.split(operands)
    rows: list[list[Dependence]] = [[] for _ in body.outputs[groups.carry :]]
    for i in steps:
        found = _outputs(body, [*consts, *carry, *[_row(x, i, len(steps)) for x in xs]])
        carry = found[: groups.carry]
        for y, row in zip(rows, found[groups.carry :], strict=True):
            y.insert(len(y) if steps[0] == 0 else 0, row)
    return [*carry, *_stacks(rows, equation.results[groups.carry :])]


def _row(x: Dependence, i: int, length: int) -> Dependence:
    """The dependence of a row of an array."""
    if x.pattern is None:
        return Dependence(value=None if x.value is None else x.value[i], read=x.read)
    size = x.pattern.shape[0] // length
    return Dependence(x.pattern[i * size : (i + 1) * size], read=x.read)


def _any_row(pattern: Pattern, length: int) -> Dependence:
    """The dependence common to all rows of an array."""
    size = pattern.shape[0] // length
    return Dependence(_grouped(pattern, np.tile(np.arange(size), length), size))


def _stacks(rows: Sequence[Sequence[Dependence]], results: Sequence[Var]) -> list[Dependence]:
    """The dependences of arrays, given those of their rows."""
    return [_stacked(each, var.aval) for each, var in zip(rows, results, strict=True)]


def _stacked(rows: Sequence[Dependence], aval: Aval) -> Dependence:
    widths = {x.pattern.shape[1] for x in rows if x.pattern is not None}
    if not widths:
        return Dependence(read=_read(rows))
    none = csr_array((aval.size // len(rows), widths.pop()), dtype=bool)
    parts = [none if x.pattern is None else x.pattern for x in rows]
    _check(sum(part.nnz for part in parts), none.shape)
    return Dependence(vstack(parts, format="csr"), read=_read(rows))


def _each_row(
    body: Program, groups: Groups, consts: Sequence[Dependence], xs: Sequence[Dependence], length: int
) -> list[Dependence]:
    """The dependences of the results of a loop in which each row depends on one step alone, and the carry on none."""
    given = [*consts, *[NOTHING] * groups.carry, *xs]
    marks = [x.pattern is not None for x in given]
    local = program_patterns(body, marks, [x.value for x in consts] + [None] * (len(given) - len(consts)))
    ends = list(accumulate(aval.size for aval in compress(body.in_avals, marks)))
    blocks = list(zip(np.flatnonzero(marks).tolist(), [0, *ends[:-1]], ends, strict=True))
    every = eye_array(length, dtype=bool)

    def of_row(pattern: Pattern | None) -> Dependence:
        if pattern is None:
            return Dependence(read=local.read)
        found: list[Pattern] = []
        for i, start, end in blocks:
            block, x = pattern[:, start:end], given[i].pattern
            once = i < len(consts)
            repeated = vstack([block @ x] * length, format="csr") if once else kron(every, block, "csr") @ x
            found.append(repeated)
        return _joined(found, given)

    return [of_row(pattern) for pattern in local.patterns[groups.carry :]]


def _while_loop(equation: Equation, operands: Sequence[Dependence]) -> Sequence[Dependence]:
    first = equation.params["test_consts"]
    last = first + equation.params["body_consts"]
    steady = _steady(equation.regions[1], operands[first:last], operands[last:], [])
    if steady is None or len(equation.results) > len(steady) + 1:
        return _everything(equation, operands)
    return [*steady, NOTHING]


def _steady(
    body: Program, consts: Sequence[Dependence], carry: Sequence[Dependence], xs: Sequence[Dependence]
) -> list[Dependence] | None:
    """The dependence of a carry at every step; None if that takes too many rounds to find."""
    known = [x if x.pattern is not None else NOTHING for x in carry]
    for _ in range(FEW):
        found = _outputs(body, [*consts, *known, *xs])
        grown = [_either([old, new]) for old, new in zip(known, found, strict=False)]
        if list(map(_count, grown)) == list(map(_count, known)):
            return grown
        known = grown
    return None


def _count(x: Dependence) -> int:
    return -1 if x.pattern is None else x.pattern.nnz

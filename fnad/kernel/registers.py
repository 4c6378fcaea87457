"""The registers of a device thread: arrays of its own, indexed by counters of unrolled loops.

The passes over a row are loops in one block of statements. Where they have the same bounds, a thread visits the same
elements in each, in the same order. So a later pass reads what an earlier one loaded or stored from an array of the
thread (`kept`). A vector is a few neighbouring elements. All its loads come first and all its stores last, since what
is between may have branches, and loads and stores of neighbours become one of sixteen bytes where nothing is between
them (`vectors`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeAlias, TypeGuard

from fnad.kernel import statements as code
from fnad.kernel.forward import stored_arrays
from fnad.kernel.writer import local
from fnad.scalar.operation import Dtype, Pointer

LONGEST = 32
"""The most elements of a row that a thread has."""

WORDS, ALL_WORDS = 128, 190
"""The most registers for what a thread keeps, and with sums over rows; it may have 255."""

REGISTERS, OTHERS = 2**16, 32
"""The registers of a block, and those that each thread of a large one needs for all else."""

Key: TypeAlias = tuple[str, code.Expression, Hashable]
"""An element in the iterations of loops: its array, its index, and the bounds of the loops."""


def is_own(array: code.Name) -> bool:
    """True if an array is one of a thread's registers."""
    return array.role is code.Role.OWN


def own_array(number: int, dtype: Dtype) -> code.Name:
    return code.Name(f"own{number}", Pointer(dtype), code.Role.OWN)


def words_of(dtype: Dtype) -> int:
    """The registers for a number."""
    return -(-dtype.itemsize // 4)


def _words(statement: code.Statement) -> int:
    """The registers for an array that a statement makes."""
    match statement:
        case code.Assign((code.Name(_, Pointer(dtype)) as array,), code.Apply(_, (code.Constant(size),))) if is_own(
            array
        ):
            return int(size) * words_of(dtype)
        case _:
            return 0


def is_unrolled(loop: code.For) -> bool:
    """True if a loop must be unrolled: which register an element is in cannot depend on a number at run time."""
    if loop.kind in (code.LoopKind.ELEMENTS, code.LoopKind.VECTOR):
        return True
    touched = *code.stores(loop.body), *code.loads(loop.body)
    return any(is_own(access.array) and loop.counter in code.subexpressions(access.index) for access in touched)


# ---- the elements of a thread ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ElementLoop:
    """A loop over the elements of a thread: its bounds, its innermost block, the number of an element."""

    bounds: Hashable
    counters: set[code.Name]
    body: list[code.Statement]
    slot: code.Expression
    size: int


def elements(loop: code.Statement) -> ElementLoop | None:
    """A loop as one over a few elements of a thread, if it is one without loops in it."""
    if not isinstance(loop, code.For) or not 0 < (size := _length(loop)) <= LONGEST:
        return None
    bounds, body, counters = [*_bounds(loop)], loop.body, {loop.counter}
    slot: code.Expression = loop.counter
    while True:
        head = list(_head(body))
        bounds += [(s.targets[0], s.value) for s in head]
        counters |= {s.targets[0] for s in head}
        match body[len(head) :]:
            case [code.If(condition, then, [])] if head:
                bounds, body = [*bounds, condition], then
            case inside if inner := _vector_in(inside):
                slot = slot * _length(inner) + inner.counter
                bounds, body, size = [*bounds, *_bounds(inner)], inner.body, size * _length(inner)
            case inside if any(isinstance(s, code.For | code.While) for s in code.walk(inside)) or size > LONGEST:
                return None
            case _:
                return ElementLoop(tuple(bounds), counters, body, slot, size)


def _vector_in(statements: Sequence[code.Statement]) -> code.For | None:
    """The loop over a vector in a block that has no other loops and touches no other arrays."""
    found = [s for s in statements if isinstance(s, code.For) and s.kind is code.LoopKind.VECTOR]
    others = [s for s in statements if not isinstance(s, code.Assign) or any(s.loads())]
    return found[0] if found and others == found[:1] else None


def _length(loop: code.For) -> int:
    """The number of iterations of a loop from 0 on; 0 if it is not known."""
    counted = loop.counted
    return counted.stop if counted is not None and (counted.start, counted.step) == (0, 1) else 0


def _bounds(loop: code.For) -> tuple[Hashable, ...]:
    return loop.counter, loop.start, loop.stop, loop.step


def _head(body: Sequence[code.Statement]) -> Iterator[code.Assign]:
    """The assignments of counters that a block begins with."""
    for statement in body:
        if not is_counter(statement):
            return
        yield statement


def is_counter(statement: code.Statement) -> TypeGuard[code.Assign]:
    """True if a statement assigns the counter of a loop."""
    return isinstance(statement, code.Assign) and statement.targets[0].role is code.Role.COUNTER


# ---- rows --------------------------------------------------------------------------------------------------------


def kept(statements: Sequence[code.Statement], threads: int = 1) -> list[code.Statement]:
    """The statements with what later passes over a row need in arrays of each thread, as far as there are registers."""
    return _Keeping(statements, threads).result(statements)


def words_for(threads: int) -> int:
    """The most registers for what each of so many threads keeps."""
    return min(ALL_WORDS, REGISTERS // threads - OTHERS)


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """The source of a value that may be kept: a load or a store, and its access."""

    statement: code.Statement
    value: code.Expression
    size: int
    place: int
    """The number of its loop, in the order of the text."""


class _Keeping:
    """The pass: which loads are `again` of what is in an array, and which statements are followed by a store there.

    An array takes registers from the loop that fills it to the last one that reads it: `taken` has those behind each.
    """

    def __init__(self, statements: Sequence[code.Statement], threads: int) -> None:
        self.assignments = Counter(code.assigned(statements))
        self.again: dict[code.Statement, code.Name] = {}
        self.sources: dict[code.Statement, tuple[code.Name, code.Expression]] = {}
        self.place = 0
        self.taken: Counter[int] = Counter()
        self.until: dict[code.Statement, int] = {}
        self.words = min(WORDS, words_for(threads) - sum(map(_words, statements)))
        self.numbers = count(sum(is_own(name) for name in self.assignments))
        self.arrays: list[code.Assign] = []

    def result(self, statements: Sequence[code.Statement]) -> list[code.Statement]:
        self.block(statements)
        changed = self.changed(statements)
        return [*self.arrays, *changed]

    def block(self, statements: Sequence[code.Statement]) -> None:
        """Find what may be kept of the loops that are directly in a block."""
        known: dict[Key, _Source] = {}
        for statement in statements:
            found = elements(statement)
            if found is None:
                self.forget(known, statement)
                statement.with_bodies(self.visited)
            else:
                self.place += 1
                for inner in found.body:
                    self.element(inner, found, known)

    def visited(self, statements: Sequence[code.Statement]) -> list[code.Statement]:
        self.block(statements)
        return []

    def element(self, statement: code.Statement, loop: ElementLoop, known: dict[Key, _Source]) -> None:
        match statement:
            case code.Assign((code.Name() as target,), code.Load(array, index)) if self.is_of_row(array, index, loop):
                key = (array.name, index, loop.bounds)
                if key in known:
                    self.keep(statement, known[key])
                elif self.assignments[target] == 1:
                    known[key] = _Source(statement, target, loop.size, self.place)
            case code.Store(array, index, value) if self.stays(index) and not is_own(array):
                key = (array.name, index, loop.bounds)
                self.forget(known, statement)
                if isinstance(value, code.Constant) or self.stays(value):
                    known[key] = _Source(statement, value, loop.size, self.place)
            case _:
                self.forget(known, statement)

    def stays(self, expression: code.Expression) -> bool:
        """True if a value is the same in all passes, but for the counters of their loops."""
        parts = code.subexpressions(expression)
        names = [part for part in parts if isinstance(part, code.Name)]
        return not any(isinstance(part, code.Load) for part in parts) and all(
            name.role is code.Role.COUNTER or self.assignments[name] <= 1 for name in names
        )

    def is_of_row(self, array: code.Name, index: code.Expression, loop: ElementLoop) -> bool:
        """True if a load is worth to be kept: what is the same for all rows comes from the cache."""
        names = {part for part in code.subexpressions(index) if isinstance(part, code.Name)}
        return self.stays(index) and not is_own(array) and not names <= loop.counters

    @staticmethod
    def forget(known: dict[Key, _Source], statement: code.Statement) -> None:
        """Forget what is known of the arrays that a statement stores into."""
        stored = set(stored_arrays([statement]))
        for key in [key for key in known if key[0] in stored]:
            del known[key]

    def keep(self, statement: code.Statement, source: _Source) -> None:
        """Load a value from an array of the thread, which is made if there are registers for it."""
        dtype, until = source.value.dtype, self.until.get(source.statement, source.place)
        words = source.size * words_of(dtype)
        behind = range(until, self.place)
        if any(self.taken[place] + words > self.words for place in behind):
            return
        self.taken.update(dict.fromkeys(behind, words))
        self.until[source.statement] = max(until, self.place)
        if source.statement not in self.sources:
            array = own_array(next(self.numbers), dtype)
            self.arrays.append(local(array, source.size))
            self.sources[source.statement] = array, source.value
        self.again[statement] = self.sources[source.statement][0]

    def changed(self, statements: Sequence[code.Statement]) -> list[code.Statement]:
        return [found for statement in statements for found in self.rewritten(statement)]

    def rewritten(self, statement: code.Statement) -> list[code.Statement]:
        loop = elements(statement)
        if loop is None:
            return [statement.with_bodies(self.changed)]

        def change(body: Sequence[code.Statement]) -> list[code.Statement]:
            if body is loop.body:
                return [found for inner in body for found in self.with_slot(inner, loop.slot)]
            return [inner.with_bodies(change) for inner in body]

        return [statement.with_bodies(change)]

    def with_slot(self, statement: code.Statement, slot: code.Expression) -> list[code.Statement]:
        if statement in self.again:
            assert isinstance(statement, code.Assign)
            return [code.Assign(statement.targets, code.Load(self.again[statement], slot))]
        if statement in self.sources:
            array, value = self.sources[statement]
            return [statement, code.Store(array, slot, value)]
        return [statement]


# ---- vectors -----------------------------------------------------------------------------------------------------


def vectors(statements: Sequence[code.Statement]) -> list[code.Statement]:
    """The statements with the loads of each vector before all else, and its stores behind it."""
    numbers = count(sum(is_own(name) for name in set(code.assigned(statements))))
    arrays: list[code.Assign] = []

    def array(dtype: Dtype, size: int) -> code.Name:
        arrays.append(local(own_array(next(numbers), dtype), size))
        return arrays[-1].targets[0]

    def block(body: Sequence[code.Statement]) -> list[code.Statement]:
        return [found for s in body for found in (_apart(s, array) if _is_vector(s) else [s.with_bodies(block)])]

    found = block(statements)
    return [*arrays, *found]


def _is_vector(statement: code.Statement) -> bool:
    return isinstance(statement, code.For) and statement.kind is code.LoopKind.VECTOR


def _apart(loop: code.Statement, array: Callable[[Dtype, int], code.Name]) -> Iterator[code.Statement]:
    """A loop over a vector as one that loads, one that computes and one for each store, in the order of memory."""
    assert isinstance(loop, code.For)
    head = list(_head(loop.body))
    body = loop.body[len(head) :]
    loaded: list[code.Statement] = []
    stored: list[code.Statement] = []
    inside: list[code.Statement] = []
    inner = set(code.assigned(loop.body)) - {s.targets[0] for s in head}
    indices = _indices(body)
    for statement in body:
        match statement:
            case code.Assign((target,), code.Load(source, index)) if _moves(source, index, indices, inner):
                own = array(source.dtype, _length(loop))
                loaded.append(code.Store(own, loop.counter, code.Load(source, index)))
                inside.append(code.Assign((target,), code.Load(own, loop.counter)))
            case code.Store(target, index, value) if _moves(target, index, indices, inner):
                own = array(target.dtype, _length(loop))
                stored.append(code.Store(target, index, code.Load(own, loop.counter)))
                inside.append(code.Store(own, loop.counter, value))
            case _:
                inside.append(statement)
    for part in (loaded, inside, *([store] for store in stored)):
        if part:
            yield replace(loop, body=[*head, *part])


def _indices(statements: Sequence[code.Statement]) -> dict[str, set[code.Expression]]:
    """The indices at which statements touch arrays that they store into, by array."""
    found: dict[str, set[code.Expression]] = {store.array.name: set() for store in code.stores(statements)}
    for access in (*code.stores(statements), *code.loads(statements)):
        if access.array.name in found:
            found[access.array.name].add(access.index)
    return found


def _moves(
    array: code.Name, index: code.Expression, indices: dict[str, set[code.Expression]], inner: set[code.Name]
) -> bool:
    """True if an access may be made before or after all others: nothing else touches the elements that it does."""
    parts = code.subexpressions(index)
    is_known = not any(isinstance(part, code.Load) or (isinstance(part, code.Name) and part in inner) for part in parts)
    return is_known and not is_own(array) and len(indices.get(array.name, ())) <= 1

"""The statements of a block's threads: one thread stores what all compute alike, and barriers stand where they must.

All threads of a block run the same statements, and those of a loop share its iterations if the loop begins at the
number of the thread. What is outside of such loops is the same for all: each computes it in variables of its own, and
the first one stores it.

Two accesses to an element, one of them a store, need a barrier in between unless the same thread makes both. That is so
if both are in loops that are shared out in the same way, at the same index of it; such a loop's iterations touch
different elements (`lower/independence.py`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from fnad.kernel.device import BARRIER, THREAD, WARP_BARRIER
from fnad.kernel.python_source import is_barrier
from fnad.kernel.registers import is_counter, is_own
from fnad.kernel.statements import (
    STATUS,
    Apply,
    Constant,
    Evaluate,
    Expression,
    For,
    If,
    LoopKind,
    Name,
    Statement,
    Store,
    While,
    apply,
    names_read,
    subexpressions,
    walk,
)
from fnad.scalar.operations import EQUAL

ALL = "all threads"
FIRST = "the first thread"
IS_FIRST = apply(THREAD).equals(0)


@dataclass(frozen=True, slots=True)
class Access:
    """A load or a store: which threads make it, by a key that is equal only if each of them touches the same elements.

    It `varies` if the key may mean other elements in another iteration of a loop around it.
    """

    array: str
    is_store: bool
    threads: Hashable
    varies: bool = False


@dataclass(slots=True)
class AccessesByArray:
    """The accesses since the last barrier, by array."""

    by_array: dict[str, set[Access]] = field(default_factory=dict[str, set[Access]])

    def add(self, accesses: Iterable[Access]) -> None:
        for access in accesses:
            self.by_array.setdefault(access.array, set()).add(access)

    def __iter__(self) -> Iterator[Access]:
        for accesses in self.by_array.values():
            yield from accesses

    def conflict_with(self, others: Iterable[Access], *, later: bool = False) -> bool:
        """True if one of the others must wait for these; `later` are those of another iteration of a loop."""
        return any(
            (one.is_store or other.is_store) and (one.threads != other.threads or (later and one.varies))
            for other in others
            for one in self.by_array.get(other.array, ())
        )


def by_threads(statements: Sequence[Statement]) -> list[Statement]:
    """The statements for all threads of a block."""
    return _block(statements, AccessesByArray())


def by_groups(statements: Sequence[Statement], is_first: Expression, *, each_has_a_row: bool) -> list[Statement]:
    """The statements for groups of threads of a warp, which have rows of their own; the first one of each stores.

    A group without a row reads the last one, which may be that of another warp: then a barrier is one of the block.
    """

    def changed(statement: Statement) -> Statement:
        if is_first_thread(statement):
            assert isinstance(statement, If)
            return If(is_first, statement.then)
        if each_has_a_row and is_barrier(statement):
            return Evaluate(apply(WARP_BARRIER))
        return statement.with_bodies(lambda body: [changed(inner) for inner in body])

    return [changed(statement) for statement in by_threads(statements)]


def _block(statements: Sequence[Statement], before: AccessesByArray) -> list[Statement]:
    found: list[Statement] = []
    for statement in statements:
        match statement:
            case For() | While() if not is_shared_out(statement):
                found += _loop(statement, before)
            case If() if not is_shared_out(statement):
                found += _branches(statement, before)
            case _:
                found += _after_barrier(list(_accesses(statement)), before)
                found.append(_by_one(statement))
    return _joined(found)


def _after_barrier(accesses: Sequence[Access], before: AccessesByArray) -> list[Statement]:
    """A barrier, if there has to be one before these accesses, which are noted."""
    barrier = before.conflict_with(accesses)
    if barrier:
        before.by_array.clear()
    before.add(accesses)
    return [Evaluate(apply(BARRIER))] if barrier else []


def _loop(loop: For | While, before: AccessesByArray) -> list[Statement]:
    """A loop whose iterations all threads run; one iteration waits for the one before it if it has to."""
    barrier = _after_barrier(list(_read(loop, ALL)), before)
    entry = AccessesByArray()
    entry.add(before)
    body = _block(loop.body, before)
    barriers = [n for n, statement in enumerate(body) if is_barrier(statement)] or [len(body), -1]
    end = AccessesByArray()
    end.add(_accesses_in(body[barriers[-1] + 1 :]))
    if end.conflict_with(list(_accesses_in(body[: barriers[0]])), later=True):
        body.append(Evaluate(apply(BARRIER)))
    # After the last iteration, or where there is none, or in the middle of one that ends the loop.
    before.add([*entry, *_accesses_in(loop.body)])
    return [*barrier, replace(loop, body=body)]


def _branches(branches: If, before: AccessesByArray) -> list[Statement]:
    """Branches of which all threads take the same."""
    barrier = _after_barrier(list(_read(branches, ALL)), before)
    other = AccessesByArray()
    other.add(before)
    then, otherwise = _block(branches.then, before), _block(branches.otherwise, other)
    before.add(other)
    return [*barrier, If(branches.condition, then, otherwise)]


def _by_one(statement: Statement) -> Statement:
    return If(IS_FIRST, [statement]) if isinstance(statement, Store) and not is_shared_out(statement) else statement


def _joined(statements: Sequence[Statement]) -> list[Statement]:
    """The statements with stores in a row by one thread in one branch."""
    found: list[Statement] = []
    for statement in statements:
        last = found[-1] if found else None
        if isinstance(statement, If) and isinstance(last, If) and is_first_thread(statement) and is_first_thread(last):
            found[-1] = If(last.condition, [*last.then, *statement.then])
        else:
            found.append(statement)
    return found


def is_first_thread(branch: Statement) -> bool:
    """True if a branch is that of the first thread, which stores."""
    match branch:
        case If(Apply(operation, (Apply(inner), Constant(value))), _, []):
            return operation is EQUAL and inner is THREAD and not value
        case _:
            return False


def is_shared_out(statement: Statement) -> bool:
    """True if threads run different iterations of a loop, not all of them a branch, or store at different places."""
    match statement:
        case For():
            first = statement.body[0] if statement.body else None
            has_elements = first is not None and is_counter(first) and _asks(first.value)
            return _asks(statement.start) or (has_elements and statement.kind is not LoopKind.ROWS)
        case If():
            return _asks(statement.condition)
        case Store():
            return is_own(statement.array) or _asks(statement.index)
        case _:
            return False


def _asks(expression: Expression) -> bool:
    """True if an expression depends on the number of a thread."""
    return any(isinstance(e, Apply) and e.operation is THREAD for e in subexpressions(expression))


# ---- accesses ----------------------------------------------------------------------------------------------------


def _accesses_in(statements: Sequence[Statement]) -> Iterator[Access]:
    """The accesses of statements that all threads come to, those in blocks of theirs included."""
    for statement in statements:
        if is_shared_out(statement):
            yield from _shared_out(statement)
        else:
            yield from _accesses(statement)
            for body in statement.bodies:
                yield from _accesses_in(body)


def _accesses(statement: Statement) -> Iterator[Access]:
    """The accesses of a statement, without those of its blocks unless threads share them out."""
    if is_shared_out(statement):
        yield from _shared_out(statement)
    elif isinstance(statement, Store):
        yield from _read(statement, FIRST)
        yield Access(statement.array.name, is_store=True, threads=FIRST)
    else:
        yield from _read(statement, ALL)


def _read(statement: Statement, threads: Hashable) -> Iterator[Access]:
    for load in statement.loads():
        if not is_own(load.array):
            yield Access(load.array.name, is_store=False, threads=threads)


def _shared_out(statement: Statement) -> Iterator[Access]:
    """The accesses of a loop or a branch that is not the same for all threads."""
    counters, start = set(_counters(statement)), _start(statement)
    for nested in walk([statement]):
        for load in nested.loads():
            if not is_own(load.array):
                yield _access(load.array, load.index, start, counters, is_store=False)
        if isinstance(nested, Store) and not is_own(nested.array):
            yield _access(nested.array, nested.index, start, counters, is_store=True)


def _access(array: Name, index: Expression, start: Hashable, counters: set[Name], *, is_store: bool) -> Access:
    if start == IS_FIRST:
        return Access(array.name, is_store, FIRST)
    if array == STATUS:  # where any thread may store
        return Access(array.name, is_store, (start, "by any"), varies=True)
    return Access(array.name, is_store, (start, index), varies=not counters.issuperset(names_read(index)))


def _start(statement: Statement) -> Hashable:
    """The bounds of a statement that threads share out, and the counters of several loops as functions of its own."""
    if isinstance(statement, If):
        return statement.condition
    if isinstance(statement, Store):
        return statement.index
    assert isinstance(statement, For)
    counters = [(s.targets[0], s.value) for s in walk(statement.body) if is_counter(s)]
    return statement.counter, statement.start, statement.stop, statement.step, *counters


def _counters(statement: Statement) -> Iterator[Name]:
    for nested in walk([statement]):
        if isinstance(nested, For):
            yield nested.counter
        elif is_counter(nested):
            yield nested.targets[0]

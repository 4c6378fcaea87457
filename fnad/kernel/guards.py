"""The counters and guards on a device of loops and branches that the host runs.

The first numbers there are the counters of the loops, by their depths. Those after them are guards: which of several
branches runs, and whether a loop goes on. A kernel under a guard ends at once where that has another number, so the
host can launch all branches, and steps of a loop that may have ended, without asking the device: to ask and wait takes
longer than several launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fnad.kernel.build import by_number
from fnad.kernel.statements import COUNTERS, STATUS, Expression, If, Load, Return, Statement, Store, integer
from fnad.kernel.writer import Writer, array_of
from fnad.lower.loop_ir import SequentialFor, SequentialWhile, Switch
from fnad.lower.nodes import BufferLoad
from fnad.scalar.operation import INDEX

ENDED, GOES_ON = 0, 1
"""The guard of a loop."""

NO_BRANCH = -1


class CounterGuard(NamedTuple):
    """The number that stands at a place of the counters where a kernel has something to do."""

    place: int
    number: int


def guarded(statements: Sequence[Statement], guard: CounterGuard | None) -> list[Statement]:
    """The statements, which run under a guard if there is one."""
    if guard is None:
        return list(statements)
    return [If(noted(guard.place).differs(guard.number), [Return()]), *statements]


def noted(place: int) -> Expression:
    """A number among the counters."""
    return Load(COUNTERS, integer(place))


def note(place: int, value: Expression | int) -> Store:
    """The statement that stores one."""
    return Store(COUNTERS, integer(place), integer(value) if isinstance(value, int) else value)


def loaded(load: BufferLoad) -> Load:
    """A number that decides."""
    return Load(array_of(load.buffer), integer(load.address.constant))


def choice(switch: Switch, place: int, outer: CounterGuard | None) -> list[Statement]:
    """Note which branch runs; none where the guard around it has another number."""
    chosen = by_number(loaded(switch.index), [[note(place, n)] for n in range(len(switch.branches))])
    if outer is None:
        return chosen
    return [note(place, NO_BRANCH), If(noted(outer.place).equals(outer.number), chosen)]


def first_iteration(loop: SequentialFor) -> list[Statement]:
    """Note the first iteration of a counted loop."""
    if not loop.reverse:
        return [note(loop.depth, 0)]
    if isinstance(loop.extent, int):
        return [note(loop.depth, loop.extent - 1)]
    return [note(loop.depth, Writer.cast(loaded(loop.extent), INDEX) - 1)]


def next_iteration(loop: SequentialFor) -> list[Statement]:
    """Note the next iteration of a counted loop."""
    before = noted(loop.depth)
    return [note(loop.depth, before - 1 if loop.reverse else before + 1)]


def before_test(loop: SequentialWhile, place: int) -> list[Statement]:
    """Note that a loop begins: it has begun no iteration, and goes on until a test says otherwise."""
    return [note(loop.depth, -1), note(place, GOES_ON)]


def after_test(loop: SequentialWhile, place: int, *, may_fail: bool) -> list[Statement]:
    """Note what a test has found, and that one more iteration is behind; a loop that has ended stays so.

    Where the program may fail, a loop ends at the first fault, since nothing after it is valid, not even the test.
    """
    goes_on: list[Statement] = [If(loaded(loop.predicate), [note(place, GOES_ON)])]
    if may_fail:
        goes_on = [If(Load(STATUS, integer(0)).equals(0), goes_on)]
    found = [note(loop.depth, noted(loop.depth) + 1), note(place, ENDED), *goes_on]
    return [If(noted(place).equals(GOES_ON), found)]

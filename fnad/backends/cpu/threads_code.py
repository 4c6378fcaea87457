"""The native code of parallel loops (`fnad.backends.cpu.threads`), which `fnad.backends.cpu.native` compiles.

`open` and `active` change under the mutex, which orders everything else on processors that reorder memory, such as ARM.
Workers that locked the mutex later read what this thread wrote before it unlocked it, to arrays too. This thread reads
what their tasks wrote once it has locked it and found none active.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from fnad.backends.cpu.native import (
    Int,
    StaticMemory,
    Word,
    add_relaxed,
    exchange_acquire,
    largest,
    least,
    load_relaxed,
    room,
    store_relaxed,
    store_release,
)
from fnad.kernel.statements import ACCOUNT, STOPPED

SHORT = 5_000_000
"""The time of the tasks after the first, in nanoseconds, up to which a loop is run alone to see how long it takes."""

MOST_CREDIT = 20_000_000
"""The most time that a program has gained, in nanoseconds: what some turns of other processes take."""

MOVING = 2_500_000
"""The time, in nanoseconds, that it takes to move what a core has in its caches to others."""

MOST_LOSSES = 6
"""The most doublings of a debt: 64 times the loss is spent without a further loss."""

PARTS = 64
"""The most parts of the tasks, one for each thread: loops have no more tasks."""

STACK = 2**22
"""The bytes of a worker's stack, on which tasks have their arrays: some systems give new threads an eighth of this."""

ROOM = STACK - 2**20
"""The most bytes of scratch memory on a worker's stack."""

Field = IntEnum("Field", [
    "FUNCTION", "CONTEXT", "TASKS", "BYTES", "PARTS", "OPEN", "ACTIVE", "BUSY", "WORKERS", "STOP", "THRESHOLD",
], start=0)  # fmt: skip
"""The words of the state, before the conditions and the mutex."""

PRIMITIVE = 64
"""The bytes of a mutex or a condition variable, which take no more on any system."""

WORK, DONE, MUTEX, SIZE = (len(Field) * 8 + n * PRIMITIVE for n in range(4))

# Statistics: threads of Python may overwrite each other's, which changes when a loop is shared, not its results.
KEY, RUNS, ALONE, MOVED = range(4)
CREDIT, DEBT, LOSSES = range(3)

SPREAD = -7046029254386353131
FOREVER = 2**63 - 1

threads_state: Any = StaticMemory(1, is_elsewhere=True)
threads_next: Any = StaticMemory(8 * PARTS)
"""The next task of each part, in a line of its own."""

threads_loops: Any = StaticMemory(4 * 4096)
"""The records of loops, by a hash."""


def PyGILState_Ensure() -> Int: ...  # noqa: N802
def PyErr_CheckSignals() -> Int: ...  # noqa: N802
def PyGILState_Release(state: Int) -> None: ...  # noqa: N802


# ---- the operating system: `fnad.backends.cpu.posix` and `windows` ---------------------------------------------------


def lock(mutex: Word) -> None: ...
def unlock(mutex: Word) -> None: ...
def wait(condition: Word, mutex: Word) -> None: ...
def wait_in_vain(condition: Word, mutex: Word) -> Word: ...
def wake(condition: Word) -> None: ...
def wake_all(condition: Word) -> None: ...
def now() -> Word: ...
def worked() -> Word: ...
def begin_worker() -> None: ...


# ---- does it pay to share a loop? ------------------------------------------------------------------------------------


def loop_of(function: Word, tasks: Word, helpers: Word) -> Word:
    """The record of a function with so many tasks and helpers."""
    key = function ^ (tasks | helpers << 32) * SPREAD
    loop = threads_loops + 32 * (key * SPREAD >> 52)
    if loop[KEY] != key:
        loop[KEY] = key
        loop[RUNS] = 0
        loop[ALONE] = 0
        loop[MOVED] = 0
    return loop


def threads_prefers_one(program: Word, loop: Word, expected: Word) -> Word:
    """True if a program pays a debt, or a loop is run alone to be measured."""
    if program[DEBT] > 0:
        return 1
    runs = loop[RUNS]
    loop[RUNS] = runs + 1
    return runs & 255 < 2 and expected < SHORT


def threads_note_alone(program: Word, loop: Word, took: Word) -> None:
    """Note how long a loop took on one thread; what is known becomes longer slowly."""
    before = loop[ALONE]
    loop[ALONE] = least(took, before + (before >> 6)) if before else took
    loop[MOVED] = 1
    program[DEBT] = largest(program[DEBT] - took, 0)


def threads_note_shared(program: Word, loop: Word, took: Word, work: Word) -> None:
    """Note how long a loop took on several threads, for tasks of so much work, unless its data were moved."""
    moved = loop[MOVED]
    loop[MOVED] = 0
    alone = loop[ALONE] if loop[ALONE] > 0 else work
    if alone <= 0 or moved:
        return
    credit = least(program[CREDIT] + alone - took, MOST_CREDIT)
    if -credit > least(8 * alone, MOVING):
        losses = least(program[LOSSES] + 1, MOST_LOSSES)
        program[DEBT] = -credit << losses
        program[CREDIT] = 0
        program[LOSSES] = losses
        return
    program[CREDIT] = credit
    if credit == MOST_CREDIT:
        program[LOSSES] = 0


# ---- tasks -----------------------------------------------------------------------------------------------------------


def first_of(part: Word) -> Word:
    """The first task of a part."""
    return part * threads_state[Field.TASKS] // threads_state[Field.PARTS]


def divide(begun: Word) -> None:
    """Begin each part, but not the tasks that were run; the mutex orders this before all that `take` does."""
    for part in range(threads_state[Field.PARTS]):
        store_relaxed(threads_next + 64 * part, largest(first_of(part), begun))


def take(function: Word, context: Word, own: Word, scratch: Word) -> Word:
    """Run the tasks of the own part, then those that are left of others; return how many."""
    parts = threads_state[Field.PARTS]
    taken = 0
    for turn in range(parts):
        part = (own + turn) % parts
        stop = first_of(part + 1)
        # relaxed: the numbers of tasks are all that threads exchange here
        task = add_relaxed(threads_next + 64 * part, 1)
        while task < stop:
            function(context, task, scratch)
            taken = taken + 1
            task = add_relaxed(threads_next + 64 * part, 1)
    return taken


def take_on_stack(function: Word, context: Word, own: Word, size: Word) -> None:
    """Run tasks with scratch memory on the stack, in lines."""
    take(function, context, own, room(size // 8 + 8) + 63 & -64)


def run_alone(function: Word, context: Word, begun: Word, tasks: Word, scratch: Word) -> None:
    for task in range(tasks - begun):
        function(context, begun + task, scratch)


def threads_nothing(context: Word, task: Word, scratch: Word) -> None:
    """A task for which only the threads take time."""


# ---- threads ---------------------------------------------------------------------------------------------------------


def threads_share(
    function: Word, context: Word, tasks: Word, threads: Word, known: Word, stops: Word, status: Word, scratch: Word,
    size: Word,
) -> None:  # fmt: skip
    """Run the tasks of a loop: here, or with helpers if that pays."""
    # relaxed, as the threshold: an old number changes who runs the tasks alone
    workers = load_relaxed(threads_state + 8 * Field.WORKERS) if size <= ROOM else 0
    helpers = least(least(workers, threads - 1), least(PARTS, tasks) - 1)
    begun = 0
    expected = FOREVER
    is_shared = helpers > 0
    threshold = load_relaxed(threads_state + 8 * Field.THRESHOLD)
    if is_shared and not known:
        start = now()
        function(context, 0, scratch)
        begun = 1
        expected = (now() - start) * (tasks - 1)
        is_shared = expected > threshold
    program = 0
    loop = 0
    if is_shared and threshold >= 0:
        program = status + 8 * ACCOUNT
        loop = loop_of(function, tasks, helpers)
        if threads_prefers_one(program, loop, expected):
            start = worked()
            run_alone(function, context, begun, tasks, scratch)
            threads_note_alone(program, loop, worked() - start)
            return
    # acquire, with the release below: the loop of another thread of Python is over, all that it read of the state too
    if not is_shared or exchange_acquire(threads_state + 8 * Field.BUSY, 1):
        run_alone(function, context, begun, tasks, scratch)
        return
    launch(function, context, tasks, size, helpers, begun)
    start = now()
    start_work = worked()
    taken = take(function, context, 0, scratch)
    work = worked() - start_work
    finish(status, stops)
    took = now() - start
    store_release(threads_state + 8 * Field.BUSY, 0)
    if loop:
        threads_note_shared(program, loop, took, work // largest(taken, 1) * (tasks - begun))


def launch(function: Word, context: Word, tasks: Word, size: Word, helpers: Word, begun: Word) -> None:
    """Wake the workers for a loop, some tasks of which have been run."""
    lock(threads_state + MUTEX)
    threads_state[Field.FUNCTION] = function
    threads_state[Field.CONTEXT] = context
    threads_state[Field.TASKS] = tasks
    threads_state[Field.BYTES] = size
    threads_state[Field.PARTS] = helpers + 1
    divide(begun)
    threads_state[Field.OPEN] = helpers
    unlock(threads_state + MUTEX)
    wake_all(threads_state + WORK)


def finish(status: Word, stops: Word) -> None:
    """Wait until no worker is at a task; a loop that stops does so after Ctrl-C."""
    lock(threads_state + MUTEX)
    threads_state[Field.OPEN] = 0
    while threads_state[Field.ACTIVE] > 0:
        if wait_in_vain(threads_state + DONE, threads_state + MUTEX) and stops:
            unlock(threads_state + MUTEX)
            state = PyGILState_Ensure()
            interrupted = PyErr_CheckSignals()
            PyGILState_Release(state)
            lock(threads_state + MUTEX)
            if interrupted:
                store_relaxed(status, STOPPED)  # relaxed: workers look at it between iterations, sometime
    unlock(threads_state + MUTEX)


def threads_worker(number: Word) -> Word:
    """Take part in loops until all workers end."""
    begin_worker()
    lock(threads_state + MUTEX)
    while not threads_state[Field.STOP]:
        if threads_state[Field.OPEN] <= 0:
            wait(threads_state + WORK, threads_state + MUTEX)
            continue
        threads_state[Field.OPEN] = threads_state[Field.OPEN] - 1
        threads_state[Field.ACTIVE] = threads_state[Field.ACTIVE] + 1
        function = threads_state[Field.FUNCTION]
        context = threads_state[Field.CONTEXT]
        size = threads_state[Field.BYTES]
        own = 1 + (number - 1) % (threads_state[Field.PARTS] - 1)
        unlock(threads_state + MUTEX)
        take_on_stack(function, context, own, size)
        lock(threads_state + MUTEX)
        threads_state[Field.ACTIVE] = threads_state[Field.ACTIVE] - 1
        if threads_state[Field.ACTIVE] == 0:
            wake(threads_state + DONE)
    unlock(threads_state + MUTEX)
    return 0


def threads_end() -> None:
    """Have the workers end."""
    # under the mutex: a worker that has read `stop` but does not wait yet would otherwise never be woken
    lock(threads_state + MUTEX)
    threads_state[Field.STOP] = 1
    unlock(threads_state + MUTEX)
    wake_all(threads_state + WORK)

"""The threads of Windows for the code of parallel loops: see `fnad.backends.cpu.system`."""

# ruff: noqa: N802 - functions in C have their names

from __future__ import annotations

from fnad.backends.cpu.native import Int, Word, room
from fnad.backends.cpu.threads_code import DONE, MUTEX, STACK, WORK, threads_state, threads_worker

SECOND, PATIENCE, FOREVER = 10**9, 50, -1
STACK_IS_RESERVED = 65536
"""The flag that says that a size is that of the stack, not of the part that has memory at once."""


def AcquireSRWLockExclusive(mutex: Word) -> None: ...
def ReleaseSRWLockExclusive(mutex: Word) -> None: ...
def SleepConditionVariableSRW(condition: Word, mutex: Word, milliseconds: Int, flags: Int) -> Int: ...
def WakeConditionVariable(condition: Word) -> None: ...
def WakeAllConditionVariable(condition: Word) -> None: ...
def QueryPerformanceCounter(count: Word) -> Int: ...
def QueryPerformanceFrequency(frequency: Word) -> Int: ...
def CreateThread(security: Word, stack: Word, function: Word, argument: Word, flags: Int, number: Word) -> Word: ...
def WaitForSingleObject(handle: Word, milliseconds: Int) -> Int: ...
def CloseHandle(handle: Word) -> Int: ...


def lock(mutex: Word) -> None:
    AcquireSRWLockExclusive(mutex)


def unlock(mutex: Word) -> None:
    ReleaseSRWLockExclusive(mutex)


def wait(condition: Word, mutex: Word) -> None:
    SleepConditionVariableSRW(condition, mutex, FOREVER, 0)


def wait_in_vain(condition: Word, mutex: Word) -> Word:
    return SleepConditionVariableSRW(condition, mutex, PATIENCE, 0) == 0


def wake(condition: Word) -> None:
    WakeConditionVariable(condition)


def wake_all(condition: Word) -> None:
    WakeAllConditionVariable(condition)


def now() -> Word:
    count = room(1)
    frequency = room(1)
    QueryPerformanceCounter(count)
    QueryPerformanceFrequency(frequency)
    rest = count[0] % frequency[0]
    return count[0] // frequency[0] * SECOND + rest * SECOND // frequency[0]


def worked() -> Word:
    """The time, because Windows counts that of a thread in steps of 16 ms."""
    return now()


def begin_worker() -> None:
    """Nothing is to be done."""


def threads_reset() -> None:
    """Zeros are a free lock, and conditions for which no thread waits."""
    (threads_state + MUTEX)[0] = 0
    (threads_state + WORK)[0] = 0
    (threads_state + DONE)[0] = 0


def threads_start(number: Word, handle: Word) -> Word:
    handle[0] = CreateThread(0, STACK, threads_worker, number, STACK_IS_RESERVED, 0)
    return handle[0] != 0


def threads_join(handle: Word) -> None:
    WaitForSingleObject(handle, FOREVER)
    CloseHandle(handle)

"""The threads of POSIX for the code of parallel loops: see `fnad.backends.cpu.system`."""

from __future__ import annotations

import signal
import time

from fnad.backends.cpu.native import Int, Word, room
from fnad.backends.cpu.threads_code import DONE, MUTEX, STACK, WORK, threads_state, threads_worker

MONOTONIC, THREAD_CPUTIME, SET_MASK = time.CLOCK_MONOTONIC, time.CLOCK_THREAD_CPUTIME_ID, int(signal.SIG_SETMASK)
SECOND, PATIENCE = 10**9, 5 * 10**7


def clock_gettime(clock: Int, time: Word) -> Int: ...
def pthread_mutex_init(mutex: Word, attributes: Word) -> Int: ...
def pthread_mutex_lock(mutex: Word) -> Int: ...
def pthread_mutex_unlock(mutex: Word) -> Int: ...
def pthread_cond_init(condition: Word, attributes: Word) -> Int: ...
def pthread_cond_wait(condition: Word, mutex: Word) -> Int: ...
def pthread_cond_timedwait(condition: Word, mutex: Word, time: Word) -> Int: ...
def pthread_cond_signal(condition: Word) -> Int: ...
def pthread_cond_broadcast(condition: Word) -> Int: ...
def pthread_sigmask(how: Int, signals: Word, before: Word) -> Int: ...
def pthread_attr_init(attributes: Word) -> Int: ...
def pthread_attr_setstacksize(attributes: Word, size: Word) -> Int: ...
def pthread_attr_destroy(attributes: Word) -> Int: ...
def pthread_create(thread: Word, attributes: Word, function: Word, argument: Word) -> Int: ...
def pthread_join(thread: Word, result: Word) -> Int: ...


def lock(mutex: Word) -> None:
    pthread_mutex_lock(mutex)


def unlock(mutex: Word) -> None:
    pthread_mutex_unlock(mutex)


def wait(condition: Word, mutex: Word) -> None:
    pthread_cond_wait(condition, mutex)


def wait_in_vain(condition: Word, mutex: Word) -> Word:
    time = room(2)
    until = time_of(0) + PATIENCE
    time[0] = until // SECOND
    time[1] = until % SECOND
    return pthread_cond_timedwait(condition, mutex, time) != 0


def wake(condition: Word) -> None:
    pthread_cond_signal(condition)


def wake_all(condition: Word) -> None:
    pthread_cond_broadcast(condition)


def time_of(clock: Word) -> Word:
    """The nanoseconds that a clock shows."""
    time = room(2)
    clock_gettime(clock, time)
    return time[0] * SECOND + time[1]


def now() -> Word:
    return time_of(MONOTONIC)


def worked() -> Word:
    return time_of(THREAD_CPUTIME)


def begin_worker() -> None:
    """Block all signals: Python handles them in other threads."""
    signals = room(16)
    for n in range(16):
        signals[n] = -1
    pthread_sigmask(SET_MASK, signals, 0)


def threads_reset() -> None:
    pthread_mutex_init(threads_state + MUTEX, 0)
    pthread_cond_init(threads_state + WORK, 0)
    pthread_cond_init(threads_state + DONE, 0)


def threads_start(number: Word, handle: Word) -> Word:
    attributes = room(16)
    pthread_attr_init(attributes)
    pthread_attr_setstacksize(attributes, STACK)
    error = pthread_create(handle, attributes, threads_worker, number)
    pthread_attr_destroy(attributes)
    return error == 0


def threads_join(handle: Word) -> None:
    pthread_join(handle, 0)

"""The native code of limits to one thread (`fnad.backends.cpu.blas_threads`).

`fnad.backends.cpu.native` compiles it for each OpenBLAS, with a prefix for the names.
"""

from __future__ import annotations

from typing import Any

from fnad.backends.cpu.native import Int, StaticMemory, exchange_acquire, store_release

LOCK, USERS, SAVED = range(3)
"""The words of the state: 1 while a thread changes it, the users, and the threads that OpenBLAS had before."""

state: Any = StaticMemory(3, is_elsewhere=True)


def get_threads() -> Int: ...
def set_threads(number: Int) -> None: ...
def give_way() -> Int: ...


def lock() -> None:
    # acquire, with the releases below: the numbers that are read are those of the last thread that had the lock
    while exchange_acquire(state + 8 * LOCK, 1):
        give_way()


def enter() -> None:
    lock()
    users = state[USERS]
    state[USERS] = users + 1
    if users == 0:
        state[SAVED] = get_threads()
        if state[SAVED] > 1:
            set_threads(1)
    store_release(state + 8 * LOCK, 0)


def leave() -> None:
    lock()
    users = state[USERS] - 1
    state[USERS] = users
    if users == 0 and state[SAVED] > 1 and get_threads() == 1:
        set_threads(state[SAVED])
    store_release(state + 8 * LOCK, 0)

"""The native code that finds programs (`fnad.backends.standalone.numba_function`), for `fnad.backends.cpu.native`."""

from __future__ import annotations

from typing import Any

from fnad.backends.cpu.native import StaticMemory, Word

SIZE = 2**12
"""The number of places of the table, of keys and addresses. User code on disk has places in it."""

fnad_table: Any = StaticMemory(2 * SIZE, is_elsewhere=True)


def fnad_lookup(key: Word) -> Word:
    """The address under a key; 0 if the table does not have the key."""
    place = key % SIZE
    while fnad_table[2 * place] != key:
        if fnad_table[2 * place] == 0:
            return 0
        place = (place + 1) % SIZE
    return fnad_table[2 * place + 1]

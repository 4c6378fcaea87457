"""The native code of the pool of memory (`fnad.backends.cpu.pool`), which `fnad.backends.cpu.native` compiles."""

from __future__ import annotations

from typing import Any

from fnad.backends.cpu.native import Int, StaticMemory, Word

LARGE = 2**18
"""The bytes of a result from which its memory is of the pool.

The C library gives memory of several such results back to the system at each call. To ask the pool takes a microsecond.
"""

NEXT, BYTES, HEADER = 0, 1, 16
"""The words of a block: the next free one, and the bytes of the data, which come after these bytes."""

CONTEXT, MALLOC, CALLOC, REALLOC, FREE = range(5)
"""The words of an allocator."""

ALLOCATOR = 16
"""The word of a handler with its allocator: after its name and version."""

pool_first: Any = StaticMemory(1)
pool_bytes: Any = StaticMemory(1)
pool_limit: Any = StaticMemory(1)
pool_default: Any = StaticMemory(1)
pool_handler: Any = StaticMemory(ALLOCATOR + 5 + 2)
"""The handler, and after it the name of its capsule."""


def memset(address: Word, byte: Int, size: Word) -> Word: ...


def pool_malloc(context: Word, size: Word) -> Word:
    link = pool_first
    while link[0]:
        block = link[0]
        if size <= block[BYTES] and block[BYTES] - size <= block[BYTES] >> 3:
            link[0] = block[NEXT]
            count(-block[BYTES])
            return block + HEADER
        link = block
    default = pool_default[0]
    malloc = default[MALLOC]
    return data_of(malloc(default[CONTEXT], size + HEADER), size)


def pool_calloc(context: Word, number: Word, each: Word) -> Word:
    data = pool_malloc(context, number * each)
    if data:
        memset(data, 0, number * each)
    return data


def pool_realloc(context: Word, data: Word, size: Word) -> Word:
    default = pool_default[0]
    realloc = default[REALLOC]
    return data_of(realloc(default[CONTEXT], data - HEADER, size + HEADER), size)


def pool_free(context: Word, data: Word, size: Word) -> None:
    block = data - HEADER
    if block[BYTES] < LARGE:
        give_back(block)
        return
    block[NEXT] = pool_first[0]
    pool_first[0] = block
    count(block[BYTES])
    pool_trim()


def pool_trim() -> None:
    """Give back the last of the free blocks, those that exceed the limit."""
    limit = pool_limit[0]
    if pool_bytes[0] <= limit:
        return
    link = pool_first
    total = 0
    block = pool_first[0]
    while total + block[BYTES] <= limit:
        total = total + block[BYTES]
        link = block
        block = block[NEXT]
    link[0] = 0
    pool_bytes[0] = total
    while block:
        after = block[NEXT]
        give_back(block)
        block = after


def give_back(block: Word) -> None:
    default = pool_default[0]
    free = default[FREE]
    free(default[CONTEXT], block, block[BYTES] + HEADER)


def data_of(block: Word, size: Word) -> Word:
    """The data of a new block; 0 if there is no memory for it."""
    if block == 0:
        return 0
    block[BYTES] = size
    return block + HEADER


def count(change: Word) -> None:
    """Count the bytes of free blocks."""
    pool_bytes[0] = pool_bytes[0] + change


def pool_begin() -> None:
    """Fill in the allocator of the handler."""
    pool_handler[ALLOCATOR + MALLOC] = pool_malloc
    pool_handler[ALLOCATOR + CALLOC] = pool_calloc
    pool_handler[ALLOCATOR + REALLOC] = pool_realloc
    pool_handler[ALLOCATOR + FREE] = pool_free

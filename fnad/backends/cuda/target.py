"""GPUs of NVIDIA as a target: costs, instructions, and the threads that keep one busy."""

from __future__ import annotations

from fnad.backends.cuda import instructions
from fnad.backends.llvm import accurate_sums, branchless, cast, complex_math, division, integer, operators, random_bits
from fnad.ir.primitive import LOAD
from fnad.lower.target import Costs, Grid, Target

MULTIPROCESSORS = 132
"""The multiprocessors of an H100."""

FAMILIES = (
    cast, operators, branchless, division, integer, complex_math, random_bits, accurate_sums, instructions,
)  # fmt: skip

NEVER = 2**62

COSTS = Costs(
    # A value that is stored and read again takes the time of some fifty additions: memory is what a GPU waits for.
    recompute=40,
    # What all pairs read stays in the cache, and the pairs themselves may not fit into memory.
    recompute_of_many=400,
    load=4 * LOAD,
    longest_expression=100,
    most_pieces=4,
    # Two folds run on all threads, where a position with its extremum is found by one.
    long_row=2,
    largest_nest=40,
    # Memory is read once instead of twice, by one launch instead of two.
    shared_bytes=2**10,
    largest_kernel=NEVER,
    smallest_product=2**12,
    # Products are calls of the host, between launches.
    tile_bytes=NEVER,
    cache_bytes=NEVER,
    tile_rows=NEVER,
    # A thread adds a part of a sum; compensation costs less than reading the elements.
    sum_block=16,
    effect_nanoseconds=10,
    interrupt_nanoseconds=NEVER,
    parallel_nanoseconds=NEVER,
    task_nanoseconds=NEVER,
    combine_nanoseconds=NEVER,
)

CUDA = Target(
    "cuda",
    "device",
    COSTS,
    {name: emit for family in FAMILIES for name, emit in family.INSTRUCTIONS.items()},
    routines=frozenset({"matmul"}),
    # A multiprocessor has room for eight such blocks, and for one of the largest.
    grid=Grid(
        threads=256, blocks=8 * MULTIPROCESSORS, warp=32, most_threads=1024, together=MULTIPROCESSORS // 4, rounds=4
    ),
    wide_sums=False,
)

"""The CPU of this machine as a target: its costs, instructions and routines."""

from __future__ import annotations

from fnad.backends.cpu import (
    blas,
    fourier,
    functions,
    interrupt,
    linalg,
    masks,
    mpi,
    residual_stack,
    scipy_special,
    sorting,
    threads,
    vector_math,
)
from fnad.backends.llvm import (
    accurate_sums,
    branchless,
    cast,
    complex_math,
    division,
    integer,
    operators,
    random_bits,
    transposes,
)
from fnad.ir.primitive import LOAD
from fnad.lower.target import Costs, Target

FAMILIES = (
    cast, operators, branchless, division, integer, functions, complex_math, random_bits, scipy_special, accurate_sums,
    blas, linalg, sorting, fourier, mpi, interrupt, residual_stack, threads, masks, transposes,
)  # fmt: skip

COSTS = Costs(
    recompute=10,
    recompute_of_many=10,
    load=LOAD,
    longest_expression=100,
    most_pieces=4,
    # LLVM does not vectorise two accumulators that depend on each other. Shorter rows it unrolls, several at once.
    long_row=80,
    largest_nest=200,
    # What reads along columns would be in the loops over rows of what reads along rows.
    shared_bytes=2**62,
    largest_kernel=40,
    smallest_product=512,
    # A quarter of the second-level cache of most processors. A tile has about three times as much in all.
    tile_bytes=2**17,
    cache_bytes=2**21,
    tile_rows=16,
    # LLVM adds a block in four vectors at once, or in two of 16 bytes: then each lane of 16 or 32 bytes makes 16
    # additions, as in NumPy. With twice as many the error was three times as large where all terms are equal; half took
    # up to a sixth more time.
    sum_block=64 if vector_math.preferred_bytes() == 16 else 256,
    effect_nanoseconds=10,
    interrupt_nanoseconds=2**24,
    # Whether it is worth it to wake threads is measured as the loop runs: see `threads.py`.
    parallel_nanoseconds=50_000,
    task_nanoseconds=2_000,
    combine_nanoseconds=64,
)

CPU = Target(
    "cpu",
    "host",
    COSTS,
    {name: emit for family in FAMILIES for name, emit in family.INSTRUCTIONS.items()},
    lanes=vector_math.widest_bytes() // 4,
    counts_steps=True,
)

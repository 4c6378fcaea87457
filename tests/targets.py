"""Targets that differ from the CPU in their costs alone."""

from __future__ import annotations

from dataclasses import replace

from fnad.backends.cpu.target import COSTS, CPU

OF_LARGE_ARRAYS = replace(
    CPU,
    costs=replace(
        COSTS,
        recompute=0,
        recompute_of_many=0,
        load=0,
        most_pieces=1,
        long_row=1,
        smallest_product=1,
        tile_bytes=64,
        cache_bytes=64,
        tile_rows=1,
        sum_block=2,
        parallel_nanoseconds=0,
        task_nanoseconds=1,
        combine_nanoseconds=1e-6,
    ),
)
"""A target for which what the CPU does with large arrays alone is best for small ones too: products by BLAS and in
tiles, sums in blocks, positions in two passes, concatenations in memory, loops in tasks."""

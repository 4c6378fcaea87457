"""Targets: what lowering and kernels need to know about the machine that a program is compiled for.

All targets share the passes. Where the best choice depends on the machine, a pass reads it here: what work costs, which
scalar operations and routines exist, and whether NumPy can access the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from fnad.ir.primitive import HOST, Library, Scatter
from fnad.ir.program import Equation
from fnad.ir.types import DTYPES, F32, Dtype

Memory: TypeAlias = Literal["host", "device"]


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs that decide between equivalent programs. The unit of work is an addition."""

    recompute: int
    """The work up to which a value that is read again is computed again."""

    recompute_of_many: int
    """The same for a value with many times the elements of what it is computed from, as all pairs of some numbers."""

    load: int
    """The work of loading one operand."""

    longest_expression: int
    """The most operations of one expression."""

    most_pieces: int
    """The most operands of a concatenation that is computed where it is read."""

    long_row: int
    """The length from which it is faster to read a row twice for the position of its extremum."""

    largest_nest: int
    """The most effects of a nest, since compile time is not linear in the size of a loop body."""

    shared_bytes: int
    """The fewest bytes of an array that nests become one for, since they read it, though none depends on another."""

    largest_kernel: int
    """The most effects of a kernel, unless a single nest has more."""

    smallest_product: int
    """The number of multiplications from which a routine for matrix products is faster than a loop."""

    tile_bytes: int
    """The most bytes of matrices in a tile, which stays in the cache; larger ones are better divided into tiles."""

    cache_bytes: int
    """The most bytes of a matrix that products leave in some cache; only larger ones are worth tiles of few rows."""

    tile_rows: int
    """The fewest rows of a tile, with fewer of which the BLAS takes longer; and half the fewest elements of a row."""

    sum_block: int
    """The length of a sum in f64 without compensation: see Note [Accurate sums] in `fnad/kernel/accumulators.py`."""

    effect_nanoseconds: int
    """The approximate time of an effect."""

    interrupt_nanoseconds: int
    """The approximate time between two checks of a loop for an interrupt."""

    parallel_nanoseconds: int
    """The approximate time from which a loop is divided into tasks for several threads."""

    task_nanoseconds: int
    """The least approximate time of such a task."""

    combine_nanoseconds: float
    """The least approximate time of a loop for each result that each of its tasks has, which are combined after it."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The threads of a device."""

    threads: int
    """The threads of a block, a power of two, unless a row needs more."""

    blocks: int
    """The number of blocks that keep the device busy."""

    warp: int
    """The threads that run in step and exchange values by shuffles."""

    most_threads: int = 1
    """The most threads of a block, for a row that the registers of fewer have no room for."""

    most_arrays: int = 512
    """The most arrays that the nests of a kernel have, if they are several."""

    together: int = 1
    """The most blocks that wait for one another."""

    rounds: int = 1
    """The factor on the number of blocks where all blocks do equal work.

    A multiprocessor that has room for three blocks of a kernel with many registers, and not eight, then works in the
    last round as well.
    """


MOST_NARROW = 4096
"""The most numbers of a row that are added in single precision, where errors of one sign add up to a few units."""


@dataclass(frozen=True, slots=True)
class Target:
    """A machine with its compiler.

    `instructions` has the backend's implementation of each scalar operation and each routine that kernels call, by name
    (`fnad.scalar.operations`, `fnad.kernel.routines`). `routines` are those for whole arrays, by the names that
    primitives use (`Library`); for arrays in "host" memory, NumPy and SciPy provide all of these. A device, which has a
    `grid` of threads, computes with the same operations.
    """

    name: str
    memory: Memory
    costs: Costs
    instructions: Mapping[str, Callable[..., Any]] = field(repr=False)
    routines: AbstractSet[str] = frozenset()
    grid: Grid | None = None
    wide_sums: bool = True
    """True if long sums of single precision are in double precision, else with compensation."""

    lanes: int = 8
    """The numbers of single precision in a vector as wide as the processor prefers."""

    adds_atomically: bool = False
    """True if threads add at computed places in any order, where the device can add at once."""

    counts_steps: bool = False
    """True if a running program can be read by another thread of Python, which shows the steps of its loops."""

    def calls(self, library: Library) -> bool:
        """True if what computes whole arrays can be called between kernels."""
        is_told = library.dispatched or library.routine == HOST or library.routine in self.routines
        return self.memory == "host" or is_told

    def sorts(self, updates: Equation) -> bool:
        """True if updates at computed places are sorted by these, so that several threads have a part of them each.

        They are many, and the elements of each too few for all threads. Those in any order need no sorting.
        """
        if self.grid is None or (self.adds_atomically and is_addition(updates)):
            return False
        count, size = updates.operands[2].aval.size, updates.operands[1].aval.size
        is_long = count > 4 * self.grid.warp and size > 8 * self.grid.threads
        return is_long and size < count * self.grid.blocks * self.grid.threads

    def sum_block(self, dtype: Dtype) -> int:
        """The length of a sum without compensation; a vector has twice as many numbers of single precision."""
        return self.costs.sum_block * (2 if dtype == F32 and self.grid is None else 1)

    def accumulator(self, dtype: Dtype, length: int, *, is_in_memory: bool) -> Dtype:
        """The dtype in which a sum of so many numbers is accumulated."""
        is_wide = self.wide_sums and length > (self.sum_block(dtype) if is_in_memory else MOST_NARROW)
        return {"f": DTYPES["f64"], "c": DTYPES["c128"]}.get(dtype.kind, dtype) if is_wide else dtype

    @property
    def multiplies(self) -> bool:
        """True if there is a routine for matrix products, in kernels or between them."""
        return "gemm" in self.instructions or "matmul" in self.routines


def is_addition(updates: Equation) -> bool:
    """True if updates at computed places are additions that a device can make at once, whatever others do meanwhile.

    It has instructions for words of four and eight bytes; a complex number is two of them.
    """
    lower = updates.primitive.lower
    is_sum = isinstance(lower, Scatter) and lower.step == "{old} + {new}"
    return is_sum and updates.operands[0].aval.dtype.itemsize >= 4

"""What lowering and kernels are told about the machine that a program is for.

All targets share the passes. Where the best choice depends on the machine, a pass reads it here: what work costs, which
scalar operations and routines there are, and whether NumPy reaches the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Memory: TypeAlias = Literal["host", "device"]


@dataclass(frozen=True, slots=True)
class Costs:
    """What decides between programs that compute the same. The unit of work is an addition."""

    recompute: int
    """The work up to which a value that is read again is computed again."""

    load: int
    """The work of loading one operand."""

    longest_expression: int
    """How many operations one expression may have."""

    most_pieces: int
    """How many operands a concatenation may have that is computed where it is read."""

    long_row: int
    """The length from which it is faster to go over a row twice for the position of its extremum."""

    largest_nest: int
    """How many effects a nest may have, for the compiler's time is not linear in the size of a loop body."""

    largest_kernel: int
    """How many effects a kernel may have, unless one nest has more."""

    smallest_product: int
    """The multiplications from which a routine for matrix products is faster than a loop."""

    largest_native_routine: int
    """The multiplications, n³ for a matrix, from which a routine is called by Python, which sets its threads."""

    sum_block: int
    """The length of a sum without compensation: see Note [Accurate sums] in `fnad/kernel/accumulators.py`."""

    effect_nanoseconds: int
    """How long an effect takes, about."""

    interrupt_nanoseconds: int
    """How long a loop runs, about, before it asks whether it is interrupted."""


@dataclass(frozen=True, slots=True)
class Target:
    """A machine with its compiler.

    `instructions` says how each scalar operation and each routine that kernels call is carried out, by its name
    (`fnad.scalar.operations`, `fnad.kernel.routines`), in the terms of the backend. `routines` are those for whole
    arrays, by the names that primitives have for them (`Library`). Where arrays are in the "host" memory, NumPy and
    SciPy have all of these.
    """

    name: str
    memory: Memory
    costs: Costs
    instructions: Mapping[str, Callable[..., Any]] = field(repr=False)
    routines: AbstractSet[str] = frozenset()

    def calls(self, routine: str | None) -> bool:
        """Whether a routine for whole arrays can be called between kernels."""
        return self.memory == "host" or routine in self.routines

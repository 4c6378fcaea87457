"""A program that leaves the process: its kernels, the arrays that they take, and the names of arguments and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import starmap
from typing import NamedTuple, TypeAlias

import numpy as np

from fnad.backends.base import Array
from fnad.backends.standalone.target import STANDALONE, WITH_BLAS
from fnad.errors import ExportError
from fnad.ir.program import Program
from fnad.ir.size import LONGEST
from fnad.ir.types import Aval
from fnad.kernel.plan import Plan
from fnad.kernel.statements import Kernel
from fnad.kernel.steps import Chunk
from fnad.lower.faults import Fault
from fnad.lower.loop_ir import LibraryCall, effects
from fnad.lower.lowering import lower

MOST_CAPTURED = 2**16
"""The most elements of captured arrays, which become part of the code."""


Intervals: TypeAlias = Mapping[str, tuple[int, int]]
"""The least and the greatest size, by the names of sizes."""


class Parameter(NamedTuple):
    """An array of the exported function: its name there, and the buffer that it is in the kernels."""

    name: str
    buffer: str
    aval: Aval


class Variant(NamedTuple):
    """A lowered program for intervals of sizes, by name; all programs but those for all sizes have one.

    `captured` are arrays that become part of the code, by the names of their buffers. Its faults are numbered from
    `first_fault` on.
    """

    name: str
    plan: Plan
    captured: dict[str, Array]
    intervals: Intervals = {}  # noqa: RUF012 - it is not changed
    first_fault: int = 0

    @property
    def kernels(self) -> list[Kernel]:
        """The kernels, in their order."""
        return [self.plan.kernels[chunk] for chunk in self.plan.chunks]

    @property
    def faults(self) -> Sequence[Fault]:
        """The errors in which a run may end."""
        return self.plan.loops.faults


class Standalone(NamedTuple):
    """A lowered program; `sizes` are the names of the sizes that it takes before the arguments.

    `qualname` is the qualified name of its function, with the module.
    """

    name: str
    arguments: list[Parameter]
    results: list[Parameter]
    variants: list[Variant]
    sizes: Sequence[str] = ()
    qualname: str = ""

    @property
    def faults(self) -> Sequence[Fault]:
        """The errors in which a run may end; fault n is reported as the number n."""
        return [fault for variant in self.variants for fault in variant.faults]

    @property
    def parameters(self) -> list[Parameter]:
        """The arguments, then the results."""
        return [*self.arguments, *self.results]

    def axis_of(self, size: str) -> tuple[Parameter, int]:
        """The first argument that has a size as the length of an axis, and this axis."""
        return next((p, axis) for p in self.arguments for axis, n in enumerate(p.aval.shape) if str(n) == size)

    @property
    def missing(self) -> str:
        """The message for sizes without a program."""
        boxes = [" x ".join(starmap(_interval, v.intervals.values())) for v in self.variants]
        return f"{self.name} has no program for this {', '.join(self.sizes)}: it is for {', '.join(boxes)}"


def _interval(low: int, high: int) -> str:
    if low == high:
        return str(low)
    return f"{low} and more" if high == LONGEST else f"{low} to {high}"


NO_SIZE = -2
"""The status of a run for a size without a program."""


def lowered(program: Program, name: str, arguments: int, captured: Sequence[Array], *, with_blas: bool) -> Variant:
    """Lower a program, whose inputs are a number of arguments, then the captured arrays.

    Only C can have BLAS beside it. Raises `ExportError` for what runs in Python, and `LoweringError` for what has no
    instructions.
    """
    target = WITH_BLAS if with_blas else STANDALONE
    plan = Plan(lower(program, target), target)
    every = [effect for item in plan.loops.items for effect in effects(item)]
    calls = [effect for effect in every if isinstance(effect, LibraryCall) and effect.routine is None]
    if calls or not all(isinstance(step, Chunk) for step in plan.steps):
        called = dict.fromkeys(f"{call.primitive.name}{f' at {call.source}' if call.source else ''}" for call in calls)
        what = "; ".join(called) or "Python"
        raise ExportError(f"{name} calls what has no code without Python: {what}", remedy=OUTSIDE)
    if plan.loops.residual_stacks:
        raise ExportError(
            f"{name} saves the steps of a loop of unknown length",
            remedy="use fnad.scan or fnad.fori_loop with a fixed number of steps, or forward mode",
        )
    if (size := sum(array.size for array in captured)) > MOST_CAPTURED:
        raise ExportError(
            f"{name} uses arrays of {size} elements from outside; at most {MOST_CAPTURED} become part of the code",
            remedy="give these arrays as arguments",
        )
    buffers = plan.loops.inputs[arguments:]
    constants = {buffer.name: np.ascontiguousarray(array) for buffer, array in zip(buffers, captured, strict=True)}
    return Variant(name, plan, constants)


def standalone(
    name: str, arguments: Sequence[str], results: Sequence[str], variants: Sequence[Variant], sizes: Sequence[str] = ()
) -> Standalone:
    """The program of variants; the first one has the types of the arguments and the results."""
    loops, numbered, faults = variants[0].plan.loops, list[Variant](), 0
    for variant in variants:
        own = "_".join(f"{'from_' * (low < high)}{low}" for low, high in variant.intervals.values())
        own = f"{variant.name}_{own}" if sizes else variant.name
        numbered.append(variant._replace(name=own, first_fault=faults))
        faults += len(variant.faults)
    return Standalone(
        name,
        [Parameter(word, b.name, b.aval) for word, b in zip(arguments, loops.inputs[: len(arguments)], strict=True)],
        [Parameter(word, buffer.name, buffer.aval) for word, buffer in zip(results, loops.outputs, strict=True)],
        numbered,
        sizes,
    )


OUTSIDE = (
    "replace the call by one that compiles, or export the parts around it; linear algebra of given sizes is in "
    "c(path, blas=True)"
)

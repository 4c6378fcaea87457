"""`checkpoint`: a region that reverse mode runs again rather than keep what it computed.

It is the region's program in a box that no pass looks into, so that the second run is not merged with the first; when
all passes are done, the box is opened (`fnad.transforms.expand`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from fnad.control.loop import Flags, reached
from fnad.errors import ShapeError
from fnad.ir.builder import trace
from fnad.ir.primitive import Inlined, Primitive, Sample, Structured, register
from fnad.ir.program import Equation, Program
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, is_inexact
from fnad.ir.walk import use_counts
from fnad.ops.elementary import sin
from fnad.ops.shape import zeros_like
from fnad.transforms.dce import dce
from fnad.transforms.differentiation import joint, jvp
from fnad.transforms.interpret import region_runner
from fnad.transforms.joint import Cotangent, Pullback
from fnad.transforms.jvp import Tangent


def _infer(*avals: Aval, regions: tuple[Program, ...]) -> tuple[Aval, ...]:
    (region,) = regions
    if region.in_avals != avals:
        raise ShapeError(f"the region of a checkpoint takes {len(region.inputs)} operands of other avals than given")
    return region.out_avals


def _evaluate(*operands: Any, regions: tuple[Program, ...]) -> tuple[Any, ...]:
    return tuple(region_runner(regions[0])(operands))


def _push(
    equation: Equation, primals: Sequence[Symbol], tangents: Sequence[Tangent]
) -> tuple[list[Symbol], list[Tangent]]:
    (region,) = equation.regions
    marked = [tangent is not None for tangent in tangents]
    moved = reached(region, marked)
    way = jvp(region, marked)
    count = len(moved)
    kept = compress(way.outputs[count:], compress(moved, [is_inexact(aval.dtype) for aval in region.out_avals]))
    pushed = dce(Program(way.name, way.inputs, way.equations, (*way.outputs[:count], *kept)))
    found = checkpoint(*primals, *[t for t in tangents if t is not None], regions=(pushed,))
    rest = iter(found[count:])
    return list(found[:count]), [next(rest) if m else None for m in moved]


def _pull(equation: Equation, primals: Sequence[Symbol], needed: Flags) -> tuple[list[Symbol], Pullback]:
    (region,) = equation.regions
    results = list(checkpoint(*primals, regions=(region,)))
    way = joint(region, needed)
    back = dce(Program(f"{way.name}_back", way.inputs, way.equations, way.outputs[len(results) :]))

    def pullback(cts: Sequence[Cotangent]) -> list[Cotangent]:
        real = [zeros_like(r) if ct is None else ct for ct, r in zip(cts, results, strict=True) if is_inexact(r.dtype)]
        rest = iter(checkpoint(*primals, *real, regions=(back,)))
        return [next(rest) if n else None for n in needed]

    return results, pullback


def _prune(equation: Equation, live: Flags) -> Equation:
    (region,) = equation.regions
    kept = dce(Program(region.name, region.inputs, region.equations, tuple(compress(region.outputs, live))))
    read = use_counts(kept)
    used = [var in read for var in kept.inputs]
    return replace(
        equation,
        results=tuple(compress(equation.results, live)),
        operands=tuple(compress(equation.operands, used)),
        regions=(Program(kept.name, tuple(compress(kept.inputs, used)), kept.equations, kept.outputs),),
    )


def _samples() -> Iterable[Sample]:
    """The sine of a square."""
    row = Aval(np.dtype("f8"), (3,))
    yield Sample((np.array([0.5, -1.0, 2.0]),), {}, (trace(lambda x: [sin(x * x)], row, name="sine_of_square"),))


checkpoint = register(
    Primitive(
        "checkpoint",
        _infer,
        _evaluate,
        Structured(_push, _pull),
        Inlined(),
        _samples,
        "The region, which reverse mode runs again.",
        prune=_prune,
    )
)

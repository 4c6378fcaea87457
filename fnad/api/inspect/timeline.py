"""Memory over time: the bytes of the live arrays at each loop nest of a function and of its pullback.

An argument is live throughout, and a result from the nest that computes it to the end. A residual is live to the last
nest of the pullback that reads it, a temporary from its first to its last nest. The nests of a loop body count once,
and a residual stack counts as one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from fnad.api.inspect.axes import axes_for
from fnad.backends.base import Planned, current_backend
from fnad.backends.tiers import staged
from fnad.ir.program import Program, Source, Var
from fnad.lower.allocation import live_ranges
from fnad.lower.loop_ir import Control, Item, effects
from fnad.lower.nodes import Buffer

KINDS = ("arguments", "results", "residuals", "temporaries")
UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("bytes", 1))


class Moment(NamedTuple):
    """The bytes of the live arrays of each kind during a loop nest or a library call, and the line it comes from."""

    source: Source | None
    in_pullback: bool
    arguments: int
    results: int
    residuals: int
    temporaries: int

    @property
    def nbytes(self) -> int:
        """The bytes of all live arrays."""
        return self.arguments + self.results + self.residuals + self.temporaries

    def __str__(self) -> str:
        place = f" at {self.source}" if self.source is not None else ""
        parts = ", ".join(f"{getattr(self, kind):,} {kind}" for kind in KINDS if getattr(self, kind))
        return f"{self.nbytes:,} bytes in the {'pullback' if self.in_pullback else 'function'} ({parts}){place}"


class Timeline(tuple[Moment, ...]):
    """The moments of a function and of its pullback, in the order in which they run."""

    __slots__ = ()

    @property
    def peak(self) -> Moment | None:
        """The first moment with the most bytes; None if nothing is computed."""
        return max(self, key=lambda moment: moment.nbytes, default=None)

    def __str__(self) -> str:
        return f"{len(self)} moments, at most {self.peak or '0 bytes'}"

    __repr__ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draw the bytes of each kind over the nests, and mark the peak, by Matplotlib; return the axes."""
        ax = axes_for(ax, "memory over time")
        edges = np.repeat(np.arange(len(self) + 1), 2)[1:-1]
        peak = self.peak.nbytes if self.peak is not None else 0
        unit, scale = next((unit, scale) for unit, scale in UNITS if peak >= scale or scale == 1)
        heights = [np.repeat([getattr(moment, kind) / scale for moment in self], 2) for kind in KINDS]
        ax.stackplot(edges, heights, labels=KINDS, alpha=0.8)
        ax.axvline(sum(not moment.in_pullback for moment in self), color="black", linewidth=0.8, linestyle="--")
        ax.set(
            xlabel="loop nests: function | pullback", ylabel=unit,
            xlim=(0, max(1, len(self))), ylim=(0, 1.25 * peak / scale or 1),
            title=f"at most {peak / scale:.3g} {unit}{_place(self.peak)}",
        )  # fmt: skip
        ax.legend(loc="upper left", ncols=len(KINDS), fontsize="small")
        return ax


def _place(moment: Moment | None) -> str:
    return f" at {moment.source.file.rpartition('/')[2]}:{moment.source.line}" if moment and moment.source else ""


def timeline(forward: Program, pullback: Program, results: int) -> Timeline:
    """The moments of (x…) -> (y…, residuals…), with `results` outputs y, and (residuals…, ct…) -> (x̄…)."""
    kept = forward.outputs[results:]
    made = [atom for atom in dict.fromkeys(kept) if isinstance(atom, Var) and atom not in forward.inputs]
    made = [atom for atom in made if atom not in forward.outputs[:results]]
    first = _planned(Program(forward.name, forward.inputs, forward.equations, (*forward.outputs[:results], *made)))
    second = _planned(pullback)
    steps = [[*_steps(planned.loops.items)] for planned in (first, second)]
    cut, end = len(steps[0]), len(steps[0]) + len(steps[1])
    held = np.zeros((len(KINDS), end + 1), np.int64)

    def hold(kind: str, buffer: Buffer, begin: int, end: int) -> None:
        held[KINDS.index(kind), [begin, end]] += np.multiply(abs(buffer.aval.nbytes), [1, -1])

    ranges, later = _ranges(first, 0), _ranges(second, cut)
    last_reads = {atom: later[b][1] for atom, b in zip(kept, second.loops.inputs, strict=False) if b in later}
    for buffer in first.loops.inputs:
        hold("arguments", buffer, 0, end)
    for buffer in second.loops.inputs[len(kept) :]:
        hold("arguments", buffer, cut, end)
    for i, buffer in enumerate(first.loops.outputs):
        begin = ranges.get(buffer, (cut, cut))[0]
        if i < results:
            hold("results", buffer, begin, end)
        else:
            hold("residuals", buffer, begin, last_reads.get(made[i - results], cut))
    for buffer in second.loops.outputs:
        hold("results", buffer, later.get(buffer, (end, end))[0], end)
    for planned, live in ((first, ranges), (second, later)):
        for buffer in _temporaries(planned):
            hold("temporaries", buffer, *live[buffer])
    sources = map(_source, chain(*steps))
    columns = np.cumsum(held, axis=1)[:, :-1].T.tolist()
    return Timeline(
        Moment(source, i >= cut, *column) for i, (source, column) in enumerate(zip(sources, columns, strict=True))
    )


def _planned(program: Program) -> Planned:
    return current_backend().compiler.plan(staged(program).simplified)


def _ranges(planned: Planned, start: int) -> dict[Buffer, tuple[int, int]]:
    """The first step that touches each buffer, and the one behind the last, counted from `start`."""
    loops = planned.loops
    found = live_ranges(loops.items, set(planned.places), {*loops.inputs, *loops.outputs})[1]
    return {buffer: (start + life.birth, start + life.death + 1) for buffer, life in found.items()}


def _temporaries(planned: Planned) -> Sequence[Buffer]:
    return [buffer for buffer in planned.loops.temporaries if buffer in planned.places]


def _steps(items: Sequence[Item]) -> Iterator[Item]:
    """The nests and calls in order, including loop bodies."""
    for item in items:
        inner = [*_steps([*chain(*item.bodies)])] if isinstance(item, Control) else []
        yield from inner or [item]


def _source(item: Item) -> Source | None:
    return next((effect.source for effect in effects(item) if effect.source is not None), None)

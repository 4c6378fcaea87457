"""Traces without `jit` that are used again.

Without `jit` a function is traced at each call, and any Python may run. A trace is used again at the next call if the
function would do the same. That is so if it reads the same values (`fnad.trace.environment`), has no effect
(`fnad.trace.effects`) and changes nothing that it reads. What Python decides by traced values must come out the same,
and the arguments that are not differentiated must be those of the trace.

Recording what a function reads takes time too. Its first call with arguments of given shapes is not recorded, because
it may be the only one. After an effect, or if recording has saved less than it has cost, no call is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from fnad.api.running.transformed import note_keeper
from fnad.api.staging.arguments import LARGE, Differentiated, differentiated, resolved, stage_in
from fnad.api.staging.leaves import Function, Leaf, Operand, argument_name, flatten
from fnad.api.staging.stage import Staged
from fnad.errors import FnadError
from fnad.ir.builder import is_tracing
from fnad.ir.program import Program
from fnad.ir.types import NAMES
from fnad.ir.walk import all_equations
from fnad.placement import is_on_device, on_host
from fnad.records import NamedTuple
from fnad.trace.environment import Environment
from fnad.trace.parts import CONSTANTS
from fnad.trace.reads import Remembered, array_in, first_read, same
from fnad.trace.recording import Recorder
from fnad.transforms.dce import without_effects
from fnad.transforms.interpret import prepare

SIGNATURES = 64
TRACES = 4
"""The most traces of one signature: arguments without derivative may alternate."""

CREDIT = 4
"""The number of calls that are recorded without gain."""

PER_EQUATION, MOST = 2**16, 2**26
"""The bytes of arrays that are compared in the time in which an equation is traced (20 us at 3 GB/s), and the most that
a trace holds.
"""


def fixed(value: Any) -> Any:
    """The record of an argument without derivative: the content of an array, or the object itself."""
    is_array = type(value) is np.ndarray and value.dtype in NAMES
    return first_read(array_in, value, "").value if is_array else value


def is_fixed(now: Any, before: Any) -> bool:
    """True if an argument equals its record."""
    return (type(now) is np.ndarray or type(before) is not Remembered) and same(now, before)


class Decisions:
    """The decisions of Python on traced values in a trace, in their order."""

    def __init__(self, staged: Staged) -> None:
        program, atoms = staged.program, tuple(guard.atom for guard in staged.guards)
        asked = Program(program.name, program.inputs, program.equations, atoms)
        self._run = prepare(without_effects(asked))
        self._expected = [guard.expected for guard in staged.guards]

    def are_the_same(self, operands: Sequence[Operand]) -> bool:
        """True if Python would decide so for these operands; not where a later question cannot be asked of them."""
        try:
            return [int(np.asarray(answer)) for answer in self._run(list(map(on_host, operands)))] == self._expected
        except (FnadError, ArithmeticError, ValueError):
            return False


class ReusedTrace(NamedTuple):
    """A trace that may be used again."""

    staged: Staged
    fixed: list[Any]
    environment: Environment
    decisions: Decisions | None

    def fits(self, fixed: Sequence[Any], operands: Sequence[Operand]) -> bool:
        """True if the function would do the same again."""
        if not (all(map(is_fixed, fixed, self.fixed)) and self.environment.holds()):
            return False
        return self.decisions is None or self.decisions.are_the_same(self.on(operands).operands)

    def on(self, operands: Sequence[Operand]) -> Staged:
        """The trace on other values."""
        return self.staged._replace(operands=[*operands, *self.staged.operands[len(operands) :]])


class ReusedTraces:
    """The traces of a function that may be used again."""

    def __init__(self, f: Function) -> None:
        self._f = f
        self._known: dict[Hashable, list[ReusedTrace]] = {}
        self._credit = CREDIT
        note_keeper(self)

    def forget(self) -> None:
        """Drop all traces."""
        self._known.clear()

    @property
    def are_used(self) -> bool:
        """True if a call may use a trace; under a debugger Python runs at each call."""
        return self._credit > 0 and not is_tracing() and sys.gettrace() is None

    def stage(
        self, traced: Sequence[Leaf], others: Sequence[Any], structure: Hashable, make: Callable[[], Staged]
    ) -> Staged:
        """The earlier trace that fits a call with these leaves and this structure, or the result of `make`."""
        if not self.are_used or any(map(is_on_device, others)):  # the content of arrays on a device is not compared
            return make()
        signature = structure, tuple([(leaf.aval, leaf.weak, leaf.is_array, leaf.labels) for leaf in traced])
        known = self._known.get(signature)
        if known is None:
            if len(self._known) < SIGNATURES:
                self._known[signature] = []
            return make()
        operands = [leaf.value for leaf in traced]
        for reused in known:
            if reused.fits(others, operands):
                self._credit = CREDIT
                return reused.on(operands)
        self._credit -= 1
        return self._recorded(known, list(map(fixed, others)), make)

    def _recorded(self, known: list[ReusedTrace], fixed: list[Any], make: Callable[[], Staged]) -> Staged:
        recorder = Recorder(seeks_effects=True)
        for value in (self._f, *[value for value in fixed if not isinstance(value, (Remembered, *CONSTANTS))]):
            recorder.follow(value)
        with recorder.active():
            staged = make()
        if not (is_repeatable(staged, recorder) and _is_worth_keeping(fixed, staged)):
            self._credit = 0
            self._known.clear()
        elif recorder.environment.holds():
            decisions = Decisions(staged) if staged.guards else None
            known[:] = [ReusedTrace(staged, fixed, recorder.environment, decisions), *known[: TRACES - 1]]
        return staged


class DifferentiatedCalls:
    """The calls of a function that is differentiated in the arguments at `argnums`.

    `traced` is the function to trace, by default `f` itself; it takes the arguments of `f` and calls `f`.
    """

    def __init__(self, f: Function, argnums: tuple[int, ...], has_aux: bool, traced: Function | None = None) -> None:
        self._f, self._argnums, self._has_aux, self._traced = f, argnums, has_aux, traced or f
        self._traces = ReusedTraces(f)

    def stage(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Staged, Differentiated]:
        """Trace a call on the leaves of the arguments that are differentiated; return it with these arguments."""
        chosen = resolved(self._f, self._argnums, len(args))
        wrt = differentiated([args[i] for i in chosen], lambda i: argument_name(self._f, chosen[i]))

        def make() -> Staged:
            return stage_in(self._traced, chosen, wrt, args, kwargs, has_aux=self._has_aux)

        if not self._traces.are_used:  # so that nothing is taken apart in vain
            return make(), wrt
        others, structure = flatten(([arg for i, arg in enumerate(args) if i not in chosen], kwargs))
        traced, fixed = [wrt.leaves[i] for i in wrt.places], [*wrt.constants, *others]
        signature = chosen, structure, wrt.structure, tuple(wrt.places)
        return self._traces.stage(traced, fixed, signature, make), wrt


def is_repeatable(staged: Staged, recorder: Recorder) -> bool:
    """True if a run does nothing that is seen outside, and would be the same where Python decides the same."""
    return not (staged.writes or recorder.effect) and staged.auxiliary.is_fresh


def _is_worth_keeping(fixed: Sequence[Any], staged: Staged) -> bool:
    """True if the arrays that a trace holds are few beside its equations."""
    kept = [*[value.content for value in fixed if type(value) is Remembered], *staged.operands]
    size = sum(array.nbytes for array in kept if isinstance(array, np.ndarray))
    return size <= LARGE or size <= min(MOST, PER_EQUATION * sum(1 for _ in all_equations(staged.program)))

"""Traces without `jit` that are used again.

Without `jit` a function is traced at each call, and any Python may run. A trace is used again at the next call if the
function would do the same. That is so if it reads the same values (`fnad.trace.environment`), has no effect
(`fnad.trace.effects`) and changes nothing that it reads. What Python decides by traced values must come out the same,
and the arguments that are not differentiated must be those of the trace.

A function that draws random numbers, and has no other effect, runs once more, with traced values for the draws
(`fnad.trace.draws`). Each call that uses the trace makes these draws first. In the same way an integer argument that
changes with each call, such as the number of a step, becomes a traced value: if nothing uses it, it may be any integer.

Recording what a function reads takes time too. Its first call with arguments of given shapes is not recorded, because
it may be the only one. After an effect, or if recording has saved less than it has cost, no call is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.api.running.transformed import note_keeper
from fnad.api.staging.arguments import LARGE, Differentiated, differentiated, resolved, stage_in
from fnad.api.staging.leaves import Function, Leaf, Operand, argument_name, flatten, unflatten
from fnad.api.staging.stage import Staged
from fnad.errors import FnadError
from fnad.ir.builder import is_tracing
from fnad.ir.program import Program
from fnad.ir.types import NAMES
from fnad.ir.walk import all_equations, use_counts
from fnad.placement import is_on_device, on_host
from fnad.trace.draws import Draw, DrawRecorder, Varying, with_traced_draws
from fnad.trace.effects import DRAW
from fnad.trace.environment import Environment
from fnad.trace.parts import CONSTANTS
from fnad.trace.reads import Remembered, array_in, first_read, same
from fnad.trace.recording import Recorder
from fnad.transforms.dce import dce, without_effects
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


ANY = object()
"""The record of an integer argument that the function has no use for."""

Make: TypeAlias = Callable[[Sequence[Any]], Staged]
"""Traces a call, whose leaves without derivative are given."""


def fixed(value: Any) -> Any:
    """The record of an argument without derivative: the content of an array, or the object itself."""
    is_array = type(value) is np.ndarray and value.dtype in NAMES
    return first_read(array_in, value, "").value if is_array else value


def is_fixed(now: Any, before: Any) -> bool:
    """True if an argument equals its record."""
    if before is ANY:
        return type(now) is int
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
    """A trace that may be used again; among the operands of `staged` are the draws to make first."""

    staged: Staged
    fixed: list[Any]
    environment: Environment
    decisions: Decisions | None

    def fits(self, fixed: Sequence[Any], operands: Sequence[Operand]) -> bool:
        """True if the function would do the same again."""
        if not (all(map(is_fixed, fixed, self.fixed)) and self.environment.holds()):
            return False
        return self.decisions is None or self.decisions.are_the_same(
            [*operands, *self.staged.operands[len(operands) :]]
        )

    def on(self, operands: Sequence[Operand]) -> Staged:
        """The trace on other values, after its draws."""
        behind: list[Any] = self.staged.operands[len(operands) :]
        return self.staged._replace(operands=[*operands, *[x.again() if type(x) is Draw else x for x in behind]])


class ReusedTraces:
    """The traces of a function that may be used again."""

    def __init__(self, f: Function) -> None:
        self._f = f
        self._known: dict[Hashable, list[ReusedTrace]] = {}
        self._before: dict[Hashable, dict[int, int]] = {}
        self._only_draws = False
        self._credit = CREDIT
        note_keeper(self)

    def forget(self) -> None:
        """Drop all traces."""
        self._known.clear()
        self._before.clear()

    @property
    def are_used(self) -> bool:
        """True if a call may use a trace; under a debugger Python runs at each call."""
        return self._credit > 0 and not is_tracing() and sys.gettrace() is None

    def stage(self, traced: Sequence[Leaf], others: Sequence[Any], structure: Hashable, make: Make) -> Staged:
        """The earlier trace that fits a call with these leaves and this structure, or the result of `make(others)`."""
        if not self.are_used or any(map(is_on_device, others)):  # the content of arrays on a device is not compared
            return make(others)
        signature = structure, tuple([(leaf.aval, leaf.weak, leaf.is_array, leaf.labels) for leaf in traced])
        known = self._known.get(signature)
        if known is None:
            if len(self._known) < SIGNATURES:
                self._known[signature], self._before[signature] = [], _integers(others)
            return make(others)
        operands = [leaf.value for leaf in traced]
        for reused in known:
            if reused.fits(others, operands):
                self._credit = CREDIT
                return reused.on(operands)
        self._credit -= 1
        before, self._before[signature] = self._before.get(signature, {}), _integers(others)
        given = [Varying(v) if type(v) is int and before.get(i, v) != v else v for i, v in enumerate(others)]
        is_varying = any(type(value) is Varying for value in given)
        if not (self._only_draws or (known and is_varying)):
            return self._recorded(known, others, make)
        staged = self._repeating(known, given, make)
        if staged is None and not is_varying:
            self._give_up()
            return make(others)
        return self._recorded(known, others, make) if staged is None else staged

    def _recorded(self, known: list[ReusedTrace], others: Sequence[Any], make: Make) -> Staged:
        kept, recorder = list(map(fixed, others)), Recorder(seeks_effects=True)
        staged = self._run(recorder, kept, others, make)
        is_kept, environment = _is_worth_keeping(kept, staged), recorder.environment
        if _is_like_new(staged) and recorder.effect in (None, DRAW) and environment.has_only_drawn:
            self._only_draws = True
        elif recorder.effect is not None or not is_kept:
            self._give_up()
        elif environment.holds():
            _keep(known, staged, kept, environment)
        return staged

    def _repeating(self, known: list[ReusedTrace], given: Sequence[Any], make: Make) -> Staged | None:
        """The result of a run whose draws are traced; None if it is not a plain run's, and what it did is undone."""
        kept = [ANY if type(value) is Varying else fixed(value) for value in given]

        def is_kept(staged: Staged, recorder: DrawRecorder) -> bool:
            if not (
                _is_worth_keeping(kept, staged, len(recorder.draws))
                and _is_independent(staged, recorder.draws, kept.count(ANY))
                and recorder.environment.holds()
            ):
                return False
            if recorder.is_repeatable():
                _keep(known, staged, kept, recorder.environment, recorder.draws)
            else:  # code of a library or another thread draws too
                self._give_up()
            return True

        return with_traced_draws(lambda recorder: self._run(recorder, kept, given, make), is_kept)

    def _run(self, recorder: Recorder, kept: Sequence[Any], given: Sequence[Any], make: Make) -> Staged:
        for value in (self._f, *[value for value in kept if not isinstance(value, (Remembered, *CONSTANTS))]):
            recorder.follow(value)
        with recorder.active():
            return make(given)

    def _give_up(self) -> None:
        self._credit = 0
        self.forget()


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

        def make(values: Sequence[Any] = ()) -> Staged:
            every, by_name = args, kwargs
            if any(type(value) is Varying for value in values):
                rest, by_name = unflatten(structure, values[len(wrt.constants) :])
                every = [arg if i in chosen else rest.pop(0) for i, arg in enumerate(args)]
            return stage_in(self._traced, chosen, wrt, every, by_name, has_aux=self._has_aux)

        if not self._traces.are_used:  # so that nothing is taken apart in vain
            return make(), wrt
        others, structure = flatten(([arg for i, arg in enumerate(args) if i not in chosen], kwargs))
        traced, fixed = [wrt.leaves[i] for i in wrt.places], [*wrt.constants, *others]
        signature = chosen, structure, wrt.structure, tuple(wrt.places)
        return self._traces.stage(traced, fixed, signature, make), wrt


def _integers(values: Sequence[Any]) -> dict[int, int]:
    """The integers among arguments, by their places."""
    return {i: value for i, value in enumerate(values) if type(value) is int}


def _keep(
    known: list[ReusedTrace], staged: Staged, kept: list[Any], environment: Environment, draws: Sequence[Draw] = ()
) -> None:
    decisions = Decisions(staged) if staged.guards else None
    drawn, behind = [draw.without_numbers() for draw in draws], staged.operands[staged.leaves + len(draws) :]
    staged = staged._replace(operands=[*staged.operands[: staged.leaves], *drawn, *behind])
    known[:] = [ReusedTrace(staged, kept, environment, decisions), *known[: TRACES - 1]]


def _is_independent(staged: Staged, draws: Sequence[Draw], varying: int) -> bool:
    """True if no guard depends on a draw, no number beside the result is one, and integers that vary are not used."""
    guards = tuple(guard.atom for guard in staged.guards)
    in_guards, used = [
        use_counts(dce(replace(staged.program, outputs=outputs)))
        for outputs in (guards, (*guards, *staged.program.outputs))
    ]
    inputs = staged.program.inputs[staged.leaves :]
    integers = [var for var, draw in zip(inputs, draws, strict=False) if draw.method is None]
    is_unused = not any(in_guards[var] for var in inputs[: len(draws)]) and not any(used[var] for var in integers)
    return is_unused and len(integers) == varying and not any(value.is_weak for value in staged.auxiliary.traced)


def _is_like_new(staged: Staged) -> bool:
    """True if a run changes no argument and returns no object."""
    return not staged.writes and staged.auxiliary.is_fresh


def _is_worth_keeping(fixed: Sequence[Any], staged: Staged, draws: int = 0) -> bool:
    """True if a run is like new, and its trace holds few arrays beside its equations and draws, which it loses."""
    if not _is_like_new(staged):
        return False
    operands = staged.operands[: staged.leaves] + staged.operands[staged.leaves + draws :]
    kept = *[value.content for value in fixed if type(value) is Remembered], *operands
    size = sum(array.nbytes for array in kept if isinstance(array, np.ndarray))
    return size <= LARGE or size <= min(MOST, PER_EQUATION * sum(1 for _ in all_equations(staged.program)))

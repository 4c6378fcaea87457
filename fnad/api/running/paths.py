"""The paths that a compiled function takes through its branches, for arguments of one signature.

Where Python decides by traced values, a trace is one path: its guards say what Python was told. A call begins with the
path that is expected: what followed the last time on the path of the call before. If a guard there finds another
answer, the path that shares the guards before and has that answer goes on; which it was is remembered with the guard,
so that the next time it is found at once. If there is none, the function is traced with the arguments at hand. What is
new is interpreted, and compiled once it has come again.

Whatever is returned was computed by a run in which all guards held, or by the trace's own program for the arguments it
was traced with. So which paths are known, and in which order they are tried, is a matter of time only.

Note [Fallback]
    Native code rounds otherwise than NumPy does. Near the point where an answer changes it may find another one than
    the trace, which asks NumPy. Then the trace gives a path that was just tried in vain. The new one is its fallback:
    it is always interpreted, so that it answers as the trace did, and goes on at that guard.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Any, TypeAlias

from fnad import config
from fnad.api.running.execution import prepared, raise_with_line, watched
from fnad.api.staging.leaves import Array
from fnad.api.staging.python_loops import PythonLoops
from fnad.api.staging.stage import Output
from fnad.backends.base import Executor
from fnad.backends.tiers import TieredProgram, staged
from fnad.errors import DeviceError, FnadError, GuardFailed, PathsWarning, PlacementError
from fnad.forks import cached_property
from fnad.ir.primitive import GuardCheck
from fnad.ir.program import Program, Source
from fnad.ir.walk import acts_outside, has_effect
from fnad.trace.capture import Guard
from fnad.trace.draws import Draw
from fnad.trace.environment import Environment
from fnad.trace.guards import guarded
from fnad.trace.source import ends_loop
from fnad.transforms.dce import dce

MOST = 64
"""The most paths for one signature."""

TRACES = 8
"""The most traces of one path: a function may alternate between values of globals and attributes."""

WHILE = "repeat with fnad.while_loop"
FOR = "repeat with fnad.fori_loop or fnad.scan; to read an array at a traced index, write fnad.numpy.asarray(table)[i]"
IF = "choose with fnad.cond or np.where"


class TracedPath:
    """One trace: its program and guards, what it takes beside the arguments, its output, what was read from outside.

    It takes `draws`, which are made at each run (`fnad.trace.draws`), and behind these the arrays that are `captured`.
    `written` are the arguments that it writes into, which have to be apart from each other and from arrays `outside`.
    `version` says what was known of loops that decide: a trace that knows more takes the place of one with its answers.
    """

    def __init__(
        self,
        program: Program,
        guards: tuple[Guard, ...],
        captured: Sequence[Array],
        output: Output,
        environment: Environment,
        written: Sequence[int],
        outside: Sequence[Array],
        donated: tuple[int, ...] = (),
        version: tuple[int, ...] = (),
        draws: Sequence[Draw] = (),
    ) -> None:
        self.draws = draws
        self.version = version
        self.donated = donated
        self.device = config.current().device
        self.traced = program
        self.written = written
        self.outside = outside if written else ()
        self.guards = guards
        self.answers = tuple(guard.expected for guard in guards)
        self.identity = self.answers, version
        self.captured = captured
        self.output = output
        self.environment = environment
        self.is_fallback = False
        self.runs = 0
        self.next_run = count(1).__next__

    @cached_property
    def programs(self) -> tuple[TieredProgram, ...]:
        """The program with its guards, ready to run; it may have been made of another function."""
        with config.on(self.device):
            if not self.guards:
                return (prepared(self.traced, self.donated),)
            return tuple(map(prepared, self.own))  # nothing is donated: another path may need the arguments

    @property
    def own(self) -> tuple[Program, ...]:
        """The program with its guards, with the lines of this function.

        There are two where it has effects, which must not happen in vain.
        """
        if not self.guards:
            return (self.traced,)
        program = guarded(self.traced, self.guards)
        return (deciding(program), self.traced) if self._has_effects else (program,)

    @cached_property
    def _has_effects(self) -> bool:
        return any(map(acts_outside, self.traced.equations))

    @property
    def is_compiled(self) -> bool:
        """True if native code runs it."""
        return not self.is_fallback and "programs" in vars(self) and self.programs[-1].is_native

    @cached_property
    def _interpreters(self) -> list[Executor]:
        return [program.interpreted() for program in self.programs]

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs for these arguments; raise `GuardFailed` where another path has to be taken."""
        return self._run(self._operands(arrays))

    def _operands(self, arrays: Sequence[Array]) -> list[Array]:
        """The operands of the program for these arguments, with new draws."""
        return [*arrays, *[draw.again() for draw in self.draws], *self.captured]

    def _run(self, operands: list[Array]) -> list[Array]:
        *deciding, run = self._executors()
        for decide in deciding:
            decide(operands)
        results = watched(run, operands, lambda: self.traced)
        self.runs = self.next_run()
        return results

    def run_ready(self, arrays: Sequence[Array]) -> list[Array] | None:
        """The outputs of a path by its native code, if that is there; raise `GuardFailed` for another path."""
        native = self.programs[0].ready()
        if native is None:
            return None
        operands = self._operands(arrays)
        try:
            results = native(operands)
        except (DeviceError, PlacementError, GuardFailed):
            raise
        except FnadError:
            raise_with_line(self.traced, operands)
            raise
        self.runs = self.next_run()
        return results

    def run_first(self, arrays: Sequence[Array], is_checked: bool) -> list[Array]:
        """The outputs for the arguments it was traced with; where it has guards, no compiler is waited for.

        If it `is_checked`, raise `GuardFailed` where the program decides otherwise than the trace.
        """
        operands = [*arrays, *[draw.array for draw in self.draws], *self.captured]
        self.draws = [draw.without_numbers() for draw in self.draws]
        if not self.guards:
            return self._run(operands)
        if is_checked or config.current().executor == "compiled" or self.device != "cpu":
            with suppress(GuardFailed):  # See Note [Fallback]
                return self._run(operands)
        self.runs = self.next_run()
        *deciding, run = self._interpreters if is_checked else [staged(self.traced).executor()]
        for decide in deciding:
            decide(operands)
        return watched(run, operands, lambda: self.traced)

    def _executors(self) -> list[Executor]:
        """The executors of the path, which is hot at the second run, or compiled at once if interpreting takes longer.

        Much is called once, such as a Hessian at the end of a fit, and would wait for the compiler in vain.
        """
        if self.is_fallback:
            return self._interpreters
        if self.guards:  # one of many paths, of which a few come often
            return [program.executor(eager=self.runs > 1) for program in self.programs]
        return [program.executor(eager=self.runs > 0 or program.is_heavy, often=True) for program in self.programs]

    def leads(self, answers: tuple[int, ...]) -> bool:
        """True if the first guards have these answers."""
        return self.answers[: len(answers)] == answers


def deciding(program: Program) -> Program:
    """A program with guards without what has other effects, on which no guard depends, and without outputs."""
    left = (e for e in program.equations if isinstance(e.primitive.lower, GuardCheck) or not has_effect(e))
    return dce(Program(program.name, program.inputs, tuple(left), ()))


FailedPath: TypeAlias = tuple[TracedPath, tuple[int, int]]
"""A path that was tried, and the guard where it found another answer: its number, and the answer."""

Outcome: TypeAlias = tuple[TracedPath | None, list[Array], tuple[FailedPath, ...]]
"""The path that ran, if one is known that fits, its outputs, and those tried before it."""


class Paths:
    """The known paths of one signature. Its methods may be called from several threads at once."""

    def __init__(self) -> None:
        self.known: tuple[TracedPath, ...] = ()
        self.loops = PythonLoops()
        self.may_draw = True
        self._latest: TracedPath | None = None
        self._following: dict[TracedPath | None, TracedPath] = {}
        self._successors: dict[tuple[TracedPath, tuple[int, int]], TracedPath] = {}
        self._is_full = False

    def run(self, arrays: Sequence[Array], failures: tuple[FailedPath, ...] = ()) -> Outcome:
        """Run the path that these arguments take, if it is known; `failures` are those that were tried."""
        path = self._after(failures) if failures else self._holding()
        while path is not None:
            try:
                results = path.run(arrays)
            except GuardFailed as failure:
                failures = (*failures, (path, failure.args))
                path = self._after(failures)
            else:
                self._take(path, failures)
                return path, results, failures
        return None, [], failures

    def run_new(self, path: TracedPath, arrays: Sequence[Array], failures: tuple[FailedPath, ...]) -> list[Array]:
        """Run a path that was just traced for these arguments, after others had failed, and hold it.

        Raise `GuardFailed` where loops that were put together in it decide otherwise than their steps did in Python.
        """
        results = path.run_first(arrays, is_checked=bool(self.loops.used))
        # a path of these answers failed a moment ago, so native code and the trace do not agree: see Note [Fallback]
        path.is_fallback = any(failed.identity == path.identity for failed, _ in failures)
        held = path if path.is_fallback else self._hold(path, may_share=bool(failures))
        if held is not None:
            self._take(held, failures)
        return results

    def comes_again(self, path: TracedPath) -> bool:
        """True if a path followed itself the last time."""
        return self._following.get(path) is path

    # ---- which one -----------------------------------------------------------------------------------------------

    def _holding(self) -> TracedPath | None:
        """The path to try first: what it was traced from is as it was."""
        expected = self._following.get(self._latest, self._latest)
        if expected is not None and expected.environment.holds():
            return expected
        return next((path for path in self.known if path is not expected and path.environment.holds()), None)

    def _after(self, failures: tuple[FailedPath, ...]) -> TracedPath | None:
        """The path to try after these: the one that went on there the last time, or else one that fits."""
        failed, answer = failures[-1]
        # What went on there the last time is tried first, at no search, though it may part from these arguments further
        # on: its own guards decide. But it is tried once in a call, since two paths may name each other.
        successor = self._successors.get(failures[-1])
        if successor is not None and not was_tried(successor, failures) and holds_after(successor, failed):
            return successor
        number, value = answer
        answers = (*failed.answers[:number], value)
        # Only the answers up to the guard are known to hold. A path that has them and was not tried can go on further;
        # each path is tried once, so the search ends, and where there is none the function is traced.
        fitting = (path for path in self.known if path.leads(answers) and not was_tried(path, failures))
        return next((path for path in fitting if holds_after(path, failed)), None)

    def _take(self, path: TracedPath, failures: tuple[FailedPath, ...]) -> None:
        """Expect a path that ran to come again after the one before it, and where those failed that were tried."""
        # A fallback is slow, and right for arguments near a threshold only: the call after this one does not begin with
        # it, and it goes on after the path that it stands in for, not after others that failed before that.
        if not path.is_fallback:
            self._following[self._latest] = path
            self._latest = path
        for failed, answer in failures:
            if not path.is_fallback or failed.identity == path.identity:
                self._successors[failed, answer] = path

    # ---- how many ------------------------------------------------------------------------------------------------

    def _hold(self, path: TracedPath, *, may_share: bool) -> TracedPath | None:
        """The path to hold for this one: itself, or one that another thread was as fast to find; None if full.

        Of traces of one path the oldest are given up, since what they were traced from has changed. If no path was
        tried before it, nothing that one was traced from held a moment ago, and it may share none of that.
        """
        current = [known for known in self.known if not is_older(known, path)]
        alike = [known for known in current if known.identity == path.identity]
        same = next((known for known in alike if path.guards and known.environment.holds()), None)
        if same is not None:
            return same
        held = [known for known in current if known not in alike[TRACES - 1 :]]
        # Checking what paths were traced from takes time, so those that no longer hold go only when there is no room.
        if len(held) >= MOST:
            held = [known for known in held if known.environment.holds()]
        if len(held) >= MOST:
            self._warn()
            return None
        # Paths that were traced from the same things share the record of it, which is then compared once a call.
        if may_share:
            records = (known.environment for known in held)
            path.environment = next((r for r in records if r.covers(path.environment)), path.environment)
        if len(held) < len(self.known):
            self._forget_others(held)
        self.known = (path, *held)
        return path

    def _forget_others(self, held: Sequence[TracedPath]) -> None:
        """Forget what came after paths that are given up, and where they did, so that nothing has them any more."""
        self._following = {p: q for p, q in [*self._following.items()] if p in held and q in held}
        self._successors = {(p, a): q for (p, a), q in [*self._successors.items()] if p in held and q in held}
        self._latest = self._latest if self._latest in held else None

    def _warn(self) -> None:
        if self._is_full:
            return
        self._is_full = True
        source, remedy = crossing(self.known)
        what = f"{self.known[0].traced.name} takes more than {MOST} paths, most of which part at\n  {source}\n"
        more = "further ones are traced at each call and interpreted: "
        warnings.warn(f"{what}  {more}{remedy}", PathsWarning, stacklevel=6)


def is_older(path: TracedPath, new: TracedPath) -> bool:
    """True if a path has the answers of a new one, and knew less of the loops that decide."""
    return path.answers == new.answers and path.version != new.version


def was_tried(path: TracedPath, failures: tuple[FailedPath, ...]) -> bool:
    """True if a path is among those that were tried."""
    return any(path is failed for failed, _ in failures)


def holds_after(path: TracedPath, failed: TracedPath) -> bool:
    """True if what a path was traced from is as it was, which is so of a path that was just tried."""
    return path.environment is failed.environment or path.environment.holds()


# ---- where paths part ------------------------------------------------------------------------------------------------


def crossing(paths: Sequence[TracedPath]) -> tuple[Source | None, str]:
    """The line where most of the paths part, and what to write there in place of Python's own control flow."""
    parted: dict[Source | None, int] = {}
    tree: dict[int, Any] = {}
    for path in paths:
        node = tree
        for guard in path.guards:
            if guard.expected not in node:
                parted[guard.source] = parted.get(guard.source, 0) + bool(node)
            node = node.setdefault(guard.expected, {})
    source = max(parted, key=lambda source: parted[source])
    return source, remedy_at(source, paths)


def remedy_at(source: Source | None, paths: Sequence[TracedPath]) -> str:
    """The code to write instead of the control flow at a line."""
    guards = [guard for path in paths for guard in path.guards if guard.source == source]
    if (remedy := next((guard.remedy for guard in guards if guard.remedy), None)) is not None:
        return remedy
    if any(not isinstance(guard.expected, bool) for guard in guards):
        return FOR
    return WHILE if ends_loop(source) else IF

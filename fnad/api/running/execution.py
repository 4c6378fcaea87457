"""Running a rewritten program: executed, or inlined in the trace under way.

A program is derived, simplified and compiled once for all programs of the same content. So a function that is traced
anew at each call costs its tracing and a look-up. What is run may therefore have been made of another function; where
it fails, what is made of this one is interpreted, for the sake of the user's line in the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, NamedTuple, cast

from fnad import config
from fnad.api.running.derivations import AS_IT_IS, Derivation
from fnad.api.running.reused_traces import ReusedTraces
from fnad.api.staging.aliasing import Received
from fnad.api.staging.inlining import asked_of_loops, guard_by, inlined
from fnad.api.staging.leaves import Array, Function, Operand, leaves_of, to_user, unflatten
from fnad.api.staging.stage import Staged, stage
from fnad.backends.base import Executor
from fnad.backends.reference import interpreter
from fnad.backends.tiers import TieredProgram, staged
from fnad.errors import DeviceError, FnadError, PlacementError
from fnad.ir.builder import is_tracing
from fnad.ir.content import content_key
from fnad.ir.program import Program
from fnad.ir.walk import acts_outside, all_equations
from fnad.placement import on_host
from fnad.store import STORE, uncollected
from fnad.trace import log
from fnad.trace.hooks import callee
from fnad.trace.tracer import Tracer
from fnad.transforms.interpret import TimeUpError


def derived(program: Program, derivation: Derivation) -> tuple[TieredProgram, ...]:
    """The programs that are derived from one, ready to run."""
    key = (*derivation.key, *config.current().code), content_key(program)
    return STORE.get(key, lambda: tuple(map(prepared, _derive(program, derivation))))


def _derive(program: Program, derivation: Derivation) -> tuple[Program, ...]:
    start = perf_counter()
    made = derivation.derive(program)
    log.done(f"derived {derivation.key[0]} of", program, perf_counter() - start)
    return made


SHORT = 2000
"""Equations of a program for which it takes less time to look it up than to look for loops in it."""


@dataclass(frozen=True, slots=True)
class Within:
    """The programs derived from a program within a trace; the program has the lines of its key."""

    program: Program
    made: tuple[Program, ...]


def derived_within(program: Program, derivation: Derivation) -> tuple[Program, ...]:
    """The programs that are derived from one, to become part of a trace: those of programs with the same lines too.

    What repeats in a long one is a loop before it is looked up: to go through all its steps for that takes longer.
    """
    if len(program.equations) <= SHORT:
        return _kept_within(program, derivation.key, derivation.derive)
    with uncollected():
        program = derivation.prepared(program)
    return _kept_within(program, derivation.key, derivation.rewrite)


def _kept_within(
    program: Program, key: tuple[object, ...], make: Callable[[Program], tuple[Program, ...]]
) -> tuple[Program, ...]:
    lines = [id(equation.source) for equation in all_equations(program)]
    asked = [i for i, e in enumerate(program.equations) if not program.asked.isdisjoint(e.results)]
    whole = (derived_within, *key, *lines, None, *asked), content_key(program)
    return STORE.repeated(whole, lambda: Within(program, make(program))).made


def prepared(program: Program, donated: tuple[int, ...] = ()) -> TieredProgram:
    """The executor that the settings choose for a program, shared by programs of equal content while it is referenced.

    Results may lie in the memory of the inputs at the positions `donated`.
    """
    key = (donated, *config.current().code), content_key(program)
    return STORE.stages(key, lambda: staged(program, donated))


class MadeProgram(NamedTuple):
    """A program in the store: the transform that derived it, if one did, and whether it is native code."""

    transform: str | None
    compiled: bool

    def __str__(self) -> str:
        return f"{self.transform or 'itself'}: {'compiled' if self.compiled else 'interpreted'}"


def made_of(*programs: Program) -> tuple[MadeProgram, ...]:
    """The entries of the store for programs of these contents."""
    found = [made for content in dict.fromkeys(map(content_key, programs)) for made in STORE.made_of(content)]
    return tuple(
        MadeProgram(key[0] if key and isinstance(key[0], str) else None, all(stages.is_native for stages in made))
        for key, made in found
    )


def execute(
    program: TieredProgram, operands: Sequence[Operand], own: Callable[[], Program], count: int | None = None
) -> list[Array]:
    """Run a program outside of any trace, where there are no symbols.

    `own()` is the same program with the lines of the function at hand, which an error is to show. Of the results, the
    first `count` (or all) are values, which `debug_nans` checks, and not residuals.
    """
    return watched(program.executor(), cast("Sequence[Array]", operands), own, count)


def watched(
    run: Executor, arrays: Sequence[Array], own: Callable[[], Program], count: int | None = None
) -> list[Array]:
    """The results of an executor; its errors get the line of the current function, and its results are checked."""
    if config.current().debug_nans:
        from fnad.api.running.debug_nans import checked  # noqa: PLC0415 - loaded only for this setting

        return checked(run, arrays, own(), count)
    try:
        return run(arrays)
    except (DeviceError, PlacementError):  # which no line is to blame for
        raise
    except FnadError:
        raise_with_line(own(), arrays)
        raise


def raise_with_line(program: Program, arrays: Sequence[Array]) -> None:
    """Interpret a program that failed, as it was made of the function at hand, so that the error has its line.

    Effects would happen twice, so a program that has some is left alone; loops run for a second at most.
    """
    if not any(map(acts_outside, program.equations)):
        with suppress(TimeUpError):
            interpreter(program)(list(map(on_host, arrays)), perf_counter() + 1.0)


def run(program: Program, operands: Sequence[Operand], derivation: Derivation) -> list[Any]:
    """The outputs of the one program that is derived, on these operands, as the user gets them."""
    if is_tracing():
        return _derived_inlined(program, operands, derivation)
    results = execute(derived(program, derivation)[0], operands, lambda: derivation.derive(program)[0])
    return [to_user(result) for result in results]


def _derived_inlined(program: Program, operands: Sequence[Operand], derivation: Derivation) -> list[Any]:
    """The outputs of a derived program; guards read the answers of loops in it, so that these do not run twice."""
    asked = asked_of_loops(program) if derivation.begins is not None else []
    if not asked:
        return inlined(derived_within(program, derivation)[0], operands)
    wider = replace(program, outputs=(*program.outputs, *asked))
    found = inlined(derived_within(wider, derivation)[0], operands)
    begin = len(program.outputs) - (derivation.begins or 0)
    end = begin + len(asked)
    guard_by(program, asked, operands, found[begin:end])
    return [*found[:begin], *found[end:]]


def in_trace(
    f: Function,
    function: Callable[..., Any],
    *trees: Any,
    names: Sequence[str] = (),
    traces: ReusedTraces | None = None,
) -> Any:
    """`function(*trees)`: as part of the trace under way, or else of one that is run at once.

    Errors call the first trees by the `names`. `traces` has earlier traces, if `function` is the same at each call.
    """
    if is_tracing():
        return function(*trees)
    leaves, structure = leaves_of(trees, lambda i: names[i] if i < len(names) else f"args[{i - len(names)}]")

    def traced(_: Sequence[Any] = ()) -> Staged:
        received = Received(f)

        def call(tracers: Sequence[Tracer]) -> Any:
            with received.reading():
                result = callee(function)(*cast("tuple[Any, ...]", unflatten(structure, tracers)))
            received.check(lambda: [leaf.value for leaf in leaves], tracers)
            return result

        return stage(f, leaves, call)._replace(writes=received.is_written)

    staged = traced() if traces is None else traces.stage(leaves, (), structure, traced)
    results = run(staged.program, staged.operands, AS_IT_IS)
    return staged.output.rebuild(results)

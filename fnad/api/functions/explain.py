"""`explain`: what a trace of a function found, for a person to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

from fnad import config
from fnad.api.functions.jit import Placed
from fnad.api.inspect.known_paths import Decision, decision_lines, decisions_of
from fnad.api.inspect.tables import html_table
from fnad.api.inspect.timeline import Timeline, timeline
from fnad.api.running.derivations import vjp
from fnad.api.running.execution import MadeProgram, made_of
from fnad.api.staging.arguments import protected
from fnad.api.staging.leaves import (
    Function,
    Leaf,
    LeafError,
    argument_name,
    check_function,
    flatten,
    function_name,
    leaf_of,
    map_leaves,
    path,
)
from fnad.api.staging.python_loops import PythonLoops
from fnad.api.staging.stage import output_leaves, with_labels
from fnad.backends.base import current_backend
from fnad.backends.tiers import staged
from fnad.control.reroll import differences, loops
from fnad.control.widening import widening_lines
from fnad.errors import LoweringError
from fnad.ir.content import content_key
from fnad.ir.program import Atom, Equation, Program, Source, Var
from fnad.ir.types import Aval, is_inexact
from fnad.placement import is_on_host
from fnad.store import STORE
from fnad.trace.capture import Write
from fnad.trace.environment import Met
from fnad.trace.guards import guarded
from fnad.trace.recording import Recorder
from fnad.trace.source import is_repeated
from fnad.trace.tracer import Tracer
from fnad.trace.tracing import Traced, trace_function


class FoundValue(NamedTuple):
    """A value that the program takes: its name, or the line where it is first used."""

    name: str
    aval: Aval
    source: Source | None


class Explanation(NamedTuple):
    """The findings of a trace; the text has a line for each.

    `traced` are the leaves of the arguments that are numbers with a derivative. `captured` are the arrays from outside,
    or made by NumPy alone, whose content is read anew at each call; each has the line that first uses it. Each of the
    `copies` is a write into a traced array, of which the program makes a new version. `decisions` are what Python was
    told of traced values, as `if` or `range` asked. `outside` are the clocks, files and other things met that cannot be
    compared: under `jit` they are as they were when it was traced, or it is traced `anew` at each call for them.
    `operations` counts the equations of the program by primitive. `made` is what the store has of this program: itself,
    if a compiled function runs it, and what transforms have derived from it. `sparsity` has a line for each pattern of
    a sparse derivative of it. `loops` are the loops of Python that are one loop in what runs, and `unrolled` says of
    others why they are not. `residuals`, with `memory=True`, are the values that a pullback of the program keeps,
    and `timeline` are the bytes of live arrays while the function and that pullback run, which `timeline.plot()` draws.
    `launches` are the kernels on the device that the settings name, with the bytes of the arrays that they touch.
    `paths` says of loops whose steps decide why they stay paths under `jit`.
    `widened` are the lines where float32 becomes float64 by NumPy's promotion.
    """

    function: str
    traced: tuple[FoundValue, ...]
    captured: tuple[FoundValue, ...]
    copies: tuple[Write, ...]
    decisions: tuple[Decision, ...]
    outside: tuple[Met, ...]
    operations: dict[str, int]
    made: tuple[MadeProgram, ...]
    sparsity: tuple[str, ...]
    loops: tuple[str, ...]
    unrolled: tuple[str, ...]
    residuals: tuple[Residual, ...] | None = None
    launches: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    timeline: Timeline | None = None

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [(title, "\n".join(lines) or "none") for title, lines in _sections(self)]
        return html_table(_title(self), rows)


def explain(f: Function, *args: Any, memory: bool = False, **kwargs: Any) -> Explanation:
    """A report of what a trace of `f(*args, **kwargs)` finds, with user lines.

    Parameters:
        f (function): It runs once, as under `grad`, and its errors are raised.
        *args, **kwargs (pytrees): Floats, numbers and arrays, are traced; all else is passed on.
        memory (bool): If true, the report lists the values that `vjp` keeps for the pullback, with bytes and lines,
            and has the bytes of live arrays over time.
    Returns:
        Explanation: A named tuple of the values traced, captured, copied and decided by, and of the loops found;
            `print` shows it.
    Raises:
        ArgumentTypeError: If `f` is not callable.
    Examples:
        >>> import numpy as np, fnad
        >>> table = np.arange(3.0)
        >>> print(fnad.explain(lambda x: np.sum(x * table), np.ones(3)).captured[0].aval)
        f64[3]
    """
    check_function(f, "explain")
    with config.on(f.device) if isinstance(f, Placed) else nullcontext():
        return _explained(f, args, kwargs, memory=memory)


def _explained(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any], *, memory: bool) -> Explanation:
    values, structure = flatten(args)
    leaves = {i: leaf for i, value in enumerate(values) if (leaf := _leaf(value)) is not None}

    def attempt(f: Function, receive: Any) -> Traced:
        def call(tracers: Sequence[Tracer]) -> list[Any]:
            given = dict(zip(leaves, with_labels(tracers, list(leaves.values())), strict=True))
            received = [given[i] if i in given else receive(value) for i, value in enumerate(values)]
            return output_leaves(f(*structure.unflatten(received), **map_leaves(receive, kwargs)), f)[0]

        found = list(leaves.values())
        avals, weak, arrays = [x.aval for x in found], [x.weak for x in found], [x.is_array for x in found]
        now = [x.value for x in found]
        return trace_function(call, avals, name=function_name(f), weak=weak, arrays=arrays, values=now)

    recorder = Recorder()
    recorder.follow(f)
    trial = PythonLoops()
    with recorder.active():
        traced = protected(f, attempt)
        looped = traced
        while new := {n for guard in looped.guards if is_repeated(guard.source) for n in guard.lines} - trial.marked:
            trial.marked |= new
            looped = trial.traced(lambda: protected(f, attempt), recorder.environment)
    names = [path(args, i, lambda k: argument_name(f, k)) for i in leaves]
    first = [FoundValue(name, leaf.aval, None) for name, leaf in zip(names, leaves.values(), strict=True)]
    counts = Counter(equation.primitive.name for equation in traced.program.equations)
    captured = tuple(_captured(traced.program, len(leaves)))
    decisions, operations = decisions_of(traced.guards), dict(counts.most_common())
    residuals, moments = memory_of(traced.program, names) if memory else (None, None)
    made = made_of(guarded(traced.program, traced.guards), traced.program)
    return Explanation(
        function_name(f),
        tuple(first),
        captured,
        traced.writes,
        decisions,
        tuple(recorder.environment.met),
        operations,
        made,
        tuple(STORE.notes_of(content_key(traced.program))),
        tuple(loops(traced.program)),
        tuple(map(str, differences(traced.program))),
        residuals,
        () if is_on_host() else tuple(_launches(traced.program)),
        tuple(map(str, widening_lines(traced.program))),
        tuple(trial.reasons(looped.guards)),
        moments,
    )


def _launches(program: Program) -> Iterator[str]:
    compiler: Any = current_backend().compiler
    try:
        yield from compiler.launch_lines(compiler.plan(staged(program).simplified))
    except LoweringError as error:
        yield f"none: {error.what}"


def _leaf(value: Any) -> Leaf | None:
    try:
        leaf = leaf_of(value)
    except LeafError:
        return None
    return leaf if is_inexact(leaf.aval.dtype) else None


def _captured(program: Program, leaves: int) -> Iterator[FoundValue]:
    uses: dict[Any, Source | None] = {}
    for equation in reversed(program.equations):
        uses.update({operand: equation.source for operand in equation.operands if isinstance(operand, Var)})
    for var in program.inputs[leaves:]:
        yield FoundValue("", var.aval, uses.get(var))


# ---- residuals -------------------------------------------------------------------------------------------------------


class Residual(NamedTuple):
    """A value that a pullback keeps: the name of the argument that it is, or the line that computes or first reads it.

    A residual stack, of a loop whose length only the run determines, has one row for each step.
    """

    name: str
    aval: Aval
    source: Source | None

    @property
    def nbytes(self) -> int:
        """Its size in bytes; that of one row for a residual stack."""
        return abs(self.aval.nbytes)

    def __str__(self) -> str:
        place = f" {self.name}" if self.name else f" at {self.source}" if self.source else ""
        return f"{self.nbytes} bytes{' a step' if self.aval.is_residual_stack else ''}: {self.aval}{place}"


def memory_of(program: Program, names: Sequence[str]) -> tuple[tuple[Residual, ...], Timeline | None]:
    """The residuals of the pullback, and the live arrays over time; the first inputs are arguments of these names."""
    results = len(program.outputs)
    wrt = [i < len(names) for i in range(len(program.inputs))]
    forward, pullback = vjp(wrt, results).derive(program)
    residuals = residuals_of(forward, results, names)
    with suppress(LoweringError):
        return residuals, timeline(forward, pullback, results)
    return residuals, None


def residuals_of(forward: Program, results: int, names: Sequence[str]) -> tuple[Residual, ...]:
    """The residuals, which follow the `results` outputs of a forward program; its first inputs have these names."""
    named = dict(zip(forward.inputs, names, strict=False))
    kept = [atom for atom in forward.outputs[results:] if isinstance(atom, Var)]
    return tuple(
        Residual(named[var], var.aval, None)
        if var in named
        else Residual("", var.aval, _source(var, forward.equations))
        for var in kept
    )


def _source(atom: Atom, equations: Sequence[Equation]) -> Source | None:
    """The line that computes a value, in the body of a loop if it is a row of that; else the first that reads it."""
    maker = next((equation for equation in equations if atom in equation.results), None)
    if maker is None:
        return next((equation.source for equation in equations if atom in equation.operands), None)
    if maker.regions:
        body, place = maker.regions[-1], maker.results.index(atom) - len(maker.results)
        inner = body.outputs[place] if -place <= len(body.outputs) else atom
        return _source(inner, body.equations) or maker.source
    return maker.source


# ---- the text --------------------------------------------------------------------------------------------------------


def _title(explanation: Explanation) -> str:
    count = sum(explanation.operations.values())
    return f"{explanation.function}: {count} operation{'s' * (count != 1)}"


def _lines(explanation: Explanation) -> Iterator[str]:
    yield _title(explanation)
    for title, lines in _sections(explanation):
        yield f"{title}: {'none' if not lines else ''}".rstrip()
        yield from (f"  {line}" for line in lines)


def _sections(explanation: Explanation) -> Iterator[tuple[str, Sequence[str]]]:
    """The title and the lines of each section; optional sections only if they have lines."""
    yield "traced", [f"{found.name}: {found.aval}" for found in explanation.traced]
    yield "captured", _counted(f"{found.aval}{_place(found.source)}" for found in explanation.captured)
    yield "copies", _counted(f"{write.aval}{_place(write.source)}" for write in explanation.copies)
    yield "decisions", list(decision_lines(explanation.decisions))
    yield "outside", _counted(map(str, explanation.outside))
    yield "operations", [f"{count} {name}" for name, count in explanation.operations.items()]
    yield "in the store", _counted(map(str, explanation.made))
    optional = {
        "sparse": explanation.sparsity,
        "loops": _counted(explanation.loops),
        "left unrolled": _counted(explanation.unrolled),
        "paths under jit": explanation.paths,
        "float32 becomes float64": explanation.widened,
        "launches": explanation.launches,
    }
    yield from ((title, lines) for title, lines in optional.items() if lines)
    if explanation.timeline is not None:
        yield "live arrays", [f"at most {explanation.timeline.peak or '0 bytes'}"]
    if explanation.residuals is not None:
        total = sum(residual.nbytes for residual in explanation.residuals)
        yield f"kept for the pullback, {total} bytes", _counted(map(str, explanation.residuals))


def _counted(lines: Iterable[str]) -> list[str]:
    """Each line once, with how often it stands there."""
    return [line if count == 1 else f"{count} times {line}" for line, count in Counter(lines).items()]


def _place(source: Source | None) -> str:
    return f" at {source}" if source is not None else ""

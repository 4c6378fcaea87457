"""Compiled functions: `jit`.

A call is looked up by its signature: structure, dtypes and shapes of the arguments, and the static arguments. A
signature may have several traces: one for each path that Python takes by traced values (`fnad.api.running.paths`), each
with the values that the function read from outside (`fnad.trace.environment`). A trace whose environment still holds is
run. Without such a trace the function is traced again; a trace with the program of an earlier one compiles nothing. The
first call is interpreted, because many functions run once; from the second on the program is compiled in the
background. An expensive first call is compiled at once (`fnad.backends.tiers`).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Hashable, Sequence
from enum import Enum
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeAlias, TypeVar, cast, overload

from numpy import ufunc

from fnad import config
from fnad.api.inspect.known_paths import KnownPaths, listed
from fnad.api.running.forms import CallForm
from fnad.api.running.paths import FailedPath, Paths, TracedPath
from fnad.api.running.ready import Ready, ready
from fnad.api.running.receivers import Receiver, Receivers
from fnad.api.running.statics import Places, Statics, donated_of, static_key, statics_of
from fnad.api.running.transformed import Transformed, note_keeper, with_options
from fnad.api.staging.aliasing import check_written, outside
from fnad.api.staging.arguments import call_inside, with_traced_arrays
from fnad.api.staging.leaves import (
    Array,
    Function,
    Leaf,
    LeafError,
    Structure,
    are_records,
    argument_name,
    array_of,
    check_function,
    function_name,
    is_weak,
    is_zero_dimensional,
    of_trees,
    path,
    to_user,
    unflatten,
)
from fnad.api.staging.python_loops import PythonLoops
from fnad.api.staging.stage import stage
from fnad.backends.base import ANOTHER
from fnad.errors import ArgumentTypeError, GuardFailed, RetraceWarning
from fnad.ir.builder import BUILDERS, Builder, current_builder
from fnad.ir.types import Dtype, Shape, aval_of
from fnad.signals import refuse_handlers
from fnad.store import now
from fnad.trace.capture import READ
from fnad.trace.draws import DrawRecorder, with_traced_draws
from fnad.trace.environment import Environment
from fnad.trace.labelled import Labels, is_labelled, labels_of
from fnad.trace.recording import Recorder
from fnad.trace.source import current_source
from fnad.trace.tracer import Tracer
from fnad.trace.writes import UNDOING, Writes
from fnad.tracebacks import boundary, leave_out_own_frames

if TYPE_CHECKING:
    from fnad.api.functions.lowered import TracedCall

P = ParamSpec("P")
R = TypeVar("R")
Mark: TypeAlias = tuple[Dtype, Shape, bool, bool, Labels | None]
"""Of a leaf in a signature: dtype, shape, whether it is a Python number, or an array without dimensions, its labels."""

SIGNATURES = 1024
MANY = 3
"""The number of traces after changes, if more than the runs without, of which a function is traced too often."""

OTHERS = "pass what changes as an argument"
OWN = "the function itself writes to this: return the new value instead, and keep it outside"
"""The remedies for values that change between calls, and for values that the function itself changes."""

STATIC = str, bytes, type, FunctionType, ufunc, Enum
CONSTANT = "name it in static_argnums or static_argnames, which make it a constant of the program"
"""The types of arguments that are no arrays, and choose what a function does; and what to do about them."""


@overload
def jit(
    f: Callable[P, R],
    static_argnums: Places = ...,
    static_argnames: Places = ...,
    donate_argnums: int | Sequence[int] = ...,
    device: str | None = ...,
) -> Compiled[P, R]: ...
@overload
def jit(**options: Any) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...
@with_options
def jit(
    f: Function,
    static_argnums: Places = (),
    static_argnames: Places = (),
    donate_argnums: int | Sequence[int] = (),
    device: str | None = None,
) -> Compiled[..., Any]:
    """The function `f`, compiled for the structure, dtypes and shapes of its arguments.

    The first call traces and interprets, and compiles at once if interpretation would take longer; the second compiles.
    `jit(f).lower(*args).compile()` compiles in any case. Where Python decides by traced scalars (`if x > 0`, `while`,
    `range(n)`), each path is a program of its own: `paths()` lists them. Inside another transform, `jit(f)` is `f`.
    What `f` draws from a generator of NumPy is drawn anew at each call.
    From the second `jit(f)` with these options on, the result is the same object, as long as it is among the last 16.

    Parameters:
        f (function): It may be a method, inside or outside `classmethod` and `staticmethod`. What it reads from its
            closure, globals, defaults and attributes may change between calls, and is then traced again; an array among
            these is compared with a copy at each call, so pass a large one as an argument or make it read-only.
        static_argnums, static_argnames (int or str, or sequence of them): Arguments that are not traced: anything
            hashable. `f` is compiled for each of their values.
        donate_argnums (int or sequence of ints): Arguments whose memory results may take: the caller must not use their
            arrays again.
        device ({"cpu", "cuda"}, optional): The device, as in `fnad.device`; by default that of `fnad.config`.
    Returns:
        Compiled: Takes the arguments of `f`, pytrees of arrays and numbers, and returns its result.
    Raises:
        ArgumentTypeError, DtypeError: If a leaf is not an array or number, or fnad does not compute in its dtype.
        StaticArgumentError: If a static argument is not hashable, or `f` has no such argument.
        SettingError, DeviceError: If there is no such device, or it cannot be used.
    Examples:
        >>> import numpy as np, fnad
        >>> @fnad.jit
        ... def norm(x):
        ...     return np.sqrt(np.sum(x**2))
        >>> norm(np.array([3.0, 4.0]))
        np.float64(5.0)
        >>> norm(np.array([6.0, 8.0]))
        np.float64(10.0)
        >>> norm.paths()
        1 path
          1. (f64[2])  ran 2 times, compiled
    """
    if isinstance(f, (classmethod, staticmethod)):
        method = cast("classmethod[Any, Any, Any]", f)
        return cast("Any", type(method)(jit(method.__func__, static_argnums, static_argnames, donate_argnums, device)))
    check_function(f, "jit")
    statics, donated = statics_of(f, static_argnums, static_argnames), donated_of(f, donate_argnums)
    given = {"static_argnums": static_argnums, "static_argnames": static_argnames, "donate_argnums": donate_argnums}
    options = {name: value for name, value in given.items() if value != ()}
    if device is None:
        return Compiled(f, options, statics, donated)
    return Placed(f, options | {"device": device}, statics, donated)


def make_program(f: Function, static_argnums: Places = (), static_argnames: Places = ()) -> Callable[..., TracedCall]:
    """The function that returns the program of `f` for given arguments, which JAX calls `make_jaxpr`.

    Parameters:
        f (function): Takes and returns pytrees of arrays and numbers.
        static_argnums, static_argnames (int or str, or sequence of them): As in `jit`.
    Returns:
        function: Takes the arguments of `f`, or `ShapeDtypeStruct`s in their place, and returns a program that can be
            printed, compared and called: that of `jit(f).lower(*args)`.
    Raises:
        ArgumentTypeError, DtypeError, StaticArgumentError: As in `jit`.
    Examples:
        >>> import numpy as np, fnad
        >>> fnad.make_program(lambda x: np.sin(x) * 2.0)(1.0).program.equations[0].primitive.name
        'sin'
    """
    check_function(f, "make_program")
    return jit(f, static_argnums, static_argnames).lower


class Compiled(Transformed, Generic[P, R]):
    """The result of `jit`: the function with its traces."""

    is_shared = True
    __slots__ = ("_again", "_donated", "_f", "_has_receivers", "_paths", "_receivers", "_retraced", "_statics")

    def __init__(self, f: Function, options: dict[str, Any], statics: Statics, donated: frozenset[int]) -> None:
        super().__init__(jit, f, options, f)
        self._f = f
        self._statics = statics
        self._donated = donated
        self._paths: dict[Hashable, Paths] = {}
        self._again: Ready | None = None
        self._retraced = self._reused = 0
        self._has_warned = False
        self._has_receivers = False
        self._receivers = Receivers(f, self._forget, weakref.ref(self))
        note_keeper(self)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            if BUILDERS.entries:  # as `is_tracing` returns, without another call
                refuse_handlers()
                return call_inside(self._f, args, kwargs)
            again, failures = self._again, ()
            form = again and again.form
            given = args if form is None and not kwargs else form and form.given(args, kwargs, self._receivers)
            if again is not None and given is not None:
                try:
                    result = ANOTHER if again.program.code is None else again.direct(*given)
                    if result is not ANOTHER:  # counted here, without another call
                        again.path.runs, again.program.used = again.path.next_run(), now()
                    else:
                        result = again(given)
                except GuardFailed as failure:
                    result, failures = ANOTHER, ((again.path, failure.args),)
                if result is not ANOTHER:
                    self._reused += 1
                    return result
            return self._f(*args, **kwargs) if config.current().disable_jit else self._call(args, kwargs, failures)
        except BaseException as error:  # as `boundary` does, without another call
            leave_out_own_frames(error)
            raise

    def paths(self) -> KnownPaths:
        """The paths known so far, with their guards and how often each ran."""
        return listed(path for paths in list(self._paths.values()) for path in reversed(paths.known))

    @boundary
    def lower(self, /, *args: Any, **kwargs: Any) -> TracedCall:
        """The program for these arguments, or for `ShapeDtypeStruct`s in their place.

        `as_text(stage)` of it prints it at a stage of its way to machine code; `compile()` makes it native now.

        >>> import numpy as np
        >>> norm = jit(lambda x: np.sqrt(np.sum(x**2)))
        >>> norm.lower(np.ones(2)).compile()(np.array([3.0, 4.0]))
        np.float64(5.0)
        """
        from fnad.api.functions.lowered import TracedCall, leaves_or_types  # noqa: PLC0415  # it loads the compiler

        form = self._form(args, kwargs)
        trees = form.dynamic(args, kwargs)
        names = [*[argument_name(self._f, i) for i in form.positions], *form.names]
        try:
            leaves, structure = leaves_or_types(trees, names)
        except ArgumentTypeError:
            if not (args and self._receivers.admit(args[0])):
                raise
            self._has_receivers = True
            return self.lower(*args, **kwargs)
        traced = self._trace(leaves, structure, form, args, kwargs, PythonLoops(), Recorder())
        return TracedCall(self._f, traced, structure, leaves, names, len(form.positions))

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any], failures: tuple[FailedPath, ...] = ()) -> Any:
        """The result, by a path of the signature; `failures` are paths of it that were tried."""
        refuse_handlers()
        if kwargs or self._statics or self._has_receivers:
            form = self._form(args, kwargs)
            trees = form.dynamic(args, kwargs)
        else:
            form, trees = None, args
        values, structure = of_trees("tree_flatten", trees)  # a dataclass may be the object of a method
        try:
            arrays, marks = self._arrays(values, trees, form)
        except ArgumentTypeError:
            if args and self._receivers.admit(args[0]):
                self._has_receivers = True
            elif not are_records(values):
                raise
            return self._call(args, kwargs)
        signature = structure, form, tuple(marks), config.current().code
        paths = self._paths.get(signature) or self._begin(signature)
        taken, results, failures = paths.run(arrays, failures)
        if taken is None:
            leaves = [Leaf(array, aval_of(array), *mark[2:]) for array, mark in zip(arrays, marks, strict=True)]
            before = paths.known[0] if paths.known and not failures else None
            paths.loops.mark(failures)
            form_or_all = form or CallForm(tuple(range(len(args))), ())
            trace = partial(self._trace, leaves, structure, form_or_all, args, kwargs, paths.loops)
            taken = self._trace_draws(trace, paths, before) or trace(Recorder())
            if before is not None and not taken.draws:
                self._check_traces(before.environment, taken.environment)
            try:
                results = paths.run_new(taken, arrays, failures)
            except GuardFailed:
                paths.loops.refuse("as one loop it does not decide as its steps do", paths.loops.used)
                return self._call(args, kwargs)
        else:
            self._reused += 1
        if taken.written:
            check_written(self._f, values, taken.written, taken.outside, current_source())
        self._again = ready(taken, form, trees, values, structure, again=paths.comes_again(taken))
        return taken.output.rebuild([to_user(result) for result in results])

    def forget(self) -> None:
        """Drop all traces: the next call traces the function again."""
        self._paths.clear()
        self._again = None

    def _form(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallForm:
        positions, names = self._statics.positions, self._statics.names
        fixed = [(i, static_key(args[i], argument_name(self._f, i))) for i in range(len(args)) if i in positions]
        if self._has_receivers and args and (receiver := self._receivers.key(args[0])) is not None:
            positions |= {0}
            fixed.append((0, receiver))
        named = [(name, static_key(kwargs[name], name)) for name in kwargs if name in names]
        return CallForm(
            tuple(i for i in range(len(args)) if i not in positions),
            tuple(name for name in kwargs if name not in names),
            (*fixed, *named),
            tuple(kwargs),
        )

    def _arrays(
        self, values: list[Any], trees: tuple[Any, ...], form: CallForm | None
    ) -> tuple[list[Array], list[Mark]]:
        """The leaves as arrays, and what of them belongs to the signature."""
        arrays: list[Array] = []
        marks: list[Mark] = []
        has_tables = False
        try:
            for value in values:
                array = array_of(value)
                arrays.append(array)
                weak = array is not value and is_weak(value)
                has_tables = has_tables or (array is not value and is_labelled(value))
                marks.append((array.dtype, array.shape, weak, not array.shape and is_zero_dimensional(value), None))
        except LeafError as error:
            value = values[len(arrays)]
            if isinstance(value, STATIC) and any(value is tree for tree in trees):
                error = LeafError(error.kind, error.what, remedy=CONSTANT)
            places = form.positions if form else range(len(trees))
            names = [*[argument_name(self._f, i) for i in places], *(form.names if form else ())]
            raise error.at(path(trees, len(arrays), names.__getitem__), current_source()) from None
        if has_tables:
            for i, labels in labels_of(values).items():
                marks[i] = (*marks[i][:4], labels)
        return arrays, marks

    def _trace(
        self,
        leaves: list[Leaf],
        structure: Structure,
        form: CallForm,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        loops: PythonLoops,
        recorder: Recorder,
    ) -> TracedPath:
        fixed = dict(enumerate(args)) | kwargs
        for value in (self._f, *[fixed[place] for place, _ in form.static]):
            recorder.follow(value)

        traces: list[weakref.ref[Builder]] = []
        writes: list[Writes] = []
        written: list[int] = []
        read: list[Any] = []

        def call(f: Function, tracers: Sequence[Tracer]) -> Any:
            loops.begin()
            places = (*form.positions, *form.names)
            given = fixed | dict(zip(places, unflatten(structure, tracers), strict=True))
            with READ.holding({id(f): f}) as loaded:
                result = f(*[given[i] for i in range(len(args))], **{name: given[name] for name in kwargs})
            traces.append(weakref.ref(current_builder()))
            writes[:] = UNDOING.values[-1:]
            written[:] = [i for i, tracer in enumerate(tracers) if tracer.is_written]
            read[:] = outside(loaded) if written else ()
            return result

        with recorder.active():
            staged = loops.traced(
                lambda: with_traced_arrays(self._f, lambda f: stage(f, leaves, partial(call, f))),
                recorder.environment,
            )
        environment, trace = recorder.environment, traces[-1]()
        environment.end()
        draws = recorder.repeated_draws() if isinstance(recorder, DrawRecorder) else ()
        if trace is not None:  # nothing else has it but values of it that are stored somewhere
            for each in writes:
                each.check_stored(trace, recorder.kept)
        if any(isinstance(key, Receiver) for _, key in form.static):
            environment = environment.released()
        captured = cast("Sequence[Array]", staged.operands[len(leaves) + len(draws) :])  # no trace is around this one
        given = self._given_away(structure, form) if self._donated else ()
        return TracedPath(
            *(staged.program, staged.guards, captured, staged.output, environment),
            *(written, read, given, loops.version, draws),
        )

    def _trace_draws(
        self, trace: Callable[[Recorder], TracedPath], paths: Paths, before: TracedPath | None
    ) -> TracedPath | None:
        """The path of a function that did nothing but draw since the one before, with the draws as inputs.

        None if they cannot be inputs; then what the run did is undone, and this signature is traced at each call.
        """
        if before is None or not paths.may_draw or not (before.draws or before.environment.has_only_drawn):
            return None
        path = with_traced_draws(trace, lambda path, _: not (path.guards or path.written))
        paths.may_draw = path is not None
        return path

    def _given_away(self, structure: Structure, form: CallForm) -> tuple[int, ...]:
        """The positions of the leaves of donated arguments."""
        found: list[int] = []
        start = 0
        for position, tree in zip(form.positions, structure.children()):  # noqa: B905 those given by name follow
            found += range(start, start + tree.num_leaves) if position in self._donated else ()
            start += tree.num_leaves
        return tuple(found)

    def _begin(self, signature: Hashable) -> Paths:
        """The paths of a new signature, of which there is none; the oldest signatures are given up."""
        paths = self._paths.setdefault(signature, Paths())
        while len(self._paths) > SIGNATURES:
            self._paths.pop(next(iter(self._paths)), None)
        return paths

    def _forget(self, receiver: Receiver) -> None:
        """Give up the paths of a method for an object that is no more."""
        for signature in list(self._paths):
            form = cast("tuple[Any, CallForm | None, Any, Any]", signature)[1]
            if form is not None and (0, receiver) in form.static:
                self._paths.pop(signature, None)
                self._again = None

    def _check_traces(self, before: Environment, now: Environment) -> None:
        """Count traces that are made since something outside has changed; warn where they cost more than is saved."""
        self._retraced += 1
        if self._has_warned or self._retraced < MANY or self._retraced <= self._reused:
            return
        self._has_warned = True
        is_own = not (now.unknown or now.holds())
        change, source = (now if is_own else before).difference()
        again = (
            f"{function_name(self._f)} was traced again {self._retraced} times, and ran {self._reused} times without"
        )
        place = f"\n  at {source}" if source is not None else ""
        warnings.warn(f"{again}: {change}{place}\n  {OWN if is_own else OTHERS}", RetraceWarning, stacklevel=4)


class Placed(Compiled[P, R]):
    """The result of `jit` for a device: the function, compiled for this device."""

    __slots__ = ("device",)

    def __init__(self, f: Function, options: dict[str, Any], statics: Statics, donated: frozenset[int]) -> None:
        super().__init__(f, options, statics, donated)
        self.device = options["device"]
        with config.on(self.device):
            pass  # which raises for a device there is not

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with config.on(self.device):
            return super().__call__(*args, **kwargs)

    def lower(self, /, *args: Any, **kwargs: Any) -> TracedCall:
        """The program for these arguments, for the device: see `Compiled.lower`."""
        with config.on(self.device):
            return super().lower(*args, **kwargs)

"""The arguments of a call: which of them are differentiated, and what the function receives for the others.

Those that are not differentiated reach the user's function as they are, so that any Python may be done with them. What
the function writes into them is for itself alone: it receives containers of its own, traced values with memory of their
own, and copies of arrays.

Note [A second run]
    The user's function runs once, or twice, for one of two reasons.

    If it puts a traced value into an array it made, or reads one at a traced index, which ordinary arrays do not let
    it, it runs again with traced values for all arrays: those of the arguments, those it reads from outside
    (`fnad.trace.hooks`) and those that NumPy makes for it. What is met in a function within it, the body of a loop
    say, has the outermost one run again (`Again`), so that no function runs twice for each of those around it.

    To copy a large array takes longer than to trace, so of one the function receives a read-only view. If it ends in a
    `ValueError` then, as a write into a view does, it runs again with copies.

    What a run has changed outside is undone before the function runs again (`fnad.trace.writes`).

    Where the run with traced arrays fails too, the error is that of the run that got further: of the second once it
    computes at the line where the first one ended, unless it ends there likewise. The other error is its cause.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from fnad import config
from fnad.api.staging.aliasing import Received, strictly_refused
from fnad.api.staging.branch_warnings import check_decisions
from fnad.api.staging.leaves import (
    Array,
    Function,
    Leaf,
    Structure,
    argument_name,
    as_float,
    flatten,
    function_name,
    leaves_of,
    map_leaves,
    path,
    to_user,
    type_name,
    unflatten,
)
from fnad.api.staging.stage import Staged, stage
from fnad.errors import (
    ArgnumsError,
    ArgumentTypeError,
    FnadError,
    MutationError,
    NonDifferentiableArgumentError,
    ReadOnlyError,
    TracerEscapeError,
)
from fnad.ir.builder import current_builder
from fnad.ir.types import NAMES, Aval, in_native_order, is_inexact
from fnad.numpy.namespace import MAKING, making_traced
from fnad.numpy.operands import as_symbol, as_weak
from fnad.placement import is_on_device
from fnad.trace.capture import mark_differentiated, same_bits
from fnad.trace.draws import Varying
from fnad.trace.hooks import replaced
from fnad.trace.labelled import Labelled, labelled
from fnad.trace.loading import read
from fnad.trace.source import source_of_error
from fnad.trace.tracer import Tracer
from fnad.trace.user_methods import exchanged
from fnad.trace.writes import Writes, undoing

Argnums: TypeAlias = int | Sequence[int]
T = TypeVar("T")
Attempt: TypeAlias = Callable[[Function, Callable[[Any], Any]], T]

LARGE = 2**18
"""Bytes of an array from which a function receives a view rather than a copy."""


def as_positions(argnums: Argnums, transform: str = "") -> tuple[int, ...]:
    """`argnums` of a transform as a tuple; raise `ArgnumsError` where it is no int or sequence of ints."""
    several = cast("Sequence[Any]", argnums if isinstance(argnums, (tuple, list)) else (argnums,))
    if several and not any(isinstance(n, bool) for n in several):
        with suppress(TypeError):
            return tuple(map(operator.index, several))
    what, remedy = repr(argnums), "give an int or a tuple of ints"
    if transform and any(isinstance(n, (np.ndarray, dict, float)) for n in several):
        what = f"of type {type_name(argnums)}"
        remedy = f"{transform} returns a function, which takes the arguments of f: fnad.{transform}(f)(x)"
    raise ArgnumsError.here(f"argnums is {what}", remedy=remedy)


def check_flag(transform: str, flag: object, name: str = "has_aux") -> None:
    """Raise `ArgumentTypeError` where a flag is no bool."""
    if not isinstance(flag, (bool, int, np.bool_)):
        raise ArgumentTypeError.here(
            f"{name} of {transform} is of type {type_name(flag)}, not a bool",
            remedy=f"{transform} returns a function, which takes the arguments of f: fnad.{transform}(f)(x)",
        )


class Differentiated(NamedTuple):
    """The arguments that a function is differentiated in, as leaves; those of integers and bools are constant."""

    values: list[Any]
    leaves: list[Leaf]
    structure: Structure

    @property
    def places(self) -> list[int]:
        """The positions of the leaves with a derivative."""
        return [i for i, leaf in enumerate(self.leaves) if is_inexact(leaf.aval.dtype)]

    @property
    def avals(self) -> list[Aval]:
        return [leaf.aval for leaf in self.leaves]

    def given(self, tracers: Sequence[Any], receive: Callable[[Any], Any]) -> Sequence[Any]:
        """The arguments, with tracers for the leaves with a derivative, and for others what the function receives."""
        return self._filled(tracers, list(map(receive, self.constants)))

    def gradients(self, values: Iterable[Any]) -> tuple[Any, ...]:
        """The arguments' gradients from those of the leaves that have one; that of a constant is 0 of its dtype."""
        avals = [self.leaves[i].aval for i in self._constants]
        return tuple(self._filled(values, [to_user(np.zeros(aval.shape, aval.dtype)) for aval in avals]))

    @property
    def constants(self) -> list[Any]:
        """The leaves without a derivative."""
        return [self.values[i] for i in self._constants]

    @property
    def _constants(self) -> list[int]:
        return [i for i, leaf in enumerate(self.leaves) if not is_inexact(leaf.aval.dtype)]

    def _filled(self, differentiable: Iterable[Any], constant: Iterable[Any]) -> Sequence[Any]:
        leaves = dict(zip(self.places, differentiable, strict=True)) | dict(zip(self._constants, constant, strict=True))
        return cast("Sequence[Any]", unflatten(self.structure, [leaves[i] for i in range(len(leaves))]))


def stage_call(
    f: Function, argnums: tuple[int, ...], has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Staged, Differentiated]:
    """Trace a call on the leaves of the arguments at `argnums`; return it with these arguments."""
    chosen = resolved(f, argnums, len(args))
    wrt = differentiated([args[i] for i in chosen], lambda i: argument_name(f, chosen[i]))
    return stage_in(f, chosen, wrt, args, kwargs, has_aux=has_aux), wrt


def stage_in(
    f: Function,
    chosen: Sequence[int],
    wrt: Differentiated,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    has_aux: bool,
) -> Staged:
    """Trace a call on the leaves with a derivative of the arguments that are `chosen`."""
    places = wrt.places
    leaves = [wrt.leaves[i] for i in places]

    def attempt(called: Function, receive: Callable[[Any], Any]) -> Staged:
        received = Received(f)

        def call(tracers: Sequence[Tracer]) -> Any:
            mark_differentiated()
            receiving = received.noting(receive)
            given = dict(zip(chosen, wrt.given(tracers, receiving), strict=True))
            others = {i: map_leaves(receiving, arg) for i, arg in enumerate(args) if i not in given}
            every = given | others
            by_name = map_leaves(receiving, kwargs or {})
            with received.reading():
                result = called(*[every[i] for i in range(len(args))], **by_name)
            received.check(lambda: [wrt.values[i] for i in places], tracers)
            return result

        staged = stage(called, leaves, call, has_aux=has_aux)
        return staged._replace(writes=True) if received.is_written else staged

    def name(leaf: int) -> str:
        arguments = cast("Sequence[Any]", wrt.structure.unflatten(wrt.values))
        return path(tuple(arguments), places[leaf], lambda i: argument_name(f, chosen[i]))

    staged = protected(f, attempt)
    check_decisions(f, staged, name)
    return staged


def differentiated(trees: Sequence[Any], names: Callable[[int], str]) -> Differentiated:
    """Take arguments to differentiate in apart; raise for one that has leaves, and none with a derivative."""
    leaves, structure = leaves_of(trees, names)
    start = 0
    for argument in structure.children():
        end = start + argument.num_leaves
        if start < end and not any(is_inexact(leaf.aval.dtype) for leaf in leaves[start:end]):
            name = path(tuple(trees), start, names)
            raise NonDifferentiableArgumentError.here(
                f"{name} is {leaves[start].aval}, which has no derivative",
                remedy=f"pass a float: {as_float(leaves[start], name)}; or differentiate in other arguments",
            )
        start = end
    return Differentiated(flatten(tuple(trees))[0], leaves, structure)


def resolved(f: Function, argnums: tuple[int, ...], count: int, option: str = "argnums") -> tuple[int, ...]:
    """Positions counted from the front; raise `ArgnumsError` for one that is not there, or is named twice."""
    for n in argnums:
        if not -count <= n < count:
            raise ArgnumsError.here(
                f"{option} names argument {n} of {function_name(f)}, which was called with {count} positional "
                f"argument{'s' * (count != 1)}",
                remedy=f"pass it by position, or correct {option}; the first is 0",
            )
    positions = tuple(n % count for n in argnums)
    for n in positions:
        if positions.count(n) > 1:
            raise ArgnumsError.here(
                f"{option} names argument {n} of {function_name(f)} twice",
                remedy="name it once; a negative number counts from the end",
            )
    return positions


# ---- what a function receives that is not differentiated -------------------------------------------------------------


def call_inside(f: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function as part of the trace under way; neither it nor its caller sees what the other writes later."""

    def attempt(called: Function, receive: Callable[[Any], Any]) -> Any:
        received = Received(f)
        receiving = received.noting(receive)
        given, by_name = map_leaves(receiving, args), map_leaves(receiving, kwargs)
        with received.reading():
            result = called(*given, **by_name)
        received.check()
        return map_leaves(_copy, result)

    return protected(f, attempt)


def protected(f: Function, attempt: Attempt[T]) -> T:
    """`attempt(f, receive)`, where `receive` makes of a leaf what the function receives for it."""
    return with_traced_arrays(f, lambda f: _with_arrays(f, attempt), lambda f: attempt(f, _traced))


class Again(BaseException):
    """Ends the first run of the outermost function: no `except` of user code is meant to catch it."""

    def __init__(self, error: FnadError) -> None:
        super().__init__()
        self.error = error


class _UserRun(threading.local):
    """The state of a function's run: if it is the first run and may be repeated, and if the second run is used up."""

    is_first = False
    is_last = False


_RUN = _UserRun()


@contextmanager
def _first_run() -> Generator[None]:
    _RUN.is_first, _RUN.is_last, MAKING.refused = True, False, None
    try:
        yield
    finally:
        _RUN.is_first = False


def with_traced_arrays(
    f: Function, attempt: Callable[[Function], T], second: Callable[[Function], T] | None = None
) -> T:
    """`attempt(f)`, if need be of `f` with traced values for arrays that it makes or reads from outside.

    The attempt on that is `second`, where it is given. See Note [A second run].
    """
    with exchanged():
        if MAKING.is_traced:
            return _within_second(replaced(f), second or attempt)
        if _RUN.is_first:
            return _within_first(replaced(f), attempt)
        with undoing() as changes:
            return _outermost(replaced(f), attempt, second or attempt, changes)


def _outermost(f: Function, attempt: Callable[[Function], T], second: Callable[[Function], T], changes: Writes) -> T:
    try:
        with _first_run():
            found = attempt(f)
        if MAKING.refused is None:
            return found
        first = MAKING.refused
    except Again as again:
        first = again.error
    except (MutationError, TracerEscapeError) as error:
        first = error
    except Exception:
        if MAKING.refused is None:
            raise
        first = MAKING.refused
    if _RUN.is_last:
        raise first
    changes.undo()
    return _second_run(f, second, first)


def _within_first(f: Function, attempt: Callable[[Function], T]) -> T:
    """`attempt(f)`, within the first run of another function."""
    try:
        return attempt(f)
    except (MutationError, TracerEscapeError) as error:
        raise Again(error) from None


def _within_second(f: Function, attempt: Callable[[Function], T]) -> T:
    """`attempt(f)` with traced arrays, within the second run of another function, which may handle the error."""
    try:
        return attempt(f)
    except (MutationError, TracerEscapeError) as error:
        MAKING.note(error.source)
        raise


def _second_run(f: Function, attempt: Callable[[Function], T], first: FnadError) -> T:
    MAKING.refused = None
    with making_traced(past=first.source) as making:
        try:
            found = attempt(f)
        except Exception as error:
            kinds = MutationError, ReadOnlyError, TracerEscapeError
            is_the_same = isinstance(error, kinds) and error.source == first.source
            if is_the_same or not making.is_past:
                raise first from error
            raise
        if MAKING.refused is not None:
            raise MAKING.refused
        if all(same_bits(array, before) for array, _, before in making.given.values()):
            return found
    raise first


def _with_arrays(f: Function, attempt: Attempt[T]) -> T:
    """`attempt(f, receive)` with copies of arrays, of large ones with views that cannot be written to."""
    is_strict = config.current().strict_mutation
    views: list[Array] = []

    def lend(value: Any) -> Any:
        is_array = isinstance(value, np.ndarray) and not isinstance(value, Tracer)
        if not is_array or not (is_strict or value.nbytes >= LARGE):
            return _copy(value)
        views.append(_view(value))
        return views[-1]

    with undoing() as changes:
        try:
            return attempt(f, lend)
        except ValueError as error:
            if isinstance(error, FnadError) or not views:
                raise
            place = source_of_error(error)
        changes.undo()
    _RUN.is_last = True
    if not is_strict:
        return attempt(f, _copy)
    with suppress(MutationError):
        attempt(f, _copy)
    raise strictly_refused(f, place)  # for with a copy it did not end there


def _view(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


def _copy(value: Any) -> Any:
    if isinstance(value, Tracer):  # which says that it is an array, too
        return _handle(value)
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) is Varying:
        return value.received()
    return Tracer(as_symbol(value)) if is_on_device(value) else read(value)  # whose methods know no traced values


def _traced(value: Any) -> Any:
    if type(value) is np.ndarray and in_native_order(value.dtype) in NAMES:
        return Tracer(as_symbol(value.copy()))  # a copy, which cannot be what the function reads from outside
    return _copy(value)


def _handle(tracer: Tracer) -> Tracer:
    """The same value in the trace under way, with memory of its own."""
    symbol = current_builder().lift(tracer.symbol)
    if tracer.is_weak:
        symbol = as_weak(symbol)
    found = Tracer(symbol, is_scalar=tracer.is_scalar)
    return labelled(found, tracer.labels) if isinstance(tracer, Labelled) else found

"""`try` statements of user code whose clauses handle errors that a running program raises.

A matrix that is singular, or an index out of range, is an error of the running program, which no clause of user code
could handle. In the body of a `try` whose clauses handle such errors the trace therefore decides whether an operation
fails, as an `if` does: by the values at hand, with a guard. If the operation fails, the error is raised there. Python's
numbers raise `ZeroDivisionError` in the body of a `try` that handles this error.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from types import FrameType, FunctionType, TracebackType
from typing import Any

import numpy as np

from fnad.errors import DomainError, FactorizationError, FnadError, OutOfRangeError
from fnad.ir.axes import Elementwise
from fnad.ir.builder import is_tracing
from fnad.ir.primitive import Library, Primitive
from fnad.ir.program import Params
from fnad.ir.symbol import Symbol
from fnad.numpy.operands import as_symbol
from fnad.ops.attempt import fails
from fnad.ops.comparison import bitwise_and, eq, lt
from fnad.trace import guards
from fnad.trace.capture import TRIED
from fnad.trace.escape import handled, truth_asked
from fnad.trace.handle import Handle
from fnad.trace.libraries import is_library
from fnad.trace.looping import LOOPING
from fnad.trace.source import current_source


class Clauses:
    """The classes of errors that the clauses of a `try` handle, or an expression for them in a frame of user code."""

    def __init__(self, kinds: Any, frame: FrameType | None = None) -> None:
        self._kinds: Any = kinds
        self._frame = frame

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The classes; those of all errors if the expression raises one."""
        if self._frame is not None:
            frame, self._frame = self._frame, None
            try:
                self._kinds = _flat(eval(self._kinds, frame.f_globals, frame.f_locals))
            except Exception:  # noqa: BLE001 - which user code raises where it comes to the clause
                self._kinds = (BaseException,)
        return self._kinds

    def handle(self, error: type[Exception]) -> bool:
        """True if a clause handles errors of a class."""
        return any(isinstance(kind, type) and issubclass(error, kind) for kind in self.kinds)

    def note(self, primitive: Primitive, operands: Sequence[Symbol], params: Params) -> None:
        """Decide if a primitive raises an error that a clause handles, and raise it then."""
        kind = _error_of(primitive)
        if kind is None or not self.handle(kind):
            return
        if guards.truth(fails(*operands, of=primitive.name, rows=0, **params)):
            raise _raised(primitive, operands, params) or kind.here(f"{primitive} fails")
        if LOOPING.loops is not None and (source := current_source()) is not None:
            LOOPING.loops.tries(source)


def is_handled(*errors: type[Exception]) -> bool:
    """True if a clause around the line at hand handles one of these errors."""
    return any(clauses.handle(error) for clauses in TRIED.values for error in errors)


def _flat(kinds: Any) -> tuple[Any, ...]:
    return sum(map(_flat, kinds), ()) if isinstance(kinds, tuple) else (kinds,)


OWN = frozenset(("sqrtm", "logm", "signm"))
"""Primitives whose errors SciPy does not raise: its results are complex where they have to be."""


def _error_of(primitive: Primitive) -> type[FnadError] | None:
    """The class of the error that a primitive raises for some operands; None if it does not raise any."""
    if not primitive.raises or primitive.effect or isinstance(primitive.axes, Elementwise) or primitive.name in OWN:
        return None
    if not isinstance(primitive.lower, Library):
        return OutOfRangeError
    return DomainError if primitive.name == "require" else FactorizationError


def _raised(primitive: Primitive, operands: Sequence[Symbol], params: Params) -> FnadError | None:
    """The error of a primitive for the operands at hand."""
    values = list(map(guards.value_at_hand, operands))
    try:
        if not any(value is None for value in values):
            primitive.evaluate(*values, **params)
    except FnadError as error:
        return error.at(current_source())
    return None


DIVIDING: dict[Any, Callable[..., Any]] = {
    np.true_divide: operator.truediv,
    np.floor_divide: operator.floordiv,
    np.remainder: operator.mod,
    np.divmod: divmod,
    operator.pow: operator.pow,
}
"""The operators that raise an error for a Python number that is 0."""


def check_division(ufunc: Callable[..., Any], x: Any, y: Any) -> None:
    """Raise the error of Python for a division of Python numbers by 0, if a clause handles the error."""
    divide = DIVIDING.get(ufunc)
    if divide is None or not is_handled(ZeroDivisionError):
        return
    operands = [as_symbol(number.symbol if isinstance(number, Handle) else number) for number in (x, y)]
    divisor, *exponent = operands if ufunc is operator.pow else operands[1:]
    fails = _compared(eq, divisor)
    for number in exponent:
        fails = bitwise_and(fails, _compared(lt, number))
    answer = guards.truth(fails)
    if answer is None:
        raise truth_asked(fails.aval)
    if answer:
        kind = int if all(operand.dtype.kind == "i" for operand in operands) else float
        divide(*map(kind, (0, -1) if exponent else (1, 0)))


def _compared(compare: Primitive, number: Symbol) -> Symbol:
    """A number compared with 0."""
    return compare(number, number.dtype.type(0))


def trying(text: str) -> Any:
    """The context manager for the body of a `try` that handles these errors of a running program."""
    return TRIED.holding(Clauses(text, sys._getframe(1))) if is_tracing() else nullcontext()  # pyright: ignore[reportPrivateUsage]


def within(manager: Any) -> Any:
    """The context manager of a `with` statement."""
    kind = type(manager)
    leaves = getattr(kind, "__exit__", None)
    is_users = isinstance(leaves, FunctionType) and not is_library(leaves.__code__.co_filename)
    return UserContext(manager) if is_users and hasattr(kind, "__enter__") and is_tracing() else manager


class Suppressing(suppress):
    """`contextlib.suppress`, whose block handles errors as an `except` clause does."""

    __doc__ = suppress.__doc__  # for user code

    def __init__(self, *exceptions: type[BaseException]) -> None:
        super().__init__(*exceptions)
        self.kinds, self._body = exceptions, TRIED.holding(Clauses(exceptions))

    def __enter__(self) -> None:
        self._body.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        self._body.__exit__()
        is_handled = bool(super().__exit__(kind, error, traceback))
        if is_handled and is_tracing():
            handled(error, self.kinds)
        return is_handled


class UserContext:
    """A context manager of user code whose `__exit__` handles errors as an `except` clause does."""

    __slots__ = ("_manager",)

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    def __enter__(self) -> Any:
        return type(self._manager).__enter__(self._manager)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Any:
        is_handled = type(self._manager).__exit__(self._manager, kind, error, traceback)
        if is_handled and is_tracing():
            handled(error, ())
        return is_handled

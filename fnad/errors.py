"""Every error fnad raises: when it is raised, and what a message looks like.

A message says what went wrong, where (the user's file and line), and the way out:

    dot contracts axis 1 of x: f64[3,4] with axis 0 of w: f64[5,2] (4 != 5)
      at model.py:17 in layer:  h = x @ w
      transpose w, or check the shapes passed to `layer`

A class derives from the exception NumPy or Python would raise in its place too, so that existing `except` clauses keep
working.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self, TypeAlias

from numpy import exceptions
from numpy.linalg import LinAlgError

from fnad.upward import UPWARD


class FnadError(Exception):
    """Base of all errors of fnad: `what` happened, at which `source`, and the `remedy`.

    No `except` clause of a traced function ends an error that `is_final`: NumPy would have computed there.
    """

    is_final = False

    def __init__(self, what: str, *, source: object = None, remedy: str | None = None) -> None:
        lines = [what]
        if source is not None:
            lines.append(f"  at {source}")
            if (caller := UPWARD.caller_of(source)) is not None:
                lines.append(f"  called at {caller}")
        if remedy is not None:
            lines.append(f"  {remedy}")
        text = "\n".join(lines)
        super().__init__(text)
        self.args = (text,)  # the constructor of NumPy's AxisError does not set them
        self.what, self.source, self.remedy = what, source, remedy

    @classmethod
    def here(cls, what: str, remedy: str | None = None) -> Self:
        """The error at the line of user code."""
        return cls(what, source=UPWARD.current_source(), remedy=remedy)

    def at(self, source: object, remedy: str | None = None) -> FnadError:
        """The error with a source and a remedy, each unless it has one already."""
        source, remedy = self.source or source, self.remedy or remedy
        is_complete = (source, remedy) == (self.source, self.remedy)
        return self if is_complete else type(self)(self.what, source=source, remedy=remedy)


# ---- arguments of the transforms ---------------------------------------------------------------------------------


class NonScalarOutputError(FnadError, TypeError):
    """`grad` was given a function whose output has not exactly one real element."""


class NonDifferentiableArgumentError(FnadError, TypeError):
    """`grad` or `jvp` was asked for the derivative with respect to an integer or bool argument."""


class HolomorphicError(NonDifferentiableArgumentError):
    """A Jacobian in complex arguments of what is not said to be holomorphic, or cannot be."""


class ArgnumsError(FnadError, ValueError):
    """`argnums` is not an int or a tuple of ints, or names a positional argument that is not there."""


class CotangentError(FnadError, ValueError):
    """A cotangent given to a pullback differs from the output in structure, shape or dtype."""


class TangentError(FnadError, ValueError):
    """A tangent given to `jvp` differs from its primal in structure, shape or dtype."""


class ArgumentTypeError(FnadError, TypeError):
    """An argument or a result is not a pytree of arrays and numbers."""


class UnknownKeywordError(FnadError, TypeError):
    """A keyword that a function does not take."""


class StaticArgumentError(FnadError, TypeError):
    """A static argument of `jit` is not hashable; or a static or donated one is not there."""


class DtypeError(FnadError, TypeError):
    """A dtype that fnad does not have, or that an operation does not take."""


class IntegerRangeError(FnadError, OverflowError):
    """A Python integer that does not fit the dtype it takes beside an array."""


class LinearityError(FnadError, TypeError):
    """`linear_transpose` was given a function that is not linear."""


class SignatureError(FnadError, ValueError):
    """A signature of `vectorize` that is none, or that its function or the number of its arguments does not have."""


class BatchAxisError(FnadError, ValueError):
    """Axes of `vmap` that do not fit the arguments or the results, or rows in different numbers."""


class SparsityError(FnadError, ValueError):
    """A Jacobian asked for as a sparse matrix has too many nonzeros for one."""


class SparsityWarning(UserWarning):
    """A Jacobian asked for as a sparse matrix is nearly dense, or takes as many directions as a dense one."""


class AuxiliaryError(FnadError, TypeError):
    """A function differentiated with `has_aux=True` did not return a pair (output, auxiliary data)."""


class OtherPathError(FnadError, ValueError):
    """The program of one path of a function was called with arguments for which Python decides otherwise."""


class RetraceWarning(UserWarning):
    """A compiled function is traced again and again, because something it reads from outside keeps changing."""


class PathsWarning(UserWarning):
    """A compiled function branches on traced values in more ways than are kept."""


class CacheWarning(UserWarning):
    """The directory for native code cannot be used; what is compiled is kept in memory."""


class ControlFlowWarning(UserWarning):
    """A derivative is that of the path taken, and says little: through control flow the result depends on the input."""


class SettingError(FnadError, ValueError):
    """A setting of `fnad.config` that does not exist, or a value it cannot have."""


class UpdateError(FnadError, ValueError):
    """Gradients, state and parameters given to an optimizer do not belong together."""


class HyperparameterError(FnadError, ValueError):
    """A learning rate, decay or number of steps that is no number or out of its range."""


class DeviceError(FnadError, RuntimeError):
    """A device that programs cannot run on: a package or a driver is missing, or it failed."""


class DeviceMemoryError(DeviceError, MemoryError):
    """A program that needs more memory than the device has left."""


class PlacementError(FnadError, ValueError):
    """An array in other memory than that of the device a program runs on."""


# ---- inside the traced function ----------------------------------------------------------------------------------


class ShapeError(FnadError, ValueError):
    """Shapes that do not fit: NumPy's message and the user's line."""


class AxisError(ShapeError, exceptions.AxisError):
    """An axis outside the array's dimensions, or named twice."""


class MatrixError(ShapeError, LinAlgError):
    """An array that linear algebra does not take: no stack of matrices, not square, empty where that has no value."""


class FactorizationError(FnadError, LinAlgError):
    """A matrix that linear algebra fails for when the program runs: singular, not positive definite, not finite."""


class OutOfRangeError(FnadError, IndexError):
    """An index outside its axis, known while tracing or found when the program ran."""


class DomainError(FnadError, ValueError):
    """A value that an operation is not defined for, known from constants or found when the program ran."""


class UnsupportedFunctionError(FnadError, NotImplementedError):
    """A NumPy function, or an option of it, that has no rule here."""

    is_final = True


class MissingAttributeError(UnsupportedFunctionError, AttributeError):
    """An attribute that traced values do not have, or a name that another library has and fnad does not."""

    is_final = False


class TracerEscapeError(FnadError, TypeError):
    """A traced value was asked for its number (`float(x)`, `np.asarray(x)`, `if x > 0`) while it has none."""

    is_final = True


class UsedAfterTraceError(FnadError, RuntimeError):
    """A traced value was kept past the end of its trace and used there."""

    is_final = True


class ExitError(FnadError, RuntimeError):
    """fnad was called while Python ends, when containers are not known any more."""


class ReentryError(FnadError, RuntimeError):
    """The handler of a signal called fnad in the middle of another call."""


class MutationError(FnadError, TypeError):
    """A write into a traced value, or of a traced value into an ordinary array, that cannot be followed."""


class ReadOnlyError(FnadError, ValueError):
    """A write into memory that NumPy does not write to."""


# ---- control flow ------------------------------------------------------------------------------------------------


class StructureError(FnadError, TypeError):
    """Branches, or a carry and what a loop makes of it, that differ in structure, shape or dtype."""


class TapError(FnadError, ValueError):
    """Values that are tapped under one name, of which there may be one, or under no name."""


class RandomDrawError(FnadError, RuntimeError):
    """A body of a loop that draws from a generator that all share: it is run once, while tracing."""

    is_final = True


class LoopLimitError(FnadError, RuntimeError):
    """A loop that went on after `max_steps` steps."""


class ConvergenceError(FnadError, RuntimeError):
    """A solver that did not come to a solution within its steps, or met a nan."""


class FailureKind(StrEnum):
    """The errors of a loop beyond its limit, other than `LoopLimitError`, as text in programs."""

    FACTORIZATION = "FactorizationError"
    DOMAIN = "DomainError"
    CONVERGENCE = "ConvergenceError"

    def of(self, what: str, remedy: str) -> Failure:
        """The failure that `what` happened."""
        return self.value, what, remedy

    @property
    def error(self) -> type[FnadError]:
        match self:
            case FailureKind.FACTORIZATION:
                return FactorizationError
            case FailureKind.DOMAIN:
                return DomainError
            case FailureKind.CONVERGENCE:
                return ConvergenceError


Failure: TypeAlias = tuple[str, str, str]
"""The error of a loop beyond its limit: the value of a `FailureKind`, what happened, and the remedy."""


def endless(limit: int, failure: Failure | None) -> FnadError:
    """The error of a loop beyond its limit: its `failure`, or that it has too few steps."""
    if failure is not None:
        kind, what, remedy = failure
        return FailureKind(kind).error(what, remedy=remedy)
    what = f"a loop went on after max_steps={limit} steps"
    return LoopLimitError(
        what, remedy="give more steps, or see why its condition still holds: a nan is different from everything"
    )


class NonFiniteError(FnadError, FloatingPointError):
    """Under `fnad.debug_nans`, a nan or inf arose in a program and reached its results.

    `origin` says where (`fnad.transforms.nonfinite.Origin`); None if only native code found it.
    """

    origin: Any = None


class CustomRuleError(FnadError, TypeError):
    """A derivative stated by the user that is not there, does not fit its function, or leaves something out."""


class CallbackError(FnadError, TypeError):
    """A callback that returns something else than announced, that is not there, or whose result is differentiated."""


class DistributedError(FnadError, RuntimeError):
    """Collectives without MPI, of a rank that is not there, or that differ among the ranks."""


class MissingPackageError(FnadError, ImportError):
    """An optional package that is not installed, such as Matplotlib for a plot."""


# ---- programs ----------------------------------------------------------------------------------------------------


class ParseError(FnadError, SyntaxError):
    """A program text that is not in the grammar; the message starts with line and column."""


class VerificationError(FnadError, AssertionError):
    """A program that breaks a rule of the IR: a defect of the pass that made it."""


class LoweringError(FnadError, NotImplementedError):
    """A primitive that a backend cannot run."""


class ExportError(FnadError, ValueError):
    """A function that cannot leave the process, or a call of an exported one that does not fit."""


class GuardFailed(Exception):  # noqa: N818  (no error: nobody sees it)
    """A run came to a guard of its program and found another answer: `args` are the guard's number and that answer."""

"""Settings of how programs run: of the process, and of a block of code.

    executor   "auto"         in the NumPy interpreter until a program is hot, then compiled in the background;
                              functions under `fnad.jit` are hot at their second call, the first one if they are
                              heavy, or if they branch on traced values, each path when it is taken again
               "interpreter"  always in the NumPy interpreter
               "compiled"     always compiled, at the first call, which waits for it
    device     "cpu"          where programs run: in memory that NumPy can access
               "cuda"         on the GPU that CuPy has chosen, compiled at the first call; results are CuPy arrays
    matmul_precision
               "float32"      matrix products of f32 and c64 are as precise as the dtype
               "tensorfloat32"
                              on a GPU they may round what they multiply to TF32, 10 bits of a fraction instead of 23,
                              which takes less time; as set when a program is called, also one that is compiled
                              already; on the CPU it has no effect
    scatter_add
               "deterministic"
                              additions to an array at computed places give the same sums at each call
               "atomic"       on a GPU they may be made in any order, so sums may be rounded differently at each call,
                              which saves sorting; on the CPU it has no effect
    strict_mutation
               False          a function's writes to its arguments are visible only to itself
               True           they are errors
    disable_jit
               False          functions under `fnad.jit` are compiled, loops and branches traced
               True           outside of a trace they run as plain Python, to step through or to print from
    traceback_filtering
               True           errors that leave fnad have no frames of fnad in their tracebacks; the default is False
                              if the environment variable FNAD_TRACEBACK_FILTERING is "off"
               False          they have all frames
    debug_nans
               False          nan and inf are numbers like others
               True           a result that holds one is an error that says where it arose
    threads    all            the most threads that a loop of a compiled program runs on, and a routine of the BLAS or
                              LAPACK that a program calls, from 1 to the number of cores that this process may use;
                              results do not depend on it, but for what BLAS and LAPACK divide themselves and may round
                              differently then: products in the interpreter, factorizations of large matrices
    cache_entries
               512            derived programs that are kept although no compiled function uses them
    cache_bytes
               2**30          memory for programs, native code and the arrays it keeps for its next call: beyond
                              it, what was used least recently is dropped, and made again when needed; a quarter of
                              it at most for large results that nobody holds any more

A block of code has its own settings while it runs, in its own thread or asyncio task; elsewhere the defaults of the
process apply. A program that the compiler cannot lower runs in the interpreter whatever the setting.

    fnad.config.set_default(executor="compiled")
    with fnad.config.override(executor="interpreter"):
        ...
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, ContextDecorator
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, get_args
from weakref import ref

from fnad.errors import SettingError
from fnad.tracebacks import FILTERED, boundary

ExecutorName: TypeAlias = Literal["auto", "interpreter", "compiled"]
DeviceName: TypeAlias = Literal["cpu", "cuda"]
PrecisionName: TypeAlias = Literal["float32", "tensorfloat32"]
ScatterAddName: TypeAlias = Literal["deterministic", "atomic"]
CHOICES = {
    "executor": ExecutorName, "device": DeviceName, "matmul_precision": PrecisionName, "scatter_add": ScatterAddName,
}  # fmt: skip


def _cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


CORES = _cores()


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force.

    >>> Settings(executor="compiled")
    Settings(executor='compiled', device='cpu', matmul_precision='float32', scatter_add='deterministic',
             strict_mutation=False, disable_jit=False, traceback_filtering=True, debug_nans=False, threads=...,
             cache_entries=512, cache_bytes=1073741824, disk_cache=True, disk_cache_bytes=536870912)
    """

    executor: ExecutorName = "auto"
    device: DeviceName = "cpu"
    matmul_precision: PrecisionName = "float32"
    scatter_add: ScatterAddName = "deterministic"
    strict_mutation: bool = False
    disable_jit: bool = False
    traceback_filtering: bool = field(default_factory=lambda: os.environ.get("FNAD_TRACEBACK_FILTERING") != "off")
    debug_nans: bool = False
    threads: int = field(default_factory=lambda: CORES)
    cache_entries: int = 512
    cache_bytes: int = 2**30
    disk_cache: bool | str = True
    disk_cache_bytes: int = 2**29

    @property
    def code(self) -> tuple[str, ...]:
        """The settings on which compiled code depends."""
        return (self.device,) if self.device == "cpu" else (self.device, self.scatter_add)

    def check(self) -> None:
        """Raise `SettingError` for a value that does not exist."""
        for name, kind in CHOICES.items():
            value, choices = getattr(self, name), get_args(kind)
            if value not in choices:
                raise SettingError(f"{name} is {value!r}", remedy=f"set it to {' or '.join(map(repr, choices))}")
        for name in ("strict_mutation", "disable_jit", "traceback_filtering", "debug_nans"):
            if type(getattr(self, name)) is not bool:
                raise SettingError(f"{name} is {getattr(self, name)!r}", remedy="set it to True or False")
        if type(self.threads) is not int or not 1 <= self.threads <= CORES:
            raise SettingError(
                f"threads is {self.threads!r}",
                remedy=f"set it to a number from 1 to {CORES}, the cores that this process may use",
            )
        if type(self.disk_cache) not in (bool, str) or self.disk_cache == "":
            raise SettingError(f"disk_cache is {self.disk_cache!r}", remedy="set it to True, False or a directory")
        for name in ("cache_entries", "cache_bytes", "disk_cache_bytes"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise SettingError(f"{name} is {value!r}", remedy="set it to an integer that is not negative")


_default = Settings()
_overridden: ContextVar[Settings | None] = ContextVar("fnad.config", default=None)


def current() -> Settings:
    """The settings in force here.

    >>> current().executor
    'auto'
    """
    return _overridden.get() or _default


FILTERED["now"] = lambda: current().traceback_filtering


def conditions() -> list[tuple[Any, ...]]:
    """The conditions under which the settings in force stay: a name, and a variable of the context."""
    return [("CONTEXT", _overridden, _overridden.get()), ("NAME", globals(), "_default", _default)]


@boundary
def set_default(**changes: Any) -> None:
    """Change the settings of the process; blocks under `override` keep theirs.

    Raises `SettingError` for a setting or a value that does not exist.

    >>> set_default(executor="auto")
    """
    global _default  # noqa: PLW0603  # the one place where the process keeps its settings
    _default = _changed(_default, changes)


@boundary
def override(**changes: Any) -> _InForce:
    """Change settings for a block of code.

    Raises `SettingError` for a setting or a value that does not exist.

    >>> with override(executor="interpreter"):
    ...     current().executor
    'interpreter'
    """
    return _InForce(_changed(current(), changes), lambda: override(**changes))


class _InForce(ContextDecorator, AbstractContextManager[Settings]):
    """A block of code with settings of its own, or a function, which has them made `again` at each call."""

    def __init__(self, settings: Settings, again: Callable[[], _InForce]) -> None:
        self._settings, self._again = settings, again

    def __enter__(self) -> Settings:
        before, now = _overridden.get(), self._settings
        self._before = before
        # Where Ctrl-C ends the begin or the end, the block is left when this object goes.
        self._left = ref(self, lambda _: _overridden.set(before) if _overridden.get() is now else None)
        _overridden.set(now)
        return now

    def __exit__(self, *error: object) -> None:
        _overridden.set(self._before)
        self._left = None

    def _recreate_cm(self) -> _InForce:
        return self._again()


def on(device: str) -> _InForce:
    """Run programs on a device, for a block of code; the settings of two such blocks are one object."""
    global _latest  # noqa: PLW0603  # a call of a compiled function asks for the same each time
    settings = current()
    before, name, after = _latest
    if before is not settings or name != device:
        if device not in get_args(DeviceName):
            return override(device=device)
        after = _on(settings, device)
        _latest = settings, device, after
    return _InForce(after, lambda: on(device))


@lru_cache(64)
def _on(settings: Settings, device: DeviceName) -> Settings:
    return settings if settings.device == device else replace(settings, device=device)


_latest = _default, _default.device, _default


@boundary
def disable_jit(disable: bool = True) -> AbstractContextManager[Settings]:
    """Run functions under `fnad.jit`, and loops and branches outside a trace, as plain Python, in a block of code.

    Parameters:
        disable (bool): False switches compilation on in an inner block.
    Returns:
        context manager: Restores the settings at the end of the block.
    Raises:
        SettingError: If `disable` is not a bool.
    Examples:
        >>> import fnad
        >>> @fnad.jit
        ... def double(x):
        ...     print("x is", x)
        ...     return 2 * x
        >>> with fnad.disable_jit():
        ...     double(3.0)
        x is 3.0
        6.0
    """
    return override(disable_jit=disable)


@boundary
def debug_nans(debug: bool = True) -> AbstractContextManager[Settings]:
    """Raise an error at the operation that makes a nan or inf of a result, in a block of code.

    The error's `origin` has the line, the operation with its operands, the element, and the step of a loop. Only a
    program with such a result runs again, in the interpreter, to find its origin; a program with callbacks is
    interpreted from the start. A nan in an argument is not an error. Under `disable_jit` nothing is checked, and a
    pullback is followed into the function only if `fnad.vjp` was called in the block as well.

    Parameters:
        debug (bool): False switches the check off in an inner block.
    Returns:
        context manager: Restores the settings at the end of the block.
    Raises:
        NonFiniteError: In the block, if a nan or inf arises and reaches a result.
    Examples:
        >>> import numpy as np, fnad
        >>> with fnad.debug_nans():
        ...     fnad.grad(lambda x: np.sum(np.sqrt(x)))(np.array([4.0, 0.0]))
        Traceback (most recent call last):
        fnad.errors.NonFiniteError: inf arises in reverse mode: div(0.5, 0.0) = inf, element [1] of f64[2]
        ...
    """
    return override(debug_nans=debug)


def _changed(settings: Settings, changes: dict[str, Any]) -> Settings:
    """The settings with these changes: for the same ones one object, since calls compare settings by identity."""
    try:
        return _kept(settings, **changes)
    except TypeError:  # a value that cannot be hashed, which no setting has
        return _kept.__wrapped__(settings, **changes)


@lru_cache(64, typed=True)
def _kept(settings: Settings, /, **changes: Any) -> Settings:
    names = ", ".join(Settings.__slots__)
    for name in changes:
        if name not in Settings.__slots__:
            raise SettingError(f"there is no setting {name!r}", remedy=f"the settings are: {names}")
    changed = replace(settings, **changes)
    changed.check()
    return changed


if not TYPE_CHECKING:

    @boundary
    def __getattr__(name: str) -> NoReturn:
        if name.startswith("__"):  # what an import asks of every module
            raise AttributeError(name)
        raise import_module("fnad.trace.unknown").missing("fnad.config", name)

"""The values from outside that a function uses while it is traced.

Arrays from outside become hidden inputs behind those of the function. Each is known by its identity, and a snapshot of
its content is taken when it is first used, since the function may write into it later; an array that has changed by
its next use is a new input there, as NumPy would see it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fnad.blocks import ListedBlocks
from fnad.errors import ArgumentTypeError, UsedAfterTraceError
from fnad.ir.builder import Builder, Captured, current_builder, is_tracing
from fnad.ir.program import Atom, Source, Var
from fnad.ir.symbol import Symbol
from fnad.ir.types import Aval, aval_of, dtype_name, native_dtype
from fnad.placement import is_on_device
from fnad.trace.shadow import Raised, Shadow

Array: TypeAlias = "np.ndarray[Any, Any]"


READ: ListedBlocks[dict[int, Any]] = ListedBlocks()
"""The arrays and containers that user code has loaded in each block, by identity: from outside, or from containers."""


TRIED: ListedBlocks[Any] = ListedBlocks()
"""The `try` statements of user code that may handle errors of a running program (`fnad.trace.attempts`)."""


class Write(NamedTuple):
    """A write into a traced array, of which the program makes a new version."""

    aval: Aval
    source: Source | None


class Guard(NamedTuple):
    """An answer that Python received about a scalar, and where: the program holds while the scalar equals the answer.

    It is a bool or an i64, known when the program had as many equations as `position` says. `is_own` where Python asked
    a value of this trace, not of one inside it. An i64 that stands for a value has the text of it, `shown`, and what to
    write where there are many, `remedy`; what the text of another guard says already has none, "". `of_loop` marks the
    test of a `while_loop` at its start. `lines` are those of user code that were under way, each with its file.
    """

    atom: Atom
    expected: int
    source: Source | None
    position: int
    is_own: bool
    shown: str | None = None
    remedy: str | None = None
    of_loop: bool = False
    lines: tuple[tuple[str, int], ...] = ()


class Trace(Builder):
    """The program under construction while the user's function runs.

    `values` are those for the arguments at hand, in the outermost trace, else in the trace around this one; `guards`
    are what Python was told of them, `contents` the values that it was told whole. `writes` are those into traced
    arrays, in order; `changed` are the arrays of which inner functions wrote into copies; `drawn` became inputs while
    the function ran. `is_differentiated` marks the trace of a function for its derivative. `raised` makes the values of
    an inner trace.
    """

    is_differentiated = False

    def __init__(self, raised: Callable[[Builder], Raised] = Raised) -> None:
        super().__init__()
        self.outer: Builder | None = current_builder() if is_tracing() else None
        self.values = Shadow() if self.outer is None else raised(self.outer)
        self.guards: dict[Atom, Guard] = {}
        self.contents: set[Atom] = set()
        self.writes: list[Write] = []
        self.changed: list[Array] = []
        self.drawn: list[Array] = []
        self._arrays: dict[int, tuple[Array, Array]] = {}  # each with its snapshot: a symbol would refer to the trace
        self._small: dict[Hashable, Array] = {}

    def argument(self, aval: Aval, value: Captured) -> Symbol:
        """Add an input that stands for this value."""
        symbol = self.input(aval)
        assert isinstance(symbol.atom, Var)
        self.values.enter(symbol.atom, value)
        return symbol

    def draw(self, array: Array) -> Symbol:
        """Add an input with the value of an array that was drawn while the function runs."""
        self.drawn.append(array)
        return self.argument(aval_of(array), array)

    def capture(self, value: Captured) -> Symbol:
        """The input that stands for a value from outside; of an array, for its present content."""
        if isinstance(value, Symbol):
            self._check_encloses(value)
            return super().capture(value)
        if self.outer is not None and self.outer.alive:
            return self.lift(self.outer.capture(value))
        return self._capture_array(value)

    @property
    def tried(self) -> Sequence[Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return () if self.is_untried else TRIED.values

    @property
    def outside(self) -> tuple[Array, ...]:
        """The arrays from outside that were used."""
        return tuple(array for array, _ in self._arrays.values())

    def bake(self, array: Array) -> Array:
        """Note that the program depends on the content of an array, in the outermost trace."""
        return self.outer.bake(array) if self.outer is not None and self.outer.alive else super().bake(array)

    def _capture_array(self, array: Array) -> Symbol:
        if is_on_device(array):  # itself, not what it holds: that is read when the program runs
            return super().capture(array)
        known = self._arrays.get(id(array))
        if known is None or not same_bits(*known):
            check_array(array)
            known = self._arrays[id(array)] = array, self._shared(snapshot_of(array))
        return super().capture(known[1])

    def _shared(self, snapshot: Array) -> Array:
        """The snapshot for an input; small ones of one content share it, as those of `np.eye(2)` in a loop do."""
        if snapshot.nbytes > SMALL:
            return snapshot
        content = snapshot.dtype, snapshot.shape, snapshot.strides, snapshot.tobytes()
        return self._small.setdefault(content, snapshot)

    def _check_encloses(self, symbol: Symbol) -> None:
        builder = self.outer
        while builder is not None and builder is not symbol.builder:
            builder = builder.outer if isinstance(builder, Trace) else None
        if builder is None:
            raise UsedAfterTraceError(
                f"a traced value of aval {symbol.aval} was used in a trace that does not lie within its own",
                source=self.source,
                remedy="pass it as an argument; a traced value does not cross threads or suspended generators",
            )


def mark_differentiated() -> None:
    """Mark the trace under way as that of a function for its derivative."""
    builder = current_builder()
    if isinstance(builder, Trace):
        builder.is_differentiated = True


def note_write(aval: Aval) -> None:
    """Note a write into memory of this aval in the trace under way."""
    builder = current_builder()
    if isinstance(builder, Trace):
        builder.writes.append(Write(aval, builder.source))


APART = (
    "keep data and mask apart, m.data and m.mask, reduce with where=~mask, and fill with np.where(mask, value, data)"
)
"""The way out of masked arrays."""


def way_out_of(kind: type[Any]) -> str:
    """The code to write instead of an array of a class that is not ndarray itself."""
    return APART if kind.__module__.startswith("numpy.ma") else "convert it first with np.asarray"


def check_array(array: Array) -> None:
    """Raise where an array is of a class or a dtype that fnad does not have."""
    if type(array) not in (np.ndarray, np.memmap):
        raise ArgumentTypeError(
            f"{type(array).__module__}.{type(array).__name__} follows other rules than an ordinary array",
            remedy=way_out_of(type(array)),
        )
    dtype_name(native_dtype(array.dtype))


def snapshot_of(array: Array) -> Array:
    """An array of native dtype that keeps the present content: the array itself where nobody can write to it."""
    dtype = native_dtype(array.dtype)
    if array.dtype == dtype and not may_change(array):
        return array
    return np.array(array, dtype=dtype, order="K", subok=False)


def may_change(array: Any) -> bool:
    """True if the memory of an array can be written to, through it or through what it is a view of."""
    while isinstance(array, np.ndarray):
        if array.flags.writeable:
            return True
        array = array.base
    return not (array is None or isinstance(array, bytes))


SMALL = 4096
"""Bytes up to which it takes less time to copy two arrays than to compare them."""


def same_bits(x: Array, y: Array) -> bool:
    """True if two arrays are equal to the bit: 0.0 and -0.0 differ, a NaN equals itself, objects are the same."""
    if x is y:
        return True
    if x.shape != y.shape:
        return False
    if x.dtype != y.dtype:
        x = x.astype(y.dtype)
    if x.nbytes <= SMALL:
        return x.tobytes() == y.tobytes()
    if x.dtype.kind == "c":
        return same_bits(x.real, y.real) and same_bits(x.imag, y.imag)
    if x.dtype.kind not in "biuf" or x.dtype.itemsize > 8:
        return x.tobytes() == y.tobytes()
    bits = f"u{x.dtype.itemsize}"
    return bool((x.view(bits) == y.view(bits)).all())

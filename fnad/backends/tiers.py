"""Which backend runs a program: the interpreter while it is cold, native code once it is hot.

Compiling has a known price, interpreting a rent at each call. As in the ski-rental problem, a program is interpreted
until the time spent on that reaches the expected time to compile it, and is compiled then: that takes at most twice the
time of the best choice in hindsight. The expected time is the backend's (`Backend.expected_cost`).

A hot program is compiled in the background (`fnad.backends.background`), and interpreted until that is done. A call
waits for the compiler only where that is expected to take at most as long as two interpreted calls. Timing therefore
decides which call is the first one of native code, whose results may differ in the last digits.
`executor="compiled"` compiles at the first call and waits.

A single run of a program with loops can take arbitrarily long. So such a program is interpreted only for the expected
compile time, then started again as native code. One with effects is compiled at once, and so is one whose loops are
known to be that long.

Simplifying has a price as well, small but higher than that of one run of a small program. So a program is interpreted
as it is at first, and simplified at its second call.

What `jit` made is hot at its second call (`fnad.api.running.paths`), because it is called often. The first one is
interpreted, since many functions are called once; unless that is expected to take longer than to compile it, by the
bytes that it writes. Where a function comes with ever new sizes that need code of their own (`fnad.backends.sizes`),
they are interpreted until that has cost enough. What an earlier process compiled is on disk, and loaded in some
milliseconds, at the first call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fnad import config, forks
from fnad.backends.background import BACKGROUND
from fnad.backends.base import BACKENDS, Array, Backend, CallBefore, Compiler, Executor, Native
from fnad.backends.reference import interpreter
from fnad.backends.sizes import SizeRecord, sizes_of
from fnad.control.rolled import rolled
from fnad.errors import LoweringError
from fnad.forks import cached_property
from fnad.ir import primitive as kinds
from fnad.ir.program import Program
from fnad.ir.walk import acts_outside, all_equations
from fnad.placement import is_on_host
from fnad.store import STORE, now, uncollected
from fnad.trace import log
from fnad.transforms.dce import dce
from fnad.transforms.interpret import NEVER, Run, TimeUpError
from fnad.transforms.pipeline import simplify

if TYPE_CHECKING:
    from fnad.disk import DiskCache

EQUATION_BYTES = 400
"""The approximate size of an equation in each form of a program: with its key, simplified, prepared, lowered."""

INTERPRETED_BYTES = 1e9
"""The bytes that NumPy writes in a second, as measured on one core; a factor of two hardly matters."""

CALL_BYTES = 10_000
"""The bytes that it writes in the time that the interpreter takes for an equation besides."""


WITH_LOOPS = (
    kinds.Fold, kinds.ArgFold, kinds.Cumulative, kinds.Scatter, kinds.Accumulation, kinds.Contraction, kinds.ScanLoop,
    kinds.WhileLoop,
)  # fmt: skip
"""Kinds of equations that have loops of their own; others mostly take part in those of their readers.

Those in the body of a loop count as others: their loops are short, as a rule, and one step after the other.
"""


def disk_cache() -> DiskCache | None:
    """The cache on disk, whose modules are loaded when the first program could be there."""
    return None if config.current().disk_cache is False else import_module("fnad.disk").current()


class TieredProgram:
    """A program and the executors made of it so far. Its methods may be called from several threads at once.

    Native code may write results to the memory of the inputs at the positions `donated`.
    """

    def __init__(self, program: Program, donated: Sequence[int] = ()) -> None:
        self.program = program
        self.used = now()
        self._device: config.DeviceName = config.current().device
        self._donated = donated
        self.code: Native | None = None
        self._is_refused = self._has_failed = False
        self._calls = 0
        self._spent = 0.0
        self._compiling = forks.lock()

    def executor(self, *, eager: bool = False, often: bool = False) -> Executor:
        """The executor for the next run; if `eager`, the program is hot.

        What an earlier process compiled is taken at once, if it is expected to run `often`, or long.
        """
        self.used = now()
        setting = config.current().executor
        if setting == "interpreter":
            return self._interpret
        native = self.code
        if native is None and not self._is_refused:
            is_kept = (eager or often or self._loops) and self._is_kept
            if setting == "compiled" or is_kept or self._must_compile or (eager and self.is_heavy):
                native = self._compiled()
            elif self._is_hot or (eager and self._sizes.is_eager):
                native = self._compiled_soon()
        return native or (self._interpret_for_a_time if self._loops else self._interpret)

    def interpreted(self) -> Executor:
        """The executor that interprets the program as it is."""
        return interpreter(dce(self.program))

    def native(self) -> Native | None:
        """Native code, compiled now if it was not; None where the compiler cannot lower the program."""
        return self.code or self._compiled()

    def ready(self) -> Executor | None:
        """Native code for the next run, if it is there."""
        self.used = now()
        return self.code

    def direct(self, before: CallBefore) -> Callable[..., Any] | None:
        """A function for calls like the one before, while there is native code and `before` holds; or None."""
        native = self.code
        return None if native is None else native.direct(before)

    def compile_in_background(self) -> None:
        """Compile it; after an error, the next call compiles it again and raises the error."""
        try:
            with uncollected():  # what the collector would find belongs to other threads
                self._compiled()
        except Exception:  # noqa: BLE001 (whatever it is)
            self._has_failed = True

    @property
    def is_native(self) -> bool:
        """True if it has been compiled."""
        return self.code is not None

    @property
    def nbytes(self) -> int:
        """The approximate memory that it takes without workspaces, in bytes."""
        forms = 2 + 3 * ("simplified" in vars(self))
        return forms * EQUATION_BYTES * self._length + (0 if self.code is None else self.code.nbytes)

    @property
    def workspace_bytes(self) -> int:
        """The memory that native code keeps for its next call, in bytes."""
        return 0 if self.code is None else self.code.workspace_bytes

    def free_workspaces(self) -> int:
        """Free the memory that native code keeps for its next call; return the number of bytes freed."""
        return 0 if self.code is None else self.code.free_workspaces()

    def free(self) -> int:
        """Free all but the program, which the rest can be made from again; return the approximate bytes freed."""
        before = self.nbytes
        self.code = None
        for name in ("simplified", "_interpreter", "_first_interpreter"):
            vars(self).pop(name, None)
        return before - self.nbytes

    @cached_property
    def simplified(self) -> Program:
        """The program after simplification, in which form it is compiled."""
        with uncollected():
            found = simplify(rolled(self.program))
            if not any(isinstance(equation.primitive.lower, kinds.ScanLoop) for equation in all_equations(found)):
                return found
            on_arrays = import_module("fnad.control.maps").mapped(found)
            return found if on_arrays is found else simplify(on_arrays)

    @property
    def is_heavy(self) -> bool:
        """True if to interpret it once is expected to take longer than to compile it."""
        return self._bytes > INTERPRETED_BYTES * self.expected_cost()

    def expected_cost(self) -> float:
        """The expected time to compile it, in seconds."""
        return self._backend.expected_cost(self._length, self._own_loops, is_shared=self._sizes.is_shared)

    @property
    def _backend(self) -> Backend:
        """The backend of the device on which it runs, whatever the settings are now."""
        return BACKENDS[self._device]

    @cached_property
    def _sizes(self) -> SizeRecord:
        return sizes_of(self.program)

    @cached_property
    def _length(self) -> int:
        return sum(1 for _ in all_equations(self.program))

    @cached_property
    def _own_loops(self) -> int:
        return sum(isinstance(equation.primitive.lower, WITH_LOOPS) for equation in self.program.equations)

    @cached_property
    def _bytes(self) -> int:
        return _bytes_of(self.program)

    @cached_property
    def _loops(self) -> bool:
        return any(equation.regions for equation in self.program.equations)

    @cached_property
    def _effects(self) -> bool:
        """True if running it twice differs from running it once; guards may be checked again."""
        equations = (e for e in self.program.equations if not isinstance(e.primitive.lower, kinds.GuardCheck))
        return any(map(acts_outside, equations))

    @property
    def _must_compile(self) -> bool:
        """True if an interpreted run cannot be started again, or if compiling it in the background failed."""
        return self._has_failed or (self._loops and self._effects)

    def _compiled_soon(self) -> Native | None:
        """Native code, compiled now if that takes at most as long as two interpreted calls, else in the background."""
        if self.expected_cost() * self._calls < 2 * self._spent:
            return self._compiled()
        BACKGROUND.compile(self)
        return self.code

    def _compiled(self) -> Native | None:
        """Native code, made by one thread while others wait; None where the compiler cannot lower the program."""
        report: Callable[[], None] | None = None
        with self._compiling:
            if self.code is None and not self._is_refused:
                self.code, report = self._compile()
            native = self.code
        if report is not None:
            report()  # without the lock, for which a fork waits that holds the lock of `logging`
        STORE.trim()
        return native

    @property
    def _is_hot(self) -> bool:
        """True if interpreting it took as long as to compile it, or to load it if it is on disk."""
        if self._spent >= self.expected_cost():
            return True
        return self._spent >= self._backend.expected_load() and self._is_kept

    @cached_property
    def _is_kept(self) -> bool:
        """True if an earlier process compiled it; nothing is loaded to find out that none did."""
        cache = disk_cache()
        return cache is not None and not cache.is_empty and self._key is not None and cache.has(self._key)

    @cached_property
    def _key(self) -> str | None:
        """The key of the program on disk, if it can have one."""
        return None if disk_cache() is None else import_module("fnad.backends.keys").key_of(self.program, self._donated)

    def _compile(self) -> tuple[Native | None, Callable[[], None] | None]:
        """The native code on disk, or compiled now; and a function that logs the result."""
        compiler = self._backend.compiler
        start = perf_counter()
        native = None if self._key is None else compiler.kept(self._key)
        if native is not None:
            return native, partial(log.done, "found on disk", self.program, perf_counter() - start)
        return self._made(compiler)

    def _made(self, compiler: Compiler) -> tuple[Native | None, Callable[[], None]]:
        """The native code that a compiler makes, which is written to disk; and a function that logs the result."""
        start = perf_counter()
        try:
            with uncollected():
                native = compiler.compile_program(self.simplified, self._donated)
        except LoweringError as error:
            self._is_refused = True
            return None, partial(log.log, "INFO", f"interprets {self.program.name}: {error.what}")
        seconds = perf_counter() - start
        if self._key is not None:
            compiler.keep(self._key, native)
        self._sizes.compiled(alone=native.is_alone)
        return native, partial(log.done, "compiled", self.simplified, seconds)

    def _interpret_for_a_time(self, arguments: Sequence[Array]) -> list[Array]:
        if self._is_refused:
            return self._interpret(arguments)
        try:
            return self._interpret(arguments, perf_counter() + self.expected_cost())
        except TimeUpError:
            return (self._compiled() or self._interpret)(arguments)

    def _interpret(self, arguments: Sequence[Array], deadline: float = NEVER) -> list[Array]:
        self._calls += 1
        run = self._first_interpreter if self._is_as_it_is else self._interpreter
        start = perf_counter()
        results = run(arguments, deadline)
        self._spent += perf_counter() - start
        return results

    @property
    def _is_as_it_is(self) -> bool:
        """True if it is not to be simplified for this call: for the first one, or as the background simplifies it."""
        return self._calls == 1 or ("simplified" not in vars(self) and BACKGROUND.compiles(self))

    @cached_property
    def _first_interpreter(self) -> Run:
        return interpreter(dce(self.program))

    @cached_property
    def _interpreter(self) -> Run:
        vars(self).pop("_first_interpreter", None)
        return interpreter(self.simplified)


def _bytes_of(program: Program) -> int:
    """The cost of interpreting a program, in bytes written; loops of unknown length run once."""
    found = CALL_BYTES * len(program.equations)
    for equation in program.equations:
        found += sum(result.aval.nbytes for result in equation.results)
        found += (equation.params.get("length") or 1) * sum(map(_bytes_of, equation.regions))
    return found


def staged(program: Program, donated: Sequence[int] = ()) -> TieredProgram:
    """The program, staged for the device that the settings name."""
    if is_on_host():
        return TieredProgram(program, donated)
    return import_module("fnad.backends.on_device").DeviceProgram(program, donated)

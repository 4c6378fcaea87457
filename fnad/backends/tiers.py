"""Which backend runs a program: the interpreter while it is cold, native code once it has proven hot.

Compiling costs a known price, interpreting a rent at each call. As in ski rental, a program is interpreted until the
time spent so comes to what compiling it is expected to cost, and is compiled then: never worse than twice the best
choice in hindsight. The price is `SETUP` seconds where LLVM is not loaded yet, `PROGRAM` for any program and
`EQUATION` for each of its equations, as measured on one core; a factor of two in it hardly matters.

A loop can make one run of a program as long as one likes. So a program with loops is interpreted only for the time that
compiling it is expected to take; then it is started anew as native code. One that has effects is compiled at once.

Simplifying has a price as well, small but more than that of one run of a small program. So a program is interpreted
as it is at first, and simplified when it comes back.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from functools import cached_property
from time import perf_counter

from fnad import config
from fnad.backends.base import Array, Executor
from fnad.backends.reference import interpreter
from fnad.errors import LoweringError
from fnad.ir.primitive import Guard
from fnad.ir.program import Program
from fnad.ir.walk import all_equations
from fnad.transforms.dce import dce, has_effect
from fnad.transforms.interpret import TimeUpError, time_limit
from fnad.transforms.pipeline import simplify

SETUP = 0.2
PROGRAM = 0.04
EQUATION = 0.0015


class TieredProgram:
    """A program and the executors made of it so far. Its methods may be called from several threads at once.

    Native code may put results into the memory of the inputs at the positions `donated`.
    """

    def __init__(self, program: Program, donated: Sequence[int] = ()) -> None:
        self.program = program
        self._donated = donated
        self._native: Executor | None = None
        self._calls = 0
        self._spent = 0.0
        self._compiling = threading.Lock()

    def executor(self, *, eager: bool = False) -> Executor:
        """Return the executor for the next run; where `eager`, the setting "auto" means "compiled"."""
        setting = config.current().executor
        if setting == "interpreter":
            return self._interpret
        if self._native is None:
            self._compile_if_due(at_once=eager or setting == "compiled" or (self._loops and self._effects))
        return self._native or (self._interpret_for_a_time if self._loops else self._interpret)

    @property
    def is_native(self) -> bool:
        """Whether it has been compiled."""
        return self._native not in (None, self._interpret)

    @cached_property
    def simplified(self) -> Program:
        """The program after simplification, which is what gets compiled."""
        return simplify(self.program)

    def expected_cost(self) -> float:
        """Return the seconds that compiling is expected to take."""
        setup = 0.0 if "llvmlite" in sys.modules else SETUP
        return setup + PROGRAM + EQUATION * sum(1 for _ in all_equations(self.program))

    @cached_property
    def _loops(self) -> bool:
        return any(equation.regions for equation in self.program.equations)

    @cached_property
    def _effects(self) -> bool:
        """Whether to run it twice is more than to run it once: guards may be asked again."""
        equations = (e for e in self.program.equations if not isinstance(e.primitive.lower, Guard))
        return any(map(has_effect, equations))

    def _compile_if_due(self, *, at_once: bool) -> None:
        """Compile; unless `at_once`, only where the program is hot and no other thread is at it already."""
        if not at_once and self._spent < self.expected_cost():
            return
        if self._compiling.acquire(blocking=at_once):
            try:
                self._native = self._native or self._compile()
            finally:
                self._compiling.release()

    def _compile(self) -> Executor:
        from fnad.backends.numba.executor import compile_program  # noqa: PLC0415  # not before it is needed

        try:
            return compile_program(self.simplified, self._donated)
        except LoweringError:
            return self._interpret

    def _interpret_for_a_time(self, arguments: Sequence[Array]) -> list[Array]:
        try:
            with time_limit(self.expected_cost()):
                return self._interpret(arguments)
        except TimeUpError:
            self._compile_if_due(at_once=True)
        assert self._native is not None
        return self._native(arguments)

    def _interpret(self, arguments: Sequence[Array]) -> list[Array]:
        self._calls += 1
        run = self._first_interpreter if self._calls == 1 else self._interpreter
        start = perf_counter()
        results = run(arguments)
        self._spent += perf_counter() - start
        return results

    @property
    def _first_interpreter(self) -> Executor:
        return interpreter(dce(self.program))

    @cached_property
    def _interpreter(self) -> Executor:
        return interpreter(self.simplified)

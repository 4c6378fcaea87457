"""The stages of a program on its way to machine code, as text."""

from __future__ import annotations

from collections.abc import Callable

from fnad.backends.base import Native, current_backend
from fnad.backends.tiers import TieredProgram
from fnad.errors import LoweringError
from fnad.ir.printer import print_annotated
from fnad.lower.printer import loops_text


def _source(ready: TieredProgram) -> str:
    return current_backend().compiler.plan(ready.simplified).source


def _loops(ready: TieredProgram) -> str:
    return loops_text(current_backend().compiler.plan(ready.simplified).loops)


def _native(ready: TieredProgram) -> Native:
    native = ready.native() or current_backend().compiler.compile_program(ready.simplified)  # which says why not
    if not native.functions:
        raise LoweringError("no native code is made of it: there is nothing to compute, or NUMBA_DISABLE_JIT is set")
    return native


STAGES: dict[str, Callable[[TieredProgram], str]] = {
    "traced": lambda ready: print_annotated(ready.program),
    "transformed": lambda ready: print_annotated(ready.program),
    "simplified": lambda ready: print_annotated(ready.simplified),
    "loops": _loops,
    "source": _source,
    "llvm": lambda ready: _native(ready).llvm(),
    "asm": lambda ready: _native(ready).asm(),
}

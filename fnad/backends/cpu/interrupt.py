"""Ctrl-C in native loops: a loop that may run long checks regularly for pending signals.

Python's C-level signal handler only sets a flag; the handler proper, which raises KeyboardInterrupt or does what the
user's program has set, runs when the main thread checks. Native code runs without the GIL, takes it for the check, and
returns at once if that raises an exception, which its entry then passes on.
"""

from __future__ import annotations

import llvmlite.ir as ir

from fnad.backends.llvm.emitter import Builder, Instructions, Kinds, Value, Values
from fnad.backends.llvm.scalar import call

WORD = ir.IntType(32)


def emit_interrupted(builder: Builder, kinds: Kinds, values: Values) -> Value:
    state = call(builder, "PyGILState_Ensure", WORD)
    answer = call(builder, "PyErr_CheckSignals", WORD)
    call(builder, "PyGILState_Release", ir.VoidType(), state)
    return builder.icmp_signed("!=", answer, WORD(0))


INSTRUCTIONS: Instructions = {"interrupted": emit_interrupted}

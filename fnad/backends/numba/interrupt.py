"""Ctrl-C in native loops: every so often a loop that may run long asks Python whether to go on.

Python's own handler of a signal only notes it; what it means, KeyboardInterrupt or what the program has chosen, is
done when the main thread asks. Native code runs without the GIL, takes it for the question, and returns at once
where the answer is an exception; its entry then hands that on.
"""

from __future__ import annotations

import llvmlite.ir as ir

from fnad.backends.numba.emitter import Builder, Instructions, Kinds, Value, Values
from fnad.backends.numba.scalar import call

WORD = ir.IntType(32)


def emit_interrupted(builder: Builder, kinds: Kinds, values: Values) -> Value:
    state = call(builder, "PyGILState_Ensure", WORD)
    answer = call(builder, "PyErr_CheckSignals", WORD)
    call(builder, "PyGILState_Release", ir.VoidType(), state)
    return builder.icmp_signed("!=", answer, WORD(0))


INSTRUCTIONS: Instructions = {"interrupted": emit_interrupted}

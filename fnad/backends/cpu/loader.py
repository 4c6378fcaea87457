"""Loading object code into this process; it is freed with the function that owns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from fnad.backends.cpu import vector_math
from fnad.backends.cpu.objects import builtin


def load(name: str, code: bytes, entry: str) -> Callable[..., None]:
    """The function at the symbol `entry` of object code, which takes arrays (see `entry`), called `name`."""
    if b"_ZGV" in code:
        vector_math.available()
    engine = link(code)
    return builtin(name, engine.get_function_address(entry), engine)


def link(code: bytes) -> Any:
    """A separate engine for the code, so that nothing else keeps it alive."""
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine

"""From modules of LLVM's to code in this process, which is kept on disk for later ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from fnad import disk
from fnad.backends.cpu import codegen
from fnad.backends.cpu.fingerprint import fingerprint
from fnad.backends.cpu.objects import builtin
from fnad.backends.cpu.symbols import available

Engine = Any
"""What owns code in this process, and knows the addresses of its functions."""


def load(name: str, code: bytes, entry: str) -> Callable[..., None]:
    """The function at the symbol `entry` of object code, which takes arrays (see `entry`), called `name`."""
    engine = link(code)
    return builtin(name, engine.get_function_address(entry), engine)


def link(code: bytes) -> Engine:
    """A separate engine for the code, so that nothing else keeps it alive."""
    machine = codegen.target().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def object_code(text: str, make: Callable[[], Any]) -> bytes:
    """The code of the module that `make` makes, of which `text` says everything, ready to be linked."""
    cache = disk.current()
    if cache is None:
        return codegen.machine().emit_object(make())
    key = disk.digest(b"object code", fingerprint(), text.encode())
    found = cache.read(key)
    if found is not None:
        symbols, _, code = found.partition(b"\n")
        if all(map(available, symbols.decode().split())):
            return code
    module = make()
    code = codegen.machine().emit_object(module)
    cache.write(key, b"\n".join((" ".join(needed(module)).encode(), code)))
    return code


def needed(module: Any) -> list[str]:
    """The symbols that a module does not define itself."""
    declared = [value.name for value in (*module.functions, *module.global_variables) if value.is_declaration]
    return [name for name in declared if not name.startswith("llvm.")]

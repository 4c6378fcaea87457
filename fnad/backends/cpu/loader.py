"""From LLVM modules to code in this process, which is kept on disk for later ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from fnad import disk, forks
from fnad.backends.base import Array
from fnad.backends.cpu import codegen
from fnad.backends.cpu.fingerprint import fingerprint
from fnad.backends.cpu.objects import builtin, taking_arrays
from fnad.backends.cpu.symbols import available

Engine = Any
"""The owner of code in this process, which has the addresses of its functions."""


LOCK = forks.lock()
"""LLVM is called by one thread at a time."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class NativeCode:
    """The code of a kernel in this process, of `nbytes` bytes, which `key` finds on disk.

    `call(*arrays)` runs it, without the GIL, on as many arrays as the kernel has parameters, contiguous and of their
    dtypes; it checks none of this.
    """

    key: str
    call: Callable[..., None]
    nbytes: int


class Code(NamedTuple):
    """Native code of a kernel, the arrays of numbers that it takes after the kernel's own, and the family it is of.

    It `is_alone` if it was compiled for this kernel and runs no other.
    """

    native: NativeCode
    numbers: Sequence[Array] = ()
    family: object = None
    is_alone: bool = False


_LOADED: WeakValueDictionary[str, NativeCode] = WeakValueDictionary()

ENTRY = "entry"
"""The symbol of the function that Python calls."""


def key_of(text: str) -> str:
    """The key of the object code of which `text` says everything."""
    return disk.digest(b"object code", fingerprint(), text.encode())


def native_code(key: str, make: Callable[[], Any]) -> NativeCode:
    """The code of a key, once in a process for all who have it; `make` makes its module if it is not on disk."""
    with LOCK:
        return _LOADED.get(key) or _loaded(key, object_code(key, make))


def kept_code(key: str) -> NativeCode | None:
    """The code of a key, if this process has it or it is on disk."""
    with LOCK:
        found = _LOADED.get(key)
        code = kept(key) if found is None else None
        return found if code is None else _loaded(key, code)


def _loaded(key: str, code: bytes) -> NativeCode:
    engine = link(code)
    call = taking_arrays(builtin("kernel", engine.get_function_address(ENTRY), engine))
    return _LOADED.setdefault(key, NativeCode(key, call, len(code)))


def link(code: bytes) -> Engine:
    """A separate engine for the code, so that nothing else keeps it alive."""
    machine = codegen.target().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


# ---- on disk -----------------------------------------------------------------------------------------------------


def object_code(key: str, make: Callable[[], Any], level: int = codegen.HIGHEST) -> bytes:
    """The object code of a key, ready to be linked: what was kept, or that of the module that `make` makes."""
    code = kept(key)
    if code is None:
        module = make()
        code = codegen.object_code(module, level)
        if (cache := disk.current()) is not None:
            cache.write(key, b"\n".join((" ".join(needed(module)).encode(), code)))
    return code


def kept(key: str) -> bytes | None:
    """The object code of a key on disk, if everything that it calls is there."""
    cache = disk.current()
    return None if cache is None else cache.read(key, _linkable)


def _linkable(kept: bytes) -> bytes | None:
    symbols, _, code = kept.partition(b"\n")
    return code if all(map(available, symbols.decode().split())) else None


def needed(module: Any) -> list[str]:
    """The symbols that a module does not define itself."""
    declared = [value.name for value in (*module.functions, *module.global_variables) if value.is_declaration]
    return [name for name in declared if not name.startswith("llvm.")]

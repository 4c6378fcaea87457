"""Compilation without LLVM's optimisations, in a fraction of the time."""

from __future__ import annotations

from fnad.backends.cpu import codegen, loader
from fnad.backends.cpu.compiler import NativeFunction, by_position, module_of
from fnad.kernel.python_source import plain_text
from fnad.kernel.statements import Kernel


def compile_plainly(kernel: Kernel, _: str = "") -> NativeFunction:
    """Compile a kernel to code that takes a few times as long."""
    kernel = by_position(kernel)
    key = loader.key_of(f"plain\n{plain_text(kernel)}")
    with loader.LOCK:
        code = loader._LOADED.get(key) or loader._loaded(
            key, codegen.object_code(codegen.plain(module_of(kernel)), codegen.LOWEST)
        )
    return NativeFunction(code.key, code.call, code.nbytes, kernel)

"""The memory of LLVM's passes that has to be freed by hand."""

from __future__ import annotations

from typing import Any

import llvmlite.ir as ir
from llvmlite.binding.newpassmanagers import NewPassManager


def take_apart(module: ir.Module) -> None:
    """Cut what refers to itself in a module, so that it is freed now and not when garbage is looked for."""
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                if isinstance(instruction, ir.PhiInstr):
                    instruction.incomings.clear()
            block.instructions.clear()
            block.terminator = None
        function.blocks.clear()
        function.args = ()
    module.globals.clear()


def free(passes: Any) -> None:
    """Free a pass manager.

    llvmlite never does, since of its two base classes the first, which frees nothing, hides the second. That would leak
    some 70 KB per compilation.
    """
    NewPassManager._dispose(passes)
    passes.detach()

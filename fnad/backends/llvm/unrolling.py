"""Which loops LLVM must not unroll, and which it must.

LLVM unrolls a short loop as a whole before it vectorises, so that its calls of `exp` or `tanh` stay scalar, at five
times the cost. That is an advantage only where the loop around it becomes one block by that, and is vectorised instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.ir as ir

from fnad.kernel.statements import Constant, Evaluate, For, If, Statement, While, walk

VARIANTS = "vector-function-abi-variant"
"""The attribute of a function with variants for vectors."""

FEWEST = 4
"""The fewest iterations that are worth a vector."""

MOST = 64
"""The most iterations, inner loops included, that are unrolled as a whole."""


def keep(loop: For, body: ir.Block, back: ir.Instruction, around: For | None) -> None:
    """Mark the branch that goes back to the top of an innermost loop, if it is better not unrolled."""
    count = iterations(loop)
    if (count is None or count >= FEWEST) and has_variants(body) and not is_vectorised(around):
        back.set_metadata("llvm.loop", _metadata(body.module, "llvm.loop.unroll.disable"))


def has_variants(block: ir.Block) -> bool:
    calls = [instruction for instruction in block.instructions if isinstance(instruction, ir.CallInstr)]
    return any(VARIANTS in attribute for call in calls for attribute in getattr(call.callee, "attributes", ()))


def is_vectorised(around: For | None) -> bool:
    """Whether LLVM may vectorise a loop, since it makes one block of its body."""
    if around is None:
        return False
    inner = [iterations(statement) for statement in _loops(around.body)]
    is_straight = not any(isinstance(statement, If | While | Evaluate) for statement in walk(around.body))
    return is_straight and all(count is not None and count <= MOST for count in inner)


def iterations(loop: For) -> int | None:
    """The number of iterations of the innermost loops; None if it is not known."""
    if not (isinstance(loop.start, Constant) and isinstance(loop.stop, Constant)):
        return None
    count = len(range(int(loop.start.value), int(loop.stop.value), loop.step))
    inner = [iterations(statement) for statement in _loops(loop.body)]
    return None if None in inner else count * max(sum(n for n in inner if n is not None), 1)


def _loops(statements: Sequence[Statement]) -> list[For]:
    return [statement for statement in statements if isinstance(statement, For)]


def unroll(back: ir.Instruction, module: ir.Module) -> None:
    """Mark the branch that goes back to the top of a loop that must be unrolled as a whole."""
    back.set_metadata("llvm.loop", _metadata(module, "llvm.loop.unroll.full"))


def _metadata(module: ir.Module, word: str) -> ir.MDValue:
    """Metadata of a loop, which names itself."""
    told = module.add_metadata([ir.MetaDataString(module, word)])
    loop = ir.MDValue(module, (told,), name=str(len(module.metadata)))
    loop.operands = (loop, told)
    return loop

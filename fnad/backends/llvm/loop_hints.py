"""The loop metadata for LLVM: which loops to unroll, which not, and how wide their vectors are.

LLVM unrolls a short loop as a whole before it vectorises, so that its calls of `exp` or `tanh` stay scalar, at five
times the cost. That is an advantage only where the loop around it becomes one block by that, and is vectorised instead.

So is a loop along a row of a matrix, where the lanes of the loop around it would lie apart: see `codegen.TUNING`.

Where hardly ever more than one iteration runs, it is the loops inside that are worth vectors.

It takes as many lanes as the widest type in memory or in a sum has room for. Sums of single precision are of doubles,
so the functions of a loop that sums would be called for half as many numbers as they take at once. The arithmetic of
such a loop would fill half a vector. Of Intel's older processors with AVX-512 LLVM prefers vectors of half their width,
but functions, which hold their numbers in registers, take less time in whole ones.

The iterations that are left over run one by one, and a function of one number takes as long as of a vector. Processors
with AVX-512 compute them in one more vector under a mask, as LLVM does by itself in loops of fewer than 16 iterations.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import llvmlite.ir as ir

from fnad.backends.llvm.formulas.definition import PREFIX
from fnad.ir.types import F32, F64
from fnad.kernel import statements as code
from fnad.scalar.operations import ACCUMULATE, ADD, MULTIPLY, NEGATIVE, SUBTRACT

VARIANTS = "vector-function-abi-variant"
"""The attribute of a function with variants for vectors."""

FEWEST = 4
"""The fewest iterations that are worth a vector."""

NARROWEST = 8
"""The fewest lanes of single precision that processors with such functions prefer."""

MASKED = 128
"""The fewest iterations of a loop of functions that takes no mask, which costs a little in each vector."""

WORK = 3
"""The fewest operations in single precision for each sum of doubles that are worth vectors of as many numbers."""

ARITHMETIC = {"fadd", "fsub", "fmul", "fdiv", "fneg", "fcmp", "select"}

SHORTEST_ROW = 16
"""The fewest elements of a row that are worth vectors: shorter ones take less time as a straight sequence."""

MOST = 64
"""The most iterations, inner loops included, that are unrolled as a whole."""


def innermost(
    loop: code.For, body: ir.Block, back: ir.Instruction, around: code.For | None, carried: Container[str], lanes: int
) -> None:
    """Mark the branch that goes back to the top of an innermost loop, in which variables are `carried`.

    A vector has so many lanes of single precision.
    """
    count, functions = iterations(loop), vector_functions(body)
    hints: list[list[ir.Value]] = []
    is_inner = functions or (around is not None and around.kind is code.LoopKind.SPAN)
    if is_along_row(loop, around) or ((count is None or count >= FEWEST) and is_inner and not is_vectorised(around)):
        hints.append(_rolled(body.module))
    sums, wide = wide_sums(loop, carried), lanes_of(functions, count, lanes)
    if wide and lanes > NARROWEST and count is not None and count < MASKED and count % wide > wide // 4:
        hints.append([ir.MetaDataString(body.module, "llvm.loop.vectorize.predicate.enable"), ir.IntType(1)(1)])
    if sums is not None and has_apart(loop) and not reads_on(loop.body):
        if wide and not sums and count is not None and count < wide:
            wide = None
        elif not functions and sums and has_much_work(loop, body):
            wide = narrowed(lanes, count, NARROWEST)
        if wide:
            hints.append([ir.MetaDataString(body.module, "llvm.loop.vectorize.width"), ir.IntType(32)(wide)])
    if hints:
        mark(back, body.module, *hints)


def has_apart(loop: code.For) -> bool:
    """True if it is certain that no iteration stores where another iteration stores or loads.

    LLVM prints a remark on any other loop that it cannot vectorise as told.
    """
    places: dict[code.Name, list[code.Expression]] = {store.array: [] for store in code.stores(loop.body)}
    for access in (*code.stores(loop.body), *code.loads(loop.body)):
        places.get(access.array, []).append(access.index)
    return all(
        len(found) == 1 or (found.count(found[0]) == len(found) and step_of(found[0], loop.counter))
        for found in places.values()
    )


def reads_on(body: Sequence[code.Statement]) -> bool:
    """True if a store is followed by a load from an array that was loaded from before the store.

    LLVM keeps the last element for the next iteration (`x[i + 1]`, then `x[i]`) and moves no store behind a load, so it
    cannot vectorise such a loop.
    """
    first = next((n for n, statement in enumerate(body, 1) if isinstance(statement, code.Store)), len(body))
    before, behind = ({load.array for load in code.loads(part)} for part in (body[:first], body[first:]))
    return not before.isdisjoint(behind)


def is_along_row(loop: code.For, around: code.For | None) -> bool:
    """True if a loop takes neighbours one after the other, and the loop around it does not."""
    count = iterations(loop)
    if around is None or count is None or not SHORTEST_ROW <= count <= MOST:
        return False
    places = [access.index for access in (*code.stores(loop.body), *code.loads(loop.body))]
    is_row = {step_of(place, loop.counter) for place in places} <= {0, 1}
    return is_row and any(step_of(place, around.counter) not in (0, 1) for place in places)


def step_of(place: code.Expression, counter: code.Name) -> int | None:
    """By how much a place grows with a counter; None if it is not known to be linear."""
    match place:
        case code.Name():
            return int(place == counter)
        case code.Apply(operation, (one,)) if operation is NEGATIVE:
            first = step_of(one, counter)
            return None if first is None else -first
        case code.Apply(operation, (one, other)) if operation in (ADD, SUBTRACT):
            first, second = step_of(one, counter), step_of(other, counter)
            sign = 1 if operation is ADD else -1
            return None if first is None or second is None else first + sign * second
        case code.Apply(operation, (code.Constant(factor), other)) if operation is MULTIPLY:
            step = step_of(other, counter)
            return None if step is None else int(factor) * step
        case _:
            return None if counter in code.subexpressions(place) else 0


def vector_functions(block: ir.Block) -> list[str]:
    """The variants for vectors of each function that is called; none if one has none, so that LLVM makes no vectors.

    A formula, which LLVM inlines, is there by its name.
    """
    called = [i.callee for i in block.instructions if isinstance(i, ir.CallInstr) and isinstance(i.callee, ir.Function)]
    outer = [function for function in called if function.is_declaration and not function.name.startswith("llvm.")]
    found = [[text for text in function.attributes if VARIANTS in text] for function in outer]
    formulas = [function.name for function in called if function.name.startswith(PREFIX)]
    return [*formulas, *(text for texts in found for text in texts)] if all(found) else []


def has_much_work(loop: code.For, body: ir.Block) -> bool:
    """True if a loop without branches and calls computes much in single precision for each sum of doubles."""
    operations = [i for i in body.instructions if i.opname in ARITHMETIC]
    sums = sum(isinstance(i.type, ir.DoubleType) for i in operations)
    calls = any(isinstance(i, ir.CallInstr) for i in body.instructions)
    is_straight = not calls and all(isinstance(s, code.Assign | code.Store | code.Comment) for s in loop.body)
    return is_straight and len(operations) - sums >= WORK * sums


def lanes_of(functions: Sequence[str], count: int | None, lanes: int) -> int | None:
    """The numbers that the functions of a loop take at once: `lanes` of single precision, half as many of double.

    None if there is no such number.
    """
    for most, fewest, suffix in ((lanes, NARROWEST, ".float"), (lanes // 2, NARROWEST // 2, ".double")):
        wide = narrowed(most, count, fewest)
        if count is not None and NARROWEST <= count < MASKED and (count > 4 * most or count % most != fewest):
            wide = most  # what is left over runs under a mask
        if functions and all(text.endswith(suffix) or f"_ZGV_LLVM_N{wide}v" in text for text in functions):
            return wide
    return None


def narrowed(lanes: int, count: int | None, fewest: int) -> int:
    """The lanes of a vector, or `fewest` where these leave less over, which runs one by one."""
    return fewest if count is not None and count % lanes >= fewest else lanes


def wide_sums(loop: code.For, carried: Container[str]) -> int | None:
    """The number of sums of doubles in a loop; None if it computes anything but sums from one iteration to the next.

    LLVM may change the order of all that a loop accumulates if it is told how many lanes there are.
    """
    values = [
        s.value for s in loop.body if isinstance(s, code.Assign) and any(name.name in carried for name in s.targets)
    ]
    sums = [value.dtype for value in values if isinstance(value, code.Apply) and value.operation is ACCUMULATE]
    wide, narrow = sums.count(F64), sums.count(F32)
    return wide if wide + narrow == len(values) and (wide or not narrow) else None


def is_vectorised(around: code.For | None) -> bool:
    """True if LLVM may vectorise a loop, since it makes one block of its body."""
    if around is None or around.kind is code.LoopKind.SPAN:
        return False
    inner = [iterations(statement) for statement in _loops(around.body)]
    is_straight = not any(
        isinstance(statement, code.If | code.While | code.Evaluate) for statement in code.walk(around.body)
    )
    return is_straight and all(count is not None and count <= MOST for count in inner)


def iterations(loop: code.For) -> int | None:
    """The number of iterations of the innermost loops; None if it is not known."""
    if loop.counted is None:
        return None
    inner = [iterations(statement) for statement in _loops(loop.body)]
    return None if None in inner else len(loop.counted) * max(sum(n for n in inner if n is not None), 1)


def _loops(statements: Sequence[code.Statement]) -> list[code.For]:
    return [statement for statement in statements if isinstance(statement, code.For)]


def unroll(back: ir.Instruction, module: ir.Module) -> None:
    """Mark the branch that goes back to the top of a loop that must be unrolled as a whole."""
    mark(back, module, [ir.MetaDataString(module, "llvm.loop.unroll.full")])


def over_span(back: ir.Instruction, module: ir.Module) -> None:
    """Mark the branch that goes back to the top of a loop of hardly ever more than one iteration."""
    mark(back, module, [ir.MetaDataString(module, "llvm.loop.vectorize.enable"), ir.IntType(1)(0)], _rolled(module))


def _rolled(module: ir.Module) -> list[ir.Value]:
    return [ir.MetaDataString(module, "llvm.loop.unroll.disable")]


def mark(back: ir.Instruction, module: ir.Module, *hints: Sequence[ir.Value]) -> None:
    """Give a loop's branch these hints, in metadata that name themselves."""
    told = tuple(map(module.add_metadata, hints))
    loop = ir.MDValue(module, told, name=str(len(module.metadata)))
    loop.operands = (loop, *told)
    back.set_metadata("llvm.loop", loop)

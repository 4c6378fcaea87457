"""A program as a native function `int64 name(const void *argument…, void *result…)`: by address, or in an object file.

The function returns 0, or the number of the fault in which it ended; -1 if there is no memory for temporaries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu import codegen, loader
from fnad.backends.llvm.instructions import add_function, arrays_in_frame
from fnad.backends.llvm.scalar import memory_type
from fnad.backends.standalone.program import Standalone, element_type
from fnad.backends.standalone.target import STANDALONE
from fnad.errors import ExportError
from fnad.kernel.statements import SCRATCH, STATUS_SIZE, Kernel

LONG, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
ON_STACK = 2**16
"""The most bytes of temporaries on the stack; larger ones are allocated in each run."""

NO_MEMORY = -1
ALIGNMENT = 64


class LoadedFunction:
    """A native function in this process, by its `address`; its code lives as long as this object."""

    def __init__(self, program: Standalone, entry: Callable[[ir.Module, Standalone], str] | None = None) -> None:
        with loader.LOCK:
            module = _module(program)
            name = program.name if entry is None else entry(module, program)
            self._engine = loader.link(codegen.object_code(codegen.optimized(module)))
            self.address: int = self._engine.get_function_address(name)


def scalar_function(program: Standalone) -> LoadedFunction:
    """The function `double name(int, double *)` of numbers, as `scipy.LowLevelCallable` takes it for integrands.

    Raises `ExportError` unless all arguments and the only result are numbers of f64.
    """
    avals = [parameter.aval for parameter in program.parameters]
    if len(program.results) != 1 or any(str(aval) != "f64[]" for aval in avals):
        raise ExportError(f"{program.name} does not take numbers of f64 to one number of f64", remedy="call .cfunc()")
    return LoadedFunction(program, _of_numbers)


def _of_numbers(module: ir.Module, program: Standalone) -> str:
    """Add the function that takes numbers from an array; a run that fails gives nan."""
    double, name = ir.DoubleType(), f"{program.name}_of_numbers"
    function = ir.Function(module, ir.FunctionType(double, [ir.IntType(32), double.as_pointer()]), name=name)
    builder = ir.IRBuilder(function.append_basic_block())
    result = builder.alloca(double)
    given = [builder.gep(function.args[1], [LONG(n)]) for n in range(len(program.arguments))]
    status = builder.call(module.get_global(program.name), [builder.bitcast(x, BYTES) for x in (*given, result)])
    failed = builder.icmp_signed("!=", status, LONG(0))
    builder.ret(builder.select(failed, ir.Constant(double, float("nan")), builder.load(result)))
    return name


def object_file(program: Standalone) -> bytes:
    """A relocatable object file with the function, independent of its position."""
    with loader.LOCK:
        parsed = codegen.optimized(_module(program))
        return codegen.on_large_stack(lambda: _relocatable().emit_object(parsed))


@cache
def _relocatable() -> Any:
    """The target machine for code that a linker places."""
    features = llvm.get_host_cpu_features().flatten()
    cpu, level = llvm.get_host_cpu_name(), codegen.HIGHEST
    return codegen.target().create_target_machine(
        cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default"
    )


def _module(program: Standalone) -> ir.Module:
    module = codegen.new_module(program.name)
    parameters = program.parameters
    function = ir.Function(module, ir.FunctionType(LONG, [BYTES] * len(parameters)), name=program.name)
    builder = ir.IRBuilder(function.append_basic_block())
    places = {parameter.buffer: argument for parameter, argument in zip(parameters, function.args, strict=True)}
    places |= {buffer: _constant(module, buffer, array).bitcast(BYTES) for buffer, array in program.captured.items()}
    status = builder.alloca(ir.ArrayType(LONG, STATUS_SIZE), name="status")
    builder.store(ir.Constant(status.type.pointee, [0, 0, 1, *[0] * (STATUS_SIZE - 3)]), status)
    places["status"] = builder.bitcast(status, BYTES)
    _with_temporaries(builder, program, places, lambda: _run(builder, program, places))
    builder.ret(builder.load(builder.gep(status, [LONG(0), LONG(0)])))
    return module


def _constant(module: ir.Module, name: str, array: np.ndarray[Any, Any]) -> ir.GlobalVariable:
    """An array as part of the code."""
    content = bytearray(array.tobytes() or b"\0")
    made = ir.GlobalVariable(module, ir.ArrayType(ir.IntType(8), len(content)), f"captured_{name}")
    made.initializer, made.global_constant, made.linkage, made.align = (
        ir.Constant(made.value_type, content),
        True,
        "internal",
        ALIGNMENT,
    )
    return made


def _with_temporaries(builder: ir.IRBuilder, program: Standalone, places: dict[str, Any], run: Any) -> None:
    """Run with memory for the slots of the plan, on the stack if they are small."""
    slots = program.plan.slots
    sizes = [-(-slot.size * slot.dtype.itemsize // ALIGNMENT) * ALIGNMENT for slot in slots]
    total = sum(sizes)
    if total <= ON_STACK:
        for slot, size in zip(slots, sizes, strict=True):
            memory = builder.alloca(ir.ArrayType(ir.IntType(8), size), name=slot.name)
            memory.align = ALIGNMENT
            places[slot.name] = builder.bitcast(memory, BYTES)
        run()
        return
    module = builder.module
    malloc = ir.Function(module, ir.FunctionType(BYTES, [LONG]), name="malloc")
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [BYTES]), name="free")
    memory = builder.call(malloc, [LONG(total + ALIGNMENT)])
    with builder.if_then(builder.icmp_unsigned("==", memory, ir.Constant(BYTES, None)), likely=False):
        builder.ret(LONG(NO_MEMORY))
    first = builder.and_(builder.add(builder.ptrtoint(memory, LONG), LONG(ALIGNMENT - 1)), LONG(-ALIGNMENT))
    for slot, start in zip(slots, np.cumsum([0, *sizes]).tolist()):  # noqa: B905 the end of the last one
        places[slot.name] = builder.inttoptr(builder.add(first, LONG(start)), BYTES)
    run()
    builder.call(free, [memory])


def _run(builder: ir.IRBuilder, program: Standalone, places: dict[str, Any]) -> None:
    """Call the kernels in their order, up to one that stores a fault."""
    status = builder.bitcast(places["status"], LONG.as_pointer())
    end = builder.append_basic_block("end")
    for kernel in program.kernels:
        _call(builder, kernel, places)
        following = builder.append_basic_block()
        builder.cbranch(builder.icmp_signed("!=", builder.load(status), LONG(0)), end, following)
        builder.position_at_end(following)
    builder.branch(end)
    builder.position_at_end(end)


def _call(builder: ir.IRBuilder, kernel: Kernel, places: dict[str, Any]) -> None:
    function = add_function(builder.module, kernel, STANDALONE)
    given: Sequence[Any] = [
        builder.bitcast(places[parameter.name], memory_type(element_type(parameter)).as_pointer())
        for parameter in kernel.parameters
    ]
    at = dict(zip(kernel.parameters, given, strict=True))
    large = arrays_in_frame(builder, kernel, at[SCRATCH]) if SCRATCH in at else []
    builder.call(function, [*given, *large])

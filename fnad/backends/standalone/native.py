"""A program as a native function `int64 name(const void *argument…, void *result…)`: by address, or in an object file.

The function of a program for all sizes takes the sizes first.

The function returns 0, or the number of the fault in which it ended; -1 if there is no memory for temporaries, and -2
if there is no program for the sizes.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad.backends.cpu import codegen, loader
from fnad.backends.cpu.functions import FUNCTIONS
from fnad.backends.llvm.instructions import add_function, arrays_in_frame
from fnad.backends.llvm.scalar import call, memory_type
from fnad.backends.standalone.program import NO_SIZE, Standalone, Variant
from fnad.backends.standalone.target import STANDALONE
from fnad.errors import ExportError
from fnad.ir.size import computed, is_size
from fnad.kernel.statements import SCRATCH, SIZES, STATUS_SIZE, Kernel

LONG, BYTES = ir.IntType(64), ir.IntType(8).as_pointer()
ON_STACK = 2**16
"""The most bytes of temporaries on the stack; larger ones are allocated in each run."""

NO_MEMORY = -1
ALIGNMENT = 64


class LoadedFunction:
    """A native function in this process, by its `address`; its code lives as long as this object.

    `digest` is of its code, and `text` is its LLVM module if other code may contain it.
    """

    def __init__(self, program: Standalone, entry: Callable[[ir.Module, Standalone], str] | None = None) -> None:
        with loader.LOCK:
            module = _module(program)
            name = program.name if entry is None else entry(module, program)
            parsed = codegen.optimized(module)
            self.text = _inlinable(parsed)
            code = codegen.object_code(parsed)
            self.digest = hashlib.sha256(code).digest()
            self._engine = loader.link(code)
            self.address: int = self._engine.get_function_address(name)


SCALAR = frozenset(f"{name}{suffix}" for name in ("fmod", *[f.symbol for f in FUNCTIONS]) for suffix in ("", "f"))
"""The functions of the C library that each process has."""

MOST_INLINED = 400
"""The most instructions of a program that becomes part of its callers; a call takes a tenth of the time of these."""


def _inlinable(module: Any) -> str | None:
    """The text of an optimised module if it is small and calls scalar functions of the C library alone.

    Sums that are ordered already stay in this order, so the results of its callers are those of the object code.
    """
    count = 0
    for function in module.functions:
        for block in function.blocks:
            count += sum(1 for _ in block.instructions)
            if count > MOST_INLINED:
                return None
    text = re.sub(
        r'"vector-function-abi-variant"="[^"]*"|^@llvm.compiler.used = .*$', "", str(module), flags=re.MULTILINE
    )
    text = re.sub(r"(= f(?:add|sub|mul)) reassoc", r"\1", text)
    called = set(re.findall(r"call [^@]*@(\w+)\(", text))
    return text if called <= SCALAR else None


NUMBER = ctypes.POINTER(ctypes.c_double)


def low_level_callable(program: Standalone) -> Any:
    """The scipy.LowLevelCallable of a program, for integrators and filters; it keeps its code.

    It is `double f(int, double *)` of numbers, or the filter `int f(double *, intptr_t, double *, void *)` of an array.
    Raises `ExportError` unless the program takes numbers of f64, or one axis of them, to one number.
    """
    from scipy import LowLevelCallable  # noqa: PLC0415 - other forms do without SciPy

    given, result = [p.aval for p in program.arguments], [str(p.aval) for p in program.results]
    if result == ["f64[]"] and all(str(aval) == "f64[]" for aval in given):
        function, signature = LoadedFunction(program, _of_numbers), "double (int, double *)"
        kind = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, NUMBER)
    elif result == ["f64[]"] and [(str(aval.dtype), len(aval.shape)) for aval in given] == [("float64", 1)]:
        function, signature = LoadedFunction(program, _of_window), "int (double *, npy_intp, double *, void *)"
        kind = ctypes.CFUNCTYPE(ctypes.c_int, NUMBER, ctypes.c_ssize_t, NUMBER, ctypes.c_void_p)
    else:
        raise ExportError(
            f"{program.name} does not take numbers of f64, or one axis of them, to one number of f64",
            remedy="call .cfunc()",
        )
    made: Any = kind(function.address)
    made.function = function
    return LowLevelCallable(made, signature=signature)


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


def _of_window(module: ir.Module, program: Standalone) -> str:
    """Add the function that takes an array with its size; it returns 0 for other sizes and a run that fails."""
    int_, name = ir.IntType(32), f"{program.name}_of_window"
    function = ir.Function(module, ir.FunctionType(int_, [BYTES, LONG, BYTES, BYTES]), name=name)
    builder = ir.IRBuilder(function.append_basic_block())
    window, size, result, _ = function.args
    fits = builder.icmp_signed("==", size, number(builder, program.arguments[0].aval.size, [size]))
    with builder.if_then(fits):
        status = builder.call(module.get_global(program.name), [*[size] * len(program.sizes), window, result])
        builder.ret(builder.zext(builder.icmp_signed("==", status, LONG(0)), int_))
    builder.ret(int_(0))
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


def function_type(program: Standalone) -> ir.FunctionType:
    """The type of the native function of a program."""
    return ir.FunctionType(LONG, [*[LONG] * len(program.sizes), *[BYTES] * len(program.parameters)])


def _module(program: Standalone) -> ir.Module:
    module = codegen.new_module(program.name)
    kind = function_type(program)
    runs = [_variant(module, program, variant, kind) for variant in program.variants]
    if program.sizes:
        _dispatch(module, program, kind, runs)
    return module


def _variant(module: ir.Module, program: Standalone, variant: Variant, kind: ir.FunctionType) -> ir.Function:
    """Add the function that runs a variant."""
    function = ir.Function(module, kind, name=variant.name)
    builder = ir.IRBuilder(function.append_basic_block())
    count = len(program.sizes)
    sizes, given = function.args[:count], function.args[count:]
    places = {parameter.buffer: argument for parameter, argument in zip(program.parameters, given, strict=True)}
    for buffer, array in variant.captured.items():
        places[buffer] = _constant(module, f"{variant.name}_{buffer}", array).bitcast(BYTES)
    if sizes:
        place = builder.alloca(LONG, count)
        for k, size in enumerate(sizes):
            builder.store(size, builder.gep(place, [LONG(k)]))
        places[SIZES.name] = builder.bitcast(place, BYTES)
    status = builder.alloca(ir.ArrayType(LONG, STATUS_SIZE), name="status")
    builder.store(ir.Constant(status.type.pointee, [0, 0, 1, *[0] * (STATUS_SIZE - 3)]), status)
    places["status"] = builder.bitcast(status, BYTES)
    _with_temporaries(builder, variant, sizes, places, lambda: _run(builder, variant, places))
    builder.ret(builder.load(builder.gep(status, [LONG(0), LONG(0)])))
    return function


def _dispatch(module: ir.Module, program: Standalone, kind: ir.FunctionType, runs: Sequence[ir.Function]) -> None:
    """Add the function that runs the variant for the sizes."""
    function = ir.Function(module, kind, name=program.name)
    builder = ir.IRBuilder(function.append_basic_block())
    for variant, run in zip(program.variants, runs, strict=True):
        run.linkage = "internal"
        is_in: Any = ir.IntType(1)(1)
        for size, (low, high) in zip(function.args, variant.intervals.values(), strict=False):
            is_in = builder.and_(is_in, builder.icmp_signed(">=", size, LONG(low)))
            is_in = builder.and_(is_in, builder.icmp_signed("<=", size, LONG(high)))
        with builder.if_then(is_in):
            status = builder.call(run, function.args)
            numbered = builder.add(status, LONG(variant.first_fault))
            builder.ret(builder.select(builder.icmp_signed(">", status, LONG(0)), numbered, status))
    builder.ret(LONG(NO_SIZE))


def _constant(module: ir.Module, name: str, array: np.ndarray[Any, Any]) -> ir.GlobalVariable:
    """An array as part of the code."""
    content = bytearray(array.tobytes() or b"\0")
    made = ir.GlobalVariable(module, ir.ArrayType(ir.IntType(8), len(content)), name)
    made.initializer, made.global_constant, made.linkage, made.align = (
        ir.Constant(made.value_type, content),
        True,
        "internal",
        ALIGNMENT,
    )
    return made


def _with_temporaries(
    builder: ir.IRBuilder, variant: Variant, given: Sequence[Any], places: dict[str, Any], run: Callable[[], None]
) -> None:
    """Run with memory for the slots of the plan, on the stack if they are small."""
    slots = variant.plan.slots
    if not any(is_size(slot.size) for slot in slots):
        sizes = [-(-slot.size * slot.dtype.itemsize // ALIGNMENT) * ALIGNMENT for slot in slots]
        if sum(sizes) <= ON_STACK:
            for slot, size in zip(slots, sizes, strict=True):
                memory = builder.alloca(ir.ArrayType(ir.IntType(8), size), name=slot.name)
                memory.align = ALIGNMENT
                places[slot.name] = builder.bitcast(memory, BYTES)
            run()
            return
    starts: list[Any] = [LONG(0)]
    for slot in slots:
        nbytes = number(builder, slot.size * slot.dtype.itemsize + ALIGNMENT - 1, given)
        starts.append(builder.add(starts[-1], builder.and_(nbytes, LONG(-ALIGNMENT))))
    memory = call(builder, "malloc", BYTES, builder.add(starts.pop(), LONG(ALIGNMENT)))
    with builder.if_then(builder.icmp_unsigned("==", memory, ir.Constant(BYTES, None)), likely=False):
        builder.ret(LONG(NO_MEMORY))
    first = builder.and_(builder.add(builder.ptrtoint(memory, LONG), LONG(ALIGNMENT - 1)), LONG(-ALIGNMENT))
    for slot, start in zip(slots, starts, strict=True):
        places[slot.name] = builder.inttoptr(builder.add(first, start), BYTES)
    run()
    call(builder, "free", ir.VoidType(), memory)


def number(builder: ir.IRBuilder, size: int, given: Sequence[Any]) -> Any:
    """A number of bytes, which may be a polynomial in the given sizes."""
    return computed(size, given, LONG, builder.add, builder.mul) if is_size(size) else LONG(size)


def _run(builder: ir.IRBuilder, variant: Variant, places: dict[str, Any]) -> None:
    """Call the kernels in their order, up to one that stores a fault."""
    status = builder.bitcast(places["status"], LONG.as_pointer())
    end = builder.append_basic_block("end")
    for kernel in variant.kernels:
        _call(builder, replace(kernel, name=f"{variant.name}_{kernel.name}"), places)
        following = builder.append_basic_block()
        builder.cbranch(builder.icmp_signed("!=", builder.load(status), LONG(0)), end, following)
        builder.position_at_end(following)
    builder.branch(end)
    builder.position_at_end(end)


def _call(builder: ir.IRBuilder, kernel: Kernel, places: dict[str, Any]) -> None:
    function = add_function(builder.module, kernel, STANDALONE)
    given: Sequence[Any] = [
        builder.bitcast(places[parameter.name], memory_type(parameter.dtype).as_pointer())
        for parameter in kernel.parameters
    ]
    at = dict(zip(kernel.parameters, given, strict=True))
    large = arrays_in_frame(builder, kernel, at[SCRATCH]) if SCRATCH in at else []
    builder.call(function, [*given, *large])

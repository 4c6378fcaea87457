"""Linear algebra by NumPy's own loops: the generalized ufuncs behind `np.linalg`, called on arrays of a kernel.

If a matrix has no result, for example because it is singular, NumPy raises the floating-point flag for invalid
operations. So the call is in a separate function, into which LLVM moves no other arithmetic, and which clears the flag
before the call and reads it afterwards.
"""

from __future__ import annotations

from functools import cache
from math import prod

import llvmlite.ir as ir

from fnad.backends.cpu.ufunc_loops import LONG, WORD, UfuncLoop, registered_loop
from fnad.backends.llvm.emitter import Builder, Dtype, Emit, Instructions, Kinds, Values
from fnad.backends.llvm.scalar import call, memory_type
from fnad.kernel.linalg import LINALG, PREFIX, core_dimensions, gufunc, size_names

INVALID = WORD(1)
"""FE_INVALID of C, on x86 and ARM."""


def emitter(routine: str) -> Emit:
    """The emitter of a routine."""
    name = routine.removeprefix(PREFIX)
    cores = core_dimensions(name)

    def emit(builder: Builder, kinds: Kinds, values: Values) -> None:
        arrays, (count, *sizes), (status, fault) = values[: len(cores)], values[len(cores) : -2], values[-2:]
        dtypes = tuple(kind.dtype for kind in kinds[: len(cores)])
        function = define(builder.module, name, dtypes, count.constant, tuple(size.constant for size in sizes))
        failed = builder.icmp_unsigned("!=", builder.call(function, arrays), WORD(0))
        with builder.if_then(builder.and_(failed, builder.icmp_signed("!=", fault, LONG(0))), likely=False):
            builder.store(fault, status)

    return emit


def define(module: ir.Module, name: str, dtypes: tuple[Dtype, ...], count: int, sizes: tuple[int, ...]) -> ir.Function:
    """The function on the arrays that calls the ufunc and returns whether it failed."""
    symbol = f"fnad.{name}.{''.join(dtype.char for dtype in dtypes)}.{'.'.join(map(str, (count, *sizes)))}"
    known = module.globals.get(symbol)
    return known or _defined(module, symbol, name, dtypes, count, sizes)


def _defined(
    module: ir.Module, symbol: str, name: str, dtypes: tuple[Dtype, ...], count: int, sizes: tuple[int, ...]
) -> ir.Function:
    pointers = [memory_type(dtype).as_pointer() for dtype in dtypes]
    function = ir.Function(module, ir.FunctionType(WORD, pointers), name=symbol)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    call(builder, "feclearexcept", WORD, INVALID)
    loop_of(name, dtypes).call(builder, function.args, (count, *sizes), strides(name, dtypes, sizes))
    builder.ret(call(builder, "fetestexcept", WORD, INVALID))
    return function


@cache
def loop_of(name: str, dtypes: tuple[Dtype, ...]) -> UfuncLoop:
    return registered_loop(gufunc(name), dtypes, PREFIX + name)


def strides(name: str, dtypes: tuple[Dtype, ...], sizes: tuple[int, ...]) -> list[int]:
    """The strides in bytes of contiguous stacks: between matrices for each, then within a matrix."""
    size_of = dict(zip(size_names(name), sizes, strict=True))
    outer: list[int] = []
    inner: list[int] = []
    for core, dtype in zip(core_dimensions(name), dtypes, strict=True):
        shape = [size_of[size] for size in core]
        outer.append(prod(shape) * dtype.itemsize)
        inner += [prod(shape[axis + 1 :]) * dtype.itemsize for axis in range(len(shape))]
    return [*outer, *inner]


INSTRUCTIONS: Instructions = {routine: emitter(routine) for routine in LINALG}

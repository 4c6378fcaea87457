"""The real functions of libm, declared to LLVM with their vector variants in glibc's libmvec.

PyPI's llvmlite includes no vector math library. LLVM's loop vectoriser replaces a scalar call by a vector call wherever
the callee's declaration has the attribute `vector-function-abi-variant`, so a scalar `exp` declared with libmvec's
`_ZGVeN8v_exp` vectorises in any fused loop. Names follow the vector function ABIs of x86-64 and ARM64: _ZGV, the letter
of the instruction set, N, the lanes, a v per operand, the scalar's name. The ABI of ARM64 keeps more registers than
plain C functions do, so its functions may be called like these. Without libmvec (not Linux; on x86-64 glibc < 2.22, or
< 2.35 for all but exp, log, pow, sin, cos; on ARM64 glibc < 2.38, or < 2.40 for some) the calls stay scalar.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from functools import cache

import llvmlite.binding as llvm
import llvmlite.ir as ir

LIBRARY = "libmvec.so.1"
# The letter of each instruction set in vector symbols, the CPU feature it needs, its width in bytes; widest first.
INSTRUCTION_SETS = (("e", "avx512f", 64), ("d", "avx2", 32), ("b", "sse4.1", 16), ("n", "neon", 16))


def features() -> dict[str, bool]:
    """The features of this CPU. All ARM64 CPUs have NEON, which virtual ones may not list."""
    return llvm.get_host_cpu_features() | {"neon": platform.machine() in ("aarch64", "arm64")}


@cache
def instruction_sets() -> tuple[tuple[str, str, int], ...]:
    """The instruction sets of this CPU."""
    found = features()
    return tuple(each for each in INSTRUCTION_SETS if found.get(each[1]))


def has_variants(symbol: str, values: Sequence[ir.Value]) -> bool:
    """True if the function whose f64 form is `symbol` has vector variants for operands of this type."""
    is_double = isinstance(values[0].type, ir.DoubleType)
    return bool(variants(symbol if is_double else f"{symbol}f", len(values), 8 if is_double else 4))


def libm(builder: ir.IRBuilder, symbol: str, *values: ir.Value) -> ir.Value:
    """Call the function whose f64 form is `symbol`, for f64 or f32."""
    scalar = values[0].type
    name = symbol if isinstance(scalar, ir.DoubleType) else f"{symbol}f"
    return builder.call(announced(builder.module, name, scalar, len(values)), values)


@cache
def available() -> bool:
    """True if libmvec can be loaded; loading it registers its symbols with LLVM."""
    try:
        llvm.load_library_permanently(LIBRARY)
    except RuntimeError:
        return False
    return any(llvm.address_of_symbol(f"_ZGV{letter}N{width // 8}v_exp") for letter, _, width in instruction_sets())


def register(_: str) -> None:
    """Register the symbols of libmvec, if it can be loaded."""
    available()


def describe() -> str:
    """The source of vector functions, for display."""
    if not available():
        return f"no {LIBRARY}"
    return f"{LIBRARY}: {', '.join(feature for _, feature, _ in instruction_sets())}"


def widest_bytes() -> int:
    """The width of the widest vectors of this CPU."""
    return max((width for _, _, width in instruction_sets()), default=16)


def preferred_bytes() -> int:
    """The width of the vectors of loops without functions.

    With AVX-512 it is the widest on AMD's processors, and on Intel's that hold their clock. Those have AVX-512 for half
    precision too.
    """
    holds_clock = llvm.get_host_cpu_name().startswith("znver") or features().get("avx512fp16")
    return widest_bytes() if holds_clock else min(widest_bytes(), 32)


@cache
def variants(symbol: str, arity: int, itemsize: int) -> tuple[tuple[str, int], ...]:
    """The name and lanes of each vector variant of `symbol` that the library has and this CPU runs."""
    if not available():
        return ()
    named = [
        (f"_ZGV{letter}N{width // itemsize}{'v' * arity}_{symbol}", width // itemsize)
        for letter, _, width in instruction_sets()
    ]
    return tuple((name, lanes) for name, lanes in named if llvm.address_of_symbol(name) is not None)


def announced(module: ir.Module, symbol: str, scalar: ir.Type, arity: int) -> ir.Function:
    """The function `symbol`, declared with its vector variants on first use in `module`."""
    known = module.globals.get(symbol)
    return known if known is not None else announce(module, symbol, scalar, arity)


def announce(module: ir.Module, symbol: str, scalar: ir.Type, arity: int) -> ir.Function:
    function = declare(module, symbol, scalar, arity)
    vectors = variants(symbol, arity, 8 if isinstance(scalar, ir.DoubleType) else 4)
    if vectors:
        mapping = ",".join(f"_ZGV_LLVM_N{lanes}{'v' * arity}_{symbol}({name})" for name, lanes in vectors)
        set.add(function.attributes, f'"vector-function-abi-variant"="{mapping}"')
        keep(module, [declare(module, name, ir.VectorType(scalar, lanes), arity) for name, lanes in vectors])
    return function


def declare(module: ir.Module, name: str, type_: ir.Type, arity: int) -> ir.Function:
    """Declare a pure function, with attributes that llvmlite does not list."""
    function = ir.Function(module, ir.FunctionType(type_, [type_] * arity), name=name)
    for attribute in ("nounwind", "willreturn", "memory(none)"):
        set.add(function.attributes, attribute)
    return function


def keep(module: ir.Module, functions: list[ir.Function]) -> None:
    """Name vector functions in the module's `llvm.compiler.used` list: they must survive until the vectoriser runs."""
    used = module.globals.get("llvm.compiler.used")
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(ir.IntType(8).as_pointer(), 0), "llvm.compiler.used")
        used.linkage, used.section, used.initializer = "appending", "llvm.metadata", ir.Constant(used.value_type, [])
    pointers = [function.bitcast(ir.IntType(8).as_pointer()) for function in functions]
    elements = [*used.initializer.constant, *pointers]
    used.value_type = ir.ArrayType(ir.IntType(8).as_pointer(), len(elements))
    used.type = used.value_type.as_pointer()
    used.initializer = ir.Constant(used.value_type, elements)

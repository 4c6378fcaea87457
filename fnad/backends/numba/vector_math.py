"""The functions of libm, announced to LLVM with their vector variants in glibc's libmvec.

PyPI's llvmlite carries no vector math library. LLVM's loop vectoriser replaces a scalar call by a vector call wherever the callee's
declaration has the attribute `vector-function-abi-variant`; so a scalar `exp` announced with libmvec's `_ZGVeN8v_exp` vectorises
inside any fused loop. Names follow the x86-64 vector function ABI: _ZGV <isa> N <lanes> <one v per operand> _ <symbol>.
Without libmvec (not Linux, not x86-64, glibc < 2.22, or < 2.35 for the less common functions) the calls stay scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import llvmlite.ir as ir
import numpy as np

from fnad.backends.numba.operation import Operation, among

LIBRARY = "libmvec.so.1"
# The letter of each instruction set in vector symbols, the CPU feature it needs, its width in bytes; widest first.
INSTRUCTION_SETS = (("e", "avx512f", 64), ("d", "avx2", 32), ("b", "sse4.1", 16))


@cache
def available() -> bool:
    """Return whether libmvec is there; loading it makes its symbols known to LLVM."""
    try:
        llvm.load_library_permanently(LIBRARY)
    except RuntimeError:
        return False
    return llvm.address_of_symbol("_ZGVdN4v_exp") is not None


@cache
def variants(symbol: str, arity: int, itemsize: int) -> tuple[tuple[str, int], ...]:
    """Return (name, lanes) of each vector variant of `symbol` that the library has and this CPU runs."""
    if not available():
        return ()
    features = llvm.get_host_cpu_features()
    found = []
    for letter, feature, width in INSTRUCTION_SETS:
        lanes = width // itemsize
        name = f"_ZGV{letter}N{lanes}{'v' * arity}_{symbol}"
        if features.get(feature) and llvm.address_of_symbol(name) is not None:
            found.append((name, lanes))
    return tuple(found)


def declare(module: ir.Module, symbol: str, scalar: ir.Type, arity: int) -> ir.Function:
    """Return `symbol`, declared with its vector variants on first use in `module`."""
    known = module.globals.get(symbol)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(scalar, [scalar] * arity), name=symbol)
    add_attributes(function, "nounwind", "willreturn", "memory(none)")
    vectors = variants(symbol, arity, 8 if isinstance(scalar, ir.DoubleType) else 4)
    if vectors:
        mapping = ",".join(f"_ZGV_LLVM_N{lanes}{'v' * arity}_{symbol}({name})" for name, lanes in vectors)
        add_attributes(function, f'"vector-function-abi-variant"="{mapping}"')
        keep(module, [declare_vector(module, name, ir.VectorType(scalar, lanes), arity) for name, lanes in vectors])
    return function


def add_attributes(function: ir.Function, *attributes: str) -> None:
    """Add attributes that llvmlite's own list of known ones lacks."""
    for attribute in attributes:
        set.add(function.attributes, attribute)


def declare_vector(module: ir.Module, name: str, vector: ir.Type, arity: int) -> ir.Constant:
    function = ir.Function(module, ir.FunctionType(vector, [vector] * arity), name=name)
    add_attributes(function, "nounwind", "willreturn", "memory(none)")
    return function.bitcast(ir.IntType(8).as_pointer())


def keep(module: ir.Module, pointers: list[ir.Constant]) -> None:
    """Name vector declarations in the module's one `llvm.compiler.used` list, so that they live until the vectoriser runs."""
    used = module.globals.get("llvm.compiler.used")
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(pointers[0].type, 0), "llvm.compiler.used")
        used.linkage, used.section, used.initializer = "appending", "llvm.metadata", ir.Constant(used.value_type, [])
    elements = [*used.initializer.constant, *pointers]
    used.value_type = ir.ArrayType(pointers[0].type, len(elements))
    used.type = used.value_type.as_pointer()
    used.initializer = ir.Constant(used.value_type, elements)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of libm: its name here, its C symbol for f64 (f32's adds an f), NumPy's form, operands."""

    name: str
    symbol: str
    plain: Callable[..., Any]
    arity: int = 1

    def operation(self) -> Operation:
        def emit(builder: ir.IRBuilder, kinds: Sequence[Any], values: Sequence[ir.Value]) -> ir.Value:
            symbol = self.symbol if kinds[0].itemsize == 8 else self.symbol + "f"
            return builder.call(declare(builder.module, symbol, values[0].type, self.arity), values)

        return Operation(self.name, among("f"), emit, self.plain)


FUNCTIONS = (
    Function("exp", "exp", np.exp),
    Function("log", "log", np.log),
    Function("sin", "sin", np.sin),
    Function("cos", "cos", np.cos),
    Function("tanh", "tanh", np.tanh),
)
OPERATIONS = tuple(function.operation() for function in FUNCTIONS)

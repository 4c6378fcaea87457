"""What a derivative written by hand for Numba needs: `njit`, vector math inside loops, BLAS without `np.dot`'s price.

LLVM's loop vectoriser replaces a scalar call by a vector one where the callee's declaration carries the attribute
`vector-function-abi-variant`. Here an intrinsic declares libm's functions so, naming the variants that glibc's libmvec
has for this processor. Elsewhere than on x86-64 Linux the calls stay scalar. `gemm` calls SciPy's BLAS by symbol.
"""

import ctypes
import functools
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from scipy.linalg import cython_blas

__all__ = ["cos", "erfc", "exp", "gemm", "log", "njit", "sin", "tanh"]

njit = functools.partial(numba.njit, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"})

BYTE_POINTER = ir.IntType(8).as_pointer()


def libmvec_lanes() -> dict[str, tuple[int, int]]:
    """Return libmvec's instruction sets on this processor and their lanes of (double, float); none without libmvec."""
    try:
        llvm.load_library_permanently("libm.so.6")
        llvm.load_library_permanently("libmvec.so.1")
    except RuntimeError:
        return {}
    features = llvm.get_host_cpu_features()
    known = {"e": ((8, 16), "avx512f"), "d": ((4, 8), "avx2")}
    return {isa: lanes for isa, (lanes, feature) in known.items() if features[feature]}


LANES = libmvec_lanes()


def vectorised(name: str) -> Any:
    """Return libm's function of one float, as a scalar call that the loop vectoriser knows how to widen."""

    @intrinsic
    def call(typing_context: Any, x: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Instruction:
            single = isinstance(args[0].type, ir.FloatType)
            return builder.call(declare(builder.module, name + "f" * single, args[0].type, int(single)), args)

        return x(x), codegen

    return call


def declare(module: ir.Module, symbol: str, scalar: ir.Type, width: int) -> ir.Function:
    """Return the declaration of `symbol(scalar) -> scalar` with its vector variants, made once a module."""
    if symbol in module.globals:
        return module.globals[symbol]
    function = ir.Function(module, ir.FunctionType(scalar, [scalar]), name=symbol)
    variants = {f"_ZGV{isa}N{lanes[width]}v_{symbol}": lanes[width] for isa, lanes in LANES.items()}
    mapping = ",".join(f"_ZGV_LLVM_N{lanes}v_{symbol}({name})" for name, lanes in variants.items())
    attributes = ["nounwind", "readnone", "willreturn"]
    if variants:
        attributes.append(f'"vector-function-abi-variant"="{mapping}"')
        keep(module, [declare_vector(module, name, ir.VectorType(scalar, lanes)) for name, lanes in variants.items()])
    for attribute in attributes:
        set.add(function.attributes, attribute)  # past llvmlite's list of the attributes it knows
    return function


def declare_vector(module: ir.Module, name: str, vector: ir.Type) -> ir.Constant:
    """Declare a vector variant and return a pointer to it."""
    return ir.Function(module, ir.FunctionType(vector, [vector]), name=name).bitcast(BYTE_POINTER)


def keep(module: ir.Module, pointers: list[ir.Constant]) -> None:
    """Add to the module's one `llvm.compiler.used` list, so that the declarations live until the vectoriser runs."""
    used = module.globals.get("llvm.compiler.used")
    elements = [*(used.initializer.constant if used else ()), *pointers]
    if used is None:
        used = ir.GlobalVariable(module, ir.ArrayType(BYTE_POINTER, 0), "llvm.compiler.used")
        used.linkage, used.section = "appending", "llvm.metadata"
    used.value_type = ir.ArrayType(BYTE_POINTER, len(elements))
    used.type = used.value_type.as_pointer()
    used.initializer = ir.Constant(used.value_type, elements)


cos, erfc, exp, log, sin, tanh = map(vectorised, ("cos", "erfc", "exp", "log", "sin", "tanh"))


def register_blas() -> None:
    """Make SciPy's `sgemm` and `dgemm` known to LLVM by name."""
    capsule_name = ctypes.pythonapi.PyCapsule_GetName
    capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    for name in ("sgemm", "dgemm"):
        capsule = cython_blas.__pyx_capi__[name]
        llvm.add_symbol(f"benchmarks_{name}", capsule_pointer(capsule, capsule_name(capsule)))


register_blas()


GEMM_PARAMETERS = "cciiispipispi"  # character, integer, scalar: by reference; p: a pointer already


@intrinsic
def fortran_gemm(typing_context, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc):
    """Call ?gemm of the dtype of `alpha`; matrices are given as addresses."""
    symbol = "benchmarks_sgemm" if alpha == types.float32 else "benchmarks_dgemm"
    kinds = {"c": ir.IntType(8), "i": ir.IntType(32)}

    def codegen(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Constant:
        def pass_on(kind: str, value: ir.Value) -> ir.Value:
            if kind == "p":
                return builder.inttoptr(value, BYTE_POINTER)
            value = builder.trunc(value, kinds[kind]) if kind in kinds else value
            return builder.bitcast(cgutils.alloca_once_value(builder, value), BYTE_POINTER)

        pointers = [pass_on(kind, value) for kind, value in zip(GEMM_PARAMETERS, args, strict=True)]
        call_type = ir.FunctionType(ir.VoidType(), [BYTE_POINTER] * len(pointers))
        builder.call(cgutils.get_or_insert_function(builder.module, call_type, symbol), pointers)
        return context.get_dummy_value()

    whole, address = types.intp, types.intp
    parameters = (whole,) * 5 + (alpha, address, whole, address, whole, alpha, address, whole)
    return types.void(*parameters), codegen


@njit
def gemm(alpha, a, transpose_a, b, transpose_b, beta, out):
    """Set `out` to `alpha op(a) @ op(b) + beta out`, for C-contiguous arrays and scalars of one dtype.

    Fortran reads a row-major matrix as its transpose, and out' = op(b)' @ op(a)'.
    """
    rows, columns = out.shape
    depth = a.shape[0] if transpose_a else a.shape[1]
    trans_a, trans_b = ord("T") if transpose_a else ord("N"), ord("T") if transpose_b else ord("N")
    fortran_gemm(  # pyright: ignore[reportCallIssue] (Numba passes the typing context)
        trans_b, trans_a, columns, rows, depth, alpha, b.ctypes.data, b.shape[1], a.ctypes.data, a.shape[1], beta,
        out.ctypes.data, columns,
    )  # fmt: skip

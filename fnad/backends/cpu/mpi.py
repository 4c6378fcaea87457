"""Collectives on arrays of a kernel: MPI by symbol, through a small function for each collective and dtype.

The constants of MPI are numbers in one library and addresses in another one. So they are in functions that are compiled
in each process, with the addresses of the functions of the MPI that mpi4py has loaded. Kernels call these functions by
names that do not depend on the library, so that their code can be kept on disk.
"""

from __future__ import annotations

import ctypes
import re
import sys
from functools import cache, partial
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from fnad.backends.cpu import codegen
from fnad.backends.cpu.blas import address
from fnad.backends.cpu.loader import link
from fnad.backends.cpu.ufunc_loops import WORD
from fnad.backends.llvm.emitter import Builder, Instructions, Kinds, Values
from fnad.backends.llvm.scalar import call
from fnad.kernel.collectives import COLLECTIVES, PREFIX

SENDING = {
    "psum": "%sent = call i32 @MPI_Allreduce(ptr %x, ptr %y, i32 %n, $DTYPE, $SUM, $WORLD)",
    "all_gather": "%sent = call i32 @MPI_Allgather(ptr %x, i32 %n, $DTYPE, ptr %y, i32 %n, $DTYPE, $WORLD)",
    "reduce_scatter": "%sent = call i32 @MPI_Reduce_scatter_block(ptr %x, ptr %y, i32 %n, $DTYPE, $SUM, $WORLD)",
    "broadcast": """call void @llvm.memcpy.p0.p0.i64(ptr %y, ptr %x, i64 %bytes, i1 false)
  %sent = call i32 @MPI_Bcast(ptr %y, i32 %n, $DTYPE, i32 %to, $WORLD)""",
    "reduce_to": """call void @llvm.memset.p0.i64(ptr %y, i8 0, i64 %bytes, i1 false)
  %sent = call i32 @MPI_Reduce(ptr %x, ptr %y, i32 %n, $DTYPE, $SUM, i32 %to, $WORLD)""",
}

CODE = """
define i32 @$SYMBOL(ptr %x, ptr %y, i64 %count, i64 %code, i64 %root, i64 %ranks) {
entry:
  %mine = alloca [2 x i64]
  %most = alloca [2 x i64]
  %fits = icmp eq i64 %ranks, $RANKS
  br i1 %fits, label %compare, label %other
compare:
  %second = getelementptr i64, ptr %mine, i64 1
  %negative = sub i64 0, %code
  store i64 %code, ptr %mine
  store i64 %negative, ptr %second
  %compared = call i32 @MPI_Allreduce(ptr %mine, ptr %most, i32 2, $NUMBER, $MAX, $WORLD)
  %is_compared = icmp eq i32 %compared, 0
  br i1 %is_compared, label %agree, label %failed
agree:
  %greatest = load i64, ptr %most
  %place = getelementptr i64, ptr %most, i64 1
  %least = load i64, ptr %place
  %difference = add i64 %greatest, %least
  %is_same = icmp eq i64 %difference, 0
  br i1 %is_same, label %send, label %differ
send:
  %n = trunc i64 %count to i32
  %to = trunc i64 %root to i32
  %bytes = mul i64 %count, $SIZE
  $SENDING
  %is_sent = icmp eq i32 %sent, 0
  br i1 %is_sent, label %done, label %failed
done:
  ret i32 0
differ:
  ret i32 1
failed:
  ret i32 2
other:
  ret i32 3
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
"""A function that returns 0, or which of the faults it ended in; constants of MPI and the process begin with $."""


def emit(routine: str, builder: Builder, kinds: Kinds, values: Values) -> None:
    """Emit the call of a collective."""
    x, y, *numbers = values[:6]
    status, *faults = values[6:]
    symbol = f"{routine}_{kinds[0].dtype.char}"
    registered(symbol)
    failure = call(builder, symbol, WORD, address(builder, x), address(builder, y), *numbers)
    for number, fault in enumerate(faults, 1):
        with builder.if_then(builder.icmp_unsigned("==", failure, WORD(number)), likely=False):
            builder.store(fault, status)


def register(symbol: str) -> None:
    """Register a symbol again; raises `LookupError` if there is no MPI."""
    registered(symbol)


@cache
def registered(symbol: str) -> Any:
    """The engine of the function of a symbol, which is registered with LLVM."""
    mpi = sys.modules["mpi4py.MPI"]
    name, _, letter = symbol.removeprefix(PREFIX).rpartition("_")
    constants = {"NUMBER": mpi.INT64_T, "SUM": mpi.SUM, "MAX": mpi.MAX, "WORLD": mpi.COMM_WORLD}
    constants["DTYPE"] = mpi.Datatype.fromcode(letter)
    words = {word: _constant(mpi, value) for word, value in constants.items()}
    words |= {"SYMBOL": symbol, "RANKS": str(mpi.COMM_WORLD.Get_size()), "SIZE": str(np.dtype(letter).itemsize)}
    text = _replaced(CODE, {"SENDING": _replaced(SENDING[name], words), **words})
    engine = link(codegen.object_code(llvm.parse_assembly(_with_addresses(text, mpi))))
    llvm.add_symbol(symbol, engine.get_function_address(symbol))
    return engine


def _replaced(text: str, words: dict[str, str]) -> str:
    return re.sub(r"\$([A-Z]+)", lambda match: words[match[1]], text)


def _constant(mpi: Any, value: Any) -> str:
    """A constant of MPI, which is a number or an address, as an operand."""
    handle = mpi._handleof(value)
    return f"ptr inttoptr (i64 {handle} to ptr)" if mpi._sizeof(value) == 8 else f"i32 {_signed(handle)}"


def _signed(handle: int) -> int:
    return handle - 2**32 if handle >= 2**31 else handle


def _with_addresses(text: str, mpi: Any) -> str:
    """The code with the addresses of MPI's functions, which are not among the symbols of the process."""
    library = ctypes.CDLL(str(mpi.__file__))

    def found(match: re.Match[str]) -> str:
        return f"inttoptr (i64 {ctypes.cast(library[match[1]], ctypes.c_void_p).value} to ptr)"

    return re.sub(r"@(MPI_\w+)", found, text)


INSTRUCTIONS: Instructions = {routine: partial(emit, routine) for routine in COLLECTIVES}
"""The emitters of collectives."""

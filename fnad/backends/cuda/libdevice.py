"""NVIDIA's libdevice: the elementary functions as LLVM code, of which a kernel gets the ones that it calls.

The bitcode is in the package nvidia-nvvm, in every CUDA toolkit, and in Triton. It is parsed once in a process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm

from fnad.backends.cuda.tools import file_of
from fnad.errors import LoweringError

FILE = "libdevice.10.bc"
PACKAGE = "nvidia-nvvm"
METADATA = re.compile(r", ![a-z.]+ !\d+")
NAME = re.compile(r'@"?([\w.$]+)"?')

REDUCED = re.compile(
    r"(%\d+) = sitofp i64 (%\d+) to double\n +(%\d+) = fmul double \1, 0x3BF921FB54442D19\n +(%\d+) = fptrunc .*"
)
"""The end of the reduction of a large angle in single precision: 64 bits of a fraction of a quarter turn as radians."""

CALL = r"\1 = add i64 \2, 0\n  \3 = add i64 \1, 0\n  \4 = call float @fnad_radians(i64 \3)"

RADIANS = """
define internal float @fnad_radians(i64 %fraction) {
  %zeros = call i64 @llvm.ctlz.i64(i64 %fraction, i1 false)
  %shift = and i64 %zeros, 63
  %leading = shl i64 %fraction, %shift
  %wide = zext i64 %leading to i128
  %product = mul i128 %wide, 14488038916154245685
  %upper = lshr i128 %product, 64
  %digits = trunc i128 %upper to i64
  %number = uitofp i64 %digits to float
  %exponent = sub i64 64, %shift
  %word = trunc i64 %exponent to i32
  %bits = shl i32 %word, 23
  %unit = bitcast i32 %bits to float
  %radians = fmul float %number, %unit
  ret float %radians
}
"""
"""The same without double precision, of which a GPU for graphics has little: by 2⁶³ · π/2, in integers of 128 bits."""


@dataclass(frozen=True, slots=True)
class Libdevice:
    """The functions, declarations and tables of libdevice, by name, and the types and attributes that they refer to."""

    parts: dict[str, str]
    shared: str

    def needed(self, names: Iterable[str]) -> list[str]:
        """The names of all that these functions call, they themselves included."""
        found: dict[str, None] = {}
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in found and name in self.parts:
                found[name] = None
                pending += NAME.findall(self.parts[name])
        return list(found)


@cache
def libdevice() -> Libdevice:
    """The library, read from its file; raises `LoweringError` if there is none."""
    module = llvm.parse_bitcode(path().read_bytes())
    text = METADATA.sub("", str(module))
    parts: dict[str, str] = {}
    for found in re.finditer(r"^(?:define .*?^\}|declare .*?$|@.*?$)", text, re.DOTALL | re.MULTILINE):
        part = REDUCED.sub(CALL, found[0])
        name = NAME.search(part)
        assert name is not None
        parts[name[1]] = re.sub(r"^define (internal )?", "define internal ", part)
    parts |= {"fnad_radians": RADIANS, "llvm.ctlz.i64": "declare i64 @llvm.ctlz.i64(i64, i1)"}
    return Libdevice(parts, "\n".join(re.findall(r"^(?:attributes |%[\w.]+ = type ).*$", text, re.MULTILINE)))


@cache
def path() -> Path:
    """The file with the bitcode."""
    found = file_of(PACKAGE, FILE, "nvvm/libdevice")
    if found is None:
        raise LoweringError(
            f"kernels for CUDA need NVIDIA's {FILE}, which is not here: pip install '{PACKAGE}==13.0.*' brings it"
        )
    return found

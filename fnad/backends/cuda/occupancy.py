"""The threads of a launch for which a multiprocessor has room, from NVIDIA's assembler's report on the kernel.

A block stays on one multiprocessor, which has room for so many threads and blocks, registers and bytes of shared memory
(CUDA Programming Guide, section 5.1, "Technical specifications per compute capability"). The share of its threads that
the blocks there have is the occupancy. Registers are given to a warp at a time, 256 together, by the one of four
partitions that it runs on, which has a fourth of them; shared memory by 128 bytes, with 1,024 of each block for the
system.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fnad.backends.cuda.ptx import ptx_of_all
from fnad.backends.cuda.tools import assembly_report
from fnad.errors import LoweringError
from fnad.kernel.launches import Launch
from fnad.records import NamedTuple

WARP, PARTITIONS, REGISTERS, REGISTERS_AT_ONCE = 32, 4, 65536, 256
SHARED_AT_ONCE, SHARED_OF_SYSTEM = 128, 1024


class Multiprocessor(NamedTuple):
    """The capacity of a multiprocessor: threads, blocks, and bytes of shared memory."""

    threads: int
    blocks: int
    shared: int


MULTIPROCESSORS = {
    "sm_80": Multiprocessor(2048, 32, 164 * 1024),
    "sm_86": Multiprocessor(1536, 16, 100 * 1024),
    "sm_89": Multiprocessor(1536, 24, 100 * 1024),
    "sm_90": Multiprocessor(2048, 32, 228 * 1024),
    "sm_100": Multiprocessor(2048, 32, 228 * 1024),
    "sm_120": Multiprocessor(1536, 24, 100 * 1024),
}
"""By architecture."""


class Resources(NamedTuple):
    """The resources of a kernel: registers and bytes of local memory a thread, bytes of shared memory a block."""

    registers: int
    local: int
    shared: int


def resources(launches: Sequence[Launch], arch: str) -> list[Resources]:
    """The resources of each kernel; raises `LoweringError` if NVIDIA's assembler is missing."""
    report = assembly_report(ptx_of_all(launches, arch), arch)
    found = {text.split("'")[1]: text for text in report.split("Compiling entry function ")[1:]}
    return [_parsed(found[launch.kernel.name]) for launch in launches]


def _parsed(text: str) -> Resources:
    patterns = r"Used (\d+) registers", r"(\d+) bytes stack frame", r"(\d+) bytes smem"
    return Resources(*(int(found[1]) if (found := re.search(p, text)) else 0 for p in patterns))


def occupancy(taken: Resources, threads: int, arch: str) -> float:
    """The share of the threads of a multiprocessor that blocks of so many threads have at once."""
    known = MULTIPROCESSORS.get(arch.rstrip("af"))
    if known is None:
        raise LoweringError(f"the occupancy of {arch} is not known here, but of {', '.join(MULTIPROCESSORS)}")
    warps = -(-threads // WARP)
    registers = _rounded(taken.registers * WARP, REGISTERS_AT_ONCE)
    with_registers = PARTITIONS * (REGISTERS // PARTITIONS // registers)
    shared = _rounded(taken.shared + SHARED_OF_SYSTEM, SHARED_AT_ONCE)
    blocks = min(known.blocks, min(known.threads // WARP, with_registers) // warps, known.shared // shared)
    return blocks * warps * WARP / known.threads


def _rounded(number: int, unit: int) -> int:
    return -(-number // unit) * unit

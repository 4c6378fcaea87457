"""The launches and products of a program as lines for people, by what NVIDIA's assembler says where it is there.

A block stays on one multiprocessor, which has room for so many threads and blocks, registers and bytes of shared memory
(CUDA Programming Guide, section 5.1, "Technical specifications per compute capability"). The share of its threads that
the blocks there have is the occupancy. Registers are given to a warp at a time, 256 together, by the one of four
partitions that it runs on, which has a fourth of them; shared memory by 128 bytes, with 1,024 of each block for the
system.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from fnad.backends.cuda.captures import nodes_of
from fnad.backends.cuda.ptx import ptx_of_all
from fnad.backends.cuda.tools import assembly_report
from fnad.errors import LoweringError
from fnad.kernel.launches import DeviceControl, DevicePlan, DeviceProducts, DeviceStep, Launch
from fnad.kernel.traffic import additions, moved

ARCH = "sm_90"
"""The architecture of texts, which no GPU is asked for."""


def launch_lines(planned: DevicePlan, arch: str = ARCH) -> Iterator[str]:
    """Each launch: its grid, the bytes that it reads and writes, and what it takes of a multiprocessor."""
    launches = list(planned.launches.values())
    try:
        taken = [_taken(found, launch, arch) for found, launch in zip(resources(launches, arch), launches, strict=True)]
        missing = ""
    except LoweringError as error:
        taken, missing = [""] * len(launches), f"registers and occupancy are not known: {error.what}"
    sizes = {b.name: b.aval.size for b in (*planned.loops.inputs, *planned.loops.outputs)}
    sizes |= {slot.name: slot.size for slot in planned.slots}
    for launch, text in zip(launches, taken, strict=True):
        read, written = moved(launch, sizes)
        grid = f"{launch.blocks} x {launch.threads} threads"
        atomics = f", {count:,} atomic additions" if (count := additions(launch)) else ""
        yield f"{launch.kernel.name}: {grid}, {read:,} bytes read, {written:,} written{atomics}{text}"
    if missing and launches:
        yield missing
    yield from chain.from_iterable(map(product_lines, planned.steps))


def product_lines(step: DeviceStep) -> Iterator[str]:
    """The matrix products of a step: how many one run of it makes, their sizes, and the bytes that these take."""
    match step:
        case DeviceControl():
            for body in step.bodies:
                yield from chain.from_iterable(map(product_lines, body))
        case DeviceProducts(_, product):
            m, k, n, count = product.m, product.k, product.n, nodes_of(step)
            size = count * product.out.buffer.dtype.itemsize
            read = size * (m * k + k * n + (m * n if product.beta else 0))
            sizes = f"{count:,} of [{m},{k}] · [{k},{n}]"
            yield f"products by cuBLAS: {sizes}, {read:,} bytes read, {size * m * n:,} written"
        case _:
            pass


def _taken(found: Resources, launch: Launch, arch: str) -> str:
    share = occupancy(found, launch.threads, arch)
    local = f", {found.local:,} bytes of local memory" if found.local else ""
    return f", {found.registers} registers{local}, {found.shared:,} bytes shared, occupancy {share:.0%} of {arch}"


# ---- occupancy -------------------------------------------------------------------------------------------------------

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

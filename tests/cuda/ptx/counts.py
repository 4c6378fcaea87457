"""What kernels do to memory and to a multiprocessor, counted in emulation, and the speed that a model allows them.

    python -m tests.cuda.ptx.counts [NAME ...]      the table of docs/gpu.md, of the programs with these words

Arrays are as large as on a GPU, of which two blocks are run; counts are scaled to the grid. The time of a launch is the
longest of what memory, caches, instruction issue and each pipe of an H100 take, and of the loads that are under way at
once. It is a bound: no launch is faster, many are slower. Registers, shared memory and the loads before a use are those
of NVIDIA's ptxas and nvdisasm; kernels by hand, in `by_hand.cu`, are compiled by nvcc.
"""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import fnad
from fnad.backends.cuda.explain import Resources, occupancy, resources
from fnad.backends.cuda.ptx import ptx_of_all
from fnad.backends.cuda.target import CUDA
from fnad.backends.cuda.tools import output, program
from fnad.kernel.device import TICKET
from fnad.kernel.launches import DevicePlan, Launch, launches_of
from fnad.kernel.statements import Apply, Name, walk
from fnad.lower.lowering import lower
from tests.cuda.ptx.emulator import SECTOR, WARP, Memory, Program, Stats
from tests.cuda.test_grid import program_of

ARCH = "sm_90"
MULTIPROCESSORS, CLOCK, BANDWIDTH, WARPS = 132, 1.755e9, 3.35e12, 64
REACHED = 0.92
"""The share of the bandwidth that a copy reaches."""

CACHE, LATENCY, LAUNCH = 5.7e12, 700e-9, 2e-6
"""Bytes a second from the second-level cache, and seconds of a load and of a launch."""

LANES = {"fp32": 128, "fp64": 64, "int": 64, "mufu": 16, "convert": 16, "memory": 32, "shuffle": 32, "control": 64}
"""Results a clock of each pipe of a multiprocessor of compute capability 9.0 (CUDA Programming Guide)."""

INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*);")


@dataclass
class Count:
    """What a launch does, scaled to its grid; `ahead` are the bytes that a thread loads before it uses one."""

    taken: Resources
    blocks: int
    threads: int
    ahead: float
    least_sectors: float = 0
    moved: float = 0
    moved_read: float = 0
    sectors: float = 0
    written_sectors: float = 0
    conflicts: float = 1
    instructions: float = 0
    pipes: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def issued(self) -> float:
        """Instructions of the machine for all warps."""
        return sum(self.pipes.values())

    @property
    def seconds(self) -> float:
        warps = min(
            occupancy(self.taken, self.threads, ARCH) * WARPS, self.blocks * self.threads / WARP / MULTIPROCESSORS
        )
        return LAUNCH + max(
            self.moved / (BANDWIDTH * REACHED),
            SECTOR * self.sectors / (MULTIPROCESSORS * 128 * CLOCK),
            (self.moved_read + SECTOR * self.written_sectors) / CACHE,  # stores are put together behind the cache
            self.issued / (MULTIPROCESSORS * 4 * CLOCK),
            self.moved * LATENCY / (MULTIPROCESSORS * warps * WARP * self.ahead),
            *(
                count * WARP / (MULTIPROCESSORS * LANES[pipe] * CLOCK)
                for pipe, count in self.pipes.items()
                if pipe in LANES
            ),
        )


@dataclass(frozen=True)
class Row:
    """The figures of a program: bytes and sectors, of the least, instructions of an element, the share of a copy."""

    launches: int
    least: int
    moved: float
    sectors: float
    conflicts: float
    instructions: float
    share: float

    def __str__(self) -> str:
        numbers = f"{self.moved:.2f} | {self.sectors:.2f} | {self.instructions:.0f} | {self.share:.0%}"
        return f"{self.launches} | {self.least / 1e6:,.0f} | {numbers}"


def row(counts: list[Count], least: int, elements: int) -> Row:
    total = sum(count.seconds for count in counts)
    return Row(
        len(counts), least, sum(count.moved for count in counts) / least,
        sum(count.sectors for count in counts) / sum(count.least_sectors for count in counts),
        max(count.conflicts for count in counts), sum(WARP * count.issued for count in counts) / elements,
        least / (BANDWIDTH * REACHED) / total,
    )  # fmt: skip


def contents(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """Numbers that follow from their places."""
    if dtype.kind in "iu":
        return lambda place: (place // dtype.itemsize % 7).astype(dtype)
    return lambda place: (0.5 + (place // dtype.itemsize * 2654435761 % 1048576) / 1048576).astype(dtype)


def of_program(function: Any, arguments: Any) -> Row:
    """The figures of a program."""
    plan = DevicePlan(lower(program_of(function, arguments), CUDA), CUDA)
    launches = [launch for step in plan.steps for launch in launches_of(step)]
    text, memory = ptx_of_all(launches, ARCH), Memory(1 << 20)
    emulated, taken, ahead = Program(text, memory, counts=True), resources(launches, ARCH), bytes_ahead(text)
    outside = (*plan.loops.inputs, *plan.loops.outputs)
    sizes = {"status": (3, np.dtype("i8")), "counters": (plan.counters, np.dtype("i8"))}
    sizes |= {b.name: (b.aval.size, b.aval.dtype) for b in outside} | {s.name: (s.size, s.dtype) for s in plan.slots}
    zeros = lambda place: np.zeros(len(place), np.int64)  # noqa: E731
    given = {"status": zeros, "counters": zeros}
    marks = {name: launch.blocks // 2 for launch in launches for name in marks_of(launch)}
    places = {name: set_marks(memory, sizes[name][0], ticket) for name, ticket in marks.items()}
    places |= {
        name: memory.make_up(size * dtype.itemsize, given.get(name) or contents(dtype))
        for name, (size, dtype) in sizes.items()
        if name not in marks
    }
    counts = [
        counted(emulated, memory, launch, used, ahead, places) for launch, used in zip(launches, taken, strict=True)
    ]
    elements = max(np.size(x) for x in fnad.tree.leaves(arguments))
    return row(counts, sum(b.aval.nbytes for b in outside), elements)


def marks_of(launch: Launch) -> Iterator[str]:
    """The arrays of marks and tickets."""
    for expression in (e for statement in walk(launch.kernel.body) for e in statement.expressions()):
        match expression:
            case Apply(operation, (Name(name), _)) if operation is TICKET:
                yield name
            case _:
                pass


def set_marks(memory: Memory, size: int, ticket: int) -> int:
    """The address of marks that are all set, and of a ticket behind them."""
    place = memory.allocate(8 * size)
    marks = memory.array(place, 8 * size).view(np.int64)
    marks[:-1], marks[-1] = 1, ticket
    memory.mark(place, 8 * size)
    return place


def counted(
    emulated: Program, memory: Memory, launch: Launch, taken: Resources, ahead: dict[str, float], places: dict[str, int]
) -> Count:
    name = launch.kernel.name
    parameters = b"".join(struct.pack("<Q", places[p.name]) for p in launch.kernel.parameters)
    return count_of(emulated, memory, name, (launch.blocks, launch.threads), parameters, taken, ahead[name])


def count_of(
    emulated: Program,
    memory: Memory,
    name: str,
    grid: tuple[int, int],
    parameters: bytes,
    taken: Resources,
    ahead: float,
) -> Count:
    """The counts of two blocks, scaled to the grid."""
    blocks, threads = grid
    chosen = sorted({blocks // 3, blocks * 5 // 8})
    total, touched = Stats(), list[set[int]]()
    for number in chosen:
        stats = emulated.launch(name, blocks, threads, parameters, [number])
        touched += [stats.touched_read, stats.touched_written]
        total.add(stats)
    scale = blocks / len(chosen)
    count = Count(taken, blocks, threads, ahead)
    for start, size in zip(memory.starts[1:], memory.sizes[1:], strict=True):
        low, high = start // SECTOR, -(-(start + size) // SECTOR)
        for kind in (0, 1):
            sets = [{s for s in one if low <= s < high} for one in touched[kind::2]]
            single, union = sum(map(len, sets)), len(set[int]().union(*sets))
            shared = len(chosen) > 1 and union < 0.6 * single  # what all blocks read comes from the cache
            part = SECTOR * (union if shared else min(single * scale, -(-size // SECTOR)))
            count.moved += part
            count.moved_read += part if kind == 0 else 0
    count.least_sectors, count.written_sectors = total.least_sectors * scale, total.written_sectors * scale
    count.sectors = (total.read_sectors + total.written_sectors) * scale
    count.conflicts = total.shared_waves / total.shared_least if total.shared_least else 1
    count.instructions = total.warp_instructions * scale
    count.pipes = {pipe: number * scale for pipe, number in total.warps.items()}
    return count


def bytes_ahead(text: str) -> dict[str, float]:
    """The most bytes of global loads of a warp before one of them is used, by kernel, in the machine's instructions."""
    assemble, disassemble = program("nvidia-cuda-nvcc", "ptxas"), program("nvidia-cuda-nvdisasm", "nvdisasm")
    with TemporaryDirectory() as folder:
        source, code = Path(folder, "k.ptx"), Path(folder, "k.cubin")
        source.write_text(text)
        output(assemble, f"-arch={ARCH}", str(source), "-o", str(code))
        listing = output(disassemble, "-c", str(code))
    parts = (part.split("\n", 1) for part in listing.split(".section\t.text.")[1:])
    return {name.split(",")[0].strip(): max(map(float, _runs(body)), default=4.0) for name, body in parts}


def _runs(body: str) -> Iterator[int]:
    """The bytes of loads that are under way at each load."""
    pending, size = set[int](), 0
    for line in body.splitlines():
        if (match := INSTRUCTION.match(line)) is None:
            continue
        registers = [int(number) for number in re.findall(r"\bR(\d+)\b", match[2])]
        if match[1].startswith("LDG") and not {*registers[1:]} & pending:
            width = 16 if ".128" in match[1] else 8 if ".64" in match[1] else 4
            pending |= {*range(registers[0], registers[0] + width // 4)}
            size += width
            yield size
        elif {*registers} & pending:
            pending, size = set(), 0


# ---- by hand -----------------------------------------------------------------------------------------------------

N, ROWS, COLUMNS = 10**8, 10**5, 1000
SOURCE = Path(__file__).with_name("by_hand.cu")
F4, F8 = np.dtype("f4"), np.dtype("f8")
GRID, PARTS, TILES = 4224, 264, 6104
LONG = [np.int64(N)]
BY_HAND: dict[str, tuple[int, dict[str, tuple[int, int, list[tuple[int, Any]], list[Any]]]]] = {
    "copy": (8 * N, {"copy": (GRID, 256, [(N, F4), (N, F4)], LONG)}),
    "elements": (8 * N, {"elements": (GRID, 256, [(N, F4), (N, F4), (GRID, F4)], LONG)}),
    "elements in double precision": (
        16 * N, {"elements_double": (2112, 256, [(N, F8), (N, F8), (2112, F8)], LONG)},
    ),
    "sum": (4 * N, {"sum": (2112, 256, [(N, F4), (2112, F4)], LONG)}),
    "columns": (
        4 * N, {"columns": (4224, 256, [(N, F4), (1056 * COLUMNS, F4)], [np.int32(ROWS), np.int32(COLUMNS)])},
    ),
    "softmax": (8 * N, {"softmax": (1056, 256, [(N, F4), (N, F4)], [])}),
    "cross-entropy": (12 * N, {"cross_entropy": (1056, 256, [(N, F4), (N, F4), (N, F4), (N, F4), (1056, F4)], [])}),
    "layer norm": (8 * N, {"layer_norm": (1056, 256, [(N, F4), (COLUMNS, F4), (COLUMNS, F4), (N, F4)], [])}),
    "layer norm gradient": (
        12 * N,
        {
            "layer_norm_gradient": (
                792, 256, [(N, F4), (COLUMNS, F4), (N, F4), (N, F4), (792 * COLUMNS, F4), (792 * COLUMNS, F4)], [],
            ),
        },
    ),
    "Black-Scholes": (
        24 * N, {"black_scholes": (GRID, 256, [*[(N, F4)] * 6, (3 * GRID, F4), (1, F4), (1, F4)], LONG)},
    ),
    "normalization over the first axis": (
        8 * N,
        {
            "moments": (4 * PARTS, 256, [(N, F4), *[(PARTS * COLUMNS, F4)] * 2], [np.int32(ROWS), np.int32(COLUMNS)]),
            "whole_moments": (
                32, 1024, [*[(PARTS * COLUMNS, F4)] * 2, *[(COLUMNS, F4)] * 2], [np.int32(PARTS), np.int32(COLUMNS)],
            ),
            "normalized": (GRID, 256, [(N, F4), (COLUMNS, F4), (COLUMNS, F4), (N, F4)], []),
        },
    ),
    "long running sum": (
        8 * N,
        {
            "tiles": (TILES, 256, [(N, F4), (TILES, F4)], LONG),
            "starts": (1, 1024, [(TILES, F4)], [np.int32(TILES)]),
            "running": (TILES, 256, [(N, F4), (TILES, F4), (N, F4)], LONG),
        },
    ),
}  # fmt: skip
"""The least bytes of the programs by hand, and the blocks, threads, arrays and numbers of their kernels."""


def by_hand() -> Iterator[tuple[str, Row]]:
    """The figures of the programs by hand."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "k.ptx")
        output(program("nvidia-cuda-nvcc", "nvcc"), "-O3", f"-arch={ARCH}", "-ptx", str(SOURCE), "-o", str(file))
        text = file.read_text()
        assemble = program("nvidia-cuda-nvcc", "ptxas")
        command = [assemble, "-v", f"-arch={ARCH}", str(file), "-o", str(Path(folder, "k.cubin"))]
        report = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    parts = {part.split("'")[1]: part for part in report.split("Compiling entry function ")[1:]}
    ahead = bytes_ahead(text)

    def count(name: str, blocks: int, threads: int, arrays: list[tuple[int, Any]], numbers: list[Any]) -> Count:
        memory = Memory(1 << 20)
        emulated = Program(text, memory, counts=True)
        addresses = [memory.make_up(size * dtype.itemsize, contents(dtype)) for size, dtype in arrays]
        given = b"".join([*(struct.pack("<Q", a) for a in addresses), *(number.tobytes() for number in numbers)])
        found = (re.search(pattern, parts[name]) for pattern in (r"Used (\d+) registers", r"(\d+) bytes smem"))
        registers, shared = (int(match[1]) if match else 0 for match in found)
        return count_of(emulated, memory, name, (blocks, threads), given, Resources(registers, 0, shared), ahead[name])

    for label, (least, launches) in BY_HAND.items():
        yield label, row([count(name, *launch) for name, launch in launches.items()], least, N)


if __name__ == "__main__":
    from tests.cuda.test_traffic import TABLE

    print(
        "| program | launches | least MB | moved | sectors | instructions | share |",
        "| --- " + "| ---: " * 6 + "|",
        sep="\n",
    )
    words = sys.argv[1:]
    for label, (function, arguments) in TABLE.items():
        if not words or any(word in label for word in words):
            print(f"| {label} | {of_program(function, arguments)} |", flush=True)
    if not words or "hand" in words:
        for label, figures in by_hand():
            print(f"| by hand: {label} | {figures} |", flush=True)

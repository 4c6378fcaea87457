"""An emulator of PTX: the threads of many blocks at once, as elements of NumPy arrays.

Each thread has a place in the code of its own. At each step the threads at the earliest place run a basic block
together, those at a barrier or a warp's instruction wait for the others. So threads that diverge come together again,
and one that others wait for in vain is found. What a GPU would do silently wrong is a `Finding`: accesses out of
bounds, misaligned or of memory that nothing was written to, data races, barriers that not all threads of a warp come to
together, and loads through the read-only path of what the kernel writes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.cuda.ptx import table
from tests.cuda.ptx.parser import SIZES, Function, Instruction, Module, UnsupportedError, Variable, bits_of, parse
from tests.cuda.ptx.table import BITS, DTYPES

BASE = 0x7F0000000000
SHARED_WINDOW, LOCAL_WINDOW = 0x7E0000000000, 0x7D0000000000
WARP, SECTOR, LINE = 32, 32, 128
LANES = 16384
"""The threads that run at once, in whole blocks."""

STRONG = {"acquire", "release", "relaxed"}
"""Loads and stores of marks, by what they order."""

MOST_WAITS = 2_000
"""The times that threads read a mark, while no others run, before they wait for ever."""

STACK = 4096
"""Bytes of local memory of a thread."""


class EmulationError(Exception):
    """What a GPU would stop for, or should."""


@dataclass(frozen=True)
class Finding:
    """Something wrong that a kernel does."""

    kind: str
    kernel: str
    text: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} in {self.kernel}: {self.text}: {self.detail}"


@dataclass
class Stats:
    """What a launch does: instructions of warps and threads by pipe, memory, barriers."""

    warps: Counter[str] = field(default_factory=Counter)
    threads: Counter[str] = field(default_factory=Counter)
    warp_instructions: int = 0
    thread_instructions: int = 0
    read: int = 0
    written: int = 0
    read_sectors: int = 0
    written_sectors: int = 0
    requests: int = 0
    least_sectors: int = 0
    touched_read: set[int] = field(default_factory=set)
    touched_written: set[int] = field(default_factory=set)
    shared_waves: int = 0
    shared_least: int = 0
    barriers: int = 0
    atomics: int = 0

    def add(self, other: Stats) -> None:
        for name, value in vars(other).items():
            mine = getattr(self, name)
            setattr(self, name, mine | value if isinstance(value, set) else mine + value)


# ---- memory ----------------------------------------------------------------------------------------------------------


class Memory:
    """The memory of a device: allocations with guards between them, and which bytes have been written."""

    GUARD = 256

    def __init__(self, size: int = 1 << 28) -> None:
        self.bytes = np.zeros(size, np.uint8)
        self.written = np.zeros(size, np.bool_)
        self.owner = np.zeros(size >> 4, np.int32)
        self.views = {n: self.bytes.view(BITS[n]) for n in (1, 2, 4, 8)}
        self.starts, self.sizes, self.live = [0], [0], [False]
        self.top = self.GUARD
        self.free: defaultdict[int, list[int]] = defaultdict(list)
        self.made_up: dict[int, Any] = {}

    def room(self, size: int) -> int:
        """The bytes of an allocation, in whole guards."""
        return -(-max(size, 1) // self.GUARD) * self.GUARD

    def enter(self, place: int, size: int) -> int:
        """The number of a new allocation."""
        self.starts.append(place)
        self.sizes.append(size)
        self.live.append(True)
        return len(self.starts) - 1

    def make_up(self, size: int, contents: Any) -> int:
        """The address of memory that takes none: what is in it is a function of the places, and stores are dropped.

        For launches on arrays that are too large, of which some blocks are run to count what they do.
        """
        place = self.top
        self.top += self.room(size) + self.GUARD
        self.made_up[self.enter(place, size)] = contents
        return BASE + place

    def allocate(self, size: int) -> int:
        """The address of new memory, which has no contents; what was freed is handed out again."""
        room = self.room(size)
        if self.free[room]:
            place = self.free[room].pop()
        else:
            place = self.top
            self.top += room + self.GUARD
            if self.top > self.bytes.size:
                raise EmulationError("the emulator's memory is full")
        self.owner[place >> 4 : (place + room) >> 4] = self.enter(place, size)
        self.bytes[place : place + room] = 0xA5
        self.written[place : place + room] = False
        return BASE + place

    def release(self, address: int) -> None:
        place = address - BASE
        number = int(self.owner[place >> 4])
        room = self.room(self.sizes[number])
        self.live[number] = False
        self.owner[place >> 4 : (place + room) >> 4] = 0
        self.bytes[place : place + room] = 0x5A
        self.free[room].append(place)

    def array(self, address: int, size: int) -> np.ndarray:
        return self.bytes[address - BASE : address - BASE + size]

    def mark(self, address: int, size: int) -> None:
        self.written[address - BASE : address - BASE + size] = True

    def number_of(self, address: int) -> int:
        place = address - BASE
        if self.made_up:
            number = int(np.searchsorted(self.starts, place, "right")) - 1
            return number if number > 0 and place <= self.starts[number] + self.sizes[number] else 0
        return int(self.owner[place >> 4]) if 0 <= place < self.bytes.size else 0


class Marks:
    """Stores with release semantics, and what threads that load them with acquire semantics may read then."""

    def __init__(self) -> None:
        self.releases: Counter[int] = Counter()
        self.stored: dict[tuple[int, int], tuple[int, int]] = {}
        self.seen: Counter[tuple[int, int]] = Counter()

    def note(self, kind: str, array: int, places: Any, who: Any) -> None:
        """Note such stores or loads: a thread sees what another one wrote before so many of its releases."""
        for place, thread in zip(places.tolist(), who.tolist(), strict=True):
            if kind == "release":
                self.releases[thread] += 1
                self.stored[array, place] = thread, self.releases[thread]
            elif (array, place) in self.stored:
                other, count = self.stored[array, place]
                self.seen[thread, other] = max(self.seen[thread, other], count)


class Shadow:
    """Who has read and written each byte of a piece of memory, and when, to find races."""

    def __init__(self, size: int) -> None:
        self.writer, self.reader = (np.full(size, -1, np.int64) for _ in range(2))
        self.w_epoch, self.w_warp_epoch, self.r_epoch, self.r_warp_epoch = (np.zeros(size, np.int32) for _ in range(4))
        self.w_atomic, self.w_releases = np.zeros(size, np.bool_), np.zeros(size, np.int32)
        self.flags = np.zeros(size, np.uint8)
        self.through_nc = np.zeros(size, np.bool_)
        self.was_written = np.zeros(size, np.bool_)

    def access(
        self, place: Any, size: int, who: Any, threads: int, epoch: Any, warp_epoch: Any, kind: str, marks: Marks,
        *, writes: bool,
    ) -> str | None:  # fmt: skip
        """Note an access of bytes by threads, of a kind, and return what it is in conflict with.

        The kinds are "read", "nc" for ld.global.nc, "write", "atomic" and those of strong loads and stores.
        """
        a = (place[:, None] + np.arange(size)).reshape(-1)
        t, e, w = (np.repeat(x, size) for x in (who, epoch, warp_epoch))
        block, warp = t // threads, t // threads * 64 + t % threads // WARP
        problem = None
        p = self.writer[a]
        p_block, p_warp = p // threads, p // threads * 64 + p % threads // WARP
        together = (p_block != block) | ((self.w_epoch[a] == e) & ((p_warp != warp) | (self.w_warp_epoch[a] == w)))
        clash = (p >= 0) & (p != t) & together
        if kind in ("atomic", *STRONG):
            clash &= ~self.w_atomic[a]
        for n in np.flatnonzero(clash):
            clash[n] = not marks.seen[int(t[n]), int(p[n])] > self.w_releases[a[n]]
        if clash.any():
            n = int(np.argmax(clash))
            problem = f"{kind} by thread {int(t[n])} of what thread {int(p[n])} writes"
        if kind in STRONG and not writes:  # may be read at any time
            return problem
        if writes:
            r = self.reader[a]
            r_block, r_warp, f = r // threads, r // threads * 64 + r % threads // WARP, self.flags[a]
            now = self.r_epoch[a] == e
            near = (f & 2 > 0) | (r_warp != warp) | ((self.r_warp_epoch[a] == w) & ((r != t) | (f & 1 > 0)))
            clash = (r >= 0) & ((f & 4 > 0) | (r_block != block) | (now & near))
            if clash.any() and problem is None:
                n = int(np.argmax(clash))
                problem = f"{kind} by thread {int(t[n])} of what thread {int(r[n])} reads"
            order = np.argsort(a, kind="stable")
            same = (np.diff(a[order]) == 0) & (np.diff(t[order]) != 0)
            if same.any() and kind == "write" and problem is None:
                problem = "two threads write the same place at once"
            if self.through_nc[a].any() and problem is None:
                problem = "written, and loaded by ld.global.nc in the same launch"
            self.writer[a], self.w_epoch[a], self.w_warp_epoch[a] = t, e, w
            self.w_atomic[a] = kind != "write"
            self.w_releases[a] = [marks.releases[n] for n in t.tolist()] if marks.releases else 0
            self.was_written[a] = True
            return problem
        if kind == "nc":
            if self.was_written[a].any() and problem is None:
                problem = "ld.global.nc of what the same launch has written"
            self.through_nc[a] = True
        r = self.reader[a]
        r_block, r_warp = r // threads, r // threads * 64 + r % threads // WARP
        f = self.flags[a].copy()
        f[r < 0] = 0
        same_block, now = (r >= 0) & (r_block == block), self.r_epoch[a] == e
        f[same_block & ~now] &= 4
        near = same_block & now
        f[near & (r_warp != warp)] |= 2
        in_warp = near & (r_warp == warp)
        f[in_warp & (self.r_warp_epoch[a] != w)] &= 6
        f[in_warp & (self.r_warp_epoch[a] == w) & (r != t)] |= 1
        f[(r >= 0) & (r_block != block)] |= 4
        self.flags[a], self.reader[a], self.r_epoch[a], self.r_warp_epoch[a] = f, t, e, w
        order = np.argsort(a, kind="stable")
        a, t, block, warp = a[order], t[order], block[order], warp[order]
        same = np.diff(a) == 0
        for bit, key in ((1, t), (2, warp), (4, block)):
            twice = same & (np.diff(key) != 0)
            self.flags[a[1:][twice]] |= bit
        return problem


# ---- a launch --------------------------------------------------------------------------------------------------------


class Launch:
    """A kernel on a grid: the state that all its threads share."""

    def __init__(self, program: Program, kernel: Function, blocks: int, threads: int, parameters: bytes) -> None:
        self.program, self.kernel, self.blocks, self.threads, self.parameters = (
            program,
            kernel,
            blocks,
            threads,
            parameters,
        )
        memory = program.memory
        words = np.frombuffer(parameters[: len(parameters) // 8 * 8], np.uint64)
        given = {memory.number_of(int(x)) for x in words} | {memory.number_of(x) for x in program.addresses.values()}
        self.allowed = np.zeros(len(memory.starts), np.bool_)
        self.allowed[[n for n in given if n]] = True
        self.starts, self.sizes = np.array(memory.starts), np.array(memory.sizes)
        self.stats = Stats()
        self.shadows: dict[int, Shadow] = {}
        self.marks = Marks()
        if kernel.max_threads and threads > kernel.max_threads:
            raise EmulationError(f"{kernel.name}: {threads} threads, and .maxntid {kernel.max_threads}")
        if not 1 <= threads <= 1024 or not 1 <= blocks < 2**31:
            raise EmulationError(f"{kernel.name}: a grid of {blocks} blocks of {threads} threads")

    def run(self, some: Any = None, together: int = 1) -> Stats:
        """Run all blocks, or some, by their numbers; so many together wait for one another."""
        at_once = together * max(1, LANES // (together * self.threads))
        with np.errstate(all="ignore"):
            if some is not None:
                for number in some:
                    Chunk(self, [number]).run()
                return self.stats
            order = np.arange(self.blocks)
            if self.program.random is not None:
                self.program.random.shuffle(order)
            for first in range(0, self.blocks, at_once):
                Chunk(self, order[first : first + at_once]).run()
        return self.stats

    def note(self, kind: str, text: str, detail: str) -> None:
        finding = Finding(kind, self.kernel.name, text, detail)
        if len(self.program.findings) < 1000:
            self.program.findings.append(finding)
        if kind in self.program.fatal:
            raise EmulationError(str(finding))


class Chunk:
    """Blocks of a launch that run at the same time."""

    def __init__(self, launch: Launch, numbers: Any) -> None:
        self.launch, self.numbers, self.threads = launch, np.asarray(numbers), launch.threads
        self.count = count = len(numbers)
        self.lanes = count * self.threads
        lane = np.arange(self.lanes)
        self.block, self.tid = lane // self.threads, lane % self.threads
        self.warps_per_block = -(-self.threads // WARP)
        self.warp = self.block * self.warps_per_block + self.tid // WARP
        self.lane_id = self.tid % WARP
        self.who = self.numbers[self.block] * self.threads + self.tid
        size = max(launch.kernel.shared_size, 1)
        self.shared_stride = -(-size // 16) * 16
        self.shared = np.full(count * self.shared_stride, 0xA5, np.uint8)
        self.shared_views = {n: self.shared.view(BITS[n]) for n in (1, 2, 4, 8)}
        self.shared_written = np.zeros(self.shared.size, np.bool_)
        self.shared_shadow = Shadow(self.shared.size) if launch.program.finds_races else None
        self.stack: np.ndarray | None = None
        self.epoch = np.zeros(count, np.int32)
        self.warp_epoch = np.zeros(count * self.warps_per_block, np.int32)

    def local(self) -> np.ndarray:
        if self.stack is None:
            self.stack = np.full((self.lanes, STACK), 0xA5, np.uint8)
        return self.stack

    def run(self) -> None:
        kernel = self.launch.kernel
        frame = Frame(self, kernel, np.arange(self.lanes), 0)
        frame.parameters = {
            name: np.frombuffer(self.launch.parameters[o : o + size], np.uint8)[None]
            for name, size, o in kernel.parameters
        }
        frame.run()

    # ---- access to memory ----------------------------------------------------------------------------------------

    def check(self, space: str, address: Any, size: int, count: int, lanes: Any, ins: Instruction, kind: str) -> Any:
        """Check an access of `count` elements of `size` bytes by some threads; return places in the space's array."""
        launch, total = self.launch, size * count
        memory = launch.program.memory
        if np.any(address % np.uint64(total)):
            launch.note(
                "misaligned", ins.text, f"address {int(address[np.argmax(address % np.uint64(total) != 0)]):#x}"
            )
        if space == "global":
            place = (address - np.uint64(BASE)).astype(np.int64)
            if memory.made_up:
                number = np.maximum(np.searchsorted(launch.starts, place, "right") - 1, 0)
            else:
                inside = (place >= 0) & (place < memory.bytes.size)
                number = np.where(inside, memory.owner[np.where(inside, place, 0) >> 4], 0)
                number = np.where(number < launch.allowed.size, number, 0)
            end = launch.starts[number] + launch.sizes[number]
            ok = launch.allowed[number] & (place + total <= end)
            if not ok.all() and kind in ("read", "nc"):
                # Beyond the end, but in the 16 bytes of the last element: LLVM loads three numbers as four.
                near = launch.allowed[number] & (place < end) & (place + total <= -(-end // 16) * 16)
                if (near & ~ok).any():
                    n = int(np.argmax(near & ~ok))
                    launch.note(
                        "read beyond the end, within 16 bytes",
                        ins.text,
                        f"{int((place + total - end)[n])} bytes beyond {int(launch.sizes[number[n]])}",
                    )
                ok |= near
            if not ok.all():
                n = int(np.argmin(ok))
                off = int(place[n] - launch.starts[number[n]])
                launch.note(
                    "out of bounds",
                    ins.text,
                    f"thread {int(self.who[lanes[n]])}: byte {off} of {launch.sizes[number[n]]}",
                )
                where = f"thread {int(self.who[lanes[n]])}, byte {off} of {launch.sizes[number[n]]}"
                raise EmulationError(f"{ins.text}: out of bounds, {where}")
            if ins.name != "st" and not memory.made_up:
                for j in range(0, total, max(size, 1)):
                    if not (memory.written[place + j] | (place + j >= end)).all():
                        n = int(np.argmin(memory.written[place + j] | (place + j >= end)))
                        byte, end = place[n] + j - launch.starts[number[n]], launch.sizes[number[n]]
                        who = int(self.who[lanes[n]])
                        launch.note("uninitialised global", ins.text, f"thread {who}, byte {int(byte)} of {end}")
                        break
            if launch.program.finds_races:
                for one in np.unique(number):
                    shadow = launch.shadows.get(int(one))
                    if shadow is None:
                        shadow = launch.shadows[int(one)] = Shadow(-(-int(launch.sizes[one]) // 16) * 16)
                    mine = number == one
                    if kind in ("acquire", "release"):
                        launch.marks.note(kind, int(one), place[mine], self.who[lanes[mine]])
                    self.watch(shadow, place[mine] - launch.starts[one], total, lanes[mine], ins, kind, "global")
            if launch.program.counts:
                self.count_global(place, total, lanes, kind, number)
        elif space == "shared":
            inside = address + np.uint64(total) <= launch.kernel.shared_size
            if not inside.all():
                n = int(np.argmin(inside))
                launch.note("out of bounds", ins.text, f"shared byte {int(address[n])} of {launch.kernel.shared_size}")
                raise EmulationError(f"{ins.text}: out of bounds of shared memory")
            place = self.block[lanes] * self.shared_stride + address.astype(np.int64)
            if kind != "write":
                for j in range(0, total, size):
                    if not self.shared_written[place + j].all():
                        n = int(np.argmin(self.shared_written[place + j]))
                        launch.note(
                            "uninitialised shared",
                            ins.text,
                            f"thread {int(self.who[lanes[n]])}, byte {int(address[n])}",
                        )
                        break
            if self.shared_shadow is not None:
                self.watch(self.shared_shadow, place, total, lanes, ins, kind, "shared")
            if launch.program.counts:
                self.count_shared(address.astype(np.int64), total, lanes)
        else:
            place = address.astype(np.int64)
            if np.any(place < 0) or np.any(place + total > STACK):
                raise EmulationError(f"{ins.text}: out of bounds of local memory")
        return place

    def watch(
        self, shadow: Shadow, place: Any, total: int, lanes: Any, ins: Instruction, kind: str, space: str
    ) -> None:
        problem = shadow.access(
            place,
            total,
            self.who[lanes],
            self.threads,
            self.epoch[self.block[lanes]],
            self.warp_epoch[self.warp[lanes]],
            kind,
            self.launch.marks,
            writes=ins.name != "ld",
        )
        if problem:
            self.launch.note(f"race in {space} memory", ins.text, problem)

    def count_global(self, place: Any, total: int, lanes: Any, kind: str, number: Any) -> None:
        """Count bytes, requests of warps, and sectors of 32 bytes: of each request, and different ones of an array."""
        stats, warps = self.launch.stats, self.warp[lanes]
        sectors = np.unique(
            np.concatenate(
                [warps * (1 << 40) + (place + o) // SECTOR for o in range(0, total, SECTOR // 2)]
                + [warps * (1 << 40) + (place + total - 1) // SECTOR]
            )
        )
        requests = len(np.unique(warps))
        distinct = set((sectors & ((1 << 40) - 1)).tolist())
        if kind in ("read", "nc", "acquire"):
            stats.read += total * len(lanes)
            stats.read_sectors += len(sectors)
            stats.touched_read |= distinct
        else:
            stats.written += total * len(lanes)
            stats.written_sectors += len(sectors)
            stats.touched_written |= distinct
        stats.requests += requests
        _, per_warp = np.unique(warps, return_counts=True)
        stats.least_sectors += int(np.sum(-(-per_warp * total // SECTOR)))

    def count_shared(self, address: Any, total: int, lanes: Any) -> None:
        """Wavefronts: words of different addresses in one of 32 banks take turns."""
        words = max(1, total // 4)
        key = self.warp[lanes]
        if words > 1:  # half warps, or quarters
            key = key * 4 + self.lane_id[lanes] // (WARP // words)
        else:
            key = key * 4
        word = np.concatenate([address // 4 + j for j in range(words)])
        pairs = np.unique(np.stack([np.tile(key, words), word]), axis=1)
        group = pairs[0] * 32 + pairs[1] % 32
        groups, depth = np.unique(group, return_counts=True)
        most = np.zeros(int(groups.max() // 32) + 1, np.int64)
        np.maximum.at(most, groups // 32, depth)
        self.launch.stats.shared_waves += int(most.sum())
        self.launch.stats.shared_least += int(np.count_nonzero(most))

    def load(
        self, space: str, address: Any, size: int, count: int, lanes: Any, ins: Instruction, kind: str
    ) -> list[Any]:
        if space == "generic":
            return self.generic(address, size, count, lanes, ins, kind, None)
        place = self.check(space, address, size, count, lanes, ins, kind)
        if space == "local":
            stack = self.local()
            bytes_ = stack[lanes[:, None], place[:, None] + np.arange(size * count)]
            return list(np.ascontiguousarray(bytes_).view(BITS[size]).T)
        if space == "global" and self.launch.program.memory.made_up:
            return self.made_up(place, size, count)
        view = self.launch.program.memory.views[size] if space == "global" else self.shared_views[size]
        return [view[place // size + j] for j in range(count)]

    def made_up(self, place: Any, size: int, count: int) -> list[Any]:
        memory, launch = self.launch.program.memory, self.launch
        number = np.searchsorted(launch.starts, place, "right") - 1
        found = [np.zeros(len(place), BITS[size]) for _ in range(count)]
        for one in np.unique(number):
            mine = number == one
            if int(one) in memory.made_up:
                for j in range(count):
                    first = place[mine] - launch.starts[one] + j * size
                    width = np.asarray(memory.made_up[int(one)](first[:1])).itemsize
                    parts = [np.asarray(memory.made_up[int(one)](first + k)) for k in range(0, size, width)]
                    bytes_ = np.concatenate([x.view(np.uint8).reshape(len(first), -1) for x in parts], axis=1)[:, :size]
                    found[j][mine] = np.ascontiguousarray(bytes_).view(BITS[size])[:, 0]
            else:
                for j in range(count):
                    found[j][mine] = memory.views[size][place[mine] // size + j]
        return found

    def store(self, space: str, address: Any, size: int, values: list[Any], lanes: Any, ins: Instruction) -> None:
        kind = next((kind for kind in ("release", "relaxed") if kind in ins.mods), "write")
        if space == "generic":
            self.generic(address, size, len(values), lanes, ins, kind, values)
            return
        place = self.check(space, address, size, len(values), lanes, ins, kind)
        if space == "local":
            stack = self.local()
            for j, value in enumerate(values):
                bytes_ = (
                    np.ascontiguousarray(np.broadcast_to(value, lanes.shape)).view(np.uint8).reshape(len(lanes), size)
                )
                stack[lanes[:, None], place[:, None] + j * size + np.arange(size)] = bytes_
            return
        memory = self.launch.program.memory
        if space == "global" and memory.made_up:
            return
        view, written = (
            (memory.views[size], memory.written)
            if space == "global"
            else (self.shared_views[size], self.shared_written)
        )
        for j, value in enumerate(values):
            view[place // size + j] = value
            for k in range(size):
                written[place + j * size + k] = True

    def generic(self, address: Any, size: int, count: int, lanes: Any, ins: Instruction, kind: str, values: Any) -> Any:
        """An access by generic addresses: of each space by the threads whose address is there."""
        found = [np.zeros(len(lanes), BITS[size]) for _ in range(count)]
        windows = (("global", BASE, 1 << 47), ("shared", SHARED_WINDOW, BASE), ("local", LOCAL_WINDOW, SHARED_WINDOW))
        seen = np.zeros(len(lanes), np.bool_)
        for space, low, end in windows:
            mine = (address >= low) & (address < end)
            seen |= mine
            if mine.any():
                there = address[mine] - np.uint64(0 if space == "global" else low)
                if values is None:
                    for j, part in enumerate(self.load(space, there, size, count, lanes[mine], ins, kind)):
                        found[j][mine] = part
                else:
                    self.store(
                        space, there, size, [np.broadcast_to(v, lanes.shape)[mine] for v in values], lanes[mine], ins
                    )
        if not seen.all():
            self.launch.note("out of bounds", ins.text, f"generic address {int(address[np.argmin(seen)]):#x}")
            raise EmulationError(f"{ins.text}: no such memory")
        return found


class Frame:
    """A call of a function by some threads: their registers, places in the code, and parameters."""

    def __init__(self, chunk: Chunk, function: Function, lanes: np.ndarray, stack: int) -> None:
        self.chunk, self.function, self.lanes = chunk, function, lanes
        self.size = len(lanes)
        self.registers: list[Any] = [None] * len(function.widths)
        self.parameters: dict[str, np.ndarray] = {}
        self.stack = stack
        self.all = slice(None)
        self.index: Any = self.all
        self.active = lanes
        self.carry = np.zeros(self.size, np.uint64)
        self.place = np.zeros(self.size, np.int32)

    def register(self, number: int) -> Any:
        array = self.registers[number]
        if array is None:
            width = self.function.widths[number]
            dtype = BITS[width] if width else np.bool_
            array = self.registers[number] = np.full(
                self.size, 0xA5A5A5A5A5A5A5A5 & ((1 << 8 * width) - 1) if width else False, dtype
            )
        return array

    def run(self) -> None:
        """Run until all threads have returned."""
        program, chunk = self.chunk.launch.program, self.chunk
        blocks, random = self.function.blocks, program.random
        is_sync = np.array([b.sync is not None for b in blocks] + [False])
        running = np.ones(self.size, np.bool_)
        place, waits = self.place, 0
        while True:
            where = np.where(running, place, len(blocks))
            can = running & ~is_sync[where]
            if random is not None and can.any() and self.size > WARP:
                chosen = random.random(int(chunk.warp[-1]) + 1) < 0.5
                some = can & chosen[chunk.warp[self.lanes]]
                can = some if some.any() else can
            if can.any():
                at = int(where[can].min())
                mask = can & (place == at)
                self.step(blocks[at], mask, running)
                waits = waits + 1 if any(ins.name == "ld" and STRONG & {*ins.mods} for ins in blocks[at].body) else 0
                if waits:  # those it waits for may be at a barrier
                    self.meet(blocks, running, must=False)
                if waits > MOST_WAITS:
                    raise EmulationError(f"{self.function.name}: threads wait for what no thread stores")
            elif running.any():
                self.meet(blocks, running)
            else:
                return

    def set_active(self, mask: Any) -> int:
        if mask.all():
            self.index, self.active = self.all, self.lanes
            return self.size
        index = np.nonzero(mask)[0]
        self.index, self.active = index, self.lanes[index]
        return len(index)

    def step(self, block: Any, mask: Any, running: Any) -> None:
        """Run a block of instructions for some threads, and move these on."""
        count = self.set_active(mask)
        stats = self.chunk.launch.stats
        if self.chunk.launch.program.counts:
            warps = len(np.unique(self.chunk.warp[self.active]))
            for pipe, cost in block.static.items():
                stats.warps[pipe] += cost * warps
                stats.threads[pipe] += cost * count
            length = len(block.body) + (block.end is not None)
            stats.warp_instructions += length * warps
            stats.thread_instructions += length * count
        for run in block.steps:
            run(self)
        end = block.end
        if end is None:
            self.place[self.index] = block.number + 1
            return
        if end.guard is None:
            go = None
        else:
            go = self.register(end.guard[0])[self.index] == end.guard[1]
        if end.name in ("ret", "exit"):
            if go is None:
                running[self.index] = False
            else:
                indices = np.arange(self.size)[self.index]
                running[indices[go]] = False
                self.place[indices[~go]] = block.number + 1
        elif end.name == "bra":
            target = self.function.labels[end.operands[0][1]]
            self.place[self.index] = target if go is None else np.where(go, target, block.number + 1)
        elif end.name == "brx":
            targets = np.array([self.function.labels[x] for x in self.function.tables[end.operands[1][1]]])
            self.place[self.index] = targets[self.register(end.operands[0][1])[self.index]]
        else:
            raise EmulationError(f"{self.function.name}: {end.text}")

    # ---- threads that wait for others ----------------------------------------------------------------------------

    def meet(self, blocks: Any, running: Any, *, must: bool = True) -> None:
        """Let those threads at barriers and shuffles go on that wait for nobody; some must if no other thread runs."""
        chunk, launch = self.chunk, self.chunk.launch
        gone = False
        waiting = [int(at) for at in np.unique(self.place[running]) if blocks[at].sync is not None]
        for at in waiting:
            ins = blocks[at].sync
            here = running & (self.place == at)
            if ins.name in ("bar", "barrier") and "warp" not in ins.mods:
                continue
            mask_operand = ins.operands[-1]
            member = np.full(self.size, 0xFFFFFFFF, np.uint32)
            index = np.nonzero(here)[0]
            self.index, self.active = index, self.lanes[index]
            member[index] = read(self.function, mask_operand, "b32")(self)
            warp, lane = chunk.warp[self.lanes], chunk.lane_id[self.lanes]
            named = np.zeros(int(warp.max()) + 1, np.uint32)
            np.bitwise_or.at(named, warp[here], member[here])
            wanted = running & (named[warp] >> lane.astype(np.uint32) & np.uint32(1) > 0)
            late = np.zeros(len(named), np.bool_)
            late[warp[wanted & ~here]] = True
            ready = here & ~late[warp]
            outside = ready & (member >> lane.astype(np.uint32) & np.uint32(1) == 0)
            if outside.any():
                launch.note("not in the mask", ins.text, f"thread {int(chunk.who[self.lanes[np.argmax(outside)]])}")
            if not ready.any():
                continue
            gone = True
            self.set_active(ready)
            self.exchange(ins)
            self.place[self.index] = at + 1
        if gone:
            return
        barriers = [
            at for at in waiting if blocks[at].sync.name in ("bar", "barrier") and "warp" not in blocks[at].sync.mods
        ]
        block = chunk.block[self.lanes]
        for at in barriers:
            here = running & (self.place == at)
            elsewhere = np.zeros(chunk.count, np.bool_)
            elsewhere[block[running & ~here]] = True
            ready = here & ~elsewhere[block]
            if ready.any():
                left = ~running & np.isin(chunk.warp[self.lanes], np.unique(chunk.warp[self.lanes[ready]]))
                if left.any():
                    launch.note(
                        "barrier without all threads of a warp",
                        blocks[at].sync.text,
                        f"thread {int(chunk.who[self.lanes[np.argmax(left)]])} has returned",
                    )
                self.place[ready] = at + 1
                chunk.epoch[np.unique(block[ready])] += 1
                if launch.program.counts:
                    launch.stats.barriers += len(np.unique(block[ready]))
                    launch.stats.warps["sync"] += len(np.unique(chunk.warp[self.lanes[ready]]))
                    launch.stats.warp_instructions += len(np.unique(chunk.warp[self.lanes[ready]]))
                gone = True
        if must and not gone:
            # on sm_70 and later, different barrier instructions with the same number meet, but not within a warp
            launch.note(
                "deadlock",
                "; ".join(sorted({blocks[int(a)].sync.text for a in np.unique(self.place[running])})),
                "threads wait at different places",
            )
            raise EmulationError(f"{self.function.name}: threads wait for each other")

    def exchange(self, ins: Instruction) -> None:
        """An instruction of a whole warp."""
        chunk, function = self.chunk, self.function
        warp, lane, count = chunk.warp[self.active], chunk.lane_id[self.active].astype(np.int64), len(self.active)
        if chunk.launch.program.counts:
            many = len(np.unique(warp))
            chunk.launch.stats.warps["sync" if ins.name in ("bar", "barrier") else "shuffle"] += many
            chunk.launch.stats.threads["shuffle"] += count
            chunk.launch.stats.warp_instructions += many
            chunk.launch.stats.thread_instructions += count
        if ins.name in ("bar", "barrier"):
            chunk.warp_epoch[np.unique(warp)] += 1
            return
        slots = np.full((int(warp.max()) + 1, WARP), -1, np.int64)
        slots[warp, lane] = np.arange(count)
        if ins.name == "shfl":
            destination, value, b, c = ins.operands[:4]
            predicate = None
            if destination[0] == "pair":
                destination, predicate = destination[1:]
            a = np.broadcast_to(read(function, value, "b32")(self), count)
            b, c = (np.broadcast_to(read(function, x, "b32")(self), count).astype(np.int64) for x in (b, c))
            b, segment, bound = b & 31, c >> 8 & 31, c & 31
            most, least = lane & segment | bound & ~segment, lane & segment
            mode = ins.mods[1]
            j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": least | b & ~segment}[mode]
            inside = j >= most if mode == "up" else j <= most
            j = np.where(inside, j, lane)
            source = slots[warp, np.clip(j, 0, 31)]
            found = np.where(source >= 0, a[np.maximum(source, 0)], np.uint32(0xDEADBEEF))
            write(function, destination, "b32")(self, found.astype(np.uint32))
            if predicate:
                write(function, predicate, "pred")(self, inside)
        elif ins.name == "vote":
            destination, value = ins.operands[:2]
            truth = np.broadcast_to(read(function, value, "pred")(self), count)
            there = np.zeros((slots.shape[0], WARP), np.bool_)
            there[warp, lane] = truth
            exists = slots >= 0
            if "ballot" in ins.mods:
                bits = (there.astype(np.uint64) << np.arange(WARP, dtype=np.uint64)).sum(1).astype(np.uint32)
                write(function, destination, "b32")(self, bits[warp])
            else:
                all_, any_ = (there | ~exists).all(1), there.any(1)
                found = {"all": all_, "any": any_, "uni": all_ | ~any_}[
                    next(m for m in ins.mods if m in ("all", "any", "uni"))
                ]
                write(function, destination, "pred")(self, found[warp])  # type: ignore[reportIndexIssue]
        elif ins.name == "redux":
            destination, value = ins.operands[:2]
            kind = ins.types[-1]
            a = np.broadcast_to(read(function, value, kind)(self), count)
            at = {
                "add": np.add,
                "min": np.minimum,
                "max": np.maximum,
                "and": np.bitwise_and,
                "or": np.bitwise_or,
                "xor": np.bitwise_xor,
            }[ins.mods[1]]
            found = np.zeros(slots.shape[0], DTYPES[kind])
            for w in np.unique(warp):
                found[w] = at.reduce(a[warp == w], dtype=DTYPES[kind])
            write(function, destination, kind)(self, found[warp])
        else:
            raise UnsupportedError(ins.text)


# ---- operands --------------------------------------------------------------------------------------------------------


def constant(bits: int, kind: str) -> Any:
    size = SIZES[kind] or 1
    if kind == "pred":
        return np.bool_(bits != 0)
    return np.array(bits & ((1 << 8 * size) - 1), BITS[size]).view(DTYPES[kind])[()]


def read(function: Function, operand: Any, kind: str) -> Any:
    """What gives an operand of a frame, of this type."""
    dtype, size = DTYPES[kind], SIZES[kind]
    what = operand[0]
    if what == "register":
        number, width = operand[1], function.widths[operand[1]]
        if kind == "pred" or width == 0:
            return lambda f: f.register(number)[f.index]
        if width == size:
            return lambda f: f.register(number)[f.index].view(dtype)
        if width > size:
            narrow = BITS[size]
            return lambda f: f.register(number)[f.index].astype(narrow).view(dtype)
        raise UnsupportedError(f"an operand of {width} bytes as {kind}")
    if what == "constant":
        value = constant(operand[1], kind)
        return lambda f: value
    if what == "not":
        inner = read(function, operand[1], "pred")
        return lambda f: ~inner(f)
    if what == "special":
        return special(operand[1], dtype)
    if what == "symbol":
        return lambda f: dtype(f.chunk.launch.program.address_in(f, operand[1]))
    raise UnsupportedError(f"operand {operand}")


def special(name: str, dtype: Any) -> Any:
    """A special register."""
    one = {
        "%tid.x": lambda c, a: c.tid[a], "%ctaid.x": lambda c, a: c.numbers[c.block[a]],
        "%laneid": lambda c, a: c.lane_id[a],
        "%ntid.x": lambda c, a: np.full(len(a), c.threads), "%nctaid.x": lambda c, a: np.full(len(a), c.launch.blocks),
        "%warpid": lambda c, a: c.tid[a] // WARP, "%tid.y": lambda c, a: 0 * a, "%tid.z": lambda c, a: 0 * a,
        "%ctaid.y": lambda c, a: 0 * a, "%ctaid.z": lambda c, a: 0 * a, "%ntid.y": lambda c, a: 0 * a + 1,
        "%ntid.z": lambda c, a: 0 * a + 1, "%nctaid.y": lambda c, a: 0 * a + 1, "%nctaid.z": lambda c, a: 0 * a + 1,
        "%lanemask_lt": lambda c, a: (1 << c.lane_id[a]) - 1, "%lanemask_eq": lambda c, a: 1 << c.lane_id[a],
    }.get(name)  # fmt: skip
    if one is None:
        raise UnsupportedError(name)
    return lambda f: one(f.chunk, f.active).astype(dtype)


def write(function: Function, operand: Any, kind: str) -> Any:
    """What puts a value of this type into a register of a frame."""
    if operand[0] == "sink":
        return lambda f, value: None
    if operand[0] != "register":
        raise UnsupportedError(f"result {operand}")
    number, width, size = operand[1], function.widths[operand[1]], SIZES[kind]
    if not width:

        def put(f: Frame, value: Any) -> None:
            f.register(number)[f.index] = value

        return put
    bits, dtype = BITS[width], DTYPES[kind]
    signed = np.dtype(f"i{width}").type

    def put(f: Frame, value: Any) -> None:
        value = np.asarray(value)
        if value.dtype != dtype:
            value = value.astype(dtype)
        if size == width:
            value = value.view(bits)
        elif kind[0] == "s":
            value = value.astype(signed).view(bits)
        else:
            value = value.view(BITS[size]).astype(bits)
        f.register(number)[f.index] = value

    return put


def guarded(function: Function, ins: Instruction, run: Any) -> Any:
    """An instruction that only threads with a predicate run."""
    if ins.guard is None:
        return run
    number, wanted = ins.guard

    def of_some(f: Frame) -> None:
        index, active = f.index, f.active
        chosen = np.arange(f.size)[index][f.register(number)[index] == wanted]
        if len(chosen):
            f.index, f.active = chosen, f.lanes[chosen]
            run(f)
            f.index, f.active = index, active

    return of_some


# ---- instructions that do more than compute ------------------------------------------------------------------------


def decode(function: Function, ins: Instruction) -> Any:
    """An instruction as a function of a frame."""
    return guarded(function, ins, SPECIAL.get(ins.name, value)(function, ins))


def value(function: Function, ins: Instruction) -> Any:
    if "cc" in ins.mods or ins.name in ("addc", "subc", "madc"):
        return with_carry(function, ins)
    if table.VALUES.get(ins.name) is None:
        raise UnsupportedError(ins.text)
    compute = table.VALUES[ins.name](ins)
    kind = ins.types[0] if ins.types else "b32"
    result, operands = ins.operands[0], ins.operands[1:]
    if ins.name == "cvt":
        kinds, kind = [ins.types[1]], ins.types[0]
    elif ins.name in table.OPERANDS:
        kinds = table.OPERANDS[ins.name](kind)
    else:
        kinds = [kind] * len(operands)
        if "wide" in ins.mods:
            kind = kind[0] + str(16 * SIZES[kind])
            kinds[2:] = [kind] * len(kinds[2:])
        if ins.name in ("popc", "clz"):
            kind = "u32"
        if ins.name == "testp":
            kind = "pred"
    reads, put = [read(function, o, k) for o, k in zip(operands, kinds, strict=False)], write(function, result, kind)
    if len(reads) == 1:
        (one,) = reads
        return lambda f: put(f, compute(one(f)))
    if len(reads) == 2:
        one, two = reads
        return lambda f: put(f, compute(one(f), two(f)))
    return lambda f: put(f, compute(*[r(f) for r in reads]))


def with_carry(function: Function, ins: Instruction) -> Any:
    """Arithmetic with the carry of the instruction before it, or for the next one."""
    kind, name = ins.types[-1], ins.name.rstrip("c") if ins.name != "madc" else "mad"
    takes, gives = ins.name in ("addc", "subc", "madc"), "cc" in ins.mods
    if SIZES[kind] != 4:
        raise UnsupportedError(ins.text)
    reads, put = [read(function, o, "u32") for o in ins.operands[1:]], write(function, ins.operands[0], "u32")
    high, mask, s = "hi" in ins.mods, np.uint64(0xFFFFFFFF), np.uint64(32)

    def run(f: Frame) -> None:
        x = [np.asarray(r(f)).astype(np.uint64) for r in reads]
        carry = f.carry[f.index] if takes else np.uint64(0)
        if name == "sub":
            total = x[0] - x[1] - carry
            out = (x[0] < x[1] + carry).astype(np.uint64)
        else:
            first = x[0] if name == "add" else (x[0] * x[1] >> s if high else x[0] * x[1] & mask)
            total = first + x[-1] + carry
            out = total >> s
        put(f, (total & mask).astype(np.uint32))
        if gives:
            f.carry[f.index] = out

    return run


def move(function: Function, ins: Instruction) -> Any:
    kind, (to, of) = ins.types[-1], ins.operands
    size = SIZES[kind]
    if to[0] == "vector":
        part = size // len(to[1])
        puts, source = [write(function, x, f"b{8 * part}") for x in to[1]], read(function, of, f"b{8 * size}")

        def unpack(f: Frame) -> None:
            whole = np.asarray(source(f)).copy()
            for n, put in enumerate(puts):
                put(f, (whole >> whole.dtype.type(8 * part * n)).astype(BITS[part]))

        return unpack
    put = write(function, to, kind if kind != "pred" else "pred")
    if of[0] == "vector":
        part = size // len(of[1])
        reads = [read(function, x, f"b{8 * part}") for x in of[1]]
        wide = BITS[size]

        def pack(f: Frame) -> None:
            total = wide(0)
            for n, one in enumerate(reads):
                total = total | np.asarray(one(f)).astype(wide) << wide(8 * part * n)
            put(f, np.asarray(total).view(DTYPES[kind]))

        return pack
    source = read(function, of, kind)
    return lambda f: put(f, source(f))


def address_of(function: Function, operand: Any) -> Any:
    """What gives the addresses that an operand in brackets names, for each active thread."""
    _, base, offset = operand
    if base[0] == "register" and function.widths[base[1]] == 4:
        source = read(function, base, "u32")
        return lambda f: np.broadcast_to(source(f).astype(np.uint64) + np.uint64(offset & (2**64 - 1)), f.active.shape)
    source = read(function, base, "u64")
    step = np.uint64(offset & (2**64 - 1))
    return lambda f: np.broadcast_to(source(f) + step, f.active.shape)


def space_of(ins: Instruction) -> str:
    return next((m for m in ins.mods if m in ("global", "shared", "local", "param", "const")), "generic")


def parameter(operand: Any) -> tuple[str, int]:
    _, base, offset = operand
    if base[0] != "symbol":
        raise UnsupportedError("a parameter at a computed place")
    return base[1], offset


def load(function: Function, ins: Instruction) -> Any:
    space, kind = space_of(ins), ins.types[-1]
    size = SIZES[kind]
    to = ins.operands[0][1] if ins.operands[0][0] == "vector" else [ins.operands[0]]
    puts = [write(function, x, kind) for x in to]
    if space == "param":
        name, offset = parameter(ins.operands[1])

        def of_parameter(f: Frame) -> None:
            bytes_ = f.parameters[name]
            for j, put in enumerate(puts):
                part = bytes_[:, offset + j * size : offset + (j + 1) * size]
                part = np.ascontiguousarray(part).view(DTYPES[kind])[:, 0]
                put(f, part if len(part) == 1 else part[f.index])

        return of_parameter
    where = address_of(function, ins.operands[1])
    access = next((kind for kind in ("nc", "acquire", "relaxed") if kind in ins.mods), "read")
    real = "global" if space == "const" else space

    def run(f: Frame) -> None:
        found = f.chunk.load(real, where(f), size, len(puts), f.active, ins, access)
        for put, bits in zip(puts, found, strict=True):
            put(f, bits.view(DTYPES[kind]))

    return run


def store(function: Function, ins: Instruction) -> Any:
    space, kind = space_of(ins), ins.types[-1]
    size = SIZES[kind]
    of = ins.operands[1][1] if ins.operands[1][0] == "vector" else [ins.operands[1]]
    reads = [read(function, x, f"b{8 * size}") for x in of]
    if space == "param":
        name, offset = parameter(ins.operands[0])

        def to_parameter(f: Frame) -> None:
            if name not in f.parameters:
                f.parameters[name] = np.full((f.size, f.function.scoped.get(name, 64)), 0xA5, np.uint8)
            for j, one in enumerate(reads):
                bits = np.ascontiguousarray(np.broadcast_to(one(f), f.active.shape))
                f.parameters[name][f.index, offset + j * size : offset + (j + 1) * size] = bits.view(np.uint8).reshape(
                    -1, size
                )

        return to_parameter
    where = address_of(function, ins.operands[0])
    return lambda f: f.chunk.store(space, where(f), size, [r(f) for r in reads], f.active, ins)


ATOMIC = {
    "add": lambda old, x: old + x, "min": min, "max": max, "exch": lambda old, x: x, "and": lambda old, x: old & x,
    "or": lambda old, x: old | x, "xor": lambda old, x: old ^ x,
}  # fmt: skip


def atomic(function: Function, ins: Instruction) -> Any:
    """A thread after the other, in any order."""
    space, kind = space_of(ins), ins.types[-1]
    size, operation = SIZES[kind], next(m for m in ins.mods if m in (*ATOMIC, "cas"))
    operands = ins.operands if ins.name == "red" else ins.operands[1:]
    put = None if ins.name == "red" else write(function, ins.operands[0], kind)
    where, reads = address_of(function, operands[0]), [read(function, x, kind) for x in operands[1:]]

    def run(f: Frame) -> None:
        address = where(f)
        if space == "generic":
            if np.any(address < BASE):
                raise UnsupportedError(ins.text)
            place = f.chunk.check("global", address, size, 1, f.active, ins, "atomic")
        else:
            place = f.chunk.check(space, address, size, 1, f.active, ins, "atomic")
        memory = f.chunk.launch.program.memory
        views = f.chunk.shared_views if space == "shared" else memory.views
        view, x = views[size].view(DTYPES[kind]), [np.broadcast_to(r(f), f.active.shape) for r in reads]
        old = np.zeros(len(f.active), DTYPES[kind])
        order = f.chunk.launch.program.order(len(f.active))
        f.chunk.launch.stats.atomics += len(order)
        flushes = kind == "f32" and operation == "add" and space != "shared"
        for n in order:
            at = place[n] // size
            old[n] = view[at]
            if operation == "cas":
                view[at] = x[1][n] if old[n] == x[0][n] else old[n]
            elif flushes:
                view[at] = table.flushed(table.flushed(old[n]) + table.flushed(x[0][n]))
            else:
                view[at] = ATOMIC[operation](old[n], x[0][n])
        if put is not None:
            put(f, old)

    return run


def set_predicate(function: Function, ins: Instruction) -> Any:
    kind = ins.types[-1]
    compare, result = table.comparison(ins), ins.operands[0]
    reads = [read(function, x, kind) for x in ins.operands[1:3]]
    combine = next((m for m in ins.mods if m in ("and", "or", "xor")), None)
    third = read(function, ins.operands[3], "pred") if combine else None
    puts = [write(function, x, "pred") for x in (result[1:] if result[0] == "pair" else [result])]
    function_of = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.get(combine)

    def run(f: Frame) -> None:
        truth = compare(reads[0](f), reads[1](f))
        for put, found in zip(puts, (truth, ~np.asarray(truth)), strict=False):
            put(f, found if function_of is None else function_of(found, third(f)))  # type: ignore[reportOptionalCall]

    return run


def select(function: Function, ins: Instruction) -> Any:
    kind = ins.types[-1]
    bits = f"b{8 * SIZES[kind]}"
    a, b = (read(function, x, bits) for x in ins.operands[1:3])
    p, put = read(function, ins.operands[3], "pred"), write(function, ins.operands[0], bits)
    return lambda f: put(f, np.where(p(f), a(f), b(f)))


def convert_address(function: Function, ins: Instruction) -> Any:
    """From a space's address to a generic one, and back."""
    space, is_back = next(m for m in ins.mods if m in ("global", "shared", "local", "const")), "to" in ins.mods
    base = np.uint64({"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space, 0))
    source, put = read(function, ins.operands[1], "u64"), write(function, ins.operands[0], "u64")
    return lambda f: put(f, source(f) - base if is_back else source(f) + base)


def call(function: Function, ins: Instruction) -> Any:
    """A call: the threads that make it run the function on their own."""
    operands = list(ins.operands)
    results = [x[1] for x in operands.pop(0)[1]] if operands[0][0] == "list" else []
    name = operands.pop(0)[1]
    given = [x[1] for x in operands.pop(0)[1]] if operands else []

    def run(f: Frame) -> None:
        callee = f.chunk.launch.program.module.functions.get(name)
        if callee is None:
            raise UnsupportedError(ins.text)
        frame = Frame(f.chunk, callee, f.active, f.stack + -(-f.function.local_size // 16) * 16)
        for (own, size, _), passed in zip(callee.parameters, given, strict=True):
            frame.parameters[own] = f.parameters[passed][f.index][:, :size]
        for own, size, _ in callee.results:
            frame.parameters[own] = np.full((frame.size, size), 0xA5, np.uint8)
        frame.run()
        for (own, size, _), passed in zip(callee.results, results, strict=True):
            if passed not in f.parameters:
                f.parameters[passed] = np.full((f.size, f.function.scoped.get(passed, size)), 0xA5, np.uint8)
            f.parameters[passed][f.index, :size] = frame.parameters[own]

    return run


SPECIAL = {
    "mov": move, "ld": load, "st": store, "atom": atomic, "red": atomic, "setp": set_predicate, "selp": select,
    "cvta": convert_address, "call": call, "membar": lambda function, ins: lambda f: None,
    "fence": lambda function, ins: lambda f: None, "ldu": load, "prefetch": lambda function, ins: lambda f: None,
}  # fmt: skip


# ---- programs --------------------------------------------------------------------------------------------------------


class Program:
    """A module in the memory of a device, and what was found when its kernels ran."""

    def __init__(
        self, text: str, memory: Memory, *, finds_races: bool = False, counts: bool = False, seed: int | None = None,
        fatal: tuple[str, ...] = ("misaligned", "out of bounds", "deadlock"),
    ) -> None:  # fmt: skip
        self.module: Module = parse(text)
        self.memory, self.finds_races, self.counts, self.fatal = memory, finds_races, counts, fatal
        self.random = None if seed is None else np.random.default_rng(seed)
        self.findings: list[Finding] = []
        self.addresses: dict[str, int] = {}
        for variable in self.module.variables.values():
            if variable.space in ("global", "const"):
                address = self.addresses[variable.name] = memory.allocate(variable.size)
                if variable.content is not None:
                    memory.array(address, variable.size)[:] = np.frombuffer(variable.content, np.uint8)
                    memory.mark(address, variable.size)
        for function in self.module.functions.values():
            for block in function.blocks:
                block.steps = [decode(function, ins) for ins in block.body]
                block.static = Counter()
                for ins in [*block.body, *([block.end] if block.end else [])]:
                    block.static.update(table.cost(ins))

    def address_in(self, frame: Frame, name: str) -> int:
        """The address of a variable in its space."""
        variable: Variable | None = frame.function.variables.get(name)
        if variable is not None:
            return variable.offset + (frame.stack if variable.space == "local" else 0)
        if name in self.addresses:
            return self.addresses[name]
        raise UnsupportedError(f"the address of {name}")

    def order(self, count: int) -> Any:
        return range(count) if self.random is None else self.random.permutation(count)

    def launch(
        self, name: str, blocks: int, threads: int, parameters: bytes, some: Any = None, together: int = 1
    ) -> Stats:
        return Launch(self, self.module.functions[name], blocks, threads, parameters).run(some, together)


__all__ = ["EmulationError", "Finding", "Memory", "Program", "Stats", "UnsupportedError", "bits_of"]

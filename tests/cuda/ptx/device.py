"""A device whose kernels are the PTX that a GPU would get, run by the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fnad.backends.cuda.kept import kept_ptx
from fnad.kernel.launches import Launch
from tests.cuda.ptx.emulator import Finding, Memory, Program
from tests.gpu import Simulated


class Emulated(Simulated):
    """The simulated device with kernels of PTX, which run on copies of the arrays in the emulator's memory."""

    multiprocessors = 132

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        self.emulated = Memory(1 << 26)
        self.findings: list[Finding] = []
        self.order = seed

    def load(self, launches: Sequence[Launch]) -> list[Any]:
        self.asked("load")
        if not launches:
            return []
        program = Program(kept_ptx(launches, self.arch).decode(), self.emulated, finds_races=True, seed=self.order)
        program.findings = self.findings
        return [Emulation(program, launch) for launch in launches]

    def run_kernel(self, launch: Launch, addresses: Sequence[int]) -> None:
        loaded: Any = launch.kernel
        dtypes = [p.kind.dtype for p in loaded.parameters]
        arrays = dict(zip(addresses, map(self.at, addresses, dtypes), strict=True))
        places = {address: self.emulated.allocate(array.nbytes) for address, array in arrays.items()}
        for address, array in arrays.items():
            self.emulated.array(places[address], array.nbytes)[:] = array.view("u1")
            self.emulated.mark(places[address], array.nbytes)
        given = b"".join(places[address].to_bytes(8, "little") for address in addresses)
        loaded.program.launch(loaded.name, launch.blocks, launch.threads, given, together=loaded.together)
        for address, array in arrays.items():
            array.view("u1")[:] = self.emulated.array(places[address], array.nbytes)
            self.emulated.release(places[address])


class Emulation:
    """A kernel in a program of PTX."""

    def __init__(self, program: Program, launch: Launch) -> None:
        self.program, self.name, self.parameters = program, launch.kernel.name, launch.kernel.parameters
        self.together = launch.together

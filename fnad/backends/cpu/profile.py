"""The time of a program by lines of user code: its kernels are compiled with lines, and samples taken of its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import NamedTuple

import llvmlite.ir as ir

from fnad import config
from fnad.backends.base import Array
from fnad.backends.cpu import codegen, compiler
from fnad.backends.cpu.executor import NativeExecutor, plan
from fnad.backends.cpu.line_numbers import LINELESS, LineMap, line_map
from fnad.backends.cpu.loader import ENTRY, LOCK, Code, Engine, NativeCode, link
from fnad.backends.cpu.objects import builtin, taking_arrays
from fnad.backends.cpu.sampler import Samples, refuse_elsewhere
from fnad.backends.llvm.lines import FRAME, HELD, LinedModule, LineTable
from fnad.ir.program import Program, Source
from fnad.kernel.plan import Plan
from fnad.kernel.statements import Kernel
from fnad.kernel.steps import Chunk
from fnad.lower.loop_ir import LibraryCall

ENOUGH, FEWEST = 2000, 100
"""The samples after which no further run begins, and those in lines that make a profile."""

LONGEST = 10.0
"""The seconds after which no further run begins."""

BEGIN = "begin"
"""The symbol of the first function of a module, where its code begins."""


class LineSamples(NamedTuple):
    """The samples by source, one for each mode of a line; those elsewhere; and the seconds and runs that they took."""

    by_source: dict[tuple[Source, str], int]
    elsewhere: int
    seconds: float
    runs: int


class LinedCode(NamedTuple):
    """Native code of kernels, in their order, its first address, the addresses of its variables, and its lines."""

    codes: list[NativeCode]
    low: int
    held: int
    frame: int
    map: LineMap
    table: LineTable

    def source(self, instruction: int, call: int) -> Source | None:
        """The source of a sample: that of its instruction, or of a call from a function with lines."""
        number = self._line(instruction)
        if number == LINELESS:
            number = -call if -len(self.table.sources) <= call < 0 else self._line(call)
        return self.table.sources[number - 1] if number > 0 else None

    def _line(self, address: int) -> int:
        return self.map.line(address - self.low) if self.low <= address < self.low + self.map.size else LINELESS


def sampled(program: Program, arguments: Sequence[Array], *, once: bool = False) -> LineSamples:
    """The samples of runs of a program, of one run if it may run only `once`.

    Raises `LoweringError` for a program that is not compiled, `UnsupportedFunctionError` on other systems.
    """
    refuse_elsewhere()
    planned = plan(program)
    lined = compiled_with_lines(list(planned.kernels.values()))
    samples = Samples(lined.held, lined.frame)
    run = _Marked(
        planned, {c: Code(native) for c, native in zip(planned.kernels, lined.codes, strict=True)}, lined, samples
    )
    if not once:
        run(arguments)  # what is done at the first call alone
    start, runs = perf_counter(), 0
    with samples.running(), config.override(threads=1):
        while not runs or not (once or samples.count >= ENOUGH or perf_counter() - start > LONGEST):
            run(arguments)
            runs += 1
    seconds = perf_counter() - start
    found: Counter[tuple[Source, str]] = Counter()
    for sample in samples.taken():
        if (source := lined.source(*sample)) is not None:
            found[source, source.mode] += 1
    return LineSamples(dict(found), samples.count - found.total(), seconds, runs)


class _Marked(NativeExecutor):
    """An executor whose samples are the line of a routine that Python calls while the routine runs."""

    def __init__(self, planned: Plan, codes: Mapping[Chunk, Code], lined: LinedCode, samples: Samples) -> None:
        self.lined, self.samples = lined, samples
        super().__init__(planned, codes)

    def _library_step(self, call: LibraryCall) -> Callable[[list[Array]], None]:
        run, source = super()._library_step(call), call.source
        if source is None:
            return run
        number = self.lined.table.number(source)

        def held(arrays: list[Array]) -> None:
            with self.samples.held(number):
                run(arrays)

        return held


def compiled_with_lines(kernels: Sequence[Kernel]) -> LinedCode:
    """Compile kernels anew, with lines."""
    with LOCK:
        module = codegen.new_module("lines", LinedModule)
        begin = ir.Function(module, ir.FunctionType(ir.VoidType(), []), name=BEGIN)
        ir.IRBuilder(begin.append_basic_block()).ret_void()
        for n, kernel in enumerate(kernels):
            compiler.add_kernel(module, kernel, f"{ENTRY}{n}")
        table = module.lines
        code = codegen.object_code(codegen.optimized(module))
        engine = link(code)
    codes = [_native(engine, f"{ENTRY}{n}") for n in range(len(kernels))]
    low = engine.get_function_address(BEGIN)
    held, frame = map(engine.get_global_value_address, (HELD, FRAME))
    return LinedCode(codes, low, held, frame, line_map(code), table)


def _native(engine: Engine, name: str) -> NativeCode:
    return NativeCode("", taking_arrays(builtin("kernel", engine.get_function_address(name), engine)), 0)

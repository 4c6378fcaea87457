"""From a program to native code that runs on NumPy arrays.

A program becomes one native function per chunk of nests, since LLVM's time grows faster than a function's length, and a
Python step for each library call between them. Loops and branches are native unless they contain a library call.
Contiguous arguments are passed without a copy; outputs are fresh; temporaries come from a pool of workspaces, so that
calls from several threads never share one. The memory of large outputs comes from a pool, too.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from fnad import config
from fnad.backends.base import Array, CallBefore
from fnad.backends.cpu import saved
from fnad.backends.cpu.idle import LARGE, WATCH
from fnad.backends.cpu.loader import Code, kept_code
from fnad.backends.cpu.machine import offers
from fnad.backends.cpu.objects import IS_KNOWN
from fnad.backends.cpu.pool import allocator, has_gil
from fnad.backends.cpu.saved import Recipe
from fnad.backends.flow import Read, Reserve, Run, choose, fail, in_order, repeat, repeat_while
from fnad.errors import FnadError
from fnad.ir.primitive import Library
from fnad.ir.program import Program
from fnad.kernel import residual_stack
from fnad.kernel.statements import ACCOUNT, STATUS_SIZE, THREADS, For, Kernel, Return, walk
from fnad.kernel.steps import Chunk, PythonControl, Step
from fnad.lower.loop_ir import LibraryCall, SequentialFor, SequentialWhile, Switch
from fnad.lower.nodes import Buffer, BufferLoad
from fnad.store import STORE

if TYPE_CHECKING:
    from fnad.backends.cpu.compiler import NativeFunction
    from fnad.kernel.plan import Plan

__all__ = ["NativeExecutor", "compile_program", "keep", "kept", "offers", "plan"]

NewArray: TypeAlias = "tuple[Callable[..., Array], tuple[int, ...], np.dtype[Any]]"
"""A function that makes an output, with its arguments."""

NO_ARRAY: NewArray = (np.empty, (0,), np.dtype(bool))
"""In the place of an output that takes the memory of an argument."""

DIRECT = 2**18
"""The most bytes of a workspace that a direct call has for itself: it is not counted, nor given back."""

LINE = 64
"""The bytes of a line of the cache."""

ENGINE_BYTES = 50_000
"""The memory that LLVM takes for each function besides its code."""


def compile_program(program: Program, donated: Sequence[int] = ()) -> NativeExecutor:
    """The executor of a program; raises `LoweringError` for what cannot be lowered.

    Outputs may take the memory of the inputs at the positions `donated`.
    """
    return compile_plan(plan(program, donated))


def compile_plan(planned: Plan) -> NativeExecutor:
    """The executor of a plan."""
    from fnad.backends.cpu.families import code_of  # noqa: PLC0415 - not loaded where all there is to run is on disk

    return NativeExecutor(planned, {} if _jit_is_disabled() else {c: code_of(k) for c, k in planned.kernels.items()})


def plan(program: Program, donated: Sequence[int] = ()) -> Plan:
    """Lower a program and write its source."""
    from fnad.backends.cpu.target import CPU  # noqa: PLC0415 - likewise
    from fnad.kernel.plan import Plan  # noqa: PLC0415
    from fnad.lower.lowering import lower  # noqa: PLC0415

    return Plan(lower(program, CPU), CPU, donated)


def keep(key: str, executor: NativeExecutor) -> None:
    """Keep an executor on disk, for later processes."""
    if not _jit_is_disabled():
        saved.save(key, executor.recipe)


def kept(key: str) -> NativeExecutor | None:
    """The executor that is on disk under a key."""
    return None if _jit_is_disabled() else saved.load(key, _of_recipe)


def _of_recipe(recipe: Recipe) -> NativeExecutor | None:
    found = {chunk: (kept_code(code), numbers) for chunk, (code, numbers) in recipe.codes.items()}
    codes = {chunk: Code(native, numbers) for chunk, (native, numbers) in found.items() if native is not None}
    return NativeExecutor(recipe, codes) if len(codes) == len(found) else None


class NativeExecutor:
    """A compiled program: call it with a list of arrays.

    Its code takes about `nbytes` bytes. It `is_alone` if some of it was compiled for it and runs no other size.
    """

    def __init__(self, planned: Plan | Recipe, codes: Mapping[Chunk, Code]) -> None:
        self.plan = planned
        loops = planned.loops
        self._workspace_size = sum(slot.size * slot.dtype.itemsize for slot in planned.slots)
        self._codes = codes
        self.is_alone = any(code.is_alone for code in self._codes.values())
        self.nbytes = sum(ENGINE_BYTES + code.native.nbytes for code in self._codes.values())
        self._numbers = [array for code in self._codes.values() for array in code.numbers]
        arrays = [b.name for b in (*loops.inputs, *loops.outputs)] + [s.name for s in planned.slots]
        names = [*arrays, *map(id, self._numbers), "counters", "stacks", "status"]
        self._positions = {name: n for n, name in enumerate(names)}
        run = self._in_order(planned.steps)
        run = within_limits(run) if planned.calls_libraries else run
        self._run = counted(run, loops.meters) if loops.meters else run
        self._outputs = [NO_ARRAY if buffer in planned.donations else _new_array(buffer) for buffer in loops.outputs]
        self._has_stacks = bool(loops.residual_stacks)
        self._donations = [(loops.outputs.index(o), loops.inputs.index(x)) for o, x in planned.donations.items()]
        self._recorded = [
            (n, loops.residual_stacks.index(b), b.aval) for n, b in enumerate(loops.outputs) if b.aval.is_residual_stack
        ]
        is_any_parallel = any(is_parallel(kernel) for kernel in planned.kernels.values())
        self._use_threads = import_module("fnad.backends.cpu.threads").use if is_any_parallel else None
        self._pool: deque[list[Array]] = deque()

    def __call__(self, arguments: Sequence[Array]) -> list[Array]:
        outputs = [empty(shape, dtype) for empty, shape, dtype in self._outputs]
        for output, given in self._donations:
            outputs[output] = _donated_memory(arguments, given)
        try:
            workspace = self._pool.pop()
        except IndexError:
            workspace = self._workspace()
        arrays = [*map(_contiguous, arguments), *outputs, *workspace]
        if self._use_threads is not None:
            workspace[-1][THREADS] = number = config.current().threads
            self._use_threads(number)
        try:
            if self._has_stacks:
                self._run_with_stacks(arrays, outputs)
            else:
                self._run(arrays)
            self._check(arrays)
        except Exception:  # after an interrupt the workspace is not used again
            workspace[-1][:ACCOUNT].fill(0)
            self._keep(workspace)
            raise
        self._keep(workspace)
        return outputs

    def _keep(self, workspace: list[Array]) -> None:
        self._pool.append(workspace)
        if self._workspace_size >= LARGE:
            WATCH.note(self)

    def direct(self, before: CallBefore) -> Callable[..., Any] | None:
        """A function from the arguments of a call like the one before to its results; None unless it is a builtin."""
        chunks = [step for step in self.plan.steps if isinstance(step, Chunk) and step in self._codes]
        is_plain = len(chunks) == len(self.plan.steps) > 0 and not (
            self._donations or self._recorded or self.plan.loops.meters
        )
        if not is_plain or self._workspace_size > DIRECT or not (IS_KNOWN and has_gil()):
            return None
        from fnad.backends.cpu.direct import CODE, Kernels, can_be_direct, direct_call  # noqa: PLC0415 - for few programs

        if not can_be_direct(before) or (address := CODE.ready()) is None:
            return None
        conditions = before.conditions
        memory = self._workspace()
        if (use := self._use_threads) is not None:
            memory[-1][THREADS] = number = config.current().threads
            conditions = [*conditions, ("ASKED", lambda: use(number) is None)]
        calls = [(self._codes[chunk].native.call, self._taken(chunk)) for chunk in chunks]
        before = before._replace(captured=[*map(_contiguous, before.captured)], conditions=conditions)
        return direct_call(address, before, Kernels(calls, self._outputs, memory, memory[-2]))

    def _run_with_stacks(self, arrays: list[Array], outputs: list[Array]) -> None:
        """Run, copy the residual stacks that are results, and always free all of them."""
        table = arrays[-2]
        try:
            self._run(arrays)
            for n, number, aval in self._recorded:
                rows = residual_stack.rows_of(table, number)
                flat = residual_stack.recorded(table, number, aval.dtype)[: rows * prod(aval.shape[1:])]
                outputs[n] = flat.reshape(rows, *aval.shape[1:]).copy()
        finally:
            residual_stack.release(table)

    def _workspace(self) -> list[Array]:
        counters = np.zeros(max([1, *(chunk.depth for chunk in self.plan.chunks)]), np.int64)
        stacks = residual_stack.new_table(len(self.plan.loops.residual_stacks))
        STORE.trim(self._workspace_size)
        slots = [at_line(slot.size, slot.dtype) for slot in self.plan.slots]
        return [
            *slots,
            *self._numbers,
            counters,
            stacks,
            np.zeros(STATUS_SIZE + 2 * len(self.plan.loops.meters), np.int64),
        ]

    @property
    def workspace_bytes(self) -> int:
        """The memory of the workspaces not in use, in bytes."""
        return len(self._pool) * self._workspace_size

    def free_workspaces(self) -> int:
        """Free the workspaces not in use; return the number of bytes freed."""
        freed = self.workspace_bytes
        self._pool.clear()
        return freed

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _check(self, arrays: list[Array]) -> None:
        """Raise the error of the run's status, if any."""
        if arrays[-1][0]:
            fail(self.plan.loops, *arrays[-1][:THREADS].tolist())

    def _in_order(self, steps: Sequence[Step]) -> Run:
        return in_order(list(map(self._step, steps)))

    def _step(self, step: Step) -> Run:
        match step:
            case Chunk():
                return self._chunk(step)
            case PythonControl():
                return self._structured(step)
            case _:
                return self._library_step(step)

    def _chunk(self, chunk: Chunk) -> Run:
        kernel, code = self.plan.kernels[chunk], self._codes.get(chunk)
        call = plain_function(kernel) if code is None else code.native.call
        positions = self._taken(chunk)
        if len(positions) == 1:
            run: Run = lambda arrays: call(arrays[positions[0]])  # noqa: E731
        else:
            pick = itemgetter(*positions)
            run = lambda arrays: call(*pick(arrays))  # noqa: E731
        stops = any(isinstance(statement, Return) for statement in walk(kernel.body))
        return in_order([run, self._check]) if stops and len(self.plan.chunks) > 1 else run

    def _taken(self, chunk: Chunk) -> list[int]:
        """The positions of the arrays that a chunk's function takes."""
        code = self._codes.get(chunk)
        numbers = () if code is None else map(id, code.numbers)
        return [self._positions[name] for name in (*[p.name for p in self.plan.kernels[chunk].parameters], *numbers)]

    def _structured(self, step: PythonControl) -> Run:
        bodies = [self._in_order(body) for body in step.bodies]
        match step.control:
            case Switch(_, index):
                return choose(self._scalar(index), bodies)
            case SequentialFor(depth, extent, reverse, _, _, stacks):
                iterations: Read = (lambda arrays: extent) if isinstance(extent, int) else self._scalar(extent)
                loop = repeat(iterations, self._counter(depth), reverse, bodies[0])
                reserve = self._reserve(stacks)
                return in_order([lambda arrays: reserve(arrays, int(iterations(arrays))), loop])
            case SequentialWhile() as loop:
                test, body, end = bodies
                return repeat_while(
                    test, self._scalar(loop.predicate), self._counter(loop.depth), self._start(loop), body, end
                )

    def _scalar(self, load: BufferLoad) -> Read:
        position, address = self._position(load.buffer.root), load.address.constant
        return lambda arrays: arrays[position].reshape(-1)[address]

    def _counter(self, depth: int) -> Callable[[list[Array], int], None]:
        position = self._positions["counters"]

        def count(arrays: list[Array], iteration: int) -> None:
            arrays[position][depth] = iteration

        return count

    def _start(self, loop: SequentialWhile) -> Reserve:
        """The check before each iteration of a loop: of its limit, and for room on its residual stacks."""
        reserve, check = self._reserve(loop.residual_stacks), self._check

        def start(arrays: list[Array], iteration: int) -> None:
            if iteration == loop.limit and not arrays[-1][0]:
                arrays[-1][0] = loop.fault
            check(arrays)
            reserve(arrays, iteration + 1)

        return start

    def _reserve(self, stacks: Sequence[Buffer]) -> Reserve:
        sizes = [(self.plan.loops.residual_stacks.index(t), t.dtype.itemsize * prod(t.aval.shape[1:])) for t in stacks]
        check = self._check

        def reserve(arrays: list[Array], rows: int) -> None:
            for number, row in sizes:
                if not residual_stack.reserve(arrays[-2], number, rows, row):
                    arrays[-1][0] = residual_stack.NO_MEMORY
                    check(arrays)

        return reserve

    @property
    def is_loaded(self) -> bool:
        """True if it is not known what its functions were compiled from."""
        return isinstance(self.plan, Recipe)

    @property
    def functions(self) -> list[NativeFunction]:
        """The native functions, under the names of the source where their numbers are constants."""
        found = [(cast("NativeFunction", code.native), code.numbers, c) for c, code in self._codes.items()]
        return [native if numbers else replace(native, kernel=self.plan.kernels[c]) for native, numbers, c in found]

    @property
    def recipe(self) -> Recipe:
        """The recipe from which the executor can be made again."""
        codes = {chunk: (code.native.key, code.numbers) for chunk, code in self._codes.items()}
        return saved.recipe_of(cast("Plan", self.plan), codes)

    def _library_step(self, call: LibraryCall) -> Callable[[list[Array]], None]:
        operands = [(self._position(b), b.aval) for b in call.operands]
        results = [(self._position(b), b.aval) for b in call.results]
        lower = call.primitive.lower
        fills = isinstance(lower, Library) and lower.fills

        def run(arrays: list[Array]) -> None:
            values, outs = (
                [arrays[n].reshape(-1)[: aval.size].reshape(aval.shape) for n, aval in places]
                for places in (operands, results)
            )
            params = {**call.params, "out": outs[0]} if fills else call.params
            try:
                with np.errstate(all="ignore"):
                    computed = call.primitive.evaluate(*values, **params)
            except FnadError as error:
                raise error.at(call.source) from None
            for out, value in zip(outs, computed if isinstance(computed, tuple) else (computed,), strict=True):
                if value is not out:
                    out[...] = value

        return run

    def _position(self, buffer: Buffer) -> int:
        return self._positions[self.plan.places[buffer.root]]

    @property
    def source(self) -> str:
        """The emitted Python source."""
        return cast("Plan", self.plan).source

    def llvm(self) -> str:
        """The optimised LLVM IR of all native functions."""
        return "\n".join(function.llvm() for function in self.functions)

    def asm(self) -> str:
        """The assembly of all native functions."""
        return "\n".join(function.asm() for function in self.functions)


def within_limits(run: Run) -> Run:
    """A run with libraries, whose threads are limited as others."""
    from fnad.lapack_threads import within_settings  # noqa: PLC0415 - likewise

    def limited(arrays: list[Array]) -> None:
        with within_settings():
            run(arrays)

    return limited


def counted(run: Run, labels: Sequence[str]) -> Run:
    """A run whose steps are shown, if it takes long."""
    from fnad.trace.meters import counting  # noqa: PLC0415 - for few programs

    def shown(arrays: list[Array]) -> None:
        with counting(labels, list(arrays[-1][STATUS_SIZE:].reshape(-1, 2))):
            run(arrays)

    return shown


def is_parallel(kernel: Kernel) -> bool:
    """True if a kernel has loops that may run on several threads."""
    return any(isinstance(statement, For) and statement.is_parallel for statement in walk(kernel.body))


def _jit_is_disabled() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def plain_function(kernel: Kernel) -> Callable[..., None]:
    """A kernel as a Python function, for NUMBA_DISABLE_JIT=1: slow, but a debugger can step through it."""
    from fnad.kernel.python_source import kernel_text, namespace  # noqa: PLC0415 - likewise

    text = kernel_text(kernel)
    names = namespace(text)
    exec(compile(text, f"<{kernel.name}>", "exec"), names)
    function = cast("Callable[..., None]", names[kernel.name])
    return lambda *arrays: function(*[array.reshape(-1) for array in arrays])


def _new_array(buffer: Buffer) -> NewArray:
    return allocator(buffer.aval.nbytes), tuple(map(abs, buffer.aval.shape)), buffer.dtype


def _donated_memory(arguments: Sequence[Array], position: int) -> Array:
    """An argument's array if it owns its memory and is passed only once, and no view of it is, else a copy."""
    array = arguments[position]
    flags = array.flags
    is_own = type(array) is np.ndarray and flags.c_contiguous and flags.aligned and flags.writeable and flags.owndata
    is_shared = sum(array is other or array is other.base for other in arguments) > 1
    return array if is_own and not is_shared else np.array(array, order="C")


def _contiguous(array: Array) -> Array:
    """The array as native code needs it: a plain, contiguous and aligned array object, whose address it reads."""
    flags = array.flags
    plain = type(array) is np.ndarray and flags.c_contiguous and flags.aligned
    return array if plain else np.asarray(np.require(array, requirements=("C", "A")))


def at_line(size: int, dtype: np.dtype[Any]) -> Array:
    """An array of undefined content that begins at a line of the cache: a store of a whole vector is in one line."""
    memory = np.empty(size * dtype.itemsize + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size * dtype.itemsize].view(dtype)

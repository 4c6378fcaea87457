"""From a program to native code that runs on NumPy arrays.

A program becomes one native function per chunk of nests, for LLVM's time grows faster than a function's length, and a
Python step for each library call between them. Arguments are passed as they are if they are contiguous; outputs are
fresh; temporaries come from a pool of workspaces, so that calls from several threads never share one.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, cast

import numba
import numpy as np

from fnad.backends.base import Array
from fnad.backends.numba import runtime
from fnad.backends.numba.compiler import NativeFunction, compile_source
from fnad.backends.numba.source import Function, chunk_function, unread_temporaries
from fnad.errors import FnadError, GuardFailed, OutOfRangeError
from fnad.ir.program import Program
from fnad.ir.types import I64, Dtype
from fnad.lower.loops import Call, Check, Item, LoopProgram, effects
from fnad.lower.nodes import Buffer
from fnad.lower.pipeline import lower
from fnad.lower.storage import Slot, assign

CHUNK = "chunk"
LARGEST_CHUNK = 40
"""Effects per native function."""


def compile_program(program: Program) -> NativeExecutor:
    """Return the executor of a program; raise `LoweringError` for what has no loops."""
    return NativeExecutor(plan(program))


class Plan:
    """A lowered program with its memory laid out and its source written, not yet compiled."""

    def __init__(self, loops: LoopProgram) -> None:
        chunks = list(_chunks(loops.items))
        native = [chunk for chunk in chunks if not isinstance(chunk, Call)]
        called = {b for chunk in chunks if isinstance(chunk, Call) for b in (*chunk.operands, *chunk.results)}
        unread = unread_temporaries(native, loops.temporaries) - called
        kept = [buffer for buffer in loops.temporaries if buffer not in unread]
        self.loops = loops
        self.slots, places = assign(loops.items, kept, loops.outputs)
        outside = {buffer: buffer.name for buffer in (*loops.inputs, *loops.outputs)}
        self.places: dict[Buffer, str] = outside | {buffer: slot.name for buffer, slot in places.items()}
        names = self.places | {buffer: buffer.name for buffer in unread}
        self.steps: list[Function | Call] = [
            chunk if isinstance(chunk, Call) else chunk_function(f"chunk{n}", chunk, names, unread)
            for n, chunk in enumerate(chunks)
        ]

    @property
    def dtypes(self) -> dict[str, Any]:
        """The dtype of each array by name."""
        buffers = (*self.loops.inputs, *self.loops.outputs)
        return {b.name: b.dtype for b in buffers} | {s.name: s.dtype for s in self.slots} | {"status": I64}

    @property
    def source(self) -> str:
        """All native functions, as Python source."""
        return "\n\n".join(step.source for step in self.steps if isinstance(step, Function))


def plan(program: Program) -> Plan:
    """Lower a program and write its source."""
    return Plan(lower(program))


def _chunks(items: Sequence[Item]) -> Iterable[list[Item] | Call]:
    chunk: list[Item] = []
    weight = 0
    for item in items:
        size = sum(1 for _ in effects(item))
        if chunk and (isinstance(item, Call) or weight + size > LARGEST_CHUNK):
            yield chunk
            chunk, weight = [], 0
        if isinstance(item, Call):
            yield item
        else:
            chunk.append(item)
            weight += size
    if chunk:
        yield chunk


class NativeExecutor:
    """A compiled program: call it with a list of arrays."""

    def __init__(self, planned: Plan) -> None:
        self.plan = planned
        self.functions: list[NativeFunction] = []
        loops = planned.loops
        names = [b.name for b in (*loops.inputs, *loops.outputs)] + [s.name for s in planned.slots] + ["status"]
        self._positions = {name: n for n, name in enumerate(names)}
        self._steps = [self._step(step) for step in planned.steps]
        guarded = any(isinstance(effect, Check) for item in loops.items for effect in effects(item))
        self._may_end_early = guarded and len(self._steps) > 1
        self._outputs = [(buffer.aval.shape, buffer.dtype) for buffer in loops.outputs]
        self._pool: deque[list[Array]] = deque()

    def __call__(self, arguments: Sequence[Array]) -> list[Array]:
        outputs = [np.empty(shape, dtype) for shape, dtype in self._outputs]
        try:
            workspace = self._pool.pop()
        except IndexError:
            workspace = _workspace(self.plan.slots)
        arrays = [*map(_contiguous, arguments), *outputs, *workspace]
        status = workspace[-1]
        for step in self._steps:
            step(arrays)
            if self._may_end_early and status[0] < 0:
                break
        if status[0]:
            self._fail(workspace)
        self._pool.append(workspace)
        return outputs

    def _fail(self, workspace: list[Array]) -> None:
        """Raise what the status says: a positive number is that of a fault, a negative one counts the guards."""
        number, value = workspace[-1].tolist()
        workspace[-1].fill(0)
        self._pool.append(workspace)
        if number < 0:
            raise GuardFailed(-1 - number, value)
        source = self.plan.loops.faults[number - 1]
        raise OutOfRangeError("an index is out of range", source=source, remedy="check the index against the axis")

    def _step(self, step: Function | Call) -> Callable[[list[Array]], None]:
        if isinstance(step, Call):
            return self._library_step(step)
        call = plain_function(step) if _jit_is_disabled() else self._native_function(step)
        positions = [self._positions[name] for name in step.parameters]
        if len(positions) == 1:
            return lambda arrays: call(arrays[positions[0]])
        pick = itemgetter(*positions)
        return lambda arrays: call(*pick(arrays))

    def _native_function(self, step: Function) -> Callable[..., None]:
        dtypes = tuple(self.plan.dtypes[name] for name in step.parameters)
        call = _compiled(_by_position(step), dtypes).call
        self.functions.append(NativeFunction(step.source, step.name, dtypes, call))
        return call

    def _library_step(self, call: Call) -> Callable[[list[Array]], None]:
        operands = [(self._position(b), b.aval) for b in call.operands]
        results = [(self._position(b), b.aval) for b in call.results]

        def run(arrays: list[Array]) -> None:
            values = [arrays[n].reshape(-1)[: aval.size].reshape(aval.shape) for n, aval in operands]
            try:
                with np.errstate(all="ignore"):
                    computed = call.primitive.evaluate(*values, **call.params)
            except FnadError as error:
                raise error.at(call.source) from None
            for (n, aval), value in zip(results, computed if isinstance(computed, tuple) else (computed,), strict=True):
                arrays[n].reshape(-1)[: aval.size] = np.ravel(value)

        return run

    def _position(self, buffer: Buffer) -> int:
        return self._positions[self.plan.places[buffer]]

    @property
    def source(self) -> str:
        """The emitted Python source."""
        return self.plan.source

    def llvm(self) -> str:
        """Return the optimised LLVM IR of all native functions."""
        return "\n".join(function.llvm() for function in self.functions)

    def asm(self) -> str:
        """Return the assembly of all native functions."""
        return "\n".join(function.asm() for function in self.functions)


@lru_cache(maxsize=512)
def _compiled(source: str, dtypes: tuple[Dtype, ...]) -> NativeFunction:
    """Compile a function once, whichever programs it is in: the steps of an unrolled loop are alike."""
    return compile_source(source, CHUNK, dtypes)


def _by_position(step: Function) -> str:
    """Return the source with its parameters named by position and without comments, by which it is told from others."""
    names = {name: f"a{n}" for n, name in enumerate(step.parameters)} | {step.name: CHUNK}
    lines = [line for line in step.source.splitlines() if not line.lstrip().startswith("#")]
    return re.sub(r"\b[a-z]+\d*\b", lambda word: names.get(word[0], word[0]), "\n".join(lines))


def _jit_is_disabled() -> bool:
    return bool(numba.config.DISABLE_JIT)  # pyright: ignore[reportAttributeAccessIssue]  (read from the environment)


def plain_function(step: Function) -> Callable[..., None]:
    """Return a chunk as the Python function that it is, for NUMBA_DISABLE_JIT=1: to step through, slowly."""
    namespace = runtime.namespace()
    exec(compile(step.source, f"<{step.name}>", "exec"), namespace)
    function = cast("Callable[..., None]", namespace[step.name])
    return lambda *arrays: function(*[array.reshape(-1) for array in arrays])


def _workspace(slots: Sequence[Slot]) -> list[Array]:
    return [*(np.empty(slot.size, slot.dtype) for slot in slots), np.zeros(2, np.int64)]


def _contiguous(array: Array) -> Array:
    """Return the array as native code needs it: it takes the address from the array object, so that must be one."""
    flags = array.flags
    plain = type(array) is np.ndarray and flags.c_contiguous and flags.aligned
    return array if plain else np.asarray(np.require(array, requirements=("C", "A")))

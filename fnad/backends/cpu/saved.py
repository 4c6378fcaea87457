"""Compiled programs on disk: what an executor is made of, found by the text of the program before simplification.

So a later process neither simplifies nor lowers what an earlier one did. An executor needs of a plan only where the
arrays are, in which order the steps run, and for each kernel the key of its object code. The records of that (`Recipe`)
are pickled, and nothing else is unpickled: no class but theirs is made; primitives and dtypes go by name, regions of
calls as text. Whatever else a file has is damage (`DiskCache.read`). That it is safe to run what a recipe describes
follows from who can write to the directory, as it does for object code.

Errors are kept without lines, since the lines of the function at hand are others.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from io import BytesIO
from pickletools import genops
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from fnad import disk, errors
from fnad.backends.base import Array
from fnad.backends.cpu.fingerprint import fingerprint
from fnad.errors import FnadError
from fnad.ir.primitive import PRIMITIVES, Primitive
from fnad.ir.printer import print_program
from fnad.ir.program import Program
from fnad.ir.types import DTYPES, NAMES, Aval
from fnad.kernel.statements import For, Kernel, LoopKind, Name, Return, Statement, walk
from fnad.kernel.steps import Chunk, PythonControl, Step
from fnad.lower.allocation import Slot
from fnad.lower.faults import Fault
from fnad.lower.index import Index
from fnad.lower.loop_ir import BufferStore, Control, LibraryCall, LoopProgram, SequentialFor, SequentialWhile, Switch
from fnad.lower.nodes import Buffer, BufferLoad

if TYPE_CHECKING:
    from fnad.kernel.plan import Plan

T = TypeVar("T")
Numbers: TypeAlias = Sequence[Array]
"""The arrays of numbers that the code of a kernel takes after the kernel's own."""

# ---- records -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """The parts of a plan that an executor needs; `codes` has the keys of its object code, and the numbers it takes.

    `machine` is the fingerprint of the machine that the code is for.
    """

    machine: bytes
    calls_libraries: bool
    loops: LoopProgram
    steps: list[Step]
    chunks: list[Chunk]
    slots: list[Slot]
    donations: dict[Buffer, Buffer]
    places: dict[Buffer, str]
    kernels: dict[Chunk, Kernel]
    codes: dict[Chunk, tuple[str, Numbers]]


def recipe_of(plan: Plan, codes: Mapping[Chunk, tuple[str, Numbers]]) -> Recipe:
    """The recipe of a plan."""
    of, loops = _Outlines(plan), plan.loops
    return Recipe(
        fingerprint(),
        plan.calls_libraries,
        LoopProgram(
            loops.name,
            of.buffers(loops.inputs),
            of.buffers(loops.outputs),
            (),
            of.buffers(loops.residual_stacks),
            (),
            tuple(replace(fault, source=None) for fault in loops.faults),
            loops.meters,
        ),
        of.steps(plan.steps),
        [*of.chunks.values()],
        [Slot(slot.name, slot.dtype, slot.size) for slot in plan.slots],
        {of.buffer(output): of.buffer(given) for output, given in plan.donations.items()},
        {of.buffer(buffer): place for buffer, place in plan.places.items()},
        {of.chunks[chunk]: outline(kernel) for chunk, kernel in plan.kernels.items()},
        {of.chunks[chunk]: code for chunk, code in codes.items()},
    )


class _Outlines:
    """The parts of a plan without what only its kernels say."""

    def __init__(self, plan: Plan) -> None:
        self.chunks = {chunk: Chunk((), chunk.depth) for chunk in plan.chunks}
        self._made: dict[Buffer, Buffer] = {}

    def buffer(self, buffer: Buffer) -> Buffer:
        if buffer not in self._made:
            memory = None if buffer.memory is None else self.buffer(buffer.memory)
            self._made[buffer] = Buffer(buffer.name, buffer.aval, 0, memory)
        return self._made[buffer]

    def buffers(self, buffers: Sequence[Buffer]) -> tuple[Buffer, ...]:
        return tuple(map(self.buffer, buffers))

    def load(self, load: BufferLoad) -> BufferLoad:
        return BufferLoad(self.buffer(load.buffer), Index(load.address.constant), 0, number=0)

    def steps(self, steps: Sequence[Step]) -> list[Step]:
        return [*map(self._step, steps)]

    def _step(self, step: Step) -> Step:
        match step:
            case Chunk():
                return self.chunks[step]
            case LibraryCall(primitive, params, operands, results):
                return LibraryCall(primitive, dict(params), self.buffers(operands), self.buffers(results))
            case PythonControl(control, bodies):
                return PythonControl(self._control(control), tuple(map(self.steps, bodies)))

    def _control(self, control: Control) -> Control:
        match control:
            case Switch(depth, index):
                return Switch(depth, self.load(index), ())
            case SequentialFor(depth, extent, reverse, _, _, stacks):
                extent = extent if isinstance(extent, int) else self.load(extent)
                return SequentialFor(depth, extent, reverse, [], [], self.buffers(stacks))
            case SequentialWhile(depth, _, predicate):
                read, stacks = self.load(predicate), self.buffers(control.residual_stacks)
                count = BufferStore(read.buffer, Index(0), read)  # what counts is its last body
                limits = control.limit, control.fault, control.may_fail
                return SequentialWhile(depth, [], read, [], [], count, *limits, stacks)


def outline(kernel: Kernel) -> Kernel:
    """A kernel without its statements, but whether it may return early, and has parallel loops."""
    parameters = tuple(Name(parameter.name, None) for parameter in kernel.parameters)
    outlines = (_outline_of(statement) for statement in walk(kernel.body))
    return Kernel(kernel.name, parameters, [outline for outline in outlines if outline is not None])


def _outline_of(statement: Statement) -> Statement | None:
    match statement:
        case Return():
            return statement
        case For(counter, kind=LoopKind.PARALLEL):
            nothing = Name(counter.name, None)
            return For(nothing, nothing, nothing, 1, kind=LoopKind.PARALLEL)
        case _:
            return None


# ---- bytes -------------------------------------------------------------------------------------------------------

RECORDS = (
    Aval, Buffer, BufferLoad, BufferStore, Chunk, Fault, For, Index, Kernel, LibraryCall, LoopKind, LoopProgram, Name,
    PythonControl, Recipe, Return, SequentialFor, SequentialWhile, Slot, Switch,
)  # fmt: skip
ERRORS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, FnadError)}
CLASSES = {(record.__module__, record.__qualname__): record for record in RECORDS}


PLACED = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
"""The operations of a pickle that name a place in memory, up to which the reader allocates; protocol 5 has none."""


class _RecordWriter(pickle.Pickler):
    def persistent_id(self, obj: Any) -> tuple[str, Any] | None:
        if isinstance(obj, Primitive):
            return "primitive", obj.name
        if isinstance(obj, np.dtype):
            return "dtype", NAMES[obj]
        if type(obj) is np.ndarray:
            return "array", (NAMES[obj.dtype], obj.tobytes())
        if isinstance(obj, Program):
            return "program", print_program(obj)
        if isinstance(obj, type) and issubclass(obj, FnadError):
            return "error", obj.__name__
        return None


class _RecordReader(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if (module_name, global_name) not in CLASSES:
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is none of the records")
        return CLASSES[module_name, global_name]

    def persistent_load(self, pid: Any) -> Any:
        kind, name = pid
        if kind == "array":
            return np.frombuffer(name[1], DTYPES[name[0]])
        if kind == "program":
            return import_module("fnad.ir.parser").parse_program(name)
        return {"primitive": PRIMITIVES, "dtype": DTYPES, "error": ERRORS}[kind][name]


def save(key: str, recipe: Recipe) -> None:
    """Keep a recipe, if it consists of records alone."""
    file = BytesIO()
    with suppress(pickle.PicklingError, AttributeError, TypeError, LookupError):
        _RecordWriter(file, protocol=5).dump(recipe)
        if (kept := disk.current()) is not None:
            kept.write(key, file.getvalue())


def load(key: str, make: Callable[[Recipe], T]) -> T | None:
    """The result of `make` for the recipe of a key, if the recipe is on disk and for this machine."""
    kept = disk.current()
    return None if kept is None else kept.read(key, lambda payload: _of_recipe(payload, make))


def _of_recipe(payload: bytes, make: Callable[[Recipe], T]) -> T | None:
    if any(operation.name in PLACED for operation, _, _ in genops(payload)):  # which also refuses sizes past the end
        raise pickle.UnpicklingError("a place in memory by its number")
    recipe = _RecordReader(BytesIO(payload)).load()
    return make(recipe) if recipe.machine == fingerprint() else None

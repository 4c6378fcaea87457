"""From a program to launches on a device, and the executor that runs them on arrays there.

Each nest becomes a kernel, between kernels are matrix products and routines of libraries; loops and branches around
them are run by the host, which reads back what decides. Nothing else waits for the device, but a program that can fail:
its status is read when all is done. Arguments in the memory of the host are copied; results are arrays of the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product as combinations
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np

from fnad.backends.base import Array
from fnad.backends.cuda.driver import Driver, Operand, current
from fnad.backends.cuda.libdevice import path
from fnad.backends.cuda.occupancy import Resources, occupancy, resources
from fnad.backends.cuda.ptx import ALIGNMENT, ptx_of_all
from fnad.backends.cuda.target import CUDA
from fnad.backends.cuda.tools import machine_code
from fnad.backends.flow import Read, Reserve, Run, choose, fail, in_order, repeat, repeat_while
from fnad.errors import DeviceError, FnadError, LoweringError, PlacementError
from fnad.ir.primitive import HOST, Library
from fnad.ir.program import Program
from fnad.ir.types import I64
from fnad.kernel.launches import DeviceControl, DevicePlan, DeviceStep, Launch, Products
from fnad.kernel.statements import COUNTERS, STATUS
from fnad.kernel.traffic import moved
from fnad.lower.index import Counter, Index, Quotient, Remainder
from fnad.lower.loop_ir import (
    LibraryCall,
    Matrix,
    Product,
    SequentialFor,
    SequentialWhile,
    Switch,
)
from fnad.lower.lowering import lower
from fnad.lower.nodes import Buffer, BufferLoad
from fnad.placement import is_on_device

Offset: TypeAlias = Callable[[Sequence[int]], int]
"""From the counters of the loops around it to an offset in an array."""

HOST_COUNTERS = "counters of the host"
STATUS_SIZE = 3
ARCH = "sm_90"
"""The architecture of texts, which no GPU is asked for."""


def plan(program: Program, donated: Sequence[int] = ()) -> DevicePlan:
    """Lower a program and write its kernels."""
    return DevicePlan(lower(program, CUDA), CUDA, donated)


def compile_program(program: Program, donated: Sequence[int] = ()) -> DeviceExecutor:
    """The executor of a program; raises `LoweringError` for what the device cannot do."""
    return DeviceExecutor(plan(program, donated), current())


def offers() -> Iterator[tuple[str, str]]:
    """The device and what programs for it take."""
    yield "libdevice", str(path())
    yield "GPU", current().description


class DeviceExecutor:
    """A compiled program: call it with a list of arrays. Temporaries live as long as a call."""

    is_alone = True
    is_loaded = False
    is_plain = False
    workspace_bytes = 0

    def __init__(self, planned: DevicePlan, device: Driver) -> None:
        self.plan, self._device = planned, device
        loops = planned.loops
        self.launches = list(planned.launches.values())
        self.nbytes = 10_000 * len(self.launches)
        arrays = [b.name for b in (*loops.inputs, *loops.outputs)] + [s.name for s in planned.slots]
        names = [*arrays, COUNTERS.name, HOST_COUNTERS, STATUS.name]
        self._positions = {name: n for n, name in enumerate(names)}
        self._outputs = [(buffer.aval.shape, buffer.dtype) for buffer in loops.outputs]
        self._donations = {loops.outputs.index(o): loops.inputs.index(x) for o, x in planned.donations.items()}
        self._depth = max([1, *map(_depth, planned.steps)])
        self._may_fail = any(STATUS in launch.kernel.parameters for launch in self.launches)
        self._counts = any(COUNTERS in launch.kernel.parameters for launch in self.launches)
        self._loaded = dict(zip(self.launches, device.load([launch.kernel for launch in self.launches]), strict=True))
        self._run = self._in_order(planned.steps)

    def __call__(self, arguments: Sequence[Array]) -> list[Array]:
        self._device.check_current()
        try:
            return self._called(arguments)
        except self._device.failures as error:
            raise DeviceError(f"{self.plan.loops.name} fails on the GPU: {error}") from error

    def _called(self, arguments: Sequence[Array]) -> list[Array]:
        device = self._device
        inputs = list(map(self._input, arguments))
        outputs = [self._output(n, arguments) for n in range(len(self._outputs))]
        slots = [device.empty((slot.size,), slot.dtype) for slot in self.plan.slots]
        counters = device.empty((self._depth,), I64) if self._counts else None
        status = device.empty((STATUS_SIZE,), I64) if self._may_fail else None
        arrays: list[Any] = [
            *inputs,
            *[output.reshape(-1) for output in outputs],
            *slots,
            counters,
            [0] * self._depth,
            status,
        ]
        if self._may_fail:
            device.fill(status, 0)
        self._run(arrays)
        self._check(arrays)
        return outputs

    def _input(self, array: Array) -> Any:
        """An argument as kernels need it: flat, in the order of its elements."""
        device = self._device
        if not is_on_device(array):
            return device.to_device(np.ascontiguousarray(array).reshape(-1))
        try:
            array = device.adopt(array)
        except PlacementError as error:
            raise PlacementError(f"an argument {error.what}", remedy=error.remedy) from None
        if self._is_in_order(array):
            return array.reshape(-1)
        made = device.empty(array.shape, array.dtype)
        device.copy(array, made)
        return made.reshape(-1)

    def _is_in_order(self, array: Any) -> bool:
        """Whether kernels can use an array where it is: its elements in order, from an address for vectors on."""
        return array.flags.c_contiguous and self._device.address(array) % ALIGNMENT == 0

    def _output(self, number: int, arguments: Sequence[Array]) -> Any:
        """The array of a result: a new one, or that of an argument that is given away, if nobody else has it."""
        shape, dtype = self._outputs[number]
        if number not in self._donations:
            return self._device.empty(shape, dtype)
        given = arguments[self._donations[number]]
        is_shared = sum(given is other for other in arguments) > 1
        if is_on_device(given) and not is_shared and self._device.owns(given) and self._is_in_order(given):
            return given.reshape(shape)
        made = self._device.empty(shape, dtype)
        self._device.copy(given if is_on_device(given) else self._device.to_device(np.asarray(given)), made)
        return made

    def _check(self, arrays: list[Any]) -> None:
        """Raise the error of the run's status, if any."""
        if self._may_fail:
            number, value, *_ = self._device.to_host(arrays[-1]).tolist()
            if number:
                fail(self.plan.loops, number, value)

    def free_workspaces(self) -> int:
        """There are none: the driver's pool has the memory between calls."""
        return 0

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _in_order(self, steps: Sequence[DeviceStep]) -> Run:
        return in_order([self._step(step) for step in steps])

    def _step(self, step: DeviceStep) -> Run:
        match step:
            case Launch():
                return self._launch(step)
            case Product():
                return self._products(Products((), step))
            case Products():
                return self._products(step)
            case DeviceControl():
                return self._control(step)
            case LibraryCall():
                return self._library_call(step)

    def _launch(self, launch: Launch) -> Run:
        device, kernel = self._device, self._loaded[launch]
        positions = [self._positions[parameter.name] for parameter in launch.kernel.parameters]
        if not positions:
            return lambda arrays: None
        pick = itemgetter(*positions) if len(positions) > 1 else lambda arrays: (arrays[positions[0]],)
        blocks, threads = launch.blocks, launch.threads
        return lambda arrays: device.launch(kernel, blocks, threads, pick(arrays))

    def _products(self, products: Products) -> Run:
        """Products in loops: the innermost loop is one call, whose matrices lie at equal distances."""
        product, loops, batch = products.product, products.loops, None
        parts = product.out, product.a, product.b
        if loops and all(is_even(part.offset, loops[-1].depth) for part in parts):
            *loops, batch = loops
        count, steps = (
            (batch.extent, [step_of(part.offset, batch.depth) for part in parts]) if batch else (1, (0, 0, 0))
        )
        size = product.m, product.k, product.n
        if not (product.m and product.n and count):
            return lambda arrays: None
        matrices, multiply = [self._matrix(part) for part in parts], self._device.products

        def run(arrays: list[Any]) -> None:
            counters = [*arrays[-2], *[0] * len(products.loops)]
            for iterations in combinations(*[range(loop.extent) for loop in loops]):
                for loop, iteration in zip(loops, iterations, strict=True):
                    counters[loop.depth] = iteration
                out, a, b = (make(arrays, counters) for make in matrices)
                multiply(out, a, b, size, count, steps)

        return run

    def _matrix(self, matrix: Matrix) -> Callable[[list[Any], Sequence[int]], Operand]:
        position, offset = self._position(matrix.buffer), offset_of(matrix.offset)
        strides = matrix.row_stride, matrix.column_stride
        return lambda arrays, counters: Operand(arrays[position], offset(counters), *strides)

    def _control(self, step: DeviceControl) -> Run:
        bodies = [self._in_order(body) for body in step.bodies]
        match step.control:
            case Switch(_, index):
                return choose(self._scalar(index), bodies)
            case SequentialFor(depth, extent, reverse):
                iterations: Read = (lambda arrays: extent) if isinstance(extent, int) else self._scalar(extent)
                return repeat(iterations, self._counter(depth, step), reverse, bodies[0])
            case SequentialWhile() as loop:
                test, body, end = bodies
                start = self._start(loop)
                counter = self._counter(loop.depth, step)
                return repeat_while(test, self._scalar(loop.predicate), counter, start, body, end)

    def _scalar(self, load: BufferLoad) -> Read:
        position, address = self._position(load.buffer), load.address.constant
        return lambda arrays: self._device.to_host(arrays[position][address : address + 1])[0]

    def _counter(self, depth: int, step: DeviceControl) -> Callable[[list[Any], int], None]:
        """What notes the number of an iteration: for offsets here, for kernels on the device."""
        is_read = any(COUNTERS in launch.kernel.parameters for launch in launches_of(step))
        device, position = self._device, self._positions[COUNTERS.name]

        def count(arrays: list[Any], iteration: int) -> None:
            arrays[-2][depth] = iteration
            if is_read:
                device.fill(arrays[position][depth : depth + 1], iteration)

        return count

    def _start(self, loop: SequentialWhile) -> Reserve:
        """The check before each iteration of a loop: of its limit, and of what failed in one that may fail."""
        fault = self.plan.loops.faults[loop.fault - 1] if loop.limit is not None else None

        def start(arrays: list[Any], iteration: int) -> None:
            if loop.may_fail:
                self._check(arrays)
            if fault is not None and iteration == loop.limit:
                self._check(arrays)
                raise fault.error

        return start

    def _library_call(self, call: LibraryCall) -> Run:
        operands = [(self._position(b), b.aval) for b in call.operands]
        results = [(self._position(b), b.aval) for b in call.results]
        lowering, device = call.primitive.lower, self._device
        evaluate = self._by_host if isinstance(lowering, Library) and lowering.routine == HOST else device.evaluate
        function = partial(call.primitive.evaluate, **call.params)

        def run(arrays: list[Any]) -> None:
            values = [arrays[n][: aval.size].reshape(aval.shape) for n, aval in operands]
            try:
                computed = evaluate(function, values)
            except FnadError as error:
                raise error.at(call.source) from None
            for (n, aval), value in zip(results, computed, strict=True):
                device.copy(value, arrays[n][: aval.size].reshape(aval.shape))

        return run

    def _by_host(self, function: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
        """The results of a function of the host's, which gets copies."""
        with np.errstate(all="ignore"):
            found = function(*map(self._device.to_host, values))
        return [self._device.to_device(np.asarray(x)) for x in (found if isinstance(found, tuple) else (found,))]

    def _position(self, buffer: Buffer) -> int:
        return self._positions[self.plan.places[buffer.root]]

    # ---- to be seen --------------------------------------------------------------------------------------------------

    @property
    def functions(self) -> Sequence[Launch]:
        """The kernels with their grids."""
        return self.launches

    @property
    def source(self) -> str:
        """The kernels, as Python source."""
        return self.plan.source


def ptx(program: Program, arch: str = ARCH) -> str:
    """The kernels of a program in the assembly of a virtual GPU."""
    return ptx_of_all([launch.kernel for launch in plan(program).launches.values()], arch)


def sass(program: Program, arch: str = ARCH) -> str:
    """The kernels of a program in the instructions of a GPU."""
    return machine_code(ptx(program, arch), arch)


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
        yield f"{launch.kernel.name}: {grid}, {read:,} bytes read, {written:,} written{text}"
    if missing and launches:
        yield missing


def _taken(found: Resources, launch: Launch, arch: str) -> str:
    share = occupancy(found, launch.threads, arch)
    local = f", {found.local:,} bytes of local memory" if found.local else ""
    return f", {found.registers} registers{local}, {found.shared:,} bytes shared, occupancy {share:.0%} of {arch}"


def _depth(step: DeviceStep) -> int:
    """How many loops of the host's there are in a step, one in another."""
    return 1 + max([0, *[_depth(s) for body in step.bodies for s in body]]) if isinstance(step, DeviceControl) else 0


def launches_of(step: DeviceStep) -> Iterator[Launch]:
    """The launches in a step."""
    if isinstance(step, Launch):
        yield step
    elif isinstance(step, DeviceControl):
        for body in step.bodies:
            for inner in body:
                yield from launches_of(inner)


# ---- offsets ---------------------------------------------------------------------------------------------------------


def offset_of(index: Index) -> Offset:
    """An index as a function of counters; raises `LoweringError` for one that a program computes."""
    terms = [(_atom(atom), coefficient) for atom, coefficient in index.terms]
    return lambda counters: index.constant + sum(c * atom(counters) for atom, c in terms)


def _atom(atom: Any) -> Offset:
    match atom:
        case Counter(depth):
            return itemgetter(depth)
        case Quotient(dividend, divisor):
            whole = offset_of(dividend)
            return lambda counters: whole(counters) // divisor
        case Remainder(dividend, divisor):
            whole = offset_of(dividend)
            return lambda counters: whole(counters) % divisor
        case _:
            raise LoweringError("a matrix product begins at a place that the program computes, which cuda cannot do")


def is_even(index: Index, depth: int) -> bool:
    """Whether an index goes equally far with each iteration of the loop at this depth."""
    return all(isinstance(atom, Counter) or not _reads(atom, depth) for atom, _ in index.terms)


def _reads(atom: Any, depth: int) -> bool:
    return isinstance(atom, (Quotient, Remainder)) and any(
        (isinstance(inner, Counter) and inner.depth == depth) or _reads(inner, depth)
        for inner, _ in atom.dividend.terms
    )


def step_of(index: Index, depth: int) -> int:
    """How far an index goes with each iteration of the loop at this depth."""
    return sum(coefficient for atom, coefficient in index.terms if isinstance(atom, Counter) and atom.depth == depth)

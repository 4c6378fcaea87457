"""From a program to launches on a device, and the executor that runs them on arrays there.

Each nest becomes a kernel, between kernels are matrix products and routines of libraries. What needs nothing of the
host is captured as a graph: the launches of a program that is called with the same arrays again, or those between two
calls of a library, and several iterations of a long loop. Loops of unknown length run guarded, several iterations at a
time, before the host reads back whether they go on; a branch is read back if it is not guarded. Nothing else waits for
the device, but a program that can fail: its status is read when all is done. Arguments in the memory of the host are
copied; results are arrays of the device.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from math import prod
from threading import get_ident
from typing import Any

import numpy as np

from fnad import config
from fnad.backends.base import Array, CallBefore
from fnad.backends.cuda.captures import (
    LARGEST_GRAPH,
    LARGEST_UNROLLED,
    is_at_counters,
    is_captured,
    is_part_of_graph,
    nodes_of,
)
from fnad.backends.cuda.driver import Driver, current
from fnad.backends.cuda.explain import ARCH, launch_lines
from fnad.backends.cuda.frame import Frame, Run
from fnad.backends.cuda.offers import offers
from fnad.backends.cuda.products import products
from fnad.backends.cuda.ptx import ALIGNMENT, ptx_of_all
from fnad.backends.cuda.target import CUDA, MULTIPROCESSORS
from fnad.backends.cuda.tools import machine_code
from fnad.backends.flow import Read, choose, fail, in_order
from fnad.errors import DeviceError, FnadError, PlacementError
from fnad.ir.primitive import HOST, Library
from fnad.ir.program import Program
from fnad.ir.types import I64
from fnad.kernel.launches import DeviceControl, DevicePlan, DeviceProducts, DeviceStep, Launch
from fnad.kernel.statements import COUNTERS, STATUS
from fnad.lower.loop_ir import LibraryCall, SequentialFor, SequentialWhile, Switch
from fnad.lower.lowering import lower
from fnad.lower.nodes import Buffer, BufferLoad
from fnad.placement import is_on_device
from fnad.store import STORE

__all__ = ["ARCH", "DeviceExecutor", "compile_program", "launch_lines", "offers", "plan", "ptx", "sass"]

STATUS_SIZE = 3
KEPT_BYTES = 2**25
"""The largest workspace that is kept for the next call. With more, the work takes longer than to ask for memory."""

TOGETHER = 16
"""The iterations of a loop that are one graph."""

LEAST = 4 * TOGETHER
"""The iterations of a loop from which such a graph is made."""

MOST_AHEAD = 64
"""The most iterations of a loop of unknown length before it is asked whether it has ended."""

PER_THREAD = 2
"""CUDA's number for a stream that each thread has its own of."""


def plan(
    program: Program, donated: Sequence[int] = (), multiprocessors: int = MULTIPROCESSORS
) -> DevicePlan:  # fmt: skip
    """Lower a program and write its kernels."""
    assert CUDA.grid is not None
    grid = replace(CUDA.grid, together=max(1, min(multiprocessors // 4, CUDA.grid.together)))
    target = replace(CUDA, adds_atomically=config.current().scatter_add == "atomic", grid=grid)
    return DevicePlan(lower(program, target), target, donated)


def compile_program(program: Program, donated: Sequence[int] = ()) -> DeviceExecutor:
    """The executor of a program; raises `LoweringError` for what the device cannot do."""
    device = current()
    return DeviceExecutor(plan(program, donated, device.multiprocessors), device)


class DeviceExecutor:
    """A compiled program: call it with a list of arrays."""

    is_alone = True
    is_loaded = False

    def __init__(self, planned: DevicePlan, device: Driver) -> None:
        self.plan, self._device = planned, device
        loops = planned.loops
        self.launches = list(planned.launches.values())
        self.nbytes = 10_000 * len(self.launches)
        given, slots = [b.name for b in (*loops.inputs, *loops.outputs)], [s.name for s in planned.slots]
        stacks = [b.name for b in loops.residual_stacks if b.name not in given]
        self._positions = {name: n for n, name in enumerate([*given, *slots, *stacks, COUNTERS.name, STATUS.name])}
        self._stacks = {self._positions[b.name]: b.aval for b in loops.residual_stacks}
        shapes = [(0,) if b.aval.is_residual_stack else b.aval.shape for b in loops.outputs]
        self._outputs = [
            None if buffer in planned.donations else (shape, buffer.dtype)
            for shape, buffer in zip(shapes, loops.outputs, strict=True)
        ]
        self._donations = [(loops.outputs.index(o), loops.inputs.index(x)) for o, x in planned.donations.items()]
        self._may_fail = any(STATUS in launch.kernel.parameters for launch in self.launches)
        self._numbers = {launch: n for n, launch in enumerate(self.launches)}
        self._taken = [[self._positions[p.name] for p in launch.kernel.parameters] for launch in self.launches]
        self._loaded = device.load(self.launches)
        self._workspace_size = sum(slot.size * slot.dtype.itemsize for slot in planned.slots)
        self._frames: defaultdict[Any, deque[Frame]] = defaultdict(deque)
        nodes = sum(map(nodes_of, planned.steps)) if all(map(is_captured, planned.steps)) else 0
        controls = [step for step in planned.steps if isinstance(step, DeviceControl)]
        must_unroll = any(is_at_counters(control, planned.counters) for control in controls)
        largest = LARGEST_UNROLLED if must_unroll else LARGEST_GRAPH
        self._is_graph, self._is_captured, self._stretches = 1 < nodes <= largest, True, 0
        run = self._in_stretches(planned.steps)
        self._run = partial(self._replay, run) if self._is_graph else run

    def __call__(self, arguments: Sequence[Array]) -> list[Array]:
        self._device.check_current()
        try:
            return self._called(arguments)
        except self._device.failures as error:
            raise DeviceError(f"{self.plan.loops.name} fails on the GPU: {error}") from error

    def _called(self, arguments: Sequence[Array]) -> list[Array]:
        device = self._device
        stream = device.stream()
        frame = self._frame(stream)
        frame.stream, frame.precision = stream, config.current().matmul_precision
        arrays = [self._input(frame, n, array) for n, array in enumerate(arguments)]
        outputs = self._new_outputs(arguments, arrays)
        arrays += outputs
        frame.give(arrays)
        self._run(frame)
        if self._may_fail:
            self._check(frame)
        if self._stacks:
            self._take_stacks(frame, outputs)
        frame.take_back()
        if self._workspace_size <= KEPT_BYTES:
            self._frames[queue_of(stream)].append(frame)
        return outputs

    def _frame(self, stream: int) -> Frame:
        """A frame that nobody else has, with which work before this is on the same stream."""
        try:
            return self._frames[queue_of(stream)].pop()
        except IndexError:
            return self._new_frame()

    def _graph(self, make: Callable[..., Any], *given: Any) -> Any:
        """A graph; none where the device cannot capture what it consists of, which is not tried again."""
        try:
            return make(*given) if self._is_captured else None
        except (*self._device.failures, NotImplementedError):
            self._is_captured = False
            return None

    def _new_frame(self) -> Frame:
        device = self._device
        STORE.trim(self._workspace_size)
        slots = [device.empty((slot.size,), slot.dtype) for slot in self.plan.slots]
        stacks = [None] * (len(self._positions) - len(slots) - self._given - 2)
        counters, status = (device.to_device(np.zeros(n, I64)) for n in (self.plan.counters, STATUS_SIZE))
        arrays = [*[None] * self._given, *slots, *stacks, counters, status]
        return Frame(device, arrays, self.plan.counters, self._taken, max(1, self._stretches))

    @property
    def _given(self) -> int:
        """The number of arrays that a call brings."""
        return len(self.plan.loops.inputs) + len(self.plan.loops.outputs)

    def _input(self, frame: Frame, number: int, array: Array) -> Any:
        """An argument as kernels need it: in the order of its elements, from an address for vectors on."""
        device = self._device
        if type(array) is not device.array_type and not is_on_device(array):
            return frame.copied(number, array) if array.size == 1 else device.to_device(np.ascontiguousarray(array))
        try:
            array = device.adopt(array)
        except PlacementError as error:
            raise PlacementError(f"an argument {error.what}", remedy=error.remedy) from None
        frame.lent.append(array)
        if self._is_in_order(array):
            return array
        made = device.empty(array.shape, array.dtype)
        device.copy(array, made)
        return made

    def _is_in_order(self, array: Any) -> bool:
        """True if kernels can use an array where it is."""
        return array.flags.c_contiguous and not self._device.address(array) % ALIGNMENT

    def _new_outputs(self, arguments: Sequence[Array], arrays: Sequence[Any]) -> list[Any]:
        """The arrays of results: new ones, without rows where their number is not known."""
        empty = self._device.empty
        outputs = [None if new is None else empty(*new) for new in self._outputs]
        for output, given in self._donations:
            outputs[output] = self._donated(arguments[given], given, arrays)
        return outputs

    def _donated(self, given: Array, position: int, arrays: Sequence[Any]) -> Any:
        """The array of an argument that is given away, if nobody else has it, else a copy."""
        device, array = self._device, arrays[position]
        if array is given and device.owns(given):
            start = device.address(given)
            stop = start + given.nbytes
            places = [(device.address(x), x.nbytes) for n, x in enumerate(arrays) if n != position]
            if not any(place < stop and start < place + size for place, size in places):
                return given
        made = device.empty(array.shape, array.dtype)
        device.copy(array, made)
        return made

    def _check(self, frame: Frame) -> None:
        """Raise the error of the run's status, if any; a frame with one is not used again."""
        number, value, *_ = self._device.to_host(frame.arrays[-1]).tolist()
        if number:
            fail(self.plan.loops, number, value)

    def direct(self, _: CallBefore) -> None:
        """Direct calls are those of the host."""

    @property
    def workspace_bytes(self) -> int:
        """The memory of the workspaces not in use, in bytes."""
        return self._workspace_size * sum(map(len, list(self._frames.values())))

    def free_workspaces(self) -> int:
        """Free the workspaces not in use, with their graphs; return the number of bytes freed."""
        freed = self.workspace_bytes
        self._frames.clear()
        return freed

    # ---- steps -------------------------------------------------------------------------------------------------------

    def _in_order(self, steps: Sequence[DeviceStep]) -> Run:
        return in_order(list(map(self._step, steps)))

    def _in_stretches(self, steps: Sequence[DeviceStep], depth: int = -1) -> Run:
        """The run of steps within loops up to this depth, with graphs of what is launched between the host's work.

        There are none where all of the program is one.
        """
        if self._is_graph:
            return self._in_order(steps)
        runs: list[Run] = []
        for is_short, group in groupby(steps, lambda step: is_part_of_graph(step, depth)):
            stretch = list(group)
            run = self._in_order(stretch)
            is_graph = is_short and 1 < sum(map(nodes_of, stretch)) <= LARGEST_GRAPH
            self._stretches += is_graph
            runs.append(partial(self._replay, run) if is_graph else run)
        return in_order(runs)

    def _replay(self, run: Run, frame: Frame) -> None:
        """Replay the graph of a run, if there is one, else run."""
        stacks = self._addresses_of_stacks(frame)
        graph = None if frame.is_captured else self._graph(frame.graph_again, run, *stacks)
        if graph is None:
            run(frame)
        else:
            self._device.replay(graph, frame.stream)

    def _step(self, step: DeviceStep) -> Run:
        match step:
            case Launch():
                return self._launch(step)
            case DeviceProducts():
                return products(step, self._device, self._position)
            case DeviceControl():
                return self._control(step)
            case LibraryCall():
                return self._library_call(step)

    def _launch(self, launch: Launch) -> Run:
        number, run = self._numbers[launch], self._device.launch
        kernel, blocks, threads = self._loaded[number], launch.blocks, launch.threads
        return lambda frame: run(kernel, blocks, threads, frame.stream, frame.parameters[number])

    # ---- loops and branches ------------------------------------------------------------------------------------------

    def _control(self, step: DeviceControl) -> Run:
        match step.control:
            case Switch(_, index):
                depth = step.control.depth
                return choose(self._scalar(index), [self._in_stretches(body, depth) for body in step.bodies])
            case SequentialFor() as loop:
                return self._counted(step, loop)
            case SequentialWhile() as loop:
                return self._endless(step, loop)

    def _counted(self, step: DeviceControl, loop: SequentialFor) -> Run:
        """The run of a counted loop."""
        extent, reserve = loop.extent, self._reserve(loop.residual_stacks)
        length: Read = (lambda frame: extent) if isinstance(extent, int) else self._scalar(extent)
        begin = nothing if step.begin is None else self._launch(step.begin)
        several = self._several(step, [*step.bodies[0], *([] if step.go_on is None else [step.go_on])])

        def run(frame: Frame) -> None:
            iterations = range(int(length(frame)))
            reserve(frame, len(iterations))
            begin(frame)
            if loop.reverse:
                iterations = iterations[::-1]
            several(frame, iterations[:1], False)  # what a library loads at its first call cannot be captured
            several(frame, iterations[1:], len(iterations) >= LEAST)

        return run

    def _endless(self, step: DeviceControl, loop: SequentialWhile) -> Run:
        """The run of a loop that ends when its test says so: twice as many iterations each time before it is asked."""
        assert step.begin is not None
        assert step.go_on is not None
        test, body, end = step.bodies
        start, finish = self._in_order([step.begin, *test, step.go_on]), self._in_order(end)
        several, reserve = self._several(step, [*body, *test, step.go_on]), self._reserve(loop.residual_stacks)
        most, stacks = MOST_AHEAD if step.is_guarded else 1, [self._position(stack) for stack in loop.residual_stacks]
        fault = self.plan.loops.faults[loop.fault - 1] if loop.limit is not None else None

        def run(frame: Frame) -> None:
            start(frame)
            done, count = 0, 1
            while (noted := self._device.to_host(frame.arrays[-2]).tolist())[step.guard]:
                if fault is not None and done == loop.limit:
                    if self._may_fail:
                        self._check(frame)
                    raise fault.error
                now = count if loop.limit is None else min(count, loop.limit - done)
                reserve(frame, done + now)
                several(frame, range(done, done + now), count >= TOGETHER)
                done, count = done + now, min(2 * count, most)
            for stack in stacks:
                frame.rows[stack] = noted[loop.depth]
            finish(frame)

        return run

    def _several(self, step: DeviceControl, iteration: Sequence[DeviceStep]) -> Callable[[Frame, range, bool], None]:
        """The run of iterations of a loop; of `many`, several are one graph, if the host does nothing in them."""
        depth, device = step.control.depth, self._device
        can_be_captured = all(is_captured(s) and not is_at_counters(s, depth) for s in iteration)
        once = self._in_order(iteration) if can_be_captured else self._in_stretches(iteration, depth)

        def many_at_once(frame: Frame) -> None:
            for _ in range(TOGETHER):
                once(frame)

        def run(frame: Frame, iterations: range, many: bool) -> None:
            graph = None
            if many and can_be_captured and not frame.is_captured:
                key = step, frame.call, *self._addresses_of_stacks(frame)
                graph = self._graph(frame.captured, key, many_at_once)
            while graph is not None and len(iterations) >= TOGETHER:
                device.replay(graph, frame.stream)
                iterations = iterations[TOGETHER:]
            for number in iterations:
                frame.counters[depth] = number
                once(frame)

        return run

    def _scalar(self, load: BufferLoad) -> Read:
        position, address = self._position(load.buffer), load.address.constant
        return lambda frame: self._device.to_host(frame.arrays[position].reshape(-1)[address : address + 1])[0]

    # ---- residual stacks ---------------------------------------------------------------------------------------------

    def _reserve(self, stacks: Sequence[Buffer]) -> Callable[[Frame, int], None]:
        """A function that makes room for so many rows of residual stacks, which double when they are full."""
        device = self._device
        sizes = [(self._position(stack), prod(stack.aval.shape[1:]), stack.dtype) for stack in stacks]

        def reserve(frame: Frame, rows: int) -> None:
            for position, row, dtype in sizes:
                frame.rows[position] = rows
                old = frame.arrays[position]
                size = 0 if old is None else old.size
                if rows * row > size:
                    grown = device.empty((max(rows * row, 2 * size),), dtype)
                    if size:
                        device.copy(old, grown[:size])
                    frame.place(position, grown)

        return reserve

    def _addresses_of_stacks(self, frame: Frame) -> Iterator[int]:
        for position in self._stacks:
            if frame.arrays[position] is not None:
                yield self._device.address(frame.arrays[position])

    def _take_stacks(self, frame: Frame, outputs: list[Any]) -> None:
        """Copy the residual stacks that are results, and free all."""
        first = len(self.plan.loops.inputs)
        for position, aval in self._stacks.items():
            if position < self._given:
                shape = (frame.rows.get(position, 0), *aval.shape[1:])
                made = outputs[position - first] = self._device.empty(shape, aval.dtype)
                self._device.copy(frame.arrays[position][: prod(shape)], made)
            frame.drop(position)
        frame.rows.clear()

    # ---- calls of libraries ------------------------------------------------------------------------------------------

    def _library_call(self, call: LibraryCall) -> Run:
        operands = [(self._position(b), b.aval) for b in call.operands]
        results = [(self._position(b), b.aval) for b in call.results]
        lowering, device = call.primitive.lower, self._device
        evaluate = self._by_host if isinstance(lowering, Library) and lowering.routine == HOST else device.evaluate
        function = partial(call.primitive.evaluate, **call.params)

        def run(frame: Frame) -> None:
            values = [frame.arrays[n].reshape(-1)[: aval.size].reshape(aval.shape) for n, aval in operands]
            try:
                computed = evaluate(function, values)
            except FnadError as error:
                raise error.at(call.source) from None
            for (n, aval), value in zip(results, computed, strict=True):
                device.copy(value, frame.arrays[n].reshape(-1)[: aval.size].reshape(aval.shape))

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
    return ptx_of_all([*plan(program).launches.values()], arch)


def sass(program: Program, arch: str = ARCH) -> str:
    """The kernels of a program in the instructions of a GPU."""
    return machine_code(ptx(program, arch), arch)


def queue_of(stream: int) -> Any:
    """The identity of a stream."""
    return stream if stream != PER_THREAD else (stream, get_ident())


def nothing(frame: Frame) -> None:
    """Do nothing."""

"""Whole programs on the harness: the steps of a plan on NumPy arrays."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from fnad.ir.program import Program
from fnad.kernel.launches import DeviceControl, DevicePlan, DeviceStep, Launch, Products
from fnad.kernel.statements import COUNTERS, STATUS
from fnad.lower.index import Counter, Index
from fnad.lower.loop_ir import Matrix, Product, SequentialFor, SequentialWhile
from fnad.lower.lowering import lower
from fnad.lower.nodes import BufferLoad
from fnad.lower.target import Target
from tests.cuda import harness
from tests.cuda.harness import Array


def results(program: Program, target: Target, arguments: Sequence[Any], seed: int = 0) -> list[Array]:
    """The results of a program; raises the error that its status stands for."""
    return Run(DevicePlan(lower(program, target), target), arguments, seed).results()


class Run:
    """A run of a plan: arrays by place, in which nothing is stored yet but the arguments."""

    def __init__(self, plan: DevicePlan, arguments: Sequence[Any], seed: int) -> None:
        self.plan = plan
        self.schedule = random.Random(seed)
        assert plan.target.grid is not None
        self.warp = plan.target.grid.warp
        loops = plan.loops
        self.arrays: dict[str, Array] = {
            buffer.name: np.ascontiguousarray(x, buffer.dtype).reshape(-1)
            for buffer, x in zip(loops.inputs, arguments, strict=True)
        }
        self.arrays |= {b.name: harness.unset(b.aval.size, b.dtype) for b in loops.outputs}
        self.arrays |= {slot.name: harness.unset(slot.size, slot.dtype) for slot in plan.slots}
        self.arrays |= {COUNTERS.name: np.zeros(16, np.int64), STATUS.name: np.zeros(3, np.int64)}

    def results(self) -> list[Array]:
        self.steps(self.plan.steps)
        if (number := self.arrays[STATUS.name][0]) > 0:
            raise self.plan.loops.faults[number - 1].error
        return [self.arrays[b.name].reshape(b.aval.shape) for b in self.plan.loops.outputs]

    def steps(self, steps: Sequence[DeviceStep]) -> None:
        for step in steps:
            self.step(step)

    def step(self, step: DeviceStep) -> None:
        match step:
            case Launch():
                arrays = [self.arrays[parameter.name] for parameter in step.kernel.parameters]
                harness.run(step, arrays, self.schedule, self.warp)
            case Product():
                self.multiply(step, {})
            case Products(loops, product):
                for place in np.ndindex(*(loop.extent for loop in loops)):
                    self.multiply(product, {loop.depth: n for loop, n in zip(loops, place, strict=True)})
            case DeviceControl():
                self.control(step)
            case _:
                raise NotImplementedError(step)

    def control(self, step: DeviceControl) -> None:
        counters = self.arrays[COUNTERS.name]
        match step.control:
            case SequentialFor(depth, int(extent), reverse):
                for n in reversed(range(extent)) if reverse else range(extent):
                    counters[depth] = n
                    self.steps(step.bodies[0])
            case SequentialWhile() as loop:
                self.repeat(loop, step.bodies)
            case choice:
                number = int(self.load(choice.index))
                self.steps(step.bodies[min(max(number, 0), len(step.bodies) - 1)])

    def repeat(self, loop: SequentialWhile, bodies: Sequence[Sequence[DeviceStep]]) -> None:
        counters, status = self.arrays[COUNTERS.name], self.arrays[STATUS.name]
        counters[loop.depth] = 0
        while True:
            self.steps(bodies[0])
            if status[0] or not self.load(loop.predicate):
                break
            if counters[loop.depth] == loop.limit:
                status[0] = loop.fault
                break
            self.steps(bodies[1])
            counters[loop.depth] += 1
        self.steps(bodies[2])

    def load(self, load: BufferLoad) -> Any:
        return self.arrays[self.plan.places[load.buffer.root]][self.number(load.address, {})]

    def number(self, index: Index, counters: dict[int, int]) -> int:
        total = index.constant
        for atom, coefficient in index.terms:
            assert isinstance(atom, Counter)
            total += coefficient * counters.get(atom.depth, int(self.arrays[COUNTERS.name][atom.depth]))
        return total

    def multiply(self, product: Product, counters: dict[int, int]) -> None:
        a, b = (
            self.view(product.a, product.m, product.k, counters),
            self.view(product.b, product.k, product.n, counters),
        )
        self.view(product.out, product.m, product.n, counters)[...] = a @ b

    def view(self, matrix: Matrix, rows: int, columns: int, counters: dict[int, int]) -> Array:
        flat = self.arrays[self.plan.places[matrix.buffer.root]][self.number(matrix.offset, counters) :]
        strides = [stride * flat.itemsize for stride in (matrix.row_stride, matrix.column_stride)]
        return np.lib.stride_tricks.as_strided(flat, (rows, columns), strides)

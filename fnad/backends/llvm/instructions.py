"""Kernels as LLVM instructions.

Kernels are typed, so nothing is inferred: a statement becomes the instructions of its operations. A variable that is
assigned in one place is an LLVM value; others get a stack slot, which LLVM promotes to registers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

import llvmlite.ir as ir
import numpy as np

from fnad.backends.llvm import loop_hints, transposes
from fnad.backends.llvm.emitter import Emit, Value
from fnad.backends.llvm.lines import LinedModule
from fnad.backends.llvm.scalar import llvm_type, memory_type
from fnad.errors import LoweringError
from fnad.ir.program import Source
from fnad.kernel import statements as code
from fnad.kernel.forward import stored_arrays
from fnad.kernel.liveness import used_outside
from fnad.kernel.order import is_unvectorised
from fnad.kernel.python_source import is_barrier
from fnad.kernel.registers import is_unrolled
from fnad.kernel.scratch import frame_words, large_arrays, makes_array, own_words
from fnad.lower.target import Target
from fnad.scalar.operation import BOOL, INDEX, Dtype, Kind, Operation, Pointer
from fnad.scalar.scipy_ufunc import UFUNC, UfuncOperation

SHARE = "share"
"""The routine share(function, context, tasks, threads, long, stops, status, scratch, bytes).

It calls function(context, n, scratch) for each task n; each thread has so many bytes of scratch memory, this one those
given. A loop that `stops` ends early where the status is set, as it is after an interrupt.
"""

SCALAR = "scalar_"
"""The prefix of instructions that replace another one in loops that are not vectorised."""

BYTES, WORD = ir.IntType(8).as_pointer(), ir.IntType(32)


def add_function(module: ir.Module, kernel: code.Kernel, target: Target) -> ir.Function:
    """Define the function of a kernel in a module; its arrays do not overlap.

    That is what `noalias` says, but also that nobody else writes into an array: LLVM would take the value behind a
    barrier for that before it. So where there are barriers, arrays that are stored into do not have it.

    After the parameters it takes the large arrays that it makes, if it has scratch memory.
    Raises `LoweringError` where the target has no instructions for an operation.
    """
    parameters = [*kernel.parameters, *_in_frame(kernel)]
    types = [value_type(parameter.kind) for parameter in parameters]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), types), name=kernel.name)
    function.linkage = "internal"
    # Another thread may write the status at any time, so it is read where that is written.
    exchanged = {
        code.STATUS.name,
        *(stored_arrays(kernel.body) if any(map(is_barrier, code.walk(kernel.body))) else ()),
    }
    # A function without it cannot align its stack, and vectors that it keeps there may be parts of two lines.
    set.add(function.attributes, '"frame-pointer"="all"')
    for parameter, argument in zip(parameters, function.args, strict=True):
        if isinstance(parameter.kind, Pointer) and parameter.name not in exchanged:
            argument.add_attribute("noalias")
    _Writer(function, kernel, target).write()
    return function


def _in_frame(kernel: code.Kernel) -> dict[code.Name, int]:
    """The arrays that a kernel makes in scratch memory."""
    return large_arrays(kernel.body) if code.SCRATCH in kernel.parameters else {}


def arrays_in_frame(builder: ir.IRBuilder, kernel: code.Kernel, scratch: Value) -> list[Value]:
    """The large arrays of a kernel with this scratch memory."""
    places = ((array, builder.gep(scratch, [ir.IntType(64)(place)])) for array, place in _in_frame(kernel).items())
    return [builder.bitcast(place, value_type(array.kind)) for array, place in places]


def value_type(kind: Kind) -> ir.Type:
    """The LLVM type of a scalar or an array."""
    if isinstance(kind, Pointer):
        return memory_type(kind.dtype).as_pointer()
    assert isinstance(kind, np.dtype)
    return llvm_type(kind)


def constant(value: object, dtype: Dtype) -> ir.Constant:
    """A number as a value."""
    type_ = llvm_type(dtype)
    if dtype.kind == "c":
        number = complex(value)  # type: ignore[call-overload]
        return ir.Constant(type_, [number.real, number.imag])
    return ir.Constant(type_, float(value) if dtype.kind == "f" else int(value))  # type: ignore[call-overload]


def add_task(function: ir.Function, body: code.Kernel, record: ir.Type) -> ir.Function:
    """Define the function (context, n, scratch) that calls that of a body on the values in a record, the context."""
    type_ = ir.FunctionType(ir.VoidType(), [BYTES, ir.IntType(64), value_type(code.SCRATCH.kind)])
    task = ir.Function(function.module, type_, name=f"{function.name}_task")
    task.linkage = "internal"
    builder = ir.IRBuilder(task.append_basic_block())
    context, number, scratch = task.args
    values = builder.load(builder.bitcast(context, record.as_pointer()))
    arguments = [builder.extract_value(values, n) for n in range(len(record.elements))]
    in_frame = [scratch, *arrays_in_frame(builder, body, scratch)] if code.SCRATCH in body.parameters else []
    builder.call(function, [*arguments, number, *in_frame], attrs=("noinline",))
    builder.ret_void()
    return task


def is_long(loop: code.For) -> bool:
    """True if the tasks of a loop are known to take long: only large matrix products are divided."""
    return any(isinstance(statement, code.Evaluate) for statement in loop.body)


def with_stores_last(body: Sequence[code.Statement]) -> list[code.Statement]:
    """The statements of a loop with its stores behind all loads; unchanged if the new order would change a result.

    Arrays do not overlap, so a load from one array commutes with a store into another.
    """
    used, made = set[code.Name](), set[code.Name]()
    for statement in reversed(body):
        names = {*code.names_read(*statement.operands)}
        match statement:
            case code.Store(array) if array in used or not made.isdisjoint(names):
                return [*body]
            case code.Store():
                pass
            case code.Assign(targets) if not makes_array(statement):
                used |= names
                made |= {*targets}
            case code.Comment():
                pass
            case _:
                return [*body]
    return sorted(body, key=lambda statement: isinstance(statement, code.Store))


def names_used(statements: Sequence[code.Statement]) -> list[code.Name]:
    """The variables and arrays that statements use but do not assign, in the order of the text."""
    found: dict[code.Name, None] = {}
    assigned: set[str] = set()
    for statement in code.walk(statements):
        match statement:
            case code.Assign(targets, _):
                assigned.update(target.name for target in targets)
            case code.For(counter):
                assigned.add(counter.name)
            case code.Store(array):
                found[array] = None
            case _:
                pass
        found.update(dict.fromkeys(code.names_read(*statement.operands)))
    return [name for name in found if name.name not in assigned]


class _Writer:
    """Writes one function; `slots` are the variables on the stack, `values` the others."""

    def __init__(self, function: ir.Function, kernel: code.Kernel, target: Target) -> None:
        self.function = function
        self.target = target
        self.kernel = kernel
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.lines = function.module.lines if isinstance(function.module, LinedModule) else None
        self.scope = None if self.lines is None else self.lines.scope(function)
        self.source: Source | None = None
        self.before = None if self.lines is None else self.lines.enter(self.builder)
        self.exit = function.append_basic_block("exit")
        self.values: dict[str, Value] = {
            p.name: argument
            for p, argument in zip([*kernel.parameters, *_in_frame(kernel)], function.args, strict=True)
        }
        self.ends: list[ir.Block] = []
        self.around: code.For | None = None
        self.is_scalar = True
        self.slots = {
            name.name: self.builder.alloca(value_type(name.kind), name=name.name) for name in self._on_stack()
        }

    def _on_stack(self) -> list[code.Name]:
        """The variables that are assigned in several places, or used after the block that they are assigned in."""
        given = _in_frame(self.kernel)
        assigned = [s for s in code.walk(self.kernel.body) if isinstance(s, code.Assign) and s.targets[0] not in given]
        tally = Counter(target for statement in assigned for target in statement.targets)
        outliving = used_outside(self.kernel.body)
        return [name for name, count in tally.items() if count > 1 or name.name in outliving]

    def write(self) -> None:
        self.block(self.kernel.body)
        if not self.builder.block.is_terminated:
            self.builder.branch(self.exit)
        builder = ir.IRBuilder(self.exit)
        if self.lines is not None:
            self.lines.leave(builder, self.before)
        builder.ret_void()

    # ---- statements ----------------------------------------------------------------------------------------------

    def block(self, statements: Sequence[code.Statement]) -> None:
        for statement in statements:
            if self.builder.block.is_terminated:
                return
            self.statement(statement)

    def statement(self, statement: code.Statement) -> None:
        match statement:
            case code.Assign():
                self.assign(statement)
            case code.Store(array, index, value):
                self.store(array, self.value(index), self.value(value))
            case code.Evaluate(call):
                with self.held():
                    self.value(call)
            case code.For():
                self.counted(statement)
            case code.While(body):
                self.endless(body)
            case code.If():
                self.branch(statement)
            case code.Break():
                self.builder.branch(self.ends[-1])
            case code.Return():
                self.builder.branch(self.exit)
            case code.Comment(_, source):
                self.locate(source)

    def locate(self, source: Source | None) -> None:
        """Give the instructions that follow this line, if the module has lines."""
        if self.lines is not None and source is not None:
            self.source = source
            self.builder.debug_metadata = self.lines.location(source, self.scope)

    def held(self) -> AbstractContextManager[None]:
        """A block that calls a library for the line of the instructions before it."""
        return nullcontext() if self.lines is None else self.lines.held(self.builder, self.source)

    def assign(self, statement: code.Assign) -> None:
        targets = statement.targets
        if makes_array(statement) and targets[0].name in self.values:
            return  # it is in scratch memory
        value, several = self.value(statement.value), len(targets) > 1
        for n, target in enumerate(targets):
            part = self.builder.extract_value(value, n) if several else value
            if target.name in self.slots:
                self.builder.store(part, self.slots[target.name])
            else:
                self.values[target.name] = part

    def store(self, array: code.Name, index: Value, value: Value) -> None:
        in_memory = self.builder.zext(value, ir.IntType(8)) if array.dtype == BOOL else value
        self.builder.store(in_memory, self.builder.gep(self.value(array), [index], inbounds=True))

    def counted(self, loop: code.For) -> None:
        if loop.is_parallel and code.STATUS.name in self.values:
            self.parallel_loop(loop)
        elif blocks := transposes.in_blocks(loop) if transposes.are_fast(self.target) else None:
            self.block(blocks)
        else:
            self.loop(loop)

    def loop(self, loop: code.For) -> None:
        """Write a loop that is tested at the top."""
        if loop_hints.reads_on(loop.body):
            loop = loop.with_bodies(with_stores_last)
        builder, long = self.builder, ir.IntType(64)
        start, stop = self.value(loop.start), self.value(loop.stop)
        before = builder.block
        top, body, end = (self.function.append_basic_block(label) for label in ("for", "body", "end"))
        builder.branch(top)
        builder.position_at_end(top)
        counter = builder.phi(long)
        counter.add_incoming(start, before)
        builder.cbranch(builder.icmp_signed("<" if loop.step > 0 else ">", counter, stop), body, end)
        builder.position_at_end(body)
        slot, outer = self.slots.pop(loop.counter.name, None), self.values.get(loop.counter.name)
        around, self.around = self.around, loop
        is_scalar, self.is_scalar = self.is_scalar, is_unvectorised(loop)
        self.values[loop.counter.name] = counter
        self._inside(loop.body, end)
        self.around, self.is_scalar = around, is_scalar
        if not builder.block.is_terminated:
            counter.add_incoming(builder.add(counter, long(loop.step), flags=["nsw"]), builder.block)
            back = builder.branch(top)
            if self.target.memory == "device" and is_unrolled(loop):
                loop_hints.unroll(back, self.function.module)
            elif loop.kind is code.LoopKind.SPAN:
                loop_hints.over_span(back, self.function.module)
            elif builder.block is body:
                loop_hints.innermost(loop, body, back, around, self.slots, self.target.lanes)
        if slot is not None:
            self.slots[loop.counter.name] = slot
        if outer is not None:
            self.values[loop.counter.name] = outer
        builder.position_at_end(end)

    def parallel_loop(self, loop: code.For) -> None:
        """Write the body as a function of the values that it uses and the counter, which several threads may call."""
        builder, module, long = self.builder, self.function.module, ir.IntType(64)
        used = [name for name in names_used(loop.body) if name != loop.counter]
        has_scratch = code.SCRATCH.name in self.values
        parameters = (*used, loop.counter, *[code.SCRATCH] * has_scratch)
        body = code.Kernel(module.get_unique_name(f"{self.kernel.name}_body"), parameters, loop.body)
        function = add_function(module, body, self.target)
        record = ir.LiteralStructType([value_type(name.kind) for name in used])
        with builder.goto_entry_block():
            context = builder.alloca(record)
        for n, name in enumerate(used):
            builder.store(self.value(name), builder.gep(context, [WORD(0), WORD(n)]))
        task = add_task(function, body, record)
        threads = builder.load(builder.gep(self.values[code.STATUS.name], [long(code.THREADS)]))
        known, stops = map(
            ir.IntType(1), (is_long(loop), any(isinstance(s, code.Return) for s in code.walk(loop.body)))
        )
        scratch, nbytes = value_type(code.SCRATCH.kind)(None), long(0)
        if has_scratch:
            scratch = builder.gep(self.values[code.SCRATCH.name], [long(own_words(self.kernel.body))])
            nbytes = long(frame_words(loop.body) * INDEX.itemsize)
        given = [task, builder.bitcast(context, BYTES), self.value(loop.stop), threads, known, stops]
        self.target.instructions[SHARE](builder, (), [*given, self.values[code.STATUS.name], scratch, nbytes])

    def endless(self, statements: Sequence[code.Statement]) -> None:
        body, end = self.function.append_basic_block("while"), self.function.append_basic_block("end")
        self.builder.branch(body)
        self.builder.position_at_end(body)
        is_scalar, self.is_scalar = self.is_scalar, True
        self._inside(statements, end)
        self.is_scalar = is_scalar
        if not self.builder.block.is_terminated:
            self.builder.branch(body)
        self.builder.position_at_end(end)

    def _inside(self, statements: Sequence[code.Statement], end: ir.Block) -> None:
        self.ends.append(end)
        self.block(statements)
        self.ends.pop()

    def branch(self, statement: code.If) -> None:
        builder, condition = self.builder, self.value(statement.condition)
        then, end = self.function.append_basic_block("then"), self.function.append_basic_block("end")
        otherwise = self.function.append_basic_block("else") if statement.otherwise else end
        builder.cbranch(condition, then, otherwise)
        for block, statements in ((then, statement.then), (otherwise, statement.otherwise)):
            if block is not end:
                builder.position_at_end(block)
                self.block(statements)
                if not builder.block.is_terminated:
                    builder.branch(end)
        builder.position_at_end(end)

    def emitter(self, operation: Operation) -> Emit:
        """The emitter of an operation; SciPy's ufuncs, of which there is no list, may share one."""
        instructions = self.target.instructions
        if self.is_scalar and SCALAR + operation.name in instructions:
            return instructions[SCALAR + operation.name]
        if operation.name in instructions:
            return instructions[operation.name]
        if isinstance(operation, UfuncOperation) and UFUNC in instructions:
            return partial(instructions[UFUNC], operation)
        raise LoweringError(f"{self.target.name} has no instructions for {operation.name}")

    # ---- expressions ---------------------------------------------------------------------------------------------

    def value(self, expression: code.Expression) -> Value:
        match expression:
            case code.Name(name, _):
                slot = self.slots.get(name)
                return self.values[name] if slot is None else self.builder.load(slot)
            case code.Constant(value):
                return constant(value, value.dtype)
            case _:
                around = self.builder.debug_metadata
                value = self.computed(expression)
                self.builder.debug_metadata = around
                return value

    def computed(self, expression: code.Load | code.Apply) -> Value:
        self.locate(expression.source)
        match expression:
            case code.Load(array, index):
                value = self.builder.load(self.builder.gep(self.value(array), [self.value(index)], inbounds=True))
                return self.builder.icmp_unsigned("!=", value, value.type(0)) if expression.kind == BOOL else value
            case code.Apply(operation, operands, _):
                values = [self.value(operand) for operand in operands]
                emit = self.emitter(operation)
                return emit(self.builder, [operand.kind for operand in operands], values)

"""Control flow: an equation's regions become branches and loops around the nests of their own equations.

A region is lowered like a program, one level deeper, with its inputs bound: constants and slices of scanned arrays to
values of the program around it, so that they are read in place, and carries to buffers. The rows that a scan stacks are
parts of the stacked result. A carry has one buffer, which each iteration updates: see Note [Updating carries]. What
depends on constants alone is computed before the loop.

Note [Updating carries]
    The new value of a carry is computed from the old values of all carries. A new scalar goes into a temporary, and all
    scalars are updated together at the end of the iteration. An array is overwritten in place if nothing that is still
    to be computed reads the old one, and each new element reads no other element of it; otherwise it goes into a
    temporary too. Nests keep reads before writes by themselves. An array that a branch changes in place is a carry
    within the branch.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fnad.errors import LoweringError, endless
from fnad.ir.primitive import Cond, ScanLoop, WhileLoop
from fnad.ir.program import Atom, Equation, Literal, Program, Var
from fnad.ir.types import BOOL, I64, Aval
from fnad.lower.expressions import Binding, place
from fnad.lower.faults import of_error
from fnad.lower.in_place import in_place_candidates
from fnad.lower.index import ENDLESS, Counter, Index, counter, counters
from fnad.lower.loop_ir import BufferStore, Item, SequentialFor, SequentialWhile, Switch
from fnad.lower.nodes import Buffer, BufferLoad, Node, loads
from fnad.lower.recurrences import by_elements
from fnad.lower.values import Values


class Carry(NamedTuple):
    """The new value of a carry after an iteration, and the buffer that holds the old one."""

    new: Atom
    buffer: Buffer


class Regions(Values):
    """The values of a program with control flow."""

    def materialize(self, equation: Equation) -> None:
        match equation.primitive.lower:
            case Cond():
                self._cond(equation)
            case ScanLoop():
                self._scan_loop(equation)
            case WhileLoop():
                self._while_loop(equation)
            case _:
                super().materialize(equation)

    # ---- regions -------------------------------------------------------------------------------------------------

    def _region(self, program: Program, meanings: Sequence[Binding | Buffer], depth: int) -> Regions:
        """The values of a region with its inputs bound to these meanings."""
        region = Regions(program, self.shared, depth, self.nests if depth == self.depth else None)
        for var, meaning in zip(program.inputs, meanings, strict=True):
            if isinstance(meaning, Buffer):
                region.expressions.buffers[var] = meaning
            else:
                region.expressions.bindings[var] = meaning
        return region

    def _loop_region(self, program: Program, constants: Sequence[Atom], others: Sequence[Binding | Buffer]) -> Regions:
        """The values of a loop body; those that depend on constants alone are computed before the loop."""
        before, inside = _split_invariant(program, len(constants))
        bound = self._bound(constants)
        prelude = self._region(before, bound, self.depth)
        prelude.compute((), whole=before.outputs)
        crossing = [Binding(prelude.expressions, atom) for atom in before.outputs]
        return self._region(inside, [*bound, *others, *crossing], self.depth + 1)

    def _bound(self, atoms: Iterable[Atom], *leading: Index) -> list[Binding]:
        return [Binding(self.expressions, atom, leading) for atom in atoms]

    def _results(self, variables: Sequence[Var]) -> list[Buffer]:
        """The buffers of results that regions write."""
        buffers = [self.own.get(var) or self._new(var.aval) for var in variables]
        self.expressions.buffers.update(zip(variables, buffers, strict=True))
        return buffers

    def _disown_numbers(self, variables: Iterable[Var]) -> None:
        """Keep single numbers in variables, which are copied at the end."""
        for var in variables:
            if var.aval.size == 1:
                self.own.pop(var, None)

    def _new(self, aval: Aval) -> Buffer:
        return self.shared.residual_stack(aval, self.depth) if aval.is_residual_stack else self.temporary(aval)

    def _number(self, atom: Atom) -> BufferLoad:
        """The load of a scalar that control flow depends on."""
        node = self.expressions.element(atom, ())
        return node if isinstance(node, BufferLoad) and not node.address.terms else self._aside(atom, node)

    def _aside(self, atom: Atom, node: Node) -> BufferLoad:
        """Store an element in a new buffer; return its load."""
        buffer = self.temporary(Aval(atom.aval.dtype, ()))
        self.nests.place(BufferStore(buffer, Index(0), node, self.source))
        return self.expressions.nodes.load(buffer, Index(0))

    # ---- branches ------------------------------------------------------------------------------------------------

    def _cond(self, equation: Equation) -> None:
        if any(var.aval.is_residual_stack for var in equation.results):
            raise LoweringError("a branch returns a residual stack")
        chosen = self._number(equation.operands[0])
        taken = {var: buffer for var in equation.results if (buffer := self.taken(var)) is not None}
        slots = {
            candidate.slot: candidate.result for candidate in in_place_candidates(equation) if candidate.result in taken
        }
        rest = [var for var in equation.results if var not in taken]
        self._disown_numbers(rest)
        results = taken | dict(zip(rest, self._results(rest), strict=True))
        self.expressions.buffers.update(taken)
        branches = tuple(self._branch(equation, program, results, slots) for program in equation.regions)
        self.nests.place(Switch(self.depth, chosen, branches))

    def _branch(
        self, equation: Equation, program: Program, results: dict[Var, Buffer], slots: dict[int, Var]
    ) -> list[Item]:
        """A branch; results that take the memory of an operand, in `slots`, are carried through it."""
        depth = self.depth + 1
        given = dict(zip(equation.results, program.outputs, strict=True))
        inside = {slot: results[var].again(depth) for slot, var in slots.items()}
        bound = self._bound(equation.operands)
        region = self._region(program, [inside.get(n) or bound[n] for n in range(1, len(bound))], depth)
        stored = [(given[var], results[var].again(depth)) for var in equation.results if var not in slots.values()]
        carries = [(program.inputs[slot - 1], Carry(given[var], inside[slot])) for slot, var in slots.items()]
        region.carry_on(stored, carries)
        return region.items()

    # ---- loops ---------------------------------------------------------------------------------------------------

    def _scan_loop(self, equation: Equation) -> None:
        length: int | None = equation.params["length"]
        given = equation.operands if length is not None else equation.operands[1:]
        constants, inits, xs = _cut(given, equation.params["consts"], equation.params["carry"])
        extent = length if length is not None else self._number(equation.operands[0])
        iteration = counter(self.depth, ENDLESS if length is None else length)
        carries = self._carries(equation.results[: len(inits)], inits)
        stacks = self._results(equation.results[len(inits) :])
        if extent == 0:
            return
        (program,) = equation.regions
        body = self._loop_region(program, constants, [*carries, *self._bound(xs, iteration)])
        updates = body.compute_iteration(program, len(constants), carries, stacks, iteration)
        growing = tuple(stack for stack in stacks if stack.aval.is_residual_stack)
        loop = SequentialFor(self.depth, extent, equation.params["reverse"], body.items(), updates, growing)
        self.nests.place(by_elements(loop, self.shared.target, self.expressions.nodes) or loop)

    def _while_loop(self, equation: Equation) -> None:
        params, (test_program, program) = equation.params, equation.regions
        for_test, constants, inits = _cut(equation.operands, params["test_consts"], params["body_consts"])
        iteration, checks = Index(0, ((Counter(self.depth, ENDLESS), 1),)), self.shared.checks
        carries = self._carries(equation.results[: len(inits)], inits)
        steps, *stacks = self._results(equation.results[len(inits) :])
        predicate = self.shared.temporary(Aval(BOOL), self.depth + 1)
        test = self._loop_region(test_program, for_test, carries)
        test.compute([(test_program.outputs[0], predicate)])
        body = self._loop_region(program, constants, carries)
        updates = body.compute_iteration(program, len(constants), carries, stacks, iteration)
        nodes, limit = self.expressions.nodes, params["max_steps"]
        may_fail = self.shared.checks > checks
        error = None if limit is None else endless(limit, params.get("failure"))
        fault = 0 if error is None else self.shared.fault(of_error(error, equation.source))
        loop = SequentialWhile(
            self.depth,
            test.items(),
            nodes.load(predicate, Index(0)),
            body.items(),
            updates,
            BufferStore(steps, steps.offset, nodes.number(iteration, I64), equation.source),
            limit,
            fault,
            may_fail=may_fail,
            residual_stacks=tuple(stacks),
        )
        self.nests.place(loop)

    def _carries(self, variables: Sequence[Var], inits: Sequence[Atom]) -> list[Buffer]:
        """The buffers of carries inside the loop; the initial values are stored there."""
        if any(var.aval.is_residual_stack for var in variables):
            raise LoweringError("a loop carries a residual stack")
        self._disown_numbers(variables)
        taken = [self.taken(var) for var in variables]
        buffers = [
            buffer or self.own.get(v) or self.temporary(v.aval) for buffer, v in zip(taken, variables, strict=True)
        ]
        for had, buffer, init in zip(taken, buffers, inits, strict=True):
            if had is None:
                self.copy(init, buffer.again(self.depth))
        self.expressions.buffers.update(zip(variables, buffers, strict=True))
        return [buffer.again(self.depth + 1) for buffer in buffers]

    def compute_iteration(
        self, program: Program, constants: int, carries: Sequence[Buffer], stacks: Sequence[Buffer], iteration: Index
    ) -> list[BufferStore]:
        """Compute one iteration of a loop; return the updates of scalars at its end."""
        new, rows = program.outputs[: len(carries)], program.outputs[len(carries) :]
        found = program.inputs[constants:]
        parts = [
            stack.part(atom.aval, iteration * atom.aval.size, self.depth)
            for atom, stack in zip(rows, stacks, strict=True)
        ]
        carried = [(var, Carry(n, c)) for n, c, var in zip(new, carries, found, strict=False)]
        return self.carry_on(list(zip(rows, parts, strict=True)), carried)

    def carry_on(
        self, stored: Sequence[tuple[Atom, Buffer]], carried: Sequence[tuple[Var, Carry]]
    ) -> list[BufferStore]:
        """Compute what is stored and the new values of carries, given with their inputs; return the scalar updates."""
        self.compute(stored, [carry.new for _, carry in carried])
        changed = [carry for var, carry in carried if carry.new is not var]
        updates = [self._update_scalar(carry) for carry in changed if carry.buffer.aval.size == 1]
        arrays = [carry for carry in changed if carry.buffer.aval.size > 1 and not self._is_there(carry)]
        self._update_arrays(arrays)
        return updates

    # ---- updates: see Note [Updating carries] ----------------------------------------------------------------------

    def _update_scalar(self, carry: Carry) -> BufferStore:
        new = self._aside(carry.new, self._element(carry))
        return BufferStore(carry.buffer.again(self.depth), carry.buffer.offset, new, self.source)

    def _element(self, carry: Carry) -> Node:
        return self.expressions.element(carry.new, counters(carry.new.aval.shape, self.depth))

    def _update_arrays(self, carries: Sequence[Carry]) -> None:
        memories = {carry.buffer.root for carry in carries}
        read = {carry: self._read(carry) & memories for carry in carries}
        # Overwrite an array first that no other update still reads. If there is none, as in a swap, one goes into a
        # temporary, which frees the others.
        pending = [carry for carry in carries if read[carry]]
        late = [carry for carry in carries if not read[carry]]
        readers = collections.Counter(buffer for carry in pending for buffer in read[carry])
        while pending:
            free = next((c for c in pending if readers[c.buffer.root] == (c.buffer.root in read[c])), None)
            carry = pending[0] if free is None else free
            pending.remove(carry)
            readers.subtract(read[carry])
            if free is not None and self._overwrites(carry):
                self._overwrite(carry)
            else:
                late.append(Carry(self.aside(carry.new), carry.buffer))
        for carry in late:
            self._overwrite(carry)

    def _is_there(self, carry: Carry) -> bool:
        """True if the new value has been computed in the old one's place."""
        made = self.expressions.buffers.get(carry.new) if isinstance(carry.new, Var) else None
        return made is not None and made.root is carry.buffer.root and made.offset == carry.buffer.offset

    def _read(self, carry: Carry) -> set[Buffer]:
        return {load.buffer.root for load in loads([self._element(carry)])}

    def _overwrites(self, carry: Carry) -> bool:
        """True if each element reads no other element of the array than the one it replaces."""
        buffer = carry.buffer
        here = place(buffer, counters(buffer.aval.shape, self.depth))
        found = loads([self._element(carry)])
        return all(load.address == here for load in found if load.buffer.root is buffer.root)

    def _overwrite(self, carry: Carry) -> None:
        self.copy(carry.new, carry.buffer.again(self.depth))


def _cut(atoms: Sequence[Atom], *sizes: int) -> list[Sequence[Atom]]:
    """Cut a list into three, the first two parts of these sizes."""
    first, second = sizes
    return [atoms[:first], atoms[first : first + second], atoms[first + second :]]


def _split_invariant(program: Program, constants: int) -> tuple[Program, Program]:
    """Split a loop body into what depends on its first inputs alone, and the rest, which reads its outputs."""
    known: set[Atom] = set(program.inputs[:constants])
    fixed: list[Equation] = []
    varying: list[Equation] = []
    for equation in program.equations:
        if _can_move(equation) and all(isinstance(atom, Literal) or atom in known for atom in equation.operands):
            known.update(equation.results)
            fixed.append(equation)
        else:
            varying.append(equation)
    made = {var for equation in fixed for var in equation.results}
    read = dict.fromkeys(atom for equation in varying for atom in equation.operands) | dict.fromkeys(program.outputs)
    crossing = tuple(atom for atom in read if isinstance(atom, Var) and atom in made)
    before = Program(program.name, program.inputs[:constants], tuple(fixed), crossing)
    return before, Program(program.name, (*program.inputs, *crossing), tuple(varying), program.outputs)


def _can_move(equation: Equation) -> bool:
    """True if an equation may be computed even if the loop never reaches it."""
    return not (equation.regions or equation.primitive.effect or equation.primitive.raises)

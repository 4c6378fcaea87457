"""Loop programs as text, for reading.

gradient(in x0: f64[3], out out0: f64[3])
  for i0 < 3:
    out0[i0] = cos(x0[i0]) * x0[i0] + sin(x0[i0])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fnad.ir.printer import WIDTH
from fnad.ir.types import BOOL, Dtype
from fnad.lower import loop_ir
from fnad.lower.index import Atom, Counter, Index, Loaded, Quotient, Remainder
from fnad.lower.nodes import Branch, BufferLoad, Checked, Condition, IndexValue, Node, ScalarConstant, ScalarOperation
from fnad.scalar.notation import TEXTS, Text, written
from fnad.scalar.template import cast_to, instantiate


def loops_text(program: loop_ir.LoopProgram) -> str:
    """The text of a loop program."""
    groups = (("in", program.inputs), ("out", program.outputs), ("temporary", program.temporaries))
    named = [f"{kind} {b.name}: {b.aval}" for kind, buffers in groups for b in buffers]
    return "\n".join([*_signature(program.name, named), *_item_lines(program.items, "  ")])


def _signature(name: str, buffers: Sequence[str]) -> Iterator[str]:
    line = f"{name}({', '.join(buffers)})"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{name}("
    yield from (f"    {buffer}," for buffer in buffers)
    yield ")"


def _item_lines(items: Sequence[loop_ir.Item], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, loop_ir.NestLoop):
            yield f"{indent}for i{item.depth} < {item.extent}{_turns(item)}:"
            yield from _item_lines(item.items, indent + "  ")
        elif isinstance(item, loop_ir.Control):
            yield from _control_lines(item, indent)
        else:
            yield indent + _effect_text(item)


def _turns(loop: loop_ir.NestLoop) -> str:
    if loop.span is not None:
        return f" from {node_text(loop.span[0])} to {node_text(loop.span[1])}"
    return f" by {loop.tile}" if loop.tile else " across" if loop.across else ""


def _control_lines(item: loop_ir.Control, indent: str) -> Iterator[str]:
    inner = indent + "  "
    match item:
        case loop_ir.Switch(_, index, branches):
            for n, branch in enumerate(branches):
                yield f"{indent}case {n} of {node_text(index)}:"
                yield from _item_lines(branch, inner)
        case loop_ir.SequentialFor(depth, extent, reverse, items, updates):
            end = extent if isinstance(extent, int) else node_text(extent)
            yield f"{indent}{'reversed ' if reverse else ''}scan i{depth} < {end}:"
            yield from _item_lines([*items, *updates], inner)
        case loop_ir.SequentialWhile(depth, test, predicate, items, updates, count):
            yield f"{indent}while i{depth}:"
            yield from _item_lines(test, inner)
            yield f"{inner}end unless {node_text(predicate)}"
            yield from _item_lines([*items, *updates], inner)
            yield indent + _effect_text(count)


def _then(item: loop_ir.BufferStore | loop_ir.Check | loop_ir.Count) -> str:
    if isinstance(item, loop_ir.Check):
        return f", end at guard {item.number} unless {item.expected}"
    return f", counted by meter {item.number}" if isinstance(item, loop_ir.Count) else ""


def _effect_text(item: loop_ir.Item) -> str:
    match item:
        case loop_ir.BufferStore() | loop_ir.Check() | loop_ir.Count():
            return f"{item.buffer.name}[{index_text(item.address)}] = {node_text(item.node)}{_then(item)}"
        case loop_ir.Reduce(buffer, address, node, _, step, _, _, depths):
            over = ", ".join(f"i{d}" for d in sorted(depths))
            folded = _step_text(step, item.dtype, acc=Text("acc"), **{"0": _text(node)})
            return f"{buffer.name}[{index_text(address)}] = fold over {over}: {folded}"
        case loop_ir.ArgReduce(buffer, address, node, _, better):
            better = _step_text(better, BOOL, best=Text("best"), **{"0": _text(node)})
            return f"{buffer.name}[{index_text(address)}] = first with {better}"
        case loop_ir.Scan(buffer, address, node, step):
            folded = _step_text(step, buffer.dtype, acc=Text("acc"), **{"0": _text(node)})
            return f"{buffer.name}[{index_text(address)}] = running {folded}"
        case loop_ir.Update(buffer, address, node, step):
            old = f"{buffer.name}[{index_text(address)}]"
            return f"{old} = {_step_text(step, buffer.dtype, old=Text(old), new=_text(node))}"
        case loop_ir.Product():
            return _product_text(item)
        case loop_ir.LibraryCall(primitive, _, operands, results):
            names = ", ".join(b.name for b in results)
            return f"{names} = {primitive.name}({', '.join(b.name for b in operands)})"
        case loop_ir.NestLoop() | loop_ir.Switch() | loop_ir.SequentialFor() | loop_ir.SequentialWhile():
            raise AssertionError("loops and branches have lines of their own")


def _product_text(product: loop_ir.Product) -> str:
    out, depths = _matrix_text(product.out), sorted(product.depths)
    over = f"sum over {', '.join(f'i{d}' for d in depths)}: " if depths else ""
    added = f" + {_scale_text(product.beta)}{out}" if product.beta else ""
    factors = f"{_scale_text(product.alpha)}{_matrix_text(product.a)} · {_matrix_text(product.b)}"
    return f"{out} = {over}{factors}{added}   [{product.m},{product.k}] · [{product.k},{product.n}]"


def _scale_text(factor: float) -> str:
    return "" if factor == 1 else f"{factor:g} * "


def _matrix_text(matrix: loop_ir.Matrix) -> str:
    offset = "" if matrix.offset == Index(0) else f"[{index_text(matrix.offset)}:]"
    return f"{matrix.buffer.name}{offset}" + (".T" if matrix.row_stride == 1 != matrix.column_stride else "")


def _step_text(step: str, dtype: Dtype, **operands: Text) -> str:
    return instantiate(step, TEXTS, dtype, operands).text


def node_text(node: Node) -> str:
    """The text of a scalar expression."""
    return _text(node).text


def _text(node: Node) -> Text:
    match node:
        case BufferLoad(buffer, address, _):
            return Text(f"{buffer.name}[{index_text(address)}]")
        case ScalarConstant(value, _):
            return TEXTS.constant(value)
        case ScalarOperation(operation, operands, _, _):
            return written(operation, [_text(operand) for operand in operands])
        case IndexValue(index, dtype, _):
            return written(cast_to(dtype), [Text(index_text(index))])
        case Branch(conditions, inside, outside, _):
            return Text(f"({node_text(inside)} if {conditions_text(conditions)} else {node_text(outside)})")
        case Checked(operand, extent, _, _):
            return Text(f"checked({node_text(operand)}, {extent})")


def conditions_text(conditions: Sequence[Condition]) -> str:
    """Conditions as a Python expression, without the bounds that always hold."""
    parts: list[str] = []
    for index, low, high in conditions:
        least, greatest = index.range
        parts += [f"{index_text(index)} >= {low}"] if least < low else []
        parts += [f"{index_text(index)} < {high}"] if greatest >= high else []
    return " and ".join(parts)


def index_text(index: Index) -> str:
    """An index as a Python expression."""
    parts = [_term_text(atom, c) for atom, c in index.terms]
    if index.constant or not parts:
        parts.append(str(index.constant))
    return " + ".join(parts).replace("+ -", "- ")


def _term_text(atom: Atom, coefficient: int) -> str:
    text = _atom_text(atom)
    if coefficient == 1:
        return text
    return f"-{text}" if coefficient == -1 else f"{coefficient} * {text}"


def _atom_text(atom: Atom) -> str:
    match atom:
        case Counter(depth, _):
            return f"i{depth}"
        case Loaded(node, _):
            return node_text(node)
        case Quotient(dividend, divisor):
            return f"(({index_text(dividend)}) // {divisor})"
        case Remainder(dividend, divisor):
            return f"(({index_text(dividend)}) % {divisor})"

"""Loop programs as text, for people.

gradient(in x0: f64[3], out out0: f64[3])
  for i0 < 3:
    out0[i0] = cos(x0[i0]) * x0[i0] + sin(x0[i0])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fnad.lower.index import Atom, Counter, Index, Loaded, Quotient, Remainder
from fnad.lower.loops import (
    ArgReduce,
    Call,
    Check,
    Choice,
    Combine,
    Control,
    Item,
    Loop,
    LoopProgram,
    Matrix,
    Product,
    Reduce,
    Repeat,
    Running,
    Store,
    While,
)
from fnad.lower.nodes import Apply, Branch, Checked, Condition, Constant, Load, Node, Number, cast


def loops_text(program: LoopProgram) -> str:
    """Return the text of a loop program."""
    groups = (("in", program.inputs), ("out", program.outputs), ("temporary", program.temporaries))
    named = ", ".join(f"{kind} {b.name}: {b.aval}" for kind, buffers in groups for b in buffers)
    return "\n".join([f"{program.name}({named})", *_item_lines(program.items, "  ")])


def _item_lines(items: Sequence[Item], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Loop):
            yield f"{indent}for i{item.depth} < {item.extent}:"
            yield from _item_lines(item.items, indent + "  ")
        elif isinstance(item, Control):
            yield from _control_lines(item, indent)
        else:
            yield indent + _effect_text(item)


def _control_lines(item: Control, indent: str) -> Iterator[str]:
    inner = indent + "  "
    match item:
        case Choice(_, index, branches):
            for n, branch in enumerate(branches):
                yield f"{indent}case {n} of {node_text(index)}:"
                yield from _item_lines(branch, inner)
        case Repeat(depth, extent, reverse, items, updates):
            end = extent if isinstance(extent, int) else node_text(extent)
            yield f"{indent}{'reversed ' if reverse else ''}scan i{depth} < {end}:"
            yield from _item_lines([*items, *updates], inner)
        case While(depth, test, predicate, items, updates, count):
            yield f"{indent}while i{depth}:"
            yield from _item_lines(test, inner)
            yield f"{inner}end unless {node_text(predicate)}"
            yield from _item_lines([*items, *updates], inner)
            yield indent + _effect_text(count)


def _effect_text(item: Item) -> str:
    match item:
        case Store(buffer, address, node):
            return f"{buffer.name}[{index_text(address)}] = {node_text(node)}"
        case Check(buffer, address, node, expected, number):
            return f"{buffer.name}[{index_text(address)}] = {node_text(node)}, end at guard {number} unless {expected}"
        case Reduce(buffer, address, node, _, step, _, _, depths):
            over = ", ".join(f"i{d}" for d in sorted(depths))
            folded = step.format(node_text(node), acc="acc", dtype=cast(item.dtype))
            return f"{buffer.name}[{index_text(address)}] = fold over {over}: {folded}"
        case ArgReduce(buffer, address, node, _, better):
            return f"{buffer.name}[{index_text(address)}] = first with {better.format(node_text(node), best='best')}"
        case Running(buffer, address, node, step):
            folded = step.format(node_text(node), acc="acc", dtype=cast(buffer.dtype))
            return f"{buffer.name}[{index_text(address)}] = running {folded}"
        case Combine(buffer, address, node, step):
            combined = step.format(old=f"{buffer.name}[{index_text(address)}]", new=node_text(node))
            return f"{buffer.name}[{index_text(address)}] = {combined}"
        case Product(out, a, b, m, k, n):
            sizes = f"[{m},{k}] · [{k},{n}]"
            return f"{_matrix_text(out)} = {_matrix_text(a)} · {_matrix_text(b)}   {sizes}"
        case Call(primitive, _, operands, results):
            names = ", ".join(b.name for b in results)
            return f"{names} = {primitive.name}({', '.join(b.name for b in operands)})"
        case Loop() | Choice() | Repeat() | While():
            raise AssertionError("loops and branches have lines of their own")


def _matrix_text(matrix: Matrix) -> str:
    offset = "" if matrix.offset == Index(0) else f"[{index_text(matrix.offset)}:]"
    return f"{matrix.buffer.name}{offset}" + (".T" if matrix.row_stride == 1 != matrix.column_stride else "")


def node_text(node: Node) -> str:
    """Return a scalar expression."""
    match node:
        case Load(buffer, address, _):
            return f"{buffer.name}[{index_text(address)}]"
        case Constant(value, _):
            return str(value)
        case Apply(template, operands, dtype, _):
            texts = [f"({node_text(o)})" if _binds_loosely(o) else node_text(o) for o in operands]
            return template.format(*texts, dtype=cast(dtype))
        case Number(index, dtype, _):
            return f"{cast(dtype)}({index_text(index)})"
        case Branch(conditions, inside, outside, _):
            return f"({node_text(inside)} if {conditions_text(conditions)} else {node_text(outside)})"
        case Checked(operand, extent, _, _):
            return f"checked({node_text(operand)}, {extent})"


def _binds_loosely(node: Node) -> bool:
    return isinstance(node, Apply) and " " in node.template.partition("(")[0]


def conditions_text(conditions: Sequence[Condition], name: dict[Node, str] | None = None) -> str:
    """Return conditions as a Python expression, without the bounds that always hold."""
    parts: list[str] = []
    for index, low, high in conditions:
        least, greatest = index.range
        parts += [f"{index_text(index, name)} >= {low}"] if least < low else []
        parts += [f"{index_text(index, name)} < {high}"] if greatest >= high else []
    return " and ".join(parts)


def index_text(index: Index, name: dict[Node, str] | None = None) -> str:
    """Return an index as a Python expression; `name` has the variables that hold run-time integers."""
    parts = [_term_text(atom, c, name) for atom, c in index.terms]
    if index.constant or not parts:
        parts.append(str(index.constant))
    return " + ".join(parts).replace("+ -", "- ")


def _term_text(atom: Atom, coefficient: int, name: dict[Node, str] | None) -> str:
    text = _atom_text(atom, name)
    if coefficient == 1:
        return text
    return f"-{text}" if coefficient == -1 else f"{coefficient} * {text}"


def _atom_text(atom: Atom, name: dict[Node, str] | None) -> str:
    match atom:
        case Counter(depth, _):
            return f"i{depth}"
        case Loaded(node, _):
            return name[node] if name is not None else node_text(node)
        case Quotient(dividend, divisor):
            return f"(({index_text(dividend, name)}) // {divisor})"
        case Remainder(dividend, divisor):
            return f"(({index_text(dividend, name)}) % {divisor})"
